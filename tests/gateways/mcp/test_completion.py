"""Suggestions for codes and conversations."""

from typing import Any

import msgspec
import pytest

from broker.app import Caller
from broker.wire.ids import Pk
from gateways.mcp.completion import MOST, completer
from gateways.mcp.endpoint import mcp_app
from gateways.mcp.faces import surfaces
from gateways.mcp.surface import Ask
from tests.gateways.mcp.harness import LEGACY_REVISIONS, Door
from tests.support.broker import Bench

PROMPT = {"type": "ref/prompt", "name": "make_a_call"}
DESK = {"type": "ref/resource", "uri": "turret://desk/{code}"}


@pytest.mark.requirement("mcp.completion")
@pytest.mark.parametrize(("ref", "name"), [(PROMPT, "to_code"), (DESK, "code")])
async def test_codes_of_desks_that_are_online_are_suggested(
    real: Door, bench: Bench, ref: dict[str, str], name: str
) -> None:
    for code in ("ALFA", "ALMA", "BRAV", "ALAS"):
        party = await bench.open(code)
        if code != "ALAS":
            await bench.call("wait_for_events", Caller(pk=Pk(party.pk)))
    params = {"ref": ref, "argument": {"name": name, "value": "AL"}}
    expected = {"values": ["ALFA", "ALMA"], "total": 2, "hasMore": False}
    assert (await real.modern("completion/complete", **params)).result["completion"] == expected
    for revision in LEGACY_REVISIONS:
        session = await real.session(revision)
        assert (await session.ask("completion/complete", **params)).result == {"completion": expected}


@pytest.mark.requirement("mcp.completion")
async def test_conversations_are_suggested_to_their_own_party_alone(bench: Bench) -> None:
    alfa, brav = await bench.open("ALFA"), await bench.open("BRAV")
    line = await bench.dial(alfa, brav)
    suggest = completer(bench.broker)

    async def ask(pk: str | None) -> list[str]:
        caller = Caller(pk=Pk(pk) if pk else None)
        return await suggest(Ask(caller=caller, revision="2026-07-28", meta={}), "conv", line.conv[:4])

    assert await ask(alfa.pk) == [line.conv]
    assert await ask(None) == []
    assert await ask("0" * 64) == []


async def test_no_more_than_a_hundred_are_given(bench: Bench) -> None:
    async def many(ask: Ask, name: str, prefix: str) -> list[str]:
        return [f"{prefix}{number}" for number in range(MOST + 1)]

    surface = msgspec.structs.replace(surfaces(bench.broker)[""], complete=many)
    door = Door(mcp_app(bench.broker, faces={"": surface}), bench.broker)
    params = {"ref": PROMPT, "argument": {"name": "to_code", "value": "x"}}
    found = (await door.modern("completion/complete", **params)).result["completion"]
    assert (len(found["values"]), found["total"], found["hasMore"]) == (MOST, MOST + 1, True)


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"ref": PROMPT},
        {"ref": PROMPT, "argument": {"name": "to_code"}},
        {"ref": PROMPT, "argument": {"name": "to_code", "value": 1}},
        {"ref": {"type": "ref/prompt", "name": "nothing"}, "argument": {"name": "x", "value": ""}},
        {
            "ref": {"type": "ref/resource", "uri": "turret://nothing/{x}"},
            "argument": {"name": "x", "value": ""},
        },
        {"ref": "make_a_call", "argument": {"name": "x", "value": ""}},
    ],
)
async def test_what_names_nothing_of_ours_is_invalid_params(faked: Door, params: dict[str, Any]) -> None:
    answer = await faked.modern("completion/complete", **params)
    assert (answer.status, answer.error["code"]) == (400, -32602)


async def test_an_argument_that_is_not_there_has_no_suggestions(faked: Door) -> None:
    answer = await faked.modern("completion/complete", ref=PROMPT, argument={"name": "other", "value": ""})
    assert answer.result["completion"] == {"values": [], "total": 0, "hasMore": False}
