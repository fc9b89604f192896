"""What only the running broker shows: actors that rest, commits that land late, places folded, the wire's own key."""

CALLS = "broker/actors/calls.py"
CONVERSATION = "broker/actors/conversation.py"
DESK = "broker/actors/desk.py"
WIRE = "broker/tools/wire.py"
DIRECTORY = "broker/tools/directory.py"

MUTANTS = (
    (
        "call.life",
        "broker/core/conversation.py",
        "    state.phase = next_phase(state.phase, record.type)\n",
        "    state.phase = next_phase(state.phase, record.type) if record.type != 'END' else state.phase\n",
    ),
    (
        "call.no-task-at-rest",
        "broker/actors/house.py",
        "                if actor.used <= before:\n                    actor.leave()\n",
        "                if actor.used <= before:\n                    pass\n",
    ),
    (
        "desk.suspended",
        DESK,
        "moved = msgspec.structs.replace(row, pk=new_pk, used_at=now, moving=None, suspended=suspended)",
        "moved = msgspec.structs.replace(row, pk=new_pk, used_at=now, moving=None, suspended=False)",
    ),
    ("keys.wire-key", "gateways/wirekeys.py", "        if known:\n", "        if False:\n"),
    ("keys.wire-key", "gateways/wirekeys.py", "if not set(known) <= set(pks):", "if False:"),
    ("limits.counts-folded", DESK, "            places.open.clear()\n", ""),
    (
        "limits.counts-folded",
        DESK,
        '        for document in await self._calls("open"):\n            core.dialled(places, document.id)\n        for document in await self._calls("ringing"):',
        '        for document in await self._calls("ringing"):',
    ),
    (
        "limits.window-wall-behind",
        CALLS,
        "spent = deque(mono_of(entry.at, started, started.mono) for entry in counted)",
        "spent = deque(mono_of(entry.at, now, started.mono) for entry in counted)",
    ),
    (
        "limits.window-monotonic",
        CALLS,
        "    if seen is None:\n        last_mono",
        "    if True:\n        last_mono",
    ),
    (
        "order.busy-before-disk",
        WIRE,
        "    if isinstance(refused, Refusal):\n        return refused\n    full = ",
        '    full = None\n    refused = disk_full(services, "") or refused\n    if isinstance(refused, Refusal):\n        return refused\n    _ = ',
    ),
    (
        "presence.stream",
        "broker/tools/stream_reader.py",
        "held.enter_context(context.services.presence.attach(reads_as))",
        "pass",
    ),
    (
        "retries.late-commit",
        CONVERSATION,
        '            return NOT_NOW if record.code == "clock_skew" else record\n',
        "            return record\n",
    ),
    (
        "retries.late-commit",
        DESK,
        "                places.doubtful[conv] = self._clock.monotonic() + DOUBT_S\n",
        "                pass\n",
    ),
    ("statements.nonce-kept", "broker/tools/proof.py", "NONCE_KEPT_S = 600", "NONCE_KEPT_S = 0"),
    (
        "statements.order-of-opening",
        DIRECTORY,
        'answer = full or await services.house.ask("desk", made.pk, command)',
        'answer = await services.house.ask("desk", made.pk, command)',
    ),
    (
        "statements.order-of-opening",
        DIRECTORY,
        'refused = _may_open(context) or await services.house.ask("desk", made.pk, MayOpen(code))',
        "refused = _may_open(context)",
    ),
    (
        "statements.shape",
        "broker/tools/registry.py",
        '        code = "bad_envelope" if param.name in _ENVELOPE_PARAMS else "bad_request"\n        return refuse(code',
        '        code = "bad_request"\n        return refuse(code',
    ),
    (
        "desk.predicted",
        DESK,
        "if held.closed_at is None and row is not None and not core.lapsed(row, now, lapse):",
        "if False:",
    ),
    (
        "desk.explained-by-the-log",
        "broker/tools/proof.py",
        "    return _answered(remembered, once.digest, once.scope) or _used()",
        "    return None",
    ),
    (
        "limits.never-more-than-eight",
        "broker/core/desk.py",
        "return Place(tuple(list(places.open)[: max(excess, 0)]))",
        "return Place(())",
    ),
    (
        "order.explained-by-the-log",
        "broker/core/conversation.py",
        "    if envelope.n != state.n + 1:\n",
        "    if envelope.n > state.n + 1:\n",
    ),
    (
        "order.predicted",
        "broker/core/conversation.py",
        "    if envelope.prev_sig != state.sig:\n",
        "    if False:\n",
    ),
    (
        "retries.acknowledged-never-lost",
        CONVERSATION,
        "            return Ack(self._state.conv, self._record.n, self._chain, self._record.at)\n",
        "            return Ack(self._state.conv, self._record.n, self._chain, self._record.at + 1)\n",
    ),
)
