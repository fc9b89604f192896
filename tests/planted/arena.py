"""The arena: sessions, accounts, limits."""

CORE = "broker/core/arena.py"
ACTOR = "broker/actors/arena.py"
PLAYER = "broker/actors/player.py"
ARTIFACTS = "broker/actors/artifacts.py"
VIEWS = "broker/core/arenaviews.py"
TOOLS = "broker/tools/arena.py"
PLAY = "broker/tools/play.py"

MUTANTS = (
    ("arena.conflict", CORE, "if expected != live.version:", "if expected > live.version:"),
    (
        "arena.session-over",
        CORE,
        "    if live.ended is not None:\n        return refuse(",
        "    if False:\n        return refuse(",
    ),
    (
        "arena.most-actions",
        CORE,
        '"actions" if live.version + 1 >= MAX_ACTIONS',
        '"actions" if live.version >= MAX_ACTIONS',
    ),
    ("arena.balanced", CORE, "change = max(step.change, -points)", "change = step.change"),
    ("arena.balanced", CORE, 'or sums["player"] < 0', ""),
    ("arena.reveal-never", CORE, 'if live.config.reveal == "on_end" else', "if True else"),
    ("arena.artifact-hash", ARTIFACTS, "if ref_of(document.doc) != ref:", "if False:"),
    ("arena.limits", PLAYER, "if player.opened >= a_day:", "if player.opened > a_day:"),
    ("arena.limits", PLAYER, "if player.day != today:", "if False:"),
    ("arena.limits", PLAYER, "        if self._most_open >= most:", "        if self._most_open > most:"),
    (
        "arena.owners",
        PLAY,
        "caller.owner is not None and caller.owner == agent.owner_id",
        "caller.owner == agent.owner_id",
    ),
)
