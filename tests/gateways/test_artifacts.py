"""`GET /artifact/<ref>`."""

import hashlib

import httpx
import pytest

from gateways.caller import read_proxies
from gateways.openapi import document
from gateways.web import web_app
from tests.support.artifacts import damage, publish_one
from tests.support.asgi import asked
from tests.support.broker import Bench
from tests.support.broker_fake import FakeBroker
from tests.support.network import serving


@pytest.mark.requirement("artifact.http")
async def test_an_artifact_is_its_exact_bytes_to_be_kept_for_ever(bench: Bench) -> None:
    ref, content = await publish_one(bench)
    app = web_app(bench.broker, None)
    async with serving(app) as server, httpx.AsyncClient(base_url=server.url) as client:
        answer = await client.get(f"/artifact/{ref}")
        assert (answer.status_code, answer.content) == (200, content)
        assert hashlib.sha256(answer.content).hexdigest() == ref
        headers = answer.headers
        assert headers["content-type"] == "application/json"
        assert headers["etag"] == f'"{ref}"'
        assert headers["x-content-type-options"] == "nosniff"
        assert "sandbox" in headers["content-security-policy"]
        assert {"public", "immutable", "max-age=31536000"} == set(headers["cache-control"].split(", "))
        head = await client.head(f"/artifact/{ref}")
        assert (head.status_code, head.content) == (200, b"")
        assert head.headers["content-length"] == str(len(content))
        assert head.headers["etag"] == headers["etag"]


@pytest.mark.requirement("artifact.http")
@pytest.mark.parametrize("known", ['"{}"', 'W/"{}"', '"other", "{}"', "*"])
async def test_who_has_the_bytes_is_not_sent_them_again(bench: Bench, known: str) -> None:
    ref, _ = await publish_one(bench)
    app = web_app(bench.broker, None)
    answer = await asked(app, f"/artifact/{ref}", {"if-none-match": known.format(ref)})
    assert (answer.status, answer.body, answer.headers["etag"]) == (304, b"", f'"{ref}"')
    assert "immutable" in answer.headers["cache-control"]
    assert "content-type" not in answer.headers
    other = await asked(app, f"/artifact/{ref}", {"if-none-match": '"other"'})
    assert other.status == 200


@pytest.mark.requirement("artifact.by-ref")
@pytest.mark.parametrize("shown", ["Bearer nonsense", "Turret nonsense", "Basic YTpi"])
async def test_who_shows_what_is_not_looked_at(bench: Bench, shown: str) -> None:
    ref, content = await publish_one(bench)
    answer = await asked(web_app(bench.broker, None), f"/artifact/{ref}", {"authorization": shown})
    assert (answer.status, answer.body) == (200, content)


@pytest.mark.requirement("artifact.http", "artifact.intact")
async def test_what_is_not_there_or_damaged_is_refused_as_by_other_doors(bench: Bench) -> None:
    ref, content = await publish_one(bench)
    app = web_app(bench.broker, None)
    missing = await asked(app, f"/artifact/{'0' * 64}", {"if-none-match": f'"{"0" * 64}"'})
    assert (missing.status, missing.headers["cache-control"]) == (404, "no-store")
    assert b'{"refusal":{"code":"NOT_FOUND"' in missing.body
    assert "etag" not in missing.headers
    assert (await asked(app, "/artifact/")).status == 404
    assert (await asked(app, f"/artifact/{ref}", method="POST", body=b"{}")).status == 405
    await damage(bench, ref)
    broken = await asked(app, f"/artifact/{ref}")
    assert (broken.status, broken.headers["cache-control"]) == (503, "no-store")
    assert b'"code":"unavailable"' in broken.body
    assert content[:20] not in broken.body


@pytest.mark.requirement("artifact.guessing")
async def test_the_address_that_guesses_is_the_one_behind_the_proxy(bench: Bench) -> None:
    app = web_app(bench.broker, None, proxies=read_proxies(["127.0.0.1"]))

    async def guess(address: str) -> int:
        return (await asked(app, f"/artifact/{'0' * 64}", {"x-forwarded-for": address})).status

    assert [await guess("203.0.113.9") for _ in range(21)] == [404] * 20 + [429]
    assert await guess("203.0.113.10") == 404


async def test_a_fault_is_an_incident_and_nothing_of_it_is_told() -> None:
    broker = FakeBroker()
    broker.artifacts["0" * 64] = RuntimeError("a secret")
    answer = await asked(web_app(broker, None), f"/artifact/{'0' * 64}")  # type: ignore[arg-type]  # a fake
    assert (answer.status, b"incident" in answer.body, b"secret" in answer.body) == (500, True, False)


@pytest.mark.requirement("artifact.http")
def test_the_door_is_described_for_programs() -> None:
    described = document([], "0.1.0")["paths"]["/artifact/{ref}"]["get"]
    assert described["security"] == [{}]
    assert {"200", "304", "404", "413", "429", "503"} <= set(described["responses"])
    assert not {"401", "403"} & set(described["responses"])
