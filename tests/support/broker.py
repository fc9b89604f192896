"""A real broker in the test's own process, and parties that sign for it."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from broker.app import Broker, Caller, Courier, open_broker
from broker.clock import VirtualClock
from broker.config import Settings
from broker.store.memory import MemoryStore
from broker.store.port import Store
from broker.wire.envelope import bootstrap, build
from broker.wire.ids import ConvId, Sig
from broker.wire.keyring import Keyring, WireKey
from broker.wire.keys import SigningKey
from broker.wire.refusals import Refusal
from broker.wire.statement import build_statement

START_MS = 1_782_345_678_000
"""The wall clock at which virtual tests begin: the vectors' time."""
PATIENT_S = 3600.0
"""actors.late_s in tests: a machine that stands still for a moment is no overload."""
ANYONE = Caller()
STRANGER = Caller(address="203.0.113.9", loopback=False)


class Party:
    """A key with a code; builds and signs, and remembers nothing of what it sent but the last of each call."""

    _nonces = 0

    def __init__(self, code: str, key: SigningKey | None = None) -> None:
        self.code = code
        self.key = key or SigningKey.generate()

    @property
    def pk(self) -> str:
        return self.key.pk

    def statement(
        self, do: str, wire: str, ts: int, nonce: str | None = None, **members: Any
    ) -> dict[str, Any]:
        if nonce is None:
            Party._nonces += 1
            nonce = f"{Party._nonces:032x}"
        text, sig = build_statement(do, self.key, wire, ts, nonce, **members)
        return {"statement": json.loads(text), "sig": sig}

    def envelope(
        self,
        conv: str,
        n: int,
        type: str,
        to: str,
        ts: int,
        prev_sig: str,
        body: dict[str, Any] | None = None,
    ) -> dict[str, Any]:
        """The params of send_env (and, without to_code, of send_call)."""
        text = build(
            conv=ConvId(conv),
            n=n,
            type=type,
            sender=self.key.pk,
            to=to,
            ts=ts,
            prev_sig=prev_sig,
            body=body or {},
        )
        return {
            "conv": conv,
            "n": n,
            "from_pk": self.key.pk,
            "sig": self.key.sign(text),
            "envelope": json.loads(text),
        }


class Bench:
    """A broker and what tests do with it."""

    def __init__(self, broker: Broker, store: Store, clock: VirtualClock) -> None:
        self.broker = broker
        self.store = store
        self.clock = clock
        self._convs = 0

    @property
    def ts(self) -> int:
        return self.clock.now_ms() // 1000

    async def call(self, name: str, /, caller: Caller = ANYONE, **params: Any) -> Any:
        """Call a tool as a door would; the result as plain JSON values, or the Refusal."""
        answer = await self.broker.call(caller, name, json.dumps(params).encode())
        return answer if isinstance(answer, Refusal) else json.loads(msgspec.json.encode(answer))

    async def open(self, code: str, **members: Any) -> Party:
        """Open a desk with a fresh key."""
        party = Party(code)
        answer = await self.call(
            "open_desk", **party.statement("open_desk", self.broker.pk, self.ts, code=code, **members)
        )
        assert not isinstance(answer, Refusal), answer
        return party

    def new_conv(self) -> str:
        self._convs += 1
        return f"{self._convs:016x}"

    def calling(self, caller: Party, called: Party, conv: str | None = None, **body: Any) -> dict[str, Any]:
        """The params of a CALL."""
        conv = conv or self.new_conv()
        params = caller.envelope(
            conv,
            0,
            "CALL",
            called.pk,
            self.ts,
            bootstrap(ConvId(conv)),
            {"code_from": caller.code, "code_to": called.code, "wire": self.broker.pk, **body},
        )
        return {k: v for k, v in params.items() if k not in ("conv", "n")} | {"to_code": called.code}

    async def dial(self, caller: Party, called: Party) -> "Line":
        """A ringing call."""
        params = self.calling(caller, called)
        answer = await self.call("send_call", **params)
        assert not isinstance(answer, Refusal), answer
        return Line(self, params["envelope"]["conv"], caller, called, Sig(params["sig"]))

    async def connect(self, caller: Party, called: Party) -> "Line":
        """An open call: dialled and picked up."""
        line = await self.dial(caller, called)
        assert not isinstance(await line.send("PICKUP"), Refusal)
        return line


class Line:
    """One conversation as its parties see it: whose turn, and the last signature."""

    def __init__(self, bench: Bench, conv: str, caller: Party, called: Party, sig: Sig) -> None:
        self.bench = bench
        self.conv = conv
        self.caller = caller
        self.called = called
        self.n = 0
        self.sig: str = sig

    def next(
        self, type: str, body: dict[str, Any] | None = None, by: Party | None = None, **changes: Any
    ) -> dict[str, Any]:
        """The params of the next envelope, by whose turn it is; `changes` replace members before signing."""
        n = self.n + 1
        sender = by or (self.called if n % 2 else self.caller)
        to = self.called if sender is self.caller else self.caller
        members = {
            "conv": self.conv,
            "n": n,
            "type": type,
            "to": to.pk,
            "ts": self.bench.ts,
            "prev_sig": self.sig,
            "body": body,
            **changes,
        }
        return sender.envelope(**members)

    async def send(self, type: str, body: dict[str, Any] | None = None, by: Party | None = None) -> Any:
        """Send the next envelope; the line goes on when it was accepted."""
        params = self.next(type, body, by)
        answer = await self.bench.call("send_env", **params)
        if not isinstance(answer, Refusal):
            self.n, self.sig = params["n"], params["sig"]
        return answer


@asynccontextmanager
async def open_bench(
    settings: Settings | None = None,
    store: Store | None = None,
    clock: VirtualClock | None = None,
    key: SigningKey | None = None,
    courier: Courier | None = None,
) -> AsyncIterator[Bench]:
    """A broker on a store (a fresh memory store) and a virtual clock. `courier`: the way out to webhooks."""
    store = store if store is not None else MemoryStore()
    clock = clock or VirtualClock(START_MS)
    keyring = Keyring((WireKey(key or SigningKey.generate(), START_MS),))
    given = settings or Settings()
    patient = msgspec.structs.replace(given.actors, late_s=PATIENT_S)
    given = msgspec.structs.replace(given, actors=patient)
    async with open_broker(given, store, clock, keyring, courier=courier) as broker:
        yield Bench(broker, store, clock)


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    """A broker on a memory store; a test that waits takes `autojump_clock` too."""
    async with open_bench() as bench:
        yield bench


def tuned(**sections: dict[str, Any]) -> Settings:
    """The default settings with some fields changed: tuned(limits={"rings": 2}, transcripts="parties")."""
    settings = Settings()
    changed = {
        name: msgspec.structs.replace(getattr(settings, name), **value) if isinstance(value, dict) else value
        for name, value in sections.items()
    }
    return msgspec.structs.replace(settings, **changed)


def code(answer: Any) -> str:
    """The refusal's code, or "accepted"."""
    return answer.code if isinstance(answer, Refusal) else "accepted"
