"""What the MCP face promises."""

REQUIREMENTS: dict[str, str] = {
    "mcp.both-eras": "one endpoint serves 2026-07-28 and, by handshake, 2025-11-25, 2025-06-18 and 2025-03-26; "
    "each request says itself of which era it is",
    "mcp.faces": "/mcp lists all tools but the operators', /mcp/<face> its own, the network also wait_for_events; what "
    "a model is told of them names no other; each path also with a slash at its end; a face that is not there is 404",
    "mcp.bare": "a request that names neither session nor revision (the discovery example) is answered",
    "mcp.accept": "Accept is read tolerantly; 406 only when neither JSON nor an event stream fits, and the answer "
    "is of a type that was named",
    "mcp.header-ladder": "2026-07-28: routing headers repeat the body, stand once, and `_meta` has its required "
    "members; each rung in its order with its code",
    "mcp.unsupported-revision": "an unknown revision is -32022 with all that are supported",
    "mcp.status-by-code": "2026-07-28: the HTTP status follows the error's code; before it an answered request "
    "is 200",
    "mcp.result-type": "2026-07-28: each result has resultType, the server's info and, where it may be cached, its "
    "hints; earlier results have none of these",
    "mcp.discover": "server/discover names every revision and only the capabilities that are served",
    "mcp.handshake": "initialize negotiates in the body, is never refused for its header, and gives a session",
    "mcp.session-needed": "a session that is not there is 404, a missing session header 400",
    "mcp.session-bound": "a session belongs to the principal that opened it, not to the bytes of one proof; to "
    "others it does not exist",
    "mcp.session-ends": "a session ends by DELETE or when idle; one in use does not expire",
    "mcp.session-caps": "sessions are bounded in all and of one principal: the one idle longest makes room; with "
    "none idle the answer is overloaded",
    "mcp.newest-stream": "GET opens the session's stream; the newest one wins and is never refused for an old one",
    "mcp.keep-alive": "silence on a stream is filled with comments every 15 s, never with events",
    "mcp.notification": "a notification is 202 with no body",
    "mcp.same-id": "requests in flight with the same id each get their own answer; nothing is routed by a "
    "client's id",
    "mcp.ids": "an id that is null, a fraction, a boolean or beyond 2^53-1 is -32600",
    "mcp.batch": "a batch is 400 and -32600 before anything else, in every revision",
    "mcp.not-json": "what is not JSON is 400 and -32700, never a fault",
    "mcp.body-limit": "a body beyond 64 KiB, counted as it comes, is 413",
    "mcp.caller": "a proof in the Authorization header makes the caller; a bad one is 401 with a challenge, before "
    "the session is looked at",
    "mcp.annotations": "a tool's annotations are those of the registry",
    "mcp.schemas": "every schema is flat, of type object, without references, every parameter described",
    "mcp.output-schema": "an output schema requires nothing and is open to a refusal",
    "mcp.paging": "lists are cut into pages by opaque cursors; a made-up cursor is -32602",
    "mcp.call": "arguments reach the broker as they were written",
    "mcp.result-form": "a result is the object itself, a sentence, and the object as compact JSON",
    "mcp.refusal": "a refusal is a result with isError, text complete on its own, and structuredContent.refusal",
    "mcp.unknown-tool": "an unknown tool and malformed members of a method are -32602",
    "mcp.wrong-arguments": "wrong arguments of a known tool are its result, not a protocol error",
    "mcp.fault": "an unexpected fault is -32603 with an incident's number and nothing of the inside",
    "mcp.untrusted": "what other parties wrote stays in structured members, marked untrusted, and out of our "
    "sentences",
    "mcp.rings": "desk_rings answers at once, waits for the first ring, or streams each ring as progress until "
    "wait_ms is over",
    "mcp.progress": "progress goes out on the request's own stream to a client that asked and takes streams; "
    "otherwise the answer is JSON",
    "mcp.disconnect": "2026-07-28: a disconnect cancels the call and nothing more is sent; before it, it cancels "
    "nothing",
    "mcp.cancel": "a cancelled call of the handshake era stops and its exchange ends",
    "mcp.resources": "turret://conv/<conv> and turret://desk/<code> are read through the broker's tools; their "
    "templates are listed",
    "mcp.listen": "2026-07-28: subscriptions/listen acknowledges what it can watch, tells of changes under its own "
    "id, and ends with a result",
    "mcp.subscribe": "handshake era: resources/subscribe has the session's stream tell of changes; a new stream "
    "tells at once of what was subscribed before",
    "mcp.watch": "a ring wakes the watcher of its desk's rings, an envelope that of its conversation; nothing else "
    "does",
    "mcp.watch-rights": "only who proved the key that owns the stream may watch",
    "mcp.resource-missing": "a missing resource is -32002 in the handshake era, -32602 with data.uri in 2026-07-28",
    "mcp.prompts": "three prompts teach the job and take nothing but strictly formed arguments",
    "mcp.completion": "completion suggests codes of desks that are online, and to a party its own conversations",
    "mcp.input-required": "2026-07-28: what only the client can tell is asked in the result and taken from the next "
    "request; what is malformed is refused, what is missing asked again, what was not asked ignored",
    "mcp.request-state": "state that goes through a client comes back unchanged, from the same principal, for the "
    "same request, within a quarter of an hour; else -32602",
    "mcp.capability-missing": "nothing is asked that the client did not declare; what can't go on without is -32021",
    "mcp.server-requests": "handshake era: questions are requests on the call's own stream, answered by a POST in the "
    "same session, each once, within a quarter of an hour",
    "mcp.asks-missing": "a tool that only reads asks for a code, an id or a number that it lacks, where the client can "
    "be asked; otherwise it is refused as ever",
    "mcp.without-waiting": "an envelope that is written plainly and is due goes without a task, with the same outcome; "
    "the tool itself judges every other",
    "mcp.one-after-the-other": "what a call says early goes out one message after the other, however many say it",
    "mcp.list-changed": "lists that may change are declared to, announced to who asked, and listed as they are now",
    "mcp.names": "dotted names are called with underscores too, and listed so with ?names=portable",
    "mcp.mirrored-arguments": "2026-07-28: an argument whose schema names a header, and that header, are both there "
    "and agree, or both absent; else -32020",
    "mcp.logging": "log messages go out on the request's own stream from the level that the request, or its session, "
    "names",
    "mcp.one-cursor": "a reader that leaves one face goes on at another with the same cursor, with no gap and no "
    "repeat; a cursor that leads nowhere is answered with its reason",
    "mcp.origin": "a foreign Host is 421 and a foreign Origin 403, whatever the verb and before anything else; a page "
    "that may ask is told what it may send and see, on the real answer too",
    "mcp.behind-proxy": "behind a configured proxy the public name is ours, and the client is whom the proxy names; "
    "nobody else is believed",
    "mcp.official-client": "the official Python client does a whole call in its legacy, auto and pinned modes",
}
