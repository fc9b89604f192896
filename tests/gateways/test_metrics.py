"""Figures: what is counted, and what never becomes a label."""

import ipaddress

import httpx
import pytest
import trio
from prometheus_client.parser import text_string_to_metric_families

from gateways.figures import BY_NAME, FIGURES, PROCESS
from gateways.measured import measured
from gateways.metrics import Metrics
from gateways.web import metrics_app, web_app
from gateways.wrappers import Origins
from tests.support.asgi import asked
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
    assert found["turret_tool_calls_total", "send_env", "ok"] == 1
    assert found["turret_envelopes_committed_total",] == 2
    assert found["turret_ready",] == 1
    assert found["turret_actors", "conversation"] == 1
    assert found["turret_envelopes_total", "accepted"] == 1
    assert found["turret_readers", "desk"] == 0
    assert found["turret_signatures_total", "inline"] >= 3


@pytest.mark.requirement("observe.documented")
async def test_every_figure_that_is_shown_is_declared_with_its_kind_and_its_labels(bench: Bench) -> None:
    metrics = Metrics(bench.broker)
    for figure in FIGURES:
        if not figure.of and figure.name.startswith(("turret_connections", "turret_mcp", "turret_outbox")):
            metrics.feed(figure.name, lambda figure=figure: {"ws": 1} if figure.labels else 1)
    metrics.called("echo", "ok", 0.1)
    metrics.sign_ins["token", "ok"] += 1
    metrics.audit_intact = True
    declared = BY_NAME | {figure.name: figure for figure in PROCESS}
    found = {
        family.name + ("_total" if family.type == "counter" else ""): family
        for family in text_string_to_metric_families(metrics.text().decode())
    }
    assert found.keys() == declared.keys()
    for name, family in found.items():
        figure = declared[name]
        assert family.type == figure.kind, name
        if name in BY_NAME:
            assert family.documentation == figure.help
            extra = {"le"} if figure.kind == "histogram" else set()
            for sample in family.samples:
                own = set(sample.labels) - extra
                assert own == set(figure.labels), sample


@pytest.mark.requirement("observe.local-alone")
async def test_figures_are_for_this_machine_alone_and_for_no_proxy_on_it(bench: Bench) -> None:
    metrics = Metrics(bench.broker)
    proxies = (ipaddress.ip_network("127.0.0.1/32"),)
    for named, headers, status in (
        ((), {}, 200),
        ((), {"x-forwarded-for": "127.0.0.1"}, 404),
        ((), {"forwarded": "for=127.0.0.1"}, 404),
        (proxies, {}, 404),
        (proxies, {"x-forwarded-for": "127.0.0.1"}, 404),
    ):
        app = web_app(bench.broker, metrics, proxies=named)
        assert (await asked(app, "/metrics", headers)).status == status, (named, headers)
    public = web_app(bench.broker, metrics, origins=Origins(public_url="https://turret.example"))
    for host, status in (
        ("turret.example", 404),
        ("localhost:8766", 200),
        ("127.0.0.1", 200),
        ("[::1]:8766", 200),
    ):
        assert (await asked(public, "/metrics", {"host": host})).status == status, host
    far = await asked(web_app(bench.broker, metrics), "/metrics", client="203.0.113.9")
    assert (far.status, b"turret_" in far.body) == (404, False)
    assert (await asked(web_app(bench.broker, None), "/metrics")).status == 404


@pytest.mark.requirement("observe.local-alone", "observe.health")
async def test_a_port_of_their_own_shows_figures_and_health_and_nothing_else(bench: Bench) -> None:
    app = metrics_app(bench.broker, Metrics(bench.broker))
    far = {"client": "203.0.113.9", "server": "203.0.113.1"}
    assert b"turret_ready 1.0" in (await asked(app, "/metrics", **far)).body
    assert (await asked(app, "/healthz", **far)).status == 200
    bench.broker.stopping = True
    assert (await asked(app, "/readyz", **far)).status == 503
    assert b"turret_ready 0.0" in (await asked(app, "/metrics", **far)).body
    for path in ("/v1/wire_info", "/mcp", "/.well-known/turret.json"):
        assert (await asked(app, path, **far)).status == 404
    assert (await asked(app, "/metrics", {"host": "rebound.example"}, server="127.0.0.1")).status == 421


def test_what_is_not_declared_is_not_shown() -> None:
    metrics = Metrics(FakeBroker())  # type: ignore[arg-type]
    with pytest.raises(KeyError):
        metrics.feed("turret_surprise", lambda: 1)
