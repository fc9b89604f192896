"""Figures of the machine and of processes: CPU seconds, memory, the disk, and V, the cost of one verification.

Linux alone: they are read from /proc (proc(5)).
"""

import os
import platform
import shlex
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Final

import msgspec
from nacl.bindings import crypto_sign_open

from broker.wire.keys import SigningKey

TICKS: Final = os.sysconf("SC_CLK_TCK")
MESSAGE_BYTES: Final = 632
"""What is verified to find V: an envelope as docs and targets speak of it."""
COMMIT_BYTES: Final = 16_480
"""What `fsync_ms` writes at a time: four frames of a SQLite WAL, as a commit under light load does."""
IN_MEMORY: Final = frozenset({"tmpfs", "ramfs", "devtmpfs"})


def family(pid: int) -> list[int]:
    """The process and its living descendants; [] once it is gone."""
    found = [pid] if Path(f"/proc/{pid}").exists() else []
    for each in found:
        for tasks in Path(f"/proc/{each}/task").glob("*/children"):
            try:
                found += map(int, tasks.read_text().split())
            except OSError:
                continue  # a thread that ended meanwhile
    return found


def cpu_s(pid: int) -> float:
    """Seconds of CPU that a process has used, user and system, with all its threads and children, ended ones too."""
    total = 0
    for each in family(pid):
        try:
            fields = Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        total += sum(map(int, fields[11:15]))
    return total / TICKS


def rss_mib(pid: int) -> float:
    """Resident memory of a process and its children, MiB; what they share counts in each."""
    pages = 0
    for each in family(pid):
        try:
            pages += int(Path(f"/proc/{each}/statm").read_text().split()[1])
        except OSError:
            continue
    return pages * os.sysconf("SC_PAGE_SIZE") / 1024**2


def busy_s() -> float:
    """Seconds of CPU that all processes of the machine have used since it started."""
    fields = Path("/proc/stat").read_text().splitlines()[0].split()[1:]
    user, nice, system, _idle, _iowait, irq, softirq, steal = map(int, fields[:8])
    return (user + nice + system + irq + softirq + steal) / TICKS


def verifications_per_s(seconds: float = 0.3) -> float:
    """V: Ed25519 verifications (libsodium, 632 bytes) that one core does in a second of CPU.

    By CPU time of this process, so that neighbours do not make V small and a ratio to it look good; the median of
    slices. Ask while the broker is idle, before and after what is compared with it.
    """
    key = SigningKey.generate()
    message = bytes(MESSAGE_BYTES)
    signed, pk = bytes.fromhex(key.sign(message)) + message, bytes.fromhex(key.pk)
    slices: list[float] = []
    end = time.perf_counter() + seconds
    while not slices or time.perf_counter() < end:
        began = time.process_time()
        for _ in range(500):
            crypto_sign_open(signed, pk)
        slices.append(500 / (time.process_time() - began))
    return statistics.median(slices)


class Fsync(msgspec.Struct, frozen=True):
    """What writing and fdatasync of COMMIT_BYTES take on a disk, ms."""

    p50_ms: float
    p99_ms: float


def fsync_ms(directory: Path, times: int = 200) -> Fsync:
    """Append to a file in `directory` and make it durable, again and again."""
    data, took = bytes(COMMIT_BYTES), []
    with tempfile.TemporaryFile(dir=directory) as file:
        for _ in range(times):
            began = time.perf_counter()
            os.write(file.fileno(), data)
            os.fdatasync(file.fileno())
            took.append((time.perf_counter() - began) * 1000)
    took.sort()
    return Fsync(round(took[len(took) // 2], 3), round(took[int(len(took) * 0.99)], 3))


def file_system(path: Path) -> str:
    """The type of the file system that a path lies on, such as ext4."""
    best, kind = "", "unknown"
    resolved = str(path.resolve())
    for line in Path("/proc/self/mounts").read_text().splitlines():
        _, mount, found, *_ = line.split()
        inside = resolved == mount or resolved.startswith(mount.rstrip("/") + "/")
        if inside and len(mount) >= len(best):
            best, kind = mount, found
    return kind


def disk_directory() -> Path:
    """Where a bench keeps its data: $BENCH_DIR, else the first temporary directory that is on a disk.

    A file system in memory is taken where there is nothing else; `about` names it.
    """
    given = os.environ.get("BENCH_DIR")
    if given:
        return Path(given)
    candidates = [Path(tempfile.gettempdir()), Path("/var/tmp"), Path.cwd()]
    for each in candidates:
        if each.is_dir() and os.access(each, os.W_OK) and file_system(each) not in IN_MEMORY:
            return each
    return candidates[0]


def about(program: str, arguments: Sequence[str], packages: Sequence[str] = ()) -> dict[str, str]:
    """What figures were taken on, and with what: for the head of a report. `program`: such as bench.dealers."""
    names = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    processor = names[0].partition(":")[2].strip() if names else platform.machine()
    return {
        "machine": f"{processor}, {os.cpu_count()} CPUs, {platform.system()}, {file_system(disk_directory())}",
        "load": f"{os.getloadavg()[2]:.1f} on average in the last 15 minutes, the measurement's own included",
        "python": platform.python_version(),
        "packages": ", ".join(f"{each} {version(each)}" for each in packages),
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "command": shlex.join([Path(sys.executable).name.rstrip("0123456789."), "-m", program, *arguments]),
    }
