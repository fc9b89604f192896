"""What operators and owners do about agents, and what the network writes into inboxes."""

NOTICES = "broker/actors/notices.py"
REPORT = "broker/actors/report.py"
MODERATION = "broker/tools/moderation.py"
BINDING = "broker/actors/binding.py"
IRC = "broker/core/irc.py"
GUESSABLE = "broker/core/guessable.py"
OWNER = "broker/actors/owner.py"
OWNED = "broker/tools/owned.py"
CHANNEL = "broker/core/channel.py"
CHANNELS = "broker/tools/channels.py"
LEAVING = "broker/actors/leaving.py"
CONVERSATION = "broker/actors/conversation.py"
SWITCHBOARD = "broker/tools/switchboard.py"
STANDING = "broker/actors/standing.py"
AGENTS = "broker/tools/agents.py"

MUTANTS = (
    (
        "moderation.notice",
        NOTICES,
        "    row = core.sent(row, agent_id, ",
        "    _ = core.sent(row, agent_id, ",
    ),
    ("moderation.resolved", REPORT, 'if row.status == "resolved":', "if False:"),
    ("moderation.resolved", REPORT, "and agent.suspended is None:", "and False:"),
    ("moderation.resolved", NOTICES, "if await read_agent(store, agent_id, now) is None:", "if False:"),
    ("moderation.reports", MODERATION, "category in (None, row.category)", "True"),
    ("moderation.queue", MODERATION, "return bool(found) and found[0].id == report_id", "return True"),
    ("moderation.irc", IRC, '"~": "^"', '"~": "~"'),
    ("moderation.irc", BINDING, "if row is not None and not mine and await", "if False and await"),
    ("moderation.irc", BINDING, "if row is None or row.agent_id != agent_id:", "if row is None:"),
    ("moderation.passwords", GUESSABLE, "return best[-1] <= PIECES", "return password in words"),
    ("moderation.passwords", GUESSABLE, "words = _WORDS.union(", "words = _WORDS.intersection("),
    ("moderation.owners", OWNER, "invitation.expires_at > now and for_us", "for_us"),
    (
        "moderation.owners",
        OWNER,
        'puts.append(Put("invitation", document.id, document.version, None))',
        "pass",
    ),
    ("moderation.care", OWNED, "or not await find(services, agent_id, owner_id):", "or False:"),
    (
        "moderation.channels",
        LEAVING,
        'row = without(stored(ChannelRow, found.doc, "channel", found.id), member)',
        'row = stored(ChannelRow, found.doc, "channel", found.id)',
    ),
    ("moderation.channels", CHANNEL, "row = _counted(row, +1 if joins else 0, ", "row = _counted(row, 0, "),
    ("moderation.full-disk", CHANNELS, ' or disk_full(services, "no new channel is made")', ""),
    (
        "moderation.end-call",
        CONVERSATION,
        "if state.phase is not Phase.ENDED:\n            body",
        "if True:\n            body",
    ),
    ("moderation.calls", CONVERSATION, '[("live", "1"), ', "["),
    ("moderation.desks", SWITCHBOARD, "and (shown.suspended or not suspended)", ""),
    ("moderation.live", STANDING, "                held.end(refused)\n", "                pass\n"),
    ("moderation.wrong-ids", AGENTS, 'path = str(answer.detail.get("path", path))', 'path = ""'),
)
