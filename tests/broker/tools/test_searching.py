"""One agent's searches at once, and others beside them."""

from typing import Any

import pytest
import trio

from broker.tools.searching import TOO_MANY, WAITING, Searching
from tests.support.agents import make_agent
from tests.support.broker import Bench, code
from tests.support.resources import found, publish


@pytest.mark.requirement("resource.search-fair")
async def test_an_agent_that_searches_without_end_is_in_nobodys_way(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann, bob = await make_agent(bench, "Ann"), await make_agent(bench, "Bob")
    await publish(bench, ann)
    looked, gate, answers = bench.store.search, trio.Event(), list[Any]()
    at_once = [0, 0]

    async def slow(*args: Any) -> Any:
        at_once[0] += 1
        at_once[1] = max(at_once)
        await gate.wait()
        at_once[0] -= 1
        return await looked(*args)

    async def search() -> None:
        answers.append(await bench.call("search_resources", ann, q="rates"))

    monkeypatch.setattr(bench.store, "search", slow)
    async with trio.open_nursery() as nursery:
        for _ in range(30):
            nursery.start_soon(search)
        await trio.testing.wait_all_tasks_blocked()
        assert [code(each) for each in answers] == ["rate_limited"] * (29 - WAITING)
        assert at_once == [1, 1]
        monkeypatch.setattr(bench.store, "search", looked)
        assert await found(bench, bob, "rates") == ["Rates"]
        gate.set()
    assert len(answers) == 30
    assert sum("resources" in each for each in answers if isinstance(each, dict)) == WAITING + 1


@pytest.mark.requirement("resource.search-fair")
async def test_who_leaves_the_line_leaves_nothing() -> None:
    searching, said = Searching(), list[object]()

    async def turn() -> None:
        async with searching.turn("ag_1") as no:
            said.append(no)
            await trio.sleep_forever()

    async with trio.open_nursery() as nursery:
        for _ in range(WAITING + 1):
            nursery.start_soon(turn)
        await trio.testing.wait_all_tasks_blocked()
        async with searching.turn("ag_1") as no:
            assert no is TOO_MANY
        async with searching.turn("ag_2") as no:
            assert no is None
        assert (said, len(searching)) == ([None], 1)
        nursery.cancel_scope.cancel()
    assert len(searching) == 0
