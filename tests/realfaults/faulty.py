"""`python -m tests.realfaults.faulty serve …`: the real broker, with faults that signals switch on while it runs.

SIGUSR1  the kernel fails the system calls that FAIL_CALLS names ("fdatasync,fsync=EIO") from now on, for all threads:
         a seccomp filter, which needs no privilege and can't be taken back.
SIGUSR2  the wall clock is moved by what the file CLOCK_STEP holds, in milliseconds: the clock's own seam, since the
         kernel's wall clock is everybody's.
"""

import ctypes
import errno
import os
import platform
import signal
import struct
import sys
from pathlib import Path
from typing import Final

from broker import clock
from gateways.cli import main

NUMBERS: Final[dict[str, dict[str, int]]] = {
    "x86_64": {"pwrite64": 18, "fsync": 74, "fdatasync": 75, "ftruncate": 77, "seccomp": 317},
    "aarch64": {"pwrite64": 68, "fsync": 82, "fdatasync": 83, "ftruncate": 46, "seccomp": 277},
}
"""System calls by machine."""
NO_NEW_PRIVS: Final = 38
FILTER: Final = 1
ALL_THREADS: Final = 1
LOAD, EQUAL, RETURN = 0x20, 0x15, 0x06
"""Instructions: the call's number, jump if equal, return."""
ERROR, ALLOW = 0x0005_0000, 0x7FFF_0000


def supported() -> bool:
    """Whether this machine's calls are known."""
    return sys.platform == "linux" and platform.machine() in NUMBERS


def fail_calls(calls: list[str], error: int) -> None:
    """Have the kernel answer these calls with `error`. Raises OSError where it will not."""
    numbers = NUMBERS[platform.machine()]
    program = _instruction(LOAD, 0, 0, 0)
    for index, call in enumerate(calls):
        program += _instruction(EQUAL, len(calls) - index, 0, numbers[call])
    program += _instruction(RETURN, 0, 0, ALLOW) + _instruction(RETURN, 0, 0, ERROR | error)
    text = ctypes.create_string_buffer(program, len(program))
    header = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(text))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(NO_NEW_PRIVS, 1, 0, 0, 0) or libc.syscall(numbers["seccomp"], FILTER, ALL_THREADS, header):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def _instruction(code: int, if_true: int, if_false: int, value: int) -> bytes:
    return struct.pack("HBBI", code, if_true, if_false, value)


def _arm() -> None:
    calls, _, error = os.environ.get("FAIL_CALLS", "").partition("=")
    if calls:
        number = getattr(errno, error)
        signal.signal(signal.SIGUSR1, lambda *_: fail_calls(calls.split(","), number))
    step = os.environ.get("CLOCK_STEP")
    if step:
        now_ms, ahead = clock.SystemClock.now_ms, [0]

        def move(*_: object) -> None:
            ahead[0] += int(Path(step).read_text())

        signal.signal(signal.SIGUSR2, move)
        clock.SystemClock.now_ms = lambda self: now_ms(self) + ahead[0]  # type: ignore[method-assign]


if __name__ == "__main__":
    _arm()
    main()
