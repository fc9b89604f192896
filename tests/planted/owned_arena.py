"""What owners see of their agents' sessions."""

TOOLS = "broker/tools/owned_sessions.py"
PAGES = "gateways/pages/sessions.py"
CHART = "gateways/pages/chart.py"
THINNING = "broker/core/thinning.py"
LIVE = "gateways/pages/templates/session_live.html"
WORDS = "gateways/pages/playwords.py"

MUTANTS = (
    (
        "pages.arena-readable",
        WORDS,
        'return done - 1 if session.get("over") == "expired" else done',
        "return done",
    ),
    (
        "pages.arena-foreign",
        TOOLS,
        "if row is None else row.agent_id, owner_id)",
        "if row is None else row.agent_id)",
    ),
    (
        "pages.arena-foreign",
        TOOLS,
        "await find(services, agent_id, owner_id)",
        "await find(services, agent_id)",
    ),
    ("pages.arena-sessions", TOOLS, '"open": "open"}', '"open": "agent"}'),
    (
        "pages.arena-session",
        TOOLS,
        "if before is None or each.n < before][:PAGE]",
        "if before is None or each.n <= before][:PAGE]",
    ),
    (
        "pages.arena-mark",
        TOOLS,
        "{last[0].n if last else 0}.{await _kept(store, session_id)}",
        "{last[0].n if last else 0}",
    ),
    (
        "pages.arena-stop",
        TOOLS,
        "replace(context.caller, principal=owner_id)",
        "replace(context.caller, principal=None)",
    ),
    ("pages.arena-stop", TOOLS, "for _ in range(TRIES):", "for _ in range(1):"),
    ("pages.arena-stop", TOOLS, "    if agent.suspended is not None:\n        return SUSPENDED\n", ""),
    ("pages.arena-live", PAGES, 'if mark["mark"] == visit.query.one("mark"):', "if False:"),
    ("pages.arena-live", PAGES, 'if mark["now"] - since > RESTS_MS:', "if False:"),
    (
        "pages.arena-live",
        PAGES,
        "        if not visit.owner_id:\n            return rest(SIGNED_OUT, session_id)\n",
        "",
    ),
    ("pages.arena-chart", THINNING, "min(places, key=values.__getitem__), ", ""),
    (
        "pages.arena-chart",
        CHART,
        '<title id="chart-title">{escape(title)}',
        '<title id="chart-title">{title}',
    ),
    (
        "pages.arena-text",
        LIVE,
        "<bdi>{{ words.as_sent(each.tried.action) }}</bdi>",
        "<bdi>{{ words.as_sent(each.tried.action) | safe }}</bdi>",
    ),
)
