"""The broker as a protected resource: whose token passes where, and what is told."""

OUTSIDE = "gateways/oauth/outside.py"
ISSUER = "gateways/oauth/issuer.py"
SIGNED = "gateways/oauth/signed.py"
BEARER = "gateways/oauth/bearer.py"
SESSIONS = "gateways/mcp/sessions.py"
METADATA = "gateways/oauth/metadata.py"
PROTECTED = "gateways/mcp/protected.py"
ENDPOINT = "gateways/mcp/endpoint.py"
ERAS = "gateways/mcp/eras.py"
CONFIGURE = "gateways/configure.py"

MUTANTS = (
    ("oauth.bad-token", OUTSIDE, 'answer.get("active") is True', 'answer.get("active")'),
    ("oauth.bad-token", OUTSIDE, 'answer.get("iss", issuer) == issuer', "True"),
    ("oauth.bad-token", OUTSIDE, '"cnf" not in answer', "True"),
    ("oauth.bad-token", OUTSIDE, "until > now", "until >= now"),
    ("oauth.bad-token", OUTSIDE, "since <= now", "True"),
    ("oauth.bad-token", OUTSIDE, "BAD if grant.audiences.isdisjoint(audiences) else grant", "grant"),
    ("oauth.scope", BEARER, "and scopes and found.scopes.isdisjoint(scopes)", "and False"),
    ("oauth.issuer-away", ISSUER, 'if document.get("issuer") != self.url:', "if False:"),
    ("oauth.issuer-away", ISSUER, "if answer.status_code != 200:", "if answer.status_code >= 500:"),
    ("oauth.issuer-away", OUTSIDE, "trio.move_on_after(self._patience_s)", "trio.move_on_after(60)"),
    ("oauth.cache", OUTSIDE, "if ended or until <= self._clock.monotonic():", "if ended:"),
    ("oauth.cache", OUTSIDE, "if ended or until <=", "if until <="),
    ("oauth.cache", OUTSIDE, "while len(self._kept) > self._most:", "while False:"),
    (
        "oauth.secrecy",
        ISSUER,
        'raise NoAnswer(f"it answered {answer.status_code}")',
        "raise NoAnswer(repr(form))",
    ),
    ("oauth.outside", BEARER, 'f"{grant.issuer} {grant.subject}"', "grant.subject"),
    (
        "oauth.outside",
        BEARER,
        "agent=ours if agent else None",
        "agent=grant.subject",
    ),
    ("oauth.outside", BEARER, "refused = await self._broker.judge(found)", "refused = None"),
    ("oauth.signed", SIGNED, 'if read.claims.get("iss") != self._issuer.url or', "if"),
    ("oauth.signed", SIGNED, 'or not jose.is_time(read.claims.get("exp"))', ""),
    ("oauth.signed", SIGNED, "(missing and age > AGAIN_S)", "missing"),
    ("oauth.signed", SIGNED, "(missing and age > AGAIN_S)", "False"),
    ("oauth.signed", SIGNED, "jose.ASYMMETRIC, TYPES) is None", "jose.ASYMMETRIC) is None"),
    (
        "oauth.session",
        ERAS,
        "self._sessions.find(name, caller.identity)",
        "self._sessions.find(name, caller.pk)",
    ),
    ("oauth.session", SESSIONS, "            session.take(principal)", "            pass"),
    (
        "oauth.session",
        SESSIONS,
        "if session is not None and session.principal is None and",
        "if session is not None and",
    ),
    ("oauth.audience", METADATA, 'places = {MCP, f"{MCP}/{face}"}', "places = {MCP}"),
    ("oauth.typed-url", METADATA, "urlsplit(each).netloc == asked", "False"),
    ("oauth.challenge", METADATA, 'scope or " ".join(scopes_of(face_of(path) or ""))', "scope"),
    ("oauth.challenge", METADATA, 'needed := scope or " ".join', 'needed := " ".join'),
    ("oauth.bad-token", PROTECTED, 'error = "invalid_token"', "pass"),
    (
        "oauth.guarded-faces",
        PROTECTED,
        "if face in GUARDED and isinstance(caller, Caller) and caller.principal is None:",
        "if False:",
    ),
    (
        "oauth.guarded-faces",
        ENDPOINT,
        "if protected is None:\n        offered = {name",
        "if False:\n        offered = {name",
    ),
    (
        "oauth.guarded-faces",
        ENDPOINT,
        "known = await self._enter(http) if dispatch is not None else None",
        "known = None",
    ),
    ("oauth.settings", CONFIGURE, "if serve.issuer is None or any(asking) != all(asking):", "if False:"),
    (
        "oauth.settings",
        CONFIGURE,
        'if parts.scheme == "http" and not is_loopback(parts.hostname or ""):',
        "if False:",
    ),
    (
        "oauth.outside",
        "gateways/oauth/bearer.py",
        'ours = "" if grant.itself else grant.subject',
        "ours = grant.subject",
    ),
)
