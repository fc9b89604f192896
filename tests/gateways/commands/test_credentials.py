"""Tools called by a token from the command line: from a file, from an agent's key, and never as an argument."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import click
import pytest
import trio

from broker.app import open_broker
from broker.clock import SystemClock
from broker.config import Settings
from broker.core.agent import Key
from broker.store.memory import MemoryStore
from broker.wire.keyring import Keyring, WireKey
from broker.wire.keys import SigningKey
from gateways.commands.credentials import Credentials, credential_options, take_credentials
from gateways.gate import Gate
from gateways.keyfile import load_key
from gateways.mcp.endpoint import mcp_app
from gateways.mcp.protected import Protected
from gateways.metrics import Metrics
from gateways.oauth import access, jose
from gateways.oauth.bearer import Bearers
from gateways.oauth.documents import Documents
from gateways.oauth.keys import SigningKeys
from gateways.oauth.metadata import Resources
from gateways.oauth.server import AuthorizationServer
from gateways.outbound import Outbound
from gateways.web import web_app
from gateways.websocket import ws_app
from tests.gateways.commands.conftest import Turret
from tests.support.agents import make_agent
from tests.support.broker import Bench
from tests.support.network import serving


class Town:
    """A broker with its sign-in on a real port, an agent there, and its files."""

    def __init__(self, url: str, agent_id: str, key: str, token: Path) -> None:
        self.url = url
        self.agent_id = agent_id
        self.key = key
        self.token = token


@asynccontextmanager
async def open_town(turret: Turret) -> AsyncIterator[Town]:
    clock, store, inner = SystemClock(), MemoryStore(), list[Any]()
    keyring = Keyring((WireKey(SigningKey.generate(), clock.now_ms()),))

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await inner[0](scope, receive, send)

    async with open_broker(Settings(), store, clock, keyring) as broker, serving(app) as served:
        resources = Resources(issuer=served.url, origins=(served.url,))
        keys = SigningKeys.open(None, clock.now_ms())
        server = AuthorizationServer(broker, clock, keys, resources, Documents(Outbound(), clock))
        bearers = Bearers(broker, server)
        gate, shutdown = Gate(bearers, resources), trio.Event()
        mcp = mcp_app(broker, protected=Protected(resources, bearers))
        ws = ws_app(broker, shutdown=shutdown, gate=gate)
        inner.append(
            web_app(
                broker,
                Metrics(broker),
                mcp_app=mcp,
                ws_app=ws,
                resources=resources,
                sign_in=server,
                gate=gate,
            )
        )
        file = await trio.to_thread.run_sync(turret.key, "alice")
        pk = load_key(Path(file)).pk
        bench = Bench(broker, store, clock)  # type: ignore[arg-type]  # its clock is never moved
        key = Key(jose.public_key(pk).thumbprint(), pk, clock.now_ms())
        agent = await make_agent(bench, "alice", keys=(key,))
        token = turret.directory / "token"
        claims = {
            "sub": agent.agent,
            "aud": f"{served.url}/mcp",
            "client_id": "cl_1",
            "scope": "profile message",
        }
        token.write_text(access.mint(keys, clock.now_ms(), "j", served.url, **claims) + "\n")
        token.chmod(0o600)
        yield Town(served.url, str(agent.agent), file, token)
        shutdown.set()
        mcp.drain()


@pytest.fixture
async def town(turret: Turret, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Town]:
    for name in ("TOKEN_FILE", "AGENT"):
        monkeypatch.delenv(f"TURRET_{name}", raising=False)
    async with open_town(turret) as town:
        monkeypatch.setenv("TURRET_URL", town.url)
        yield town


@pytest.mark.requirement("cli.tokens")
@pytest.mark.parametrize("path", ["", "/mcp"])
async def test_a_tool_of_the_network_is_called_by_a_token_from_a_file(
    town: Town, turret: Turret, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = ("--url", f"{town.url}{path}")
    ran = await turret("whoami", "--token-file", str(town.token), *url)
    assert (ran.code, ran.err) == (0, "")
    assert ran.json["agent_id"] == town.agent_id
    poor = await turret("list-channels", "--token-file", str(town.token), *url)
    assert (poor.code, poor.err.split(":")[1].strip()) == (1, "insufficient_scope")
    monkeypatch.setenv("TURRET_TOKEN_FILE", str(town.token))
    assert (await turret("get-inbox", "--limit", "5", *url)).json["unread"] == 0
    assert (await turret("wait-for-events", *url)).json["events"] == []
    assert (await turret("call", "whoami", *url)).json["agent_id"] == town.agent_id


@pytest.mark.requirement("cli.tokens")
@pytest.mark.parametrize("path", ["", "/mcp"])
async def test_or_by_one_that_the_agents_key_gets(town: Town, turret: Turret, path: str) -> None:
    by_key = ("--agent", town.agent_id, "--key", town.key, "--url", f"{town.url}{path}")
    ran = await turret("whoami", *by_key)
    assert (ran.code, ran.err) == (0, "")
    assert ran.json["scopes"] == ["profile"], "what the tool needs and no more"
    assert (await turret("wait-for-events", *by_key)).code == 0
    made = await turret("create-channel", "--name", "town-square", "--idempotency-key", "k1", *by_key)
    again = await turret("create-channel", "--name", "town-square", "--idempotency-key", "k1", *by_key)
    assert made.json == again.json
    other = await trio.to_thread.run_sync(turret.key, "stranger")
    wrong = await turret("whoami", "--agent", town.agent_id, "--key", other)
    assert (wrong.code, wrong.err.split(":")[1].strip()) == (1, "unauthenticated")


@pytest.mark.requirement("cli.tokens", "cli.errors")
async def test_what_is_wrong_with_a_token_is_one_line_without_it(
    town: Town, turret: Turret, tmp_path: Path
) -> None:
    bad, empty, open_to_all = (tmp_path / name for name in ("bad", "empty", "open"))
    for file, text in ((bad, "s3cret.t0ken"), (empty, "\n"), (open_to_all, "s3cret.t0ken")):
        file.write_text(text)
        file.chmod(0o600)
    open_to_all.chmod(0o604)
    ag = "ag_" + "0" * 26
    for arguments, code, words in (
        (("whoami",), 1, "unauthenticated: this needs a token"),
        (("whoami", "--token-file", str(bad)), 1, "unauthenticated"),
        (("whoami", "--token-file", str(bad), "--url", f"{town.url}/mcp"), 1, "unauthenticated"),
        (("whoami", "--token-file", str(empty)), 2, "expected one line"),
        (("whoami", "--token-file", str(tmp_path / "none")), 2, "No such file"),
        (("whoami", "--token-file", str(bad), "--url", "http://turret.example"), 2, "without TLS"),
        (("whoami", "--token-file", str(bad), "--agent", ag), 2, "not both"),
        (("whoami", "--agent", "alice", "--key", town.key), 2, "an agent's id is ag_"),
        (("whoami", "--agent", ag), 2, "needs a key"),
        (("whoami", "--token-file", str(bad), "--wire", "00" * 32), 1, "wire_fault: the wire shows the key"),
        *([(("whoami", "--token-file", str(open_to_all)), 2, "everybody")] if os.name == "posix" else []),
    ):
        ran = await turret(*arguments)
        assert (ran.code, words in ran.err) == (code, True), ran.err
        assert ran.err.count("\n") == 1
        assert "s3cret" not in ran.err + ran.out


@pytest.mark.requirement("cli.tokens")
def test_what_is_named_on_the_line_stands_before_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[Credentials] = []
    ag = "ag_" + "0" * 26

    def callback(**values: Any) -> None:
        taken.append(take_credentials(values))

    command = click.Command("x", params=[*credential_options()], callback=callback)
    monkeypatch.setenv("TURRET_AGENT", ag)
    command.main(["--token-file", "t"], standalone_mode=False)
    monkeypatch.delenv("TURRET_AGENT")
    monkeypatch.setenv("TURRET_TOKEN_FILE", "t")
    command.main(["--agent", ag], standalone_mode=False)
    command.main([], standalone_mode=False)
    assert taken == [Credentials("t"), Credentials(None, ag), Credentials("t")]
    monkeypatch.setenv("TURRET_AGENT", ag)
    with pytest.raises(click.UsageError, match="not both"):
        command.main([], standalone_mode=False)
