"""SIGKILL under load: what was acknowledged is there, nothing is doubled, everybody resumes by cursor.

A real broker process on real files, loaded over the dealing port by an independent WebSocket client, killed at a
random moment and started again on the same data. KILL_ROUNDS sets the rounds (20 here, more in soak).
"""

import json
import os
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import trio
import trio_websocket

from broker.wire.chain import verify_transcript
from broker.wire.envelope import bootstrap, build
from broker.wire.events import read_cursor
from broker.wire.ids import ConvId
from broker.wire.keys import SigningKey
from broker.wire.statement import build_statement
from tests.support.process import Served, served

ROUNDS = int(os.environ.get("KILL_ROUNDS", "20"))
PAIRS = 6
TALK = 24
"""Envelopes of one conversation, below the limit of 30 in 10 s."""
LOST = (trio_websocket.ConnectionClosed, trio_websocket.HandshakeError, OSError, trio.ClosedResourceError)


class Link:
    """One JSON-RPC connection: answers by id, events noted by the party."""

    def __init__(self, socket: Any, party: "Party") -> None:
        self.socket = socket
        self.party = party
        self.waiting: dict[int, trio.MemorySendChannel[Any]] = {}
        self.ids = 0

    async def read(self) -> None:
        while True:
            frame = json.loads(await self.socket.get_message())
            if "id" in frame:
                await self.waiting.pop(frame["id"]).send(frame)
            elif frame["method"] in ("ring", "env", "end"):
                self.party.see(frame["params"])

    async def ask(self, method: str, params: dict[str, Any]) -> Any:
        self.ids += 1
        send, receive = trio.open_memory_channel[Any](1)
        self.waiting[self.ids] = send
        await self.socket.send_message(
            json.dumps({"jsonrpc": "2.0", "id": self.ids, "method": method, "params": params})
        )
        frame = await receive.receive()
        return frame.get("result", frame.get("error"))


class Party:
    """A desk that outlives the broker: its key, its cursor, every event that it saw."""

    def __init__(self, code: str) -> None:
        self.code = code
        self.key = SigningKey.generate()
        self.cursor = "0"
        self.seen: list[tuple[str, int, str]] = []

    def see(self, event: dict[str, Any]) -> None:
        cursor = read_cursor(event["cursor"])
        assert cursor is not None
        assert cursor.position == len(self.seen) + 1, "a gap or a repeat"
        self.cursor = event["cursor"]
        self.seen.append((event["conv"], event["n"], event["sig"]))

    def statement(self, do: str, wire: str, nonce: str | None = None, **members: Any) -> dict[str, Any]:
        text, sig = build_statement(
            do, self.key, wire, int(trio_now()), nonce or os.urandom(16).hex(), **members
        )
        return {"statement": json.loads(text), "sig": sig}

    @asynccontextmanager
    async def connected(self, broker: Served) -> AsyncIterator[Link]:
        host, port = broker.dealing.removeprefix("ws://").split(":")
        async with await trio.open_tcp_stream(host, int(port)) as stream, trio.open_nursery() as nursery:
            socket = await trio_websocket.wrap_client_stream(nursery, stream, host, "/")
            hello = json.loads(await socket.get_message())["params"]
            link = Link(socket, self)
            nursery.start_soon(link.read)
            proof = self.statement("authenticate", broker.pk, hello["challenge"])
            assert "code" not in await link.ask("authenticate", proof)
            opened = await link.ask("open_desk", self.statement("open_desk", broker.pk, code=self.code))
            assert opened.get("code") == self.code, opened
            resume = await link.ask("follow", {"after": self.cursor})
            assert resume["recovered"], resume
            yield link
            nursery.cancel_scope.cancel()


def trio_now() -> float:
    import time

    return time.time()


class Pair:
    """Two desks and their present conversation, across restarts."""

    def __init__(self, number: int) -> None:
        letter = chr(65 + number)
        self.caller, self.called = Party(f"CA{letter}{letter}"), Party(f"CB{letter}{letter}")
        self.acked: dict[str, dict[int, str]] = {}
        self.replayed = 0
        self.pending: tuple[str, dict[str, Any]] | None = None
        self.begin()

    def begin(self) -> None:
        self.conv, self.n, self.sig = os.urandom(8).hex(), -1, ""

    async def run(self, broker: Served) -> None:
        """Deal until the connection dies."""
        with suppress(*LOST, ExceptionGroup):
            async with self.caller.connected(broker) as one, self.called.connected(broker) as other:
                while True:
                    await self.step(broker, one, other)

    async def step(self, broker: Served, one: Link, other: Link) -> None:
        again = self.pending is not None
        if self.pending is None:
            self.pending = self.next(broker.pk)
        method, params = self.pending
        link = one if params["from_pk"] == self.caller.key.pk else other
        answer = await link.ask(method, params)
        assert "chain" in answer, answer
        if again:
            self.replayed += answer.get("replayed", False)
            assert (await link.ask(method, params))["replayed"] is True
        self.n, self.sig, self.pending = answer["n"], params["sig"], None
        self.acked.setdefault(self.conv, {})[self.n] = self.sig
        if params["envelope"]["type"] == "END":
            self.begin()

    def next(self, wire: str) -> tuple[str, dict[str, Any]]:
        n = self.n + 1
        sender, to = (self.called, self.caller) if n % 2 else (self.caller, self.called)
        type = {0: "CALL", 1: "PICKUP", TALK: "END"}.get(n, "CHAT")
        body = (
            {"code_from": self.caller.code, "code_to": self.called.code, "wire": wire} if n == 0 else {"n": n}
        )
        text = build(
            conv=ConvId(self.conv),
            n=n,
            type=type,
            sender=sender.key.pk,
            to=to.key.pk,
            ts=int(trio_now()),
            prev_sig=self.sig if n else bootstrap(ConvId(self.conv)),
            body=body,
        )
        params = {"from_pk": sender.key.pk, "sig": sender.key.sign(text), "envelope": json.loads(text)}
        if n == 0:
            return "send_call", {**params, "to_code": self.called.code}
        return "send_env", {**params, "conv": self.conv, "n": n}


async def check(broker: Served, pairs: list[Pair]) -> int:
    """Every acknowledged envelope is there, in a chain that verifies, and every party saw every row once."""
    acknowledged = 0
    for pair in pairs:
        rows_of: dict[str, list[dict[str, Any]]] = {}
        async with pair.caller.connected(broker) as one, pair.called.connected(broker):
            for conv, acked in pair.acked.items():
                answer = await one.ask("read_conv", {"conv": conv, "limit": 500})
                rows = rows_of[conv] = answer["rows"]
                assert [row["n"] for row in rows] == list(range(len(rows)))
                stored = {row["n"]: row["sig"] for row in rows}
                assert acked.items() <= stored.items(), "an acknowledged envelope is lost"
                verdict = verify_transcript([json.dumps(row) for row in rows])
                assert verdict.ok, verdict.broken
                acknowledged += len(acked)
            with trio.fail_after(10):
                want = {(conv, row["n"], row["sig"]) for conv, rows in rows_of.items() for row in rows}
                while not (want <= set(pair.caller.seen) and want <= set(pair.called.seen)):  # noqa: ASYNC110  # sockets of another library
                    await trio.sleep(0.01)
    return acknowledged


@pytest.mark.requirement("retries.crash")
@pytest.mark.timeout(60 + 12 * ROUNDS)
async def test_nothing_acknowledged_is_lost_when_the_broker_is_killed_under_load(tmp_path: Path) -> None:
    chance = random.Random(20_261_130)
    pairs = [Pair(number) for number in range(PAIRS)]
    acknowledged = [0]
    for _ in range(ROUNDS):
        async with served(tmp_path / "data") as broker:
            async with trio.open_nursery() as nursery:
                for pair in pairs:
                    nursery.start_soon(pair.run, broker)
                await trio.sleep(chance.uniform(0.15, 0.6))
                broker.kill()
            acknowledged.append(sum(len(sigs) for pair in pairs for sigs in pair.acked.values()))
    async with served(tmp_path / "data") as broker:
        assert await check(broker, pairs) == acknowledged[-1]
    assert acknowledged[-1] > 20 * ROUNDS, f"too little load to tell anything: {acknowledged}"
