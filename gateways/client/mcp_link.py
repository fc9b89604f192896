"""The link over MCP: the same tools by POST, the stream by long polls of wait_for_events.

1. Each request is complete in itself (MCP 2026-07-28): no session to lose, any connection will do.
2. An HTTP answer that is no JSON-RPC says nothing about the outcome: Disconnected.
3. Reads show whose they are by a follow statement, signed for the pinned wire alone.
"""

import itertools
import ssl
from typing import Any, Final

import httpx
import msgspec
import trio

from broker.wire.refusals import refuse
from gateways import eventstream, jsonrpc
from gateways.client.clockwork import Backoff
from gateways.client.errors import Disconnected, Refused, WireFault
from gateways.client.link import ANSWER_S, Deliver, read_resume
from gateways.client.pins import another_wire
from gateways.client.reasons import reason_of
from gateways.client.signer import Signer, join_params
from gateways.client.socket import MAX_FRAME, read_answer, read_refusal
from gateways.http_client import Body, is_here

REVISION: Final = "2026-07-28"
WAIT_MS: Final = 20_000
"""How long one poll waits at the wire; what lies between usually gives up at 30 s."""
_META: Final = {
    "io.modelcontextprotocol/protocolVersion": REVISION,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "turret", "version": "0.1.0"},
}


class _Result(msgspec.Struct):
    """What tools/call answers; the object itself stands in structuredContent."""

    structured: msgspec.Raw = msgspec.field(name="structuredContent", default=msgspec.Raw(b"{}"))
    content: list[dict[str, Any]] = []
    is_error: bool = msgspec.field(name="isError", default=False)


class _Events(msgspec.Struct):
    cursor: str
    resume: msgspec.Raw
    events: list[msgspec.Raw] = []


class _Kind(msgspec.Struct):
    event: str
    cursor: str


class McpLink:
    """A stream over MCP's Streamable HTTP. `after` as for a WebSocketLink."""

    def __init__(
        self,
        url: str,
        signer: Signer,
        *,
        after: str | None = None,
        ssl_context: ssl.SSLContext | None = None,
        backoff: Backoff | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self.signer = signer
        self.cursor = after
        self._backoff = backoff or Backoff()
        self.url = url
        self._mcp = ToolCaller(url, ssl_context=ssl_context, transport=transport)

    async def run(
        self, deliver: Deliver, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
    ) -> None:
        async with self._mcp:
            await self._check_wire()
            await self._poll(deliver, 0)
            task_status.started()
            while True:
                asked_at, hint_s = trio.current_time(), None
                try:
                    found = await self._poll(deliver, WAIT_MS)
                except Disconnected as lost:
                    found, hint_s = 0, lost.retry_after_s
                if found or trio.current_time() - asked_at >= WAIT_MS / 2000:
                    self._backoff.reset()
                else:  # no answer, or an empty one at once: never a busy loop, whatever the wire does
                    await trio.sleep(self._backoff.next_s(hint_s))

    async def request(self, method: str, params: bytes) -> bytes:
        return await self._mcp.call(method, params, ANSWER_S)

    def proof(self) -> dict[str, Any]:
        return self.signer.follow()

    async def _check_wire(self) -> None:
        """See the pinned wire's key and its clock before anything is signed."""
        found = msgspec.json.decode(await self.request("wire_info", b"{}"), type=dict[str, Any])
        if found.get("wire") != self.signer.wire:
            raise another_wire(found.get("wire"), self.signer.wire)
        if isinstance(now := found.get("time"), int):
            self.signer.clock.correct(now)

    async def _poll(self, deliver: Deliver, wait_ms: int) -> int:
        """One question for events, and their delivery; the cursor moves with each. Returns how many came."""
        asked = self.cursor
        params = {"wait_ms": wait_ms, **self.signer.follow()}
        if asked is not None:
            params["after"] = asked
        answer = await self._patiently("wait_for_events", join_params(params), ANSWER_S + wait_ms / 1000)
        try:
            found = msgspec.json.decode(answer, type=_Events)
            events = [(msgspec.json.decode(each, type=_Kind), bytes(each)) for each in found.events]
        except (msgspec.MsgspecError, RecursionError):
            raise WireFault("the wire's events can't be read") from None
        resume = read_resume(bytes(found.resume))
        if asked is not None and not resume.recovered:
            deliver.gap(resume.reason or "unknown")
        for event, text in events:
            deliver.event(event.event, text)
            self.cursor = event.cursor
        self.cursor = found.cursor
        return len(events)

    async def _patiently(self, method: str, params: bytes, timeout_s: float) -> bytes:
        """A poll that the wire has no room for now counts as no answer: ask again later."""
        try:
            return await self._mcp.call(method, params, timeout_s)
        except Refused as no:
            if no.code in ("rate_limited", "overloaded", "unavailable", "in_doubt"):
                raise Disconnected(str(no), no.retry_after_s) from None
            if no.code == "bad_statement" and isinstance(wire_ts := no.refusal.detail.get("wire_ts"), int):
                self.signer.clock.correct(
                    wire_ts * 1000 + 500
                )  # ours was set anew since we asked for the time
                raise Disconnected(str(no)) from None
            raise


def http_client(
    url: str, ssl_context: ssl.SSLContext | None = None, transport: httpx.AsyncBaseTransport | None = None
) -> httpx.AsyncClient:
    """An HTTP client for one broker. The environment's proxies are not asked for this machine itself."""
    verify = ssl_context if ssl_context is not None else True
    return httpx.AsyncClient(verify=verify, transport=transport, timeout=ANSWER_S, trust_env=not is_here(url))


class ToolCaller:
    """tools/call by POST; an async context manager that owns its HTTP connections."""

    def __init__(
        self,
        url: str,
        *,
        ssl_context: ssl.SSLContext | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self.token: str | None = None
        """The access token that is shown with each call."""
        self._url = url
        self._ids = itertools.count(1)
        self._http = http_client(url, ssl_context, transport)

    async def __aenter__(self) -> "ToolCaller":
        await self._http.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.aclose()

    async def call(self, tool: str, arguments: bytes, timeout_s: float) -> bytes:
        """The tool's result as JSON text. Raises Refused, or Disconnected when no answer came."""
        id = next(self._ids)
        params = {"name": tool, "arguments": msgspec.Raw(arguments), "_meta": _META}
        headers = {
            "Accept": "application/json, text/event-stream",
            "Content-Type": "application/json",
            "MCP-Protocol-Version": REVISION,
            "Mcp-Method": "tools/call",
            "Mcp-Name": tool,
            **({"Authorization": f"Bearer {self.token}"} if self.token is not None else {}),
        }
        body = jsonrpc.request(id, "tools/call", params)
        timeout = httpx.Timeout(ANSWER_S, read=timeout_s)
        request = self._http.build_request("POST", self._url, content=body, headers=headers, timeout=timeout)
        request.stream = Body(body)
        try:
            answer = await self._http.send(request)
        except httpx.HTTPError as fault:
            raise Disconnected(f"no answer from {self._url}: {reason_of(fault)}") from None
        return _read_result(_read_http(answer, id))


def _read_http(answer: httpx.Response, id: int) -> bytes:
    """The JSON-RPC result in an HTTP answer, as JSON text."""
    if answer.headers.get("content-type", "").startswith("text/event-stream"):
        texts = [event.data.encode() for event in eventstream.Decoder(MAX_FRAME).feed(answer.content)]
    else:
        texts = [answer.content]
    for text in texts:
        match jsonrpc.read(text):
            case jsonrpc.Response() as response if response.id in (id, None):
                outcome = read_answer(response)
                if isinstance(outcome, Exception):
                    raise outcome
                return outcome
    raise _no_answer(answer)


def _no_answer(answer: httpx.Response) -> Exception:
    """What an HTTP answer without a JSON-RPC response in it means."""
    try:
        body = msgspec.json.decode(answer.content, type=dict[str, Any])
    except (msgspec.MsgspecError, RecursionError):
        body = {}
    if (refusal := read_refusal(body.get("refusal"))) is not None:
        return Refused(refusal)
    if answer.status_code in (401, 403):
        return Refused(refuse("unauthenticated", f"HTTP {answer.status_code} from {answer.url}"))
    after = answer.headers.get("retry-after", "")
    return Disconnected(
        f"HTTP {answer.status_code} from {answer.url}", float(after) if after.isdigit() else None
    )


def _read_result(text: bytes) -> bytes:
    try:
        result = msgspec.json.decode(text, type=_Result)
    except (msgspec.MsgspecError, RecursionError):
        raise WireFault("the answer to tools/call can't be read") from None
    if not result.is_error:
        return bytes(result.structured)
    body = msgspec.json.decode(result.structured)
    refusal = read_refusal(body.get("refusal") if isinstance(body, dict) else None)
    words = next((str(each.get("text")) for each in result.content), "refused without a reason")
    raise Refused(refusal or refuse("bad_request", words))
