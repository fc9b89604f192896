"""Every keyed tool has its effect and what is remembered of it in one commit: whatever becomes of commits and callers,
the identical request has one effect and one answer (network.md, Idempotency).

KEYED_STEPS sets after how many steps of its call a caller leaves at most (8 here, more in soak).
"""

import json
import os
from collections import Counter
from itertools import product
from typing import Any, Final

import msgspec
import pytest
import trio

from broker.app import Caller
from broker.store.port import Unit
from broker.tools.registry import collect
from broker.wire.refusals import Refusal
from tests.keyed.requests import REQUESTS, Make
from tests.programs.flaky import WAYS, FlakyMemory, Way
from tests.support.broker import Bench, open_bench

STEPS: Final = int(os.environ.get("KEYED_STEPS", "8"))
AGAIN: Final = ("in_doubt", "unavailable")
every_request = pytest.mark.parametrize(("name", "make"), REQUESTS)


class Try:
    """One request in a fresh world, asked as often as is wanted, and its effect."""

    def __init__(self, bench: Bench, store: FlakyMemory, name: str, caller: Caller, params: Any) -> None:
        self.bench = bench
        self.store = store
        self._name = name.removeprefix("operator.")
        self._caller = caller
        self._text = json.dumps({**params, "idempotency_key": "k"}).encode()
        self._before = self._state()
        self.codes: list[str] = []
        self.answers: set[bytes] = set()
        """The texts of all answers that were none to be asked for again."""

    async def ask(self) -> str:
        """The refusal's code, or "accepted"."""
        answer = await self.bench.broker.call(self._caller, self._name, self._text)
        code = answer.code if isinstance(answer, Refusal) else "accepted"
        self.codes.append(code)
        if code not in AGAIN:
            self.answers.add(msgspec.json.encode(answer))
        return code

    async def settle(self) -> None:
        """Ask until it is answered for good, and once more."""
        for _ in range(4):
            if await self.ask() not in AGAIN:
                break
        await trio.testing.wait_all_tasks_blocked()
        await self.ask()

    def effect(self) -> Counter[str]:
        """What there is more now of each kind of document, event, row, and count."""
        after = self._state()
        after.subtract(self._before)
        return Counter({name: count for name, count in after.items() if count})

    def _state(self) -> Counter[str]:
        store, state = self.store, Counter[str]()
        for (kind, _), document in store._docs.items():
            if kind.startswith("audit"):  # a note is one effect, whether it waits or has its place already
                state["noted"] += kind != "audit-head"
                continue
            row = {} if kind == "content" else json.loads(document.doc)  # a resource's text is kept as it is
            state[kind] += 1
            state[f"{kind} versions"] += document.version
            state[f"{kind} counted"] += len(row["at"]) if kind == "sending" else 0
            state["unread"] += sum(lane.get("unread", 0) for lane in row.get("lanes", {}).values())
        for name, stream in store._streams.items():
            state[f"{name.split(':')[0]} events"] += stream.newest
        for name, rows in store._logs.items():
            state[f"{name.split(':')[0]} rows"] += len(rows)
        state["remembered"] = len(store._remembered)
        return state


def is_a_change(unit: Unit) -> bool:
    """Whether a unit is the request's, and not the auditor's, who gives notes their place."""
    return all(put.kind != "audit-head" for put in unit.puts)


async def begun(bench: Bench, store: FlakyMemory, name: str, make: Make) -> Try:
    caller, params = await make(bench)
    await trio.testing.wait_all_tasks_blocked()
    return Try(bench, store, name, caller, params)


async def undisturbed(name: str, make: Make) -> tuple[Counter[str], int]:
    """The effect of one request, and how many commits it took."""
    store = FlakyMemory()
    units: list[Unit] = []
    async with open_bench(store=store) as bench:
        asked = await begun(bench, store, name, make)
        store.fail("doubt", lambda unit: bool(is_a_change(unit) and units.append(unit)))  # counts
        assert await asked.ask() == "accepted"
        await trio.testing.wait_all_tasks_blocked()
        effect = asked.effect()
        assert effect["remembered"] == 1
        assert units[-1].remember is not None, "what is remembered has not happened yet"
        return effect, len(units)


def test_every_keyed_tool_has_a_request() -> None:
    keyed = {name for name, tool in collect().items() if tool.keyed}
    keyed |= {f"operator.{name}" for name, tool in collect("operator").items() if tool.keyed}
    assert {name for name, _ in REQUESTS} == keyed


@every_request
@pytest.mark.requirement("idempotency.same")
async def test_a_commit_that_fails_in_any_way_leaves_one_effect_and_one_answer(name: str, make: Make) -> None:
    effect, commits = await undisturbed(name, make)
    for way, failing, lands_late in product(WAYS, range(commits), (False, True)):
        if way == "late" or not lands_late:
            await failed(name, make, way, failing, lands_late, effect)


async def failed(
    name: str, make: Make, way: Way, failing: int, lands_late: bool, effect: Counter[str]
) -> None:
    """The commit of number `failing` goes this way; one that is late lands before, or after, the next try."""
    store, seen = FlakyMemory(), list[Unit]()

    def is_it(unit: Unit) -> bool:
        seen.extend([unit] if is_a_change(unit) else [])
        return is_a_change(unit) and len(seen) - 1 == failing

    async with open_bench(store=store) as bench:
        asked = await begun(bench, store, name, make)
        store.fail(way, is_it)
        first = await asked.ask()
        assert first == ("unavailable" if way == "unavailable" else "in_doubt")
        store.fail(None)
        if way == "late" and not lands_late:
            await store.land()
        await asked.settle()
        if way == "late" and lands_late:
            await store.land()
        await asked.settle()
        what = (way, failing, lands_late, asked.codes)
        assert (asked.codes[-1], len(asked.answers)) == ("accepted", 1), what
        assert asked.effect() == effect, what


@every_request
@pytest.mark.requirement("idempotency.at-once")
async def test_a_caller_that_leaves_and_comes_back_finds_one_effect(name: str, make: Make) -> None:
    effect, _ = await undisturbed(name, make)
    for steps in range(STEPS):
        store = FlakyMemory()
        async with open_bench(store=store) as bench:
            asked = await begun(bench, store, name, make)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(asked.ask)
                for _ in range(steps):
                    await trio.lowlevel.checkpoint()
                nursery.cancel_scope.cancel()
            await asked.settle()
            assert (set(asked.codes), len(asked.answers)) == ({"accepted"}, 1), (steps, asked.codes)
            assert asked.effect() == effect, steps
