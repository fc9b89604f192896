"""Consents, clients and assertions on a store: what goes, what stays, and what is told."""

from typing import Any

import pytest
import trio

from broker.actors.grant import LAPSE_MS, TOUCH_MS, UNUSED_MS, Assert, ClientsActor, Register, Use
from broker.app import Caller
from broker.core.client import ClientRow
from broker.core.grant import ASK_MS, CODE_MS, IDLE_MS
from broker.store.memory import MemoryStore
from broker.wire.refusals import Refusal
from tests.support.broker import Bench, code, open_bench
from tests.support.signin import consent, new_owner, signin


def row(bench: Bench, n: int) -> ClientRow:
    return ClientRow(f"cl_{n}", "x", ("https://app.example/back",), made_at=bench.clock.now_ms())


async def clients(bench: Bench) -> set[str]:
    return {each.id for each in await bench.store.find("client", "all", "1")}


async def ask(bench: Bench, command: Any, most: int = 3) -> Any:
    """Ask a new actor of all clients, with room for few."""
    parts: Any = {"store": bench.store, "clock": bench.clock, "mailbox": 8, "commit_timeout_s": 5.0}
    actor = ClientsActor("all", most=most, **parts)
    actor.state = await actor.load()
    return await actor.handle(command)


@pytest.mark.requirement("signin.bounds")
async def test_a_client_that_nobody_consented_to_goes_after_a_day(bench: Bench) -> None:
    for n in (1, 2):
        assert await ask(bench, Register(row(bench, n))) is None
    assert await ask(bench, Use("cl_1")) is None
    bench.clock.step(UNUSED_MS)
    assert await ask(bench, Register(row(bench, 3))) is None
    assert await clients(bench) == {"cl_1", "cl_3"}
    assert code(await ask(bench, Use("cl_2"))) == "not_found"
    assert await ask(bench, Use("cl_3")) is None
    bench.clock.step(LAPSE_MS - UNUSED_MS)
    assert await ask(bench, Register(row(bench, 4))) is None
    assert await clients(bench) == {"cl_3", "cl_4"}


@pytest.mark.requirement("signin.bounds")
async def test_where_there_is_no_room_the_oldest_unused_goes_but_not_while_it_may_be_signing_in(
    bench: Bench,
) -> None:
    for n in (1, 2, 3):
        assert await ask(bench, Register(row(bench, n))) is None
    await ask(bench, Use("cl_1"))
    assert code(await ask(bench, Register(row(bench, 4)))) == "overloaded"
    bench.clock.step(ASK_MS)
    assert await ask(bench, Register(row(bench, 4))) is None
    assert await clients(bench) == {"cl_1", "cl_3", "cl_4"}


@pytest.mark.requirement("signin.bounds")
async def test_where_there_is_no_room_one_goes_that_has_no_consent_any_more(bench: Bench) -> None:
    """Who has an owner of its own consents to whatever it registers."""
    for n in (1, 2, 3):
        assert await ask(bench, Register(row(bench, n))) is None
        assert await ask(bench, Use(f"cl_{n}")) is None
    bench.clock.step(IDLE_MS)
    assert code(await ask(bench, Register(row(bench, 4)))) == "overloaded"
    bench.clock.step(TOUCH_MS)
    assert await ask(bench, Use("cl_1")) is None
    assert await ask(bench, Register(row(bench, 4))) is None
    assert await clients(bench) == {"cl_1", "cl_3", "cl_4"}


@pytest.mark.requirement("signin.bounds")
async def test_a_code_that_never_comes_back_is_swept(
    bench: Bench, autojump_clock: trio.testing.MockClock
) -> None:
    owner = await new_owner(bench)
    await consent(bench, owner)
    assert len(await bench.store.find("grant", "owner", owner)) == 1
    await trio.sleep(CODE_MS / 1000 + 1)
    assert await bench.store.find("grant", "owner", owner) == []


@pytest.mark.requirement("signin.revoke")
async def test_what_a_grants_tokens_hold_ends_when_it_does(bench: Bench) -> None:
    owner = await new_owner(bench)
    signed = await consent(bench, owner)
    grant = (await signin(bench, "redeem_code", **signed.redemption()))["grant"]
    caller, ended = Caller(principal=owner, owner=owner, grant=grant), []
    with bench.broker.hold(caller, ended.append):
        await signin(bench, "revoke_grant", owner_id=owner, grant_id=grant)
        assert [code(each) for each in ended] == ["unauthenticated"]


@pytest.mark.requirement("signin.revoke", "signin.agent-key")
async def test_what_has_ended_and_what_has_served_stays_so_across_a_restart() -> None:
    store = MemoryStore()
    async with open_bench(store=store) as bench:
        owner = await new_owner(bench)
        signed = await consent(bench, owner)
        kept = await signin(bench, "redeem_code", **signed.redemption())
        lost = await signin(bench, "redeem_code", **(await consent(bench, owner)).redemption())
        await signin(bench, "revoke_grant", owner_id=owner, grant_id=lost["grant"])
        once = Assert("jti", bench.clock.now_ms() + 60_000)
        assert await bench.broker._services.house.ask("assertion", "ag_x", once) is None
    async with open_bench(store=store) as bench:
        assert await bench.broker.judge(Caller(grant=kept["grant"])) is None
        assert await bench.broker.judge(Caller(grant=lost["grant"])) is not None
        assert isinstance(await bench.broker._services.house.ask("assertion", "ag_x", once), Refusal)
        params = {"client_id": signed.client_id, "refresh_token": kept["refresh_token"]}
        assert code(await signin(bench, "refresh_grant", **params)) == "accepted"


@pytest.mark.requirement("signin.code")
async def test_of_fifty_redemptions_at_once_one_at_most_is_good(bench: Bench) -> None:
    signed = await consent(bench, await new_owner(bench))
    answers: list[Any] = []

    async def redeem() -> None:
        answers.append(await signin(bench, "redeem_code", **signed.redemption()))

    async with trio.open_nursery() as nursery:
        for _ in range(50):
            nursery.start_soon(redeem)
    assert sum(not isinstance(each, Refusal) for each in answers) == 1
