"""The client of the peer "nats": NATS's text protocol as far as it is needed, and a push consumer of JetStream."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from bench.peers.chains import Chain
from bench.peers.side import ACK, ARRIVED, READ_BYTES, Client, Told, compare, connect

STREAMS: Final = tuple(f"ENV{shard}" for shard in range(16))
"""One stream has one fsync under way; so conversations are spread over some, by the first character of their id."""
ACKS, ENVELOPES, API = b"1", b"2", b"3"
"""Subscription ids."""


def stream_of(conv: str) -> str:
    """The stream that a conversation is kept in."""
    return STREAMS[int(conv[0], 16) % len(STREAMS)]


class PubAck(msgspec.Struct):
    """JetStream's acknowledgement; anything else is an error to the decoder."""

    stream: str
    seq: int


class Sent(msgspec.Struct):
    """What was submitted, as it comes to the other party."""

    sig: str
    envelope: msgspec.Raw


class Numbered(msgspec.Struct):
    """Of an envelope what places it."""

    conv: str
    n: int


_pub_ack: Final = msgspec.json.Decoder(PubAck)
_sent: Final = msgspec.json.Decoder(Sent)
_numbered: Final = msgspec.json.Decoder(Numbered)


class Nats:
    """A connection to nats-server."""

    def __init__(self, url: str) -> None:
        self.socket = connect(url)
        self._received = b""
        self.socket.sendall(b'CONNECT {"verbose":false,"pedantic":false,"lang":"bench","version":"1"}\r\n')

    def subscribe(self, subject: str, sid: bytes) -> None:
        """Subscribe under an id."""
        self.socket.sendall(b"SUB %b %b\r\n" % (subject.encode(), sid))

    def publish(self, subject: bytes, payload: bytes, reply: bytes) -> None:
        """Publish with a reply subject."""
        self.socket.sendall(b"PUB %b %b %d\r\n%b\r\n" % (subject, reply, len(payload), payload))

    def messages(self) -> list[tuple[bytes, bytes, bytes]]:
        """Subject, subscription id and payload of each message that is there whole, after one read."""
        data = self.socket.recv(READ_BYTES)
        if not data:
            raise RuntimeError("nats-server closed the connection")
        data = self._received + data
        found, at = [], 0
        while (end := data.find(b"\r\n", at)) >= 0:
            line = data[at:end]
            if line.startswith(b"MSG "):
                parts = line.split(b" ")
                start, size = end + 2, int(parts[-1])
                if len(data) < start + size + 2:
                    break
                found.append((parts[1], parts[2], data[start : start + size]))
                at = start + size + 2
                continue
            if line.startswith(b"PING"):
                self.socket.sendall(b"PONG\r\n")
            elif line.startswith(b"-ERR"):
                raise RuntimeError(line.decode())
            at = end + 2
        self._received = data[at:]
        return found

    def ask(self, subject: str, reply: str, request: dict[str, Any]) -> dict[str, Any]:
        """A request to JetStream's API, whose `reply` subject is subscribed to. Raises RuntimeError for an error."""
        self.publish(subject.encode(), json.dumps(request).encode(), reply.encode())
        while True:
            for _, sid, payload in self.messages():
                answer: dict[str, Any] = json.loads(payload)
                if sid != API or "error" in answer:
                    raise RuntimeError(f"{subject}: {answer}")
                return answer

    def consume(self, stream: str, deliver: str, policy: str, subject: str | None = None) -> dict[str, Any]:
        """Have JetStream push to us, on the subject `deliver`: what is stored (policy "all") or what comes ("new")."""
        reply = f"{deliver}.api"
        self.subscribe(reply, API)
        config = {
            "deliver_subject": deliver,
            "deliver_policy": policy,
            "ack_policy": "none",
            "replay_policy": "instant",
            "mem_storage": True,
            "num_replicas": 1,
            **({"filter_subject": subject} if subject else {}),
        }
        answer = self.ask(
            f"$JS.API.CONSUMER.CREATE.{stream}", reply, {"stream_name": stream, "config": config}
        )
        self.subscribe(deliver, ENVELOPES)  # nothing is pushed before somebody listens
        return answer


class NatsSide:
    """One party's connection: it submits, and its consumer pushes what is for it."""

    def __init__(self, url: str, chain: Chain, party: int) -> None:
        self._chain = chain
        self._nats = Nats(url)
        self.socket = self._nats.socket
        self._due = 1 - party
        name = f"{chain.conv}{party}"
        self._reply = f"ack.{name}.".encode()
        self._nats.subscribe(f"ack.{name}.*", ACKS)
        stream = stream_of(chain.conv)
        self._nats.consume(stream, f"to.{name}", "new", f"{stream}.{chain.pks[party]}")

    def send(self, n: int) -> None:
        """Send our envelope n."""
        chain = self._chain
        payload = b'{"sig":"%b","envelope":%b}' % (chain.sigs[n].encode(), chain.texts[n])
        self._nats.publish(b"submit", payload, b"%b%d" % (self._reply, n))

    def receive(self) -> list[Told]:
        """What the messages say that have come."""
        return [self._told(*message) for message in self._nats.messages()]

    def _told(self, subject: bytes, sid: bytes, payload: bytes) -> Told:
        try:
            if sid == ACKS:
                _pub_ack.decode(payload)
                return Told(ACK, int(subject[len(self._reply) :]))
            sent = _sent.decode(payload)
        except msgspec.DecodeError as fault:
            raise RuntimeError(f"{fault}: {payload[:500]!r}") from None
        n = self._due
        if sent.sig != self._chain.sigs[n] or bytes(sent.envelope) != self._chain.texts[n]:
            raise RuntimeError(f"envelope {n} was expected: {payload[:1000]!r}")
        self._due += 2
        return Told(ARRIVED, n)

    def close(self) -> None:
        """Close the socket."""
        self._nats.socket.close()


def missing(url: str, data: Path, chains: Sequence[Chain], sent: Sequence[int]) -> list[str]:
    """Read all streams from their beginning."""
    found: dict[str, dict[int, str]] = {chain.conv: {} for chain in chains}
    for stream in STREAMS:
        client = Nats(url)
        left = client.consume(stream, f"check.{stream}", "all")["num_pending"]
        while left:
            for _, _, payload in client.messages():
                message = _sent.decode(payload)
                envelope = _numbered.decode(message.envelope)
                found[envelope.conv][envelope.n] = message.sig
                left -= 1
        client.socket.close()
    return compare(found, chains, sent)


CLIENT: Final = Client(NatsSide, missing)
