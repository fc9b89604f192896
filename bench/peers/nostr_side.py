"""The client of the peer "nostr": the same conversation, in Nostr's own events (NIP-01).

An event's id is the sha256 of its canonical form, its signature Schnorr over secp256k1: not the envelopes that the
others get, but of like size, signed, addressed ("p") and linked to the one before ("e").
"""

import hashlib
import json
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
from coincurve import PrivateKey

from bench.peers.chains import Chain
from bench.peers.side import ACK, ARRIVED, Client, Told, WebSocket

KIND: Final = 1573
"""A regular event, which relays keep."""
FILE: Final = "nostr.sqlite"
"""The relay's store."""
LENGTH: Final = 512
"""Events that are signed ahead in each conversation."""


class Event(msgspec.Struct):
    """NIP-01, Events."""

    id: str
    pubkey: str
    created_at: int
    kind: int
    tags: list[list[str]]
    content: str
    sig: str


_event: Final = msgspec.json.Decoder(tuple[str, str, Event])


def sign_events(chain: Chain, length: int = LENGTH) -> list[Event]:
    """The first `length` envelopes of a chain as events."""
    keys = [PrivateKey(seed) for seed in chain.seeds]
    pubkeys = [key.public_key.format()[1:].hex() for key in keys]
    events: list[Event] = []
    for n, text in enumerate(chain.texts[:length]):
        envelope = json.loads(text)
        tags = [["p", pubkeys[1 - n % 2]], ["n", str(n)], *([["e", events[-1].id]] if n else [])]
        content = json.dumps(envelope["body"], separators=(",", ":"))
        form = [0, pubkeys[n % 2], envelope["ts"], KIND, tags, content]
        digest = hashlib.sha256(json.dumps(form, separators=(",", ":")).encode()).digest()
        sig = keys[n % 2].sign_schnorr(digest).hex()
        events.append(Event(digest.hex(), pubkeys[n % 2], envelope["ts"], KIND, tags, content, sig))
    return events


_signed: dict[str, list[Event]] = {}
"""Both sides of a conversation share its events."""


class NostrSide:
    """One party's socket, subscribed to what is for it."""

    def __init__(self, url: str, chain: Chain, party: int) -> None:
        if chain.conv not in _signed:
            _signed[chain.conv] = sign_events(chain)
        self._events = _signed[chain.conv]
        self._due = 1 - party
        self._acked = party
        self._web = WebSocket(url)
        self.socket = self._web.socket
        pubkey = self._events[party].pubkey
        self._web.send_text(json.dumps(["REQ", "in", {"#p": [pubkey], "kinds": [KIND]}]).encode())
        if json.loads(self._web.wait_text())[0] != "EOSE":
            raise RuntimeError("the relay did not subscribe us")

    def send(self, n: int) -> None:
        """Send our event n."""
        self._web.send_text(b'["EVENT",%b]' % msgspec.json.encode(self._events[n]))

    def receive(self) -> list[Told]:
        """What the frames say that have come."""
        return [self._told(text) for text in self._web.texts()]

    def _told(self, text: bytes) -> Told:
        if text.startswith(b'["EVENT"'):
            n = self._due
            if _event.decode(text)[2] != self._events[n]:
                raise RuntimeError(f"event {n} was expected: {text[:1000]!r}")
            self._due += 2
            return Told(ARRIVED, n)
        said: Any = json.loads(text)
        n = self._acked
        if said[:3] != ["OK", self._events[n].id, True]:
            raise RuntimeError(f"event {n} was not taken: {said}")
        self._acked += 2
        return Told(ACK, n)

    def close(self) -> None:
        """Close the socket."""
        self._web.close()


def missing(url: str, data: Path, chains: Sequence[Chain], sent: Sequence[int]) -> list[str]:
    """Read the relay's file from outside, as the last commit left it."""
    connection = sqlite3.connect(data / FILE)
    found = {id.hex(): sig.hex() for id, sig in connection.execute("SELECT id, sig FROM events")}
    connection.close()
    wrong: list[str] = []
    for chain, count in zip(chains, sent, strict=True):
        lost = [event.id for event in _signed[chain.conv][:count] if found.get(event.id) != event.sig]
        if lost:
            wrong.append(f"{chain.conv}: {count} acknowledged, of which {len(lost)} are not stored")
    return wrong if wrong or len(found) == sum(sent) else [f"{sum(sent)} acknowledged, {len(found)} stored"]


CLIENT: Final = Client(NostrSide, missing)
