"""Pages in a browser, and networks that were not meant: every door of a real broker, on both of its ports."""

import base64
import os
from collections.abc import Iterator
from pathlib import Path

import httpx
import msgspec
import pytest
from msgspec.structs import replace

from broker.config import Limits, Settings
from gateways.configure import ConfigError, Configuration, ServeOptions, check, is_loopback, load, split_bind
from tests.support.operators import TOKEN
from tests.support.peers import dial, read_until
from tests.support.process import Served, served

PROBES = ("/healthz", "/readyz")
READ = (
    "/metrics",
    "/openapi.json",
    "/.well-known/turret.json",
    "/rings/ALFA",
    "/mcp",
    "/mcp/wire",
    "/",
    "/nowhere",
)
"""What a page could ask for by GET."""
POSTED = ("/v1/wire_info", "/v1/open_desk", "/mcp", "/mcp/wire")
PING = b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}'
FOREIGN = (
    "https://evil.example",
    "http://evil.example",
    "null",
    "file://",
    "http://127.0.0.1.evil.example",
    "http://[::1].evil.example",
    "http://localhost@evil.example",
    "http://evil.example@localhost",
    "http://localhost:1:2",
    "http://local\thost",
    "x",
)
KEY = base64.b64encode(os.urandom(16)).decode()


def address(url: str) -> tuple[str, int]:
    host, _, port = url.partition("//")[2].rpartition(":")
    return host, int(port)


async def ask(url: str, path: str, method: str = "GET", body: bytes = b"", **headers: str | None) -> int:
    """The status of one request; header names take _ for -, and None leaves one out."""
    host, port = address(url)
    named = {"host": f"{host}:{port}", "connection": "close", "content_length": str(len(body)), **headers}
    lines = [f"{name.replace('_', '-')}: {value}" for name, value in named.items() if value is not None]
    async with dial((host, port)) as stream:
        await stream.send_all("\r\n".join([f"{method} {path} HTTP/1.1", *lines, "", ""]).encode() + body)
        return int((await read_until(stream, b"\r\n\r\n")).split(b" ", 2)[1])


async def upgrade(url: str, path: str, **headers: str) -> int:
    """The status of a WebSocket's opening handshake. A page can't leave out its Origin, and can't choose it."""
    asking = {"upgrade": "websocket", "sec_websocket_key": KEY, "sec_websocket_version": "13"}
    return await ask(url, path, connection="Upgrade", content_length=None, **asking, **headers)


async def test_without_a_page_every_door_opens(tmp_path: Path) -> None:
    """What the other tests refuse is refused for the page's sake alone."""
    async with served(tmp_path / "data") as broker:
        assert await ask(broker.http, "/metrics") == 200
        json = "application/json"
        assert await ask(broker.http, "/v1/wire_info", "POST", b"{}", content_type=json) == 200
        both = "application/json, text/event-stream"
        assert await ask(broker.http, "/mcp", "POST", PING, content_type=json, accept=both) == 200
        assert await upgrade(broker.http, "/ws") == 101
        assert await upgrade(broker.dealing, "/") == 101


@pytest.mark.requirement("threat.rebinding")
async def test_a_page_that_rebinds_its_name_to_us_reaches_nothing(tmp_path: Path) -> None:
    """Its requests are same-origin to the browser: Host and Origin name the page's own host."""
    async with served(tmp_path / "data") as broker:
        port = address(broker.http)[1]
        for host in (
            "evil.example",
            f"evil.example:{port}",
            f"127.0.0.1.evil.example:{port}",
            "localhost.",
            "[::1].x",
        ):
            for path in READ:
                assert await ask(broker.http, path, host=host) == 421, (path, host)
                assert await ask(broker.http, path, host=host, origin=f"http://{host}") == 421, (path, host)
            for path in POSTED:
                status = await ask(
                    broker.http, path, "POST", PING, host=host, content_type="application/json"
                )
                assert status == 421, (path, host)
            for method in ("OPTIONS", "DELETE", "PUT", "HEAD"):
                assert await ask(broker.http, "/mcp", method, host=host) == 421
            assert await upgrade(broker.http, "/ws", host=host, origin=f"http://{host}") == 421
            assert await upgrade(broker.dealing, "/", host=host, origin=f"http://{host}") == 403
        for path in PROBES:
            assert await ask(broker.http, path, host="evil.example") == 200


@pytest.mark.requirement("threat.rebinding", "threat.csrf", "threat.websocket")
async def test_a_foreign_page_reaches_nothing(tmp_path: Path) -> None:
    async with served(tmp_path / "data") as broker:
        for origin in FOREIGN:
            for path in (*READ, *PROBES):
                assert await ask(broker.http, path, origin=origin) == 403, (path, origin)
            for path in POSTED:
                for kind in ("application/json", "text/plain", None):
                    sent = {"content_type": kind, "origin": origin}
                    assert await ask(broker.http, path, "POST", PING, **sent) == 403, (path, origin)
                assert await ask(broker.http, path, "OPTIONS", origin=origin) == 403
            assert await upgrade(broker.http, "/ws", origin=origin) == 403
            assert await upgrade(broker.dealing, "/", origin=origin) == 403
            assert await upgrade(broker.dealing, "/ws", origin=origin) == 403


@pytest.mark.requirement("threat.websocket")
async def test_the_dealing_port_takes_no_page_that_was_not_named(tmp_path: Path) -> None:
    """It serves bots: not even a page of this machine may use it unless the operator names its origin."""
    allowed = {"TURRET_ALLOWED_ORIGINS": "https://desk.example"}
    async with served(tmp_path / "data", environment=allowed) as broker:
        for origin in ("http://localhost:3000", broker.http, "https://desk.example.evil.example"):
            assert await upgrade(broker.dealing, "/", origin=origin) == 403, origin
        assert await upgrade(broker.dealing, "/", origin="https://desk.example") == 101


SIMPLE = (
    "text/plain",
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=x",
    "text/plain; application/json",
    "application/json;charset=utf-16",
    None,
)
"""What a form or a script may send to anybody without asking first (Fetch, CORS), and what looks like it."""


@pytest.mark.requirement("threat.csrf")
async def test_a_form_changes_nothing_even_where_no_origin_is_sent(tmp_path: Path) -> None:
    async with served(tmp_path / "data") as broker:
        for kind in SIMPLE:
            for path in POSTED:
                # A client of the field sends none to /mcp; of a page's post the browser tells the Origin.
                due = 200 if kind is None and path.startswith("/mcp") else 415
                assert await ask(broker.http, path, "POST", PING, content_type=kind) == due, (path, kind)
        for tool in ("open_desk", "send_call", "wire_info"):
            assert await ask(broker.http, f"/v1/{tool}") == 405
            assert await ask(broker.http, f"/v1/{tool}?statement=%7B%7D") == 405


@pytest.mark.requirement("threat.open-by-mistake")
def test_the_binds_of_a_broker_that_was_told_nothing_are_loopback() -> None:
    serve = load(None, {}, {}).serve
    binds = {name: bind for name, bind in msgspec.structs.asdict(serve).items() if name.endswith("bind")}
    assert set(binds) == {"bind", "dealing_bind", "operator_bind", "metrics_bind"}
    assert binds.pop("metrics_bind") is None
    for bind in binds.values():
        assert is_loopback(split_bind(bind)[0])


@pytest.mark.requirement("threat.open-by-mistake")
@pytest.mark.parametrize("name", ["bind", "dealing_bind", "operator_bind"])
@pytest.mark.parametrize(
    "bind",
    ["0.0.0.0:1", "[::]:1", "192.0.2.1:1", "[2001:db8::1]:1", "turret.example:1", "127.0.0.1.example:1",
     "localhost.example:1", "0:1", "[::ffff:192.0.2.1]:1", "*:1"],
)  # fmt: skip
def test_each_bind_that_others_can_reach_is_refused_without_protection(name: str, bind: str) -> None:
    open_to_others = replace(ServeOptions(), **{name: bind})
    chosen = Configuration(serve=open_to_others, transcripts_chosen=True)
    with pytest.raises(ConfigError, match="can be reached from outside"):
        check(chosen)
    guarded = replace(open_to_others, tls_cert="c", tls_key="k")
    check(replace(chosen, serve=guarded))
    if name == "operator_bind":  # nobody but the operators reads there
        check(replace(chosen, serve=guarded, transcripts_chosen=False))
        return
    with pytest.raises(ConfigError, match="--transcripts"):
        check(replace(chosen, serve=guarded, transcripts_chosen=False))


def listening(pid: int) -> Iterator[str]:
    """The addresses, as the kernel writes them, at which a process listens; Unix sockets by their path."""
    inodes = {os.readlink(each) for each in Path(f"/proc/{pid}/fd").iterdir() if each.is_symlink()}
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and f"socket:[{fields[9]}]" in inodes:
                yield fields[1].partition(":")[0]
    for line in Path(f"/proc/{pid}/net/unix").read_text().splitlines()[1:]:
        fields = line.split()
        if f"socket:[{fields[6]}]" in inodes and len(fields) > 7:
            yield fields[7]


@pytest.mark.requirement("threat.open-by-mistake")
@pytest.mark.skipif(not Path("/proc/self/net/tcp").exists(), reason="looks at sockets by /proc")
async def test_a_running_broker_listens_on_loopback_alone_and_on_no_socket_in_the_file_system(
    tmp_path: Path,
) -> None:
    environment = {"TURRET_VERIFY_HELPERS": "1", "TURRET_OPERATOR_TOKEN": TOKEN}
    operators = ("--operator-bind", "127.0.0.1:0")
    async with served(tmp_path / "data", *operators, environment=environment) as broker:
        assert list(listening(broker.process.pid)) == ["0100007F"] * 3


@pytest.mark.requirement("threat.unsafe-limits")
@pytest.mark.parametrize("bind", ["bind", "dealing_bind", "operator_bind"])
def test_no_file_and_no_bind_of_others_lifts_a_limit(tmp_path: Path, bind: str) -> None:
    """The limits are lifted by who starts the process, in its environment, and by nobody else."""
    file = tmp_path / "turret.toml"
    file.write_text("unsafe_limits = true\n")
    with pytest.raises(ConfigError, match="TURRET_BENCH"):
        load(file, {})
    file.write_text("unsafe_limits = true\nTURRET_BENCH = 1\n")
    with pytest.raises(ConfigError, match="no setting"):
        load(file, {})
    with pytest.raises(ConfigError, match="TURRET_BENCH"):
        load(None, {"TURRET_UNSAFE_LIMITS": "1"})
    reachable = {bind: "0.0.0.0:1", "tls_cert": "c", "tls_key": "k", "transcripts": "parties"}
    with pytest.raises(ConfigError, match="loopback"):
        load(None, {"TURRET_BENCH": "1"}, {"unsafe_limits": True, **reachable})
    behind = {"behind_proxy": ("127.0.0.1",)}
    with pytest.raises(ConfigError, match="loopback"):
        load(None, {"TURRET_BENCH": "1"}, {"unsafe_limits": True, **behind})
    assert load(None, {"TURRET_BENCH": "1"}).settings.limits == Limits() == Settings().limits


@pytest.mark.requirement("threat.unsafe-limits")
async def test_no_request_lifts_a_limit(tmp_path: Path) -> None:
    async with served(tmp_path / "data", environment={"TURRET_BENCH": "1"}) as broker:
        assert await told_limits(broker, "/v1/wire_info") == (30, 8)
        assert await told_limits(broker, "/v1/wire_info?unsafe_limits=true", x_unsafe_limits="1") == (30, 8)
        json = "application/json"
        assert (
            await ask(broker.http, "/v1/wire_info", "POST", b'{"unsafe_limits":true}', content_type=json)
            == 400
        )


async def told_limits(broker: Served, path: str, **headers: str) -> tuple[int, int]:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    async with httpx.AsyncClient(base_url=broker.http) as http:
        limits = (await http.post(path, json={}, headers=named)).json()["limits"]
    return limits["envelopes"], limits["conversations"]
