"""The operators' port of a served broker: opened by a token alone, apart from the public one, and ended with it."""

import os
import secrets
import socket
import ssl
from functools import partial
from pathlib import Path

import httpx
import msgspec
import pytest

from broker.clock import SystemClock
from gateways.configure import Configuration, ServeOptions
from gateways.doors import Doors, ServeError
from gateways.operator.token import OperatorToken
from gateways.serve import _operator_token
from tests.gateways.mcp.harness import modern
from tests.support.broker import Bench
from tests.support.operators import BEARER, TOKEN
from tests.support.process import served

HERE = ServeOptions(operator_bind="127.0.0.1:0")
JSON = {"accept": "application/json, text/event-stream"}


@pytest.mark.requirement("operator.port", "operator.apart", "observe.operators")
async def test_with_a_token_a_broker_opens_a_port_for_its_operators_and_closes_it_in_time(
    tmp_path: Path,
) -> None:
    file = tmp_path / "operators.token"
    file.write_text(TOKEN + "\n")
    file.chmod(0o644)
    flags = ("--operator-bind", "127.0.0.1:0", "--operator-token-file", str(file))
    async with served(tmp_path / "data", *flags) as broker, httpx.AsyncClient(trust_env=False) as http:
        body, headers = modern("tools/list")
        asked = {**JSON, **BEARER, **{name.replace("_", "-"): value for name, value in headers.items()}}
        listed = await http.post(f"{broker.ready['operator']}/mcp", json=body, headers=asked)
        assert "suspend_agent" in [tool["name"] for tool in listed.json()["result"]["tools"]]
        body, headers = modern("tools/call", name="verify_audit_log", arguments={})
        asked |= {name.replace("_", "-"): value for name, value in headers.items()}
        whole = await http.post(f"{broker.ready['operator']}/mcp", json=body, headers=asked)
        assert whole.json()["result"]["structuredContent"]["ok"] is True
        figures = (await http.get(f"{broker.http}/metrics")).text
        assert "\nturret_audit_intact 1.0\n" in figures
        assert 'turret_tool_calls_total{outcome="ok",tool="verify_audit_log"} 1.0' in figures
        elsewhere = await http.post(f"{broker.http}/mcp", json=body, headers=asked)
        assert (elsewhere.status_code, elsewhere.json()["error"]["data"]["code"]) == (401, "unauthenticated")
        stream = {**BEARER, "accept": "text/event-stream", "mcp-session-id": await opened(http, broker.ready)}
        url = f"{broker.ready['operator']}/mcp"
        async with http.stream("GET", url, headers=stream) as waiting:
            assert waiting.status_code == 200
            assert await broker.stop() == 0
    told = broker.errors.read_text()
    assert f"{file} can be read by everybody on this machine: chmod o-r {file}" in told
    assert TOKEN not in told


def doors_of(bench: Bench, options: ServeOptions, tls: ssl.SSLContext | None = None) -> Doors:
    """What opens the ports of a broker with these options."""
    configuration = Configuration(serve=options, settings=bench.broker.settings)
    return Doors(configuration, bench.broker, SystemClock(), tls=tls)


async def opened(http: httpx.AsyncClient, ready: dict[str, str]) -> str:
    """The id of a session on the operators' endpoint."""
    info = {"name": "t", "version": "1"}
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info}
    body = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    answer = await http.post(f"{ready['operator']}/mcp", json=body, headers={**JSON, **BEARER})
    return str(answer.headers["mcp-session-id"])


@pytest.mark.requirement("operator.port")
async def test_without_a_token_the_port_is_not_opened_and_a_line_says_how_to_get_one(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    assert await doors_of(bench, HERE).open_operators(None) is None
    assert "turret operator-token" in caplog.text


@pytest.mark.requirement("operator.port")
async def test_an_address_in_use_is_one_clear_line(bench: Bench) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        where = f"127.0.0.1:{taken.getsockname()[1]}"
        options = msgspec.structs.replace(HERE, operator_bind=where)
        with pytest.raises(ServeError, match=f"cannot listen on {where}: "):
            await doors_of(bench, options).open_operators(OperatorToken(TOKEN))


@pytest.mark.requirement("operator.port")
@pytest.mark.parametrize(
    ("bind", "url", "told", "warned"),
    [
        ("127.0.0.1:0", None, "http://127.0.0.1:", False),
        ("0.0.0.0:0", None, "https://0.0.0.0:", True),
        ("0.0.0.0:0", "https://ops.example:8768/", "https://ops.example:8768", True),
    ],
)
async def test_off_loopback_it_is_in_tls_and_a_warning_says_so(
    bench: Bench, caplog: pytest.LogCaptureFixture, bind: str, url: str | None, told: str, warned: bool
) -> None:
    options, tls = ServeOptions(operator_bind=bind, operator_url=url), ssl.create_default_context()
    door = await doors_of(bench, options, tls).open_operators(OperatorToken(TOKEN))
    assert door is not None
    assert isinstance(door.serve, partial)
    for listener in door.serve.args[1]:
        await listener.aclose()
    assert door.url.startswith(told)
    assert door.serve.keywords["tls"] is (tls if warned else None)
    assert ("others can reach the operators' port" in caplog.text) == warned


@pytest.mark.requirement("operator.token")
def test_a_token_that_can_not_serve_is_one_line_and_none_stays_in_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TURRET_OPERATOR_TOKEN", "too-short")
    with pytest.raises(ServeError, match=r"^TURRET_OPERATOR_TOKEN: "):
        _operator_token(HERE)
    assert "TURRET_OPERATOR_TOKEN" not in os.environ
    missing = msgspec.structs.replace(HERE, operator_token_file=str(tmp_path / "gone"))
    with pytest.raises(ServeError, match=r"gone: No such file or directory$"):
        _operator_token(missing)
    monkeypatch.setenv("TURRET_OPERATOR_TOKEN", secrets.token_urlsafe(16))
    assert _operator_token(HERE) is not None
    assert _operator_token(HERE) is None
