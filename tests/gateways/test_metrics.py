"""Figures: what is counted, and what never becomes a label."""

import httpx
import pytest
import trio
from prometheus_client.parser import text_string_to_metric_families

from broker.app import Caller
from broker.wire.refusals import refuse
from gateways.metrics import Metrics, measured
from gateways.web import web_app
from tests.support.broker import Bench
from tests.support.broker_fake import FakeBroker
from tests.support.network import serving


def samples(metrics: Metrics) -> dict[tuple[str, ...], float]:
    """Every sample by its name and label values."""
    return {
        (sample.name, *(sample.labels[label] for label in sorted(sample.labels, reverse=True))): sample.value
        for family in text_string_to_metric_families(metrics.text().decode())
        for sample in family.samples
    }


@pytest.mark.requirement("http.metrics")
async def test_calls_are_counted_by_tool_and_outcome() -> None:
    broker = FakeBroker()
    metrics = Metrics(broker)  # type: ignore[arg-type]
    door = measured(broker, metrics)  # type: ignore[arg-type]
    assert await door.call(Caller(), "echo", b'{"a":1}') == {"echo": {"a": 1}}
    broker.answers["echo"] = refuse("conflict", "taken")
    await door.call(Caller(), "echo", b"{}")
    await door.call(Caller(), "echo", b"{}")
    broker.answers["echo"] = RuntimeError()
    with pytest.raises(RuntimeError):
        await door.call(Caller(), "echo", b"{}")
    found = samples(metrics)
    assert found["turret_calls_total", "echo", "ok"] == 1
    assert found["turret_calls_total", "echo", "conflict"] == 2
    assert found["turret_calls_total", "echo", "fault"] == 1
    assert found["turret_call_seconds_count", "echo"] == 4


async def test_a_call_that_is_given_up_counts_as_such(autojump_clock: trio.testing.MockClock) -> None:
    broker = FakeBroker()

    async def wait(*_: object) -> None:
        await trio.sleep_forever()

    broker.answers["echo"] = wait
    metrics = Metrics(broker)  # type: ignore[arg-type]
    with trio.move_on_after(2):
        await measured(broker, metrics).call(Caller(), "echo", b"{}")  # type: ignore[arg-type]
    found = samples(metrics)
    assert found["turret_calls_total", "echo", "cancelled"] == 1
    assert found["turret_call_seconds_sum", "echo"] == 2


@pytest.mark.requirement("http.metrics")
async def test_names_that_clients_choose_are_no_labels() -> None:
    broker = FakeBroker()
    metrics = Metrics(broker)  # type: ignore[arg-type]
    with pytest.raises(LookupError):
        await measured(broker, metrics).call(Caller(), "a1b2c3d4e5f6a7b8", b"{}")  # type: ignore[arg-type]
    assert b"a1b2c3d4e5f6a7b8" not in metrics.text()


async def test_the_measured_broker_is_the_broker_in_all_else() -> None:
    broker = FakeBroker()
    door = measured(broker, Metrics(broker))  # type: ignore[arg-type]
    assert door.settings is broker.settings
    assert door.wire_info() == broker.wire_info()


async def test_lag_is_how_late_the_loop_wakes_a_sleeper(autojump_clock: trio.testing.MockClock) -> None:
    metrics = Metrics(FakeBroker())  # type: ignore[arg-type]
    with trio.move_on_after(1.1):
        await metrics.sample_lag()
    assert samples(metrics)["turret_loop_lag_seconds_count",] == 4


async def test_lag_is_sampled_more_often_while_calls_come(autojump_clock: trio.testing.MockClock) -> None:
    metrics = Metrics(FakeBroker())  # type: ignore[arg-type]
    async with trio.open_nursery() as nursery:
        nursery.start_soon(metrics.sample_lag)
        await trio.sleep(0.01)
        for _ in range(100):
            metrics.called("ping", "ok", 0.001)
            await trio.sleep(0.01)
        nursery.cancel_scope.cancel()
    assert samples(metrics)["turret_loop_lag_seconds_count",] > 30


@pytest.mark.requirement("http.metrics")
async def test_no_id_of_a_deal_stands_in_the_figures(bench: Bench) -> None:
    metrics = Metrics(bench.broker)
    broker = measured(bench.broker, metrics)
    async with serving(web_app(broker, metrics)) as server, httpx.AsyncClient(base_url=server.url) as client:
        alfa, brav = await bench.open("ALFA"), await bench.open("BRAV")
        line = await bench.dial(alfa, brav)
        assert (await client.post("/v1/send_env", json=line.next("PICKUP"))).status_code == 200
        answer = await client.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain")
    text = answer.text
    for secret in (alfa.pk, brav.pk, line.conv, "ALFA", "BRAV", "127.0.0.1"):
        assert secret not in text
    found = samples(metrics)
    assert found["turret_calls_total", "send_env", "ok"] == 1
    assert found["turret_accepted_total",] == 2
    assert found["turret_ready",] == 1
    assert found["turret_actors", "conversation"] == 1
