"""The commit is there before the client's seed: it holds for the next session, or nothing is opened."""

import hashlib
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
import trio.testing

from broker.actors.artifacts import read_artifact
from broker.actors.calls import agent_stream
from broker.app import Caller, open_broker
from broker.clock import VirtualClock
from broker.core.agent import DAY_MS
from broker.core.arena import SessionRow
from broker.core.chance import Draws, Secret, commit_of
from broker.core.games import hilo
from broker.store.epoch import new_secret
from broker.store.memory import MemoryStore
from broker.store.port import Store
from broker.store.stored import read_row
from broker.wire.keyring import Keyring, WireKey
from broker.wire.keys import SigningKey
from tests.arena.ledger import check_ledger
from tests.support.agents import caller_of, make_agent
from tests.support.arena import new_key, open_session, submit
from tests.support.broker import START_MS, Bench, code, tuned

OLD, NEW = SigningKey.generate(), SigningKey.generate()


@asynccontextmanager
async def keyed(store: Store, *keys: SigningKey, **arena: Any) -> AsyncIterator[Bench]:
    """A broker whose wire has these keys, the last one the present."""
    ring = Keyring(
        tuple(
            WireKey(key, START_MS + at, None if key is keys[-1] else START_MS + at + 1)
            for at, key in enumerate(keys)
        )
    )
    clock = VirtualClock(START_MS)
    async with open_broker(tuned(actors={"late_s": 3_600.0}, arena=arena), store, clock, ring) as broker:
        yield Bench(broker, store, clock)


async def next_commit(bench: Bench, who: Caller) -> str:
    """As the agent's profile shows it."""
    return str((await bench.call("get_agent", who, agent_id=who.agent))["arena"]["next_commit"])


async def opening(bench: Bench, who: Caller, commit: str) -> Any:
    config = {"commit": commit, "client_seed": "mine"}
    return await bench.call("open_session", who, game="hilo", config=config, idempotency_key=new_key())


def binds(session: dict[str, Any], who: Caller) -> bool:
    """Whether a session that is over shows what its commit was made of."""
    secret = Secret(session["seed"], session["salt"])
    return commit_of(secret, who.agent or "", session["games"]) == session["commit"]


@pytest.mark.requirement("arena.commit-guard")
async def test_a_commit_that_is_not_the_next_opens_nothing(bench: Bench) -> None:
    ann = await make_agent(bench, "Ann")
    seen = await next_commit(bench, ann)
    await open_session(bench, ann)
    refused = await opening(bench, ann, seen)
    assert (refused.code, refused.retryable) == ("CONFLICT", True)
    assert refused.detail["commit"] == await next_commit(bench, ann)
    assert (await bench.call("get_agent", ann, agent_id=ann.agent))["arena"]["games"] == 1
    assert code(await opening(bench, ann, "no commit at all")) == "CONFLICT"
    opened = await opening(bench, ann, refused.detail["commit"])
    over = (await submit(bench, ann, opened, {"type": "stop"}))["session"]
    assert binds(over, ann)


@pytest.mark.requirement("arena.commit-guard", "arena.next-commit")
async def test_of_two_that_open_at_once_on_one_commit_one_does(bench: Bench) -> None:
    ann = await make_agent(bench, "Ann")
    seen, answers = await next_commit(bench, ann), []

    async def ask() -> None:
        answers.append(await opening(bench, ann, seen))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask)
        nursery.start_soon(ask)
    assert sorted(map(code, answers)) == ["CONFLICT", "accepted"]


@pytest.mark.requirement("arena.next-commit")
async def test_sessions_opened_at_once_each_have_a_commit_of_their_own(bench: Bench) -> None:
    ann = await make_agent(bench, "Ann")
    opened: list[dict[str, Any]] = []

    async def ask() -> None:
        opened.append(await open_session(bench, ann))

    async with trio.open_nursery() as nursery:
        for _ in range(10):
            nursery.start_soon(ask)
    assert len({each["commit"] for each in opened}) == 10
    assert {each["games"] for each in opened} == set(range(10))


@pytest.mark.requirement("arena.next-commit")
async def test_what_else_happens_moves_no_commit(bench: Bench) -> None:
    ann, bob = await make_agent(bench, "Ann"), await make_agent(bench, "Bob")
    session = await open_session(bench, ann)
    seen = await next_commit(bench, ann)
    await open_session(bench, bob)
    await submit(bench, ann, session)
    await bench.call("open_session", ann, game="hilo", config={"decks": 99}, idempotency_key=new_key())
    await submit(bench, ann, session, {"type": "stop"}, expected_version=1)
    assert await next_commit(bench, ann) == seen


async def test_without_a_client_seed_the_key_is_one(bench: Bench) -> None:
    ann = await make_agent(bench, "Ann")
    session = await open_session(bench, ann, idempotency_key="my-key")
    assert session["client_seed"] == hashlib.sha256(b"my-key").hexdigest()
    given = await open_session(bench, ann, config={"client_seed": "♣" * 64})
    assert given["client_seed"] == "♣" * 64


@pytest.mark.requirement("arena.keys-change", "arena.commit-guard")
async def test_a_new_key_of_the_wire_gives_another_commit_and_ends_no_session() -> None:
    store = MemoryStore()
    async with keyed(store, OLD) as bench:
        ann = await make_agent(bench, "Ann")
        before = await open_session(bench, ann)
        await submit(bench, ann, before)
        seen = await next_commit(bench, ann)
    async with keyed(store, OLD, NEW) as bench:
        ann = caller_of(bench, ann.agent or "")
        assert await next_commit(bench, ann) != seen
        assert code(await opening(bench, ann, seen)) == "CONFLICT"
        opened = await opening(bench, ann, await next_commit(bench, ann))
        for session, version in ((opened, 0), (before, 1)):
            answer = await submit(bench, ann, session, {"type": "stop"}, expected_version=version)
            assert binds(answer["session"], ann)
        assert answer["session"]["commit"] == before["commit"]
    await check_ledger(store)


@pytest.mark.requirement("arena.keys-change")
async def test_a_restored_store_gives_another_commit_for_the_same_number() -> None:
    store = MemoryStore()
    async with keyed(store, OLD) as bench:
        ann = await make_agent(bench, "Ann")
        seen = await next_commit(bench, ann)
        assert seen == await next_commit(bench, ann)
        epoch = (await store.head(agent_stream(ann.agent or ""))).epoch
        store._secret = new_secret()  # as a restore does
        assert (await store.head(agent_stream(ann.agent or ""))).epoch != epoch
        assert await next_commit(bench, ann) != seen
        assert code(await opening(bench, ann, seen)) == "CONFLICT"


@pytest.mark.requirement("arena.lost")
async def test_a_session_whose_key_is_gone_is_named_and_ended_by_its_time_without_a_secret(
    caplog: pytest.LogCaptureFixture, autojump_clock: trio.testing.MockClock
) -> None:
    store = MemoryStore()
    async with keyed(store, OLD) as bench:
        ann = await make_agent(bench, "Ann")
        session = await open_session(bench, ann)
    async with keyed(store, NEW) as bench:
        ann = caller_of(bench, ann.agent or "")
        for _ in range(2):
            assert code(await submit(bench, ann, session)) == "unavailable"
        assert session["session_id"] in caplog.text
        assert code(await opening(bench, ann, await next_commit(bench, ann))) == "accepted"
        bench.clock.step(8 * DAY_MS)
        await trio.sleep(61)
        row = await row_of(bench, session)
        assert (row.over, row.version, row.due) == ("expired", 1, None)
        content = json.loads(await read_artifact(store, row.ref or "") or b"")
        assert content["events"][-1] == {"type": "closed", "ended": {"over": "expired"}}
    await check_ledger(store)


@pytest.mark.requirement("arena.lost")
async def test_a_session_whose_game_is_played_no_more_is_ended_by_its_time(
    autojump_clock: trio.testing.MockClock,
) -> None:
    store = MemoryStore()
    async with keyed(store, OLD) as bench:
        ann = await make_agent(bench, "Ann")
        session = (await submit(bench, ann, await open_session(bench, ann, mode="persistent")))["session"]
    async with keyed(store, OLD, games=("broker.core.games.rfq",)) as bench:
        ann = caller_of(bench, ann.agent or "")
        for _ in range(2):
            seen = await bench.call("get_session", ann, session_id=session["session_id"])
            assert seen.code == "unavailable"
            assert code(await submit(bench, ann, session)) == "unavailable"
        bench.clock.step(8 * DAY_MS)
        await trio.sleep(61)
        row = await row_of(bench, session)
        assert (row.over, row.version, row.balance) == ("expired", 2, session["account"]["balance"])
        assert await store.due("arena", "due", 2**62) == []
    async with keyed(store, OLD) as bench:
        ann = caller_of(bench, ann.agent or "")
        seen = await bench.call("get_session", ann, session_id=session["session_id"])
        assert seen["session"]["artifact"]["ref"] == row.ref
        assert binds(seen["session"], ann)
    await check_ledger(store)


@pytest.mark.requirement("arena.lost")
async def test_a_game_that_breaks_on_its_own_events_keeps_no_session_open(
    autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Else its time would be over for ever: each second somebody would look, and the log would say so."""

    def broken(*_: Any) -> Any:
        raise KeyError("broken")

    store = MemoryStore()
    async with keyed(store, OLD) as bench:
        ann = await make_agent(bench, "Ann")
        session = (await submit(bench, ann, await open_session(bench, ann)))["session"]
    monkeypatch.setattr(hilo, "fold", broken)
    async with keyed(store, OLD) as bench:
        ann = caller_of(bench, ann.agent or "")
        assert code(await submit(bench, ann, session)) == "unavailable"
        assert session["session_id"] in caplog.text
        bench.clock.step(8 * DAY_MS)
        await trio.sleep(61)
        row = await row_of(bench, session)
        assert (row.over, row.version) == ("expired", 2)
    await check_ledger(store)


@pytest.mark.requirement("arena.lost")
async def test_who_looks_needs_no_deal_nor_does_the_end(
    autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, dealt, deal = MemoryStore(), list[str](), hilo.deal
    async with keyed(store, OLD) as bench:
        ann = await make_agent(bench, "Ann")
        played, left = await open_session(bench, ann), await open_session(bench, ann)

    def counted(config: hilo.Config, draws: Draws) -> list[str]:
        dealt.append("once")
        return deal(config, draws)

    monkeypatch.setattr(hilo, "deal", counted)
    async with keyed(store, OLD) as bench:
        ann = caller_of(bench, ann.agent or "")
        for session in (played, left):
            seen = await bench.call("get_session", ann, session_id=session["session_id"])
            assert seen["session"] == session
        assert dealt == []
        await submit(bench, ann, (await submit(bench, ann, played))["session"])
        assert dealt == ["once"]
        bench.clock.step(8 * DAY_MS)
        await trio.sleep(61)
        assert (await row_of(bench, left)).over == "expired"
        assert dealt == ["once"]


async def row_of(bench: Bench, session: dict[str, Any]) -> SessionRow:
    """A session as stored."""
    row = await read_row(bench.store, SessionRow, "arena", session["session_id"])
    assert row is not None
    return row
