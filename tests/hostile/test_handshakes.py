"""TLS clients that never finish their handshake: others come in, and the places come free."""

import ssl
import subprocess
from pathlib import Path

import pytest
import trio

from tests.hostile.attack import Watched, address_of, crowd
from tests.support.peers import eventually
from tests.support.process import served
from tests.support.ws import Client

CLIENTS = 300
HELLO = bytes.fromhex("16030100c8010000c40303") + bytes(80)
"""The beginning of a ClientHello."""


@pytest.mark.requirement("faults.slow-request")
async def test_tls_handshakes_that_never_end(tmp_path: Path) -> None:
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    await trio.to_thread.run_sync(lambda: _certify(certificate, key))
    trust = ssl.create_default_context(cafile=str(certificate))
    flags = ("--tls-cert", str(certificate), "--tls-key", str(key))
    async with served(tmp_path / "data", *flags) as broker:
        watched = Watched(broker)

        async def ping(url: str, path: str) -> None:
            tcp = await trio.open_tcp_stream(*address_of(url))
            async with trio.SSLStream(tcp, trust, server_hostname="localhost") as stream:
                assert "result" in await (await Client.open(stream, path=path)).ask("ping")
                await trio.aclose_forcefully(stream)

        with crowd() as silent:
            for url in (broker.dealing, broker.http):
                made = await silent.connect(url, CLIENTS)
                silent.send(HELLO, made[::2])
                silent.send(b"GET / HTTP/1.1\r\n\r\n", made[::10])
            with trio.fail_after(8.0):
                await ping(broker.dealing, "/")
                await ping(broker.http, "/ws")
            watched.judge(grown_mib=80)
            await eventually(lambda: watched.files() <= 0, 20.0)
        assert await broker.stop() == 0


def _certify(certificate: Path, key: Path) -> None:
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
         "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out", certificate],
        check=True, capture_output=True, timeout=30,
    )  # fmt: skip
