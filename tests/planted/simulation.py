"""What the simulation found, and what it must find: faults that show only under faults, or many at once."""

TIMERS = "broker/actors/timers.py"
ACTOR = "broker/actors/actor.py"
CONVERSATION = "broker/actors/conversation.py"
READER = "broker/actors/reader.py"
CORE = "broker/core/conversation.py"
DESK = "broker/core/desk.py"
EVENTS = "broker/wire/events.py"
SEEN = "faults.simulated"

MUTANTS = (
    (
        "call.idle-by-the-monotonic-clock",
        TIMERS,
        "Due(left_s, before)",
        "Due(left_s)",
    ),
    (
        "call.idle-by-the-monotonic-clock",
        TIMERS,
        "Due(left_s, before)",
        'Due(float("-inf"), before)',
    ),
    (
        "call.idle-by-the-monotonic-clock",
        TIMERS,
        "far = row.order - before - mono_ms <= limit if ahead > before else row.order",
        "far = row.order",
    ),
    (
        "call.idle-by-the-monotonic-clock",
        TIMERS,
        "far = row.order - before - mono_ms <= limit if ahead > before else",
        "far = ahead > before or",
    ),
    (
        "call.idle-by-the-monotonic-clock",
        TIMERS,
        "            if not refusals:\n                del self._untold[conv]",
        "            del self._untold[conv]",
    ),
    (
        "call.rung-is-known",
        "broker/tools/lookup.py",
        "        if actor.state is None:\n            # Who was told",
        "        if False:\n            # Who was told",
    ),
    (
        SEEN,
        ACTOR,
        "            self.store.submit(step.unit, flight.land)\n",
        "            self.store.submit(step.unit, lambda _: None)\n            flight.land(None)\n",
    ),
    (
        SEEN,
        ACTOR,
        "        if isinstance(error, Unavailable):\n            return refuse(",
        "        if isinstance(error, Unavailable | InDoubt):\n            return refuse(",
    ),
    (
        SEEN,
        CONVERSATION,
        "        if refused is None:\n            self._actor.folded",
        "        if refused is None or refused.code == 'in_doubt':\n            self._actor.folded",
    ),
    (SEEN, CORE, "        at=max(now.wall_ms, state.last_at),\n", "        at=now.wall_ms,\n"),
    (SEEN, CORE, "    left = max(max(last_mono, ready)", "    left = max(max(last_mono, 0.0)"),
    (
        SEEN,
        CORE,
        "        state.spent.append(record.mono)\n",
        "        state.spent.append(record.mono - 0.5)\n",
    ),
    (
        SEEN,
        "broker/app.py",
        "return Rules(limits.envelopes,",
        "return Rules(limits.envelopes + 1,",
    ),
    (SEEN, DESK, "return Place(tuple(list(places.open)[: max(excess, 0)]))", "return Place(())"),
    (
        SEEN,
        DESK,
        "return Place(tuple(list(places.open)[: max(excess, 0)]))",
        "return Place(tuple(list(places.open)[::-1][: max(excess, 0)]))",
    ),
    (
        SEEN,
        READER,
        "            self._pending += batch\n",
        "            self._pending = [*batch, *self._pending]\n",
    ),
    (
        SEEN,
        READER,
        "        self._position = batch[-1].position\n        return True\n",
        "        return True\n",
    ),
    (SEEN, READER, "            self._held.__exit__(None, None, None)\n", "            pass\n"),
    (SEEN, READER, "        del self.readers[reader]\n", "        pass\n"),
    (SEEN, "broker/actors/presence.py", "        desk.open += 1\n", "        desk.open += 0\n"),
    (SEEN, "broker/actors/house.py", "                    actor.leave()\n", "                    pass\n"),
    (SEEN, "broker/actors/calls.py", "    if row.n != envelope.n or row.sig", "    if True or row.sig"),
    (SEEN, EVENTS, "    return cursor.position, None\n", "    return cursor.position + 1, None\n"),
    (SEEN, EVENTS, '        return newest, "future"\n', "        return newest, None\n"),
    (SEEN, EVENTS, '        return oldest - 1, "trimmed"\n', "        return oldest - 1, None\n"),
)
