"""Mutants of what agents are: names, keys, claims, tiers, secrets."""

AGENT = "broker/core/agent.py"
ACTOR = "broker/actors/agent.py"
DOCS = "broker/actors/agentdocs.py"
NAMES = "broker/core/names.py"

MUTANTS = (
    ("identity.looks", NAMES, 'small = unicodedata.normalize("NFKC", folded.casefold())', "small = folded"),
    ("identity.looks", NAMES, '    return unicodedata.normalize("NFD", spread)', "    return text"),
    ("identity.looks", ACTOR, "kept=looks_of(changed.name))", "kept=looks_of(row.name))"),
    ("identity.looks", ACTOR, "if holder is not None and not await self._is_gone(holder):", "if False:"),
    ("identity.names", NAMES, "    if not _is_one_script(folded):", "    if False:"),
    ("identity.names", NAMES, "return character not in _BLANK and", "return"),
    ("identity.claim-code", "broker/core/claim.py", "SELECTOR: Final = 4", "SELECTOR: Final = 8"),
    (
        "identity.claim-code",
        "broker/tools/identity.py",
        '"claim_code": seal(services, code)}',
        '"claim_code": code}',
    ),
    (
        "identity.tiers",
        AGENT,
        '"unclaimed": Allowance(1, 20, 0, False, False)',
        '"unclaimed": Allowance(1, 21, 0, False, False)',
    ),
    ("identity.tiers", AGENT, "if now_ms - at < DAY_MS)", "if now_ms - at <= DAY_MS)"),
    ("identity.tiers", AGENT, "        expires_at=None,\n        tokens_after=", "        tokens_after="),
    ("identity.gone", AGENT, "row.expires_at <= now_ms", "row.expires_at < now_ms"),
    ("identity.gone", DOCS, "        ends_at=row.expires_at,\n", ""),
    ("identity.gone", "broker/actors/standing.py", "facts.ends_at <= now_ms", "facts.ends_at < now_ms"),
    (
        "identity.gone",
        ACTOR,
        'if document and stored(KeyRow, document.doc, "key", key.pk).agent_id == self.key:',
        "if document:",
    ),
    ("identity.one-agent-a-key", ACTOR, "if old.revoked_at is not None or not", "if not"),
    ("identity.one-agent-a-key", "broker/tools/agents.py", "    if read.pk != pk:", "    if False:"),
    ("identity.keys", AGENT, "if by_itself and not left and row.secret_hash is None:", "if False:"),
    (
        "identity.claim",
        ACTOR,
        "row.claim.digest != digest or row.suspended is not None",
        "row.suspended is not None",
    ),
    ("identity.claim", AGENT, "        claim=None,\n        expires_at", "        expires_at"),
    (
        "identity.register",
        "broker/tools/registering.py",
        "answer = await settle(context, proven) or answer",
        "pass",
    ),
    (
        "identity.register-limits",
        "broker/tools/registering.py",
        "services.guard.unregistered(caller.address, caller.loopback)",
        "pass",
    ),
    (
        "identity.presence",
        "broker/tools/agents.py",
        "(row.agent_id, *(key.pk for key in row.keys))",
        "(row.agent_id,)",
    ),
    ("identity.presence", "broker/actors/activity.py", "AWAY_S: Final = 900.0", "AWAY_S: Final = 901.0"),
    (
        "identity.directory",
        "broker/tools/identity.py",
        "return row.public and row.suspended is None",
        "return row.public",
    ),
    (
        "identity.suspended-keys",
        "broker/actors/suspended.py",
        "now = self._desks.union(*self._agents.values())",
        "now = self._desks",
    ),
    ("identity.operators", ACTOR, "tokens_after=self._now_s() + 1)", "tokens_after=self._now_s())"),
    (
        "owners.throttled",
        "broker/actors/attempts.py",
        'counted.append(f"code {selector}")',
        "pass",
    ),
    (
        "identity.reports",
        "broker/tools/reports.py",
        "if await agents.seen(services, target_agent_id) is None:",
        "if False:",
    ),
    ("identity.reports", "broker/tools/reports.py", ">= MOST_OPEN:", "> MOST_OPEN:"),
)
