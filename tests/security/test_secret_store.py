"""A secret goes to the webhook, or to the source of a tape, that names it, and nowhere else."""

import base64
import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
import trio

from broker.app import open_broker
from broker.clock import SystemClock
from broker.config import Settings
from broker.store import sqlite_backup
from broker.store.sqlite import SqliteStore
from broker.wire.keys import SigningKey
from gateways.client.agent import open_agent
from gateways.safekey import open_safe_keys
from gateways.wirekeys import open_keyring
from tests.support.agents import caller_of, make_agent
from tests.support.broker import Bench
from tests.support.network import serving
from tests.support.process import Served, served

NAME = "HOOK_TOKEN"
VALUE = "planted+value/of=a secret"
BOTH = "application/json, text/event-stream"
ENVIRONMENT = {
    "TURRET_WEBHOOKS_ALLOW_LOOPBACK": "true",
    "TURRET_LOG_LEVEL": "debug",
    "TURRET_VERIFY_HELPERS": "0",
}


class Inbox:
    """A receiver that keeps the headers that it is sent."""

    def __init__(self) -> None:
        self.headers: list[dict[bytes, bytes]] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await receive()
        self.headers.append(dict(scope["headers"]))
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b""})


def spellings(value: str) -> set[bytes]:
    raw = value.encode()
    return {
        raw,
        raw.lower(),
        quote(value).encode(),
        raw.hex().encode(),
        base64.b64encode(raw),
        json.dumps(value)[1:-1].encode(),
    }


async def prepare(data: Path, key: SigningKey) -> str:
    """A store with a standard agent; its id."""
    clock, store = SystemClock(), await SqliteStore.open(data)
    keyring = await open_keyring(data, store, clock.now_ms())
    async with open_broker(Settings(), store, clock, keyring) as broker:
        made = await make_agent(Bench(broker, store, clock), "Ann", key=key)  # type: ignore[arg-type]
    await store.aclose()
    return str(made.agent)


async def ask(http: httpx.AsyncClient, shown: dict[str, str], tool: str, **params: Any) -> Any:
    """Call a tool at the plain door and over MCP; the plain answer."""
    answer = await http.post(f"/v1/{tool}", json=params)
    shown[f"/v1/{tool} {len(shown)}"] = f"{answer.headers.raw!r}{answer.text}"
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": params}}
    over = await http.post("/mcp/trial", json=call, headers={"accept": BOTH})
    shown[f"MCP {tool} {len(shown)}"] = f"{over.headers.raw!r}{over.text}"
    return answer.json()


async def play(broker: Served, key: SigningKey, agent_id: str, url: str) -> dict[str, str]:
    """All that can be done with a secret, right and wrong, ending with a kill; what was shown."""
    shown: dict[str, str] = {}
    async with open_agent(broker.http, key, agent_id) as ann:
        token = await ann.token()
    async with httpx.AsyncClient(base_url=broker.http, timeout=10) as http:
        http.headers["authorization"] = f"Bearer {token}"
        made = await ask(http, shown, "kestrel.secrets.set", name=NAME, value=VALUE, idempotency_key="k")
        assert made["name"] == NAME
        for wrong in (
            {"name": "a", "value": VALUE},
            {"name": NAME, "value": f"{VALUE}\n"},
            {"name": NAME, "value": [VALUE]},
        ):
            assert "refusal" in await ask(http, shown, "kestrel.secrets.set", **wrong)
        unkept = await ask(http, shown, "kestrel.secrets.set", name=NAME, value="other", idempotency_key="k")
        assert unkept["refusal"]["code"] == "IDEMPOTENCY_MISMATCH"
        await ask(http, shown, "kestrel.secrets.list")
        headers = {"Authorization": f"Bearer ${{{NAME}}}", "X-Missing": "${GONE}"}
        await ask(http, shown, "set_webhook", url=url, headers=headers)
        tested = await ask(http, shown, "test_webhook")
        assert (tested["error"], tested["secret"]) == ("secret_unset", "GONE")
        del headers["X-Missing"]
        await ask(http, shown, "set_webhook", url=url, headers=headers)
        for tool in ("get_webhook", "kestrel.secrets.get", "kestrel_secrets_list"):
            await ask(http, shown, tool)
        for path in ("/metrics", "/openapi.json", "/readyz"):
            shown[path] = (await http.get(path)).text
    broker.kill()
    with trio.fail_after(10):
        await broker.process.wait()
    return shown


@pytest.mark.requirement(
    "trial.secret-hidden", "trial.secret-restart", "trial.secret-used", "threat.secret-store"
)
async def test_a_secret_survives_a_kill_reaches_its_receiver_and_is_nowhere_else(tmp_path: Path) -> None:
    inbox, key, data = Inbox(), SigningKey.generate(), tmp_path / "data"
    agent_id = await prepare(data, key)
    async with serving(inbox) as receiver:
        async with served(data, environment=ENVIRONMENT) as broker:
            shown = await play(broker, key, agent_id, receiver.url)
            shown["the log"] = broker.errors.read_text()
        async with served(data, environment=ENVIRONMENT) as broker:
            async with open_agent(broker.http, key, agent_id) as ann:
                token = await ann.token()
            async with httpx.AsyncClient(base_url=broker.http, timeout=10) as http:
                http.headers["authorization"] = f"Bearer {token}"
                listed = await ask(http, shown, "kestrel.secrets.list")
                assert [(each["name"], each["readable"]) for each in listed["secrets"]] == [(NAME, True)]
                assert (await http.post("/v1/test_webhook", json={})).json() == {"taken": True, "status": 204}
            sqlite_backup.back_up(data, tmp_path / "one.backup", at=1, key=None, told=lambda done, of: None)
            assert await broker.stop() == 0
            shown["the log again"] = broker.errors.read_text()
    assert [each[b"authorization"] for each in inbox.headers] == [f"Bearer {VALUE}".encode()]
    assert (data / "secrets.key").stat().st_mode & 0o777 == 0o600
    texts = {name: text.encode() for name, text in shown.items()}
    texts |= {
        path.name: path.read_bytes() for path in (*data.rglob("*"), tmp_path / "one.backup") if path.is_file()
    }
    keys = {json.loads((data / "secrets.key").read_text())["key"]}
    keyed = {name: text for name, text in texts.items() if name != "secrets.key"}
    assert "turret.db" in texts
    assert [name for name, text in texts.items() if any(each in text for each in spellings(VALUE))] == []
    assert [
        name
        for name, text in keyed.items()
        if any(each.encode() in text or bytes.fromhex(each) in text for each in keys)
    ] == []


class Feed:
    """A source that says again what it was asked with, in each way that it has."""

    def __init__(self) -> None:
        self.asked: list[bytes] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await receive()
        said = dict(scope["headers"])[b"authorization"]
        self.asked.append(said)
        row = b"1772443800000,1.08,1.09\n1772443801000,1.08,1.09\n"
        status, body = {
            "/401": (401, said),
            "/302": (302, said),
            "/500": (500, said),
            "/header": (200, b"time,bid,ask," + said + b"\n"),
            "/time": (200, b"time,bid,ask\n" + said + b",1.08,1.09\n"),
            "/ask": (200, b"time,bid,ask\n" + row + b"1772443802000,1.08," + said + b"\n"),
            "/good": (200, b"time,bid,ask\n" + row),
        }[scope["path"]]
        headers = [(b"location", b"/" + said), (b"x-said", said), (b"content-length", b"%d" % len(body))]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})


OPERATORS_TOKEN = "oP3rator-" + "Kx7" * 12
ABOUT = {"instrument": "EURUSD", "tick": "0.01", "title": "a day", "licence": "CC0-1.0"}


async def import_all(broker: Served, feed: str, agents: httpx.AsyncClient) -> dict[str, str]:
    """All ends that an import with a secret may have; what was shown, and what everybody sees then."""
    shown: dict[str, str] = {}
    async with httpx.AsyncClient(base_url=broker.ready["operator"], timeout=10) as http:
        http.headers.update({"authorization": f"Bearer {OPERATORS_TOKEN}", "accept": BOTH})

        async def ask(tool: str, **params: Any) -> Any:
            call = {"name": tool, "arguments": params}
            answer = await http.post(
                "/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
            )
            shown[f"{tool} {len(shown)}"] = f"{answer.headers.raw!r}{answer.text}"
            return answer.json()["result"]["structuredContent"]

        await ask("set_secret", name=NAME, value=VALUE, idempotency_key="k")
        told = {}
        for path in ("/401", "/302", "/500", "/header", "/time", "/ask", "/good"):
            headers = {"Authorization": f"Bearer ${{{NAME}}}"}
            told[path] = await ask(
                "fetch_tape", url=feed + path, headers=headers, **ABOUT, idempotency_key=path
            )
        assert [each["refusal"]["reason"] for each in told.values() if "refusal" in each] == [
            *("status", "redirect", "status"),
            *["line"] * 3,
        ]
        assert told["/good"]["ticks"] == 2
        for tool in ("list_secrets", "list_tapes", "verify_audit_log", "list_audit_events"):
            await ask(tool)
        for page in ("/", "/trials", "/audit"):
            shown[page] = (await http.get(page)).text
    for path in ("/metrics", "/openapi.json"):
        shown[path] = (await agents.get(path)).text
    return shown


@pytest.mark.requirement("tape.source-hidden", "tape.source-secrets", "threat.secret-store")
async def test_a_secret_of_a_tape_s_source_reaches_it_and_is_nowhere_else(tmp_path: Path) -> None:
    feed, data, token = Feed(), tmp_path / "data", tmp_path / "operators.token"
    token.write_text(OPERATORS_TOKEN)
    token.chmod(0o600)
    flags = ("--operator-token-file", str(token), "--operator-bind", "127.0.0.1:0")
    async with serving(feed) as source, served(data, *flags, environment=ENVIRONMENT) as broker:
        async with httpx.AsyncClient(base_url=broker.http, timeout=10) as agents:
            shown = await import_all(broker, source.url, agents)
        sqlite_backup.back_up(data, tmp_path / "one.backup", at=1, key=None, told=lambda done, of: None)
        assert await broker.stop() == 0
        shown["the log"] = broker.errors.read_text()
    assert feed.asked == [f"Bearer {VALUE}".encode()] * 7
    texts = {name: text.encode() for name, text in shown.items()}
    texts |= {
        path.name: path.read_bytes() for path in (*data.rglob("*"), tmp_path / "one.backup") if path.is_file()
    }
    assert "turret.db" in texts
    assert [name for name, text in texts.items() if any(each in text for each in spellings(VALUE))] == []


@pytest.mark.requirement("trial.secret-restart")
@pytest.mark.parametrize("had", ["key", "key and store"])
async def test_a_kill_between_the_file_and_the_store_loses_nothing(tmp_path: Path, had: str) -> None:
    """The key is on the disk before anything is sealed with it: whatever is in the store opens."""
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    clock = SystemClock()
    store = await SqliteStore.open(data)
    first = await open_safe_keys(data, None, store, 1)
    agent_id = ""
    if had == "key and store":
        keyring = await open_keyring(data, store, 1)
        async with open_broker(Settings(), store, clock, keyring, safe_keys=first) as broker:
            bench = Bench(broker, store, clock)  # type: ignore[arg-type]
            ann = await make_agent(bench, "Ann")
            await bench.call("kestrel.secrets.set", ann, name=NAME, value=VALUE)
            agent_id = str(ann.agent)
    await store.aclose()
    store = await SqliteStore.open(data)
    keys = await open_safe_keys(data, None, store, 2)
    assert keys.current == first.current
    if agent_id:
        keyring = await open_keyring(data, store, 2)
        async with open_broker(Settings(), store, clock, keyring, safe_keys=keys) as broker:
            bench = Bench(broker, store, clock)  # type: ignore[arg-type]
            listed = await bench.call("kestrel.secrets.list", caller_of(bench, agent_id))
            assert [each["readable"] for each in listed["secrets"]] == [True]
    await store.aclose()
