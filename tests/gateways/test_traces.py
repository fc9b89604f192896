"""Traces are off unless they are asked for, and say in one line what they lack."""

import sys

import pytest

from broker.config import Trace
from gateways.traces import CanNotTrace, NoTraces, open_traces
from tests.support.broker_fake import FakeBroker


@pytest.mark.requirement("observe.traces")
async def test_without_the_setting_nothing_is_wrapped_and_nothing_is_loaded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "gateways.otel", None)
    broker = FakeBroker()
    async with open_traces(Trace()) as traces:
        assert isinstance(traces, NoTraces)
        for wrap in (traces.requests, traces.calls, traces.store, traces.courier):
            assert wrap(broker) is broker  # type: ignore[operator]  # any thing at all


@pytest.mark.requirement("observe.traces")
async def test_where_the_extra_is_missing_a_line_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "gateways.otel", raising=False)
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    with pytest.raises(CanNotTrace, match=r"pip install 'turret\[otel\]'"):
        open_traces(Trace(enabled=True))
