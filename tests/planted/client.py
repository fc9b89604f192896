"""The dealer's client: what it believes, what it repeats, what it waits for."""

CALL = "gateways/client/call.py"
DEALER = "gateways/client/dealer.py"
LINK = "gateways/client/link.py"
SIGNER = "gateways/client/signer.py"
SOCKET = "gateways/client/socket.py"
TRANSCRIPT = "gateways/client/transcript.py"
PINS = "gateways/client/pins.py"
CLOCK = "gateways/client/clockwork.py"
SHOW = "gateways/client/show.py"
EXPORT = "gateways/client/export.py"
KEYFILE = "gateways/keyfile.py"

MUTANTS = (
    ("client.backoff", CLOCK, "self._first_s * 2**self._attempt", "self._first_s"),
    ("client.body-wire", DEALER, '"code_to": code, "wire": self.wire}', '"code_to": code}'),
    ("client.clock", LINK, "self.signer.clock.correct(self._hello.time)", "pass"),
    ("client.clock-skew", CALL, "self._link.signer.clock.correct(wire_ts * 1000 + 500)", "pass"),
    ("client.conflict", CALL, "if no.code in _MOVED and await self.resync():", "if False:"),
    (
        "client.export",
        EXPORT,
        '        params["after"] = page.next\n',
        '        params["after"] = page.next + 1\n',
    ),
    (
        "client.final-refusal",
        CALL,
        "        self._pending = None\n        if self.transcript.holds",
        "        if self.transcript.holds",
    ),
    ("client.gap", LINK, "if asked is not None and not resume.recovered", "if False"),
    ("client.in-doubt", LINK, 'frozenset({"unavailable", "in_doubt"})', 'frozenset({"unavailable"})'),
    (
        "client.one-envelope-an-n",
        CALL,
        "        if self._pending is None:\n            return None\n",
        "        return None\n",
    ),
    ("client.own-event", CALL, "            pending.scope.cancel()", "            pass"),
    ("client.pin", PINS, "    pins.add(url, wire)\n    if", "    if"),
    ("client.pin-changed", LINK, "if self._hello.wire != self.signer.wire:", "if False:"),
    (
        "client.rate-limited",
        LINK,
        "wait = no.retry_after_s if no.retry_after_s is not None else backoff.next_s()",
        "wait = 0.1",
    ),
    (
        "client.repeats",
        TRANSCRIPT,
        "            return None\n        if envelope.n > self.next_n:",
        "            pass\n        if envelope.n > self.next_n:",
    ),
    ("client.resume", LINK, 'join_params({} if asked is None else {"after": asked})', "join_params({})"),
    ("client.retry-hint", CLOCK, "return max(wait, hint_s) if hint_s is not None else wait", "return wait"),
    (
        "client.same-bytes",
        LINK,
        "            return await link.request(method, params)\n",
        "            params = params[:1] + b' ' + params[1:]\n            return await link.request(method, params)\n",
    ),
    (
        "client.statements",
        SIGNER,
        "self.clock.now_s(), nonce or secrets.token_hex(16)",
        "self.clock.now_s(), nonce or '0' * 32",
    ),
    ("client.terminal", SHOW, "    text = printable(text)\n", ""),
    ("client.verifies-acks", CALL, "if ack.conv != self.conv or ack.n != pending.n:", "if False:"),
    (
        "client.verifies-events",
        TRANSCRIPT,
        "if not verify(envelope.sender, envelope.canonical, sig):",
        "if False:",
    ),
    ("client.verifies-events", TRANSCRIPT, "if chain is not None and chain != due.hex():", "if False:"),
    ("client.verifies-events", TRANSCRIPT, "if envelope.prev_sig != self.prev_sig:", "if False:"),
    ("cli.keyfile", KEYFILE, "os.O_CREAT | os.O_EXCL, 0o600", "os.O_CREAT | os.O_TRUNC, 0o600"),
)
