"""The doors of these tests."""

import pytest

from tests.support.a2a import Doors, open_doors
from tests.support.broker import Bench


@pytest.fixture
async def doors(bench: Bench) -> Doors:
    return await open_doors(bench)
