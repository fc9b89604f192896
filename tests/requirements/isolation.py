"""What is another's looks as what there is not (docs/reference/network.md)."""

REQUIREMENTS: dict[str, str] = {
    "isolation.every-tool": "every tool has a row: what nobody, a token without the scope, a stranger, a suspended "
    "agent, an expired token and an owner are told, the same over each door",
    "isolation.foreign-is-missing": "a stranger's answer for another's thing is that for a missing one: code, words, "
    "details, and as many reads of the store",
    "isolation.streams": "streams and resources are for whose they are: for a stranger they are closed, or as if "
    "they were not",
}
"""What strangers can't tell."""
