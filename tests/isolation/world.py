"""A small world with things of somebody's, and callers who may not have them: through the real doors, with real tokens.

Alice and Bob have an agreement, messages, a private channel, a call between their desks. Alice has an open contact
request to Erin, a private resource, a public one, a session of Hi-Lo, the artifact of one that is over, and a trial.
Carol is a stranger with every scope. Dave is suspended. Olga owns Alice.
"""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final
from unittest.mock import patch

import httpx
import msgspec

from broker.app import Caller
from broker.store.memory import MemoryStore
from broker.wire.refusals import Refusal
from gateways.gate import Gate
from gateways.mcp.endpoint import McpApp, mcp_app
from gateways.mcp.protected import Protected
from gateways.metrics import Metrics
from gateways.oauth import access
from gateways.oauth.bearer import Bearers
from gateways.oauth.documents import Documents
from gateways.oauth.keys import ACCESS_S, SigningKeys
from gateways.oauth.metadata import Resources
from gateways.oauth.server import AuthorizationServer
from gateways.outbound import Outbound
from gateways.web import web_app
from tests.support.agents import SCOPES, make_agent
from tests.support.artifacts import finish
from tests.support.broker import Bench, Line, Party, open_bench, tuned
from tests.support.pairs import agree, ask, send
from tests.support.rehearsals import do, started
from tests.support.signin import new_owner

ORIGIN: Final = "http://localhost:8766"
NOBODY: Final = "00000000000000000000000000"
"""The end of an id that nothing has."""
WHO: Final = ("nobody", "scopeless", "stranger", "suspended", "expired", "owner")
"""The callers of the table."""
READS: Final = frozenset({"entries", "tail", "get", "find", "search", "recall", "head", "events"})
"""What the store gives a request. What falls due is asked for by the timers, whatever anybody calls."""


class CountingStore(MemoryStore):
    """Counts what is read of it."""

    def __init__(self) -> None:
        super().__init__()
        self.reads: list[str] = []

    def __getattribute__(self, name: str) -> Any:
        if name in READS:
            object.__getattribute__(self, "reads").append(name)
        return super().__getattribute__(name)


class World:
    """See the module. Ids of what is Alice's are its members; `ids` says which of them stand in for what."""

    def __init__(self, bench: Bench, store: CountingStore) -> None:
        self.bench = bench
        self.store = store
        clock = bench.broker._services.clock
        resources = Resources(issuer=ORIGIN, origins=(ORIGIN,))
        self._keys = SigningKeys.open(None, clock.now_ms())
        server = AuthorizationServer(bench.broker, clock, self._keys, resources, Documents(Outbound(), clock))
        bearers = Bearers(bench.broker, server)
        self.gate = Gate(bearers, resources)
        self.mcp: McpApp = mcp_app(bench.broker, protected=Protected(resources, bearers))
        self.app = web_app(
            bench.broker, Metrics(bench.broker), mcp_app=self.mcp, resources=resources, gate=self.gate
        )
        self.people: dict[str, Caller] = {}
        self.desks: dict[str, Party] = {}
        self.line: Line
        self._said: dict[str, Any] = {}
        self.agreement = self.message = self.channel = self.request = self.sent = ""
        self.resource = self.shared = self.task = self.session = self.artifact = ""
        self.trial = self.operation = ""

    def envelope(self) -> dict[str, Any]:
        """Alice's next envelope: the same bytes for whoever sends it, whatever second it is by then."""
        self._said = self._said or self.line.next("SAY")
        return self._said

    def token(self, who: str, scopes: frozenset[str] = SCOPES, age_s: int = 0) -> str:
        """A token of a person's, made so many seconds ago."""
        caller = self.people[who]
        now_ms = self.bench.clock.now_ms() - age_s * 1000
        return access.mint(
            self._keys,
            now_ms,
            f"{who}-{age_s}",
            ORIGIN,
            sub=caller.principal,
            aud=f"{ORIGIN}/mcp",
            client_id="cl_test",
            scope=" ".join(sorted(scopes)),
            owner=caller.owner,
        )

    def shown(self, who: str, scope: str | None = None, also: str | None = None) -> str | None:
        """The token that a caller of the table shows for a tool with a scope (or another); None: none."""
        match who:
            case "nobody":
                return None
            case "scopeless":
                return self.token("carol", SCOPES - {scope or "message", also})
            case "stranger":
                return self.token("carol")
            case "suspended":
                return self.token("dave")
            case "expired":
                return self.token("carol", age_s=ACCESS_S + 1)
            case "owner":
                return self.token("olga")
        raise ValueError(who)

    async def call(self, name: str, who: str, **params: Any) -> Any:
        """A tool called for a person."""
        return await self.bench.call(name, self.people[who], **params)


@asynccontextmanager
async def open_world() -> AsyncIterator[World]:
    """A fresh one, in memory, on a virtual clock."""
    store = CountingStore()
    settings = tuned(transcripts="parties")
    settings = msgspec.structs.replace(
        settings, store=msgspec.structs.replace(settings.store, min_free_bytes=0)
    )
    async with open_bench(settings, store) as bench:
        world = World(bench, store)
        await _people(world)
        await _things(world)
        yield world
        world.mcp.drain()


@asynccontextmanager
async def client_of(world: World) -> AsyncIterator[httpx.AsyncClient]:
    """An HTTP client of the world's doors, without a socket."""
    transport = httpx.ASGITransport(world.app, client=("203.0.113.7", 4711))  # type: ignore[arg-type]  # ASGI
    async with httpx.AsyncClient(transport=transport, base_url=ORIGIN) as client:
        yield client


async def _people(world: World) -> None:
    bench = world.bench
    owner_id = await new_owner(bench)
    world.people["olga"] = Caller(principal=owner_id, owner=owner_id, issued=bench.ts, scopes=SCOPES)
    for name in ("alice", "bob", "carol", "dave", "erin"):
        party = world.desks[name] = await bench.open(name[:4].upper().ljust(4, "X"))
        owner = {"owner_id": owner_id} if name == "alice" else {}
        world.people[name] = await make_agent(bench, name.capitalize(), key=party.key, **owner)
    await world.bench.broker.call(
        Caller(operator=True),
        "suspend_agent",
        json.dumps({"agent_id": world.people["dave"].agent, "reason": "a test"}).encode(),
    )


async def _things(world: World) -> None:
    bench, (alice, bob, erin) = world.bench, (world.people[each] for each in ("alice", "bob", "erin"))
    world.agreement = await agree(bench, alice, bob, scopes=["message", "task"])
    world.message = (await send(bench, bob, alice, "to alice"))["message_id"]
    world.sent = (await send(bench, alice, bob, "to bob"))["message_id"]
    world.request = (await ask(bench, alice, erin))["request_id"]
    made = await bench.call("create_channel", alice, name="secret", is_private=True, topic="of alice's")
    world.channel = made["channel_id"]
    await bench.call("invite_agent_to_channel", alice, channel_id=world.channel, invited_agent_id=bob.agent)
    await bench.call("join_channel", bob, channel_id=world.channel)
    await bench.call("send_channel_message", alice, channel_id=world.channel, body="a secret")
    shelf = {"content": "a secret", "description": "of alice's", "tags": ["fx"]}
    for name, readers in (("resource", "private"), ("shared", "public")):
        made = await bench.call("publish_resource", alice, title="Alice's rates", access=readers, **shelf)
        setattr(world, name, made["resource_id"])
    made = await bench.call("open_session", alice, game="hilo", idempotency_key="opens")
    world.session = made["session_id"]
    world.artifact = (await finish(bench, alice))["artifact"]["ref"]
    begun = await _trial(bench, alice)
    world.trial, world.operation = begun["session_id"], begun["operation"]["operation_id"]
    made = await bench.call("send_task", alice, target_agent_id=bob.agent, text="a secret")
    world.task = made["task"]["task_id"]
    await bench.call("set_task_push", alice, task_id=world.task, url="https://hooks.example/", config_id="c1")
    world.line = await bench.connect(world.desks["alice"], world.desks["bob"])


async def _trial(bench: Bench, alice: Caller) -> Any:
    """A trial of Alice's, with an operation."""
    with patch("broker.actors.trial.INLINE", 0):
        return await do(bench, alice, await started(bench, alice), "advance", ticks=3)


def code_of(answer: Any) -> str:
    """A refusal's code, "accepted" for a result."""
    return answer.code if isinstance(answer, Refusal) else "accepted"
