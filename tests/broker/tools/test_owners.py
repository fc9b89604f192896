"""The verbs behind the owners' pages: signing up, in and out, and the password."""

import time
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest
import trio
import trio.testing

from broker.actors.attempts import BY_ADDRESS, BY_EMAIL, SIGN_UPS
from broker.actors.owner import InvitationRow
from broker.app import Caller
from broker.config import Owners
from broker.core.secret import digest
from broker.store.port import Put, Store, Unit
from broker.wire.ids import OWNER
from broker.wire.refusals import Refusal
from tests.support.broker import START_MS, STRANGER, Bench, code, open_bench, tuned
from tests.support.owners import CHEAP, PASSWORD, signin

HOUR = 3600


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    async with open_bench(tuned(owners=msgspec.structs.asdict(CHEAP))) as bench:
        yield bench


async def ann(bench: Bench, **members: Any) -> Any:
    return await signin(bench, "sign_up", email="ann@x.example", password=PASSWORD, **members)


async def whose(bench: Bench, session: str) -> str:
    answer = await signin(bench, "session", session=session)
    return code(answer) if isinstance(answer, Refusal) else str(answer["email"])


async def test_who_signs_up_is_signed_in(bench: Bench) -> None:
    made = await signin(bench, "sign_up", email=" Ann@X.example", password=PASSWORD)
    assert OWNER.fullmatch(made["owner_id"])
    assert made["email"] == "ann@x.example"
    assert made["session"].startswith(made["owner_id"] + ".")
    assert await whose(bench, made["session"]) == "ann@x.example"
    again = await signin(bench, "sign_in", email="ANN@x.example", password=PASSWORD)
    assert again["owner_id"] == made["owner_id"]
    assert again["session"] != made["session"]
    assert await whose(bench, again["session"]) == await whose(bench, made["session"]) == "ann@x.example"


async def test_no_password_and_no_session_is_stored(bench: Bench) -> None:
    made = await ann(bench)
    document = await bench.store.get("owner", made["owner_id"])
    assert document is not None
    assert PASSWORD.encode() not in document.doc
    assert made["session"].partition(".")[2].encode() not in document.doc
    assert b"$argon2id$" in document.doc


@pytest.mark.requirement("owners.equal-answers")
async def test_a_wrong_password_and_an_unknown_email_are_one_answer(bench: Bench) -> None:
    await ann(bench)
    tries = [
        ("ann@x.example", "wrong horse battery"),
        ("bob@x.example", PASSWORD),
        ("no e-mail", PASSWORD),
        ("", ""),
    ]
    answers = [await signin(bench, "sign_in", email=email, password=password) for email, password in tries]
    assert [each.code for each in answers] == ["unauthenticated"] * 4
    assert all(each == answers[0] for each in answers)


@pytest.mark.requirement("owners.equal-answers")
async def test_a_wrong_password_and_an_unknown_email_take_the_same_time() -> None:
    owners = Owners(sign_up="open", argon2_passes=2, argon2_memory_kib=16_384)
    async with open_bench(tuned(owners=msgspec.structs.asdict(owners))) as bench:
        await ann(bench)

        async def took(email: str) -> float:
            began = time.perf_counter()
            await signin(bench, "sign_in", email=email, password="wrong horse battery")
            return time.perf_counter() - began

        known = min([await took("ann@x.example") for _ in range(3)])
        unknown = min([await took("bob@x.example") for _ in range(3)])
    assert 0.33 < known / unknown < 3


@pytest.mark.requirement("owners.throttled")
async def test_five_failures_of_an_email_and_it_waits_whether_it_is_an_owners_or_not(
    bench: Bench, mock_clock: trio.testing.MockClock
) -> None:
    await ann(bench)
    for email in ("ann@x.example", "bob@x.example"):
        for _ in range(BY_EMAIL):
            assert code(await signin(bench, "sign_in", email=email, password="wrong horse battery")) == (
                "unauthenticated"
            )
        for password in ("wrong horse battery", PASSWORD):
            stopped = await signin(bench, "sign_in", email=email, password=password)
            assert (stopped.code, stopped.detail) == ("rate_limited", {"retry_after_ms": 60_000})
    mock_clock.jump(59.9)
    assert code(await signin(bench, "sign_in", email="ann@x.example", password=PASSWORD)) == "rate_limited"
    mock_clock.jump(0.1)
    for _ in range(2 * BY_EMAIL):  # what is good doesn't count
        assert "session" in await signin(bench, "sign_in", email="ann@x.example", password=PASSWORD)


@pytest.mark.requirement("owners.throttled")
async def test_many_guesses_at_once_are_not_more(bench: Bench) -> None:
    await ann(bench)
    answers: list[str] = []

    async def guess(n: int) -> None:
        answers.append(
            code(await signin(bench, "sign_in", email="ann@x.example", password=f"horse battery {n}"))
        )

    async with trio.open_nursery() as nursery:
        for n in range(20):
            nursery.start_soon(guess, n)
    assert sorted(answers) == ["rate_limited"] * 15 + ["unauthenticated"] * 5


@pytest.mark.requirement("owners.throttled")
async def test_twenty_failures_from_an_address_whatever_the_email(bench: Bench) -> None:
    for n in range(BY_ADDRESS):
        params = {"email": f"{n}@x.example", "password": "wrong horse battery"}
        assert code(await signin(bench, "sign_in", STRANGER, **params)) == "unauthenticated"
    await ann(bench)
    good = {"email": "ann@x.example", "password": PASSWORD}
    assert code(await signin(bench, "sign_in", STRANGER, **good)) == "rate_limited"
    elsewhere = Caller(address="203.0.113.10", loopback=False)
    assert "session" in await signin(bench, "sign_in", elsewhere, **good)


async def test_refusals_are_summed_by_address_and_minute(
    bench: Bench, mock_clock: trio.testing.MockClock
) -> None:
    await ann(bench)
    for _ in range(BY_EMAIL + 2):
        await signin(bench, "sign_in", STRANGER, email="ann@x.example", password="wrong horse battery")
    await signin(bench, "sign_in", email="bob@x.example", password="wrong horse battery")
    mock_clock.jump(60)
    found = {(each.place, each.kind): each.count for each in bench.broker._services.sign_in.take_refused()}
    assert found == {
        (STRANGER.address, "password"): BY_EMAIL,
        (STRANGER.address, "rate_limited"): 2,
        ("loopback", "password"): 1,
    }


@pytest.mark.parametrize(
    ("params", "path"),
    [
        ({"email": "ann", "password": PASSWORD}, "email"),
        ({"email": "ann@x", "password": "short"}, "password"),
        ({"email": "annabella@x", "password": "AnnaBella@x"}, "password"),
    ],
)
async def test_what_is_wrong_in_signing_up_is_told_by_its_field(
    bench: Bench, params: dict[str, str], path: str
) -> None:
    refused = await signin(bench, "sign_up", **params)
    assert (refused.code, refused.detail) == ("bad_request", {"path": path})


async def test_an_email_is_taken_once(bench: Bench) -> None:
    await ann(bench)
    refused = await signin(bench, "sign_up", email="ANN@x.example", password="another horse")
    assert (refused.code, refused.detail) == ("already_exists", {"path": "email"})


async def test_new_owners_of_one_address_are_counted(bench: Bench) -> None:
    for n in range(SIGN_UPS):
        assert "session" in await signin(bench, "sign_up", STRANGER, email=f"{n}@x", password=PASSWORD)
    params = {"email": "one-more@x", "password": PASSWORD}
    assert code(await signin(bench, "sign_up", STRANGER, **params)) == "rate_limited"
    assert "session" in await signin(bench, "sign_up", **params)


@pytest.mark.requirement("owners.invitations")
@pytest.mark.parametrize("mode", ["invitation", None])
async def test_by_invitation_nobody_signs_up_without_one(mode: Any) -> None:
    owners = {**msgspec.structs.asdict(CHEAP), "sign_up": mode}
    async with open_bench(tuned(owners=owners)) as bench:
        invitation = msgspec.json.encode(InvitationRow(START_MS, START_MS + 1000))
        await bench.store.commit(Unit(puts=(Put("invitation", digest("a code"), 0, invitation),)))
        for given in (None, " "):
            refused = await ann(bench, invitation=given)
            assert (refused.code, refused.detail) == ("bad_request", {"path": "invitation"})
        assert code(await ann(bench, invitation="another")) == "not_found"
        assert "session" in await ann(bench, invitation=" a code ")


@pytest.mark.requirement("owners.invitations")
async def test_closed_nobody_signs_up() -> None:
    owners = {**msgspec.structs.asdict(CHEAP), "sign_up": "closed"}
    async with open_bench(tuned(owners=owners)) as bench:
        assert code(await ann(bench)) == code(await ann(bench, invitation="a code")) == "not_found"


@pytest.mark.requirement("owners.sessions-end")
async def test_a_session_lives_while_it_is_used(bench: Bench, mock_clock: trio.testing.MockClock) -> None:
    used, idle = await ann(bench), await signin(bench, "sign_in", email="ann@x.example", password=PASSWORD)
    mock_clock.jump(11 * HOUR)
    assert await whose(bench, used["session"]) == "ann@x.example"
    mock_clock.jump(1 * HOUR)
    assert await whose(bench, idle["session"]) == "unauthenticated"
    for _ in range(14):
        assert await whose(bench, used["session"]) == "ann@x.example"
        mock_clock.jump(11 * HOUR)
    mock_clock.jump(2 * HOUR)
    assert await whose(bench, used["session"]) == "unauthenticated"


@pytest.mark.requirement("owners.sessions-end")
async def test_signing_out_ends_this_browser_alone(bench: Bench) -> None:
    here, there = await ann(bench), await signin(bench, "sign_in", email="ann@x.example", password=PASSWORD)
    assert await signin(bench, "sign_out", session=here["session"]) == {}
    assert await whose(bench, here["session"]) == "unauthenticated"
    assert await whose(bench, there["session"]) == "ann@x.example"
    for nothing in (here["session"], "", "x", bench.broker._services.new_id("ow_") + ".x"):
        assert await signin(bench, "sign_out", session=nothing) == {}


async def test_another_owners_secret_is_no_session_of_mine(bench: Bench) -> None:
    mine = await ann(bench)
    other = await signin(bench, "sign_up", email="bob@x.example", password=PASSWORD)
    mixed = mine["owner_id"] + "." + other["session"].partition(".")[2]
    for session in (mixed, mine["owner_id"], mine["owner_id"] + ".", mine["session"] + "x", "." * 50):
        assert await whose(bench, session) == "unauthenticated"


async def test_asking_for_sessions_of_nobody_starts_no_actor(bench: Bench) -> None:
    for _ in range(5):
        session = bench.broker._services.new_id("ow_") + ".secret"
        assert await whose(bench, session) == "unauthenticated"
        await signin(bench, "sign_out", session=session)
    assert bench.broker._services.house.counts()["owner"] == 0


@pytest.mark.requirement("owners.sessions-end")
async def test_a_new_password_ends_every_session_and_begins_one(bench: Bench) -> None:
    here, there = await ann(bench), await signin(bench, "sign_in", email="ann@x.example", password=PASSWORD)
    params = {"owner_id": here["owner_id"], "password": PASSWORD, "new_password": "another good horse"}
    changed = await signin(bench, "change_password", **params)
    assert [await whose(bench, each["session"]) for each in (here, there, changed)] == [
        "unauthenticated",
        "unauthenticated",
        "ann@x.example",
    ]
    assert code(await signin(bench, "sign_in", email="ann@x.example", password=PASSWORD)) == "unauthenticated"
    assert "session" in await signin(bench, "sign_in", email="ann@x.example", password="another good horse")


async def test_a_new_password_needs_the_present_one_and_guesses_count(bench: Bench) -> None:
    owner_id = (await ann(bench))["owner_id"]
    params = {"owner_id": owner_id, "password": "wrong horse", "new_password": "another good horse"}
    for _ in range(BY_EMAIL):
        refused = await signin(bench, "change_password", **params)
        assert (refused.code, refused.detail) == ("bad_request", {"path": "password"})
    assert code(await signin(bench, "change_password", **params)) == "rate_limited"
    short = await signin(bench, "change_password", **{**params, "new_password": "short"})
    assert (short.code, short.detail) == ("bad_request", {"path": "new_password"})
    nobody = {**params, "owner_id": bench.broker._services.new_id("ow_")}
    assert code(await signin(bench, "change_password", **nobody)) == "unauthenticated"


async def test_a_password_hashed_by_older_settings_is_hashed_anew_at_sign_in(store: Store) -> None:
    dearer = {**msgspec.structs.asdict(CHEAP), "argon2_passes": 2}
    async with open_bench(tuned(owners=msgspec.structs.asdict(CHEAP)), store) as bench:
        owner_id = (await ann(bench))["owner_id"]
    async with open_bench(tuned(owners=dearer), store) as bench:
        assert "session" in await signin(bench, "sign_in", email="ann@x.example", password=PASSWORD)
        document = await store.get("owner", owner_id)
        assert document is not None
        assert b"m=8,t=2,p=1" in document.doc
        assert "session" in await signin(bench, "sign_in", email="ann@x.example", password=PASSWORD)
