"""The real doors with the broker's own authorization server."""

from collections.abc import AsyncIterator

import pytest

from tests.support.authserver import SignIns, signing_in
from tests.support.broker import Bench


@pytest.fixture
async def doors(bench: Bench) -> AsyncIterator[SignIns]:
    async with signing_in(bench) as found:
        yield found
