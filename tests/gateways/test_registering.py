"""`POST /agents/register` over real sockets."""

from collections.abc import AsyncIterator

import httpx
import pytest

from broker.wire.keys import SigningKey
from gateways.caller import read_proxies
from gateways.metrics import Metrics
from gateways.registering import PATH
from gateways.web import web_app
from tests.support.broker import Bench
from tests.support.network import serving
from tests.support.registration import request


@pytest.fixture
async def door(bench: Bench) -> AsyncIterator[httpx.AsyncClient]:
    app = web_app(bench.broker, Metrics(bench.broker), proxies=read_proxies(["127.0.0.1"]))
    async with serving(app) as server, httpx.AsyncClient(base_url=server.url) as client:
        yield client


@pytest.mark.requirement("identity.register")
async def test_an_agent_is_made_with_201_and_the_identical_request_is_answered_with_200(
    bench: Bench, door: httpx.AsyncClient
) -> None:
    params = request(bench, "Ann's bot", SigningKey.generate())
    made = await door.post(PATH, json=params)
    assert made.status_code == 201
    assert made.headers["cache-control"] == "no-store"
    assert {"agent_id", "claim_code", "expires_at", "kid", "name"} <= made.json().keys()
    again = await door.post(PATH, json=params)
    assert (again.status_code, again.json()) == (200, {**made.json(), "replayed": True})


@pytest.mark.requirement("identity.register-limits")
async def test_the_address_that_counts_is_the_one_behind_the_proxy(
    bench: Bench, door: httpx.AsyncClient
) -> None:
    async def one(n: int, address: str) -> httpx.Response:
        params = request(bench, f"bot {n}", SigningKey.generate())
        return await door.post(PATH, json=params, headers={"x-forwarded-for": address})

    assert [(await one(n, "203.0.113.9")).status_code for n in range(5)] == [201] * 5
    refused = await one(5, "203.0.113.9")
    assert (refused.status_code, refused.json()["refusal"]["code"]) == (429, "rate_limited")
    assert int(refused.headers["retry-after"]) <= 3600
    assert (await one(6, "203.0.113.10")).status_code == 201


async def test_what_is_not_json_or_not_whole_is_refused(bench: Bench, door: httpx.AsyncClient) -> None:
    params = request(bench, "bot", SigningKey.generate())
    assert (await door.post(PATH, data={"name": "bot"})).status_code == 415
    assert (
        await door.post(PATH, content=b"{", headers={"content-type": "application/json"})
    ).status_code == 400
    for name in params:
        rest = {key: value for key, value in params.items() if key != name}
        refused = await door.post(PATH, json=rest)
        assert (refused.status_code, refused.json()["refusal"]["path"]) == (400, name)
    assert (await door.get(PATH)).status_code == 405
    assert (await door.post(PATH, json={**params, "owner_id": "ow_1"})).status_code == 400
