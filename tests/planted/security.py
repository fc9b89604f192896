"""Mutants of what stops other users of the machine, and of what a stranger could learn."""

KEYFILE = "gateways/keyfile.py"
HELPERS = "broker/actors/helpers.py"
CALLER = "gateways/caller.py"
KEYS = "broker/wire/keys.py"
WIREKEYS = "gateways/wirekeys.py"

MUTANTS: tuple[tuple[str, str, str, str], ...] = (
    (
        "threat.unnamed-proxy",
        CALLER,
        "if peer.is_loopback and not known and peer not in _told:",
        "if False:",
    ),
    ("threat.unnamed-proxy", CALLER, "        _told.add(peer)\n", ""),
    (
        "threat.foreign-ids",
        "broker/tools/lookup.py",
        '        row = await read_row(services.store, DeskRow, "desk", pk)\n        if row is not None and row.code',
        '        row = await read_row(services.store, DeskRow, "desk", pk) if pk else None\n'
        "        if row is not None and row.code",
    ),
    ("threat.planted-file", KEYFILE, "    aside.unlink(missing_ok=True)", "    pass"),
    (
        "threat.local-reader",
        KEYFILE,
        "path.stat().st_mode & stat.S_IROTH",
        "path.stat().st_mode & stat.S_IWOTH",
    ),
    ("threat.local-reader", KEYFILE, "os.O_EXCL, 0o600)", "os.O_EXCL, 0o666)"),
    ("threat.planted-file", WIREKEYS, "if mode & 0o002:", "if mode & 0o020:"),
    ("threat.secrets-told", KEYS, 'f"SigningKey(pk={self.pk})"', 'f"SigningKey({self.seed})"'),
    (
        "threat.secrets-told",
        CALLER,
        "    read = read_proof(proof.strip())",
        "    read = read_proof(proof.strip())\n    import logging; logging.getLogger(__name__).debug(proof)",
    ),
    ("threat.helper", HELPERS, "env={**kept,", "env={**os.environ,"),
    (
        "threat.foreign-ids",
        "broker/tools/transcripts.py",
        "        return missing_conv(context)\n    return row",
        '        return refuse("unknown_conv", "this is the conversation of others")\n    return row',
    ),
    (
        "threat.foreign-ids",
        "gateways/mcp/sessions.py",
        "        if session is None or session.principal != principal:\n            return None",
        "        if session is None or (session.principal != principal and sum(range(9000))):\n            return None",
    ),
    ("threat.smuggling", "gateways/connection.py", "        if framed_twice(event):", "        if False:"),
    ("threat.smuggling", "gateways/wrappers.py", 'if not scope["path"].startswith("/"):', "if False:"),
    (
        "threat.splitting",
        "gateways/plain.py",
        "    response = Response(body, status)",
        '    response = Response(body, status); response.headers["set-cookie"] = "a"',
    ),
    ("threat.rebinding", "gateways/wrappers.py", "good = _NETLOC.fullmatch(parts.netloc) and (", "good = ("),
    ("threat.csrf", "gateways/plain.py", "if len(types) != 1 or not is_json(types[0]):", "if False:"),
    (
        "threat.websocket",
        "gateways/handshake.py",
        "if origin is not None and origins is not None and origin not in origins:",
        "if False:",
    ),
    (
        "threat.open-by-mistake",
        "gateways/configure.py",
        'dealing_bind: str = "127.0.0.1:8767"',
        'dealing_bind: str = "[::]:8767"',
    ),
    (
        "threat.open-by-mistake",
        "gateways/configure.py",
        "        if not configuration.transcripts_chosen:",
        "        if False:",
    ),
    ("threat.unsafe-limits", "gateways/configure.py", 'if environment.get(BENCH) != "1":', "if False:"),
    (
        "threat.eavesdropper",
        "gateways/http.py",
        "context.minimum_version = ssl.TLSVersion.TLSv1_2",
        'context.minimum_version = ssl.TLSVersion.TLSv1; context.set_ciphers("ALL:@SECLEVEL=0")',
    ),
    ("threat.eavesdropper", "gateways/http.py", "context.options |= ssl.OP_NO_RENEGOTIATION", "pass"),
    ("threat.csrf", "gateways/wrappers.py", "if not text.isprintable():", "if False:"),
    (
        "threat.secrets-told",
        KEYFILE,
        "is not a key file: expected",
        "is not a key file: {text}, expected",
    ),
)
