"""The operators' tools and the public doors: not listed, not called, whatever token is shown, by any spelling."""

import re
from collections.abc import Iterable

import httpx
import pytest
from msgspec.structs import replace

from broker.app import Caller
from gateways.gate import Gate
from gateways.listen import Bounds
from gateways.mcp.endpoint import mcp_app
from gateways.mcp.protected import Protected
from gateways.metrics import Metrics
from gateways.oauth.metadata import GUARDED, OPEN
from gateways.oauth.server import SCOPES
from gateways.operator.server import operator_app
from gateways.operator.token import OperatorToken
from gateways.web import web_app
from tests.gateways.mcp.harness import Door, modern, request
from tests.gateways.test_websocket import open_public
from tests.security.test_smuggling import TWO_LENGTHS
from tests.support.agents import make_agent, owner_caller
from tests.support.broker import Bench
from tests.support.network import serving
from tests.support.operators import TOKEN
from tests.support.peers import exchange
from tests.support.signin import new_owner
from tests.support.tokens import HERE, FakeBearers, gate_of
from tests.support.ws import open_port

FACES = ["", "/wire", "/network", "/arena", "/trial", "/operator"]
EVERY = frozenset({*SCOPES, "operator"})


class Public:
    """The public doors of a broker, whose tokens have every scope there is and one that there is not."""

    def __init__(self, bench: Bench, agent: Caller, owner: Caller) -> None:
        self.bench = bench
        bearers = FakeBearers(bench.broker)
        bearers.give("agent", replace(agent, scopes=EVERY))
        bearers.give("owner", replace(owner, scopes=EVERY))
        self.gate: Gate = gate_of(bench.broker, bearers)[0]
        protected = Protected(HERE, bearers)  # type: ignore[arg-type]  # a fake
        self.mcp = Door(mcp_app(bench.broker, protected=protected), bench.broker)

    @property
    def theirs(self) -> list[str]:
        """Names that only the operators have, in the spellings of all doors."""
        names = set(self.bench.broker.operator_tools) - set(self.bench.broker.tools)
        return sorted(names | {f"operator.{name}" for name in names} | {f"operator_{name}" for name in names})


@pytest.fixture
async def public(bench: Bench) -> Public:
    owner = owner_caller(bench, await new_owner(bench))
    return Public(bench, await make_agent(bench, "ann"), owner)


def shown(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}", "host": "127.0.0.1:8766"}


@pytest.mark.requirement("operator.apart")
@pytest.mark.parametrize("token", ["agent", "owner"])
async def test_no_face_lists_or_calls_a_tool_of_the_operators(public: Public, token: str) -> None:
    assert len(public.theirs) > 60
    for face in FACES:
        body, headers = modern("tools/list")
        answer = await public.mcp.ask(path=f"/mcp{face}", body=body, **headers, **shown(token))
        if face == "/operator":
            assert answer.status == 404
            continue
        listed = [tool["name"] for tool in answer.result["tools"]]
        assert not set(listed) & set(public.theirs)
        for name in public.theirs:
            body, headers = modern("tools/call", name=name, arguments={})
            called = await public.mcp.ask(path=f"/mcp{face}", body=body, **headers, **shown(token))
            assert called.error["message"].startswith("unknown tool"), (face, name)


@pytest.mark.requirement("operator.apart")
async def test_where_a_name_is_both_the_public_one_is_called(public: Public) -> None:
    both = set(public.bench.broker.operator_tools) & set(public.bench.broker.tools)
    assert {"list_agents", "create_channel"} <= both
    body, headers = modern(
        "tools/call", name="create_channel", arguments={"name": "c", "owner_agent_id": "ag_1"}
    )
    answer = await public.mcp.ask(path="/mcp", body=body, **headers, **shown("agent"))
    assert answer.result["structuredContent"]["refusal"]["code"] == "bad_request"


@pytest.mark.requirement("operator.apart")
@pytest.mark.parametrize("token", ["agent", "owner", TOKEN])
async def test_neither_plain_http_nor_a_websocket_calls_one(public: Public, token: str) -> None:
    broker, headers = public.bench.broker, {"Authorization": f"Bearer {token}"}
    wrong = token == TOKEN
    async with (
        serving(web_app(broker, Metrics(broker), gate=public.gate)) as served,
        httpx.AsyncClient(base_url=served.url, headers=headers, trust_env=False) as http,
    ):
        for name in public.theirs:
            answer = await http.post(f"/v1/{name}", json={})
            assert answer.status_code == (401 if wrong else 404), name
        document = (await http.get("/openapi.json")).text
        assert not [name for name in public.theirs if f"/v1/{name}" in document]
    async with open_public(broker, gate=public.gate) as ws, open_port(broker, gate=public.gate) as dealing:
        for client in (await ws.dial(path="/ws"), await dealing.dial()):
            told = await client.ask("authenticate", token=token)
            assert ("error" in told) == wrong
            for name in public.theirs:
                assert (await client.ask(name))["error"]["code"] == -32601, name


@pytest.mark.requirement("operator.apart")
async def test_the_operators_token_is_a_bad_one_on_the_public_port(public: Public) -> None:
    for face in FACES[:-1]:
        for body, headers in (modern("tools/list"), (request("tools/list"), {})):
            answer = await public.mcp.ask(path=f"/mcp{face}", body=body, **headers, **shown(TOKEN))
            assert (answer.status, answer.error["data"]["code"]) == (401, "unauthenticated")


@pytest.mark.requirement("operator.apart")
def test_no_scope_makes_an_operator() -> None:
    documents: Iterable[tuple[str, ...]] = (SCOPES, *GUARDED.values(), *OPEN.values())
    assert not any("operator" in scopes for scopes in documents)


@pytest.mark.requirement("operator.apart")
async def test_a_caller_that_is_no_operator_finds_no_such_tool(public: Public) -> None:
    for name in public.theirs:
        with pytest.raises(LookupError):
            await public.bench.broker.call(Caller(scopes=EVERY, principal="operator"), name, b"{}")


BOUNDS = Bounds(header_s=0.3, body_s=0.3, keep_alive_s=0.3, linger_s=0.1)


@pytest.mark.requirement("operator.endpoint")
async def test_hostile_bytes_get_one_answer_and_the_port_goes_on(bench: Bench) -> None:
    head = b"POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    ping = b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}'
    hidden = head + b"accept: application/json\r\nauthorization: Bearer %b\r\n" % TOKEN.encode()
    hidden += b"content-length: %d\r\n\r\n" % len(ping) + ping
    upgrade = (
        b"GET /mcp HTTP/1.1\r\nhost: localhost\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n\x81\0"
    )
    hostile = [
        *(head + rest + hidden for rest in TWO_LENGTHS),
        upgrade,
        b"\x16\x03\x01" + b"x" * 99,
        b"\0" * 99,
    ]
    app = operator_app(bench.broker, OperatorToken(TOKEN), bounds=BOUNDS)
    async with serving(app, bounds=BOUNDS) as port:
        for data in hostile:
            answer = await exchange(port.address, data)
            assert set(re.findall(rb"HTTP/1\.1 (\d{3}) ", answer)) <= {b"400", b"401", b"501"}, data
        assert b"suspend_agent" in await exchange(port.address, hidden)
