"""`turret rotate-secrets-key`: all secrets under another key, whatever ends it in between."""

import json
from pathlib import Path
from typing import Any

import pytest
import trio

from broker.actors.safe import KIND
from broker.app import open_broker
from broker.clock import SystemClock
from broker.config import Settings
from broker.store.port import Put, Unit
from broker.store.sqlite import SqliteStore
from gateways.commands import secrets_key
from gateways.headfile import HeadFile
from gateways.safekey import SafeKeyError, new_line, open_safe_keys, write_lines
from gateways.wirekeys import open_keyring
from tests.gateways.commands.conftest import Turret
from tests.support.agents import caller_of, make_agent
from tests.support.broker import Bench

VALUE = "planted-rotation-value"


async def kept(data: Path, agent_id: str | None = None) -> tuple[str, list[Any]]:
    """Open the broker of a directory, with a secret if there is no agent yet; the agent and what is listed."""
    clock, store = SystemClock(), await SqliteStore.open(data)
    keyring = await open_keyring(data, store, clock.now_ms())
    keys = await open_safe_keys(data, None, store, clock.now_ms())
    head = HeadFile(data)
    async with open_broker(Settings(), store, clock, keyring, keeper=head, safe_keys=keys) as broker:
        bench = Bench(broker, store, clock)  # type: ignore[arg-type]
        ann = await make_agent(bench, "Ann") if agent_id is None else caller_of(bench, agent_id)
        if agent_id is None:
            await bench.call("kestrel.secrets.set", ann, name="A", value=VALUE)
        listed = (await bench.call("kestrel.secrets.list", ann))["secrets"]
        assert ann.agent is not None
        filled = await broker._services.safe.fill(ann.agent, (("x", "${A}"),))
        assert filled == ((("x", VALUE),) if listed[0]["readable"] else filled)
    await store.aclose()
    return ann.agent, listed


@pytest.mark.requirement("trial.secret-rotation")
def test_another_key_opens_them_and_the_old_one_is_gone(turret: Turret, tmp_path: Path) -> None:
    data = tmp_path / "data"
    agent_id, _ = trio.run(kept, data)
    old = json.loads((data / "secrets.key").read_text())["key"]
    ran = turret.run("rotate-secrets-key", "--data", str(data), "--json")
    assert (ran.code, ran.json) == (0, {"file": str(data / "secrets.key"), "secrets": 1, "unreadable": 0})
    assert old not in (data / "secrets.key").read_text() + ran.out + ran.err
    assert trio.run(kept, data, agent_id)[1][0]["readable"]
    (data / "secrets.key").unlink()
    assert not trio.run(kept, data, agent_id)[1][0]["readable"]
    ran = turret.run("rotate-secrets-key", "--data", str(data))
    assert ran.out.endswith("a new key, 0 secrets sealed with it; 1 that no key opens stay as they are\n")


@pytest.mark.requirement("trial.secret-rotation")
@pytest.mark.parametrize("writes", [1, 2])
def test_what_is_cut_off_leaves_all_readable_and_is_run_again(
    turret: Turret, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, writes: int
) -> None:
    """After the file has both keys, and after the store has the new one: as a kill there leaves it."""
    data = tmp_path / "data"
    agent_id, _ = trio.run(kept, data)
    done = 0
    write, reseal = secrets_key.write_lines, secrets_key.reseal

    def dying(path: Path, lines: Any) -> None:
        nonlocal done
        done += 1
        if done == 2 and writes == 2:
            raise SafeKeyError("killed")
        write(path, lines)

    async def never(*_: Any) -> Any:
        raise SafeKeyError("killed")

    monkeypatch.setattr(secrets_key, "write_lines", dying)
    monkeypatch.setattr(secrets_key, "reseal", never if writes == 1 else reseal)
    ran = turret.run("rotate-secrets-key", "--data", str(data))
    assert (ran.code, ran.err) == (2, "turret: store: killed\n")
    assert len((data / "secrets.key").read_text().splitlines()) == 2
    assert trio.run(kept, data, agent_id)[1][0]["readable"]
    monkeypatch.undo()
    assert turret.run("rotate-secrets-key", "--data", str(data), "--json").json["secrets"] == 1
    assert len((data / "secrets.key").read_text().splitlines()) == 1
    assert trio.run(kept, data, agent_id)[1][0]["readable"]


@pytest.mark.requirement("trial.secret-rotation")
def test_where_there_is_no_key_or_a_broker_it_is_one_line(turret: Turret, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    ran = turret.run("rotate-secrets-key", "--data", str(data))
    assert (ran.code, ran.err) == (2, f"turret: store: {data / 'secrets.key'}: No such file or directory\n")

    async def beside() -> None:
        store = await SqliteStore.open(data)
        try:
            ran = await trio.to_thread.run_sync(turret.run, "rotate-secrets-key", "--data", str(data))
            assert ran.code == 2
            assert "another process" in ran.err or "in use" in ran.err
        finally:
            await store.aclose()

    trio.run(beside)


@pytest.mark.requirement("trial.secret-rotation")
def test_what_can_not_be_read_stops_it_and_the_old_key_stays(turret: Turret, tmp_path: Path) -> None:
    data = tmp_path / "data"
    agent_id, _ = trio.run(kept, data)

    async def spoil() -> bytes:
        store = await SqliteStore.open(data)
        (document,) = await store.find(KIND, "all", "1")
        await store.commit(Unit(puts=(Put(KIND, document.id, document.version, b"{", (("all", "1"),)),)))
        await store.aclose()
        return document.doc

    async def mend(doc: bytes) -> None:
        store = await SqliteStore.open(data)
        (document,) = await store.find(KIND, "all", "1")
        await store.commit(Unit(puts=(Put(KIND, document.id, document.version, doc, (("all", "1"),)),)))
        await store.aclose()

    doc = trio.run(spoil)
    ran = turret.run("rotate-secrets-key", "--data", str(data))
    assert (ran.code, "turret: store: " in ran.err, "is damaged" in ran.err) == (2, True, True)
    checked = turret.run("check", "--data", str(data), "--json")
    assert (checked.code, "is no holder's of secrets" in checked.out) == (1, True)
    trio.run(mend, doc)
    assert trio.run(kept, data, agent_id)[1][0]["readable"]


@pytest.mark.requirement("trial.secret-check")
def test_a_check_opens_each_and_a_restore_says_which_file_it_needs(turret: Turret, tmp_path: Path) -> None:
    data, backup, there = tmp_path / "data", tmp_path / "one.backup", tmp_path / "there"
    agent_id, _ = trio.run(kept, data)
    key = data / "secrets.key"
    copy = key.read_bytes()

    def check(where: Path, *more: str) -> tuple[int, int, int]:
        ran = turret.run("check", "--data", str(where), "--json", *more)
        return ran.code, ran.json["secrets"], ran.json["unreadable"]

    assert check(data) == (0, 1, 0)
    ran = turret.run("backup", "--data", str(data), str(backup))
    assert check(backup) == (0, 1, 0), "a backup has no key, and is not looked into"
    write_lines(key, [new_line(1)])
    assert check(data) == (0, 1, 1)
    assert "1 secrets (1 unreadable" in turret.run("check", "--data", str(data)).out
    key.write_bytes(copy[:40])
    ran = turret.run("check", "--data", str(data))
    assert (ran.code, "holds no keys of secrets" in ran.err, ran.out) == (2, True, "")
    key.unlink()
    assert check(data) == (0, 1, 0)
    assert turret.run("check", "--data", str(data), "--secrets-key-file", str(key)).code == 2
    key.write_bytes(copy)
    wire = ("--wire-key", str(data / "wire.key"))
    ran = turret.run("restore", str(backup), "--data", str(there), *wire)
    assert (ran.code, "1 secrets are in it: put your copy of secrets.key" in ran.err) == (0, True)
    (there / "secrets.key").write_bytes(copy)
    (there / "secrets.key").chmod(0o600)
    assert check(there) == (0, 1, 0)
    assert trio.run(kept, there, agent_id)[1][0]["readable"]
