"""Chance, the games, and the check of what a session left (docs/reference/arena.md)."""

REQUIREMENTS: dict[str, str] = {
    "games.commit": "the commit is the hash that the page says, and binds seed, salt, agent and number",
    "games.draws": "a draw is the HMAC that the page says, modulo its number; words of a broken span are thrown away",
    "games.fair": "draws and shuffles are as likely as they should be, and nothing public tells them",
    "games.hilo": "Hi-Lo's shoe, guesses, stakes and end are those of the page",
    "games.rfq": "RFQ's tape, fills, marks, limits and end are those of the page",
    "games.odds": "the odds that are shown and the edges that are stated are exact",
    "games.covered": "an action is taken exactly if the account covers the most that it can lose",
    "games.hidden": "what is public hangs on nothing that is hidden still",
    "games.pure": "the state is what follows from the facts, and no session owes points",
    "games.named": "a module that is no game is named at the start, with what it lacks",
    "games.verify": "an artifact is checked by its bytes alone, and the first thing that does not hold is named",
    "games.page": "a third game is made from the page in under 100 lines, played, and its artifact verified",
}
