"""Figures of the machine and of processes."""

import os
from pathlib import Path

from bench.kit import machine


def test_the_cpu_of_a_process_grows_as_it_works() -> None:
    before = machine.cpu_s(os.getpid())
    while machine.cpu_s(os.getpid()) == before:
        sum(range(10_000))
    assert machine.cpu_s(os.getpid()) > before
    assert machine.busy_s() > 0


def test_a_process_has_memory_and_one_that_is_gone_has_nothing() -> None:
    assert machine.rss_mib(os.getpid()) > 1
    assert machine.family(os.getpid())[0] == os.getpid()
    gone = 2**22 + 1  # beyond the kernel's largest process id
    assert (machine.family(gone), machine.rss_mib(gone), machine.cpu_s(gone)) == ([], 0, 0)


def test_verifications_and_the_disk_are_measured(tmp_path: Path) -> None:
    assert machine.verifications_per_s(0.01) > 100
    found = machine.fsync_ms(tmp_path, 3)
    assert 0 < found.p50_ms <= found.p99_ms


def test_a_file_system_is_the_one_of_the_nearest_mount() -> None:
    assert machine.file_system(Path("/proc/self")) == "proc"
    assert machine.file_system(machine.disk_directory()) != "unknown"


def test_a_report_says_what_it_was_made_with() -> None:
    told = machine.about("bench.dealers", ["--runs", "2"], ["trio"])
    assert told["command"] == "python -m bench.dealers --runs 2"
    assert told["packages"].startswith("trio ")
