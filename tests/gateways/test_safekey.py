"""secrets.key: made once, private, put back, named by the operator."""

import json
import logging
import traceback
from pathlib import Path

import msgspec
import pytest

from broker.store.memory import MemoryStore
from broker.store.port import Put, Unit
from gateways.safekey import SafeKeyError, key_path, new_line, open_safe_keys, read_lines, write_lines


@pytest.mark.requirement("trial.secret-key")
async def test_the_key_is_made_at_the_first_start_for_its_owner_alone_and_stays(tmp_path: Path) -> None:
    store = MemoryStore()
    first = await open_safe_keys(tmp_path, None, store, 1000)
    path = tmp_path / "secrets.key"
    assert path.stat().st_mode & 0o777 == 0o600
    text = path.read_bytes()
    assert (await open_safe_keys(tmp_path, None, store, 2000)).current == first.current
    assert path.read_bytes() == text
    assert json.loads(text)["since"] == 1000


@pytest.mark.requirement("trial.secret-key-lost")
async def test_a_lost_key_is_missed_aloud_and_its_copy_is_put_back(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = MemoryStore()
    first = await open_safe_keys(tmp_path, None, store, 1000)
    sealed = first.seal("ow_1", "A", "value", b"1" * 24)
    await store.commit(Unit(puts=(Put("safe", "ow_1", 0, b"{}", (("all", "1"),)),)))
    assert caplog.records == []
    path = tmp_path / "secrets.key"
    copy = path.read_bytes()
    path.unlink()
    with caplog.at_level(logging.WARNING):
        other = await open_safe_keys(tmp_path, None, store, 2000)
    assert "secrets.key is missing" in caplog.text
    assert other.open("ow_1", "A", sealed, first.current) is None
    path.write_bytes(copy + path.read_bytes())
    both = await open_safe_keys(tmp_path, None, store, 3000)
    assert (both.current, both.open("ow_1", "A", sealed, first.current)) == (other.current, "value")


@pytest.mark.requirement("trial.secret-key")
async def test_a_named_file_must_be_there(tmp_path: Path) -> None:
    named = tmp_path / "mount" / "keys"
    named.parent.mkdir()
    with pytest.raises(SafeKeyError, match="No such file"):
        await open_safe_keys(tmp_path, str(named), MemoryStore(), 1000)
    assert not (tmp_path / "secrets.key").exists()
    assert not named.exists()
    write_lines(named, [new_line(1)])
    assert (await open_safe_keys(tmp_path, str(named), MemoryStore(), 1000)).current
    assert not (tmp_path / "secrets.key").exists()


@pytest.mark.requirement("trial.secret-key")
async def test_a_link_says_where_the_file_is_and_stays_one(tmp_path: Path) -> None:
    there, link = tmp_path / "mount" / "keys", tmp_path / "secrets.key"
    link.symlink_to(there)
    with pytest.raises(SafeKeyError, match="No such file"):
        await open_safe_keys(tmp_path, None, MemoryStore(), 1000)
    there.parent.mkdir()
    write_lines(there, [new_line(1)])
    assert (await open_safe_keys(tmp_path, None, MemoryStore(), 1000)).current
    assert (key_path(tmp_path, None), key_path(tmp_path, str(link))) == (there, there)
    assert link.is_symlink()


@pytest.mark.requirement("trial.secret-key-changed")
async def test_a_key_is_known_to_be_in_its_file_or_not(tmp_path: Path) -> None:
    keys, path = await open_safe_keys(tmp_path, None, MemoryStore(), 1000), tmp_path / "secrets.key"
    assert keys.is_kept is not None
    text = path.read_bytes()
    path.write_bytes(text + msgspec.json.encode(new_line(2)) + b"\n")
    assert keys.is_kept(), "another one beside it is no loss"
    for spoilt in (msgspec.json.encode(new_line(2)), b"", text[:40]):
        path.write_bytes(spoilt)
        assert not keys.is_kept()
    path.unlink()
    assert not keys.is_kept()
    write_lines(path, [new_line(3)])
    path.write_bytes(text)
    assert keys.is_kept()


@pytest.mark.requirement("trial.secret-key", "trial.secret-hidden")
@pytest.mark.parametrize(
    "spoilt",
    [
        "",
        "\n",
        "{0}",
        '{{"key":"{0}"}}',
        '{{"key":"{0}00","since":1}}',
        '{{"key":"x{0}","since":1}}',
        "\udcff{0}",
    ],
)
async def test_what_holds_no_key_is_refused_and_not_shown(tmp_path: Path, spoilt: str) -> None:
    key, path = new_line(1).key, tmp_path / "secrets.key"
    path.touch(mode=0o600)
    path.write_bytes(spoilt.format(key).encode(errors="surrogateescape"))
    with pytest.raises(SafeKeyError, match="holds no keys") as told:
        read_lines(path)
    assert key not in "".join(traceback.format_exception(told.value)) + repr(told.value)


@pytest.mark.requirement("trial.secret-key")
def test_one_that_others_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "secrets.key"
    write_lines(path, [new_line(1)])
    path.chmod(0o640)
    with pytest.raises(SafeKeyError, match="chmod 600"):
        read_lines(path)
    path.unlink()
    (tmp_path / "secrets.key.new").mkdir()
    with pytest.raises(SafeKeyError):
        write_lines(path, [new_line(1)])
