"""How commands are listed, and what is said of one that there is not."""

import click
import pytest

from broker.app import AREAS, Tool
from broker.tools.registry import collect
from gateways.commands.listing import ABOUT, by_topic, no_such_command, write_topics

assert AREAS


def tools() -> list[Tool]:
    return [*collect().values(), *collect("operator").values()]


@pytest.mark.requirement("cli.tools")
def test_each_area_of_the_tools_has_a_topic_and_each_tool_stands_once() -> None:
    assert {tool.area for tool in tools()} == set(ABOUT)
    topics = by_topic(collect().values())
    assert sorted(tool.name for those in topics.values() for tool in those) == sorted(collect())
    assert list(by_topic(collect("operator").values()))[-1] == "webhooks"


@pytest.mark.requirement("cli.tools")
@pytest.mark.parametrize("width", [60, 80, 120])
def test_no_name_is_broken_at_a_hyphen_or_hidden_by_the_width(width: int) -> None:
    formatter = click.HelpFormatter(width=width)
    with formatter.section("Tools"):
        write_topics(formatter, collect().values())
    shown = formatter.getvalue()
    assert max(map(len, shown.splitlines())) <= width
    named = shown.replace(",", " ").split()
    for name in collect():
        assert name.replace("_", "-") in named


@pytest.mark.requirement("cli.errors")
@pytest.mark.parametrize(
    ("name", "hint", "said"),
    [
        ("lst_agents", "", "No such command 'lst_agents'; did you mean list-agents?"),
        ("none", "", "No such command 'none'"),
        ("list-agent", "elsewhere", "No such command 'list-agent'; elsewhere"),
    ],
)
def test_what_was_meant_is_guessed(name: str, hint: str, said: str) -> None:
    context = click.Context(click.Command("x"))
    assert no_such_command(context, name, ["list-agents", "whoami"], hint).message == said
