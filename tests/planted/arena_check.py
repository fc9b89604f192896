"""What is left of the arena's sessions in a store."""

CHECK = "broker/actors/check_arena.py"
LEAVING = "broker/actors/leaving.py"
ACTOR = "broker/actors/arena.py"
SESSION = "broker/actors/session.py"
CORE = "broker/core/arena.py"
PLAYER = "broker/actors/player.py"

MUTANTS = (
    ("arena.check", CHECK, "if sum(points for _, points in event.entries):", "if False:"),
    ("arena.check", CHECK, "elif event.balance != before + change:", "elif False:"),
    ("arena.check", CHECK, "if row != sums.account:", "if False:"),
    ("arena.check", CHECK, "if any(way.values()) or", "if"),
    ("arena.check", CHECK, "not sums.seen <= {0, *sums.steps}", "False"),
    ("arena.check", CHECK, "if commit != opened.commit:", "if False:"),
    ("arena.check", CHECK, "if ref_of(document.doc) != document.id:", "if False:"),
    ("arena.check", CHECK, "if published is None or published.doc != content:", "if published is None:"),
    ("arena.gone", LEAVING, 'for kind in ("arena", "trial"):', 'for kind in ("trial",):'),
    (
        "arena.gone",
        SESSION,
        "if await read_agent(self.store, timed.agent_id, now) is not None:",
        "if True:",
    ),
    (
        "arena.program",
        ACTOR,
        "puts = () if put is None or not event.entries else (put(event),)",
        "puts = ()",
    ),
    ("arena.program", SESSION, "final = None if refusal.retryable else once", "final = None"),
    ("arena.program", SESSION, "self._rejected = last[0].n + 1 if last else 0", "self._rejected = 0"),
    ("arena.program", PLAYER, "if balance == 0:", "if False:"),
    (
        "arena.late-commit",
        ACTOR,
        "            case Look():\n                await self.confirm()\n",
        "            case Look():\n",
    ),
    (
        "arena.late-commit",
        SESSION,
        "        await self.confirm()\n        self.rejected",
        "        self.rejected",
    ),
    ("arena.late-commit", PLAYER, "await self.confirm()\n            return refuse(", "return refuse("),
    ("arena.restored", PLAYER, 'f"{head.epoch}{agent_id}".encode()', "agent_id.encode()"),
    (
        "arena.simulated",
        ACTOR,
        'return Put("account", row.agent_id, version, msgspec.json.encode(after))',
        'return Put("account", row.agent_id, version, msgspec.json.encode(account))',
    ),
    (
        "arena.killed",
        "broker/actors/record.py",
        "remember=once.remember(answer) if once is not None else None,",
        "remember=None,",
    ),
)
