"""What the HTTP doors promise: JSON-RPC frames, rendering, callers, plain HTTP, SSE, and the port itself."""

REQUIREMENTS: dict[str, str] = {
    "refusals.frame-ids": "an id that is null, a fraction, a boolean, an object or beyond 2^53-1 is -32600",
    "refusals.frame-codes": "what is not JSON is -32700; JSON that is no single request or response is -32600",
    "canonical.frame-members": "a JSON-RPC frame's own member given twice (also by escapes) is -32600",
    "refusals.one-body-everywhere": "each code has one body at every door, in that door's wrapping",
    "refusals.fault-shows-nothing": "an unexpected fault shows an incident number and no internals",
    "ws.close-codes": "each way in which the broker ends a WebSocket has a close code of its own",
    "http.retry-after": "a refusal with retry_after_ms carries Retry-After in whole seconds",
    "http.authorization-turret": "Authorization: Turret <base64url of the statement>.<sig> is taken as signed",
    "http.auth-query": "EventSource may carry the same proof as ?auth=, which is never logged",
    "limits.client-address": "X-Forwarded-For counts from configured proxies only, read from the right",
    "streams.sse-no-injection": "nothing that a party writes leaves its field of an SSE event",
}
