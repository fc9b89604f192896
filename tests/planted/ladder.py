"""The order of checks where several things are wrong, and which keys of the wire may be named."""

MUTANTS = (
    (
        "keys.any-open-key",
        "broker/wire/keyring.py",
        "return tuple(wire_key.key.pk for wire_key in self._keys if wire_key.until is None)",
        "return (self.pk,)",
    ),
    (
        "keys.any-open-key",
        "broker/wire/keyring.py",
        "return tuple(wire_key.key.pk for wire_key in self._keys if wire_key.until is None)",
        "return tuple(wire_key.key.pk for wire_key in self._keys)",
    ),
    (
        "order.ladder",
        "broker/core/conversation.py",
        "fault = None if is_usual(state, envelope) else _place(state, envelope)\n",
        "fault = clock_skew(envelope.ts, now, rules) or _place(state, envelope)\n",
    ),
    (
        "order.ladder",
        "broker/tools/wire.py",
        "refused = await desks_agree(services, read) or await check_signature(",
        "refused = suspended(services, read) or await desks_agree(services, read) or await check_signature(",
    ),
    (
        "statements.ladder",
        "broker/tools/proof.py",
        'refused = await check_signature(context, statement.pk, statement.canonical, sig, "bad_statement")\n'
        "    if refused is None and new_sig",
        "refused = _stale(services, statement) or await check_signature(\n"
        '        context, statement.pk, statement.canonical, sig, "bad_statement"\n    )\n'
        "    if refused is None and new_sig",
    ),
)
