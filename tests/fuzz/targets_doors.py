"""Doors, each over memory or a pair of sockets, with a real broker behind them; what they answer has to be readable."""

import json
import re
import socket
from collections.abc import Mapping
from typing import Any

import trio
import trio.testing
from websockets.frames import Opcode

from broker.app import Broker, Caller
from broker.wire.refusals import Refusal
from gateways import caller as callers
from gateways.bodies import is_json
from gateways.connection import Connection
from gateways.eventstream import Decoder
from gateways.frames import Messages
from gateways.listen import Bounds
from gateways.mcp import headers
from gateways.mcp.endpoint import mcp_app
from gateways.mcp.revisions import MODERN
from gateways.metrics import Metrics
from gateways.web import web_app
from gateways.websocket import ws_app
from tests.fuzz.harness import LARGEST, Meter, Target, in_loop
from tests.fuzz.inputs import TOKENS, compact
from tests.fuzz.targets_wire import KEY, REQUESTS, RPC_TOKENS, expect, request, statements
from tests.fuzz.world import CONV, FOLLOW, LINE, MOVE, SCREEN, WIRE_KEY, furnished
from tests.gateways import test_frames
from tests.gateways.mcp.harness import Exchange, modern
from tests.support.ws import masked, open_port

END_S = 8_000.0
"""Virtual seconds after which every exchange must have ended by itself."""
READ = 16_384
INTERNAL = -32603


def understood(message: Any) -> None:
    """A JSON-RPC message that is no internal error."""
    expect(isinstance(message, dict) and message.get("jsonrpc") == "2.0", f"no JSON-RPC: {message}")
    expect(message.get("error", {}).get("code") != INTERNAL, f"an internal error: {message}")


# ── MCP: a head's lines, an empty line, the body ──


def parted(data: bytes) -> tuple[str, str, list[tuple[bytes, bytes]], bytes]:
    """Verb, path, headers and body, as loosely as they come."""
    head, _, body = data.partition(b"\n\n")
    first, *lines = head.split(b"\n")
    verb, _, path = first.decode("latin-1").partition(" ")
    pairs = [line.partition(b":")[::2] for line in lines]
    return verb, path, [(name.strip().lower(), value.strip()) for name, value in pairs], body


async def knock(app: Any, verb: str, path: str, head: list[tuple[bytes, bytes]], body: bytes) -> Exchange:
    """One exchange; the client leaves when nothing more happens."""
    exchange = Exchange()
    pieces = [body[at : at + READ] for at in range(0, len(body), READ)] or [b""]
    exchange._request = [
        {"type": "http.request", "body": piece, "more_body": at < len(pieces) - 1}
        for at, piece in enumerate(pieces)
    ]
    place, _, query = path.partition("?")
    scope = {
        "type": "http",
        "method": verb,
        "path": place,
        "query_string": query.encode("latin-1"),
        "headers": head,
        "client": ("127.0.0.1", 50000),
        "server": ("127.0.0.1", 80),
    }
    with trio.fail_after(END_S):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(app, scope, exchange.receive, exchange.send)
            await trio.testing.wait_all_tasks_blocked()
            exchange.leave()
    return exchange


async def mcp_exchange(data: bytes) -> None:
    async with furnished() as bench:
        app = mcp_app(bench.broker)
        opened = await knock(app, "POST", "/mcp", [], INITIALIZE)
        data = data.replace(b"$SESSION", opened.headers["mcp-session-id"].encode())
        said = await knock(app, *parted(data))
    expect(said.status < 500 or said.status == 503, f"status {said.status}: {said.body[:200]!r}")
    kind = said.headers.get("content-type", "")
    if kind.startswith("text/event-stream"):
        for event in Decoder().feed(said.body):
            if event.data:
                understood(json.loads(event.data))
    elif said.body:
        understood(json.loads(said.body))


def mcp(data: bytes, meter: Meter) -> None:
    in_loop(mcp_exchange, meter, data)


def post(body: Any, path: str = "/mcp", **named: str) -> bytes:
    lines = [f"POST {path}", *(f"{name.replace('_', '-')}: {value}" for name, value in named.items())]
    return "\n".join([*lines, "", ""]).encode() + (body if isinstance(body, bytes) else compact(body))


def of_session(method: str, **params: Any) -> bytes:
    return post(request(method, params), mcp_session_id="$SESSION", mcp_protocol_version="2025-11-25")


def of_2026(method: str, **params: Any) -> bytes:
    body, named = modern(method, **params)
    return post(body, **named)


TOOL_CALLS: list[tuple[str, Mapping[str, Any]]] = [
    ("resolve_code", {"code": "ALFA"}),
    ("send_env", LINE[1]),
    ("send_env", {**LINE[1], "sig": "0" * 128}),
    ("desk_rings", {"code": "ALFA", "wait_ms": 100, "after": "0", **FOLLOW}),
    ("wait_for_events", {"wait_ms": 50, "limit": 5, "own": True, **FOLLOW}),
    ("list_convs", {"state": "ringing", "limit": 5, **FOLLOW}),
    ("read_conv", {"conv": CONV, "after": -1}),
    ("receipt", {"conv": CONV, "n": 0}),
    ("presence", {"codes": ["ALFA", "BRAV"]}),
    ("canonicalize", {"envelope": LINE[2]["envelope"]}),
    ("screen_desk", SCREEN),
    ("move_desk", {**MOVE, "new_sig": "0" * 128}),
    ("wire_info", {}),
]
"""Tools and arguments that do something in the world."""
INFO = {"name": "t", "version": "1"}
INITIALIZE = request("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": INFO})
CALLS: list[tuple[str, Mapping[str, Any]]] = [
    ("tools/list", {}),
    *(("tools/call", {"name": name, "arguments": arguments}) for name, arguments in TOOL_CALLS),
    ("resources/read", {"uri": f"turret://conv/{CONV}"}),
    ("resources/subscribe", {"uri": f"turret://conv/{CONV}"}),
    ("prompts/get", {"name": "answer_a_ring", "arguments": {"code": "ALFA"}}),
    ("completion/complete", {"ref": {"type": "ref/prompt", "name": "answer_a_ring"},
                             "argument": {"name": "code", "value": "A"}}),
    ("subscriptions/listen", {"notifications": {"resourceSubscriptions": [f"turret://conv/{CONV}"]}}),
    ("server/discover", {}),
]  # fmt: skip
SURROGATES = [
    ("tools/call", {"name": "@"}),
    ("tools/call", {"name": "resolve_code", "arguments": {"code": "@"}}),
    ("prompts/get", {"name": "answer_a_ring", "arguments": {"code": "@"}}),
    ("resources/read", {"uri": "@"}),
    ("tools/list", {"cursor": "@"}),
    ("ping", {"_meta": {"progressToken": "@"}}),
]
MCP_SEEDS = [
    *(of_session(method, **params).replace(b'"@"', b'"\\ud800"') for method, params in SURROGATES),
    of_2026("tools/call", name="wire_info").replace(b"mcp-name: wire_info", b"mcp-name: =?base64?\xe9?="),
    of_2026("tools/call", name="wire_info").replace(b"mcp-name: wire_info", b"mcp-name: =?base64?/w==?="),
    post(INITIALIZE),
    *(of_session(method, **params) for method, params in CALLS),
    *(of_2026(method, **params) for method, params in CALLS),
    post(request("tools/list", {}), path="/mcp/wire?names=portable"),
    b"GET /mcp\naccept: text/event-stream\nmcp-session-id: $SESSION\n\n",
    b"DELETE /mcp\nmcp-session-id: $SESSION\n\n",
    post(
        b'{"jsonrpc":"2.0","id":1,"result":{}}', mcp_session_id="$SESSION", mcp_protocol_version="2025-11-25"
    ),
    post(
        b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}',
        mcp_session_id="$SESSION",
    ),
]
MCP_TOKENS = [
    *RPC_TOKENS, b"accept: application/json\n", b"accept: */*;q=0\n", b"mcp-name: =?base64?YQ==?=\n", b"\n\n", b"GET ",
    b"mcp-session-id: $SESSION\n", b"mcp-protocol-version: 2024-11-05\n", b"content-type: text/plain\n", b'"_meta":{}',
    b'"progressToken":[]', b'"cursor":1', b'"name":null', b'"arguments":null', b'"uri":"turret://"', MODERN.encode(),
    b'"arguments":{"n":1.0}', b"tools/call", b"authorization: Turret a.b\n", b"mcp-param-a: b\n",
]  # fmt: skip


# ── WebSocket: the reader against the codec alone, and a whole connection ──


def is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def frames(data: bytes, meter: Meter) -> None:
    agree: Any = test_frames.test_however_the_bytes_are_cut_the_messages_are_those_of_the_codec
    step = 1 + len(data) % 700
    for cuts in ([], list(range(0, len(data), step))):
        agree.hypothesis.inner_test(data, cuts)
    messages = Messages(test_frames.opened(), LARGEST)
    for at in range(0, len(data), READ):
        for message in meter.call(messages.read, data[at : at + READ]):
            expect(message is None or is_text(message), "a text that is no UTF-8")


UPGRADE = (
    b"GET /ws HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
)


async def collect(stream: trio.abc.ReceiveStream, into: bytearray) -> None:
    try:
        while data := await stream.receive_some(65_536):
            into += data
    except trio.BrokenResourceError:
        pass


async def talk(stream: Any, parts: list[bytes], said: bytearray) -> None:
    """Send each part when nothing moves any more, half-close, and read to the end, which must come before END_S."""
    with trio.fail_after(END_S):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(collect, stream, said)
            try:
                for data in parts:
                    await stream.send_all(data)
                    await trio.testing.wait_all_tasks_blocked()
                await stream.send_eof()
            except trio.BrokenResourceError:
                pass


def readable(said: bytes) -> None:
    """A refusal in HTTP; or the handshake's answer and whole frames, text of them in JSON, none after a close."""
    head, found, rest = said.partition(b"\r\n\r\n")
    expect(not said or (bool(found) and head.startswith(b"HTTP/1.1 ")), f"no answer: {said[:80]!r}")
    while head.startswith(b"HTTP/1.1 101") and rest:
        opcode, size, start = rest[0] & 0x0F, rest[1] & 0x7F, 2
        if size > 125:
            start = 4 if size == 126 else 10
            size = int.from_bytes(rest[2:start], "big")
        payload, rest = rest[start : start + size], rest[start + size :]
        expect(len(payload) == size, "a frame was cut")
        if opcode == Opcode.TEXT:
            understood(json.loads(payload))
        expect(opcode in (Opcode.TEXT, Opcode.CLOSE, Opcode.PING, Opcode.PONG), f"opcode {opcode}")
        expect(opcode != Opcode.CLOSE or not rest, "something after the close")


async def deal(data: bytes) -> bytes:
    said = bytearray()
    async with furnished() as bench, open_port(bench.broker) as port:
        parts = [data] if data.startswith(b"GET") else [UPGRADE, data]
        await talk(await port.connect(), parts, said)
    return bytes(said)


def dealing(data: bytes, meter: Meter) -> None:
    readable(in_loop(deal, meter, data))  # what judges thousands of answers is not what is measured


FRAME_SEEDS = [
    *(masked(each) for each in REQUESTS),
    masked(REQUESTS[0]) * 5 + masked(b"", Opcode.PING),
    masked(REQUESTS[0][:50], fin=False) + masked(b"x", Opcode.PING) + masked(REQUESTS[0][50:], Opcode.CONT),
    masked(b"\x00", Opcode.BINARY) + masked(b"\x03\xe8bye", Opcode.CLOSE),
    masked(request("watch", {"codes": ["ALFA", "BRAV"]})) + masked(request("unfollow", {"code": "ALFA"})),
    *(
        masked(request("authenticate", {"statement": json.loads(each), "sig": "0" * 128}))
        for each in statements()[:4]
    ),
    b"".join(masked(request("send_env", step, step["n"])) for step in LINE[1:]),
    masked(request("follow", {"code": "ALFA", "after": "0", **FOLLOW}))
    + masked(request("send_env", LINE[1], "x")),
    *(masked(request(name, arguments)) for name, arguments in TOOL_CALLS),
    UPGRADE,
]
FRAME_TOKENS = [
    *TOKENS[:12], b"\x81\x80\0\0\0\0", b"\x88\x82\0\0\0\0\x03\xe8", b"\x89\xfe", b"\x81\xff\x7f", b"\x01\x80\0\0\0\0",
    b"\x80\x80\0\0\0\0", b"\xc1", b"\x82\x81\0\0\0\0\xff", b"\r\n\r\n", b"Host: a\r\n", b"X: \xff\r\n", b"GET /\xff ",
    b"Origin: http://a\r\n", b"Sec-WebSocket-Extensions: permessage-deflate\r\n", b"Authorization: Turret a.b\r\n",
]  # fmt: skip


# ── HTTP: bytes on the public port ──


def public(broker: Broker) -> Any:
    figures = Metrics(broker)
    doors: Any = ws_app(broker, shutdown=trio.Event())
    return web_app(broker, figures, mcp_app=mcp_app(broker), ws_app=doors)


async def visit(data: bytes) -> None:
    said = bytearray()
    async with furnished() as bench:
        near, far = (trio.SocketStream(trio.socket.from_stdlib_socket(each)) for each in socket.socketpair())
        connection = Connection(public(bench.broker), near, Bounds(), None, trio.Event())
        async with trio.open_nursery() as nursery, far:
            nursery.start_soon(connection.live)
            await talk(far, data.split(PAUSE), said)
    codes = {int(each) for each in re.findall(rb"^HTTP/1\.1 (\d{3}) ", said, re.MULTILINE)}
    expect(not said or said.startswith(b"HTTP/1.1 "), f"no answer: {said[:80]!r}")
    expect(not codes & {500, 502, 504}, f"answered {codes}: {said[-300:]!r}")


def http(data: bytes, meter: Meter) -> None:
    in_loop(visit, meter, data)


PAUSE = b"~~~"
"""In an input for this port: what follows is sent when nothing moves any more."""
PROOF = callers.write_proof(compact(dict(sorted(FOLLOW["statement"].items()))), FOLLOW["sig"]).encode()
HEAD = b" HTTP/1.1\r\nHost: 127.0.0.1\r\n"


def posted(path: str, body: bytes) -> bytes:
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


HTTP_SEEDS = [
    b"GET /healthz" + HEAD + b"\r\n",
    b"GET /rings/ALFA?after=0&auth=" + PROOF + HEAD + b"Accept: text/event-stream\r\n\r\n",
    b"GET /rings/ALFA" + HEAD + b"Authorization: Turret " + PROOF + b"\r\nLast-Event-ID: a.b.1\r\n\r\n",
    posted("/mcp", b'{"jsonrpc":"2.0","id":1,"method":"ping"}'),
    posted("/mcp", request("tools/list", {})),
    b"POST /mcp" + HEAD + b'Transfer-Encoding: chunked\r\n\r\n5\r\n{"a":\r\n2\r\n1}\r\n0\r\n\r\n',
    b"GET /openapi.json" + HEAD + b"\r\nGET /metrics" + HEAD + b"Connection: close\r\n\r\n",
    b"OPTIONS /mcp" + HEAD + b"Origin: http://127.0.0.1\r\nAccess-Control-Request-Method: POST\r\n\r\n",
    UPGRADE
    + PAUSE
    + masked(REQUESTS[0])
    + masked(b"", Opcode.PING)
    + PAUSE
    + masked(b"\x03\xe8", Opcode.CLOSE),
    *(posted(f"/v1/{name}", compact(arguments)) for name, arguments in TOOL_CALLS),
    UPGRADE.replace(b"\r\n\r\n", b"\r\nAuthorization: Turret a.b\r\n\r\n"),
    b"GET /.well-known/turret.json" + HEAD + b"Cookie: a=b\r\nRange: bytes=0-1\r\n\r\n",
]
HTTP_TOKENS = [
    b"\r\n", b"\r\n\r\n", b"Content-Length: 5\r\n", b"Content-Length: -1\r\n",
    b"Transfer-Encoding: chunked\r\n", b"%00", b"Transfer-Encoding: gzip\r\n", b"Expect: 100-continue\r\n",
    b"Host: \xff\r\n", b"HTTP/1.0", b"HTTP/2.0", b"%ff%fe", b"Origin: null\r\n", b"?auth=%", b"#", b"//",
    b"/../", b"\x00", b"\xff", b"ffffffffffffffff\r\n", b";ext\r\n", b"HEAD ",
    b'Content-Type: application/json; charset="\r\n', b"Authorization: Bearer x\r\n",
    b"X-Forwarded-For: ,\r\n", b"http://[::1", b"Last-Event-ID: \xff.\r\n", b"Connection: upgrade\r\n",
    b"CONNECT ", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"Host: [::1\r\n",
]  # fmt: skip


# ── headers ──


async def ask_who(data: bytes) -> None:
    text = data.replace(b"\n", b" ")
    proxies = callers.read_proxies(["127.0.0.1", "10.0.0.0/8"])
    async with furnished() as bench:
        for name, value in (
            (b"authorization", b"Turret " + text), (b"authorization", text), (b"x-forwarded-for", text)
        ):  # fmt: skip
            scope = {"client": ("127.0.0.1", 1), "headers": [(name, value)], "query_string": b"auth=" + text}
            found = await callers.identify(bench.broker, scope, proxies, query=True)
            expect(isinstance(found, Caller | Refusal), f"nobody: {found}")


def proofs(data: bytes, meter: Meter) -> None:
    text = data.decode("latin-1")
    read = meter.call(callers.read_proof, text)
    if read is not None:
        expect(callers.read_proof(callers.write_proof(*read)) == read, "another proof")
    for reader in (headers.read_accept, headers.decode, is_json, callers.read_hop):
        meter.call(reader, text)
    in_loop(ask_who, meter, data)


PROOFS = [
    callers.write_proof(text, KEY.sign(text)).encode()
    for text in statements() + [text.replace(b"0f" * 32, WIRE_KEY.pk.encode()) for text in statements()]
] + [
    PROOF,
    b"1.2.3.4, [::1]:80",
    b"text/event-stream;q=0.5, application/json;q=0",
    b"=?base64?YQ==?=",
    b"application/json; charset=utf-8",
]

TARGETS = [
    Target(
        "frames", frames, [*FRAME_SEEDS, b"\x81\xff" + (2**40).to_bytes(8, "big")], FRAME_TOKENS, examples=500
    ),
    Target("mcp", mcp, MCP_SEEDS, MCP_TOKENS, examples=150),
    Target("dealing", dealing, FRAME_SEEDS, FRAME_TOKENS, examples=150),
    Target("http", http, HTTP_SEEDS, HTTP_TOKENS, examples=80),
    Target(
        "proofs",
        proofs,
        PROOFS,
        [b".", b"=", b"-", b"_", b"Bearer ", b",", b"::", b"[", b";q=", *TOKENS[:6]],
        examples=80,
    ),
]
