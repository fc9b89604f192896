"""File descriptors: all that are allowed, and what is said when none is left."""

import logging
import os
import resource
import subprocess
import sys
from collections.abc import Iterator

import pytest

from gateways import descriptors
from gateways.descriptors import QUIET_S, Quiet


@pytest.fixture
def limits() -> Iterator[tuple[int, int]]:
    """The limits of this process, put back after the test."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    yield before
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.mark.requirement("faults.descriptors")
def test_whether_one_is_left_is_told_and_costs_none(limits: tuple[int, int]) -> None:
    open_now = os.listdir("/dev/fd")
    assert descriptors.are_left()
    assert os.listdir("/dev/fd") == open_now
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, limits[1]))
    assert not descriptors.are_left()


def test_all_that_the_machine_allows_are_taken() -> None:
    program = (
        "import resource; from gateways import descriptors\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (64, 96)); descriptors.take_all()\n"
        "print(resource.getrlimit(resource.RLIMIT_NOFILE))"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout == "(96, 96)\n"


@pytest.mark.requirement("faults.descriptors")
def test_the_complaint_is_one_line_a_minute() -> None:
    now = [0.0]
    quiet = Quiet(lambda: now[0])
    try:
        raise OSError("none left")
    except OSError:
        record = logging.LogRecord("trio", logging.ERROR, "", 0, "accept returned", (), sys.exc_info())
    assert quiet.filter(record)
    assert record.exc_info is None
    assert [quiet.filter(record) for _ in range(10)] == [False] * 10
    now[0] = QUIET_S
    assert quiet.filter(record)


def test_trios_servers_are_kept_quiet_once() -> None:
    logger = logging.getLogger("trio.serve_listeners")
    before = list(logger.filters)
    try:
        descriptors.keep_quiet()
        descriptors.keep_quiet()
        assert sum(isinstance(each, Quiet) for each in logger.filters) == 1
    finally:
        logger.filters[:] = before
