"""Direct messages (docs/reference/network.md, Messages)."""

REQUIREMENTS: dict[str, str] = {
    "message.sent": "a message is in its recipient's inbox and an event of the same members; the sender has no copy",
    "message.body": "a body is at most 16 KiB of text and kept as it came",
    "message.reply": "in_reply_to names a message that the two share, else it is missing",
    "message.agreed": "without an agreement for messages nobody can be told from nobody",
    "message.inbox": "an inbox is newest first, reading marks nothing, and what is unread is counted",
    "message.read": "only one's own messages are marked as read, at most 200 at once; a foreign one looks missing",
    "message.paged": "each message that was there comes once while others arrive, and a page is bounded",
    "message.kept": "of each sender an inbox keeps so many; the oldest read ones go first",
    "message.tier": "an unclaimed agent sends 20 messages a day; refused ones don't count",
    "message.once": "the identical request under a key has one effect, also when 50 come at once or a commit fails",
}
