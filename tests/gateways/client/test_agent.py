"""What an agent asks for is done once, refused in types, and takes a key where it changes something."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
import trio
from trio.testing import MockClock

from broker.app import AREAS
from broker.tools.registry import collect
from broker.wire.keys import SigningKey
from broker.wire.refusals import refuse
from gateways.client.agent import READS, open_agent
from gateways.client.errors import Disconnected, Refused
from gateways.client.inbox import Message
from gateways.keyfile import KeyFileError
from tests.gateways.client.conftest import OpenAgent
from tests.gateways.client.fake_issuer import ORIGIN, FakeIssuer
from tests.gateways.client.fake_network import AGENT, OTHER, FakeNetwork


def params_of(text: bytes) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.json.decode(text)
    return found


@pytest.mark.requirement("client.agent-once")
async def test_a_change_keeps_its_key_over_lost_answers_and_passing_refusals(
    autojump_clock: MockClock, network: FakeNetwork, agent: OpenAgent
) -> None:
    async with agent() as me:
        network.script(
            "send_direct_message",
            "lose answer",
            "break after",
            "break before",
            refuse("in_doubt", "?"),
            refuse("rate_limited", "slowly", retry_after_ms=4000),
            refuse("unavailable", "!"),
        )
        with trio.fail_after(120):
            sent = await me.send(OTHER, "hello")
        assert sent.to_agent_id == OTHER
        asked = network.sent("send_direct_message")
        assert (len(asked), len(set(asked)), len(network.effects)) == (7, 1, 1)
        await me.send(OTHER, "hello")
        assert len(network.effects) == 2
        for _ in range(2):
            await me.send(OTHER, "hello", idempotency_key="mine")
        assert len(network.effects) == 3


@pytest.mark.requirement("client.agent-once")
def test_the_client_knows_which_tools_take_a_key() -> None:
    """A tool that breaks the rule is added to READS, or renamed. What is signed has its own way (Desk.act)."""
    assert AREAS
    wrong = [
        tool.name
        for tool in collect().values()
        if tool.keyed == tool.name.startswith(READS) and (tool.keyed or tool.read_only)
    ]
    assert wrong == []


async def test_reads_take_no_key_and_a_param_that_is_none_is_left_out(
    autojump_clock: MockClock, network: FakeNetwork, agent: OpenAgent
) -> None:
    async with agent() as me:
        await me.call("whoami", nothing=None)
    assert network.sent("whoami") == [b"{}"]


async def test_a_final_refusal_is_raised_where_it_was_asked_for(
    autojump_clock: MockClock, network: FakeNetwork, agent: OpenAgent
) -> None:
    async with agent() as me:
        network.script("send_direct_message", refuse("quota_exceeded", "stopped", reason="loop", hops=49))
        with pytest.raises(Refused) as no:
            await me.send(OTHER, "and you?")
        assert (no.value.code, no.value.reason) == ("quota_exceeded", "loop")
        assert len(network.sent("send_direct_message")) == 1
        network.script("send_direct_message", refuse("agreement_required", "no"))
        with pytest.raises(Refused) as no:
            await me.send(OTHER, "hello")
        assert no.value.reason is None


async def test_a_reply_names_what_it_answers_and_read_marks_go_in_parts(
    autojump_clock: MockClock, network: FakeNetwork, agent: OpenAgent
) -> None:
    network.do_mark_messages_read = lambda session, params: {"marked": [], "missing": []}  # type: ignore[attr-defined]
    async with agent() as me:
        await me.reply(Message("msg_9", OTHER, "brav", "?", 1), "!")
        await me.mark_read(*(f"msg_{number}" for number in range(450)))
        await me.mark_read()
    (reply,) = network.sent("send_direct_message")
    given = params_of(reply)
    key = given.pop("idempotency_key")
    assert given == {"recipient_agent_id": OTHER, "body": "!", "in_reply_to": "msg_9"}
    async with agent() as me:
        for body in ("!", "!!"):
            await me.reply(Message("msg_9", OTHER, "brav", "?", 1), body)
    keys = [params_of(each)["idempotency_key"] for each in network.sent("send_direct_message")[1:]]
    assert (keys[0], len({key, *keys})) == (key, 2)
    marks = [params_of(each)["message_ids"] for each in network.sent("mark_messages_read")]
    assert [len(each) for each in marks] == [200, 200, 50]


@pytest.mark.parametrize(
    ("run", "tool", "given"),
    [
        (
            lambda me: me.request_contact(OTHER, "prices"),
            "request_contact",
            {"target_agent_id": OTHER, "purpose": "prices"},
        ),
        (
            lambda me: me.request_contact(OTHER, "prices", ["message", "channel"], 7),
            "request_contact",
            {"target_agent_id": OTHER, "purpose": "prices", "scopes": ["message", "channel"], "ttl_days": 7},
        ),
        (lambda me: me.revoke("agr_1"), "revoke_agreement", {"agreement_id": "agr_1"}),
        (
            lambda me: me.create_channel("desk-talk", private=True, topic="x"),
            "create_channel",
            {"name": "desk-talk", "is_private": True, "topic": "x"},
        ),
    ],
)
async def test_what_an_agent_does_is_the_tool_of_that_name(
    autojump_clock: MockClock,
    network: FakeNetwork,
    agent: OpenAgent,
    run: Any,
    tool: str,
    given: dict[str, Any],
) -> None:
    answer = {
        "request_id": "cr_1", "from_agent_id": AGENT, "to_agent_id": OTHER, "purpose": "p", "scopes": ["message"],
        "ttl_days": 1, "status": "pending", "channel_id": "ch_1",
    }  # fmt: skip
    setattr(network, f"do_{tool}", lambda session, params: answer)
    async with agent() as me:
        await run(me)
    (asked,) = network.sent(tool)
    found = params_of(asked)
    assert found.pop("idempotency_key")
    assert found == given


async def test_the_agents_key_deals_too(
    autojump_clock: MockClock, network: FakeNetwork, agent: OpenAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over a connection of its own, proved by the key."""
    from tests.gateways.client.fake_wire import FakeWire

    monkeypatch.setattr(network, "do_authenticate", lambda session, params: _either(network, session, params))
    monkeypatch.setattr(
        network, "do_follow", lambda session, params: FakeWire.do_follow(network, session, params)
    )
    async with agent() as me, me.dealer("ALFA") as desk:
        assert (desk.code, desk.pk) == ("ALFA", me.pk)
    assert network.connections == 2


def _either(network: FakeNetwork, session: Any, params: dict[str, msgspec.Raw]) -> object:
    from tests.gateways.client.fake_wire import FakeWire

    kind = FakeNetwork if "token" in params else FakeWire
    return kind.do_authenticate(network, session, params)


async def test_a_token_for_other_clients_is_to_be_had_and_without_the_scope_nothing_is_listened_to(
    autojump_clock: MockClock, network: FakeNetwork, agent: OpenAgent
) -> None:
    async with agent(scopes=["profile"]) as me:
        assert await me.token() == "token-1"
    assert network.sent("wait_for_events") == []


async def test_the_first_failure_is_raised_and_later_ones_are_mended(
    autojump_clock: MockClock, network: FakeNetwork, agent: OpenAgent, issuer: FakeIssuer
) -> None:
    network.refuse_connections = 1
    with pytest.raises(Disconnected, match="refused"):
        async with agent():
            pass
    async with agent() as me:
        network.refuse_connections = 3
        await network.drop_all()
        with trio.fail_after(30):
            await me.whoami()


async def test_what_is_no_agent_or_no_key_is_said_at_once(
    network: FakeNetwork, agent: OpenAgent, tmp_path: Path, alfa: SigningKey
) -> None:
    with pytest.raises(ValueError, match="no agent's id"):
        async with agent("alfa"):
            pass
    with pytest.raises(KeyFileError):
        async with open_agent(ORIGIN, tmp_path / "none.key"):
            pass
    with pytest.raises(ValueError, match="without TLS"):
        async with open_agent("ftp://wire.test", alfa, AGENT):
            pass
