"""Agents that have agreed, and what their streams and inboxes hold."""

import json
from typing import Any

from broker.actors.actor import Letter, Reply
from broker.actors.calls import agent_stream
from broker.app import Caller
from broker.core.agreement import pair_key
from broker.wire.refusals import Refusal
from tests.support.broker import Bench


async def ask(bench: Bench, asker: Caller, target: Caller, **params: Any) -> Any:
    """A contact request; the answer."""
    return await bench.call(
        "request_contact", asker, target_agent_id=target.agent, **{"purpose": "to talk", **params}
    )


async def answer(bench: Bench, target: Caller, request: Any, accept: bool = True, **params: Any) -> Any:
    """The answer to the answer."""
    return await bench.call(
        "respond_to_contact_request", target, request_id=request["request_id"], accept=accept, **params
    )


async def agree(bench: Bench, one: Caller, other: Caller, **params: Any) -> str:
    """An agreement of the two; its id."""
    made = await answer(bench, other, await ask(bench, one, other, **params))
    assert not isinstance(made, Refusal), made
    return str(made["agreement_id"])


async def send(bench: Bench, sender: Caller, recipient: Caller, body: str = "hello", **params: Any) -> Any:
    """A direct message; the answer."""
    return await bench.call(
        "send_direct_message", sender, recipient_agent_id=recipient.agent, body=body, **params
    )


async def told(bench: Bench, caller: Caller, *kinds: str) -> list[Any]:
    """The events of these kinds on an agent's stream, oldest first."""
    assert caller.agent is not None
    found: list[Any] = []
    position = 0
    while page := await bench.store.events(agent_stream(caller.agent), position, 500):
        found += [json.loads(each.data) for each in page if each.kind in kinds]
        position = page[-1].position
    return found


async def whats(bench: Bench, caller: Caller, *kinds: str) -> list[str]:
    """What each of these events is about."""
    return [each["what"] for each in await told(bench, caller, *kinds)]


def posted(bench: Bench, one: Caller, other: Caller, command: Any) -> Reply:
    """A letter in the box of the pair's actor, in this turn; where its answer comes."""
    reply = Reply()
    actor = bench.broker._services.house.actor("pair", pair_key(str(one.agent), str(other.agent)))
    assert actor.post(Letter(command, reply.answer)) is None
    return reply
