"""The link over MCP against a scripted HTTP peer; over the real endpoint it is tried in test_connect.py."""

from collections import deque
from collections.abc import Callable
from typing import Any

import httpx
import msgspec
import pytest
import trio
from trio.testing import MockClock

from broker.wire.keys import SigningKey
from broker.wire.refusals import Refusal, refuse
from gateways import eventstream
from gateways.client.clockwork import Backoff, WireClock
from gateways.client.errors import Disconnected, Refused, WireFault
from gateways.client.link import settle
from gateways.client.mcp_link import McpLink, ToolCaller, http_client
from gateways.client.signer import Signer

WIRE = SigningKey.from_seed("57" * 32)
NOW_MS = 1_782_345_678_000
Answer = dict[str, Any] | Refusal | httpx.Response | Exception | Callable[[dict[str, Any]], dict[str, Any]]


class Http:
    """Answers tools/call by script, else honestly."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.headers: list[httpx.Headers] = []
        self.bodies: list[bytes] = []
        self.scripts: dict[str, deque[Answer]] = {}
        self.events: list[dict[str, Any]] = []
        self.sse = False
        self.transport = httpx.MockTransport(self.handle)

    def script(self, tool: str, *answers: Answer) -> None:
        self.scripts.setdefault(tool, deque()).extend(answers)

    async def handle(self, request: httpx.Request) -> httpx.Response:
        message = msgspec.json.decode(request.content)
        tool, arguments = message["params"]["name"], message["params"]["arguments"]
        self.asked.append((tool, arguments))
        self.headers.append(request.headers)
        self.bodies.append(request.content)
        script = self.scripts.get(tool)
        answer: Answer = script.popleft() if script else await self.honest(tool, arguments)
        if isinstance(answer, httpx.Response):
            return answer
        if isinstance(answer, Exception):
            raise answer
        assert not callable(answer)
        refused = isinstance(answer, Refusal)
        structured = {"refusal": answer.body()} if isinstance(answer, Refusal) else answer
        result = {
            "resultType": "complete",
            "content": [],
            "structuredContent": structured,
            "isError": refused,
        }
        text = msgspec.json.encode({"jsonrpc": "2.0", "id": message["id"], "result": result})
        if self.sse:
            note = msgspec.json.encode({"jsonrpc": "2.0", "method": "notifications/progress", "params": {}})
            body = eventstream.comment("hi") + eventstream.encode(note) + eventstream.encode(text)
            return httpx.Response(200, content=body, headers={"content-type": "text/event-stream"})
        return httpx.Response(200, content=text, headers={"content-type": "application/json"})

    async def honest(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        if tool == "wire_info":
            return {"wire": WIRE.pk, "time": NOW_MS}
        assert tool == "wait_for_events"
        head = len(self.events)
        after = int(arguments["after"].rpartition(".")[2]) if "after" in arguments else head
        if head == after:
            await trio.sleep(arguments["wait_ms"] / 1000)
        found = self.events[after:]
        resume = {"recovered": True, "from": f"t.e.{after}", "head": f"t.e.{len(self.events)}"}
        return {"resume": resume, "events": found, "cursor": f"t.e.{after + len(found)}"}

    def ring(self, conv: str) -> None:
        self.events.append({"event": "ring", "cursor": f"t.e.{len(self.events) + 1}", "conv": conv})


class Heard:
    def __init__(self) -> None:
        self.convs: list[str] = []
        self.gaps: list[str] = []

    def event(self, kind: str, params: bytes) -> None:
        self.convs.append(msgspec.json.decode(params)["conv"])

    def gap(self, reason: str) -> None:
        self.gaps.append(reason)


@pytest.fixture
def http() -> Http:
    return Http()


@pytest.fixture
def link(http: Http) -> McpLink:
    clock = WireClock(lambda: NOW_MS + round(trio.current_time() * 1000))
    signer = Signer(SigningKey.from_seed("a1" * 32), WIRE.pk, clock)
    return McpLink(
        "http://wire.test/mcp", signer, backoff=Backoff(chance=lambda: 0.5), transport=http.transport
    )


@pytest.mark.requirement("client.resume")
async def test_events_come_by_long_polls_each_from_the_last_cursor(
    autojump_clock: MockClock, http: Http, link: McpLink, nursery: trio.Nursery
) -> None:
    heard = Heard()
    await nursery.start(link.run, heard)
    assert link.cursor == "t.e.0"
    await trio.sleep(50)
    http.ring("one")
    http.ring("two")
    await trio.sleep(50)
    assert heard.convs == ["one", "two"]
    assert link.cursor == "t.e.2"
    waits = [arguments["wait_ms"] for tool, arguments in http.asked if tool == "wait_for_events"]
    assert waits[0] == 0
    assert set(waits[1:]) == {20_000}


async def test_each_request_says_all_that_the_modern_revision_asks_for(
    autojump_clock: MockClock, http: Http, link: McpLink, nursery: trio.Nursery
) -> None:
    await nursery.start(link.run, Heard())
    headers, body = http.headers[0], msgspec.json.decode(http.bodies[0])
    meta = body["params"]["_meta"]
    assert headers["mcp-protocol-version"] == meta["io.modelcontextprotocol/protocolVersion"] == "2026-07-28"
    assert (headers["mcp-method"], headers["mcp-name"]) == ("tools/call", "wire_info")
    assert "mcp-session-id" not in headers


@pytest.mark.requirement("client.pin-changed")
async def test_another_wire_is_found_out_before_anything_is_signed(
    autojump_clock: MockClock, http: Http, link: McpLink
) -> None:
    http.script("wire_info", {"wire": "ee" * 32, "time": NOW_MS})
    with pytest.raises(WireFault, match="shows the key"):
        await link.run(Heard())
    assert [tool for tool, _ in http.asked] == ["wire_info"]


@pytest.mark.requirement("client.clock")
async def test_the_clock_is_taken_from_the_wire(
    autojump_clock: MockClock, http: Http, link: McpLink, nursery: trio.Nursery
) -> None:
    http.script("wire_info", {"wire": WIRE.pk, "time": NOW_MS + 7_200_000})
    await nursery.start(link.run, Heard())
    assert link.signer.clock.offset_ms == 7_200_000


@pytest.mark.requirement("client.clock")
async def test_a_clock_that_was_set_anew_is_corrected_by_the_refusal(
    autojump_clock: MockClock, http: Http, link: McpLink, nursery: trio.Nursery
) -> None:
    await nursery.start(link.run, Heard())
    refusal = refuse(
        "bad_statement", "ts is too far from the wire's clock", path="ts", wire_ts=NOW_MS // 1000 - 9000
    )
    http.script("wait_for_events", refusal)
    await trio.sleep(21)
    assert link.signer.clock.now_ms() < NOW_MS - 8_900_000
    http.ring("one")
    await trio.sleep(21)
    assert http.asked[-1][1]["statement"]["ts"] < NOW_MS // 1000 - 8_900


@pytest.mark.parametrize(
    ("url", "asked"),
    [("http://127.0.0.1:1/mcp", False), ("http://[::1]:1", False), ("https://wire.test/mcp", True)],
)
async def test_proxies_of_the_environment_are_for_other_machines(
    monkeypatch: pytest.MonkeyPatch, url: str, asked: bool
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://proxy.test:3128")
    async with http_client(url) as client:
        assert client.trust_env is asked


@pytest.mark.requirement("client.backoff")
@pytest.mark.parametrize(
    "trouble",
    [
        httpx.ConnectError("refused"),
        httpx.ReadTimeout("silence"),
        httpx.Response(502, content=b"<html>bad gateway"),
        refuse("overloaded", "later"),
    ],
)
async def test_a_poll_that_fails_is_repeated_from_the_same_cursor(
    autojump_clock: MockClock, http: Http, link: McpLink, nursery: trio.Nursery, trouble: Answer
) -> None:
    heard = Heard()
    await nursery.start(link.run, heard)
    http.script("wait_for_events", trouble, trouble, trouble)
    http.ring("one")
    await trio.sleep(60)
    assert heard.convs == ["one"]


@pytest.mark.requirement("client.gap")
async def test_a_trimmed_stream_is_told(
    autojump_clock: MockClock, http: Http, link: McpLink, nursery: trio.Nursery
) -> None:
    heard = Heard()
    await nursery.start(link.run, heard)
    resume = {"recovered": False, "reason": "epoch_changed", "from": "t.f.9", "head": "t.f.9"}
    http.script("wait_for_events", {"resume": resume, "events": [], "cursor": "t.f.9"})
    await trio.sleep(21)
    assert heard.gaps == ["epoch_changed"]


async def test_reads_carry_a_follow_statement_that_is_renewed(
    autojump_clock: MockClock, http: Http, link: McpLink, nursery: trio.Nursery
) -> None:
    await nursery.start(link.run, Heard())
    await trio.sleep(4000)
    polls = [arguments["statement"] for tool, arguments in http.asked if tool == "wait_for_events"]
    assert {poll["do"] for poll in polls} == {"follow"}
    assert len({poll["nonce"] for poll in polls}) == 3
    assert all(poll["wire"] == WIRE.pk for poll in polls)
    assert set(link.proof()) == {"statement", "sig"}


@pytest.mark.requirement("client.same-bytes")
async def test_an_unanswered_request_is_settled_with_the_same_arguments(
    autojump_clock: MockClock, http: Http, link: McpLink
) -> None:
    http.script("send_env", httpx.ReadTimeout("silence"), refuse("in_doubt", "?"), {"conv": "c", "n": 1})
    answer = await settle(link, "send_env", b'{"n":1,"envelope":{"b":1.50}}')
    assert msgspec.json.decode(answer) == {"conv": "c", "n": 1}
    assert [b'"arguments":{"n":1,"envelope":{"b":1.50}}' in body for body in http.bodies] == [True] * 3


@pytest.fixture
async def caller(http: Http) -> ToolCaller:
    return ToolCaller("http://wire.test/mcp", transport=http.transport)


async def test_an_answer_as_an_event_stream_is_read(http: Http, caller: ToolCaller) -> None:
    http.sse = True
    assert msgspec.json.decode(await caller.call("wire_info", b"{}", 5))["wire"] == WIRE.pk


@pytest.mark.parametrize(
    ("answer", "fault", "words"),
    [
        (refuse("unknown_desk", "nobody"), Refused, "unknown_desk"),
        (httpx.Response(401, content=b""), Refused, "unauthenticated"),
        (
            httpx.Response(429, json={"refusal": refuse("rate_limited", "slow").body()}),
            Refused,
            "rate_limited",
        ),
        (httpx.Response(503, headers={"retry-after": "9"}), Disconnected, "HTTP 503"),
        (httpx.Response(200, content=b"<html>"), Disconnected, "HTTP 200"),
        (
            httpx.Response(
                400, json={"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": "no"}}
            ),
            Refused,
            "bad_request: no",
        ),
        (
            httpx.Response(200, json={"jsonrpc": "2.0", "id": 1, "error": {"code": -32603, "message": "oh"}}),
            Disconnected,
            "oh",
        ),
        (httpx.Response(200, json={"jsonrpc": "2.0", "id": 1, "result": 7}), WireFault, "can't be read"),
        (
            httpx.Response(
                200,
                json={
                    "jsonrpc": "2.0",
                    "id": 1,
                    "result": {"isError": True, "content": [{"type": "text", "text": "no way"}]},
                },
            ),
            Refused,
            "no way",
        ),
    ],
)
async def test_an_http_answer_is_read_as_what_it_means(
    http: Http, caller: ToolCaller, answer: Answer, fault: type[Exception], words: str
) -> None:
    http.script("tool", answer)
    with pytest.raises(fault, match=words):
        await caller.call("tool", b"{}", 5)


async def test_a_busy_servers_hint_is_kept(http: Http, caller: ToolCaller) -> None:
    http.script("tool", httpx.Response(503, headers={"retry-after": "9"}))
    with pytest.raises(Disconnected) as caught:
        await caller.call("tool", b"{}", 5)
    assert caught.value.retry_after_s == 9


async def test_events_that_can_not_be_read_are_a_fault(http: Http, link: McpLink) -> None:
    http.script("wait_for_events", {"events": "none"})
    with pytest.raises(WireFault, match="events can't be read"):
        await link.run(Heard())
