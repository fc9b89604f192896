"""What every test may ask for: the wire's time, a store, and the marker that names a requirement.

`clock` follows Trio's clock, so that together with `autojump_clock` an hour passes in no time.
`store` is the adapter that `--store memory|sqlite` names (default memory).
Fixtures of a running broker stand in tests/support/broker.py.
"""

import gc
import importlib.util
import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import hypothesis
import pytest

from broker.clock import VirtualClock
from broker.store.port import Store

START_MS = 1_782_345_678_000
"""The wall clock at the start of a test: the time of the example in wire.md, in milliseconds."""

hypothesis.settings.register_profile("quick", deadline=None, max_examples=50, derandomize=True)
hypothesis.settings.register_profile("soak", deadline=None, max_examples=2000)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))

pytest_plugins = [
    name
    for name in ("tests.support.broker", "tests.support.network")
    if importlib.util.find_spec(name) is not None
]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--store",
        choices=("memory", "sqlite"),
        default="memory",
        help="the store adapter behind the `store` fixture",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "requirement(id, ...): the sentences of the wire (tests/requirements) that this test shows"
    )


def pytest_collection_finish() -> None:
    """What the collection has made stays: the collector need not look at 8,000 tests again and again (half a second
    each time, where a benchmark asks for it)."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def config_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Clients note the wires that they meet in a directory of the run's own: in the home of whoever runs the tests, one
    of an earlier run that had the same port would be another wire's."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("config")))
        yield


@pytest.fixture
def clock() -> VirtualClock:
    """Wall time that starts at START_MS and follows Trio's clock; `clock.step` moves the wall alone."""
    return VirtualClock(START_MS)


@pytest.fixture
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    """An empty store of the adapter that `--store` names, closed after the test."""
    made: Store
    if request.config.getoption("--store") == "sqlite":
        from broker.store.sqlite import SqliteStore

        made = await SqliteStore.open(tmp_path / "store", hop="inline")
    else:
        from broker.store.memory import MemoryStore

        made = MemoryStore()
    yield made
    await made.aclose()
