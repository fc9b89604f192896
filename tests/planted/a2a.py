"""Tasks and A2A."""

CORE = "broker/core/task.py"
ACTOR = "broker/actors/task.py"
TOOLS = "broker/tools/tasks.py"
READER = "broker/tools/task_reader.py"
ENDPOINTS = "broker/tools/endpoints.py"
PUSHES = "broker/tools/task_pushes.py"
FORM = "broker/core/taskpush.py"
WIRE = "broker/wire/a2a.py"
DOOR = "gateways/a2a/door.py"
CALLS = "gateways/a2a/calls.py"
METHODS = "gateways/a2a/methods.py"
STREAMING = "gateways/a2a/streaming.py"
ERRORS = "gateways/a2a/errors.py"
CARD = "gateways/a2a/card.py"
CHECK = "broker/actors/check_tasks.py"
CLIENT = "gateways/client/tasks.py"

MUTANTS = (
    ("network.a2a.states", CORE, "if row.state not in OPEN:", "if False:"),
    (
        "network.a2a.states",
        CORE,
        'if row.state == "input-required" else row.state',
        "if False else row.state",
    ),
    ("network.a2a.limits", CORE, "if size > MESSAGE_BYTES:", "if False:"),
    ("network.a2a.limits", CORE, "if size <= TASK_BYTES:", "if True:"),
    ("network.a2a.limits", CORE, "if row.revision >= CHANGES and", "if False and"),
    ("network.a2a.loop", CORE, "made = replace(made, trace=answered(row))", "pass"),
    ("network.a2a.answer", CORE, "artifacts=(*made.artifacts, command.artifact)", "artifacts=()"),
    (
        "network.a2a.foreign",
        ACTOR,
        "if wanted.by != (about.requester if asks else about.target):",
        "if False:",
    ),
    (
        "network.a2a.agreed",
        ACTOR,
        "if not isinstance(command, core.Cancel) and not await self._agreed(about, now.wall_ms):",
        "if False:",
    ),
    (
        "network.a2a.agreed",
        ACTOR,
        "agreed is not None and await present(self.store, about.requester, now) is not None",
        "agreed is not None",
    ),
    ("network.a2a.loop", ACTOR, "if isinstance(trace, Stopped):", "if False:"),
    ("network.a2a.kept", ACTOR, 'self._rouse("push", each.id, RemovePush(None))', "pass"),
    (
        "network.a2a.kept",
        ACTOR,
        "if row is None or (now < row.due and (row.state not in OPEN or not await self._is_alone(row, now))):",
        "if True:",
    ),
    ("network.a2a.kept", ACTOR, "return None in both", "return False"),
    ("network.a2a.lists", ACTOR, "*(() if self.row is None else (_drop_mark(self.row),))", ""),
    (
        "network.a2a.foreign",
        TOOLS,
        "return row if row is not None and mine else core.missing()",
        "return row",
    ),
    (
        "network.a2a.foreign",
        TOOLS,
        "if row.requester != me(context) or row.target != target:",
        "if row.requester != me(context):",
    ),
    ("network.a2a.input", TOOLS, "if context_id not in (None, row.context_id):", "if False:"),
    ("network.a2a.limits", TOOLS, "if len(waiting) >= network.tasks_open:", "if False:"),
    ("network.a2a.lists", TOOLS, "for document in reversed(found)", "for document in found"),
    ("network.a2a.foreign", READER, "row.requester == me(context) else missing()", "True else missing()"),
    ("network.a2a.resume", READER, "epoch, row.told).text()", "epoch, 0).text()"),
    (
        "network.a2a.ends",
        "broker/tools/access.py",
        "held.enter_context(services.standing.hold(caller, partial(reader.end, at_once=True)))",
        "pass",
    ),
    ("network.a2a.direct", ENDPOINTS, 'or f".{host}".endswith(_LOCAL)', ""),
    (
        "network.a2a.card",
        ENDPOINTS,
        "if row is None or not (row.public or context.caller.agent is not None):",
        "if row is None:",
    ),
    ("network.a2a.push", PUSHES, "if not allowance(agent).webhook:", "if False:"),
    ("network.a2a.push", PUSHES, "if credentials is not None and scheme is None:", "if False:"),
    ("network.a2a.push", FORM, "if shown.scheme:", "if False:"),
    ("network.a2a.gateway", WIRE, '"ROLE_USER" if said.by == "requester" else "ROLE_AGENT"', '"ROLE_USER"'),
    ("network.a2a.callers", DOOR, "if caller.principal is None:", "if False:"),
    ("network.a2a.callers", DOOR, "if caller.agent is None:", "if False:"),
    (
        "network.a2a.version",
        DOOR,
        "return None if good else errors.version",
        "return None if True else errors.version",
    ),
    ("network.a2a.card", DOOR, 'if _has(_header(scope, b"if-none-match"), name):', "if False:"),
    (
        "network.a2a.foreign",
        CALLS,
        "return view if ours else errors.TASK_NOT_FOUND",
        "return view",
    ),
    (
        "network.a2a.waits",
        METHODS,
        "if not wishes.return_immediately and view.task.state not in RESTING:",
        "if False:",
    ),
    (
        "network.a2a.waits",
        METHODS,
        "with trio.move_on_after(call.broker.settings.network.task_wait_s):",
        "if True:",
    ),
    ("network.a2a.resume", STREAMING, "not (resumed and resume.from_ != resume.head)", "True"),
    ("network.a2a.streams", STREAMING, "over = any(_ends(event) for event in batch)", "over = False"),
    ("network.a2a.errors", ERRORS, "domain: str = DOMAIN, /, **metadata", "domain: str = DOMAIN, **metadata"),
    ("network.a2a.direct", CARD, 'url = own or f"', 'url = f"'),
    ("network.a2a.check", CHECK, "if not same or snapshot.marks", "if snapshot.marks"),
    ("client.agent-tasks", CLIENT, "self._known.get(its, 0) >= count", "False"),
)
