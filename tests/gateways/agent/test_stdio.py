"""MCP over two pipes in memory: framing, both eras, cancelling, asking, and how it ends."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import MockClock, wait_all_tasks_blocked

from broker.wire.ids import Pk
from gateways import jsonrpc
from gateways.agent import stdio
from gateways.agent.stdio import GRACE_S, MOST_AT_ONCE, Lines, Stdio
from gateways.mcp import asking
from gateways.mcp.dispatch import Dispatch
from gateways.mcp.revisions import CAPABILITIES_KEY, LEGACY, MODERN, SUPPORTED, VERSION_KEY
from gateways.mcp.surface import Ask, Needs, Outcome, Surface, ToolOffer

META = {VERSION_KEY: MODERN, CAPABILITIES_KEY: {"elicitation": {}}}


class Pipes:
    """Two pipes in memory, and a tool for each thing that a tool may do."""

    def __init__(self) -> None:
        self._to_server, self._server_in = trio.open_memory_channel[bytes](10_000)
        self._server_out, self._from_server = trio.open_memory_channel[bytes](10_000)
        self.stuck = self.gone = False
        self.waiting = self.cancelled = 0
        self.last: Ask | None = None

    async def receive(self) -> bytes:
        """For the server."""
        try:
            return await self._server_in.receive()
        except trio.EndOfChannel:
            return b""

    async def send(self, data: bytes) -> None:
        """For the server."""
        if self.gone:
            raise BrokenPipeError
        if self.stuck:
            await trio.sleep_forever()
        assert data.endswith(b"\n")
        for line in data[:-1].split(b"\n"):
            await self._server_out.send(line + b"\n")

    def write(self, data: bytes) -> None:
        """Bytes to the server."""
        self._to_server.send_nowait(data)

    def say(self, message: Any) -> None:
        """A message to the server."""
        self.write(msgspec.json.encode(message) + b"\n")

    def ask(self, id: Any, method: str, params: dict[str, Any] | None = None) -> None:
        """A request of the handshake era."""
        self.say({"jsonrpc": "2.0", "id": id, "method": method, "params": params or {}})

    def ask_modern(self, id: Any, method: str, params: dict[str, Any] | None = None) -> None:
        """A request of 2026-07-28."""
        self.ask(id, method, {**(params or {}), "_meta": META})

    def call(self, id: Any, tool: str, *, modern: bool = False) -> None:
        """tools/call in either era."""
        (self.ask_modern if modern else self.ask)(id, "tools/call", {"name": tool, "arguments": {}})

    def end(self) -> None:
        """The end of the server's input."""
        self._to_server.close()

    async def hear(self) -> Any:
        """The next message; it stands on a line of its own."""
        with trio.fail_after(5):
            return msgspec.json.decode(await self._from_server.receive())

    def heard_nothing(self) -> bool:
        """Whether no message waits."""
        return self._from_server.statistics().current_buffer_used == 0

    def surface(self) -> Surface:
        """quick answers, slow waits, ask asks, break raises."""

        async def quick(ask: Ask, arguments: bytes) -> Outcome:
            self.last = ask
            return {"content": [{"type": "text", "text": "line one\nline two\u2028"}]}

        async def slow(ask: Ask, arguments: bytes) -> Outcome:
            self.waiting += 1
            try:
                await trio.sleep_forever()
            finally:
                self.waiting -= 1
                self.cancelled += 1

        async def sure(ask: Ask, arguments: bytes) -> Outcome:
            if not asking.can_ask(ask):
                return {"content": [], "isError": True}
            if not asking.answered(ask, "sure"):
                return Needs({"sure": asking.form("Sure?", {})}, state="s")
            return {"content": [{"type": "text", "text": ask.answers["sure"]["action"]}]}

        async def broken(ask: Ask, arguments: bytes) -> Outcome:
            raise RuntimeError("seed 0123456789abcdef")

        tools: dict[str, Callable[[Ask, bytes], Any]] = {
            "quick": quick,
            "slow": slow,
            "ask": sure,
            "break": broken,
        }
        descriptor = {"description": "d", "inputSchema": {"type": "object", "properties": {}}}
        return Surface(
            tools={
                name: ToolOffer(descriptor={"name": name, **descriptor}, call=call)
                for name, call in tools.items()
            },
            instructions="Be good.",
        )


@asynccontextmanager
async def serving() -> AsyncIterator[Pipes]:
    """A server on the pipes; it has ended in time when the block is left."""
    pipes = Pipes()
    door = Stdio(Dispatch(pipes.surface()), Pk("a1" * 32), pipes.receive, pipes.send)
    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(door.serve)
            yield pipes
            pipes.end()


@pytest.fixture
async def pipes(autojump_clock: MockClock) -> AsyncIterator[Pipes]:
    """A server on pipes, on the virtual clock."""
    async with serving() as pipes:
        yield pipes


def shake_hands(pipes: Pipes, version: str = LEGACY[0], capabilities: dict[str, Any] | None = None) -> None:
    params = {
        "protocolVersion": version,
        "capabilities": capabilities or {},
        "clientInfo": {"name": "t", "version": "1"},
    }
    pipes.ask(0, "initialize", params)
    pipes.say({"jsonrpc": "2.0", "method": "notifications/initialized"})


@pytest.mark.requirement("agent.handshake", "agent.stdio")
@pytest.mark.parametrize(
    ("asked", "given"), [*((each, each) for each in LEGACY), ("2024-11-05", LEGACY[0]), ("x", LEGACY[0])]
)
async def test_the_handshake_negotiates(pipes: Pipes, asked: str, given: str) -> None:
    shake_hands(pipes, asked)
    result = (await pipes.hear())["result"]
    assert result["protocolVersion"] == given
    assert result["capabilities"] == {"tools": {}}
    assert result["instructions"] == "Be good."
    pipes.ask("a", "tools/list")
    assert [each["name"] for each in (await pipes.hear())["result"]["tools"]] == [
        "quick",
        "slow",
        "ask",
        "break",
    ]
    pipes.call(1, "quick")
    answer = await pipes.hear()
    assert (answer["id"], "resultType" in answer["result"]) == (1, False)
    assert pipes.last is not None
    assert (pipes.last.revision, pipes.last.caller.pk) == (given, "a1" * 32)


@pytest.mark.requirement("agent.handshake", "agent.stdio")
async def test_a_request_of_2026_07_28_needs_no_handshake(pipes: Pipes) -> None:
    pipes.ask_modern(1, "server/discover")
    result = (await pipes.hear())["result"]
    assert result["supportedVersions"] == list(SUPPORTED)
    assert result["resultType"] == "complete"
    pipes.call("x", "quick", modern=True)
    answer = await pipes.hear()
    assert (answer["id"], answer["result"]["resultType"]) == ("x", "complete")
    assert pipes.last is not None
    assert pipes.last.revision == MODERN


@pytest.mark.requirement("agent.handshake")
async def test_both_eras_share_the_pipes(pipes: Pipes) -> None:
    shake_hands(pipes)
    await pipes.hear()
    pipes.call(1, "quick", modern=True)
    assert "resultType" in (await pipes.hear())["result"]
    pipes.call(2, "quick")
    assert "resultType" not in (await pipes.hear())["result"]


@pytest.mark.requirement("agent.handshake")
@pytest.mark.parametrize(
    ("method", "meta", "code"),
    [
        ("tools/list", {VERSION_KEY: "2027-01-01", CAPABILITIES_KEY: {}}, -32022),
        ("tools/list", {VERSION_KEY: LEGACY[0], CAPABILITIES_KEY: {}}, -32022),
        ("tools/list", {VERSION_KEY: MODERN}, -32602),
        ("tools/list", {VERSION_KEY: MODERN, CAPABILITIES_KEY: []}, -32602),
        ("tools/list", {VERSION_KEY: 5, CAPABILITIES_KEY: {}}, -32602),
        ("initialize", {VERSION_KEY: MODERN, CAPABILITIES_KEY: {}}, -32601),
        ("ping", {VERSION_KEY: MODERN, CAPABILITIES_KEY: {}}, -32601),
        ("server/discover", None, -32601),
        ("tools/lists", None, -32601),
        ("tools/list", "meta", -32602),
        ("tools/call", None, -32602),
        ("initialize", {}, -32602),
    ],
)
async def test_a_request_that_its_revision_does_not_know_is_an_error_with_its_id(
    pipes: Pipes, method: str, meta: Any, code: int
) -> None:
    pipes.ask("q", method, {} if meta is None else {"_meta": meta})
    answer = await pipes.hear()
    assert (answer["id"], answer["error"]["code"]) == ("q", code)
    pipes.ask("p", "ping")
    assert await pipes.hear() == {"jsonrpc": "2.0", "id": "p", "result": {}}


@pytest.mark.requirement("agent.stdio")
@pytest.mark.parametrize(
    ("line", "code", "id"),
    [
        (b"hello", -32700, None),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping"', -32700, None),
        (b"\xff\xfe", -32700, None),
        (b"\xef\xbb\xbf{}", -32700, None),
        (b'{"jsonrpc":"2.0","id":NaN,"method":"ping"}', -32700, None),
        (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32600, None),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', -32600, None),
        (b'{"jsonrpc":"1.0","id":7,"method":"ping"}', -32600, 7),
        (b'{"jsonrpc":"2.0","id":7,"method":5}', -32600, 7),
        (b'{"jsonrpc":"2.0","id":7,"method":"ping","params":[]}', -32600, 7),
        (b'{"jsonrpc":"2.0","id":7,"method":"ping","params":{"a":1,"a":2}}', -32602, 7),
        (b"{" * 100_000, -32700, None),
        (b"x" * (stdio.MOST_LINE + 1), -32600, None),
    ],
)
async def test_what_is_no_message_is_an_error_and_breaks_nothing(
    pipes: Pipes, line: bytes, code: int, id: Any
) -> None:
    pipes.write(line + b"\n")
    answer = await pipes.hear()
    assert (answer["id"], answer["error"]["code"]) == (id, code)
    pipes.ask(1, "ping")
    assert (await pipes.hear())["id"] == 1


@pytest.mark.requirement("agent.stdio")
async def test_messages_come_in_any_pieces_with_any_line_ends(pipes: Pipes) -> None:
    text = (
        b'\r\n  \n{"jsonrpc":"2.0","id":1,"method":"ping"}\r\n\n {"jsonrpc":"2.0","id":2,"method":"ping"}\n'
    )
    for byte in text:
        pipes.write(bytes([byte]))
    assert {(await pipes.hear())["id"] for _ in range(2)} == {1, 2}
    pipes.write(text + text)
    assert len([await pipes.hear() for _ in range(4)]) == 4
    pipes.write(b'{"jsonrpc":"2.0","id":3,"method":"ping"}')
    pipes.end()
    assert (await pipes.hear())["id"] == 3  # without a line end


@pytest.mark.requirement("agent.stdio")
async def test_an_answer_is_one_line_for_every_reader(pipes: Pipes) -> None:
    pipes.call(1, "quick")
    data = await pipes._from_server.receive()
    assert len(data.decode().splitlines()) == 1
    assert msgspec.json.decode(data)["result"]["content"][0]["text"] == "line one\nline two\u2028"


async def test_notifications_and_answers_that_nobody_waits_for_are_passed_over(pipes: Pipes) -> None:
    for message in (
        {"jsonrpc": "2.0", "method": "notifications/roots/list_changed"},
        {"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "quick"}},
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 99}},
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": None}},
        {"jsonrpc": "2.0", "method": "notifications/cancelled"},
        {"jsonrpc": "2.0", "id": 1, "result": {}},
    ):
        pipes.say(message)
    await wait_all_tasks_blocked()
    assert pipes.heard_nothing()
    shake_hands(pipes)
    await pipes.hear()
    pipes.say({"jsonrpc": "2.0", "id": 1, "result": {}})
    await wait_all_tasks_blocked()
    assert pipes.heard_nothing()
    assert pipes.last is None


@pytest.mark.requirement("agent.stdio")
async def test_requests_with_the_same_id_each_get_an_answer(pipes: Pipes) -> None:
    for _ in range(3):
        pipes.call(1, "quick")
    assert [(await pipes.hear())["id"] for _ in range(3)] == [1, 1, 1]


@pytest.mark.requirement("agent.cancel")
@pytest.mark.parametrize("modern", [False, True], ids=["handshake", MODERN])
async def test_a_cancelled_request_ends_and_is_not_answered(pipes: Pipes, modern: bool) -> None:
    pipes.call(1, "slow", modern=modern)
    pipes.call("1", "slow", modern=modern)
    await wait_all_tasks_blocked()
    assert pipes.waiting == 2
    pipes.say(
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1, "reason": "no"}}
    )
    await wait_all_tasks_blocked()
    assert (pipes.waiting, pipes.cancelled) == (1, 1)
    assert pipes.heard_nothing()
    pipes.ask(2, "ping")
    assert (await pipes.hear())["id"] == 2


async def test_too_many_requests_at_once_are_told_so(pipes: Pipes) -> None:
    for id in range(MOST_AT_ONCE + 1):
        pipes.call(id, "slow")
    answer = await pipes.hear()
    assert answer["id"] == MOST_AT_ONCE
    assert (answer["error"]["code"], answer["error"]["data"]["code"]) == (jsonrpc.REFUSED, "overloaded")


@pytest.mark.requirement("agent.ask-before", "agent.handshake")
@pytest.mark.parametrize("action", ["accept", "decline"])
async def test_in_the_handshake_era_the_user_is_asked_by_a_request(pipes: Pipes, action: str) -> None:
    shake_hands(pipes, capabilities={"elicitation": {}})
    await pipes.hear()
    pipes.call(1, "ask")
    question = await pipes.hear()
    assert (question["method"], question["params"]["message"]) == ("elicitation/create", "Sure?")
    pipes.say({"jsonrpc": "2.0", "id": question["id"], "result": {"action": action, "content": {}}})
    answer = await pipes.hear()
    assert (answer["id"], answer["result"]["content"][0]["text"]) == (1, action)


@pytest.mark.requirement("agent.ask-before")
async def test_in_2026_07_28_the_question_is_the_result(pipes: Pipes) -> None:
    pipes.call(1, "ask", modern=True)
    result = (await pipes.hear())["result"]
    assert result["resultType"] == "input_required"
    assert result["inputRequests"]["sure"]["method"] == "elicitation/create"
    again = {"name": "ask", "arguments": {}, "inputResponses": {"sure": {"action": "accept"}}}
    for state, code in ((result["requestState"][:-4] + "AAAA", -32602), (result["requestState"], None)):
        pipes.ask_modern(2, "tools/call", {**again, "requestState": state})
        answer = await pipes.hear()
        assert answer.get("error", {}).get("code") == code
    assert answer["result"]["content"][0]["text"] == "accept"


@pytest.mark.requirement("agent.ask-before")
async def test_who_declared_nothing_or_shook_no_hands_is_not_asked(pipes: Pipes) -> None:
    pipes.call(1, "ask")
    assert (await pipes.hear())["result"]["isError"]
    shake_hands(pipes)
    await pipes.hear()
    pipes.call(2, "ask")
    assert (await pipes.hear())["result"]["isError"]


@pytest.mark.requirement("agent.secrets")
async def test_a_fault_shows_a_number_and_nothing_of_the_inside(
    pipes: Pipes, caplog: pytest.LogCaptureFixture
) -> None:
    pipes.call(1, "break")
    error = (await pipes.hear())["error"]
    assert error["code"] == jsonrpc.INTERNAL_ERROR
    assert "seed" not in str(error)
    assert error["data"]["incident"] in caplog.text


@pytest.mark.requirement("agent.ends")
async def test_at_the_end_of_the_input_what_is_under_way_has_a_moment(autojump_clock: MockClock) -> None:
    async with serving() as pipes:
        pipes.call(1, "slow")
        pipes.call(2, "quick")
        began = trio.current_time()
    assert trio.current_time() - began == GRACE_S
    assert pipes.cancelled == 1
    assert (await pipes.hear())["id"] == 2
    assert pipes.heard_nothing()


@pytest.mark.requirement("agent.ends")
async def test_an_idle_server_ends_at_once(autojump_clock: MockClock) -> None:
    async with serving():
        began = trio.current_time()
    assert trio.current_time() == began


@pytest.mark.requirement("agent.ends")
@pytest.mark.parametrize("trouble", ["gone", "stuck"])
async def test_a_client_that_does_not_read_can_not_hold_it(autojump_clock: MockClock, trouble: str) -> None:
    async with serving() as pipes:
        setattr(pipes, trouble, True)
        for id in range(MOST_AT_ONCE * 3):
            pipes.call(id, "quick")
            pipes.call(-id - 1, "slow")
        await wait_all_tasks_blocked()
        began = trio.current_time()
    assert trio.current_time() - began <= 2 * GRACE_S
    assert pipes.waiting == 0


@pytest.mark.requirement("agent.ends")
async def test_a_client_that_writes_on_and_never_reads_counts_as_gone(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stdio, "MOST_WAITING", 10)
    async with serving() as pipes:
        pipes.stuck = True
        pipes.call("s", "slow")
        for _ in range(100):
            pipes.write(b"x\n")
        await wait_all_tasks_blocked()
        assert pipes.cancelled == 1


@given(pieces=st.lists(st.binary(max_size=12).map(lambda data: data.replace(b"\x00", b"\n"))))
def test_lines_do_not_depend_on_the_pieces(pieces: list[bytes]) -> None:
    whole, cut = Lines(8), Lines(8)
    text = b"".join(pieces)
    at_once = whole.feed(text) + whole.end()
    in_pieces = [each for piece in pieces for each in cut.feed(piece)] + cut.end()
    assert at_once == in_pieces
    expected = [None if len(line) > 8 else line.strip(b" \t\r") for line in text.split(b"\n")]
    assert at_once == [each for each in expected if each != b""]
