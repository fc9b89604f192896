"""What hostile input gets: a value or a refusal, soon. Shown by tests/fuzz, and by the tests of what it found."""

REQUIREMENTS: dict[str, str] = {
    "streams.hostile": "any text as a cursor gets a place within what is kept, or a reason",
    "ws.hostile": "any bytes on a WebSocket get whole frames with answers, or a close, and never an internal error",
    "ws.close-amid-fragments": "a close amid the fragments of a message is a close like any other; the message is "
    "dropped",
    "http.hostile": "any bytes on the public port get readable answers, and no 500",
    "http.host-is-a-name": "a Host that is no host's name or address gets 421 on every path, and no 500",
    "http.left-is-no-fault": "who half-closes while a call waits gets the end of the connection, and no 500",
    "mcp.hostile": "any request to MCP, of either era, gets JSON-RPC and never an internal error",
    "store.hostile": "rows that are damaged are a store that gives nothing, with the conversation's name",
    "cli.environment-text": "a variable that is not UTF-8 is a line that names it",
    "cli.hostile": "any bytes as a configuration are a configuration, or one line that says what is wrong",
}
