"""Documents and probes."""

import json
from collections.abc import AsyncIterator

import httpx
import pytest

from broker.store.memory import MemoryStore
from broker.wire.refusals import refuse
from gateways import descriptors
from gateways.metrics import Metrics
from gateways.web import web_app
from tests.support.asgi import asked
from tests.support.broker import Bench
from tests.support.broker_fake import FakeBroker
from tests.support.network import serving


@pytest.fixture
def broker() -> FakeBroker:
    return FakeBroker()


@pytest.fixture
async def client(broker: FakeBroker) -> AsyncIterator[httpx.AsyncClient]:
    app = web_app(broker, Metrics(broker))  # type: ignore[arg-type]
    async with serving(app) as server, httpx.AsyncClient(base_url=server.url) as client:
        yield client


@pytest.mark.requirement("http.well-known")
async def test_the_wires_document_is_what_the_tool_says(bench: Bench) -> None:
    app = web_app(bench.broker, Metrics(bench.broker))
    async with serving(app) as server, httpx.AsyncClient(base_url=server.url) as client:
        answer = await client.get("/.well-known/turret.json")
        told = await client.post("/v1/wire_info", json={})
        assert answer.headers["content-type"] == "application/json; charset=utf-8"
        shown = answer.json()
        assert shown["wire"] == bench.broker.pk
        assert {key: value for key, value in shown.items() if key != "time"} == {
            key: value for key, value in told.json().items() if key != "time"
        }


@pytest.mark.requirement("http.probes")
async def test_ready_follows_the_broker_and_healthy_does_not(
    client: httpx.AsyncClient, broker: FakeBroker
) -> None:
    ready = await client.get("/readyz")
    assert (ready.status_code, ready.json()) == (200, {"ready": True, "reasons": []})
    broker.reasons = ["stopping"]
    ready = await client.get("/readyz")
    assert (ready.status_code, ready.json()) == (503, {"ready": False, "reasons": ["stopping"]})
    assert (await client.get("/healthz")).status_code == 200


@pytest.mark.requirement("faults.descriptors")
async def test_without_file_descriptors_it_is_not_ready(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(descriptors, "are_left", lambda: False)
    ready = await client.get("/readyz")
    assert (ready.status_code, ready.json()["reasons"]) == (503, [descriptors.NONE_LEFT])


async def test_documents_are_never_cached_and_take_get_alone(client: httpx.AsyncClient) -> None:
    for path in ("/.well-known/turret.json", "/healthz", "/readyz", "/openapi.json", "/metrics"):
        answer = await client.get(path)
        assert (answer.status_code, answer.headers["cache-control"]) == (200, "no-store"), path
        assert (await client.get(f"{path}/")).status_code == 200
        assert (await client.head(path)).content == b""
        refused = await client.post(path, json={})
        assert (refused.status_code, refused.json()["refusal"]["code"]) == (405, "bad_request")
        assert "GET" in refused.headers["allow"]


@pytest.mark.requirement("observe.root")
@pytest.mark.parametrize(
    ("accept", "page"),
    [
        ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", True),
        ("application/json, TEXT/HTML;q=0.5", True),
        ("*/*", False),
        ("application/json", False),
        ("text/htmlx", False),
        (None, False),
    ],
)
async def test_the_root_leads_a_browser_to_pages_and_a_program_to_the_doors(
    accept: str | None, page: bool
) -> None:
    broker = FakeBroker()
    app = web_app(broker, Metrics(broker))  # type: ignore[arg-type]
    answer = await asked(app, "/", {"accept": accept} if accept else {})
    assert answer.headers["vary"] == "Accept"
    if page:
        assert (answer.status, answer.headers["location"], answer.body) == (303, "/owner", b"")
        return
    assert answer.status == 200
    doors = json.loads(answer.body)
    for path in (doors["info"], doors["openapi"]):
        assert (await asked(app, path)).status == 200


@pytest.mark.requirement("observe.health")
async def test_readiness_goes_and_comes_with_what_the_broker_lacks_and_life_does_not(bench: Bench) -> None:
    app = web_app(bench.broker, None)
    store = bench.store
    assert isinstance(store, MemoryStore)

    async def ready() -> int:
        assert (await asked(app, "/healthz")).status == 200
        return (await asked(app, "/readyz")).status

    assert await ready() == 200
    enough, store.free = store.free, bench.broker.settings.store.min_free_bytes - 1
    assert await ready() == 503
    store.free = enough
    assert await ready() == 200
    store.broken = "a failed fsync"
    assert await ready() == 503
    store.broken = None
    assert await ready() == 200
    bench.broker.end_streams(refuse("unavailable", "the broker is restarting"))
    assert await ready() == 503
