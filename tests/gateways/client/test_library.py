"""The library through the client: what is asked, and what is not believed."""

import hashlib
from typing import Any

import pytest
from trio.testing import MockClock

from gateways.client.errors import Refused, WireFault
from gateways.client.library import Library
from tests.gateways.client.conftest import OpenAgent
from tests.gateways.client.fake_network import FakeNetwork
from tests.support.agents import make_agent
from tests.support.broker import Bench

ID = "rs_01JZ6M5VQW8T3N4R2P7X9Y0ABC"


class Asked:
    """Answers as the broker of a test does, or as it is told."""

    def __init__(self, bench: Bench, caller: Any) -> None:
        self._bench = bench
        self._caller = caller
        self.changed: dict[str, Any] = {}
        """Members of read_resource's answer that are changed on the way."""

    async def __call__(self, tool: str, *, wait_s: float = 0, **params: Any) -> dict[str, Any]:
        given = {name: value for name, value in params.items() if value is not None}
        answer = await self._bench.call(tool, self._caller, **given)
        if hasattr(answer, "code"):
            raise Refused(answer)
        return {**answer, **(self.changed if tool == "read_resource" else {})}


@pytest.mark.requirement("resource.client")
async def test_it_publishes_finds_reads_changes_and_deletes(bench: Bench) -> None:
    ann, bob = await make_agent(bench, "Ann"), await make_agent(bench, "Bob")
    mine, others = Library(Asked(bench, ann)), Library(Asked(bench, bob))
    made = await mine.publish("FX rates", "EURUSD 1.0842", tags=["fx"], content_type="text/csv")
    await mine.publish("Notes", "x", access="private")
    assert made.sha256 == hashlib.sha256(b"EURUSD 1.0842").hexdigest()
    [hit] = [each async for each in others.search("rat", tag="fx", publisher=ann.agent)]
    assert (hit.resource_id, hit.can_read, hit.publisher_name, hit.sha256) == (
        made.resource_id,
        True,
        "Ann",
        None,
    )
    got = await others.read(hit.resource_id)
    assert (got.content, got.content_type, got.version, got.tags) == ("EURUSD 1.0842", "text/csv", 1, ("fx",))
    later = await mine.update(
        made.resource_id, content="EURUSD 1.0843", access="agreement", expected_version=1
    )
    assert (later.version, later.access) == (2, "agreement")
    with pytest.raises(Refused, match="agreement"):
        await others.read(made.resource_id)
    with pytest.raises(Refused) as no:
        await mine.update(made.resource_id, tags=[], expected_version=1)
    assert no.value.code == "conflict"
    assert [each.title for each in await mine.mine()] == ["Notes", "FX rates"]
    await mine.delete(made.resource_id)
    assert [each.title for each in await mine.mine()] == ["Notes"]


async def test_a_search_asks_for_pages_as_they_are_wanted(bench: Bench) -> None:
    ann = await make_agent(bench, "Ann")
    library = Library(Asked(bench, ann))
    for number in range(5):
        await library.publish(f"gold {number}", "x")
    assert [each.title async for each in library.search("gold", limit=2)] == [
        f"gold {n}" for n in (4, 3, 2, 1, 0)
    ]


@pytest.mark.requirement("resource.client")
@pytest.mark.parametrize(
    "changed",
    [{"content": "EURUSD 9"}, {"sha256": "0" * 64}, {"sha256": None}, {"resource_id": ID}, {"content": None}],
)
async def test_what_is_not_what_its_sum_says_is_not_handed_out(bench: Bench, changed: dict[str, Any]) -> None:
    asked = Asked(bench, await make_agent(bench, "Ann"))
    library = Library(asked)
    made = await library.publish("FX rates", "EURUSD 1")
    asked.changed = changed
    with pytest.raises(WireFault):
        await library.read(made.resource_id)


async def test_an_agent_has_one(autojump_clock: MockClock, network: FakeNetwork, agent: OpenAgent) -> None:
    shown = {"title": "t", "description": "", "tags": [], "content_type": "text/plain", "access": "public"}
    counted = {"publisher_agent_id": "ag_1", "size": 1, "version": 1, "created_at": 1, "updated_at": 1}
    row = {"resource_id": ID, **shown, **counted, "sha256": hashlib.sha256(b"x").hexdigest(), "content": "x"}
    network.do_read_resource = lambda session, params: row  # type: ignore[attr-defined]  # a test's tool
    async with agent() as me:
        assert (await me.library.read(ID)).content == "x"
