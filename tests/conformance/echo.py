"""`turret serve` with an echo in place of each WebSocket's session: both ports, the same layer that carries dealers.

What is the test's own stands here: a session that sends back what it gets, the payload of binary messages (the wire
takes none, so that its reader drops them), and limits as large as the suite's largest message.

Run as `python -m tests.conformance.echo serve …`, with the options of `turret serve`.
"""

import os
from collections import deque
from collections.abc import Sequence
from typing import Any

from websockets.frames import Frame as WireFrame

from gateways import cli, dealing, frames
from gateways.outbox import Outbox
from gateways.session import Frame

LARGEST = 16_777_216
"""Bytes of the suite's largest message, in up to LARGEST / 64 fragments."""


class Binary(bytes):
    """The payload of a binary message."""


class Messages(frames.Messages):
    """The product's reader, with the payload in place of each None."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._payloads: deque[bytes] = deque()

    def read(self, data: bytes) -> list[Frame]:
        found = super().read(data)
        return [each if each is not None else Binary(self._payloads.popleft()) for each in found]

    def _collect(self, frame: WireFrame) -> bytes | None:
        whole = super()._collect(frame)
        if whole is not None and self._binary:
            self._payloads.append(whole)
        return whole


class Echo:
    """What a carrier asks of a session, sending each message back."""

    def __init__(self, broker: Any, caller: Any, outbox: Outbox, nursery: Any, **_: Any) -> None:
        self._outbox = outbox

    def greet(self) -> None:
        """The suite expects nothing that it has not sent."""

    def take(self, messages: Sequence[Frame]) -> int:
        for count, message in enumerate(messages):
            if self._outbox.full:
                return count
            assert message is not None
            if isinstance(message, Binary):
                self._outbox.put_raw(b"\x82" + dealing.text_frame(message)[1:])
            else:
                self._outbox.put(message)
        return len(messages)

    async def receive(self, messages: Sequence[Frame]) -> None:
        done = 0
        while (done := done + self.take(messages[done:])) < len(messages):
            await self._outbox.wait_room()

    def leave(self) -> None:
        """Nothing follows."""

    async def drain(self) -> None:
        """Nothing is under way."""


def echoing() -> None:
    """Put the echo in place of this process's sessions."""
    vars(dealing).update(Session=Echo, Messages=Messages)
    vars(frames).update(FRAGMENTS=LARGEST)


def main() -> None:
    """Serve until a signal says stop."""
    os.environ["TURRET_LIMITS_FRAME_BYTES"] = str(LARGEST)
    echoing()
    cli.main()


if __name__ == "__main__":
    main()
