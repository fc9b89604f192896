"""Tokens at the doors, and what strangers can't tell."""

GATE = "gateways/gate.py"
PEER = "gateways/peer.py"
SESSION = "gateways/session.py"
PLAIN = "gateways/plain.py"
ERAS = "gateways/mcp/eras.py"
ENDPOINT = "gateways/mcp/endpoint.py"
TOOLS = "gateways/mcp/tools.py"
WATCHING = "gateways/mcp/watching.py"
RESOURCES = "gateways/mcp/resources.py"
SUBSCRIPTIONS = "gateways/mcp/subscriptions.py"
ACCESS = "broker/tools/access.py"
STREAMS = "broker/tools/streams.py"
STANDING = "broker/actors/standing.py"
CREDENTIALS = "gateways/commands/credentials.py"

APART = "broker/apart.py"
REGISTRY = "broker/tools/registry.py"

LISTING = "gateways/mcp/listing.py"

DEALING = "gateways/dealing.py"

BODIES = "gateways/bodies.py"
FRAMES = "gateways/frames.py"

MUTANTS = (
    ("mcp.untrusted", LISTING, ' "rejected",', ""),
    ("doors.large", BODIES, "if size > LARGE and held is not None and not held.take():", "if False:"),
    (
        "doors.large",
        BODIES,
        "            self._rooms.leave(self._held)\n            self._held = None\n",
        "            pass\n",
    ),
    ("doors.large-shares", DEALING, "                self._give_back()\n", ""),
    ("doors.large-shares", BODIES, " or self._taken[who] == self._share", ""),
    ("doors.large-shares", BODIES, "        self._taken[who] -= 1\n", ""),
    ("doors.large", FRAMES, "if end - body > small and fits and not self._room():", "if False:"),
    ("doors.large", FRAMES, "if len(self._message) > self._small and not self._room():", "if False:"),
    ("doors.large", DEALING, "                self._held.leave()\n", "                pass\n"),
    ("doors.large", SESSION, "                await self._large.wait()\n", "                pass\n"),
    (
        "doors.body-limit",
        "gateways/frames.py",
        "self._most = self._protocol.max_message_size = most\n",
        "self._most = most\n",
    ),
    ("doors.body-limit", SESSION, '        self._widen(found.principal or "")\n', ""),
    ("doors.large", SESSION, "            elif len(data) > LARGE:\n                return count\n", ""),
    ("mcp.untrusted", LISTING, '"agents", "agreements"', '"agreements"'),
    ("doors.large", APART, "trio.CapacityLimiter(1)", "trio.CapacityLimiter(5)"),
    (
        "doors.large",
        REGISTRY,
        "digest_of(text) if len(text) <= LARGE else await apart(digest_of, text)",
        "digest_of(text)",
    ),
    ("doors.audience", GATE, 'resources.audiences("") | bare', 'resources.audiences("network") | bare'),
    ("doors.audience", GATE, 'resources.audiences("") | bare', 'resources.audiences("")'),
    ("signin.bearer", "gateways/oauth/bearer.py", "return refused or found", "return found"),
    (
        "doors.hostile-tokens",
        GATE,
        "if _TOKEN.fullmatch(token) is None or len(token) > LONGEST:",
        "if False:",
    ),
    ("doors.challenge", GATE, 'error = "invalid_token"', "pass"),
    ("doors.challenge", GATE, '[(b"www-authenticate", way.encode("latin-1")), *headers]', "[*headers]"),
    ("doors.body-limit", PLAIN, "or tool.scope is None:", "or False:"),
    ("doors.body-limit", ENDPOINT, "good and http.scope", "http.scope"),
    ("doors.body-limit", ENDPOINT, 'and http.scope["path"].removesuffix("/") != f"{ROOT}/wire"', ""),
    ("doors.idempotency-header", PLAIN, 'if bytes(members["idempotency_key"]) == text:', "if True:"),
    ("doors.renewal", PEER, "before != caller.principal:", "False:"),
    ("doors.renewal", PEER, "        self._term.cancel()\n", ""),
    ("doors.renewal", PEER, "msgspec.structs.replace(caller, until=self.caller.until)", "caller"),
    (
        "doors.expiry",
        PEER,
        "            self._begin_term(caller.until)\n        else:",
        "            pass\n        else:",
    ),
    (
        "doors.right-lost",
        PEER,
        "self._broker.hold(self.caller, self._lose)",
        "self._broker.hold(self.caller, print)",
    ),
    ("doors.right-lost", SESSION, "self._outbox.end(close, at_once=True)", "self._outbox.end(close)"),
    (
        "doors.right-lost",
        ACCESS,
        "refused = await services.standing.judge(caller)  # it may",
        "refused = None  # it may",
    ),
    (
        "doors.ws-both",
        SESSION,
        "await self._broker.admit(bare, *proof)",
        "await self._broker.admit(caller, *proof)",
    ),
    ("doors.ws-close", PEER, "render.Close(_RUN_OUT.code,", "render.Close(1011,"),
    ("doors.mcp-denied", TOOLS, "return Denied(outcome) if wants_token(outcome) else", "return"),
    ("doors.mcp-denied", RESOURCES, "        if wants_token(text):\n            return Denied(text)\n", ""),
    ("doors.mcp-denied", SUBSCRIPTIONS, "    if wants_token(source):\n        return Denied(source)\n", ""),
    (
        "doors.inbox",
        WATCHING,
        "_own_stream(broker, ask, None, _is_message)",
        "_own_stream(broker, ask, None, bool)",
    ),
    (
        "doors.inbox",
        WATCHING,
        "    if ask.caller.principal is None:\n",
        "    if ask.caller.identity is None:\n",
    ),
    ("doors.expiry", ENDPOINT, "await self._broker.while_allowed(caller, tell)", "await tell()"),
    (
        "doors.right-lost",
        ERAS,
        "self._while_allowed(request.caller, answer) if listens else answer()",
        "answer()",
    ),
    (
        "doors.right-lost",
        ACCESS,
        "            why = refusal\n            scope.cancel()\n",
        "            why = refusal\n",
    ),
    (
        "doors.expiry",
        ACCESS,
        "with trio.move_on_after(max(0.0, left)) as scope:",
        "with trio.CancelScope() as scope:",
    ),
    (
        "doors.listen-scope",
        ACCESS,
        "return None if LISTEN in caller.scopes else lacking(LISTEN)",
        "return None",
    ),
    ("doors.agent-stream", STREAMS, "services.standing.holder(row.pk) == caller.agent", "True"),
    (
        "doors.agent-stream",
        STREAMS,
        "_Source(agent_stream(agent), agent, caller)",
        '_Source(agent_stream(agent), "", caller)',
    ),
    ("doors.transcripts", "broker/tools/transcripts.py", "return listens and agent in", "return agent in"),
    ("network.standing", STANDING, "places = (subject, *gone, *facts.pks)", "places = (subject,)"),
    ("cli.tokens", CREDENTIALS, "scopes = None if scope is None else (scope,)", "scopes = None"),
    ("cli.tokens", CREDENTIALS, "mode & 0o007", "False"),
    (
        "isolation.foreign-is-missing",
        "broker/core/channel.py",
        "row is None or (row.is_private and member is None)",
        "row is None",
    ),
    (
        "isolation.foreign-is-missing",
        "broker/tools/agreements.py",
        "if row is None or agent_id not in (row.one, row.other):\n        return NO_AGREEMENT",
        "if row is None:\n        return NO_AGREEMENT",
    ),
    (
        "isolation.streams",
        "broker/tools/stream_reader.py",
        'return refuse("not_a_party", "the code does not resolve to your key")',
        "return Pk(row.pk)",
    ),
)
