"""A broker with the operators' port over it, on a real socket."""

from collections.abc import AsyncIterator

import pytest

from gateways.operator.server import operator_app
from gateways.operator.token import OperatorToken
from tests.support.broker import Bench, open_bench
from tests.support.network import Served, serving
from tests.support.operators import TOKEN


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    async with open_bench() as found:
        yield found


@pytest.fixture
async def port(bench: Bench) -> AsyncIterator[Served]:
    """The operators' port."""
    async with serving(operator_app(bench.broker, OperatorToken(TOKEN))) as found:
        yield found
