"""Streams and their readers, the actor between mailbox and log, what is kept."""

EVENTS = "broker/wire/events.py"
READER = "broker/actors/reader.py"
HUB = "broker/actors/streams.py"
ACTOR = "broker/actors/actor.py"
CONVERSATION = "broker/actors/conversation.py"
CORE = "broker/core/conversation.py"
DESK = "broker/core/desk.py"

MUTANTS = (
    (
        "streams.from-now",
        EVENTS,
        "    if after is None:\n        return newest, None\n",
        "    if after is None:\n        return oldest - 1, None\n",
    ),
    (
        "streams.from-oldest",
        EVENTS,
        '    if after == "0":\n        return oldest - 1, None\n',
        '    if after == "0":\n        return newest, None\n',
    ),
    ("streams.unknown-cursor", EVENTS, "if cursor is None or cursor.tag != tag:", "if cursor is None:"),
    ("streams.epoch-changed", EVENTS, "if cursor.epoch != epoch:", "if False:"),
    ("streams.future-cursor", EVENTS, "if cursor.position > newest:", "if False:"),
    ("streams.trimmed", EVENTS, "if cursor.position < oldest - 1:", "if False:"),
    (
        "streams.cursor-is-the-last-one",
        EVENTS,
        "    return cursor.position, None\n",
        "    return cursor.position - 1, None\n",
    ),
    ("streams.row-members", EVENTS, "b',\"accepted_at\":%d' % accepted_at", 'b""'),
    ("streams.row-members", EVENTS, 'b"true" if own else b"false"', 'b"false"'),
    (
        "streams.stored-then-live",
        READER,
        "self.live = self._position >= self._topic.newest",
        "self.live = True",
    ),
    (
        "streams.same-order-for-all",
        READER,
        "taken, self._pending, self._bytes = self._pending, [], 0",
        "taken, self._pending, self._bytes = self._pending[::-1], [], 0",
    ),
    (
        "streams.slow-reader-is-closed",
        READER,
        "            self._give_up()\n        else:",
        "            self._fall_back()\n        else:",
    ),
    (
        "streams.backlog-is-not-slowness",
        READER,
        "        if not self.live:\n            return await self._take_stored(most)\n",
        "        if not self.live:\n            taken = await self._take_stored(most)\n"
        "            if self._position > self._topic.settings.queue_events:\n                raise Slow\n"
        "            return taken\n",
    ),
    (
        "streams.move-ends-the-follow",
        READER,
        "if self._end is not None and self._position >= self._stop:",
        "if False:",
    ),
    (
        "streams.move-ends-the-follow",
        READER,
        "self._stop = self._position if at_once else max(self._stop, self._topic.newest)",
        "self._stop = 0",
    ),
    (
        "statements.follow-until",
        READER,
        "if self._until_ms is not None and self._left_s(self._until_ms) <= 0:",
        "if False:",
    ),
    (
        "statements.follow-until",
        READER,
        "return max(0.0, min((until_ms - clock.now_ms()) / 1000, self._deadline - clock.monotonic()))",
        "return max(0.0, (until_ms - clock.now_ms()) / 1000)",
    ),
    (
        "streams.dropped-transcripts",
        READER,
        "return events, reached if len(events) == most else max(reached, newest)",
        "return events, reached",
    ),
    ("streams.old-key-keeps-its-stream", HUB, "if code is None or each.code == code", "if True"),
    (
        "tools.poll-at-once",
        HUB,
        "if found or trio.current_time() >= deadline:",
        "if trio.current_time() >= deadline:",
    ),
    (
        "tools.poll-rings-alone",
        HUB,
        "wanted = (kinds is None or each.kind in kinds) and (own is None or each.own is own)",
        "wanted = True",
    ),
    (
        "tools.poll-rings-alone",
        HUB,
        "                        seen += 1\n                        cursor = each.cursor\n                        if",
        "                        seen += 1\n                        if",
    ),
    ("streams.events", CONVERSATION, 'kind = "end" if record.type == "END" else "env"', 'kind = "env"'),
    ("streams.events", CONVERSATION, 'called = "ring" if record.type == "CALL" else kind', "called = kind"),
    ("order.overloaded", ACTOR, "if letter.then is not None and self._asked >= self._limit:", "if False:"),
    (
        "retries.unavailable",
        ACTOR,
        '        if isinstance(error, Unavailable):\n            return refuse(\n                "unavailable"',
        '        if isinstance(error, Unavailable):\n            return refuse(\n                "in_doubt"',
    ),
    (
        "retries.in-doubt",
        ACTOR,
        "        if isinstance(error, InDoubt):\n            self.gone = True\n",
        "        if isinstance(error, InDoubt):\n",
    ),
    (
        "retries.acknowledged-is-durable",
        ACTOR,
        "                await self.store.commit(unit)\n",
        "                self.nursery.start_soon(self.store.commit, unit)\n",
    ),
    (
        "retries.acknowledged-is-durable",
        ACTOR,
        "            self.store.submit(step.unit, flight.land)\n",
        "            self.store.submit(step.unit, print)\n            flight.land(None)\n",
    ),
    (
        "call.wire-key",
        CONVERSATION,
        "key, now = self._keyring.get(state.wire), ",
        "key, now = self._keyring.current, ",
    ),
    (
        "limits.accepted-at-never-decreases",
        CORE,
        "at=max(now.wall_ms, state.last_at),\n        mono=now.mono,\n        counted=not is_end",
        "at=now.wall_ms,\n        mono=now.mono,\n        counted=not is_end",
    ),
    (
        "limits.reservation",
        DESK,
        "    for token in [token for token, (_, until) in places.held.items() if until <= mono]:\n        del places.held[token]\n",
        "",
    ),
    ("limits.defaults", "broker/config.py", "Meta(ge=1, le=10_000)] = 30\n", "Meta(ge=1, le=10_000)] = 31\n"),
    ("order.place", CORE, "    if envelope.prev_sig != state.sig:\n", "    if False:\n"),
    (
        "keys.rotation",
        "broker/wire/keyring.py",
        "return tuple(wire_key.key.pk for wire_key in self._keys if wire_key.until is None)",
        "return tuple(wire_key.key.pk for wire_key in self._keys)",
    ),
    (
        "keys.rotation",
        "broker/wire/keyring.py",
        "return self._by_pk.get(Pk(pk), self.current)",
        "return self.current",
    ),
    (
        "envelope.n-any-form",
        "broker/tools/registry.py",
        "        whole = _whole_number(param, text)\n",
        "        whole = None\n",
    ),
    (
        "refusals.judged-as-envelope",
        "broker/tools/registry.py",
        '_ENVELOPE_PARAMS: Final = frozenset({"envelope", "sig", "conv", "n"})',
        '_ENVELOPE_PARAMS: Final = frozenset({"envelope"})',
    ),
)
