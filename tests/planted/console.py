"""The operators' console and the verify page: who gets in, what moves, what ends, and what is text."""

TAPE = "broker/actors/tape.py"
SITE = "gateways/console/site.py"
ACCOUNT = "gateways/console/account.py"
SESSIONS = "gateways/console/sessions.py"
LIVE = "gateways/console/live.py"
PAGE = "gateways/verifying/page.py"

MUTANTS = (
    ("console.tape", TAPE, " and event.data is not last", ""),
    ("console.tape", TAPE, "            await trio.sleep_until(self._due)\n", "            pass\n"),
    ("console.tape", TAPE, "        self._kept.clear()\n", ""),
    ("console.tape", "broker/app.py", "        if not caller.operator:\n", "        if False:\n"),
    ("console.tape", LIVE, "list(reversed(lines))", "list(lines)"),
    ("console.tape-free", TAPE, "        self._tape.watches.pop(self, None)\n", "        pass\n"),
    ("console.sign-in", SITE, "if visit.session is None and not open_to_all:", "if False:"),
    ("console.sign-in", SITE, "await self._gate.admit(visit.caller, token)", "visit.caller"),
    (
        "console.sign-in",
        ACCOUNT,
        "        console.sessions.close(visit.secret)\n        return console.sign_in(visit, new_secret(), SIGN_IN)",
        "        return console.sign_in(visit, new_secret(), SIGN_IN)",
    ),
    ("console.sign-in", ACCOUNT, "console.sessions.open(answer)", "visit.secret"),
    ("console.sessions-end", SESSIONS, "self._used + IDLE_S", "self._used + LIFE_S"),
    ("console.sessions-end", SESSIONS, "min(self._last, ", "max(self._used, "),
    ("console.csrf", SITE, "await take_form(sent)", "read_form(await request.get_data())"),
    ("console.csrf", SITE, " and not _is_part_of_another()", ""),
    ("console.live-ends", SESSIONS, "        for end in ends:\n            end()\n", ""),
    ("console.live-ends", LIVE, "if not session.over:", "if False:"),
    ("console.alone", SITE, "script-src 'self';", "script-src 'self' 'unsafe-inline';"),
    (
        "console.text",
        "gateways/console/templates/reports.html",
        "<bdi>{{ report.details }}</bdi>",
        "<bdi>{{ report.details | safe }}</bdi>",
    ),
    ("console.reports", "gateways/console/reports.py", 'if outcome == "suspended":', "if False:"),
    ("console.agents", "gateways/console/agents.py", 'if form.one("do") == "suspend":', "if True:"),
    (
        "console.calls",
        "gateways/console/calls.py",
        '"suspend_desk" if suspend else',
        '"suspend_desk" if True else',
    ),
    (
        "console.conversation",
        "broker/tools/transcripts.py",
        "        and not context.caller.operator\n",
        "",
    ),
    (
        "console.conversation",
        "gateways/console/calls.py",
        '"holds" if index < verdict.rows else',
        '"holds" if True else',
    ),
    ("console.audit", "gateways/console/records.py", '"verify_audit_log"', '"list_audit_events"'),
    ("console.health", LIVE, "if outcome not in FINE:", "if True:"),
    ("verifypage.alone", PAGE, "script-src {_hash(script)}", "script-src 'unsafe-inline'"),
    ("verifypage.alone", "gateways/verifying/route.py", "page.policy", '""'),
)
