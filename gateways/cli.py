"""`turret`: keygen, dial, answer, verify, serve, backup, and every tool of the wire as a command.

Commands are imported when they are used, so that a dealer's machine loads no server. Every error is one line.
"""

import importlib
import inspect
import sys
from collections.abc import Sequence
from typing import Any, Final

import click

from gateways.commands.common import INTERRUPTED, common_options, explain, fail, remember

_SECTIONS: Final[dict[str, dict[str, tuple[str, str]]]] = {
    "Deal": {
        "keygen": ("offline", "make a key"),
        "open-desk": ("dealing", "claim a code for your key"),
        "dial": ("dealing", "call a desk and talk"),
        "answer": ("dealing", "wait for a call, pick up and talk"),
        "tail": ("dealing", "show your key's events as they come"),
        "resolve": ("reading", "a code's public key"),
        "presence": ("reading", "which desks are online"),
        "demo": ("serving", "two desks, one deal, its proof"),
    },
    "Prove": {
        "read": ("reading", "print a conversation"),
        "export": ("reading", "a conversation as JSON Lines"),
        "verify": ("offline", "verify an exported conversation, offline"),
        "verify-page": ("verify_page", "a page that verifies in a browser, as a file"),
        "artifact": ("artifact", "what a finished session left, by its ref"),
        "arena": ("arena", "verify a finished session of the arena, offline"),
        "plan": ("plan", "check a plan of a trial, offline"),
        "grade": ("grade", "what a finished trial was worth, run again"),
        "tape": ("tape", "tapes for trials: check and import a CSV file"),
        "canonicalize": ("offline", "the bytes to sign, offline"),
    },
    "Act as an agent": {
        "agent-register": ("registering", "register your key as an agent of the network"),
        "agent-token": ("agent_token", "an access token, got by your agent's key"),
        "agent": ("agent", "an MCP server that holds your key, for a model"),
        "call": ("tools", "call any tool by its name"),
    },
    "Keep a broker": {
        "serve": ("serving", "keep a broker running"),
        "operator-token": ("operator_token", "a new token for a broker's operators"),
        "admin": ("admin", "the operators' tools"),
        "rotate-secrets-key": ("secrets_key", "another key for secrets, all sealed anew"),
        "backup": ("backup", "a copy of a broker's store, while it runs"),
        "restore": ("restore", "a store made of a backup"),
        "check": ("check", "is a store or a backup whole?"),
        "audit": ("audit", "the audit log in a file, and whether it holds"),
    },
}
"""What it is for → name → (module under gateways.commands, what `turret --help` says)."""
_COMMANDS: Final = {name: entry for section in _SECTIONS.values() for name, entry in section.items()}


class _Commands(click.Group):
    """The commands above, then the registry's tools, each loaded when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in _COMMANDS:
            module = importlib.import_module(f"gateways.commands.{_COMMANDS[cmd_name][0]}")
            command: click.Command = getattr(module, cmd_name.replace("-", "_"))
            return command
        tools = importlib.import_module("gateways.commands.tools")
        tool = tools.tools().get(cmd_name.replace("-", "_"))
        return tools.command_for(tool) if tool is not None else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name.startswith("-") or self.get_command(ctx, name) is not None:
            return super().resolve_command(ctx, args)
        listing = importlib.import_module("gateways.commands.listing")
        known = [*_COMMANDS, *(each.replace("_", "-") for each in _tools())]
        operators = importlib.import_module("gateways.commands.admin").admin
        hint = f"it is an operators' one: turret admin {name}" if operators.get_command(ctx, name) else ""
        raise listing.no_such_command(ctx, name, known, hint)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, _COMMANDS))
        for title, commands in _SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), words) for name, (_, words) in commands.items()])
        listing = importlib.import_module("gateways.commands.listing")
        tools = _tools()
        for face in dict.fromkeys(["wire", *(tool.face for tool in tools.values())]):
            rest = [t for t in tools.values() if t.face == face and listing.command_name(t) not in _COMMANDS]
            with formatter.section(f"Tools of the {face}, each a command too"):
                listing.write_topics(formatter, rest)


def _tools() -> Any:
    return importlib.import_module("gateways.commands.tools").tools()


@click.pass_context
def _root(context: click.Context, /, **values: Any) -> None:
    """Turret: trading desks and agents dial each other, deal in signed envelopes, and prove it afterwards.

    \b
    Example:
      turret keygen --out alfa.key
      turret open-desk ALFA --key alfa.key --url http://127.0.0.1:8766
    """
    remember(context, values)


cli = click.version_option(package_name="turret", message="%(version)s")(
    _Commands(
        "turret",
        callback=_root,
        params=[*common_options(environment=True)],
        help=inspect.getdoc(_root),
        context_settings={"help_option_names": ["-h", "--help"]},
    )
)


def main(arguments: Sequence[str] | None = None) -> None:
    """The console script. Never shows a traceback for what a person or a broker can cause."""
    sys.exit(run(sys.argv[1:] if arguments is None else arguments))


def run(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code."""
    try:
        code = cli.main(args=list(arguments), prog_name="turret", standalone_mode=False)
    except (KeyboardInterrupt, click.Abort):
        return INTERRUPTED
    except BrokenPipeError:
        return 0  # whoever read our output has seen enough
    except BaseException as fault:
        explained = explain(fault)
        if explained is None:
            raise
        line, code = explained
        fail(line)
        return code
    return code if isinstance(code, int) else 0


if __name__ == "__main__":
    main()
