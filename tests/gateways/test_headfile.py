"""The head's file: the old one or the new one, for its owner alone."""

import os
from pathlib import Path
from typing import Any

import pytest

from gateways.headfile import FILE, HeadFile, read_head_file


@pytest.mark.requirement("audit.head-file")
async def test_what_was_written_last_is_read_and_is_the_owners(tmp_path: Path) -> None:
    keeper = HeadFile(tmp_path)
    assert await keeper.read() is None
    for text in (b"one\n", b"two\n"):
        await keeper.write(text)
        assert await keeper.read() == text
    assert (tmp_path / FILE).stat().st_mode & 0o777 == 0o600
    assert os.listdir(tmp_path) == [FILE]


@pytest.mark.requirement("audit.head-file")
@pytest.mark.parametrize("step", ["fsync", "replace"])
async def test_a_write_that_fails_leaves_the_old_one(
    step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keeper = HeadFile(tmp_path)
    await keeper.write(b"one\n")

    def fails(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        if step == "fsync":
            patched.setattr(os, "fsync", fails)
        else:
            patched.setattr(Path, "replace", fails)
        with pytest.raises(OSError, match="No space"):
            await keeper.write(b"two\n")
    assert await keeper.read() == b"one\n"
    await keeper.write(b"three\n")
    assert read_head_file(tmp_path) == b"three\n"


@pytest.mark.requirement("audit.head-file")
async def test_it_is_on_the_disk_before_it_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    fsync, replace = os.fsync, Path.replace
    monkeypatch.setattr(os, "fsync", lambda fd: (done.append("sync"), fsync(fd))[1])
    monkeypatch.setattr(Path, "replace", lambda self, to: (done.append("name"), replace(self, to))[1])
    await HeadFile(tmp_path).write(b"one\n")
    assert done == ["sync", "name", "sync"]


@pytest.mark.requirement("audit.head-file")
@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo])
def test_what_is_no_file_holds_up_nothing_and_says_nothing(make: Any, tmp_path: Path) -> None:
    make(tmp_path / FILE)
    assert read_head_file(tmp_path) == b""
