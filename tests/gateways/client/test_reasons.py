"""What is said of a connection that could not be had."""

import errno
import socket
import ssl

import httpx
import pytest
import trio

from gateways.client.reasons import reason_of
from tests.support.network import refused_port


async def reason(url: str) -> str:
    async with httpx.AsyncClient(trust_env=False) as http:
        with pytest.raises(httpx.HTTPError) as caught:
            await http.get(url)
    return reason_of(caught.value)


@pytest.mark.requirement("cli.errors")
async def test_nobody_there() -> None:
    assert await reason(f"http://127.0.0.1:{refused_port()}/") == "Connection refused"


@pytest.mark.requirement("cli.errors")
def test_each_kind_of_reason_in_words() -> None:
    verify = ssl.SSLCertVerificationError()
    verify.verify_message = "self-signed certificate"
    version = ssl.SSLError(1, "[SSL: WRONG_VERSION_NUMBER] wrong version number")
    version.reason = "WRONG_VERSION_NUMBER"
    other = ssl.SSLError(1, "handshake failure")
    several = ExceptionGroup("all", [OSError("x"), OSError(errno.ENETUNREACH, "y")])
    for cause, words in (
        (verify, "its certificate is not trusted: self-signed certificate"),
        (version, "it does not speak TLS there"),
        (other, "TLS: "),
        (several, "Network is unreachable"),
        (socket.gaierror(-2, "Name or service not known"), "Name or service not known"),
        (trio.BrokenResourceError(), "ConnectError"),
    ):
        fault = httpx.ConnectError("")
        fault.__cause__ = cause
        assert words in reason_of(fault)
