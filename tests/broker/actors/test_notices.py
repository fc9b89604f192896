"""What the network itself writes into an inbox."""

import msgspec
import pytest

from broker.actors.notices import MOST, NETWORK, write_notice
from broker.actors.record import Told
from broker.app import Caller
from broker.store.port import Deliver, Unit
from tests.support.agents import make_agent
from tests.support.broker import Bench, code
from tests.support.pairs import told


async def put(bench: Bench, agent: Caller, number: int = 1) -> tuple[Told, ...]:
    """A notice in an agent's inbox, as the commit of somebody's change would bring it."""
    now = bench.clock.now_ms()
    notice = await write_notice(
        bench.store, str(agent.agent), f"msg_{number}", f"news {number}", "news", {"number": number}, now
    )
    deliver = tuple(
        Deliver(each.stream, each.kind, data=msgspec.json.encode(each.data), at=now) for each in notice.events
    )
    await bench.store.commit(Unit(puts=notice.puts, deliver=deliver))
    return notice.events


@pytest.mark.requirement("moderation.notice")
async def test_a_notice_is_a_message_from_nobody_that_is_read_like_any_other(bench: Bench) -> None:
    ann = await make_agent(bench, "Ann")
    await put(bench, ann)
    await put(bench, ann, 2)
    inbox = await bench.call("get_inbox", ann)
    assert [(each["from_agent_id"], each["body"]) for each in inbox["messages"]] == [
        (NETWORK, "news 2"),
        (NETWORK, "news 1"),
    ]
    assert inbox["unread"] == 2
    assert [each["message_id"] for each in await told(bench, ann, "message")] == ["msg_1", "msg_2"]
    assert [(each["what"], each["number"]) for each in await told(bench, ann, "notice")] == [
        ("news", 1),
        ("news", 2),
    ]
    marked = await bench.call("mark_messages_read", ann, message_ids=["msg_1"])
    assert marked["marked"] == ["msg_1"]
    await put(bench, ann, 3)  # beside the pair's actor, which has the row as it was
    assert (await bench.call("mark_messages_read", ann, message_ids=["msg_2"]))["marked"] == ["msg_2"]
    assert (await bench.call("get_inbox", ann, unread_only=True))["unread"] == 1
    answer = await bench.call("send_direct_message", ann, recipient_agent_id=NETWORK, body="thanks")
    assert code(answer) in ("bad_request", "agreement_required")


@pytest.mark.requirement("moderation.notice")
async def test_an_inbox_keeps_so_many_of_them(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    ann = await make_agent(bench, "Ann")
    assert MOST >= 100
    monkeypatch.setattr("broker.actors.notices.MOST", 2)
    for number in range(1, 5):
        await put(bench, ann, number)
    inbox = await bench.call("get_inbox", ann)
    assert [each["message_id"] for each in inbox["messages"]] == ["msg_4", "msg_3"]
    assert inbox["unread"] == 2
