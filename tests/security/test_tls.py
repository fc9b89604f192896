"""Whoever listens on the way, or stands in between: TLS as both ports speak it."""

import ssl
import sys
import warnings
from pathlib import Path

import pytest
import trio

from gateways.http import tls_context
from tests.support.peers import exchange
from tests.support.process import served


def client(version: ssl.TLSVersion, ciphers: str = "ALL:@SECLEVEL=0") -> ssl.SSLContext:
    """A client that would take anything, of one version of TLS."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_ciphers(ciphers)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        context.minimum_version = context.maximum_version = version
    context.set_alpn_protocols(["h2", "http/1.1"])
    return context


async def shake(url: str, context: ssl.SSLContext) -> trio.SSLStream[trio.SocketStream] | None:
    """The stream after a handshake; None where there was none."""
    host, _, port = url.partition("//")[2].rpartition(":")
    stream = trio.SSLStream(await trio.open_tcp_stream(host, int(port)), context, server_hostname="localhost")
    try:
        with trio.fail_after(5):
            await stream.do_handshake()
    except trio.BrokenResourceError:
        await trio.aclose_forcefully(stream)
        return None
    return stream


@pytest.mark.requirement("threat.eavesdropper")
async def test_both_ports_speak_tls_from_1_2_on_and_nothing_else(
    tmp_path: Path, certificate: tuple[str, str]
) -> None:
    cert, key = certificate
    async with served(tmp_path / "data", "--tls-cert", cert, "--tls-key", key) as broker:
        assert broker.http.startswith("https://")
        assert broker.dealing.startswith("wss://")
        for url in (broker.http, broker.dealing):
            for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
                stream = await shake(url, client(version))
                assert stream is not None, version
                assert stream.selected_alpn_protocol() == "http/1.1"
                assert stream.compression() is None
                await trio.aclose_forcefully(stream)
            for version in (ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1):
                assert await shake(url, client(version)) is None, version
            for weak in ("aNULL", "eNULL", "kRSA", "RC4", "3DES", "PSK", "EXP"):
                try:
                    context = client(ssl.TLSVersion.TLSv1_2, f"{weak}:@SECLEVEL=0")
                except ssl.SSLError:  # this OpenSSL does not know it any more
                    continue
                assert await shake(url, context) is None, weak
            host, _, port = url.partition("//")[2].rpartition(":")
            said = await exchange((host, int(port)), b"GET /v1/wire_info HTTP/1.1\r\nhost: localhost\r\n\r\n")
            assert b"HTTP" not in said, "nothing is said in the clear"


@pytest.mark.requirement("threat.eavesdropper")
def test_each_suite_has_forward_secrecy_and_a_client_can_not_renegotiate(
    certificate: tuple[str, str],
) -> None:
    context = tls_context(*certificate)
    assert context.minimum_version == ssl.TLSVersion.TLSv1_2
    names = [each["name"] for each in context.get_ciphers()]
    assert [name for name in names if not name.startswith(("TLS_", "ECDHE-", "DHE-"))] == []
    assert context.options & ssl.OP_NO_COMPRESSION
    assert context.options & ssl.OP_CIPHER_SERVER_PREFERENCE
    assert context.options & ssl.OP_NO_RENEGOTIATION


@pytest.mark.requirement("threat.eavesdropper")
async def test_a_dealer_takes_no_certificate_that_nobody_vouches_for(
    tmp_path: Path, certificate: tuple[str, str]
) -> None:
    cert, key = certificate
    async with served(tmp_path / "data", "--tls-cert", cert, "--tls-key", key) as broker:
        ran = await trio.run_process(
            [sys.executable, "-m", "gateways.cli", "wire-info", "--url", broker.http],
            capture_stdout=True,
            capture_stderr=True,
            check=False,
        )
    assert ran.returncode == 3
    assert b"its certificate is not trusted: self" in ran.stderr
    assert ran.stdout == b""
