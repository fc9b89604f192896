"""`POST /v1/<tool>` over real sockets: results, refusals, and bodies that no tool may see."""

import logging
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import trio

from broker.app import Caller
from broker.config import Limits, Settings
from broker.wire.refusals import CODES, refuse
from gateways.bodies import Rooms
from gateways.caller import read_proxies
from gateways.metrics import Metrics
from gateways.plain import with_key
from gateways.web import web_app
from tests.support.broker import Bench
from tests.support.broker_fake import DEALER_PK, FakeBroker, FakeTool, proof
from tests.support.network import serving
from tests.support.peers import dial, eventually
from tests.support.tokens import FakeBearers, agent_of, gate_of

SUITE = Path(__file__).parents[1] / "vectors" / "jsontestsuite" / "test_parsing"


@pytest.fixture
def broker() -> FakeBroker:
    return FakeBroker()


@pytest.fixture
async def client(broker: FakeBroker) -> AsyncIterator[httpx.AsyncClient]:
    app = web_app(broker, Metrics(broker), proxies=read_proxies(["127.0.0.1"]))  # type: ignore[arg-type]
    async with serving(app) as server, httpx.AsyncClient(base_url=server.url) as client:
        yield client


@pytest.fixture
async def real(bench: Bench) -> AsyncIterator[httpx.AsyncClient]:
    """The same door before a real broker."""
    async with (
        serving(web_app(bench.broker, Metrics(bench.broker))) as server,
        httpx.AsyncClient(base_url=server.url) as client,
    ):
        yield client


@pytest.mark.requirement("http.plain-result")
async def test_a_call_is_answered_with_its_result(client: httpx.AsyncClient, broker: FakeBroker) -> None:
    answer = await client.post("/v1/echo", json={"text": "schön", "n": 1})
    assert answer.status_code == 200
    assert answer.json() == {"echo": {"text": "schön", "n": 1}}
    assert answer.headers["content-type"] == "application/json; charset=utf-8"
    assert answer.headers["cache-control"] == "no-store"
    assert broker.calls == [(Caller(), "echo", '{"text":"schön","n":1}'.encode())]


async def test_the_body_goes_to_the_broker_as_it_came_and_a_slash_changes_nothing(
    client: httpx.AsyncClient, broker: FakeBroker
) -> None:
    assert (await client.post("/v1/wire_info", json={})).json() == broker.wire_info()
    assert (await client.post("/v1/wire_info/", json={})).status_code == 200


@pytest.mark.requirement("http.plain-refusal")
@pytest.mark.parametrize("code", CODES)
async def test_a_refusal_has_its_status_and_body(
    client: httpx.AsyncClient, broker: FakeBroker, code: str
) -> None:
    broker.answers["echo"] = refuse(code, "no", retry_after_ms=1500)
    answer = await client.post("/v1/echo", json={})
    assert answer.status_code == CODES[code].status
    assert answer.json() == {"refusal": broker.answers["echo"].body()}
    assert answer.headers["retry-after"] == "2"


async def test_an_unknown_tool_is_not_found(client: httpx.AsyncClient, broker: FakeBroker) -> None:
    for path in ("/v1/nothing", "/v1/", "/v1", "/v1/echo/x", "/v1/%00", "/v2/echo"):
        answer = await client.post(path, json={})
        assert (answer.status_code, answer.json()["refusal"]["code"]) == (404, "not_found"), path
    assert broker.calls == []


@pytest.mark.requirement("http.json-only")
@pytest.mark.parametrize(
    "kind",
    [
        None,
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/json; charset=latin-1",
        "text/plain; application/json",
        "application/jsonx",
    ],
)
async def test_what_a_foreign_page_could_post_reaches_no_tool(
    client: httpx.AsyncClient, broker: FakeBroker, kind: str | None
) -> None:
    headers = {} if kind is None else {"content-type": kind}
    answer = await client.post("/v1/echo", content=b"{}", headers=headers)
    assert (answer.status_code, answer.json()["refusal"]["code"]) == (415, "bad_request")
    assert broker.calls == []


@pytest.mark.parametrize(
    "kind", ["application/json", "Application/JSON;charset=UTF-8", 'application/json; charset="utf-8"']
)
async def test_json_in_utf8_is_taken_however_it_is_spelled(client: httpx.AsyncClient, kind: str) -> None:
    assert (await client.post("/v1/echo", content=b"{}", headers={"content-type": kind})).status_code == 200


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE", "OPTIONS", "PATCH", "FOO"])
async def test_other_methods_are_405_with_allow(
    client: httpx.AsyncClient, broker: FakeBroker, method: str
) -> None:
    answer = await client.request(method, "/v1/echo")
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")
    assert broker.calls == []


async def test_the_caller_is_what_its_proof_and_its_address_say(
    client: httpx.AsyncClient, broker: FakeBroker
) -> None:
    headers = {"authorization": f"Turret {proof(code='ALFA')}", "x-forwarded-for": "203.0.113.9"}
    assert (await client.post("/v1/echo", json={}, headers=headers)).status_code == 200
    assert broker.calls[0][0] == Caller(address="203.0.113.9", loopback=False, pk=DEALER_PK, code="ALFA")  # type: ignore[arg-type]
    broker.refuse_admission = refuse("bad_statement", "too old")
    for authorization, code in ((headers["authorization"], "bad_statement"), ("Bearer x", "unauthenticated")):
        answer = await client.post("/v1/echo", json={}, headers={"authorization": authorization})
        assert (answer.status_code, answer.json()["refusal"]["code"]) == (401, code)
        assert answer.headers["www-authenticate"] == "Turret"
    assert len(broker.calls) == 1


async def test_a_fault_shows_its_incident_alone(
    client: httpx.AsyncClient, broker: FakeBroker, caplog: pytest.LogCaptureFixture
) -> None:
    for fault in (RuntimeError("a secret"), ExceptionGroup("a secret", [ValueError("another")])):
        broker.answers["echo"] = fault
        with caplog.at_level(logging.ERROR):
            answer = await client.post("/v1/echo", json={})
        assert answer.status_code == 500
        assert set(answer.json()) == {"error", "incident"}
        assert answer.json()["incident"] in caplog.text
    broker.answers["echo"] = {"x": object()}
    assert (await client.post("/v1/echo", json={})).status_code == 500


async def test_a_client_that_leaves_ends_the_wait(client: httpx.AsyncClient, broker: FakeBroker) -> None:
    states: list[str] = []

    async def wait(*_: object) -> None:
        states.append("begun")
        try:
            await trio.sleep_forever()
        finally:
            states.append("ended")

    broker.answers["echo"] = wait
    address = (client.base_url.host, client.base_url.port or 0)
    async with dial(address) as stream:
        await stream.send_all(
            b"POST /v1/echo HTTP/1.1\r\nhost: localhost\r\n"
            b"content-type: application/json\r\ncontent-length: 2\r\n\r\n{}"
        )
        await eventually(lambda: states == ["begun"])
    await eventually(lambda: states == ["begun", "ended"])


@pytest.mark.requirement("http.size-64k")
async def test_64_kib_pass_and_one_more_byte_does_not(client: httpx.AsyncClient, broker: FakeBroker) -> None:
    headers = {"content-type": "application/json"}
    text = b'{"x":"%s"}'
    room = 65_536 - len(text) + 2
    assert (await client.post("/v1/echo", content=text % (b"x" * room), headers=headers)).status_code == 200
    answer = await client.post("/v1/echo", content=text % (b"x" * (room + 1)), headers=headers)
    assert (answer.status_code, answer.json()["refusal"]["code"]) == (413, "too_large")
    assert len(broker.calls) == 1


@pytest.mark.requirement("canonical.not-json-over-http")
@pytest.mark.parametrize("wrap", [b"%s", b'{"code":%s}'], ids=["whole", "inside"])
async def test_no_invalid_json_of_the_suite_gets_past_a_typed_refusal(
    real: httpx.AsyncClient, wrap: bytes
) -> None:
    headers = {"content-type": "application/json"}
    files = sorted(SUITE.glob("*.json"))
    assert len(files) > 250
    for path in files:
        answer = await real.post("/v1/resolve_code", content=wrap % path.read_bytes(), headers=headers)
        refusal = answer.json()["refusal"]
        if path.stat().st_size > 65_536 - 16:
            assert (answer.status_code, refusal["code"]) == (413, "too_large"), path.name
            continue
        assert (answer.status_code, refusal["code"]) == (400, "bad_request"), path.name
        if path.name.startswith("n_") and path.stat().st_size > 0:
            assert "path" not in refusal, path.name


SHARP = [
    b"NaN",
    b'{"code":NaN}',
    b'{"code":Infinity}',
    b'\xef\xbb\xbf{"code":"ALFA"}',
    '{"code":"ALFA"}'.encode("utf-16"),
    b'{"code":"\xff"}',
    b'{"code":"ALFA","code":"ALFA"}',
    b'{"code":"ALFA","c\\u006fde":"ALFA"}',
    b'{"code":"\\ud800"}',
    b'{"code":' + b"1" * 5000 + b"}",
    b'{"code":1e400}',
    b'{"code":' + b"[" * 30_000 + b"]" * 30_000 + b"}",
    b"[" * 60_000,
    b'{"a":' * 10_000,
    b"[]",
    b'"ALFA"',
    b"null",
    b"\0",
]


@pytest.mark.parametrize("body", SHARP, ids=range(len(SHARP)))
async def test_sharp_bodies_are_typed_refusals(real: httpx.AsyncClient, body: bytes) -> None:
    answer = await real.post("/v1/resolve_code", content=body, headers={"content-type": "application/json"})
    assert (answer.status_code, answer.json()["refusal"]["code"]) == (400, "bad_request")


async def test_the_operators_tools_do_not_exist_here(client: httpx.AsyncClient, broker: FakeBroker) -> None:
    broker.tools["suspend_desk"] = FakeTool(name="suspend_desk", face="operator")
    assert (await client.post("/v1/suspend_desk", json={"code": "ALFA"})).status_code == 404
    assert broker.calls == []


async def test_a_deal_over_plain_http(real: httpx.AsyncClient, bench: Bench) -> None:
    alfa, brav = await bench.open("ALFA"), await bench.open("BRAV")
    line = await bench.dial(alfa, brav)
    sent = await real.post("/v1/send_env", json=line.next("PICKUP"))
    assert (sent.status_code, sent.json()["n"]) == (200, 1)
    read = await real.post("/v1/read_conv", json={"conv": line.conv})
    assert [row["n"] for row in read.json()["rows"]] == [0, 1]
    assert (await real.post("/v1/resolve_code", json={"code": "NONE"})).status_code == 404


# By a token


@pytest.fixture
async def gated(broker: FakeBroker) -> AsyncIterator[tuple[httpx.AsyncClient, FakeBearers]]:
    """The door with a gate, and a tool of the network behind it."""
    broker.settings = Settings(limits=Limits(frame_bytes=1000, token_bytes=5000))
    broker.tools["say"] = FakeTool(name="say", face="network", scope="message", keyed=True)
    broker.answers["say"] = lambda caller, params, _: answered({"said": params.decode()})
    gate, bearers = gate_of(broker)
    app = web_app(broker, Metrics(broker), gate=gate)  # type: ignore[arg-type]
    async with serving(app) as server, httpx.AsyncClient(base_url=server.url) as client:
        yield client, bearers


async def answered(value: Any) -> Any:
    await trio.lowlevel.checkpoint()
    return value


@pytest.mark.requirement("doors.plain", "doors.challenge")
async def test_a_token_says_who_calls_and_a_bad_one_is_401_for_every_tool(
    gated: tuple[httpx.AsyncClient, FakeBearers], broker: FakeBroker
) -> None:
    client, bearers = gated
    bearers.give("good", agent_of("ag_1"))
    for tool in ("say", "echo"):
        assert (
            await client.post(f"/v1/{tool}", json={}, headers={"authorization": "Bearer good"})
        ).status_code == 200
        assert broker.calls[-1][0].agent == "ag_1"
        for shown in ("Bearer bad", "Bearer", "bearer", "Bearer a b", f"Bearer {'a' * 9000}"):
            no = await client.post(f"/v1/{tool}", json={}, headers={"authorization": shown})
            assert (no.status_code, no.json()["refusal"]["code"]) == (401, "unauthenticated"), shown
            ways = no.headers.get_list("www-authenticate")
            assert ways[0].startswith("Bearer resource_metadata=")
            assert 'error="invalid_token"' in ways[0]
            assert ways[1:] == ["Turret"]
    broker.lose("ag_1", refuse("suspended", "no"))
    no = await client.post("/v1/echo", json={}, headers={"authorization": "Bearer good"})
    assert (no.status_code, no.json()["refusal"]["code"]) == (403, "suspended")
    assert "www-authenticate" not in no.headers


@pytest.mark.requirement("doors.plain", "doors.challenge")
async def test_what_a_tool_refuses_for_want_of_a_token_or_a_scope_leads_to_one(
    gated: tuple[httpx.AsyncClient, FakeBearers], broker: FakeBroker
) -> None:
    client, bearers = gated
    bearers.give("good", agent_of("ag_1"))
    broker.answers["say"] = refuse("unauthenticated", "this needs a token", scope="message")
    no = await client.post("/v1/say", json={})
    assert no.status_code == 401
    assert "/oauth-protected-resource/mcp" in no.headers.get_list("www-authenticate")[0]
    broker.answers["say"] = refuse("insufficient_scope", "no", scope="message")
    no = await client.post("/v1/say", json={}, headers={"authorization": "Bearer good"})
    assert no.status_code == 403
    assert no.headers.get_list("www-authenticate")[0].endswith('error="insufficient_scope", scope="message"')


@pytest.mark.requirement("doors.hostile-tokens")
async def test_no_token_is_taken_from_a_query_or_beside_a_second_header(
    gated: tuple[httpx.AsyncClient, FakeBearers], broker: FakeBroker, caplog: pytest.LogCaptureFixture
) -> None:
    client, bearers = gated
    bearers.give("s3cret", agent_of("ag_1"))
    for query in ("access_token=s3cret", "token=s3cret", "auth=s3cret"):
        assert (await client.post(f"/v1/echo?{query}", json={})).status_code == 200
        assert broker.calls[-1][0].agent is None
    two = [("authorization", "Bearer s3cret"), ("authorization", "Bearer s3cret")]
    no = await client.post("/v1/say", json={}, headers=two)
    assert (no.status_code, no.json()["refusal"]["code"]) == (400, "bad_request")
    async with dial((client.base_url.host, client.base_url.port or 0)) as stream:
        await stream.send_all(
            b"POST /v1/echo HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
            b"authorization: Bearer s3cret\r\n x: folded\r\ncontent-length: 2\r\n\r\n{}"
        )
        with trio.fail_after(5):
            assert b" 401 " in await stream.receive_some(65536)
    assert bearers.asked == []
    assert "s3cret" not in caplog.text


@pytest.mark.requirement("doors.body-limit")
async def test_a_good_token_may_send_more_to_a_tool_of_the_network_alone(
    gated: tuple[httpx.AsyncClient, FakeBearers], broker: FakeBroker
) -> None:
    client, bearers = gated
    bearers.give("good", agent_of("ag_1"))
    good, bad = {"authorization": "Bearer good"}, {"authorization": "Bearer bad"}
    large, larger = {"text": "x" * 4000}, {"text": "x" * 6000}
    assert (await client.post("/v1/say", json=large, headers=good)).status_code == 200
    assert (await client.post("/v1/say/", json=large, headers=good)).status_code == 200
    assert bearers.asked[0] == bearers.asked[1], "it is judged once a request"
    assert len(bearers.asked) == 2
    for path, body, shown in (
        ("/v1/say", larger, good),
        ("/v1/say", large, {}),
        ("/v1/echo", large, good),
        ("/v1/nothing", large, good),
    ):
        assert (await client.post(path, json=body, headers=shown)).status_code == 413
    for body in (large, larger, {"text": "x"}):
        answer = await client.post("/v1/say", json=body, headers=bad)
        assert (answer.status_code, answer.json()["refusal"]["code"]) == (401, "unauthenticated")
        assert 'error="invalid_token"' in answer.headers["www-authenticate"], "so that it is renewed"


@pytest.mark.requirement("doors.idempotency-header")
async def test_the_header_is_another_spelling_of_the_param(
    gated: tuple[httpx.AsyncClient, FakeBearers], broker: FakeBroker
) -> None:
    client, _ = gated

    async def said(body: bytes, *keys: str) -> Any:
        headers = [("content-type", "application/json"), *(("idempotency-key", key) for key in keys)]
        answer = await client.post("/v1/say", content=body, headers=headers)
        return answer.json().get("said") or answer.json()["refusal"]["code"]

    assert await said(b"{}", "k-1") == '{"idempotency_key":"k-1"}'
    assert await said(b' { "a" : 1 } ', '"k 1"') == "bad_request"
    assert await said(b' { "a" : 1 } ', '"k-1"') == '{"idempotency_key":"k-1", "a" : 1 } '
    assert await said(b'{"idempotency_key":"k-1"}', "k-1") == '{"idempotency_key":"k-1"}'
    assert await said(b'{"idempotency_key":"k-1"}', "k-2") == "bad_request"
    assert await said(b"{}", "k-1", "k-1") == "bad_request"
    assert await said(b"{}", "x" * 129) == "bad_request"
    assert await said(b"[]", "k-1") == "bad_request"
    await client.post("/v1/echo", json={}, headers={"idempotency-key": "x" * 129})
    assert broker.calls[-1][2] == b"{}", "a tool that takes no key is not given one"


@pytest.mark.parametrize("body", [b"", b"{", b"\xff", b'{"a":1,"a":2}', b"null"])
def test_what_is_no_object_is_the_brokers_to_judge(body: bytes) -> None:
    assert with_key(body, ["k"]) == body


@pytest.mark.requirement("doors.large")
async def test_where_too_much_is_held_already_a_large_body_is_turned_away(
    broker: FakeBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateways.wrappers.Rooms", lambda: Rooms(0))
    broker.tools["say"] = FakeTool(name="say", face="network", scope="message")
    gate, bearers = gate_of(broker)
    bearers.give("good", agent_of("ag_1"))
    app = web_app(broker, Metrics(broker), gate=gate)  # type: ignore[arg-type]
    async with serving(app) as server, httpx.AsyncClient(base_url=server.url) as client:
        good = {"authorization": "Bearer good"}
        no = await client.post("/v1/say", json={"text": "x" * 100_000}, headers=good)
        assert (no.status_code, no.json()["refusal"]["code"]) == (503, "overloaded")
        assert no.headers["retry-after"] == "1"
        assert (await client.post("/v1/say", json={}, headers=good)).status_code == 200
