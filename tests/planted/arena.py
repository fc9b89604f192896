"""The arena: sessions, accounts, limits."""

CORE = "broker/core/arena.py"
ACTOR = "broker/actors/arena.py"
SESSION = "broker/actors/session.py"
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
    ("arena.balanced", CORE, "or after.balance < 0", ""),
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
    ("arena.stop", CORE, 'if action == {"type": STOP}:', "if False:"),
    ("arena.illegal", CORE, "why[:MAX_WHY]", "why"),
    (
        "arena.hidden",
        CORE,
        "client_seed=client_seed,\n        facts",
        "client_seed=secret.seed,\n        facts",
    ),
    ("arena.qualified", VIEWS, 'if row.mode == "persistent":', "if True:"),
    ("arena.persistent", PLAY, "brief(row, balance)", "brief(row, row.balance)"),
    ("arena.persistent", PLAYER, "account[0].balance, 0", "account[0].balance, account[0].balance"),
    ("arena.points-short", PLAYER, "if balance == 0:", "if False:"),
    ("arena.limits", PLAYER, "UNCLAIMED_OPEN: Final = 3", "UNCLAIMED_OPEN: Final = 4"),
    ("arena.commit-guard", PLAYER, "if command.config.commit not in (None, commit):", "if False:"),
    ("arena.keys-change", PLAYER, 'f"{head.epoch}{agent_id}"', "agent_id"),
    ("arena.replay", ACTOR, "if self._live.version != row.version:", "if False:"),
    ("arena.rejected", SESSION, "if self._rejected >= REJECTED_KEPT:", "if False:"),
    ("arena.passing", SESSION, "final = None if refusal.retryable else once", "final = once"),
    ("arena.final", SESSION, "final = None if refusal.retryable else once", "final = None"),
    ("arena.idle", SESSION, "else min(row.due, now + self._idle_ms)", "else row.due"),
    ("arena.idle", SESSION, "changed = min(timed.changed_at, now)", "changed = timed.changed_at"),
    ("arena.idle", SESSION, "replace(row, due=due, changed_at=changed)", "replace(row, due=due)"),
    ("arena.idle", SESSION, "if due > now:", "if False:"),
    (
        "arena.lost",
        ACTOR,
        "        except Exception as error:  # a game is",
        "        except MemoryError as error:  # a game is",
    ),
    ("arena.suspended", PLAY, "return agent_id if agent.suspended is None else SUSPENDED", "return agent_id"),
    ("arena.lost", ACTOR, "if self._hidden is None and self._secret", "if self._secret"),
    ("arena.lost", ACTOR, "if self._lost is not None and not isinstance(command, Due):", "if False:"),
    ("arena.numbers", TOOLS, "msgspec.json.decode(text)", "action"),
    ("arena.numbers", TOOLS, "msgspec.json.decode(encode(config))", "config"),
    ("arena.lost", CORE, "shown = secret.seed and", "shown ="),
    ("arena.event", ACTOR, "told = (self._told(after),)", "told = ()"),
    ("arena.foreign", PLAY, "row is not None and row.agent_id == caller.agent else", "row is not None else"),
    (
        "arena.foreign",
        PLAY,
        "if row is None or agent is None or not may_play(caller, agent):",
        "if row is None:",
    ),
    ("arena.agent-id", PLAY, "if not mine:", "if False:"),
    (
        "arena.suspended",
        PLAY,
        "return SUSPENDED if acting and agent.suspended is not None else row",
        "return row",
    ),
    (
        "arena.busy",
        TOOLS,
        'services.playing.turn(agent_id) if mode == "persistent" else nullcontext()',
        "nullcontext()",
    ),
    ("arena.action-size", TOOLS, "if len(text) > MAX_ACTION:", "if False:"),
    ("arena.alike", "gateways/mcp/listing.py", '        "get_game",\n', ""),
    ("arena.profile", PLAY, '"open", agent_id, limit=MOST', '"agent", agent_id, limit=MOST'),
    ("arena.rules", TOOLS, '[*schema.get("anyOf", [schema]), _STOP]', 'schema.get("anyOf", [schema])'),
    ("arena.profile", PLAY, "row.suspended is None and not is_over", "not is_over"),
)
