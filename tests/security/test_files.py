"""Other users of the same machine: what a broker and a dealer write is for their owner alone, and put where it says."""

import logging
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from broker.clock import SystemClock
from broker.store.memory import MemoryStore
from broker.wire.keys import SigningKey
from gateways.client.pins import Pins
from gateways.configure import Configuration, ServeOptions
from gateways.keyfile import save_key, write_private
from gateways.serve import open_issuer, serve
from gateways.wirekeys import WireKeyError, open_keyring, rotate
from tests.security.deal import make_a_deal
from tests.support.process import served


@pytest.fixture(params=[0o000, 0o077], ids=["umask 0", "umask 077"])
def umask(request: pytest.FixtureRequest) -> Iterator[None]:
    """A process may be started with any umask; children inherit it."""
    before = os.umask(request.param)
    yield
    os.umask(before)


def modes(directory: Path) -> dict[str, int]:
    """The permissions of a directory, as ".", and of all in it."""
    found = {str(each.relative_to(directory)): each for each in [directory, *directory.rglob("*")]}
    return {name: stat.S_IMODE(path.lstat().st_mode) for name, path in found.items()}


@pytest.mark.requirement("threat.local-reader")
async def test_all_that_a_broker_writes_is_for_its_owner_alone(tmp_path: Path, umask: None) -> None:
    data = tmp_path / "data"
    async with served(data, "--transcripts", "parties") as broker:
        async with httpx.AsyncClient(base_url=broker.http) as http:
            await make_a_deal(http, broker.pk)
        running = modes(data)
        assert await broker.stop() == 0
    assert {"turret.db", "turret.db-wal", "turret.db-shm", "turret.lock", "wire.key"} <= set(running)
    for found in (running, modes(data)):
        assert found.pop(".") == 0o700
        assert set(found.values()) == {0o600}, found
    assert not [each for each in data.rglob("*") if each.is_socket()]


@pytest.mark.requirement("threat.local-reader")
async def test_all_that_a_dealer_writes_is_for_its_owner_alone(tmp_path: Path, umask: None) -> None:
    save_key(tmp_path / "my.key", SigningKey.generate())
    write_private(tmp_path / "deal.jsonl", b"{}\n")
    Pins(tmp_path / "config" / "known_wires").add("http://127.0.0.1:1", SigningKey.generate().pk)
    await open_keyring(tmp_path, MemoryStore(), 1000)
    rotate(tmp_path, 2000)
    found = modes(tmp_path)
    assert found["config"] == 0o700
    names = ("my.key", "deal.jsonl", "config/known_wires", "wire.key")
    assert {name: found[name] for name in names} == dict.fromkeys(names, 0o600)


@pytest.mark.requirement("threat.planted-file")
def test_what_was_put_aside_before_gets_nothing_of_what_is_written(tmp_path: Path) -> None:
    loot, path = tmp_path / "loot", tmp_path / "deal.jsonl"
    aside = tmp_path / "deal.jsonl.new"
    aside.symlink_to(loot)
    write_private(path, b"mine\n")
    assert path.read_bytes() == b"mine\n"
    assert not path.is_symlink()
    assert not loot.exists()
    aside.touch(0o666)
    watching = aside.open("rb")  # who has it open goes on reading what it was
    write_private(path, b"mine too\n")
    with watching:
        assert watching.read() == b""
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.requirement("threat.planted-file")
async def test_a_new_wire_key_is_not_written_into_a_file_of_somebody_else(tmp_path: Path) -> None:
    await open_keyring(tmp_path, MemoryStore(), 1000)
    loot = tmp_path / "loot"
    for name in ("wire.new", "wire.key.new"):
        (tmp_path / name).symlink_to(loot)
    rotate(tmp_path, 2000)
    assert not loot.exists()
    assert not (tmp_path / "wire.key").is_symlink()


@pytest.mark.requirement("threat.planted-file")
@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o702])
async def test_a_directory_where_everybody_may_put_a_key_is_refused(tmp_path: Path, mode: int) -> None:
    data = tmp_path / "data"
    data.mkdir()
    data.chmod(mode)
    with pytest.raises(WireKeyError, match="chmod o-w"):
        await open_keyring(data, MemoryStore(), 1000)
    assert not (data / "wire.key").exists()
    data.chmod(0o750)
    await open_keyring(data, MemoryStore(), 1000)
    data.chmod(mode)
    with pytest.raises(WireKeyError, match="chmod o-w"):
        rotate(data, 2000)


@pytest.mark.requirement("threat.local-reader")
@pytest.mark.parametrize(("mode", "warned"), [(0o644, True), (0o640, False), (0o600, False)])
async def test_a_secret_of_others_making_that_everybody_can_read_is_warned_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, mode: int, warned: bool
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("quite-secret\n")
    secret.chmod(mode)
    options = ServeOptions(
        data=str(tmp_path / "no" / "\0"),  # no broker comes of it
        issuer="http://127.0.0.1:1",
        issuer_client="turret",
        issuer_secret_file=str(secret),
    )
    with caplog.at_level(logging.WARNING), pytest.raises(ValueError, match="null"):
        await serve(Configuration(serve=options))
    assert (f"{secret} can be read by everybody" in caplog.text) is warned
    assert "quite-secret" not in caplog.text
    async with open_issuer(options, SystemClock()) as tokens:
        assert "quite-secret" not in repr(tokens)
