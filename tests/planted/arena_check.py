"""What is left of the arena's sessions in a store."""

CHECK = "broker/actors/check_arena.py"
LEAVING = "broker/actors/leaving.py"
ACTOR = "broker/actors/arena.py"
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
    ("arena.gone", LEAVING, 'found += [("arena", each.id) for each in sessions]', "pass"),
    (
        "arena.gone",
        ACTOR,
        "if await read_agent(self.store, row.agent_id, now) is not None:",
        "if True:",
    ),
)
