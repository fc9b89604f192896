"""A key on disk: for its owner alone, and never overwritten."""

import os
import stat
from pathlib import Path

import pytest

from broker.wire.keys import SigningKey
from gateways.keyfile import KeyFileError, load_key, save_key


@pytest.mark.requirement("cli.keyfile")
def test_a_key_comes_back_and_only_its_owner_can_read_it(tmp_path: Path) -> None:
    key, path = SigningKey.generate(), tmp_path / "a.key"
    save_key(path, key)
    assert load_key(path).pk == key.pk
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.requirement("cli.keyfile")
def test_a_key_is_never_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "a.key"
    save_key(path, SigningKey.generate())
    before = path.read_bytes()
    with pytest.raises(KeyFileError, match="never overwritten"):
        save_key(path, SigningKey.generate())
    os.symlink(tmp_path / "elsewhere", tmp_path / "link")
    with pytest.raises(KeyFileError, match="never overwritten"):
        save_key(tmp_path / "link", SigningKey.generate())
    assert path.read_bytes() == before
    assert not (tmp_path / "elsewhere").exists()


def test_a_mode_that_others_can_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.key"
    save_key(path, SigningKey.generate())
    path.chmod(0o640)
    with pytest.raises(KeyFileError, match="chmod 600"):
        load_key(path)


@pytest.mark.parametrize("text", ["", "ab" * 31, "AB" * 32, "zz" * 32, "ab" * 32 + " x", "ab" * 400])
def test_what_is_no_seed_is_refused_without_showing_it(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.key"
    path.write_text(text)
    path.chmod(0o600)
    with pytest.raises(KeyFileError, match="not a key file") as caught:
        load_key(path)
    assert not text or text not in str(caught.value)


def test_a_file_that_is_missing_or_nowhere_is_told(tmp_path: Path) -> None:
    with pytest.raises(KeyFileError, match="No such file"):
        load_key(tmp_path / "none")
    with pytest.raises(KeyFileError, match="No such file"):
        save_key(tmp_path / "no" / "where", SigningKey.generate())
