"""What all tools of the network keep."""

STANDING = "broker/actors/standing.py"
RECORD = "broker/actors/record.py"
KEYS = "broker/tools/idempotency.py"
ACCESS = "broker/tools/access.py"

MUTANTS = (
    ("network.standing", STANDING, "caller.issued < facts.after", "caller.issued <= facts.after"),
    ("network.standing", STANDING, "                held.end(refused)", "                pass"),
    ("network.standing", RECORD, "        self.stands(record.row)\n", ""),
    ("network.standing", STANDING, "facts = self._facts.get(subject) or read", "facts = read"),
    ("network.one-document", RECORD, "puts=(*changed, *puts),", "puts=changed,"),
    ("network.one-document", RECORD, "deliver=tuple(_deliver(each, at) for each in events),", "deliver=(),"),
    (
        "idempotency.same",
        RECORD,
        "remember=once.remember(answer) if once is not None else None,",
        "remember=None,",
    ),
    ("idempotency.mismatch", KEYS, "if digest != once.digest:", "if False:"),
    (
        "idempotency.mismatch",
        KEYS,
        "return read_outcome(remembered) if remembered.digest == once.digest else MISMATCH",
        "return read_outcome(remembered)",
    ),
    ("idempotency.at-once", KEYS, "if digest is None:", "if True:"),
    ("idempotency.at-once", KEYS, "WAIT_S: Final = 10.0", "WAIT_S: Final = 11.0"),
    ("idempotency.scope", KEYS, 'Once(f"key:{_subject(context)}:{tool}"', 'Once(f"key:{_subject(context)}"'),
    ("idempotency.scope", KEYS, 'Once(f"key:{_subject(context)}:{tool}"', 'Once(f"key:{tool}"'),
    ("idempotency.kept", KEYS, "return refusal if refusal.code in PASSING else", "return"),
    (
        "idempotency.at-once",
        KEYS,
        "    if stored is not None:\n        return stored\n    return refusal",
        "    return refusal",
    ),
    ("idempotency.kept", KEYS, "KEPT_MS: Final = 30 * 86_400_000", "KEPT_MS: Final = 29 * 86_400_000"),
    ("idempotency.rate", KEYS, "    if refused is not None:\n        return refused\n    with", "    with"),
    ("idempotency.rate", KEYS, "rate.weigh(subject, len(msgspec.json.encode(answer)))", "pass"),
    ("idempotency.rate", "broker/tools/keyrate.py", "if count >= self._most:", "if count > self._most:"),
    ("network.access", ACCESS, "if scope not in caller.scopes and", "if False and"),
    ("network.access", ACCESS, "also not in caller.scopes", "True"),
    ("network.access", ACCESS, "if agent and caller.agent is None:", "if False:"),
    ("network.agent-stream", "broker/actors/calls.py", "if agent_id is None else", "if True else"),
    ("network.ids", "broker/wire/ids.py", "ms << 80", "ms << 81"),
)
