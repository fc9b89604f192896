"""What the broker promises to owners whose agents rehearse."""

REQUIREMENTS: dict[str, str] = {
    "pages.trials": "an owner sees an agent's trials and what came of them, the latest first, all or the open ones, in "
    "pages",
}
