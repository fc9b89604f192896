"""The way to the wire: connected behind the tools' back, and said plainly where there is none."""

from typing import Any

import msgspec
import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from broker.wire.keys import SigningKey
from broker.wire.refusals import refuse
from gateways.agent.line import CONNECTED_S, Line, line_to
from gateways.agent.rails import Rails
from tests.gateways.agent.conftest import Agent
from tests.gateways.agent.model import Model
from tests.gateways.client.conftest import Connect
from tests.gateways.client.fake_wire import FakeWire


def types(wire: FakeWire, conv: str) -> list[str]:
    return [msgspec.json.decode(row["envelope"])["type"] for row in wire.convs[conv]]


@pytest.mark.requirement("agent.connects")
async def test_without_a_connection_the_tools_say_unavailable_and_it_is_tried_again(
    autojump_clock: MockClock, wire: FakeWire, agent: Agent
) -> None:
    wire.refuse_connections = 8
    async with agent(Rails(code="ALFA")) as model:
        assert (await model("who"))["connected"] is False
        began = trio.current_time()
        refusal = await model.refused("wait", wait_ms=0)
        assert refusal["code"] == "unavailable"
        assert refusal["retryable"] is True
        assert trio.current_time() - began == CONNECTED_S
        while not (await model("who"))["connected"]:  # noqa: ASYNC110  # what a model would do
            await trio.sleep(1)
        assert (await model("who"))["code"] == "ALFA"
        assert wire.connections == 9


@pytest.mark.requirement("agent.connects")
async def test_a_wire_with_another_key_ends_the_dealing_for_good(
    autojump_clock: MockClock, wire: FakeWire, agent: Agent
) -> None:
    wire.shown_pk = "00" * 32
    async with agent(Rails(code="ALFA")) as model:
        for tool, arguments in (("wait", {}), ("dial", {"code": "BRAV"}), ("read", {"conv": "c0" * 8})):
            assert (await model.refused(tool, **arguments))["code"] == "wire_fault"
        who = await model("who")
        assert who["ended"]["code"] == "wire_fault"
        assert who["connected"] is False
        assert wire.connections == 1
        assert wire.requests == []


@pytest.mark.requirement("agent.connects")
async def test_a_wire_that_lies_later_ends_the_dealing_too(
    autojump_clock: MockClock,
    wire: FakeWire,
    agent: Agent,
    brav: SigningKey,
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with agent() as model:
        await wire.ring(brav, "ALFA")
        call = (await model("answer"))["call"]
        await wire.say(brav, call, "RFQ")
        await model("wait", call=call)
        wire.events[model.line.own].append(("env", {**wire.events[model.line.own][-1][1], "sig": "00" * 64}))
        await wire.push()
        await wait_all_tasks_blocked()
        refusal = await model.refused("say", call="d0" * 8, type="QUOTE")
        assert refusal["code"] == "wire_fault"
        assert call in refusal["message"]
        assert "two different envelopes" in caplog.text
        assert call not in caplog.text


@pytest.mark.requirement("agent.connects")
@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("wait", {}),
        ("wait", {"call": "c0" * 8}),
        ("answer", {}),
        ("dial", {"code": "BRAV"}),
        ("say", {"call": "c0" * 8, "type": "QUOTE"}),
        ("hang_up", {"call": "c0" * 8}),
        ("open_desk", {"code": "ALFA"}),
        ("read", {"conv": "c0" * 8}),
        ("verify", {"conv": "c0" * 8}),
    ],
)
async def test_a_tool_that_is_waiting_when_the_dealing_ends_says_so_soon(
    autojump_clock: MockClock,
    wire: FakeWire,
    agent: Agent,
    brav: SigningKey,
    tool: str,
    arguments: dict[str, Any],
) -> None:
    async with agent() as model:
        call = await wire.ring(brav, "ALFA")
        await model("answer")
        await wire.say(brav, call, "RFQ")
        await model("wait")
        known = wire.events[model.line.own][-1][1]
        for method in ("send_env", "read_conv", "open_desk"):
            wire.script(method, *["swallow"] * 20)
        async with trio.open_nursery() as nursery:

            async def lie() -> None:
                await trio.sleep(1)
                wire.events[model.line.own].append(("env", {**known, "sig": "00" * 64}))
                await wire.push()

            nursery.start_soon(lie)
            began = trio.current_time()
            assert (await model.refused(tool, **arguments))["code"] == "wire_fault"
            assert trio.current_time() - began < 7


@pytest.mark.requirement("agent.code")
async def test_the_desk_of_the_settings_is_opened_at_the_start(
    autojump_clock: MockClock, wire: FakeWire, agent: Agent, alfa: SigningKey
) -> None:
    async with agent(Rails(code="ALFA")) as model:
        assert (await model("who"))["code"] == "ALFA"
        assert wire.desks["ALFA"] == alfa.pk


@pytest.mark.requirement("agent.code")
async def test_a_desk_that_can_not_be_opened_is_told_of_and_may_be_tried_again(
    autojump_clock: MockClock, wire: FakeWire, agent: Agent
) -> None:
    wire.script("open_desk", refuse("code_taken", "another desk holds this code"))
    async with agent(Rails(code="ALFA")) as model:
        who = await model("who")
        assert (who["code"], who["desk_refused"]["code"]) == (None, "code_taken")
        assert (await model.refused("dial", code="BRAV"))["code"] == "unknown_desk"
        assert (await model("open_desk", code="ALFA"))["code"] == "ALFA"
        assert "desk_refused" not in await model("who")


@pytest.mark.requirement("agent.counterparties")
async def test_a_ring_from_a_stranger_is_declined_and_not_shown(
    autojump_clock: MockClock, wire: FakeWire, agent: Agent, brav: SigningKey
) -> None:
    async with agent(Rails(counterparties=frozenset({"ECHO"}))) as model:
        conv = await wire.ring(brav, "ALFA")
        assert await model("wait", wait_ms=1000) == {"untrusted": True, "events": [], "calls": []}
        assert (await model("who"))["rings"] == []
        assert types(wire, conv) == ["CALL", "END"]
        assert (await model.refused("answer", call=conv))["code"] == "unknown_conv"


async def test_a_ring_that_is_over_before_anybody_looked_is_left_out(
    autojump_clock: MockClock, wire: FakeWire, agent: Agent, brav: SigningKey
) -> None:
    async with agent() as model:
        conv = await wire.ring(brav, "ALFA")
        await wire.say(brav, conv, "END")
        await wait_all_tasks_blocked()
        assert (await model("answer", wait_ms=100))["ring"] is None
        assert (await model("who"))["rings"] == []


@pytest.mark.requirement("agent.ends")
@pytest.mark.parametrize("script", [[], ["swallow"] * 20], ids=["a wire that answers", "a silent wire"])
async def test_cancelling_hangs_up_in_bounded_time(
    autojump_clock: MockClock,
    wire: FakeWire,
    dealer: Connect,
    alfa: SigningKey,
    brav: SigningKey,
    script: list[Any],
) -> None:
    line = Line(dealer, alfa.pk, Rails())
    model = Model(line)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(line.run)
        await model("open_desk", code="ALFA")
        conv = await wire.ring(brav, "ALFA")
        await model("answer")
        await wait_all_tasks_blocked()
        wire.script("send_env", *script)
        began = trio.current_time()
        nursery.cancel_scope.cancel()
    assert trio.current_time() - began < 4
    assert types(wire, conv) == ["CALL", "PICKUP", "END"][: 2 if script else 3]


async def test_a_line_to_an_address_has_the_keys_pk() -> None:
    key = SigningKey.generate()
    line = line_to("http://127.0.0.1:1", key, "00" * 32, Rails())
    assert line.own == key.pk
    assert line.present is None
