"""Every tool of the registry as a command."""

import json

import pytest
import trio

from broker.wire.keys import SigningKey
from gateways.client.connect import connect
from gateways.commands.params import option_name
from gateways.commands.tools import command_for, tools
from tests.gateways.client.live import Live
from tests.gateways.commands.conftest import Turret


@pytest.fixture
async def key(turret: Turret) -> str:
    """The path of ALFA's key file."""
    return await trio.to_thread.run_sync(turret.key, "alfa")


def takes_a_list(name: str) -> bool:
    properties = tools()[name].input_schema["properties"].values()
    if name in ("screen_desk", "presence"):  # a statement's lists; a command of its own
        return name == "screen_desk"
    return any(each.get("type") == "array" for each in properties)


@pytest.mark.requirement("cli.tools")
@pytest.mark.parametrize("name", sorted(tools()))
def test_every_tool_has_a_command_with_its_params_as_options(turret: Turret, name: str) -> None:
    ran = turret.run(name.replace("_", "-"), "--help")
    assert ran.code == 0
    assert f"turret {name.replace('_', '-')}" in ran.out
    assert ("(may be repeated)" in " ".join(ran.out.split())) == takes_a_list(name)
    command = command_for(tools()[name])
    options = {option for parameter in command.params for option in parameter.opts}
    signed = {"statement", "sig", "new_sig"} if "statement" in tools()[name].params else set()
    for param in set(tools()[name].params) - signed:
        assert option_name(param) in options


@pytest.mark.requirement("cli.tools", "cli.json")
async def test_a_tool_is_called_by_its_own_name_or_by_call(live: Live, turret: Turret) -> None:
    info = await turret("wire-info", "--json")
    assert info.json["wire"] == live.wire
    again = await turret("call", "wire_info")
    assert again.json["wire"] == live.wire
    assert "\n" in again.out.strip()
    refused = await turret("call", "resolve-code", "--params", '{"code":"NONE"}')
    assert (refused.code, refused.err) == (1, "turret: unknown_desk: no desk answers to NONE\n")
    assert (await turret("resolve-code", "--code", "NONE")).code == 1


@pytest.mark.requirement("cli.tools")
async def test_statements_are_signed_by_the_key(live: Live, turret: Turret, key: str) -> None:
    opened = await turret("call", "open_desk", "--params", '{"code":"ALFA"}', "--key", key)
    assert opened.json["code"] == "ALFA"
    assert (await turret("list-convs", "--key", key)).json == {"convs": []}
    assert (await turret("list-convs", "--key", key, "--state", "open", "--limit", "3")).code == 0
    screened = await turret(
        "screen-desk", "--code", "ALFA", "--mode", "known", "--deny", "ab" * 32, "--key", key
    )
    assert (screened.code, screened.err) == (0, "")
    closed = await turret(
        "close-desk", "--code", "ALFA", "--key", key, "--url", live.mcp, "--wire", live.wire
    )
    assert closed.code == 0
    assert (await turret("resolve", "ALFA")).code == 1


@pytest.mark.requirement("cli.tools")
async def test_a_desk_is_moved_with_both_signatures(live: Live, turret: Turret, key: str) -> None:
    await turret("open-desk", "ALFA", "--key", key)
    successor = await trio.to_thread.run_sync(turret.key, "new")
    moved = await turret("move-desk", "--code", "ALFA", "--new-key", successor, "--key", key)
    assert (moved.code, moved.err) == (0, "")
    async with connect(live.dealing, successor, live.wire) as desk:
        assert await desk.resolve("ALFA") == desk.pk


async def test_an_envelope_goes_in_as_it_was_written(live: Live, turret: Turret) -> None:
    text = json.dumps({"conv": "00" * 8, "n": 1.0, "type": "X"}).replace("1.0", "1.50")
    ran = await turret("call", "canonicalize", "--params", f'{{"envelope":{text}}}')
    assert "n" in json.dumps(ran.json["refusals"])
    assert "1.5" in ran.json["canonical"]


async def test_an_object_comes_from_a_file(live: Live, turret: Turret) -> None:
    await trio.Path("params.json").write_text('{"code":"NONE"}')
    assert (await turret("call", "resolve_code", "--params", "@params.json")).code == 1


@pytest.mark.requirement("cli.errors")
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("call", "nothing"), "there is no tool nothing; turret --help lists them"),
        (("call", "resolve-cod"), "there is no tool resolve-cod; did you mean resolve_code"),
        (("call", "wire_info", "--params", "[1]"), "no JSON object"),
        (("call", "wire_info", "--params", "{"), "no JSON object"),
        (("resolve-code",), "Missing option '--code'"),
        (("resolve-code", "--cod", "ALFA"), "No such option"),
        (("nothing",), "No such command 'nothing'"),
        (("call", "wire_info", "--params", "@none"), "none: No such file"),
    ],
)
def test_wrong_usage_is_one_line_and_exit_2(turret: Turret, arguments: tuple[str, ...], words: str) -> None:
    ran = turret.run(*arguments)
    assert ran.code == 2
    assert words in ran.err
    assert ran.err.startswith("turret: ")
    assert ran.err.count("\n") == 1


async def test_a_tool_that_needs_a_proof_says_so_without_a_key(live: Live, turret: Turret) -> None:
    ran = await turret("list-convs")
    assert ran.code == 1
    assert ran.err.startswith("turret: unauthenticated: ")


async def test_what_a_stranger_signs_is_refused(live: Live, turret: Turret, key: str) -> None:
    async with connect(live.dealing, SigningKey.generate(), live.wire) as desk:
        await desk.open("ALFA")
        ran = await turret("close-desk", "--code", "ALFA", "--key", key)
        assert ran.err.startswith("turret: not_a_party: ")
