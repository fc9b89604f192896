"""After every test the ledger is added up."""

from collections.abc import AsyncIterator

import pytest

from tests.arena.ledger import open_arena
from tests.support.broker import Bench


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    """A broker on a memory store, whose ledger is right when the test is over."""
    async with open_arena() as bench:
        yield bench
