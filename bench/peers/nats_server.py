"""The peer "nats": JetStream with file storage and sync "always", behind a service that judges envelopes.

`python -m bench.peers.nats_server DATA`. Starts nats-server on a free port and, in this process, the service. A party
publishes {sig, envelope} on `submit` with a reply subject; the service judges it and publishes it to the stream, on
`<stream>.<pk of the other party>`, with that same reply subject: so JetStream's own acknowledgement, which comes after
fsync, goes to the sender, and costs the service nothing. Parties read by a push consumer on their subject.
"""

import asyncio
import contextlib
import shutil
import signal
import sys
from pathlib import Path
from typing import Any, Final

import msgspec
import nats

from bench.peers.ledger import Heads, Refused
from bench.peers.listening import announce, present, run_loop
from bench.peers.nats_side import STREAMS, stream_of

READY_S: Final = 10.0
CONFIG: Final = """
server_name: bench
listen: "127.0.0.1:-1"
ports_file_dir: "{data}"
jetstream {{ store_dir: "{data}/jetstream", sync_interval: always }}
"""


class Sent(msgspec.Struct):
    """What a party submits."""

    sig: str
    envelope: msgspec.Raw


_sent: Final = msgspec.json.Decoder(Sent)


async def serve(data: Path) -> None:
    """Run both until SIGTERM. Raises RuntimeError where nats-server does not start, or ends by itself."""
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    config = data / "nats.conf"
    config.write_text(CONFIG.format(data=data))
    program = shutil.which("nats-server", path=str(Path(sys.executable).parent)) or shutil.which(
        "nats-server"
    )
    if program is None:
        raise RuntimeError("there is no nats-server")
    server = await asyncio.create_subprocess_exec(
        program, "-c", str(config), stderr=asyncio.subprocess.DEVNULL
    )
    try:
        url = await _address(server, data)
        client = await nats.connect(url)
        for name in STREAMS:
            await client.jetstream().add_stream(name=name, subjects=[f"{name}.*"], storage="file")
        await client.subscribe("submit", cb=_judge(client), pending_bytes_limit=-1)
        await client.flush()
        announce(url, *present())
        ended = asyncio.create_task(server.wait())
        await asyncio.wait((ended, asyncio.create_task(stop.wait())), return_when=asyncio.FIRST_COMPLETED)
        if ended.done():
            raise RuntimeError("nats-server ended")
        await client.close()
    finally:
        with contextlib.suppress(ProcessLookupError):
            server.terminate()
        await server.wait()


async def _address(server: asyncio.subprocess.Process, data: Path) -> str:
    """Where the server listens: it writes a file that says so."""
    async with asyncio.timeout(READY_S):
        while True:
            if url := _told(data):
                return url
            if server.returncode is not None:
                raise RuntimeError(f"nats-server ended with {server.returncode}")
            await asyncio.sleep(0.02)


def _told(data: Path) -> str | None:
    for file in data.glob("nats-server_*.ports"):
        ports = msgspec.json.decode(file.read_bytes() or b"{}")
        return str(ports["nats"][0]) if ports else None
    return None


def _judge(client: Any) -> Any:
    heads = Heads()

    async def judge(message: Any) -> None:
        sent = _sent.decode(message.data)
        try:
            envelope = heads.accept(bytes(sent.envelope), sent.sig)
        except Refused as refused:
            await client.publish(message.reply, b'{"refused":"%b"}' % str(refused).encode())
            return
        await client.publish(f"{stream_of(envelope.conv)}.{envelope.to}", message.data, reply=message.reply)

    return judge


if __name__ == "__main__":
    run_loop(serve(Path(sys.argv[1])))
