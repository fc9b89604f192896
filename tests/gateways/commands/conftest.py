"""Running `turret` in a test: in a thread of its own beside a live broker, with nothing of this person's around."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import trio

from gateways import cli
from tests.gateways.client.live import Live, live_broker


class Ran:
    """What a command line did."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err

    @property
    def json(self) -> Any:
        """Standard output as one JSON value."""
        return msgspec.json.decode(self.out)

    @property
    def lines(self) -> list[Any]:
        """Standard output as JSON lines."""
        return [msgspec.json.decode(line) for line in self.out.splitlines()]


class Turret:
    """Runs command lines, one at a time."""

    def __init__(self, capsys: pytest.CaptureFixture[str], directory: Path) -> None:
        self._capsys = capsys
        self.directory = directory

    def run(self, *arguments: str) -> Ran:
        """Here and now, for commands that need no broker."""
        self._capsys.readouterr()
        code = cli.run(arguments)
        return Ran(code, *self._capsys.readouterr())

    async def __call__(self, *arguments: str) -> Ran:
        """In a thread, while the broker runs in ours."""
        with trio.fail_after(20):
            return await trio.to_thread.run_sync(self.run, *arguments)

    def files(self, pattern: str) -> list[str]:
        """The names of the files in its directory."""
        return sorted(path.name for path in self.directory.glob(pattern))

    def key(self, name: str) -> str:
        """A new key file's path."""
        path = self.directory / f"{name}.key"
        assert self.run("keygen", "--out", str(path)).code == 0
        return str(path)


@pytest.fixture
def turret(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Turret:
    """`turret`, in an empty directory, with no environment and no pins."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for name in ("URL", "KEY", "WIRE", "JSON", "CONFIG"):
        monkeypatch.delenv(f"TURRET_{name}", raising=False)
    return Turret(capsys, tmp_path)


@pytest.fixture
async def live(turret: Turret, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Live]:
    """A live broker, which TURRET_URL names."""
    async with live_broker() as live:
        monkeypatch.setenv("TURRET_URL", live.http)
        yield live
