"""The clients of the broker itself: over the dealing port, and over MCP as an agent would (`send_env`, then
`wait_for_events`)."""

import json
import secrets
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from bench.kit.parties import PAGE
from bench.kit.websocket import Socket
from bench.peers.chains import Chain
from bench.peers.side import ACK, ARRIVED, Client, Told, WebSocket, compare
from broker.wire.keys import SigningKey
from broker.wire.statement import build_statement

FOLLOW_S: Final = 3600


class Ack(msgspec.Struct):
    """What the broker answers to an envelope."""

    conv: str
    n: int
    chain: str
    accepted_at: int
    replayed: bool = False


class Event(msgspec.Struct):
    """What a stream brings: an envelope, ours too."""

    conv: str
    n: int
    sig: str
    envelope: msgspec.Raw
    own: bool


class Frame(msgspec.Struct):
    """A JSON-RPC message of the dealing port."""

    id: int = -1
    result: Ack | None = None
    method: str = ""
    params: Event | None = None
    error: msgspec.Raw = msgspec.Raw()


_frame: Final = msgspec.json.Decoder(Frame)


def statement(chain: Chain, party: int, wire: str, do: str, **members: Any) -> dict[str, Any]:
    """A statement of a party, as the params that carry it."""
    key = SigningKey(chain.seeds[party])
    nonce = members.pop("nonce", None) or secrets.token_hex(16)
    text, sig = build_statement(do, key, wire, int(time.time()), nonce, **members)
    return {"statement": json.loads(text), "sig": sig}


def params_of(chain: Chain, n: int) -> bytes:
    """The params of send_call (n = 0) or send_env for envelope n."""
    start = b'"to_code":"%b"' % chain.codes[1].encode()
    if n:
        start = b'"conv":"%b","n":%d' % (chain.conv.encode(), n)
    return b'{%b,"from_pk":"%b","sig":"%b","envelope":%b}' % (
        start,
        chain.pks[n % 2].encode(),
        chain.sigs[n].encode(),
        chain.texts[n],
    )


def check_ack(chain: Chain, ack: Ack) -> Told:
    """An acknowledgement names our conversation, and the chain that we have computed. Raises RuntimeError."""
    if ack.conv != chain.conv or ack.chain != chain.hashes[ack.n] or ack.replayed:
        raise RuntimeError(f"not what was sent: {ack}")
    return Told(ACK, ack.n)


def check_event(chain: Chain, party: int, event: Event) -> Told | None:
    """An event carries what was signed; None for our own. Raises RuntimeError."""
    n = event.n
    if event.conv != chain.conv or event.sig != chain.sigs[n] or event.own != (n % 2 == party):
        raise RuntimeError(f"not what was signed: {event}")
    if event.own:
        return None
    if bytes(event.envelope) != chain.texts[n]:
        raise RuntimeError(f"not the text that was signed: {event}")
    return Told(ARRIVED, n)


class DealingSide:
    """One party's socket on the dealing port: authenticated, its desk open, following its own stream."""

    def __init__(self, url: str, chain: Chain, party: int) -> None:
        self._chain = chain
        self._party = party
        self._web = WebSocket(url)
        self.socket = self._web.socket
        hello = json.loads(self._web.wait_text())["params"]
        wire, nonce = hello["wire"], hello["challenge"]
        self._ask("authenticate", statement(chain, party, wire, "authenticate", nonce=nonce))
        code = chain.codes[party]
        self._ask("open_desk", statement(chain, party, wire, "open_desk", code=code))
        self._ask("follow", {"code": code})

    def _ask(self, method: str, params: dict[str, Any]) -> None:
        self._web.send_text(
            json.dumps({"jsonrpc": "2.0", "id": 0, "method": method, "params": params}).encode()
        )
        answer = json.loads(self._web.wait_text())
        if "result" not in answer:
            raise RuntimeError(f"{method}: {answer}")

    def send(self, n: int) -> None:
        """Send our envelope n."""
        method = b"send_env" if n else b"send_call"
        self._web.send_text(
            b'{"jsonrpc":"2.0","id":%d,"method":"%b","params":%b}' % (n, method, params_of(self._chain, n))
        )

    def receive(self) -> list[Told]:
        """What the frames say that have come."""
        found = [self._told(text) for text in self._web.texts()]
        return [each for each in found if each is not None]

    def _told(self, text: bytes) -> Told | None:
        frame = _frame.decode(text)
        if frame.params is not None:
            return check_event(self._chain, self._party, frame.params)
        if frame.result is None or frame.id != frame.result.n:
            raise RuntimeError(f"no acknowledgement: {text[:1000]!r}")
        return check_ack(self._chain, frame.result)

    def close(self) -> None:
        """Close the socket."""
        self._web.close()


def read_back(url: str, data: Path, chains: Sequence[Chain], sent: Sequence[int]) -> list[str]:
    """Read all transcripts with read_conv, over a WebSocket of the broker."""
    socket = Socket(url)
    found: dict[str, dict[int, str]] = {}
    for chain in chains:
        rows = found[chain.conv] = {}
        after: int | None = -1
        while after is not None:
            page = socket.ask("read_conv", {"conv": chain.conv, "after": after, "limit": PAGE})
            rows.update((row["n"], row["sig"]) for row in page["rows"])
            after = page.get("next")
    socket.close()
    return compare(found, chains, sent)


CLIENT: Final = Client(DealingSide, read_back)
