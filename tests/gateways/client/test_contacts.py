"""Requests and agreements: listed over all pages, heard as they come, each once."""

from typing import Any

import msgspec
import pytest
import trio
from trio.testing import MockClock

from gateways.client.contacts import ContactRequest, Requests
from tests.gateways.client.conftest import OpenAgent
from tests.gateways.client.fake_network import AGENT, OTHER, FakeNetwork

MORE = {"direction": "incoming", "asked_at": 1, "expires_at": 2}
"""Members that the client has no use for."""


def row(number: int, status: str = "pending", **members: Any) -> dict[str, Any]:
    made = {
        "request_id": f"cr_{number}",
        "from_agent_id": OTHER,
        "to_agent_id": AGENT,
        "purpose": "prices",
        "scopes": ["message"],
        "ttl_days": 30,
        "status": status,
        "waits_for": "agent",
        **MORE,
    }
    return {**made, **members}


class Book:
    """Contact requests behind list_contact_requests, newest first, two a page."""

    def __init__(self, network: FakeNetwork, *rows: dict[str, Any]) -> None:
        self.rows = list(rows)
        self._network = network
        network.do_list_contact_requests = self.listed  # type: ignore[attr-defined]

    def listed(self, session: object, params: dict[str, msgspec.Raw]) -> object:
        given = {name: msgspec.json.decode(value) for name, value in params.items()}
        wanted = given.get("status")
        rows = [each for each in self.rows if wanted in (None, each["status"])]
        first = int(given.get("after", 0))
        more = {"next": str(first + 2)} if first + 2 < len(rows) else {}
        return {"requests": rows[first : first + 2], **more}

    def add(self, made: dict[str, Any], what: str = "requested") -> None:
        self.rows.insert(0, made)
        self._network.happen("contact", {"what": what, "request": made})


async def take(requests: Requests, count: int) -> list[str]:
    with trio.fail_after(60):
        return [(await anext(requests)).request_id for _ in range(count)]


@pytest.mark.requirement("client.agent-requests")
async def test_requests_that_wait_come_first_then_new_ones_each_once(
    autojump_clock: MockClock, network: FakeNetwork, agent: OpenAgent
) -> None:
    book = Book(network, row(4, waits_for="owner"), row(3), row(2, "declined"), row(1), row(0))
    async with agent() as me:
        requests = me.requests()
        assert await take(requests, 3) == ["cr_0", "cr_1", "cr_3"]
        book.add(row(5))
        network.happen("contact", {"what": "cancelled", "request": row(1, "cancelled")})
        book.add(row(6))
        await network.drop_all()
        assert await take(requests, 2) == ["cr_5", "cr_6"]
        network.epoch = "f"
        book.add(row(7))
        assert await take(requests, 1) == ["cr_7"]
        with trio.move_on_after(60):
            raise AssertionError(await anext(requests))


@pytest.mark.requirement("client.agent-requests")
async def test_cancelling_while_they_are_listed_loses_none(
    autojump_clock: MockClock, network: FakeNetwork, agent: OpenAgent
) -> None:
    Book(network, row(1))
    async with agent() as me:
        requests = me.requests()
        network.script("list_contact_requests", "swallow")
        with trio.move_on_after(1):
            raise AssertionError(await anext(requests))
        assert await take(requests, 1) == ["cr_1"]


@pytest.mark.requirement("client.agent-requests")
@pytest.mark.parametrize("lost", [False, True])
async def test_the_outcome_of_a_request_is_waited_for(
    autojump_clock: MockClock, network: FakeNetwork, agent: OpenAgent, lost: bool
) -> None:
    book = Book(network, row(2), row(1), row(0))

    async def answer() -> None:
        await trio.sleep(50)
        network.happen("contact", {"what": "accepted", "request": row(1, "accepted")})
        await trio.sleep(50)
        if lost:
            network.epoch = "f"
            await network.drop_all()
        book.rows[2] = row(0, "accepted", agreement_id="agr_1")
        network.happen("contact", {"what": "accepted", "request": book.rows[2]})

    async with agent() as me:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(answer)
            with trio.fail_after(200):
                outcome = await me.outcome(msgspec.convert(row(0), ContactRequest))
        assert (outcome.status, outcome.agreement_id) == ("accepted", "agr_1")
        assert trio.current_time() >= 100
        assert await me.outcome(outcome) is outcome
        assert (await me.outcome(msgspec.convert(row(0), ContactRequest))).status == "accepted"


async def test_agreements_are_listed_over_all_pages(
    autojump_clock: MockClock, network: FakeNetwork, agent: OpenAgent
) -> None:
    def made(number: int) -> dict[str, Any]:
        return {
            "agreement_id": f"agr_{number}",
            "counterpart": {"agent_id": OTHER, "name": "brav"},
            "scopes": ["message"],
            "status": "active",
            "irc_accounts": [],
        }

    def listed(session: object, params: dict[str, msgspec.Raw]) -> object:
        first = {"agreements": [made(2)], "next": "x"}
        return first if "after" not in params else {"agreements": [made(1)]}

    network.do_list_agreements = listed  # type: ignore[attr-defined]
    async with agent() as me:
        found = await me.contacts()
    assert [each.agreement_id for each in found] == ["agr_2", "agr_1"]
    assert (found[0].counterpart.name, found[0].direction) == ("brav", "both")
