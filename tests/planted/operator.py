"""The operators' port."""

TOKEN = "gateways/operator/token.py"
GATE = "gateways/operator/gate.py"
SERVER = "gateways/operator/server.py"
WRAPPERS = "gateways/wrappers.py"
SERVE = "gateways/serve.py"
DOORS = "gateways/doors.py"
CONFIGURE = "gateways/configure.py"
ADMIN = "gateways/commands/admin.py"
PARAMS = "gateways/commands/params.py"

MUTANTS = (
    ("operator.token", TOKEN, "LEAST_BITS: Final = 128", "LEAST_BITS: Final = 124"),
    ("operator.token", TOKEN, "or len(set(text)) < LEAST_LETTERS", ""),
    (
        "operator.token",
        TOKEN,
        "        self._digest = _digest(text)",
        "        self._digest, self._text = _digest(text), text",
    ),
    ("operator.token", SERVE, "        os.environ.pop(OPERATOR, None)", "        pass"),
    (
        "operator.gate",
        GATE,
        "if self._token.matches(token):",
        "if self._token.matches(token) or caller.loopback:",
    ),
    ("operator.gate", GATE, 'if scheme.lower() != "bearer":', 'if scheme.lower() == "basic":'),
    ("operator.gate", GATE, "        if len(given) > 1:", "        if False:"),
    (
        "operator.guesses",
        "broker/actors/attempts.py",
        'place_of(address) or "loopback"',
        "place_of(address) or address",
    ),
    (
        "operator.guesses",
        "broker/tools/tokens.py",
        '    context.services.sign_in.refused(context.caller.address, "operator_token")\n',
        "",
    ),
    ("operator.endpoint", SERVER, "        self._mcp.drain()", "        pass"),
    (
        "operator.apart",
        SERVER,
        "broker_tools(_OperatorTools(broker), OPERATOR)",
        "broker_tools(broker, None)",
    ),
    (
        "operator.apart",
        "broker/app.py",
        'self.tools: Mapping[str, Tool] = collect("public")',
        'self.tools: Mapping[str, Tool] = {**collect("operator"), **collect("public")}',
    ),
    (
        "operator.apart",
        "broker/app.py",
        "if caller.operator else self.tools",
        "if caller.scopes else self.tools",
    ),
    ("operator.origin", SERVER, "Origins(public_url=url, exact=True)", "Origins(public_url=url)"),
    (
        "operator.origin",
        WRAPPERS,
        "scheme, host[0], host[1] or PORTS[scheme]",
        "scheme, host[0], PORTS[scheme]",
    ),
    ("operator.pages", SERVER, "        register(quart, broker, gate)", "        pass"),
    ("operator.port", DOORS, "tls = None if here else self._tls", "tls = self._tls"),
    ("operator.port", DOORS, "        if not here:\n", "        if False:\n"),
    ("operator.port", CONFIGURE, "and not (serve.tls_cert or serve.behind_proxy):", "and False:"),
    ("operator.admin", ADMIN, 'raise Failure("unauthenticated", _NO_TOKEN)', "pass"),
    ("operator.admin", ADMIN, "    check_way(url)\n", ""),
    ("cli.tools", PARAMS, "'param-' if name in _TAKEN else ''", "''"),
)
