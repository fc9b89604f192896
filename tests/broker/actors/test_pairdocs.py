"""What stands beside a pair's row."""

import pytest

from broker.actors.agent import Suspend
from broker.actors.agentdocs import present
from broker.actors.pairdocs import permission, put_message, put_request
from broker.core.agreement import Request
from broker.core.loops import Trace
from broker.core.message import MessageRow
from tests.support.agents import make_agent
from tests.support.broker import Bench
from tests.support.pairs import agree


def test_a_request_that_waits_for_an_owner_is_found_by_the_owner() -> None:
    request = Request("cr_1", "a", "b", "p", ("message",), 30, 1, 100, owner_id="ow_1")
    assert ("owner-waits", "ow_1") in put_request(request, 0).index
    ended = Request("cr_1", "a", "b", "p", ("message",), 30, 1, 100, owner_id="ow_1", status="declined")
    assert {name for name, _ in put_request(ended, 1).index} == {"in", "out", "in.declined", "out.declined"}


def test_a_message_that_was_read_leaves_the_unread_ones() -> None:
    unread = MessageRow("msg_1", "a", "b", "text", 5, Trace("msg_1", 5))
    read = MessageRow("msg_1", "a", "b", "text", 5, Trace("msg_1", 5), read_at=9)
    assert ("unread", "b") in put_message(unread, 0).index
    assert ("unread", "b") not in put_message(read, 1).index
    assert ("inbox", "b") in put_message(read, 1).index


@pytest.mark.requirement("agreement.allows", "agreement.silent")
async def test_others_may_ask_what_an_agreement_allows_now(bench: Bench) -> None:
    ann, bob = await make_agent(bench, "Ann"), await make_agent(bench, "Bob")
    one, other, now = str(ann.agent), str(bob.agent), bench.clock.now_ms()
    assert await permission(bench.store, one, other, "task", now) is None
    await agree(bench, ann, bob, scopes=["task"])
    now = bench.clock.now_ms()
    assert await permission(bench.store, one, other, "task", now) is not None
    assert await permission(bench.store, other, one, "task", now) is not None
    assert await permission(bench.store, one, other, "message", now) is None
    await bench.broker._services.house.ask("agent", other, Suspend("spam"))
    assert await present(bench.store, other, now) is None
    assert await permission(bench.store, one, other, "task", now) is None
