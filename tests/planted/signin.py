"""The sign-in: who is let in, what a token is, and what ends it."""

GRANT = "broker/core/grant.py"
CLIENT = "broker/core/client.py"
ACTOR = "broker/actors/grant.py"
MEMORY = "broker/actors/signin.py"
VERBS = "broker/tools/signin.py"
CLIENTS = "broker/tools/clients.py"
TOKENS = "broker/tools/tokens.py"
JOSE = "gateways/oauth/jose.py"
KEYS = "gateways/oauth/keys.py"
ACCESS = "gateways/oauth/access.py"
SERVER = "gateways/oauth/server.py"
AUTHORIZE = "gateways/oauth/authorize.py"
ASSERTION = "gateways/oauth/assertion.py"
TOKEN = "gateways/oauth/token.py"
FORMS = "gateways/oauth/forms.py"
BEARER = "gateways/oauth/bearer.py"
DOCUMENTS = "gateways/oauth/documents.py"
OUTBOUND = "gateways/outbound.py"

MUTANTS = (
    ("signin.rotation", KEYS, "self._again_at = now_ms + AGAIN_MS", "pass"),
    (
        "signin.rotation",
        KEYS,
        "            except SignInKeyError as error:",
        "            except ValueError as error:",
    ),
    ("signin.jose", JOSE, 'if row["kty"] == "RSA" and not _is_strong(row):', "if False:"),
    ("signin.standing", ACCESS, "iat=max(now, after)", "iat=now"),
    ("signin.code", GRANT, "or code.until <= now:", ":"),
    ("signin.code", GRANT, "shown.verifier is None or not _proves(shown.verifier, code.challenge)", "False"),
    (
        "signin.code",
        GRANT,
        "(code.named or shown.redirect_uri is not None) and",
        "shown.redirect_uri is not None and",
    ),
    ("signin.code", GRANT, "        row, code=None, spent=code.digest,", "        row, spent=code.digest,"),
    (
        "signin.stolen",
        GRANT,
        "        return Stolen(refused)\n    code = row.code",
        "        return refused\n    code = row.code",
    ),
    (
        "signin.stolen",
        GRANT,
        "        return Stolen(refused)\n    if shown.resource",
        "        return refused\n    if shown.resource",
    ),
    (
        "signin.refresh",
        GRANT,
        'if row.family is None or row.refresh is None or not _same(row.family, shown.family or ""):',
        "if row.family is None or row.refresh is None:",
    ),
    ("signin.refresh", GRANT, "or row.over_at <= now:", ":"),
    ("signin.refresh", GRANT, "if not set(shown.scopes or ()) <= set(row.scopes):", "if False:"),
    (
        "signin.redirect",
        CLIENT,
        "if asked in row.redirects:",
        "if any(asked.startswith(each) for each in row.redirects):",
    ),
    ("signin.redirect", CLIENT, "and mine in map(_without_port, row.redirects)", ""),
    ("signin.client-secret", CLIENT, "        return secret is None\n", "        return True\n"),
    ("signin.registration", CLIENT, "if wrong is not None:", "if False:"),
    ("signin.documents", CLIENTS, 'if document.get("client_id") != client_id or', "if"),
    (
        "signin.subject",
        VERBS,
        "if acting != owner_id and await agents.find(context.services, acting, owner_id) is None:",
        "if False:",
    ),
    (
        "signin.consent",
        VERBS,
        "    if services.sign_in.take(ask) is None:",
        "    if services.sign_in.find(ask) is None:",
    ),
    ("signin.revoke", VERBS, "End(owner_id=owner_id, once=context.once)", "End(once=context.once)"),
    ("signin.revoke", ACTOR, "self._told(self.key, Facts(gone=row is None))", "pass"),
    ("signin.bounds", ACTOR, "now - UNUSED_MS, SWEPT)", "0, SWEPT)"),
    ("signin.bounds", ACTOR, "now - core.ASK_MS, 1)", "now, 1)"),
    ("signin.bounds", MEMORY, "if place is not None and self._waiting.get(place, 0) >= ASKS:", "if False:"),
    ("signin.agent-key", ACTOR, "if await self.store.recall(scope, key) is not None:", "if False:"),
    (
        "signin.guesses",
        TOKENS,
        "return context.services.guard.check(context.caller.address, context.caller.exempt)",
        "return None",
    ),
    (
        "signin.standing",
        TOKENS,
        "if refused is not None or (acting is not None and agent is None):",
        "if False:",
    ),
    (
        "signin.agent-secret",
        TOKENS,
        'if not hmac.compare_digest(kept or "", digest(secret)):',
        "if kept is None:",
    ),
    (
        "signin.refused",
        MEMORY,
        "over = sorted(key for key in self._refused if all or key[0] != this)",
        "over = sorted(self._refused)",
    ),
    ("signin.jose", JOSE, "if name not in (self.allowed or ()):", "if name not in self.algorithms:"),
    ("signin.jose", JOSE, 'if "crit" in token.header or "b64" in token.header:', "if False:"),
    ("signin.jose", JOSE, "if kid is not None and kid not in (key.kid, key.thumbprint()):", "if False:"),
    ("signin.jose", JOSE, "value = canonical.read(data)", "import json\n    value = json.loads(data)"),
    (
        "signin.keys",
        KEYS,
        "write_private(path, msgspec.json.encode(rows))",
        "path.write_bytes(msgspec.json.encode(rows))",
    ),
    ("signin.rotation", KEYS, "row.until + ACCESS_S * 1000 + MARGIN_MS < now_ms", "row.until < now_ms"),
    ("signin.rotation", KEYS, "if now_ms - self._rows[-1].since >= ROTATE_MS and", "if False and"),
    ("signin.tokens", ACCESS, "access.iss == issuer and access.exp * 1000 > now_ms", "access.iss == issuer"),
    ("signin.tokens", ACCESS, '("EdDSA",), (TYPE,)) is None', '("EdDSA",)) is None'),
    (
        "signin.metadata",
        SERVER,
        '            "issuer": self.issuer,',
        '            "issuer": self.issuer + "/",',
    ),
    ("signin.resource", SERVER, "Target(resource, scopes_of(face) or SCOPES)", "Target(resource, SCOPES)"),
    (
        "signin.authorize",
        AUTHORIZE,
        '(form.get("code_challenge_method") != "S256", "invalid_request", "code_challenge_method is S256"),',
        "",
    ),
    (
        "signin.authorize",
        AUTHORIZE,
        '(target is None, "invalid_target", "resource is none of this server\'s"),',
        "",
    ),
    ("signin.redirect", CLIENT, "_HOST.fullmatch(host) is not None and (", "host != '' and ("),
    (
        "signin.refresh",
        TOKENS,
        'if isinstance(redone, GrantRow) and client_id.startswith("cl_"):',
        "if False:",
    ),
    (
        "signin.bounds",
        "gateways/oauth/routes.py",
        'if site and how != ["navigate", "document"]:',
        "if False:",
    ),
    ("signin.bounds", ACTOR, "now - core.IDLE_MS - TOUCH_MS, 1)", "now - LAPSE_MS, 1)"),
    ("signin.unasked", VERBS, "host = None if is_loopback(target) else host_of(target)", "host = None"),
    (
        "signin.agent-key",
        ASSERTION,
        "and audiences <= {issuer, issuer + TOKEN}",
        "and audiences & {issuer, issuer + TOKEN}",
    ),
    (
        "signin.agent-key",
        ASSERTION,
        'claims.get("iss") == claims.get("sub") == agent_id',
        'claims.get("iss") == agent_id',
    ),
    ("signin.agent-key", ASSERTION, "and now < exp <= now + LONGEST_S + SKEW_S", "and now < exp"),
    ("signin.revoke", TOKEN, 'shown = {"grant_id": read.grant}', "return Reply(200, {})"),
    (
        "signin.introspection",
        TOKEN,
        "if read is None or await server.judge(read.caller(caller)) is not None:",
        "if read is None:",
    ),
    ("signin.introspection", TOKEN, "if client.secret is None and client.granted is None:", "if False:"),
    ("signin.forms", FORMS, "if len(form) < len(pairs):", "if False:"),
    (
        "signin.bearer",
        BEARER,
        "return BAD if read is None or read.aud not in audiences",
        "return BAD if read is None",
    ),
    ("signin.bearer", BEARER, "refused = await self._broker.judge(found)", "refused = None"),
    ("signin.documents", DOCUMENTS, "headers=asked, most=MOST)", "headers=asked)"),
    ("signin.documents", DOCUMENTS, 'fair = place == EXEMPT or self._may_ask("for", place)', "fair = True"),
    ("signin.documents", DOCUMENTS, "if len(times) == A_MINUTE and now - times[0] < 60:", "if False:"),
    (
        "signin.outbound",
        OUTBOUND,
        "if not found or not all(self._may_ask(str(each[4][0])) for each in found):",
        "if not found or not any(self._may_ask(str(each[4][0])) for each in found):",
    ),
    ("signin.outbound", OUTBOUND, "await link.connect(address)", "await link.connect((host, port))"),
    ("signin.outbound", OUTBOUND, "if len(got) > most:", "if False:"),
    ("signin.outbound", OUTBOUND, "while pieces < PIECES + len(got) // SMALL:", "while True:"),
    ("signin.outbound", OUTBOUND, "await self._pace.turn(str(address[0]))", "pass"),
    ("signin.outbound", OUTBOUND, "for _ in range(EARLY + 1):", "while True:"),
    ("signin.outbound", OUTBOUND, "with trio.fail_after(patience_s):", "with trio.fail_after(60):"),
    ("signin.outbound", OUTBOUND, "return ip in PUBLIC_6 and not any", "return ip.is_global and not any"),
)
