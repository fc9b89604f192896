"""Agreements and messages."""

CORE = "broker/core/agreement.py"
PAIR = "broker/actors/pair.py"
MAIL = "broker/actors/pairmail.py"
DOCS = "broker/actors/pairdocs.py"
AGENTDOCS = "broker/actors/agentdocs.py"
VIEWS = "broker/core/pairviews.py"
TOOLS = "broker/tools/agreements.py"
MESSAGES = "broker/tools/messages.py"
PAGING = "broker/tools/paging.py"

MUTANTS = (
    ("agreement.allows", CORE, "and (not each.one_way or each.one == actor)", ""),
    ("agreement.allows", CORE, "now < agreement.expires_at)", "now <= agreement.expires_at)"),
    ("agreement.accepted", CORE, "now + ttl_days * DAY_MS,", "now + request.ttl_days * DAY_MS,"),
    ("agreement.cool-down", CORE, "until = declines[-1] + rules.declined_ms", "until = 0"),
    ("agreement.cool-down", CORE, "declines[-rules.declines] + rules.declines_ms", "until"),
    (
        "agreement.one-open",
        CORE,
        "if not held.one_way and holds(held, now) and _covers(held, request):",
        "if False:",
    ),
    (
        "agreement.once",
        CORE,
        "return msgspec.structs.replace(row, requests=rest, declines=declines), ended",
        "return row, ended",
    ),
    (
        "agreement.owner-decides",
        PAIR,
        "if waits and not command.by_owner:",
        "if False:",
    ),
    (
        "agreement.owner-decides",
        VIEWS,
        'if incoming and request.status == "pending":',
        'if request.status == "pending":',
    ),
    ("agreement.tier", PAIR, 'if await self.store.get("slot", agent_id) is not None:', "if False:"),
    ("agreement.tier", DOCS, '*(Put("slot", each, WAITING, None) for each in agreement.slots)', "*()"),
    (
        "agreement.silent",
        AGENTDOCS,
        "return row if row is not None and row.suspended is None else None",
        "return row",
    ),
    (
        "agreement.foreign",
        TOOLS,
        "if row is None or agent_id not in (row.one, row.other):",
        "if row is None:",
    ),
    ("agreement.quota", TOOLS, 'with services.underway.doing("asking", asker, b""):', "if True:"),
    (
        "message.reply",
        MAIL,
        "return message if ours else None",
        "return message",
    ),
    ("message.read", MESSAGES, "if row is not None and row.recipient == agent_id:", "if row is not None:"),
    (
        "message.kept",
        DOCS,
        'found = await store.find("dm", "kept-read", name, limit=count)',
        "found = []",
    ),
    ("message.tier", MAIL, "                *counted,\n", ""),
    ("message.once", MESSAGES, "once = context.once if place == len(pairs) else None", "once = None"),
    ("message.paged", PAGING, "if len(found) > skip + len(shown) else", "if len(found) > skip + limit else"),
    ("message.paged", PAGING, 'return f"{name}-{place}"', 'return f"{name}-{place + 1}"'),
    ("message.once", MAIL, "            once=command.once,\n", ""),
    (
        "agreement.cool-down",
        CORE,
        "declines = {who: at for who, at in declines.items() if who != request.asker}",
        "pass",
    ),
    ("agreement.one-open", CORE, "return lasts and set(request.scopes) <= set(held.scopes)", "return lasts"),
    ("agreement.expires", PAIR, "due = core.next_due(row) if row is not None else None", "due = None"),
    (
        "agreement.predicted",
        PAIR,
        'row, ended = core.end(row, old, "replaced", now, OPERATOR)',
        "ended = old",
    ),
    ("agreement.at-once", MAIL, "dropped_unread=unread)", "dropped_unread=0)"),
    ("agreement.at-once", CORE, "kept + 1 - dropped, lane", "kept + 1, lane"),
)
