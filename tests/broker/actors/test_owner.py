"""An owner's actor: one e-mail, one owner; invitations serve once; a changed password outweighs what was begun."""

from functools import partial

import msgspec
import pytest
import trio

from broker.actors.owner import (
    ChangePassword,
    End,
    InvitationRow,
    Open,
    SignUp,
    Touch,
    find_owner,
    read_facts,
    read_owner,
)
from broker.actors.standing import Facts
from broker.core.owner import TOUCH_MS, OwnerRow
from broker.store.port import Put, Unit
from broker.wire.refusals import Refusal
from tests.support.broker import START_MS, Bench, code

A, B = "ow_01JZ0000000000000000000000", "ow_01JZ0000000000000000000001"


async def sign_up(
    bench: Bench, owner_id: str, email: str, invitation: str | None = None
) -> OwnerRow | Refusal:
    command = SignUp(email, "$hash$", "first", invitation)
    answer: OwnerRow | Refusal = await bench.broker._services.house.ask("owner", owner_id, command)
    return answer


async def invite(bench: Bench, digest: str, email: str | None = None, hours: float = 1) -> None:
    row = InvitationRow(START_MS, START_MS + round(hours * 3_600_000), email)
    await bench.store.commit(Unit(puts=(Put("invitation", digest, 0, msgspec.json.encode(row)),)))


@pytest.mark.requirement("owners.one-email")
async def test_an_email_has_one_owner_also_where_two_sign_up_at_once(bench: Bench) -> None:
    answers: list[OwnerRow | Refusal] = []

    async def ask(owner_id: str) -> None:
        answers.append(await sign_up(bench, owner_id, "ann@x"))

    async with trio.open_nursery() as nursery:
        for n in range(8):
            nursery.start_soon(ask, A[:-1] + str(n))
    made = [each for each in answers if isinstance(each, OwnerRow)]
    assert len(made) == 1
    assert {code(each) for each in answers if each not in made} == {"already_exists"}
    assert await find_owner(bench.store, "ann@x") == made[0]
    assert len(await bench.store.find("owner", "all", "1")) == 1


async def test_an_owner_is_made_once(bench: Bench) -> None:
    assert isinstance(await sign_up(bench, A, "ann@x"), OwnerRow)
    assert code(await sign_up(bench, A, "bob@x")) == "already_exists"
    assert await find_owner(bench.store, "bob@x") is None


@pytest.mark.requirement("owners.invitations")
async def test_an_invitation_serves_once_for_whom_it_was_made_and_in_its_time(
    bench: Bench, autojump_clock: object
) -> None:
    await invite(bench, "for anybody")
    await invite(bench, "for bob", "bob@x")
    assert code(await sign_up(bench, A, "ann@x", "no such")) == "not_found"
    assert code(await sign_up(bench, A, "ann@x", "for bob")) == "not_found"
    assert isinstance(await sign_up(bench, A, "ann@x", "for anybody"), OwnerRow)
    assert code(await sign_up(bench, B, "bob@x", "for anybody")) == "not_found"
    await trio.sleep(3600)
    over = await sign_up(bench, B, "bob@x", "for bob")
    assert isinstance(over, Refusal)
    assert (over.code, over.detail) == ("not_found", {"path": "invitation"})


@pytest.mark.requirement("owners.sessions-end")
async def test_a_password_that_was_changed_meanwhile_opens_nothing(bench: Bench) -> None:
    await sign_up(bench, A, "ann@x")
    ask = partial(bench.broker._services.house.ask, "owner", A)
    opened = await ask(Open("$hash$", "second", "$rehashed$"))
    assert (opened.password, [each.digest for each in opened.sessions]) == ("$rehashed$", ["first", "second"])
    assert code(await ask(Open("$hash$", "third"))) == "unauthenticated"
    assert code(await ask(ChangePassword("$hash$", "$new$", "third"))) == "unauthenticated"
    changed = await ask(ChangePassword("$rehashed$", "$new$", "third"))
    assert (changed.password, [each.digest for each in changed.sessions]) == ("$new$", ["third"])
    assert await read_owner(bench.store, A) == changed


async def test_a_session_is_touched_and_ended(bench: Bench, autojump_clock: object) -> None:
    await sign_up(bench, A, "ann@x")
    ask = partial(bench.broker._services.house.ask, "owner", A)
    await trio.sleep(TOUCH_MS / 1000)
    touched = await ask(Touch("first"))
    assert touched.sessions[0].used_at == START_MS + TOUCH_MS
    assert await ask(End("first")) is None
    assert code(await ask(Touch("first"))) == "unauthenticated"
    assert await ask(End("first")) is None
    with trio.fail_after(14 * 3600):
        await trio.sleep(13 * 3600)
    assert code(await ask(Touch("first"))) == "unauthenticated"


async def test_an_owner_that_is_none_has_nothing(bench: Bench) -> None:
    ask = partial(bench.broker._services.house.ask, "owner", A)
    for command in (Open("$hash$", "d"), Touch("d"), ChangePassword("$hash$", "$new$", "d")):
        assert code(await ask(command)) == "unauthenticated"
    assert await ask(End("d")) is None
    assert await read_facts(bench.store, A) is None
    await sign_up(bench, A, "ann@x")
    assert await read_facts(bench.store, A) == Facts()
