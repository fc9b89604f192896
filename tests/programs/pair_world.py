"""Plays steps of a program of agents against a real broker, and holds every answer and list against the model."""

from contextlib import AsyncExitStack
from typing import Any, Literal

import msgspec
import trio
from trio.testing import wait_all_tasks_blocked

from broker.actors.agent import Suspend as SuspendAgent
from broker.app import Caller
from broker.clock import VirtualClock
from broker.store.port import Unit
from broker.wire.keys import SigningKey
from broker.wire.refusals import Refusal
from tests.programs.flaky import FlakyMemory, Way
from tests.programs.pair_model import AGENTS, Model
from tests.support.agents import caller_of, make_agent
from tests.support.broker import START_MS, Bench, open_bench, tuned

SETTINGS = tuned(
    network={
        "requests_per_day": 1000,
        "requests_open": 500,
        "declines": 2,
        "declines_days": 30.0,
        "loop_messages": 1_000_000,
    },
)
OPERATOR = Caller(operator=True)
Policy = Literal["agent-decides", "owner-decides", "auto-accept", "deny"]


class Ask(msgspec.Struct, frozen=True):
    asker: int
    target: int
    scopes: frozenset[str]
    days: int
    way: Way | None = None


class Respond(msgspec.Struct, frozen=True):
    index: int
    by: int | None
    """None: whose it is."""
    accept: bool
    scopes: frozenset[str] | None
    way: Way | None = None


class Cancel(msgspec.Struct, frozen=True):
    index: int
    by: int | None
    way: Way | None = None


class Revoke(msgspec.Struct, frozen=True):
    index: int
    by: int | None
    way: Way | None = None


class Grant(msgspec.Struct, frozen=True):
    one: int
    other: int
    scopes: frozenset[str]
    days: int | None
    way: Way | None = None


class Ungrant(msgspec.Struct, frozen=True):
    one: int
    other: int
    way: Way | None = None


class Send(msgspec.Struct, frozen=True):
    sender: int
    recipient: int
    way: Way | None = None


class Mark(msgspec.Struct, frozen=True):
    by: int
    serial: int
    way: Way | None = None


class SetPolicy(msgspec.Struct, frozen=True):
    agent: int
    policy: Policy


class Suspend(msgspec.Struct, frozen=True):
    agent: int
    on: bool


class Days(msgspec.Struct, frozen=True):
    days: float


class Restart(msgspec.Struct, frozen=True):
    """The broker ends and begins again."""


Step = Ask | Respond | Cancel | Revoke | Grant | Ungrant | Send | Mark | SetPolicy | Suspend | Days | Restart


class World:
    """Three agents on one store."""

    def __init__(self) -> None:
        self.clock = VirtualClock(START_MS)
        self.key = SigningKey.from_seed("07" * 32)
        self.store = FlakyMemory()
        self.model = Model()
        self.ids: list[str] = []
        self.requests: list[str] = []
        self.held: list[str] = []
        self.messages: list[str] = []
        self.bench: Bench
        self._serial = 0
        self._stack = AsyncExitStack()

    async def start(self) -> None:
        self._stack = AsyncExitStack()
        bench = open_bench(SETTINGS, self.store, self.clock, self.key)
        self.bench = await self._stack.enter_async_context(bench)
        while len(self.ids) < AGENTS:
            self.ids.append(str((await make_agent(self.bench, f"Agent {len(self.ids)}")).agent))

    async def stop(self) -> None:
        await self._stack.aclose()

    async def play(self, step: Step) -> None:
        now = self.clock.now_ms()
        self.model.lapse(now)
        match step:
            case Ask(asker, target, scopes, days, way):
                params: dict[str, Any] = {"target_agent_id": self.ids[target], "purpose": "p"}
                params |= {"scopes": sorted(scopes), "ttl_days": days}
                expect = self.model.ask(asker, target, scopes, days, now)
                answer = await self._call("request_contact", asker, expect, way, **params)
                if not isinstance(answer, Refusal):
                    self.requests.append(answer["request_id"])
                    self._made(answer)
            case Respond(index, by, accept, wanted, way) if self.requests:
                request = self.model.requests[index % len(self.requests)]
                by = request.target if by is None else by
                expect = self.model.respond(request, by, accept, wanted, now)
                params = {"request_id": self.requests[index % len(self.requests)], "accept": accept}
                params |= {} if wanted is None else {"scopes": sorted(wanted)}
                self._made(await self._call("respond_to_contact_request", by, expect, way, **params))
            case Cancel(index, by, way) if self.requests:
                request = self.model.requests[index % len(self.requests)]
                by = request.asker if by is None else by
                params = {"request_id": self.requests[index % len(self.requests)]}
                await self._call("cancel_contact_request", by, self.model.cancel(request, by), way, **params)
            case Revoke(index, by, way) if self.held:
                held = self.model.held[index % len(self.held)]
                by = held.other if by is None else by
                params = {"agreement_id": self.held[index % len(self.held)]}
                await self._call("revoke_agreement", by, self.model.revoke(held, by), way, **params)
            case Grant(one, other, scopes, lasts, way):
                params = {**self._both(one, other), "scopes": sorted(scopes)}
                params |= {} if lasts is None else {"ttl_days": lasts}
                expect = self.model.grant(one, other, scopes, lasts, now)
                answer = await self._call("grant_send_permission", None, expect, way, **params)
                if not isinstance(answer, Refusal):
                    self.held.append(answer["agreement_id"])
            case Ungrant(one, other, way):
                expect = self.model.ungrant(one, other)
                await self._call("revoke_send_permission", None, expect, way, **self._both(one, other))
            case Send(sender, recipient, way):
                expect = self.model.send(sender, recipient, len(self.messages))
                params = {"recipient_agent_id": self.ids[recipient], "body": "x"}
                answer = await self._call("send_direct_message", sender, expect, way, **params)
                if not isinstance(answer, Refusal):
                    self.messages.append(answer["message_id"])
            case Mark(by, serial, way) if self.messages:
                serial %= len(self.messages)
                params = {"message_ids": [self.messages[serial]]}
                await self._call("mark_messages_read", by, self.model.mark(by, serial), way, **params)
            case _:
                await self._happen(step)

    async def _happen(self, step: Step) -> None:
        """What is no question to the pairs."""
        match step:
            case SetPolicy(agent, policy):
                if not self.model.suspended[agent]:
                    self.model.policies[agent] = policy
                await self.bench.call("set_contact_policy", self._caller(agent), policy=policy)
            case Suspend(agent, on):
                self.model.suspended[agent] = on
                command = SuspendAgent("spam" if on else None)
                await self.bench.broker._services.house.ask("agent", self.ids[agent], command)
            case Days(days):
                self.clock.step(round(days * 86_400_000))
                await trio.sleep(61)
            case Restart():
                await wait_all_tasks_blocked()
                await self.stop()
                await self.start()

    async def _call(self, name: str, by: int | None, expect: str, way: Way | None, **params: Any) -> Any:
        """Call under a key; where the commit fails as planned, once more. The last answer."""
        caller = OPERATOR if by is None else self._caller(by)
        self._serial += 1
        params["idempotency_key"] = str(self._serial)
        self.store.fail(way, _changes)
        answer = await self.bench.call(name, caller, **params)
        failed = way is not None and self.store.way is None
        self.store.fail(None)
        if failed:
            assert isinstance(answer, Refusal), answer
            assert answer.code == ("unavailable" if way == "unavailable" else "in_doubt")
            answer = await self.bench.call(name, caller, **params)
        assert _outcome(answer, expect) == expect, (name, answer, expect)
        return answer

    def _made(self, answer: Any) -> None:
        if not isinstance(answer, Refusal) and "agreement_id" in answer:
            self.held.append(answer["agreement_id"])

    def _both(self, one: int, other: int) -> dict[str, str]:
        return {"from_agent_id": self.ids[one], "to_agent_id": self.ids[other]}

    def _caller(self, agent: int) -> Caller:
        return caller_of(self.bench, self.ids[agent])

    async def judge(self) -> None:
        """Every list of every agent says what the model says."""
        self.model.lapse(self.clock.now_ms())
        for agent in range(AGENTS):
            if self.model.suspended[agent]:
                continue
            caller = self._caller(agent)
            agreements = (await self.bench.call("list_agreements", caller, limit=100))["agreements"]
            expected = {self.held[n] for n in self.model.active(agent)}
            assert {each["agreement_id"] for each in agreements} == expected
            page = await self.bench.call("get_inbox", caller, limit=100)
            inbox = [(self.messages[serial], read) for serial, read in reversed(self.model.inboxes[agent])]
            assert [(each["message_id"], each["read"]) for each in page["messages"]] == inbox
            assert page["unread"] == sum(not read for _, read in inbox)
        for request_id, request in zip(self.requests, self.model.requests, strict=True):
            document = await self.store.get("contact", request_id)
            assert document is not None
            assert msgspec.json.decode(document.doc).get("status", "pending") == request.status


def _changes(unit: Unit) -> bool:
    return any(put.kind == "pair" for put in unit.puts)


def _outcome(answer: Any, expect: str) -> str:
    if isinstance(answer, Refusal):
        return answer.code
    return "accepted" if expect == "accepted" else str(answer["status"])
