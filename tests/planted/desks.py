"""Desks and codes, statements as the tools judge them, presence."""

TOOL = "broker/tools/directory.py"
PROOF = "broker/tools/proof.py"
FOLLOWS = "broker/tools/follows.py"
STREAMS = "broker/tools/streams.py"
ACTOR = "broker/actors/desk.py"
CORE = "broker/core/desk.py"
PRESENCE = "broker/actors/presence.py"
GUARD = "broker/actors/guard.py"

MUTANTS = (
    (
        "desk.code-form",
        "broker/wire/ids.py",
        'CODE: Final = re.compile(r"[A-Z]{4}")',
        'CODE: Final = re.compile(r"[A-Za-z]{4}")',
    ),
    (
        "desk.one-code-one-key",
        ACTOR,
        "if desk.row is not None and not core.lapsed(desk.row, now, lapse):",
        "if False:",
    ),
    ("desk.one-code-one-key", ACTOR, "if code in self._settings.reserved:", "if False:"),
    (
        "desk.one-code-one-key",
        ACTOR,
        "if held.closed_at is None and row is not None and not core.lapsed(row, now, lapse):",
        "if False:",
    ),
    ("desk.cool-down", CORE, "return code.closed_at + lapse_days * DAY_MS", "return code.closed_at"),
    ("desk.cool-down", ACTOR, "        if now < until:\n", "        if False:\n"),
    ("desk.lapse", CORE, "return now_ms - row.used_at >= lapse_days * DAY_MS", "return False"),
    (
        "desk.lapse",
        ACTOR,
        "if row is not None and now - row.used_at >= core.DAY_MS and not self.gone:",
        "if False:",
    ),
    ("desk.lapse", CORE, "row.used_at + 2 * lapse_days * DAY_MS", "row.used_at + lapse_days * DAY_MS"),
    (
        "desk.move",
        TOOL,
        'await prove(context, statement, sig, "move_desk", new_sig)',
        'await prove(context, statement, sig, "move_desk")',
    ),
    ("desk.move", ACTOR, "msgspec.json.encode(CodeRow(new_pk))", "msgspec.json.encode(CodeRow(row.pk))"),
    ("desk.recovery", ACTOR, "if not command.by_recovery:", "if True:"),
    ("desk.recovery", TOOL, "if made.pk not in (row.pk, row.recovery_pk):", "if made.pk != row.pk:"),
    ("desk.recovery", ACTOR, "stays = msgspec.structs.replace(row, moving=None)", "stays = row"),
    ("desk.screen", CORE, "if ring.sender in screen.allow:", "if False:"),
    ("desk.screen", CORE, 'return screen.mode == "known" and not ring.known', "return False"),
    (
        "desk.screen",
        CORE,
        'if ring.sender in screen.deny or screen.mode == "nobody":',
        'if screen.mode == "nobody":',
    ),
    ("desk.open-setting", TOOL, 'if who == "anyone" or context.caller.operator:', "if True:"),
    ("statements.replay", PROOF, '"answer", scope), "replayed": True}', '"answer", scope)}'),
    ("statements.replay", PROOF, "if remembered is not None and remembered.digest == digest:", "if False:"),
    (
        "statements.nonce",
        PROOF,
        "    if remembered is not None:\n        return _used()",
        "    if False:\n        return _used()",
    ),
    (
        "statements.order",
        PROOF,
        "    return check_wire(statement, services.keyring.opening) or statement",
        "    return statement",
    ),
    (
        "statements.order",
        PROOF,
        "    stale = _stale(services, statement)\n    if stale is not None:\n        return stale\n    until = (",
        "    until = (",
    ),
    ("statements.follow", PROOF, "if row.pk != statement.pk:", "if False:"),
    ("statements.verified-once", PROOF, "if row.pk != statement.pk:", "if False:"),
    (
        "statements.verified-once",
        PROOF,
        "return services.guard.check(caller.address, caller.exempt) or known",
        "return known",
    ),
    ("statements.verified-once", PROOF, "    if known is not None:\n", "    if False:\n"),
    (
        "statements.verified-once",
        PROOF,
        "    if refused is None:\n        services.follows.remember(text, sig, statement)",
        "    services.follows.remember(text, sig, statement)",
    ),
    (
        "statements.verified-once",
        PROOF,
        "    stale = _stale(services, statement)\n    if stale is not None:\n        return stale\n    until = int(",
        "    until = int(",
    ),
    ("statements.verified-once", FOLLOWS, "return sig, hashlib", 'return "", hashlib'),
    ("statements.verified-once", FOLLOWS, "hashlib.sha256(text).digest()", 'b""'),
    ("statements.verified-once", "broker/actors/latest.py", "if len(self) > self._most:", "if False:"),
    ("statements.verified-once", "broker/actors/latest.py", "        self.move_to_end(key)\n", ""),
    ("statements.verified-once", FOLLOWS, "self._found[key] = statement  #", "pass  #"),
    ("tools.wait-for-others", STREAMS, "                own=own,\n", ""),
    (
        "tools.wait-for-others",
        "broker/actors/streams.py",
        "(own is None or each.own is own)",
        "(own is None or each.own is not own)",
    ),
    (
        "statements.follow",
        PROOF,
        "    stale = _stale(services, statement)\n    if stale is not None:\n        return stale\n    until = int(",
        "    until = int(",
    ),
    ("statements.authenticate", PROOF, "if statement.nonce != challenge:", "if False:"),
    (
        "presence.poll",
        PRESENCE,
        "self._prolong(pk, self._touch(pk), self._settings.poll_s)",
        "self._prolong(pk, self._touch(pk), self._settings.linger_s)",
    ),
    (
        "presence.linger",
        PRESENCE,
        "self._prolong(pk, desk, self._settings.linger_s)",
        "self._prolong(pk, desk, 0.0)",
    ),
    (
        "presence.open-stream",
        PRESENCE,
        "return desk is not None and (desk.open > 0 or desk.until > self._clock.monotonic())",
        "return desk is not None and desk.until > self._clock.monotonic()",
    ),
    (
        "presence.coalesced",
        PRESENCE,
        "await trio.sleep(max(0.0, self._answered + self._coalesce_s - self._clock.monotonic()))",
        "await trio.lowlevel.checkpoint()",
    ),
    (
        "presence.coalesced",
        PRESENCE,
        "label: now for label in self._dirty if (now := self._online(label)) != self._told[label]",
        "label: self._online(label) for label in self._dirty",
    ),
    (
        "presence.snapshot-then-changes",
        PRESENCE,
        "self.snapshot = {label: self._now(presence, pk) for label, pk in pks.items()}",
        "self.snapshot = {label: False for label, pk in pks.items()}",
    ),
    ("presence.moved-code", PRESENCE, "            watch.pks[label] = pk\n", ""),
    ("limits.guessing-exempt", GUARD, "if exempt or not self._stopped:", "if not self._stopped:"),
    ("limits.opens-ipv6", GUARD, "str(ipaddress.IPv6Network((int(ip) >> 64 << 64, 64)))", "str(ip)"),
    (
        "limits.opens",
        GUARD,
        "place = None if exempt else place_of(address)\n        if place is None:\n            return None\n        return times",
        "place = place_of(address)\n        if place is None:\n            return None\n        return times",
    ),
    ("limits.opens", GUARD, "self._give_back(self._opens, address, exempt)", "pass"),
    ("limits.opens-per-hour", TOOL, "    if stopped is not None:\n        return stopped\n", ""),
    ("limits.opens-per-hour", TOOL, "services.guard.unopened(caller.address, caller.loopback)", "pass"),
    ("limits.guessing", GUARD, "self._stopped[place] = ", "_ = "),
)
