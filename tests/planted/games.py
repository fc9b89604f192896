"""Chance, the games, and the check of an artifact."""

CHANCE = "broker/core/chance.py"
HILO = "broker/core/games/hilo.py"
RFQ = "broker/core/games/rfq.py"
GAME = "broker/core/games/game.py"
TABLE = "broker/core/games/table.py"
VERIFY = "broker/core/arenaverify.py"
PARTS = "broker/tools/parts.py"

MUTANTS = (
    ("games.commit", CHANCE, "bytes.fromhex(secret.salt), agent_id.encode())", "agent_id.encode())"),
    ("games.commit", CHANCE, "+ number.to_bytes(8)).hexdigest()", ").hexdigest()"),
    ("games.draws", CHANCE, "end = _WORD - _WORD % n", "end = _WORD"),
    ("games.draws", CHANCE, "while (word := self.word()) >= end:", "while (word := self.word()) > end:"),
    ("games.draws", CHANCE, "counter = self.count.to_bytes(8)", 'counter = self.count.to_bytes(8, "little")'),
    ("games.draws", CHANCE, "self._message = domain + client_seed.encode()", "self._message = domain"),
    ("games.draws", CHANCE, 'f"{game}/{version}".encode()', "game.encode()"),
    ("games.fair", CHANCE, "other = self.below(last + 1)", "other = self.below(last)"),
    ("games.fair", CHANCE, "other = self.below(last + 1)", "other = self.below(len(items))"),
    ("games.odds", HILO, "KEPT: Final = 1 - EDGE", "KEPT: Final = 1 + 0 * EDGE"),
    (
        "games.odds",
        HILO,
        "returned = int(action.stake * returns(state, action.guess))",
        "returned = round(action.stake * returns(state, action.guess))",
    ),
    ("games.odds", HILO, '"higher": state.left[at + 1 :]', '"higher": state.left[at:]'),
    ("games.hilo", HILO, "if action.stake > points:", "if action.stake > points + 1:"),
    ("games.hilo", HILO, "if not count(state, action.guess):", "if False:"),
    ("games.hilo", HILO, "if points + change < MIN_STAKE else None", "if points + change < 0 else None"),
    ("games.hilo", HILO, "for suit in SUITS for rank in RANKS]", "for rank in RANKS for suit in SUITS]"),
    (
        "games.hidden",
        HILO,
        "return Facts(hidden[0])",
        "return Facts(hidden[0], len(hidden[1:]) and ord(hidden[-1][0]))",
    ),
    (
        "games.covered",
        RFQ,
        "if (needed := worst(state, quote)) > points:",
        "if (needed := worst(state, quote)) > points + 1:",
    ),
    ("games.covered", RFQ, "losses = [exposure(state, 0)]", "losses = [0]"),
    ("games.covered", RFQ, "if points < exposure(state, 0):", "if points < 0:"),
    ("games.covered", RFQ, "+ exposure(state, -state.size))", "+ exposure(state, 0))"),
    ("games.rfq", RFQ, "edge + inventory * request.move", "edge + state.inventory * request.move"),
    ("games.rfq", RFQ, "quote.bid >= quote.ask", "quote.bid > quote.ask"),
    ("games.rfq", RFQ, "if not fits(state, bought):", "if False:"),
    (
        "games.rfq",
        RFQ,
        "quote.ask <= reference + request.distance",
        "quote.ask < reference + request.distance",
    ),
    ("games.rfq", RFQ, "if draws.below(INFORMED) == 0 and move != 0:", "if draws.below(INFORMED) == 0:"),
    ("games.rfq", RFQ, 'side = "buys" if move > 0 else "sells"', 'side = "sells" if move > 0 else "buys"'),
    ("games.rfq", RFQ, '"bust" if short else None', "None"),
    ("games.rfq", RFQ, "INFORMED: Final = 3", "INFORMED: Final = 4"),
    ("games.hidden", RFQ, "client = None if price is None else request.side", "client = request.side"),
    ("games.named", GAME, "if not tags or STOP in tags:", "if not tags:"),
    ("games.named", GAME, "if not callable(members.get(member)):", "if member not in members:"),
    ("games.named", PARTS, 'raise BadSetting(f"arena.games: {error}") from error', "raise"),
    (
        "games.named",
        TABLE,
        'if missing.name is not None and f"{name}.".startswith(f"{missing.name}."):',
        "if True:",
    ),
    ("games.rfq", RFQ, "inventory=state.inventory + bought,", "inventory=state.inventory,"),
    ("games.pure", HILO, "state.left[at] - 1, *", "state.left[at], *"),
    ("games.pure", RFQ, "reference=facts.reference,", "reference=state.reference,"),
    ("games.verify", VERIFY, "if text != content:", "if False:"),
    ("games.verify", VERIFY, "if whole != content:", "if False:"),
    ("games.verify", VERIFY, "if ref is not None and ref_of(content) != ref:", "if False:"),
    (
        "games.verify",
        VERIFY,
        "if commit_of(secret, opened.agent_id, opened.games) != opened.commit:",
        "if False:",
    ),
    ("games.verify", VERIFY, "if not _same(game.first(config, hidden), opened.facts):", "if False:"),
    ("games.verify", VERIFY, 'if live.opened.mode == "simulation" and before != live.balance:', "if False:"),
    ("games.verify", VERIFY, 'if event.entries != transfer("house", change):', "if False:"),
    ("games.verify", VERIFY, "if made.ended != event.ended:", "if False:"),
    ("games.verify", VERIFY, "if not _same(made.facts, event.facts):", "if False:"),
    ("games.verify", VERIFY, "if n >= MAX_ACTIONS and end is None:", "if False:"),
    ("games.verify", HILO, "if not state.left[at]:", "if False:"),
    ("games.verify", RFQ, "if state.step >= state.config.steps:", "if False:"),
    ("games.verify", VERIFY, "if config.commit not in (None, opened.commit):", "if False:"),
    ("games.verify", VERIFY, "if not had and opened.balance != config.points:", "if False:"),
    (
        "games.page",
        VERIFY,
        "game = self._games.find(opened.game, opened.game_version)",
        'game = self._games.find("hilo")',
    ),
)
