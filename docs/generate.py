"""Prints the pages of docs/reference/ that say what the code says: `make docs`.

`pages()` gives each page's text by its file name; tests/test_generated.py compares them with what is there.
"""

import ast
import inspect
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import click
import msgspec

ROOT = Path(__file__).parent.parent
if str(ROOT) not in sys.path:  # run as a script
    sys.path.insert(0, str(ROOT))

REFERENCE = ROOT / "docs" / "reference"
NOTE = "<!-- Printed from the code by `make docs`. Change the code, not this page. -->\n"


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    """The lines of a Markdown table."""
    head = list(head)
    yield "| " + " | ".join(head) + " |"
    yield "|" + "---|" * len(head)
    for row in rows:
        yield "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in row) + " |"


def refusals() -> str:
    """The table of codes."""
    from broker.wire.refusals import CODES

    rows = (
        (
            f"`{name}`",
            str(code.status),
            ("yes, rebuilt" if name == "conflict" else "yes") if code.retryable else "no",
            code.meaning,
        )
        for name, code in CODES.items()
    )
    return "\n".join(
        [
            NOTE,
            "# Refusals\n",
            "One table for all doors. `retryable`: the identical request may be sent again; `conflict` needs",
            "a new envelope on the head that it carries. How each door shows a refusal:",
            "[wire.md](wire.md#refusals).\n",
            *table(("code", "HTTP status", "retryable", "when"), rows),
            "",
        ]
    )


def call() -> str:
    """The life of a call, from its table."""
    from broker.wire.call import KINDS, NEXT, Phase

    named = {"OTHER": "any other type"}
    rows = (
        [
            f"**{phase}**",
            *(f"→ {NEXT[(phase, kind)]}" if (phase, kind) in NEXT else "refused" for kind in KINDS),
        ]
        for phase in Phase
    )
    return "\n".join(
        [
            NOTE,
            "# The life of a call\n",
            "What an envelope does to a conversation. CALL is n = 0 and PICKUP is n = 1, and only there; END",
            "is taken from either party whoever's turn it is, and from the wire. See",
            "[wire.md](wire.md#life-of-a-call).\n",
            *table(["phase", *(named.get(kind, kind) for kind in KINDS)], rows),
            "",
            "```mermaid",
            "stateDiagram-v2",
            "    [*] --> new",
            *(
                f"    {before} --> {after} : {named.get(kind, kind)}"
                for (before, kind), after in NEXT.items()
            ),
            "    ended --> [*]",
            "```",
            "",
        ]
    )


def field_texts(source: str) -> dict[str, dict[str, str]]:
    """Class → field → the sentence that stands under it in the source."""
    found: dict[str, dict[str, str]] = {}
    for node in ast.parse(source).body:
        if not isinstance(node, ast.ClassDef):
            continue
        texts = found.setdefault(node.name, {})
        for field, text in zip(node.body, node.body[1:], strict=False):
            if (
                isinstance(field, ast.AnnAssign)
                and isinstance(field.target, ast.Name)
                and isinstance(text, ast.Expr)
                and isinstance(text.value, ast.Constant)
            ):
                texts[field.target.id] = " ".join(str(text.value.value).split())
    return found


def shown(value: Any) -> str:
    """A setting's default as TOML would have it."""
    if value is None:
        return "unset"
    if isinstance(value, tuple):
        return "`[" + ", ".join(f'"{each}"' for each in value) + "]`"
    return f"`{msgspec.json.encode(value).decode()}`"


def config() -> str:
    """All settings, with unit, default and reason."""
    from broker import config as module
    from gateways import configure

    texts = {**field_texts(inspect.getsource(module)), **field_texts(inspect.getsource(configure))}
    lines = [NOTE, "# Settings\n", *CONFIG_INTRODUCTION]
    tables: list[tuple[str, type[msgspec.Struct]]] = [("serve", configure.ServeOptions)]
    plain = []
    for field in msgspec.structs.fields(module.Settings):
        if isinstance(field.default, msgspec.Struct):
            tables.append((field.name, type(field.default)))
        else:
            plain.append((f"`{field.name}`", shown(field.default), texts["Settings"].get(field.name, "")))
    lines += [*table(("setting", "default", "what it is"), plain), ""]
    for name, kind in tables:
        lines += [f"## {name}\n", inspect.getdoc(kind) or "", ""]
        rows = (
            (f"`{name}.{each.name}`", shown(each.default), texts[kind.__name__].get(each.name, ""))
            for each in msgspec.structs.fields(kind)
        )
        lines += [*table(("setting", "default", "what it is"), rows), ""]
    return "\n".join(lines)


CONFIG_INTRODUCTION = [
    "`turret serve` reads them from a TOML file (`--config FILE`), then the environment, then its own options; what",
    "comes later wins. A name that is no setting is an error that says which one was probably meant. Units are in",
    "the name or the sentence.\n",
    "A dotted name is a table and a key in it; in the environment it is `TURRET_<TABLE>_<KEY>`, without the table",
    "for those of `serve`. Lists are separated by commas there.\n",
    "```toml",
    'transcripts = "parties"          # or TURRET_TRANSCRIPTS=parties',
    "",
    "[serve]",
    'bind = "127.0.0.1:8766"          # or TURRET_BIND=127.0.0.1:8766',
    "",
    "[limits]",
    "rings = 128                      # or TURRET_LIMITS_RINGS=128",
    "```\n",
]


def events() -> str:
    """The kinds of events and the members of each."""
    from broker.wire import events as module

    rows = ((f"`{kind}`", *EVENTS[kind]) for kind in module.KINDS)
    return "\n".join(
        [
            NOTE,
            "# Events\n",
            "What arrives on a key's or an agent's stream, on every door. `cursor` means \"the last one that I have\";",
            "`own` says whether this key sent it. See [wire.md](wire.md#streams).\n",
            *table(("event", "to whom", "members beside `cursor` and `own`"), rows),
            "",
            "The first answer on a stream is `resume`, with "
            + ", ".join(struct_members(module.Resume))
            + ".",
            "Its reasons: " + ", ".join(f"`{each}`" for each in module.Reason.__args__) + ".",
            "",
        ]
    )


ROW = "`conv`, `n`, `sig`, `envelope`, `chain`, `accepted_at`"
EVENTS = {
    "ring": ("the desk called", ROW),
    "env": ("both parties (a CALL: its caller alone)", ROW),
    "end": ("both parties, in place of `env`", ROW),
    "desk_moved": ("the key that held the desk", "`code`, `pk`, `moved_at`"),
    "desk_closed": ("the key that held the desk", "`code`, `closed_at`"),
    "moving": ("the desk's key, when a recovery key moves it", "`code`, `new_pk`, `effective_at`"),
    "message": ("the agent that a direct message is for", "the message, as in `get_inbox`"),
    "channel": ("a member of a channel that has news, once until it reads", "`channel_id`, `seq`"),
    "contact": (
        "the other agent of a contact request; both when it is over by itself",
        "`what` (requested, accepted, declined, cancelled, expired), `request` as in `list_contact_requests`",
    ),
    "agreement": (
        "both agents of an agreement",
        "`what` (made, revoked, expired), `agreement` as in `list_agreements`",
    ),
    "channel_message": (
        "who follows the channel",
        "`channel_id`, `seq`, `message_id`, `agent_id`, `name`, `body`, `at`, `metadata`?, `hops`?",
    ),
    "task": (
        "both agents of a task, with each change of it",
        "`what` (submitted, message, or the new state), `by`, `task` as in `list_tasks`, `parts`?",
    ),
    "task_status": ("who follows the task over A2A", "`task_id`, `context_id`, `state`, `at`, `said`?"),
    "task_artifact": ("who follows the task over A2A", "`task_id`, `context_id`, `artifact`"),
    "arena": ("an agent of which a session is over", "`session_id`, `game`, `over`, `net`, `ref`"),
    "trial": (
        "an agent of which an advance that took long has ended, or a trial is over",
        "`session_id`, `what` (advanced, finalized, expired), `version`, `outcome`, `operation_id`?, `ran`?, `ref`?",
    ),
    "notice": ("an agent that the broker or an operator has news for", "`what`, and members of its own"),
}


def struct_members(kind: type[msgspec.Struct]) -> list[str]:
    """The members of a struct as JSON has them; `?` marks those that may be left out."""
    return [
        f"`{field.encode_name}`" + ("?" if field.default is not msgspec.NODEFAULT else "")
        for field in msgspec.structs.fields(kind)
    ]


def tools() -> str:
    """Every tool of the registry."""
    from broker.app import AREAS
    from broker.tools import registry

    assert AREAS  # importing them has filled the registry
    lines = [NOTE, "# Tools\n", *TOOLS_INTRODUCTION]
    found, theirs = registry.collect(), registry.collect("operator")
    for face in dict.fromkeys(["wire", *(tool.face for tool in found.values())]):
        names = [f"[`{name}`](#{name.replace('.', '')})" for name, tool in found.items() if tool.face == face]
        lines += [f"**Of the {face}** (`/mcp/{face}`): {', '.join(names)}.\n"]
    names = [f"[`{name}`](#{name}-operators)" for name in theirs]
    lines += [f"**Of the operators** (on [their port](#tools-of-the-operators)): {', '.join(names)}.\n"]
    for name, tool in found.items():
        lines += [f"## {name}\n", *tool_lines(tool)]
    lines += ["## Tools of the operators\n", *OPERATORS_INTRODUCTION]
    for name, tool in theirs.items():
        lines += [f"### {name} (operators)\n", *tool_lines(tool)]
    return "\n".join(lines)


def tool_lines(tool: Any) -> list[str]:
    """What one tool does, takes and gives."""
    lines, required = [tool.description, ""], tool.input_schema.get("required", [])
    rows = [
        (
            f"`{param}`" + ("" if param in required else "?"),
            kind_of(schema),
            schema.get("description", ""),
        )
        for param, schema in tool.input_schema["properties"].items()
    ]
    lines += [*(table(("param", "type", "what it is"), rows) if rows else ["No params."]), ""]
    results = [each for each in tool.output_schema["properties"] if each != "refusal"]
    if results:
        lines += ["Result: " + ", ".join(f"`{each}`" for each in results) + ".", ""]
    lines += [f"Needs {needs_of(tool)}.", ""]
    hints = [
        "reads only" if tool.read_only else "changes something",
        *(["can't be undone"] if tool.destructive else []),
        *(["the same request twice has the effect of one"] if tool.idempotent and not tool.read_only else []),
        *(["may stream"] if tool.streams else []),
        *(["takes an idempotency_key"] if tool.keyed else []),
    ]
    lines += [f"*{'; '.join(hints).capitalize()}.*", ""]
    return lines


def needs_of(tool: Any) -> str:
    """What a tool asks of its caller's token."""
    if tool.face == "operator":
        return "the operators' token"
    if tool.scope is None:
        return "no token"
    whose = "an agent's token" if tool.agent else "a token"
    return f"{whose} with the scope `{tool.scope}`"


TOOLS_INTRODUCTION = [
    "The same tools stand on every door: JSON-RPC methods on the WebSocket, tools on MCP, `POST /v1/<tool>`",
    "on plain HTTP, `turret <tool>` on the command line. `?` marks what may be left out. A result may also",
    "be a [refusal](refusals.md). Tokens: [network.md](network.md#tokens-at-the-doors). Over MCP a result that",
    "has words of others in it says so: `untrusted` is true.\n",
]


OPERATORS_INTRODUCTION = [
    "They stand on the [operators' port](network.md#operators-port) alone: tools on its `/mcp`, `turret admin <tool>`",
    "on the command line. Their names are a space of their own. How to use them: [operate a",
    "broker](../how-to/operate.md).\n",
]


def kind_of(schema: dict[str, Any]) -> str:
    """A JSON Schema's type in a few words."""
    if "enum" in schema:
        return " or ".join(f"`{each}`" for each in schema["enum"])
    kind = schema.get("type", "any")
    if kind == "array":
        return f"array of {kind_of(schema.get('items', {}))}"
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is not None and high is not None:
        return f"{kind}, {low} to {high}"
    return str(kind)


def cli() -> str:
    """The commands and their options, as `--help` has them."""
    from gateways.cli import cli as group

    root = click.Context(
        group, info_name="turret", terminal_width=100, max_content_width=100, **group.context_settings
    )
    lines = [
        NOTE,
        "# The `turret` command\n",
        "```",
        group.get_help(root).rstrip(),
        "```\n",
        *CLI_INTRODUCTION,
    ]
    for name in group.list_commands(root):
        command = group.get_command(root, name)
        assert command is not None  # it is listed
        context = click.Context(
            command, parent=root, info_name=name, terminal_width=100, max_content_width=100
        )
        lines += [f"## turret {name}\n", "```", command.get_help(context).rstrip(), "```", ""]
    return "\n".join(lines)


CLI_INTRODUCTION = [
    "The common options may stand before or after the sub-command. The exit code is 0 when it went well, 1 when",
    "the wire refused or a transcript is broken, 2 for a usage or key file error, 3 when there is no connection.",
    "Every [tool](tools.md) is a command too, with `-` for `_`: `turret resolve-code --code ALFA`.\n",
]


def metrics() -> str:
    """Every figure for Prometheus."""
    from gateways.figures import FIGURES, PROCESS

    rows = (
        (f"`{figure.name}`", figure.kind, ", ".join(f"`{label}`" for label in figure.labels), figure.help)
        for figure in (*FIGURES, *PROCESS)
    )
    return "\n".join(
        [
            NOTE,
            "# Metrics\n",
            "What `GET /metrics` shows. No label holds an id, a key, a desk's code or an address. Who may read it, and",
            "what to watch: [Observe a broker](../how-to/observe.md).\n",
            *table(("name", "kind", "labels", "what it answers"), rows),
            "",
        ]
    )


def plan() -> str:
    """The plan language: prose by hand, the rest from the grammar and the examples."""
    from docs.generate_plan import page

    return page()


def pages() -> dict[str, str]:
    """File name in docs/reference/ → text."""
    makers = {
        "refusals.md": refusals,
        "call.md": call,
        "config.md": config,
        "events.md": events,
        "metrics.md": metrics,
        "tools.md": tools,
        "cli.md": cli,
        "plan.md": plan,
    }
    return {name: maker().rstrip() + "\n" for name, maker in makers.items()}


def main() -> None:
    """Write the pages."""
    for name, text in pages().items():
        (REFERENCE / name).write_text(text)
        print(f"docs/reference/{name}")


if __name__ == "__main__":
    main()
