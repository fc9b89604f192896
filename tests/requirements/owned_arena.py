"""What the broker promises to owners whose agents play in the arena."""

REQUIREMENTS: dict[str, str] = {
    "pages.arena-sessions": "an owner sees an agent's account and its sessions, the latest first, all or the open "
    "ones, in pages",
    "pages.arena-session": "an owner sees a session as its agent does, with its events, times and rejected attempts, "
    "in pages",
    "pages.arena-chart": "points are drawn action by action, with a title, a description and a table; of thousands "
    "no extreme is lost",
    "pages.arena-readable": "observations, actions and facts of any game are read as words",
    "pages.arena-text": "what an agent sent is text on its owner's page, also in a rejected attempt",
    "pages.arena-hidden": "seed and salt are on the page once they are revealed, and nothing of them before",
    "pages.arena-live": "the page of an open session renews itself, costs little while nothing happens, and stops once "
    "it is over, old or signed out; without scripts it says the same",
    "pages.arena-mark": "a session's mark changes with each event and each rejected attempt, and with nothing else",
    "pages.arena-stop": "an owner stops a session by a form of its own page, once for a form, whatever the version by "
    "then",
    "pages.arena-foreign": "another owner's session is as one that never was",
}
