"""What every fuzz target shares: a bound on CPU time, loops in which nothing may fail, and inputs that failed before.

A target takes any bytes. What it may do with them is give a value or a refusal; it raises Wrong (or anything else)
where something else happens. Time is the CPU time of the thread, so that a busy machine is no slow parser.
"""

import gc
import logging
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import msgspec
import trio
import trio.testing
from hypothesis import strategies as st

LARGEST: Final = 65_536
"""Bytes of an input: what one frame or body may have."""
LIMIT_S: Final = 0.05
"""CPU time of one call, or of one step of a loop."""
CORPUS: Final = Path(__file__).parent / "corpus"


class Wrong(AssertionError):
    """What a target did is neither a value nor a refusal, or came too late."""


class Meter:
    """Measures the calls of one run."""

    def __init__(self) -> None:
        self.worst_s = 0.0

    def call(self, function: Callable[..., Any], *args: Any, **options: Any) -> Any:
        """The function's value; its time counts."""
        began = time.thread_time()
        value = function(*args, **options)
        self.worst_s = max(self.worst_s, time.thread_time() - began)
        return value


class Target(msgspec.Struct, frozen=True):
    """What is fed: `run` gets the bytes; `seeds` are inputs to begin with, `tokens` pieces that matter to it."""

    name: str
    run: Callable[[bytes, Meter], None]
    seeds: Sequence[bytes]
    tokens: Sequence[bytes] = ()
    grammar: st.SearchStrategy[bytes] | None = None
    examples: int = 1_000
    """Mutants in the short run."""

    def check(self, data: bytes) -> None:
        """Run once; and again, up to twice, where a collection or a neighbour may have cost the time.

        What is there before is kept out of collections then, as `turret serve` does with what its start has made.
        """
        for _ in range(3):
            meter = Meter()
            self.run(data, meter)
            if meter.worst_s <= LIMIT_S:
                return
            gc.collect()
            gc.freeze()
        raise Wrong(f"a call took {meter.worst_s * 1000:.0f} ms of CPU time")

    @property
    def corpus(self) -> list[Path]:
        """Files of inputs that are tried in every run."""
        return sorted((CORPUS / self.name).glob("*"))

    def keep(self, data: bytes) -> Path:
        """Put an input into the corpus."""
        folder = CORPUS / self.name
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / sha256(data).hexdigest()[:12]
        path.write_bytes(data)
        return path


class Steps(trio.abc.Instrument):
    """The longest step of any task, in CPU time."""

    def __init__(self) -> None:
        self.worst_s = 0.0
        self._began = 0.0

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        self._began = time.thread_time()

    def after_task_step(self, task: trio.lowlevel.Task) -> None:
        self.worst_s = max(self.worst_s, time.thread_time() - self._began)


class _Seen(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)


@contextmanager
def nothing_fails() -> Iterator[None]:
    """Raises Wrong at the end where anything was logged as a warning or worse: a contained fault is one too. What is
    said of damaged rows is what they are read for."""
    seen, root = _Seen(), logging.getLogger()
    seen.addFilter(lambda record: record.name != "turret.store")
    root.addHandler(seen)
    try:
        yield
    finally:
        root.removeHandler(seen)
    for record in seen.records:
        cause = record.exc_info[1] if record.exc_info else None
        raise Wrong(f"{record.name}: {record.getMessage()}") from cause


def in_loop(work: Callable[..., Awaitable[Any]], meter: Meter, *args: Any, steps: bool = True) -> Any:
    """Run a coroutine on a virtual clock, with nothing failing; with `steps` its longest step counts."""
    watch = Steps()
    with nothing_fails():
        value = trio.run(
            partial(work, *args),
            clock=trio.testing.MockClock(autojump_threshold=0),
            instruments=[watch],
            restrict_keyboard_interrupt_to_checkpoints=True,
        )
    if steps:
        meter.worst_s = max(meter.worst_s, watch.worst_s)
    return value
