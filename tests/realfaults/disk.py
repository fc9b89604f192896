"""A small disk of one's own, without privileges: a tmpfs in a mount namespace of a user namespace.

A holder process keeps the namespace while brokers come and go in it; from outside the files are reached through
/proc/<holder>/root.
"""

import os
import shutil
import subprocess
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path

import trio


@cache
def supported() -> bool:
    """Whether this machine lets anyone mount a tmpfs of their own."""
    if shutil.which("unshare") is None or shutil.which("nsenter") is None:
        return False
    command = ["unshare", "-rm", "mount", "-t", "tmpfs", "none", "/mnt"]
    return subprocess.run(command, capture_output=True, timeout=10, check=False).returncode == 0


class Disk:
    """A mounted disk. `inside`: the command that runs another one where it is seen."""

    def __init__(self, holder: int, place: Path) -> None:
        self.place = place
        """Where it is mounted, for what runs inside."""
        self.outside = Path(f"/proc/{holder}/root") / place.relative_to("/")
        self.inside: Sequence[str] = (
            "nsenter", f"--target={holder}", "--user", "--mount", "--preserve-credentials",
            f"--wd={Path.cwd()}",
        )  # fmt: skip

    def fill(self, leave: int = 0) -> None:
        """Take all space but about `leave` bytes."""
        with (self.outside / "filler").open("ab") as file:
            while (free := self.free()) > leave:
                try:
                    file.write(bytes(min(free - leave, 65_536)))
                    file.flush()
                except OSError:
                    break

    def make_room(self) -> None:
        """Give back what `fill` took."""
        (self.outside / "filler").unlink()

    def free(self) -> int:
        """Bytes left."""
        space = os.statvfs(self.outside)
        return space.f_bavail * space.f_frsize

    async def remount(self, options: str) -> None:
        """Change how it is mounted (ro, rw); nothing may be open for writing."""
        command = [*self.inside, "mount", "-o", f"remount,{options}", str(self.place)]
        await trio.run_process(command, capture_stdout=True, capture_stderr=True)


@asynccontextmanager
async def small_disk(place: Path, mib: int) -> AsyncIterator[Disk]:
    """A disk of `mib` MiB mounted at `place`, until the block ends."""
    script = f"mkdir '{place}' && mount -t tmpfs -o size={mib}m,mode=700 none '{place}'"
    script += " && echo mounted && exec sleep 300"
    holder = await trio.lowlevel.open_process(["unshare", "-rm", "sh", "-c", script], stdout=subprocess.PIPE)
    assert holder.stdout is not None
    try:
        with trio.fail_after(10):
            assert await holder.stdout.receive_some(100) == b"mounted\n"
        yield Disk(holder.pid, place)
    finally:
        holder.kill()
        with trio.CancelScope(shield=True):
            await holder.wait()
            await holder.stdout.aclose()
