"""turret serve as a process: ready line, doors, refusals to start, SIGTERM, restart on its data."""

import json
import socket
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import httpx
import pytest
import trio
import trio_websocket

from broker.clock import SystemClock
from broker.store import sqlite_file
from broker.store.port import Put, Unit
from broker.store.sqlite import SqliteStore
from gateways.configure import ServeOptions
from gateways.doors import ServeError
from gateways.serve import open_courier, open_issuer, open_store
from gateways.wirekeys import open_keyring
from tests.support.broker import tuned
from tests.support.issuer import CLIENT, SECRET, issuing
from tests.support.network import refused_port
from tests.support.process import served


def refused_to_serve(*flags: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "gateways.cli", "serve", *flags],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr


@pytest.mark.requirement("observe.service")
async def test_all_doors_of_a_served_broker_answer_and_its_manager_hears_of_it(tmp_path: Path) -> None:
    manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    manager.bind(str(tmp_path / "notify"))
    asked = {"NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "60000000"}
    async with served(tmp_path / "data", environment=asked) as broker:
        assert broker.ready["ready"] is True
        assert broker.ready["operator"] is None
        async with httpx.AsyncClient(base_url=broker.http) as http:
            assert (await http.get("/healthz")).status_code == 200
            assert (await http.get("/readyz")).status_code == 200
            known = (await http.get("/.well-known/turret.json")).json()
            assert (known["wire"], known["dealing"]) == (broker.pk, broker.dealing)
            assert known["mcp"]["url"] == f"{broker.http}/mcp"
            info = (await http.post("/v1/wire_info", json={})).json()
            assert info["wire"] == broker.pk
            assert "unsafe_limits" not in info
            assert "turret_actors" in (await http.get("/metrics")).text
            tools = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
            headers = {"accept": "application/json, text/event-stream"}
            listed = (await http.post("/mcp", json=tools, headers=headers)).json()
            names = [tool["name"] for tool in listed["result"]["tools"]]
            assert "send_call" in names
            assert "suspend_desk" not in names
        assert await broker.stop() == 0
    with manager:
        manager.settimeout(5)
        assert [manager.recv(100) for _ in range(3)] == [b"WATCHDOG=1", b"READY=1", b"STOPPING=1"]


@pytest.mark.requirement("signin.metadata", "signin.keys", "oauth.guarded-faces")
async def test_a_served_broker_is_its_own_authorization_server(tmp_path: Path) -> None:
    tools = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    async with served(tmp_path / "data") as broker, httpx.AsyncClient(base_url=broker.http) as http:
        refused = await http.post("/mcp/arena", json=tools)
        assert refused.status_code == 401
        where = refused.headers["www-authenticate"].split('resource_metadata="')[1].split('"')[0]
        (issuer,) = (await http.get(where)).json()["authorization_servers"]
        document = (await http.get("/.well-known/oauth-authorization-server")).json()
        assert document["issuer"] == issuer == broker.http
        assert len((await http.get("/oauth/jwks")).json()["keys"]) == 1
        assert await broker.stop() == 0
    (tmp_path / "data" / "oauth.keys").chmod(0o644)
    words = await trio.to_thread.run_sync(
        refused_to_serve,
        "--data",
        str(tmp_path / "data"),
        "--bind",
        "127.0.0.1:0",
        "--dealing-bind",
        "127.0.0.1:0",
    )
    assert "oauth.keys is open to others: chmod 600" in words


@pytest.mark.requirement("oauth.settings", "oauth.guarded-faces")
async def test_a_served_broker_with_an_issuer_asks_it_about_tokens(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text(f"{SECRET}\n")
    async with issuing() as issuer:
        environment = {
            "TURRET_ISSUER": issuer.url,
            "TURRET_ISSUER_CLIENT": CLIENT,
            "TURRET_ISSUER_SECRET_FILE": str(secret),
        }
        async with (
            served(tmp_path / "data", environment=environment) as broker,
            httpx.AsyncClient(base_url=broker.http) as http,
        ):
            tools = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
            where = f"{broker.http}/.well-known/oauth-protected-resource/mcp/arena"
            refused = await http.post("/mcp/arena", json=tools)
            assert refused.status_code == 401
            assert f'resource_metadata="{where}"' in refused.headers["www-authenticate"]
            assert (await http.get(where)).json()["resource"] == f"{broker.http}/mcp/arena"
            issuer.give("t", f"{broker.http}/mcp", scope="arena")
            listed = await http.post("/mcp/arena", json=tools, headers={"authorization": "Bearer t"})
            assert "open_session" in {each["name"] for each in listed.json()["result"]["tools"]}
            assert await broker.stop() == 0


@pytest.mark.requirement("oauth.settings")
@pytest.mark.parametrize("content", [None, b" \n", b"\xff"])
async def test_a_secret_that_can_not_be_read_is_one_line(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / "secret").write_bytes(content)
    options = ServeOptions(
        issuer="https://id.example", issuer_client="turret", issuer_secret_file=str(tmp_path / "secret")
    )
    with pytest.raises(ServeError, match="secret"):
        async with open_issuer(options, SystemClock()):
            pass


@pytest.mark.requirement("streams.sigterm")
async def test_sigterm_ends_the_process_in_time_although_a_client_never_reads(tmp_path: Path) -> None:
    async with served(tmp_path / "data") as broker:
        host, port = broker.http.removeprefix("http://").split(":")
        stuck = await trio.open_tcp_stream(host, int(port))
        request = b"GET /metrics HTTP/1.1\r\nhost: localhost\r\n\r\n"
        async with stuck:
            await stuck.send_all(request * 200)
            start = trio.current_time()
            assert await broker.stop() == 0
            assert trio.current_time() - start < 10.5


@pytest.mark.requirement("keys.wire-key")
async def test_a_restart_keeps_the_key_and_a_second_broker_is_turned_away(tmp_path: Path) -> None:
    data = tmp_path / "data"
    async with served(data) as broker:
        pk = broker.pk
        words = await trio.to_thread.run_sync(refused_to_serve, "--data", str(data), "--bind", "127.0.0.1:0")
        assert "in use" in words
        assert await broker.stop() == 0
    async with served(data) as broker:
        assert broker.pk == pk
    (data / "wire.key").unlink()
    words = await trio.to_thread.run_sync(refused_to_serve, "--data", str(data), "--bind", "127.0.0.1:0")
    assert "wire.key is missing" in words


@pytest.mark.requirement("tools.bind-refused")
def test_an_open_bind_without_protection_is_one_clear_line(tmp_path: Path) -> None:
    words = refused_to_serve("--data", str(tmp_path / "d"), "--bind", "0.0.0.0:0")
    assert "--tls-cert" in words
    assert len(words.strip().splitlines()) == 1
    assert not (tmp_path / "d").exists(), "nothing was made"


def test_a_port_in_use_and_a_foreign_file_are_one_clear_line(tmp_path: Path) -> None:
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        bind = f"127.0.0.1:{taken.getsockname()[1]}"
        assert "cannot listen on" in refused_to_serve("--data", str(tmp_path / "d"), "--bind", bind)
    (tmp_path / "e").mkdir()
    (tmp_path / "e" / "turret.db").write_text("not a database at all")
    assert "turret" in refused_to_serve("--data", str(tmp_path / "e"), "--bind", "127.0.0.1:0")


def damage(data: Path, name: str) -> None:
    """Write nonsense over the root page of a table or an index."""
    with closing(sqlite3.connect(data / "turret.db")) as db:
        [(page,)] = db.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (name,))
        [(size,)] = db.execute("PRAGMA page_size")
    with (data / "turret.db").open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"?" * size)


@pytest.mark.requirement("store.damaged")
@pytest.mark.parametrize("what", ["schema", "document", "document_name", "secret", "mark_value"])
def test_a_damaged_store_is_one_clear_line(tmp_path: Path, what: str) -> None:
    data = tmp_path / "data"
    trio.run(make, data)
    if what == "schema":
        with (data / "turret.db").open("r+b") as file:
            file.seek(100)
            file.write(b"?" * 3000)
    elif what == "secret":
        with closing(sqlite3.connect(data / "turret.db")) as db:
            db.execute("DELETE FROM meta")
            db.commit()
    else:
        damage(data, what)
    words = refused_to_serve("--data", str(data), "--bind", "127.0.0.1:0", "--dealing-bind", "127.0.0.1:0")
    *logged, said = words.strip().splitlines()
    assert said.startswith(f"turret: {data}: ")
    events = [json.loads(line)["event"] for line in logged]
    assert events in ([], ["can't read: database disk image is malformed"])


async def make(data: Path) -> None:
    """A store that was served, with a suspended desk."""
    store = await SqliteStore.open(data)
    await open_keyring(data, store, 1)
    await store.commit(Unit(puts=(Put("desk", "x", 0, b"{}", (("suspended", 1),)),)))
    await store.aclose()


def test_a_key_that_is_none_is_one_clear_line_that_names_the_file(tmp_path: Path) -> None:
    (tmp_path / "wire.key").write_text('{"seed":"' + "z" * 64 + '","since":1}\n')
    (tmp_path / "wire.key").chmod(0o600)
    words = refused_to_serve(
        "--data", str(tmp_path), "--bind", "127.0.0.1:0", "--dealing-bind", "127.0.0.1:0"
    )
    assert words.startswith(f"turret: {tmp_path / 'wire.key'} is not a wire.key")
    assert len(words.strip().splitlines()) == 1


@pytest.mark.requirement("cli.setting-bounds")
def test_a_setting_that_can_not_be_used_is_one_clear_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TURRET_LIMITS_ENVELOPES", "-5")
    words = refused_to_serve("--data", str(tmp_path / "d"))
    assert words == "turret: limits.envelopes: expected `int` >= 1\n"
    monkeypatch.delenv("TURRET_LIMITS_ENVELOPES")
    assert "'nonsense'" in refused_to_serve("--data", str(tmp_path / "d"), "--public-url", "nonsense")


@pytest.mark.requirement("tools.unsafe-limits")
async def test_raised_limits_are_shown_and_refused_to_all_but_a_bench(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "TURRET_BENCH=1" in refused_to_serve("--data", str(tmp_path / "d"), "--unsafe-limits")
    monkeypatch.setenv("TURRET_BENCH", "1")
    async with served(tmp_path / "data", "--unsafe-limits") as broker, httpx.AsyncClient() as http:
        info = (await http.post(f"{broker.http}/v1/wire_info", json={})).json()
        known = (await http.get(f"{broker.http}/.well-known/turret.json")).json()
    assert info["unsafe_limits"] is True
    assert info["limits"]["window_ms"] == 1
    assert known["unsafe_limits"] is True


@pytest.mark.requirement("http.well-known")
async def test_clients_are_told_the_addresses_that_the_operator_gave(tmp_path: Path) -> None:
    bind = f"127.0.0.1:{refused_port()}"
    flags = (
        "--bind",
        bind,
        "--public-url",
        "https://turret.example/",
        "--dealing-url",
        "wss://deal.example:8767",
    )
    async with served(tmp_path / "data", *flags) as broker:
        async with httpx.AsyncClient(base_url=f"http://{bind}") as http:
            known = (await http.get("/.well-known/turret.json")).json()
        assert known["mcp"]["url"] == "https://turret.example/mcp"
        assert known["dealing"] == broker.dealing == "wss://deal.example:8767"


async def test_tls_serves_both_ports(tmp_path: Path) -> None:
    import ssl

    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    made = await trio.run_process(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
         "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
         "-keyout", str(key), "-out", str(cert)],
        check=False, capture_stderr=True,
    )  # fmt: skip
    if made.returncode != 0:
        pytest.skip("no openssl to make a certificate with")
    async with served(tmp_path / "data", "--tls-cert", str(cert), "--tls-key", str(key)) as broker:
        assert broker.http.startswith("https://")
        assert broker.dealing.startswith("wss://")
        trust = ssl.create_default_context(cafile=str(cert))
        async with httpx.AsyncClient(base_url=broker.http, verify=trust) as http:
            assert (await http.get("/readyz")).status_code == 200

        async with trio_websocket.open_websocket_url(broker.dealing, ssl_context=trust) as ws:
            with trio.fail_after(5):
                hello = json.loads(await ws.get_message())
        assert hello["params"]["wire"] == broker.pk


@pytest.mark.requirement("streams.sigterm")
async def test_a_websocket_that_came_and_went_does_not_hold_up_the_end(tmp_path: Path) -> None:
    async with served(tmp_path / "data") as broker:
        host, port = broker.http.removeprefix("http://").split(":")
        async with await trio.open_tcp_stream(host, int(port)) as stream, trio.open_nursery() as nursery:
            socket = await trio_websocket.wrap_client_stream(nursery, stream, host, "/ws")
            with trio.fail_after(5):
                await socket.get_message()
                await socket.aclose()
            nursery.cancel_scope.cancel()
        assert await broker.stop(4.0) == 0


@pytest.mark.requirement("webhook.public")
@pytest.mark.parametrize("allowed", [False, True])
async def test_webhooks_reach_this_machine_where_the_operator_allows_it_and_the_start_says_so(
    allowed: bool, caplog: pytest.LogCaptureFixture
) -> None:
    courier = open_courier(tuned(webhooks={"allow_loopback": allowed}))
    assert ("webhooks.allow_loopback" in caplog.text) is allowed
    outcome = await courier.send(f"http://localhost:{refused_port()}/", (), b"{}")
    assert outcome.why == ("no_answer" if allowed else "not_public")


async def test_an_sqlite_without_full_text_search_is_one_clear_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_file, "has_search", lambda: False)
    with pytest.raises(ServeError, match="was built without FTS5"):
        async with open_store(tmp_path):
            raise AssertionError
