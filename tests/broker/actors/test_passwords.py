"""Hashing off the loop: bounded, and an unknown owner costs what a wrong password costs."""

import threading

import pytest
import trio

from broker.actors import passwords
from broker.actors.passwords import AT_ONCE, WAITING, Passwords, nobody
from broker.config import Owners
from broker.wire.refusals import Refusal
from tests.support.owners import CHEAP


async def test_a_password_is_known_again_and_no_other() -> None:
    made = Passwords(CHEAP)
    encoded = await made.hash("correct horse")
    assert isinstance(encoded, str)
    assert encoded.startswith("$argon2id$v=19$m=8,t=1,p=1$")
    assert await made.verify("correct horse", encoded) is True
    assert await made.verify("correct horsf", encoded) is False
    assert await made.hash("correct horse") != encoded


@pytest.mark.requirement("owners.hashed-off-the-loop")
async def test_a_hash_is_made_in_a_thread_and_a_few_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    loop, at_once, most, gate = threading.get_ident(), 0, 0, threading.Event()
    lock, under_way = threading.Lock(), trio.Event()
    made = Passwords(CHEAP)

    def slow(self: Passwords, password: str, encoded: str) -> bool:
        nonlocal at_once, most
        assert threading.get_ident() != loop
        with lock:
            at_once += 1
            most = max(most, at_once)
            full = at_once == AT_ONCE
        if full:
            trio.from_thread.run_sync(under_way.set)
        assert gate.wait(5)
        with lock:
            at_once -= 1
        return True

    monkeypatch.setattr(passwords.Passwords, "_verify", slow)
    refused: list[Refusal] = []

    async def ask() -> None:
        answer = await made.verify("x", None)
        if isinstance(answer, Refusal):
            refused.append(answer)

    async with trio.open_nursery() as nursery:
        for _ in range(AT_ONCE + WAITING):
            nursery.start_soon(ask)
        with trio.fail_after(5):
            await under_way.wait()
        assert refused == []
        await ask()
        assert [(each.code, each.retryable) for each in refused] == [("overloaded", True)]
        assert isinstance(await made.hash("x"), Refusal)
        gate.set()
    assert most == AT_ONCE


@pytest.mark.requirement("owners.equal-answers")
async def test_without_an_owner_the_same_is_hashed(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Passwords(CHEAP)
    encoded = await made.hash("correct horse")
    assert isinstance(encoded, str)
    held: list[str] = []
    monkeypatch.setattr(made, "_verify", lambda password, against: held.append(against) or False)
    await made.verify("x", encoded)
    await made.verify("x", None)
    parts = [each.split("$")[:4] for each in held]
    assert parts[0] == parts[1] == ["", "argon2id", "v=19", "m=8,t=1,p=1"]
    assert [len(each) for each in held] == [len(encoded)] * 2


async def test_no_password_is_nobodys() -> None:
    assert await Passwords(CHEAP).verify("", nobody(CHEAP)) is False


async def test_what_was_hashed_by_other_settings_is_old() -> None:
    encoded = await Passwords(CHEAP).hash("correct horse")
    assert isinstance(encoded, str)
    assert not Passwords(CHEAP).is_old(encoded)
    assert Passwords(Owners(argon2_passes=2, argon2_memory_kib=8)).is_old(encoded)
