"""`turret restore`: refused before anything is written, looked through before it says done."""

from pathlib import Path
from typing import Any

import pytest

from broker.clock import VirtualClock
from broker.store.sqlite import SqliteStore
from broker.wire.keys import SigningKey
from gateways.serve import open_store
from tests.broker.actors.test_check import ROW
from tests.gateways.commands.conftest import Turret
from tests.gateways.commands.test_backup import put_key
from tests.support.agents import caller_of, make_agent
from tests.support.arena import first_legal, open_session, submit
from tests.support.broker import START_MS, code, open_bench, tuned
from tests.support.stores import dealt, spoiled


async def backed_up(turret: Turret, directory: Path, *flags: str) -> dict[str, str]:
    """A store, its key, and one.backup; returns the store's calls."""
    convs = await dealt(directory)
    put_key(directory)
    assert turret.run("backup", "--data", str(directory), "one.backup", *flags).code == 0
    return convs


@pytest.mark.requirement("cli.restore")
async def test_a_restore_says_what_it_made_and_a_broker_can_serve_it(
    turret: Turret, tmp_path: Path, autojump_clock: Any
) -> None:
    await backed_up(turret, tmp_path / "data")
    key = tmp_path / "data" / "wire.key"
    ran = turret.run("restore", "one.backup", "--data", "new", "--wire-key", str(key), "--json")
    assert (ran.code, ran.err) == (0, "")
    found = ran.json
    assert (found["data"], found["conversations"], found["envelopes"], found["faults"]) == ("new", 11, 29, 0)
    assert found["backup_at"] < found["restored_at"]
    assert (tmp_path / "new" / "wire.key").read_bytes() == key.read_bytes()
    assert (tmp_path / "new" / "wire.key").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o700
    async with open_store(tmp_path / "new") as store:
        assert await store.get("wire", "restored") is not None
    words = turret.run("restore", "one.backup", "--data", "again", "--wire-key", str(key))
    assert words.out.startswith("again: the store of 20")


@pytest.mark.requirement("cli.restore-key")
async def test_without_the_wires_key_nothing_is_written(
    turret: Turret, tmp_path: Path, autojump_clock: Any
) -> None:
    await backed_up(turret, tmp_path / "data")
    ran = turret.run("restore", "one.backup", "--data", "new")
    assert ran.code == 2
    assert "--wire-key" in ran.err
    assert not (tmp_path / "new").exists()


@pytest.mark.requirement("cli.restore-key")
async def test_the_key_may_be_in_the_backup_and_another_file_wins(
    turret: Turret, tmp_path: Path, autojump_clock: Any
) -> None:
    await backed_up(turret, tmp_path / "data", "--with-key")
    assert turret.run("restore", "one.backup", "--data", "new").code == 0
    assert (tmp_path / "new" / "wire.key").read_bytes() == (tmp_path / "data" / "wire.key").read_bytes()
    (tmp_path / "other").mkdir()
    put_key(tmp_path / "other")
    given = ("--wire-key", str(tmp_path / "other" / "wire.key"))
    assert turret.run("restore", "one.backup", "--data", "newer", *given).code == 0
    assert (tmp_path / "newer" / "wire.key").read_bytes() == (tmp_path / "other" / "wire.key").read_bytes()


@pytest.mark.requirement("cli.restore")
async def test_a_directory_with_something_in_it_is_left_alone(
    turret: Turret, tmp_path: Path, autojump_clock: Any
) -> None:
    await backed_up(turret, tmp_path / "data", "--with-key")
    before = {each.name: each.read_bytes() for each in (tmp_path / "data").iterdir()}
    ran = turret.run("restore", "one.backup", "--data", "data")
    assert (ran.code, ran.err) == (2, "turret: file: data: a restore needs an empty directory\n")
    assert {each.name: each.read_bytes() for each in (tmp_path / "data").iterdir()} == before


@pytest.mark.requirement("cli.restore-checks")
async def test_a_damaged_backup_is_restored_only_when_one_insists(
    turret: Turret, tmp_path: Path, autojump_clock: Any
) -> None:
    convs = await dealt(tmp_path / "data")
    put_key(tmp_path / "data")
    path = spoiled(tmp_path / "data", ROW, values=("1.0842", "1.0843", f"conv:{convs['open']}"))
    assert turret.run("backup", "--data", str(path.parent), "one.backup", "--with-key").code == 0
    ran = turret.run("restore", "one.backup", "--data", "new")
    assert ran.code == 1
    fault, verdict = ran.err.splitlines()
    assert fault.startswith(f"conversation {convs['open']}, 2: bad_signature")
    assert verdict.startswith("turret: damaged: ")
    assert not (tmp_path / "new").exists()
    ran = turret.run("restore", "one.backup", "--data", "new", "--even-if-damaged", "--json")
    assert (ran.code, ran.json["faults"]) == (0, 1)


@pytest.mark.requirement("cli.restore")
async def test_what_is_no_backup_is_said_in_one_line(
    turret: Turret, tmp_path: Path, autojump_clock: Any
) -> None:
    await dealt(tmp_path / "data")
    put_key(tmp_path / "data")
    for file in (tmp_path / "data" / "turret.db", tmp_path / "data" / "wire.key"):
        ran = turret.run("restore", str(file), "--data", "new")
        assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert not (tmp_path / "new").exists()


@pytest.mark.requirement("arena.restored")
async def test_sessions_go_on_after_a_restore_and_the_chance_to_come_is_another(
    turret: Turret, tmp_path: Path, autojump_clock: Any
) -> None:
    data, clock, settings = tmp_path / "data", VirtualClock(START_MS), tuned(store={"min_free_bytes": 0})
    store = await SqliteStore.open(data, hop="inline")
    key = SigningKey.from_seed(put_key(data))
    async with open_bench(settings, store, clock, key) as bench:
        ann = await make_agent(bench, "Ann")
        session = await open_session(bench, ann, mode="persistent")
        asked: dict[str, Any] = {"action": first_legal(session), "idempotency_key": "k"}
        outcome = await submit(bench, ann, session, **asked)
        shown = await bench.call("get_agent", ann, agent_id=ann.agent)
        assert turret.run("backup", "--data", str(data), "one.backup").code == 0
        assert code(await submit(bench, ann, outcome["session"])) == "accepted"  # what the backup has not
    await store.aclose()
    ran = turret.run("restore", "one.backup", "--data", "new", "--wire-key", str(data / "wire.key"), "--json")
    assert (ran.code, ran.json["faults"]) == (0, 0)
    store = await SqliteStore.open(tmp_path / "new", hop="inline")
    async with open_bench(settings, store, clock, key) as bench:
        again = caller_of(bench, str(ann.agent))
        assert await submit(bench, again, session, **asked) == outcome
        assert code(await submit(bench, again, outcome["session"], {"type": "stop"})) == "accepted"
        after = await bench.call("get_agent", again, agent_id=ann.agent)
        assert after["arena"]["next_commit"] != shown["arena"]["next_commit"]
        assert after["arena"]["games"] == 1
    await store.aclose()
    assert turret.run("check", "--data", "new").code == 0
