"""An agent that registers itself: answered for good, kept in a file of its own, and told to nobody."""

import stat
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
import trio
from trio.testing import MockClock

from broker.wire.jwk import jwk_of
from broker.wire.keys import SigningKey, verify
from broker.wire.refusals import Refusal, refuse
from gateways.client.agent import open_agent
from gateways.client.clockwork import Backoff, WireClock
from gateways.client.errors import Refused, WireFault
from gateways.client.registration import Identity, load_identity, register, save_identity
from gateways.client.signer import Signer
from gateways.keyfile import KeyFileError, save_key
from tests.gateways.client.conftest import OpenAgent
from tests.gateways.client.fake_issuer import ORIGIN, START_S
from tests.gateways.client.fake_network import AGENT, FakeNetwork

WIRE = SigningKey.from_seed("57" * 32).pk


class Desk:
    """POST /agents/register, by the law. `scripts`: what it does with the next requests."""

    def __init__(self) -> None:
        self.scripts: list[httpx.Response | Exception] = []
        self.asked: list[bytes] = []
        self.made: dict[bytes, dict[str, Any]] = {}
        self.lose = False

    @property
    def transport(self) -> httpx.MockTransport:
        return httpx.MockTransport(self._handle)

    def _handle(self, request: httpx.Request) -> httpx.Response:
        assert (request.method, request.url.path) == ("POST", "/agents/register")
        assert request.headers["content-type"] == "application/json"
        self.asked.append(request.content)
        if self.scripts:
            scripted = self.scripts.pop(0)
            if isinstance(scripted, Exception):
                raise scripted
            return scripted
        body = msgspec.json.decode(request.content)
        proof, now = body["proof"], START_S + int(trio.current_time())
        statement = proof["statement"]
        if abs(statement["ts"] - now) > 300:
            return no(refuse("bad_statement", "ts is too far", wire_ts=now))
        raw = msgspec.json.decode(request.content, type=dict[str, msgspec.Raw])["proof"]
        text = bytes(msgspec.json.decode(raw, type=dict[str, msgspec.Raw])["statement"])
        assert verify(statement["pk"], text, proof["sig"])
        assert (statement["do"], statement["name"], statement["wire"]) == (
            "register_agent",
            body["name"],
            WIRE,
        )
        assert body["public_jwk"] == msgspec.to_builtins(jwk_of(statement["pk"]))
        answer = self.made.setdefault(
            request.content,
            {"agent_id": AGENT, "name": body["name"], "claim_code": "SECRET-CODE", "tier": "unclaimed"},
        )
        if self.lose:
            self.lose = False
            raise httpx.ReadError("the answer was lost")
        return httpx.Response(201, json=answer)


def no(refusal: Refusal) -> httpx.Response:
    return httpx.Response(refusal.status, json={"refusal": refusal.body()})


@pytest.fixture
def desk() -> Desk:
    return Desk()


async def ask(
    desk: Desk, alfa: SigningKey, off_s: int = 0, name: str = "alfa", asked: Path | None = None
) -> Identity:
    clock = WireClock(lambda: (START_S + off_s) * 1000 + round(trio.current_time() * 1000))
    async with httpx.AsyncClient(transport=desk.transport) as http:
        backoff = Backoff(chance=lambda: 0.5)
        return await register(http, ORIGIN, Signer(alfa, WIRE, clock), name, backoff, asked)


@pytest.mark.requirement("client.agent-register")
async def test_the_identical_request_is_sent_until_it_is_answered(
    autojump_clock: MockClock, desk: Desk, alfa: SigningKey
) -> None:
    desk.scripts = [
        httpx.ConnectError("refused"),
        httpx.Response(502),
        no(refuse("in_doubt", "?")),
        no(refuse("rate_limited", "slowly", retry_after_ms=5000)),
    ]
    desk.lose = True
    with trio.fail_after(60):
        made = await ask(desk, alfa)
    assert made == Identity(AGENT, "alfa", alfa.pk, WIRE, "SECRET-CODE")
    assert (len(desk.asked), len(set(desk.asked)), len(desk.made)) == (6, 1, 1)
    assert trio.current_time() > 5


@pytest.mark.requirement("client.agent-register")
async def test_a_wrong_clock_is_put_right_once(
    autojump_clock: MockClock, desk: Desk, alfa: SigningKey
) -> None:
    assert (await ask(desk, alfa, off_s=-7200)).agent_id == AGENT
    assert len(desk.asked) == 2
    desk.scripts = [no(refuse("bad_statement", "ts", wire_ts=START_S))] * 2
    with pytest.raises(Refused, match="bad_statement"):
        await ask(desk, alfa)


@pytest.mark.requirement("client.agent-register")
async def test_what_was_cut_off_is_asked_for_again_by_the_next_process(
    autojump_clock: MockClock, desk: Desk, alfa: SigningKey, tmp_path: Path
) -> None:
    path = tmp_path / "alfa.key.agent.asked"
    desk.lose = True
    desk.scripts = []
    with trio.move_on_after(0.01):
        await ask(desk, alfa, asked=path)
    assert (len(desk.made), stat.S_IMODE(path.stat().st_mode)) == (1, 0o600)
    made = await ask(desk, alfa, asked=path)
    assert (made.claim_code, len(desk.made), len(set(desk.asked))) == ("SECRET-CODE", 1, 1)
    save_identity(tmp_path / "alfa.key.agent", made)
    assert not path.exists()
    await ask(desk, alfa, name="other", asked=path)
    assert len(desk.made) == 2
    desk.scripts = [no(refuse("already_exists", "taken"))]
    with pytest.raises(Refused, match="already_exists"):
        await ask(desk, alfa, asked=path)
    assert not path.exists()


@pytest.mark.requirement("client.agent-register")
async def test_a_request_that_is_too_old_gives_way_to_a_new_one(
    autojump_clock: MockClock, desk: Desk, alfa: SigningKey, tmp_path: Path
) -> None:
    desk.scripts = [httpx.ConnectError("away")]
    with trio.move_on_after(0.01):
        await ask(desk, alfa, asked=tmp_path / "asked")
    await trio.sleep(3600)
    assert (await ask(desk, alfa, asked=tmp_path / "asked")).agent_id == AGENT
    assert len(set(desk.asked)) == 2


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (no(refuse("already_exists", "taken")), Refused),
        (no(refuse("bad_statement", "sig")), Refused),
        (no(refuse("rate_limited", "an hour", retry_after_ms=3_000_000)), Refused),
        (httpx.Response(404), Refused),
        (httpx.Response(201, json={"name": "alfa"}), WireFault),
    ],
)
async def test_what_is_final_is_raised_at_once(
    autojump_clock: MockClock, desk: Desk, alfa: SigningKey, answer: httpx.Response, error: type[Exception]
) -> None:
    desk.scripts = [answer]
    with pytest.raises(error):
        await ask(desk, alfa)
    assert trio.current_time() == 0


@pytest.mark.requirement("client.agent-secrets")
def test_its_file_is_its_owners_alone_and_nothing_else_shows_the_claim_code(
    tmp_path: Path, alfa: SigningKey
) -> None:
    made, path = Identity(AGENT, "alfa", alfa.pk, WIRE, "SECRET-CODE", 7), tmp_path / "alfa.agent"
    save_identity(path, made)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert load_identity(path, alfa.pk) == made
    assert "SECRET" not in repr(made)
    assert "SECRET" not in str(made)
    assert load_identity(tmp_path / "none", alfa.pk) is None


def test_a_file_of_another_key_or_of_nothing_is_refused(tmp_path: Path, alfa: SigningKey) -> None:
    path = tmp_path / "alfa.agent"
    save_identity(path, Identity(AGENT, "alfa", "ee" * 32, WIRE))
    with pytest.raises(KeyFileError, match="another key"):
        load_identity(path, alfa.pk)
    for content in (b"", b"[]", b'{"agent_id":"x"}', b"\xff"):
        path.write_bytes(content)
        with pytest.raises(KeyFileError, match="no agent's file"):
            load_identity(path, alfa.pk)
    with pytest.raises(KeyFileError):
        load_identity(tmp_path, alfa.pk)
    with pytest.raises(KeyFileError):
        save_identity(tmp_path / "no" / "where", Identity(AGENT, "alfa", alfa.pk, WIRE))


@pytest.mark.requirement("client.agent-register")
async def test_an_agent_registers_once_and_finds_itself_again(
    autojump_clock: MockClock,
    desk: Desk,
    network: FakeNetwork,
    agent: OpenAgent,
    tmp_path: Path,
    alfa: SigningKey,
) -> None:
    async def both(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/agents/register":
            return desk._handle(request)
        return await network.issuer._handle(request)

    file = tmp_path / "alfa.agent"
    options: dict[str, Any] = {"transport": httpx.MockTransport(both), "file": file}
    async with agent(None, **options) as me:
        with pytest.raises(Refused, match="register first"):
            await me.whoami()
        with pytest.raises(Refused, match="register first"):
            await me.token()
        made = await me.register("alfa")
        assert await me.register("alfa") is made
        assert await me.whoami() == {"agent_id": AGENT}
    async with agent(None, **options) as me:
        assert me.identity == made
        assert await me.whoami() == {"agent_id": AGENT}
        assert await me.register("alfa") == made
    assert len(desk.asked) == 1
    async with agent(AGENT, **options) as me:
        assert me.identity == made
    save_identity(file, Identity(AGENT, "alfa", alfa.pk, "ee" * 32))
    with pytest.raises(KeyFileError, match="another wire"):
        async with agent(None, **options):
            pass


async def test_the_file_stands_beside_the_key_file(
    autojump_clock: MockClock, network: FakeNetwork, agent: OpenAgent, tmp_path: Path, alfa: SigningKey
) -> None:
    save_key(tmp_path / "alfa.key", alfa)
    save_identity(tmp_path / "alfa.key.agent", Identity(AGENT, "alfa", alfa.pk, network.key.pk))
    async with open_agent(
        ORIGIN, tmp_path / "alfa.key", wire=network.key.pk, transport=network.issuer.transport
    ) as me:
        assert me.agent_id == AGENT
