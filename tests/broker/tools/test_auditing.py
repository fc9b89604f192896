"""What operators changed is noted with the change; what was refused, or done before, is not."""

import msgspec

from broker.actors.notes import WAITING
from broker.core.audit import AuditEvent
from tests.support.agents import make_agent
from tests.support.broker import Bench
from tests.support.registration import OPERATOR


async def noted(bench: Bench) -> list[AuditEvent]:
    """The notes that wait for their place, in order."""
    found = await bench.store.find(WAITING, "all", "1")
    return [msgspec.json.decode(each.doc, type=AuditEvent) for each in found]


async def test_what_operators_change_is_noted_with_whom_and_what(bench: Bench) -> None:
    ann, bob = str((await make_agent(bench, "Ann")).agent), str((await make_agent(bench, "Bob")).agent)
    await bench.open("ALFA")
    before = len(await noted(bench))
    for tool, params in (
        ("suspend_desk", {"code": "ALFA"}),
        ("release_desk", {"code": "ALFA"}),
        ("release_desk", {"code": "ZZZZ"}),
        ("grant_send_permission", {"from_agent_id": ann, "to_agent_id": bob}),
        ("suspend_agent", {"agent_id": ann, "reason": "spam"}),
        ("create_channel", {"name": "square", "owner_agent_id": bob}),
    ):
        await bench.call(tool, OPERATOR, **params)
    assert [(each.actor, each.kind, each.subject) for each in (await noted(bench))[before:]] == [
        ("operator", "suspend_desk", "ALFA"),
        ("operator", "release_desk", "ALFA"),
        ("operator", "grant_send_permission", ann),
        ("operator", "suspend_agent", ann),
        ("operator", "create_channel", (await noted(bench))[-1].subject),
    ]


async def test_a_request_sent_twice_is_noted_once(bench: Bench) -> None:
    ann = str((await make_agent(bench, "Ann")).agent)
    before = len(await noted(bench))
    for _ in range(2):
        await bench.call("suspend_agent", OPERATOR, agent_id=ann, reason="spam", idempotency_key="k")
    assert len(await noted(bench)) == before + 1


async def test_no_secret_is_noted(bench: Bench) -> None:
    made = await bench.call("register_agent", OPERATOR, name="Cyd")
    event = (await noted(bench))[-1]
    assert event.subject == made["agent_id"]
    assert made["credential"] not in str(event)
