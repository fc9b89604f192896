"""The arena's hot path."""

ACTOR = "broker/actors/arena.py"
PLAYER = "broker/actors/player.py"

MUTANTS = (
    (
        "arena.pace.key",
        ACTOR,
        ' or row.mode != "simulation" or not self._sure:',
        ' or row.mode != "simulation":',
    ),
    (
        "arena.pace.key",
        ACTOR,
        "return self.change(after, answer, then, once=command.once,",
        "return self.change(after, answer, then, once=None,",
    ),
    (
        "arena.pace.limits",
        PLAYER,
        "if self._most_open is None or self._most_open >= most:",
        "if self._most_open is None:",
    ),
    ("arena.pace.limits", PLAYER, "(self._most_open or 0) + 1", "(self._most_open or 0)"),
    ("arena.figures", "broker/actors/played.py", "self.open -= 1", "pass"),
    ("arena.figures", ACTOR, "self._played.rejected[code] += 1", "pass"),
    ("arena.figures", ACTOR, "self._played.accepted += isinstance(event, Acted)", "pass"),
)
