"""What hostile input gets: a value or a refusal, soon. Shown by tests/fuzz, and by the tests of what it found."""

REQUIREMENTS: dict[str, str] = {
    "ws.close-amid-fragments": "a close amid the fragments of a message is a close like any other; the message is "
    "dropped",
}
