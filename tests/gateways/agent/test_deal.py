"""Whole deals between two `turret agent` processes at a `turret serve` process, by the official MCP client.

The client runs on Trio; nothing in this file signs anything.
"""

from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest
import trio

from gateways import cli
from gateways.client.verify import verify_file
from tests.gateways.agent.processes import Model, Party, broker_process, model_at
from tests.support.process import Served

RAILS = ["--counterparty", "BRAV", "--cap", "qty=5000000", "--ask-before", "HIT", "--type", "RFQ,HIT,CONFIRM"]


@pytest.fixture
async def broker(tmp_path: Path) -> AsyncIterator[Served]:
    """A broker process."""
    async with broker_process(tmp_path) as broker:
        yield broker


async def connect(alfa: Model, brav: Model) -> str:
    """ALFA dials, BRAV answers."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(partial(brav, "answer"))
        call = (await alfa("dial", code="BRAV"))["call"]
    assert isinstance(call, str)
    return call


async def quoted(alfa: Model, brav: Model, call: str) -> dict[str, str]:
    """ALFA asks for a price and gets one; the QUOTE's body as ALFA's model sees it."""
    await alfa("say", call=call, type="RFQ", body={"instrument": "EURUSD", "qty": "5000000"})
    asked = await brav("wait", call=call)
    assert asked["events"][0]["body"]["qty"] == "5000000"
    await brav("say", call=call, type="QUOTE", body={"bid": "1.0841", "ask": "1.0843"})
    news = await alfa("wait", call=call)
    assert news["untrusted"] is True
    quote: dict[str, str] = news["events"][0]["body"]
    return quote


async def heard(model: Model, call: str) -> list[str]:
    """The types of all that is new in a call, up to its end."""
    types: list[str] = []
    while types[-1:] != ["END"]:
        types += [each["type"] for each in (await model("wait", call=call))["events"]]
    return types


@pytest.mark.requirement(
    "agent.deal", "agent.cap", "agent.counterparties", "agent.ask-before", "agent.types", "agent.guard-rail"
)
@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_two_models_deal_within_their_rails(broker: Served, tmp_path: Path, mode: str) -> None:
    alfa_party, brav_party, echo_party = (Party(tmp_path, broker, code) for code in ("ALFA", "BRAV", "ECHO"))
    with trio.fail_after(25):
        async with (
            model_at(alfa_party, mode, *RAILS, user=["decline", "accept"]) as alfa,
            model_at(brav_party, mode) as brav,
            model_at(echo_party, mode) as echo,
        ):
            for model, code in ((alfa, "ALFA"), (brav, "BRAV"), (echo, "ECHO")):
                assert (await model("who"))["code"] == code
            stranger = await alfa.refused("dial", code="ECHO")
            assert (stranger["code"], stranger["rule"]) == ("guard_rail", "counterparty")
            assert (await echo.refused("dial", code="ALFA"))["code"] == "conv_ended"  # declined unseen
            call = await connect(alfa, brav)
            quote = await quoted(alfa, brav, call)
            hit = {"side": "buy", "px": quote["ask"], "qty": "5000000"}
            above = await alfa.refused("say", call=call, type="HIT", body={**hit, "qty": "5000001"})
            assert (above["code"], above["rule"], above["cap"]) == ("guard_rail", "cap", "5000000")
            assert (await alfa.refused("say", call=call, type="ACCEPT"))["rule"] == "type"
            assert alfa.asked == []
            declined = await alfa.refused("say", call=call, type="HIT", body=hit)
            assert (declined["rule"], declined["answer"]) == ("ask_before", "declined")
            dealt = await alfa("say", call=call, type="HIT", body=hit)
            assert dealt["n"] == 4
            assert len(alfa.asked) == 2
            assert '"qty":"5000000"' in alfa.asked[1]
            assert '"ask":"1.0843"' in alfa.asked[1]
            await brav("wait", call=call)
            await brav("say", call=call, type="CONFIRM", body={"trade_ref": "T1", "qty": "5000000"})
            await alfa("wait", call=call)
            await alfa("say", call=call, type="CONFIRM", body={"trade_ref": "T1", "qty": "5000000"})
            await alfa("hang_up", call=call, reason="done")
            assert await heard(brav, call) == ["CONFIRM", "END"]
            for model in (alfa, brav):
                verdict = await model("verify", conv=call)
                assert (verdict["holds"], verdict["rows"], verdict["ended"]) == (True, 8, "done")
            types = [row["type"] for row in (await brav("read", conv=call))["rows"]]
            assert types == ["CALL", "PICKUP", "RFQ", "QUOTE", "HIT", "CONFIRM", "CONFIRM", "END"]
        file = tmp_path / "deal.jsonl"
        export = ["export", call, "--url", broker.http, "--wire", broker.pk, "--out", str(file)]
        assert await trio.to_thread.run_sync(cli.run, export) == 0
        assert verify_file(file).ok
    for party in (alfa_party, brav_party, echo_party):
        log = party.errors.read_text()
        assert party.key.seed not in log
        assert call not in log


@pytest.mark.requirement("agent.ask-before", "agent.guard-rail", "agent.ends")
async def test_a_client_that_can_not_ask_is_refused_and_one_that_leaves_has_hung_up(
    broker: Served, tmp_path: Path
) -> None:
    with trio.fail_after(25):
        async with model_at(Party(tmp_path, broker, "BRAV"), "auto") as brav:
            await brav("who")
            async with model_at(Party(tmp_path, broker, "ALFA"), "auto", *RAILS) as alfa:
                await alfa("who")
                call = await connect(alfa, brav)
                await quoted(alfa, brav, call)
                refusal = await alfa.refused("say", call=call, type="HIT", body={"qty": "1"})
                assert (refusal["rule"], refusal["answer"]) == ("ask_before", "cannot_ask")
                began = trio.current_time()
            assert trio.current_time() - began < 2  # what the official client allows before it kills
            assert await heard(brav, call) == ["END"]
            assert (await brav("read", conv=call))["rows"][-1]["body"] == {"reason": "hung_up"}
