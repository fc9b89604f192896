"""The HTTP doors: the port and its sockets, what stands before the routes, codecs, streams."""

HTTP = "gateways/http.py"
CONNECTION = "gateways/connection.py"
CYCLE = "gateways/cycle.py"
DEALING = "gateways/dealing.py"
HANDSHAKE = "gateways/handshake.py"
LISTEN = "gateways/listen.py"
WRAPPERS = "gateways/wrappers.py"
BODIES = "gateways/bodies.py"
CALLER = "gateways/caller.py"
RENDER = "gateways/render.py"
JSONRPC = "gateways/jsonrpc.py"
SESSION = "gateways/session.py"
FEEDS = "gateways/feeds.py"
UNDERWAY = "gateways/underway.py"
STREAM = "gateways/eventstream.py"
PLAIN = "gateways/plain.py"
SSE = "gateways/sse.py"

MUTANTS = (
    (
        "http.one-connection-one-fault",
        CONNECTION,
        'except* Exception as faults:\n                log.warning("an application',
        'except* ZeroDivisionError as faults:\n                log.warning("an application',
    ),
    (
        "http.slow-loris",
        CONNECTION,
        "        self._scope.deadline = trio.current_time() + self._bounds.header_s\n        try:",
        '        self._scope.deadline = float("inf")\n        try:',
    ),
    (
        "http.slow-loris",
        CONNECTION,
        "                    self._end_within(self._bounds.header_s)\n",
        "                    pass\n",
    ),
    ("http.no-http2", CONNECTION, "if event.http_version not in VERSIONS or", "if"),
    ("http.disconnect-is-told", CYCLE, "if len(http.trailing_data[0]) > AHEAD:", "if True:"),
    ("http.in-order", CONNECTION, "            if not await cycle.finish():\n", "            if True:\n"),
    (
        "http.one-reading",
        CYCLE,
        "return http.our_state is h11.DONE and http.their_state is h11.DONE and",
        "return",
    ),
    ("http.one-reading", CYCLE, '"path": unquote(path.decode()),', '"path": path.decode(),'),
    ("http.disconnect-is-told", CYCLE, "                self._waiting.cancel()\n", "                pass\n"),
    (
        "http.slow-body",
        CYCLE,
        "with trio.move_on_at(self._until):",
        "with trio.CancelScope():",
    ),
    ("http.bounded-shutdown", HTTP, "            each.cut()\n", "            pass\n"),
    ("http.tls", HTTP, 'context.set_alpn_protocols(["http/1.1"])', 'context.set_alpn_protocols(["h2"])'),
    (
        "ws.close-half",
        DEALING,
        "            await self._eof.wait()  # a far end that has answered our close waits for this alone\n",
        "            if not self._eof.is_set():\n                self._written.set()\n                return\n",
    ),
    ("ws.handshake", HANDSHAKE, "if end + 4 == len(head) else 400", ""),
    ("ws.too-large-1009", HANDSHAKE, "max_size=broker.settings.limits.frame_bytes", "max_size=None"),
    ("ws.close-codes", RENDER, "Close(4008,", "Close(4009,"),
    ("http.send-deadline", LISTEN, "with trio.fail_after(self.send_s):", "with trio.fail_after(1e9):"),
    ("http.connection-bounds", LISTEN, "if self.taken >= self._bounds.connections:", "if False:"),
    (
        "http.connection-bounds",
        LISTEN,
        "self._by_place[place] >= self._bounds.per_address",
        "self._by_place[place] > self._bounds.per_address",
    ),
    ("http.body-limit", BODIES, "        if size > limit:\n", "        if size > limit + 1:\n"),
    ("http.body-limit", WRAPPERS, "        if size is not None and size > limit:", "        if False:"),
    ("http.slow-body", WRAPPERS, "with trio.move_on_after(bounds.body_s):", "with trio.move_on_after(1e9):"),
    ("http.host-and-origin", WRAPPERS, "    return public is None\n", "    return True\n"),
    ("http.host-and-origin", WRAPPERS, "        return host[0] in LOOPBACK_NAMES\n", "        return True\n"),
    (
        "http.host-and-origin",
        WRAPPERS,
        "return (site[1], site[2]) == (host[0], host[1] or PORTS[site[0]])",
        "return site[1] == host[0]",
    ),
    (
        "http.host-and-origin",
        WRAPPERS,
        "if site is None or not (site in allowed or ours):",
        "if site is None:",
    ),
    ("http.cors", WRAPPERS, "        elif _is_preflight(scope):\n", "        elif False:\n"),
    ("http.auth-query", CALLER, "elif query and (found", "elif (found"),
    ("http.authorization-turret", CALLER, 'if scheme.lower() != "turret":', "if False:"),
    ("http.retry-after", RENDER, "max(1, math.ceil(wait_ms / 1000))", "max(1, wait_ms // 1000)"),
    (
        "refusals.one-body-everywhere",
        RENDER,
        "return jsonrpc.error(id, jsonrpc.REFUSED, refusal.message, refusal.body())",
        'return jsonrpc.error(id, jsonrpc.REFUSED, refusal.message, {"refusal": refusal.body()})',
    ),
    (
        "refusals.fault-shows-nothing",
        RENDER,
        '{"error": "internal", "incident": number}',
        '{"error": "internal", "incident": number, "trace": ""}',
    ),
    (
        "refusals.frame-ids",
        JSONRPC,
        "(type(value) is int and -MAX_SAFE",
        "(isinstance(value, int) and -MAX_SAFE",
    ),
    ("refusals.frame-codes", JSONRPC, "members.keys() - _KNOWN and (fault", "False and (fault"),
    (
        "ws.sends-in-order",
        UNDERWAY,
        "                waiting.append(job)\n                return\n",
        "                pass\n",
    ),
    ("ws.back-pressure", UNDERWAY, "while self.count >= IN_FLIGHT:", "while False:"),
    (
        "ws.back-pressure",
        SESSION,
        "        if outbox.full:  # what others have put meanwhile\n            await outbox.wait_room()\n",
        "",
    ),
    ("ws.params-at-every-depth", SESSION, 'if name != "statement" and (fault', "if False and (fault"),
    ("ws.params-at-every-depth", SESSION, 'if name != "statement" and (fault', "if (fault"),
    (
        "ws.unavailable",
        FEEDS,
        "        except Unavailable:\n            self._tell_end(running, render.NO_STORE)\n",
        "",
    ),
    ("refusals.frame-codes", JSONRPC, '    if "path" not in refusal.detail:\n', "    if False:\n"),
    ("refusals.frame-codes", JSONRPC, '    if not params.startswith(b"{"):\n', "    if False:\n"),
    ("streams.sse-no-injection", STREAM, "data = _ODD_BREAKS.sub(", "_ODD_BREAKS.sub("),
    ("http.json-only", BODIES, 'return media == "application/json" and', "return"),
    ("http.json-only", PLAIN, "if len(types) != 1 or not is_json(types[0]):", "if False:"),
    ("limits.client-address", CALLER, "    if address is None:\n", "    if False:\n"),
    ("http.plain-refusal", PLAIN, "return no(result)", "return answer(200, [], b'{}')"),
    ("streams.sse-events", SSE, "event=event.kind, id=event.cursor", "event=each.kind"),
    ("streams.sse-comment", SSE, "with trio.move_on_after(comment_s):", "with trio.move_on_after(1e9):"),
    (
        "streams.sse-cursor",
        SSE,
        'in values_of(scope, b"last-event-id") if value]',
        'in values_of(scope, b"last-event-id") if not value]',
    ),
    ("streams.sse-restart", SSE, "least + secrets.randbelow(most - least)", "least"),
    ("streams.sse-end", SSE, "return closed(ended.refusal.code, refusal", 'return closed("slow", refusal'),
    (
        "cli.setting-bounds",
        "gateways/configure.py",
        "if limits.rings_known >= limits.rings:",
        "if False:",
    ),
    (
        "cli.setting-bounds",
        "broker/config.py",
        "mailbox: Annotated[int, Meta(ge=1,",
        "mailbox: Annotated[int, Meta(ge=-9,",
    ),
    ("cli.setting-bounds", "gateways/configure.py", "parts.scheme not in schemes or", ""),
    (
        "store.damaged",
        "gateways/serve.py",
        "    except sqlite3.Error as error:",
        "    except ZeroDivisionError as error:",
    ),
    (
        "store.damaged",
        "gateways/serve.py",
        "        except* Unavailable as errors:",
        "        except* ZeroDivisionError as errors:",
    ),
    ("http.probes", "gateways/wellknown.py", "503 if reasons else 200", "200"),
    (
        "http.metrics",
        "gateways/measured.py",
        "            if name in self._names:\n",
        "            if True:\n",
    ),
)
