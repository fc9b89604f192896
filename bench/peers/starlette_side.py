"""The client of the peer "starlette"."""

from typing import Final

import msgspec

from bench.peers.chains import Chain
from bench.peers.side import ACK, ARRIVED, Client, Told, WebSocket
from bench.peers.stored import missing


class Frame(msgspec.Struct):
    """What the service sends: an acknowledgement, a forwarded envelope, or a refusal."""

    ack: int = -1
    sig: str = ""
    envelope: msgspec.Raw = msgspec.Raw()
    refused: int = -1
    why: str = ""


_frame: Final = msgspec.json.Decoder(Frame)


class StarletteSide:
    """One party's socket."""

    def __init__(self, url: str, chain: Chain, party: int) -> None:
        self._chain = chain
        self._web = WebSocket(f"{url}/{chain.pks[party]}")
        self.socket = self._web.socket
        self._due = 1 - party

    def send(self, n: int) -> None:
        """Send our envelope n."""
        chain = self._chain
        self._web.send_text(
            b'{"id":%d,"sig":"%b","envelope":%b}' % (n, chain.sigs[n].encode(), chain.texts[n])
        )

    def receive(self) -> list[Told]:
        """What the frames say that have come."""
        return [self._told(_frame.decode(text)) for text in self._web.texts()]

    def _told(self, frame: Frame) -> Told:
        if frame.ack >= 0:
            return Told(ACK, frame.ack)
        n = self._due
        if frame.sig != self._chain.sigs[n] or bytes(frame.envelope) != self._chain.texts[n]:
            raise RuntimeError(f"envelope {n} was expected: {frame}")
        self._due += 2
        return Told(ARRIVED, n)

    def close(self) -> None:
        """Close the socket."""
        self._web.close()


CLIENT: Final = Client(StarletteSide, missing)
