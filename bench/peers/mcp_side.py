"""The clients over MCP, 2026-07-28: one connection a party, which sends, and then waits for the other's answer.

Both servers offer the same two steps: `send_env`, and a call that waits (`wait_env` of the peer "sdk",
`wait_for_events` of the broker, which is asked for what others wrote).
"""

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Generic, TypeVar

import msgspec

from bench.peers.chains import Chain
from bench.peers.side import ACK, ARRIVED, Client, Http, Told
from bench.peers.stored import missing
from bench.peers.turret_side import (
    FOLLOW_S,
    Ack,
    Event,
    check_ack,
    check_event,
    params_of,
    read_back,
    statement,
)

ERA: Final = "2026-07-28"
WAIT_MS: Final = 25_000
_META: Final = json.dumps(
    {
        "io.modelcontextprotocol/protocolVersion": ERA,
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
    },
    separators=(",", ":"),
).encode()

T = TypeVar("T")


class Content(msgspec.Struct, Generic[T]):
    """The result of a call; its text is not looked at."""

    structuredContent: T
    isError: bool = False


class Answer(msgspec.Struct, Generic[T]):
    """A JSON-RPC answer; anything but a good result is an error to the decoder."""

    id: int
    result: Content[T]


class McpSide:
    """What both have in common: tools/call on one connection, one at a time."""

    def __init__(self, url: str, chain: Chain, party: int) -> None:
        self._chain = chain
        self._party = party
        self._http = Http(f"{url}/mcp")
        self.socket = self._http.socket
        self._id = 0
        self._sent = -1
        """The envelope whose acknowledgement is under way; -1: we wait for the other's."""
        self._due = 1 - party
        """The other's envelope that comes next."""
        self._open()
        if party == 1:
            self._wait()

    def send(self, n: int) -> None:
        """Send our envelope n: its predecessor has arrived, so that no call is under way."""
        self._sent = n
        self._send(n)

    def receive(self) -> list[Told]:
        """What the answer says, once it is whole. After an acknowledgement, or in vain, it waits again."""
        body = self._http.answer()
        if body is None:
            return []
        told = self._acknowledged(body, self._sent) if self._sent >= 0 else self._arrived(body)
        if told is None or told.what == ACK:
            self._sent = -1
            self._wait()
        else:
            self._due += 2
        return [told] if told is not None else []

    def close(self) -> None:
        """Close the socket."""
        self._http.close()

    def _call(self, tool: str, arguments: bytes) -> None:
        self._id += 1
        body = (
            b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"%b","arguments":%b,"_meta":%b}}'
            % (
                self._id,
                tool.encode(),
                arguments,
                _META,
            )
        )
        self._http.post(
            body,
            f"Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: {ERA}\r\n"
            f"Mcp-Method: tools/call\r\nMcp-Name: {tool}\r\n",
        )

    def _result(self, decoder: msgspec.json.Decoder[Answer[T]], body: bytes) -> T:
        """The result of the call that is under way. Raises RuntimeError."""
        try:
            answer = decoder.decode(body)
        except msgspec.DecodeError as fault:
            raise RuntimeError(f"{fault}: {body[:1000]!r}") from None
        if answer.id != self._id or answer.result.isError:
            raise RuntimeError(f"call {self._id}: {body[:1000]!r}")
        return answer.result.structuredContent

    def _open(self) -> None:
        """What is to be done before the first envelope."""

    def _wait(self) -> None:
        raise NotImplementedError

    def _send(self, n: int) -> None:
        raise NotImplementedError

    def _acknowledged(self, body: bytes, n: int) -> Told:
        raise NotImplementedError

    def _arrived(self, body: bytes) -> Told | None:
        raise NotImplementedError


class Said(msgspec.Struct):
    """What the tools of the peer "sdk" answer."""

    conv: str = ""
    n: int = -1
    sig: str = ""
    envelope: str = ""


_said: Final = msgspec.json.Decoder(Answer[Said])


class SdkSide(McpSide):
    """One party at the official SDK's server."""

    def _send(self, n: int) -> None:
        text = json.dumps(self._chain.texts[n].decode()).encode()
        self._call("send_env", b'{"sig":"%b","envelope":%b}' % (self._chain.sigs[n].encode(), text))

    def _wait(self) -> None:
        self._call("wait_env", b'{"conv":"%b","n":%d}' % (self._chain.conv.encode(), self._due))

    def _acknowledged(self, body: bytes, n: int) -> Told:
        said = self._result(_said, body)
        if (said.conv, said.n) != (self._chain.conv, n):
            raise RuntimeError(f"envelope {n} was acknowledged as {said}")
        return Told(ACK, n)

    def _arrived(self, body: bytes) -> Told | None:
        said = self._result(_said, body)
        if not said.sig:
            return None
        if said.sig != self._chain.sigs[self._due] or said.envelope.encode() != self._chain.texts[self._due]:
            raise RuntimeError(f"envelope {self._due} was expected: {said}")
        return Told(ARRIVED, self._due)


class Page(msgspec.Struct):
    """What wait_for_events answers."""

    events: list[Event]
    cursor: str


class Info(msgspec.Struct):
    """What we need of wire_info."""

    wire: str


_acks: Final = msgspec.json.Decoder(Answer[Ack])
_pages: Final = msgspec.json.Decoder(Answer[Page])


class TurretMcpSide(McpSide):
    """One party at the broker's MCP face, its desk open."""

    def _open(self) -> None:
        self._cursor = "0"
        info = self._ask(msgspec.json.Decoder(Answer[Info]), "wire_info", {})
        opening = statement(
            self._chain, self._party, info.wire, "open_desk", code=self._chain.codes[self._party]
        )
        self._ask(msgspec.json.Decoder(Answer[msgspec.Raw]), "open_desk", opening)
        until = int(time.time()) + FOLLOW_S
        self._follow = statement(self._chain, self._party, info.wire, "follow", until=until)

    def _ask(self, decoder: msgspec.json.Decoder[Answer[T]], tool: str, arguments: object) -> T:
        self._call(tool, json.dumps(arguments).encode())
        while (body := self._http.answer()) is None:
            pass
        return self._result(decoder, body)

    def _send(self, n: int) -> None:
        self._call("send_env" if n else "send_call", params_of(self._chain, n))

    def _wait(self) -> None:
        arguments = {"after": self._cursor, "wait_ms": WAIT_MS, "own": False, **self._follow}
        self._call("wait_for_events", json.dumps(arguments, separators=(",", ":")).encode())

    def _acknowledged(self, body: bytes, n: int) -> Told:
        told = check_ack(self._chain, self._result(_acks, body))
        if told.n != n:
            raise RuntimeError(f"envelope {n} was acknowledged as {told.n}")
        return told

    def _arrived(self, body: bytes) -> Told | None:
        page = self._result(_pages, body)
        self._cursor = page.cursor
        found = [
            told
            for event in page.events
            if (told := check_event(self._chain, self._party, event)) is not None
        ]
        if len(found) > 1:
            raise RuntimeError(f"more than one envelope came at once: {found}")
        return found[0] if found else None


def missing_there(url: str, data: Path, chains: Sequence[Chain], sent: Sequence[int]) -> list[str]:
    """Read all transcripts over the public port's WebSocket."""
    return read_back(f"ws{url.removeprefix('http')}/ws", data, chains, sent)


SDK: Final = Client(SdkSide, missing)
TURRET: Final = Client(TurretMcpSide, missing_there)
