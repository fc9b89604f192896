"""The MCP face: eras and headers, sessions, questions to the client, state, lists, watching."""

ASKING = "gateways/mcp/asking.py"
SEALED = "gateways/mcp/sealed.py"
HEADERS = "gateways/mcp/headers.py"
ERAS = "gateways/mcp/eras.py"
ENDPOINT = "gateways/mcp/endpoint.py"
DISPATCH = "gateways/mcp/dispatch.py"
SESSIONS = "gateways/mcp/sessions.py"
LISTS = "gateways/mcp/lists.py"
CATALOGUE = "gateways/mcp/catalogue.py"
TOOLS = "gateways/mcp/tools.py"
SURFACE = "gateways/mcp/surface.py"
WATCHING = "gateways/mcp/watching.py"
SUBSCRIPTIONS = "gateways/mcp/subscriptions.py"
EXCHANGE = "gateways/mcp/exchange.py"
RESULTS = "gateways/mcp/results.py"
GUARD = "gateways/wrappers.py"

MUTANTS = (
    ("mcp.request-state", SEALED, "if not hmac.compare_digest(mac, self._mac(payload)):", "if False:"),
    ("mcp.request-state", SEALED, "good = found.owner == owner and", "good ="),
    ("mcp.request-state", SEALED, "found.request == request and", ""),
    ("mcp.request-state", SEALED, "and self._now() <= found.until", ""),
    (
        "mcp.request-state",
        ASKING,
        "        if state is None:\n            return Fault(",
        "        if False:\n            return Fault(",
    ),
    (
        "mcp.request-state",
        ASKING,
        'for name in ("name", "uri", "arguments"):',
        'for name in ("name", "uri"):',
    ),
    (
        "mcp.request-state",
        ASKING,
        "parts.append(text if isinstance(written, Refusal) else written)",
        "parts.append(text)",
    ),
    ("mcp.input-required", ASKING, "not all(map(_is_answer, answers.values()))", "False"),
    ("mcp.input-required", ASKING, '{"resultType": "input_required"}', '{"resultType": "complete"}'),
    ("mcp.input-required", DISPATCH, 'and outcome["resultType"] == "complete":', ":"),
    ("mcp.capability-missing", ASKING, "if not can_answer(ask.capabilities, question):", "if False:"),
    ("mcp.capability-missing", ASKING, "or mode in declared or (mode", "or True or (mode"),
    (
        "mcp.server-requests",
        SESSIONS,
        "if asking is None or asking.response is not None:",
        "if asking is None:",
    ),
    (
        "mcp.server-requests",
        ASKING,
        "with trio.move_on_after(STATE_S) as patience:",
        "with trio.CancelScope() as patience:",
    ),
    ("mcp.server-requests", ASKING, "if not _is_answer(value):", "if False:"),
    ("mcp.server-requests", ERAS, "        session.answered(message)\n", ""),
    (
        "mcp.server-requests",
        ASKING,
        "            watching.start_soon(_end_with, ask.left, patience)\n",
        "",
    ),
    ("mcp.asks-missing", TOOLS, "if tool.read_only and required", "if required"),
    ("mcp.asks-missing", TOOLS, "if asking.can_ask(ask) else None", ""),
    ("mcp.asks-missing", TOOLS, "if not asking.answered(ask, _KEY):", "if not asking.accepted(ask, _KEY):"),
    ("mcp.list-changed", LISTS, "            if each.kind == kind:\n", "            if True:\n"),
    ("mcp.list-changed", LISTS, "        self.version += 1\n", ""),
    ("mcp.list-changed", SUBSCRIPTIONS, "if wanted.get(FLAG[kind]):", "if True:"),
    ("mcp.list-changed", DISPATCH, 'declared.setdefault(kind, {})["listChanged"] = True', "pass"),
    ("mcp.names", CATALOGUE, "**{portable(name): offer for name, offer in surface.tools.items()}, ", ""),
    ("mcp.names", ENDPOINT, "self._portable if query and _portable(query) else self._faces", "self._faces"),
    ("mcp.mirrored-arguments", HEADERS, "        return header is None\n", "        return True\n"),
    ("mcp.mirrored-arguments", HEADERS, "if headers.doubled(mirror.header) or not", "if not"),
    (
        "mcp.mirrored-arguments",
        HEADERS,
        "    return text if base64.b64encode(data).decode() == found[1] else None",
        "    return text",
    ),
    ("mcp.logging", SURFACE, "LOG_LEVELS.index(level) >= LOG_LEVELS.index(self.log_level)", "True"),
    ("mcp.logging", DISPATCH, "    ask.session.log_level = level\n", ""),
    (
        "mcp.watch-rights",
        WATCHING,
        "    return await broker.watch_conv(ask.caller, conv)\n",
        "    return await _own_stream(broker, ask, None, _about(conv))\n",
    ),
    (
        "mcp.watch",
        WATCHING,
        "return msgspec.json.decode(delivery.params, type=_Conv).conv == conv",
        "return True",
    ),
    ("mcp.watch", WATCHING, '    return delivery.kind == "ring"', "    return True"),
    (
        "mcp.session-bound",
        SESSIONS,
        "if session is None or session.principal != principal:",
        "if session is None:",
    ),
    ("mcp.session-ends", SESSIONS, "            if session.busy:\n", "            if False:\n"),
    ("mcp.session-caps", SESSIONS, "if len(own) >= self._most_of_one and", "if False and"),
    ("mcp.same-id", SESSIONS, "if len(scopes) == 1:", "if scopes:"),
    (
        "mcp.newest-stream",
        SESSIONS,
        "        if self.stream is not None:\n            self.stream.end()\n        self.stream = Stream()",
        "        self.stream = Stream()",
    ),
    ("mcp.handshake", ERAS, 'if request.message.method == "initialize" and version != MODERN:', "if False:"),
    ("mcp.header-ladder", HEADERS, "if headers.get(METHOD) != method:", "if False:"),
    ("mcp.header-ladder", ERAS, "        fault = headers.doubled_header(head)\n", "        fault = None\n"),
    ("mcp.status-by-code", "gateways/mcp/revisions.py", "    CAPABILITY_MISSING: 400,\n", ""),
    ("mcp.accept", EXCHANGE, "self._accept.json or not final.body", "True"),
    ("mcp.without-waiting", TOOLS, "if size(given) != len(arguments) or", "if"),
    ("mcp.without-waiting", TOOLS, "return None if isinstance(outcomes[0], Again) else", "return"),
    ("mcp.without-waiting", TOOLS, "if not broker.begin(caller, tool, given, then):", "if True:"),
    ("mcp.keep-alive", EXCHANGE, "trio.move_on_at(said_at + keep_alive_s)", "trio.move_on_at(float('inf'))"),
    ("mcp.one-after-the-other", EXCHANGE, "        async with lock:\n", "        if True:\n"),
    (
        "mcp.disconnect",
        EXCHANGE,
        "        if ends_with_client:\n            nursery",
        "        if False:\n            nursery",
    ),
    (
        "mcp.disconnect",
        EXCHANGE,
        "                await wait_left(http.receive)\n",
        "                await trio.sleep_forever()\n",
    ),
    ("mcp.keep-alive", EXCHANGE, "if self._started or self._accept.stream_named:", "if self._started:"),
    ("mcp.body-limit", "gateways/bodies.py", "        size += len(piece)\n", "        size = len(piece)\n"),
    ("mcp.disconnect", ERAS, "ends_with_client=revision == MODERN", "ends_with_client=False"),
    ("mcp.disconnect", ERAS, "ends_with_client=revision == MODERN", "ends_with_client=True"),
    (
        "mcp.untrusted",
        RESULTS,
        "return untrusted(text) if OTHERS_WROTE & members.keys() else text",
        "return text",
    ),
    (
        "mcp.untrusted",
        RESULTS,
        "if isinstance(value, str) and _PLAIN.fullmatch(value) else",
        "if isinstance(value, str) else",
    ),
    (
        "mcp.unknown-tool",
        DISPATCH,
        'return Fault(jsonrpc.INVALID_PARAMS, f"unknown tool: {name[:64]}")',
        'return {"content": [], "isError": True}',
    ),
    ("mcp.fault", DISPATCH, '{"incident": number}', '{"incident": str(fault)}'),
    (
        "mcp.caller",
        ENDPOINT,
        "        if isinstance(caller, Refusal):\n            return self._refused(http, message.id, caller)\n",
        "        if isinstance(caller, Refusal):\n            caller = callers.connect(http.scope)\n",
    ),
    ("mcp.origin", GUARD, "and not _downgraded(site, host, public)", ""),
    (
        "mcp.behind-proxy",
        ENDPOINT,
        "callers.identify(self._broker, http.scope, self._proxies)",
        "callers.identify(self._broker, http.scope, ())",
    ),
)
