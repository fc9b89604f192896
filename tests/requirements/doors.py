"""Tokens at the doors (docs/reference/network.md, Sign-in; docs/decisions/0025-tokens-at-the-doors.md)."""

REQUIREMENTS: dict[str, str] = {
    "doors.agent-stream": "by an agent's token one reads the agent's stream and its keys' desks, and nobody else's",
    "doors.listen-scope": "listening by a token needs the scope message",
    "doors.expiry": "what is open by a token ends when it runs out, and says unauthenticated",
    "doors.audience": "beside /mcp a token for /mcp or for the origin passes; one for a single face does not",
    "doors.standing": "a token whose subject may not speak now is refused at each door",
    "doors.challenge": "a refusal for want of a token names the way to one (RFC 6750, RFC 9728), Bearer first; 403 "
    "names the scope",
    "doors.hostile-tokens": "what can't be a token is bad and asks nobody; none is taken from a query, or beside a "
    "second Authorization header",
    "doors.plain": "over /v1 a tool of the network takes a token, and 401 or 403 tell the way to one",
    "doors.body-limit": "who shows a good token may send 2 MiB where it is none of the wire's; all others 64 KiB",
    "doors.idempotency-header": "Idempotency-Key is another spelling of idempotency_key; both and different: "
    "bad_request",
    "doors.sse": "/rings takes the token of the agent whose key the desk has, and ends with it",
    "doors.ws-token": "authenticate takes a token; follow without a code is then the agent's stream",
    "doors.ws-both": "a key's proof and a token stand side by side on one connection; a statement says whose stream is "
    "meant",
    "doors.ws-close": "a connection whose right has ended is closed with 4001, a code that nothing else has (peers "
    "B56, B57)",
    "doors.renewal": "a token is renewed in place by another of the same subject, and its streams go on",
    "doors.mcp-denied": "over MCP a call that a token would open is HTTP 401, one that lacks a scope 403, before a "
    "byte is streamed, also on the open faces",
    "doors.inbox": "turret://inbox is read and listened to by its agent's token alone",
    "doors.openapi": "the OpenAPI document and the reference say for each tool which token it needs",
    "doors.transcripts": "where transcripts are the parties', an agent's token reads those of its keys",
    "cli.tokens": "a tool of the network is called by a token from a file, or by one that an agent's key gets; never "
    "one from the command line",
    "doors.large": "a request larger than a frame of the wire is read beside the loop, one at a time, and only so many "
    "are held at once",
    "doors.large-shares": "however slowly a subject sends what is large, it has no more than its share of what is held",
    "doors.right-lost": "what waits or is open ends within a second when its caller loses the right to speak",
}
"""What tokens are worth at each door."""
