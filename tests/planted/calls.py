"""The order of checks, the life of a call, limits, retries: what send_call and send_env decide."""

CORE = "broker/core/conversation.py"
ACTOR = "broker/actors/conversation.py"
CALLS = "broker/actors/calls.py"
DESK = "broker/core/desk.py"
WIRE = "broker/tools/wire.py"
AGREE = "broker/tools/agree.py"
PROOF = "broker/tools/proof.py"
LOOKUP = "broker/tools/lookup.py"
TIMERS = "broker/actors/timers.py"
LIFE = "broker/wire/call.py"

MUTANTS = (
    (
        "order.call-desks",
        LOOKUP,
        "return row is not None and row.code == code and not _lapsed(services, row)",
        "return row is not None and row.code == code",
    ),
    (
        "limits.counts-folded",
        "broker/actors/desk.py",
        "if desk.row is None or places.doubtful:",
        "if desk.row is None:",
    ),
    (
        "call.restart-ends-nothing",
        TIMERS,
        "{row.id for row in rows if row.order <= now} | self._untold.keys()",
        "after",
    ),
    ("call.restart-ends-nothing", TIMERS, "if row.id not in after][:PAGE]", "if row.id not in after]"),
    ("order.vectors", CORE, "if envelope.n != state.n + 1:", "if envelope.n <= state.n:"),
    ("order.vectors", CORE, "if envelope.prev_sig != state.sig:", "if False:"),
    ("order.clock", CORE, "if abs(skew) <= rules.skew_s:", "if True:"),
    ("order.vectors", CORE, "if not in_turn(", "if False and not in_turn("),
    (
        "order.vectors",
        PROOF,
        "    if await context.services.verifier.verify(pk, message, sig):\n        return None",
        "    return None",
    ),
    ("order.vectors", "broker/wire/envelope.py", "if name not in _MEMBERS:", "if False:"),
    ("order.vectors", "broker/wire/envelope.py", "MAX_BODY: Final = 8192", "MAX_BODY: Final = 8193"),
    (
        "order.vectors",
        WIRE,
        "if not core.may_send(state, read, _now(services), services.rules):",
        "if False:",
    ),
    (
        "refusals.codes",
        WIRE,
        'else refuse("not_a_party", "this key is not a party of the conversation")',
        'else refuse("unknown_conv", "")',
    ),
    (
        "order.replay-first",
        WIRE,
        "        if replay is not None:\n            return replay\n    if (late",
        "    if (late",
    ),
    (
        "retries.replay",
        CALLS,
        "return Ack(row.conv, row.n, row.chain, entries[0].at, replayed=True)",
        "return Ack(row.conv, row.n, row.chain, entries[0].at)",
    ),
    ("order.call-desks", AGREE, "if caller.pk != envelope.sender:", "if False:"),
    ("order.call-desks", AGREE, "if called.pk != envelope.to:", "if False:"),
    (
        "order.call-desks",
        AGREE,
        "    if called is None:\n        return unknown_desk(code_to)",
        "    if called is None:\n        return disagree('to', '')",
    ),
    (
        "order.params-agree",
        WIRE,
        'if envelope.body.get("code_to") != to_code:',
        "if False:",
    ),
    (
        "order.params-agree",
        AGREE,
        'if "wire" in envelope.body and envelope.body["wire"] not in wires:',
        "if False:",
    ),
    ("order.conv-exists", ACTOR, "if sender != state.caller:", "if False:"),
    (
        "order.conv-exists",
        ACTOR,
        "    if state.phase is Phase.ENDED:\n        return core.ended(state)\n    return core.conflict(state, 0)",
        "    return core.conflict(state, 0)",
    ),
    (
        "order.nothing-before-signature",
        WIRE,
        '    refused = await check_signature(context, read.sender, read.canonical, sig, "bad_signature")\n    refused = refused or suspended',
        '    if read.n != state.n + 1:\n        return core.conflict(state, read.n)\n    refused = await check_signature(context, read.sender, read.canonical, sig, "bad_signature")\n    refused = refused or suspended',
    ),
    ("order.clock", CORE, "if abs(skew) <= rules.skew_s:", "if abs(skew) < rules.skew_s:"),
    ("order.clock", CORE, "if abs(skew) <= rules.skew_s:", "if abs(skew) <= rules.skew_s + 1:"),
    (
        "order.suspended",
        AGREE,
        "if services.suspended.isdisjoint((envelope.sender, envelope.to)):",
        "if envelope.sender not in services.suspended:",
    ),
    (
        "order.suspended",
        AGREE,
        'if envelope.sender not in services.suspended or envelope.type == "END":',
        "if envelope.sender not in services.suspended:",
    ),
    (
        "call.turns",
        LIFE,
        'return type == "END" or sender == speaker(n, caller, called)',
        "return sender == speaker(n, caller, called)",
    ),
    ("call.turns", LIFE, "return called if n % 2 else caller", "return caller if n % 2 else called"),
    ("order.vectors", CORE, "    if state.phase is Phase.ENDED:\n        return ended(state)\n", ""),
    (
        "order.vectors",
        CORE,
        "chain=chain_next(state.chain, command.sig),",
        "chain=chain_next(b'', command.sig),",
    ),
    ("call.two-at-once", CORE, "    if state.phase is Phase.ENDED:\n        return ended(state)\n", ""),
    ("call.no-answer", CORE, "limit = rules.ring_s if ringing else rules.idle_s", "limit = rules.idle_s"),
    ("call.no-answer", CORE, 'return Hangup("no_answer" if ringing else "idle")', 'return Hangup("idle")'),
    (
        "call.no-answer",
        CORE,
        "return self.callee if self.last_from == self.caller else self.caller",
        "return self.caller",
    ),
    ("call.idle", CORE, "left = max(max(last_mono, ready) + limit - now.mono, due.left_s)", "left = 0.0"),
    (
        "call.restart-ends-nothing",
        CORE,
        "left = max(max(last_mono, ready) + limit",
        "left = max(last_mono + limit",
    ),
    ("call.evicted", WIRE, 'Hangup("evicted", by)', 'Hangup("evicted")'),
    (
        "call.evicted",
        DESK,
        "return Place(tuple(list(places.open)[: max(excess, 0)]))",
        "return Place(tuple(list(places.open)[-1:] if excess > 0 else ()))",
    ),
    (
        "limits.thirty-in-ten-seconds",
        CORE,
        "wait_ms(state.spent, now.mono, rules.envelopes, rules.window_s)",
        "wait_ms(state.spent, now.mono, rules.envelopes + 1, rules.window_s)",
    ),
    ("limits.end-always", CORE, "    if not is_end and not lost and len(", "    if not lost and len("),
    ("limits.window-across-restart", CALLS, "        spent=spent,\n", "        spent=deque(),\n"),
    (
        "limits.window-wall-behind",
        CORE,
        "at=max(now.wall_ms, state.last_at),\n        mono=now.mono,\n        counted=not is_end",
        "at=now.wall_ms,\n        mono=now.mono,\n        counted=not is_end",
    ),
    (
        "limits.window-wall-behind",
        "broker/core/machine.py",
        "    if at > now.wall_ms:\n        return started\n",
        "",
    ),
    (
        "limits.eight",
        DESK,
        "excess = len(places.taken() | {conv}) - capacity.conversations",
        "excess = len(places.open) - capacity.conversations",
    ),
    (
        "limits.rings",
        DESK,
        "    places.open.pop(conv, None)\n    places.rings.pop(conv, None)\n",
        "    places.open.pop(conv, None)\n",
    ),
    (
        "limits.refused-evicts-nobody",
        WIRE,
        "    refused = core.decide_send(state, command, _now(services), services.rules)\n    if isinstance(refused, Refusal):\n        return refused\n",
        "",
    ),
    (
        "limits.refused-evicts-nobody",
        WIRE,
        "    if isinstance(refused, Refusal):\n        return refused\n    full = disk_full",
        '    if isinstance(refused, Refusal):\n        place = await house.ask("desk", envelope.sender, ReservePlace(conv, token))\n        await _evict(services, place, Pk(envelope.sender))\n        return refused\n    full = disk_full',
    ),
    (
        "limits.rings",
        DESK,
        "or len(others) >= capacity.rings\n",
        "or len(others) > capacity.rings\n",
    ),
    ("limits.rings", DESK, "or (not ring.known and strangers >= capacity.rings - capacity.rings_known)", ""),
    ("limits.rings-per-address", DESK, "or from_address >= capacity.rings_per_address\n", ""),
    (
        "limits.rings-per-address",
        WIRE,
        "address = None if context.caller.loopback else place_of(context.caller.address)",
        "address = context.caller.address",
    ),
    ("limits.guessing", PROOF, "    if stopped is not None:\n        return stopped\n", ""),
    (
        "limits.guessing",
        PROOF,
        "    if not caller.exempt:\n        guard.bad_signature(caller.address)\n",
        "",
    ),
    ("limits.guessing", LOOKUP, "    if stopped is not None:\n        return stopped\n", ""),
    ("limits.disk", LOOKUP, "free_bytes() >= services.settings.store.min_free_bytes:", "free_bytes() >= 0:"),
    ("limits.disk", WIRE, "place = full or await", "place = await"),
    ("limits.disk", "broker/tools/directory.py", "answer = full or await", "answer = await"),
    (
        "tools.parties-mode",
        WIRE,
        'parties_only = services.settings.transcripts == "parties"',
        "parties_only = False",
    ),
    (
        "envelope.conv-never-reused",
        WIRE,
        '        return refuse("conv_exists", "this conv was used before; choose a new random one")\n    return taken',
        '        return _disagree("conv", "")\n    return taken',
    ),
    ("envelope.first-prev-sig", CORE, "if envelope.prev_sig != bootstrap(envelope.conv):", "if False:"),
)
