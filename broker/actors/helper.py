"""What a helper process runs: signatures in batches come in, verdicts go out. `python -m broker.actors.helper`.

1. It calls broker.wire.keys.verify, the function that the broker calls itself: there is no second set of rules.
2. It knows a connection and nothing else: no key, no store, no setting. When the connection ends, it ends.
3. Its input is the broker's, not a client's, so what can't be read is a fault and ends it.

A batch is its number and the length of what follows, then for each signature the length of its message, the key
and the signature as the wire writes them (64 and 128 characters), and the message. The answer is the batch's number
and how many verdicts follow, one byte each, in order. Numbers are unsigned, 32 bits, big-endian. Number 0 with no
verdict is the first answer: the helper is ready.
"""

import contextlib
import signal
import socket
import struct

from broker.wire import keys

BATCH = struct.Struct("!II")
"""A batch: number, bytes that follow. An answer: number, verdicts that follow."""
LENGTH = struct.Struct("!I")
PK, SIG = 64, 128
GOOD, BAD = b"10"
VERDICTS = bytes((GOOD, BAD))
READY = BATCH.pack(0, 0)
READ_BYTES = 262_144


def verdicts(records: bytes) -> bytes:
    """A byte for each signature of a batch, in order. Raises struct.error for what is cut short."""
    judged = bytearray()
    at = 0
    while at < len(records):
        pk = at + LENGTH.size
        sig = pk + PK
        message = sig + SIG
        (length,) = LENGTH.unpack_from(records, at)
        at = message + length
        if at > len(records):
            raise struct.error("a message that goes on after its batch")
        good = keys.verify(records[pk:sig].decode(), records[message:at], records[sig:message].decode())
        judged.append(GOOD if good else BAD)
    return bytes(judged)


def serve(connection: socket.socket) -> None:
    """Answer batches until the other side leaves."""
    connection.sendall(READY)
    received = bytearray()
    while chunk := connection.recv(READ_BYTES):
        received += chunk
        while len(received) >= BATCH.size:
            number, length = BATCH.unpack_from(received)
            end = BATCH.size + length
            if len(received) < end:
                break
            judged = verdicts(bytes(received[BATCH.size : end]))
            del received[:end]
            connection.sendall(BATCH.pack(number, len(judged)) + judged)


def main() -> None:
    """Serve the connection that is standard input. Signals to a whole group are for the broker, which ends us."""
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, signal.SIG_IGN)
    with socket.socket(fileno=0) as connection, contextlib.suppress(ConnectionError):
        serve(connection)


if __name__ == "__main__":
    main()
