"""Channels."""

CORE = "broker/core/channel.py"
PACE = "broker/core/pace.py"
ACTOR = "broker/actors/channel.py"
FOLLOWERS = "broker/actors/followers.py"
READER = "broker/tools/channel_reader.py"
TOOLS = "broker/tools/channels.py"
PAGING = "broker/tools/paging.py"

MUTANTS = (
    ("channel.seq", CORE, "seq=state.head + 1,", "seq=max(1, state.head),"),
    ("channel.seq", ACTOR, "state.head, state.last_at = rows[-1].seq, rows[-1].at", "pass"),
    (
        "channel.roles",
        CORE,
        'if member.role == "owner":\n        return refuse("bad_request", "the owner can\'t leave',
        'if False:\n        return refuse("bad_request", "the owner can\'t leave',
    ),
    ("channel.roles", CORE, "if row.owner_id != agent_id:", "if False:"),
    ("channel.private", CORE, "row is None or (row.is_private and member is None)", "row is None"),
    (
        "channel.private",
        TOOLS,
        "return refused\n    page = await read_page",
        "pass\n    page = await read_page",
    ),
    (
        "channel.name",
        ACTOR,
        'claim = Put("channelname", row.name, 0,',
        'claim = Put("channelname", row.channel_id, 0,',
    ),
    ("channel.unclaimed", TOOLS, "if most is not None and owned >= most:", "if False:"),
    ("channel.gone", TOOLS, "if agent is not None:  # one", "if True:  # one"),
    ("channel.size", TOOLS, "if len(canonical) > METADATA_BYTES:", "if len(canonical) >= METADATA_BYTES:"),
    ("channel.history", PAGING, "if at and total > PAGE_BYTES:", "if False:"),
    ("channel.limits", PACE, "member: int = 30", "member: int = 31"),
    (
        "channel.limits",
        PACE,
        "spent.append(known[seq])",
        "spent.append(Spent(seq, agent_id, mono_of(at, now, now.mono)))",
    ),
    ("channel.unread", ACTOR, "self._owed.update(self._awake)", "pass"),
    (
        "channel.unread",
        ACTOR,
        "and not self._followers.live(self.key, agent_id):\n            self._awake",
        ":\n            self._awake",
    ),
    ("channel.unread", CORE, "unread = head if upto < head else 0", "unread = 0"),
    ("channel.unread-cost", ACTOR, "self._awake.pop(agent_id, None)", "pass"),
    (
        "channel.resume",
        READER,
        "Cursor(stream_tag(stream), epoch, after_seq)",
        "Cursor(stream_tag(stream), epoch, after_seq + 1)",
    ),
    ("channel.cut-off", READER, "refused = await _outside(context, channel_id)  #", "pass  #"),
    ("channel.cut-off", READER, "end = partial(reader.end, at_once=True)", "end = reader.end"),
    ("channel.cut-off", FOLLOWERS, "            end(refusal)", "            pass"),
    ("channel.loop", ACTOR, "if isinstance(trace, Stopped):", "if False:"),
    (
        "channel.operator",
        "broker/tools/channels.py",
        "create(context, owner_agent_id,",
        "create(context, name,",
    ),
    ("channel.check", "broker/actors/check_channels.py", "    if said != found:", "    if False:"),
    ("channel.check", "broker/actors/check.py", "        yield from faults\n", ""),
)
