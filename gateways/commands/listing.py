"""How commands are listed, by what they are about, and what was meant where a name is none."""

import difflib
import textwrap
from collections.abc import Iterable, Mapping
from typing import Final

import click

from broker.app import Tool

ABOUT: Final[Mapping[str, str]] = {
    "agreements": "agreements",
    "arena": "arena",
    "audits": "audit",
    "bindings": "IRC accounts",
    "channels": "channels",
    "directory": "desks and calls",
    "endpoints": "tasks",
    "grading": "trials",
    "identity": "agents",
    "messages": "messages",
    "moderation": "reports",
    "operators": "agents",
    "owner_accounts": "owners",
    "permissions": "agreements",
    "reports": "reports",
    "resources": "resources",
    "secret_store": "secrets",
    "streams": "events",
    "switchboard": "desks and calls",
    "tape_sources": "tapes",
    "tapes": "tapes",
    "task_pushes": "tasks",
    "tasks": "tasks",
    "transcripts": "desks and calls",
    "trials": "trials",
    "webhooks": "webhooks",
    "wire": "desks and calls",
}
"""A tool's area → what its commands are about, for people."""
_COLUMN: Final = 17


def by_topic(tools: Iterable[Tool]) -> dict[str, list[Tool]]:
    """Tools by what they are about, both in order of name."""
    topics: dict[str, list[Tool]] = {}
    for tool in sorted(tools, key=lambda each: (ABOUT[each.area].lower(), each.name)):
        topics.setdefault(ABOUT[tool.area], []).append(tool)
    return topics


def command_name(tool: Tool) -> str:
    """What a tool's command is called."""
    return tool.name.replace("_", "-")


def write_topics(formatter: click.HelpFormatter, tools: Iterable[Tool]) -> None:
    """A paragraph a topic: the names of its commands. No name is broken at a hyphen."""
    for topic, those in by_topic(tools).items():
        indent = " " * formatter.current_indent
        filled = textwrap.fill(
            ", ".join(map(command_name, those)),
            formatter.width,
            initial_indent=f"{indent}{topic:<{_COLUMN}}",
            subsequent_indent=indent + " " * _COLUMN,
            break_on_hyphens=False,
        )
        formatter.write(filled + "\n")


def no_such_command(
    context: click.Context, name: str, known: Iterable[str], hint: str = ""
) -> click.UsageError:
    """The error for a command that there is not; it says what was meant, as far as that can be guessed."""
    near = [] if hint else difflib.get_close_matches(name.replace("_", "-"), list(known), n=2)
    guess = hint or (f"did you mean {' or '.join(near)}?" if near else "")
    return click.UsageError(f"No such command {name!r}{f'; {guess}' if guess else ''}", context)
