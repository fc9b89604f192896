"""Dealers that outlive the broker, and keep a history of all that they asked and saw.

They speak to the dealing port with another project's WebSocket library, without retries of their own: what became of
each request is for the history to say.
"""

import json
import os
import random
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import Any, Final

import trio
import trio_websocket

from broker.wire.chain import verify_transcript
from broker.wire.envelope import bootstrap, build
from broker.wire.events import read_cursor
from broker.wire.ids import ConvId
from broker.wire.keys import SigningKey
from broker.wire.statement import build_statement
from tests.history.model import History, Ok, Reading, Refused, Seen, Send
from tests.support.process import Served

TALK: Final = 24
"""Envelopes of one conversation, below the limit of 30 in 10 s."""
RIVALS: Final = 0.15
"""How often a party sends two envelopes for one place at once: exactly one may stand."""
CUT_S: Final = 10.0
"""So long after the broker's death a party may take to see it."""
LOST: Final = (
    trio_websocket.ConnectionClosed, trio_websocket.HandshakeError, OSError, trio.ClosedResourceError
)  # fmt: skip

Request = tuple[str, dict[str, Any]]
"""Method and params."""


class Link:
    """One JSON-RPC connection: answers by id, events to the party that follows here."""

    def __init__(self, socket: Any, party: "Party | None" = None, reader: str = "first") -> None:
        self.socket = socket
        self.party = party
        self.reader = reader
        self.waiting: dict[int, trio.MemorySendChannel[Any]] = {}
        self.ids = 0

    async def read(self) -> None:
        while True:
            frame = json.loads(await self.socket.get_message())
            if "id" in frame:
                await self.waiting.pop(frame["id"]).send(frame)
            elif self.party is not None and frame["method"] in ("ring", "env", "end"):
                self.party.see(self.reader, frame["params"])

    async def ask(self, method: str, params: dict[str, Any]) -> Any:
        """The result, or the error object."""
        self.ids += 1
        send, receive = trio.open_memory_channel[Any](1)
        self.waiting[self.ids] = send
        await self.socket.send_message(
            json.dumps({"jsonrpc": "2.0", "id": self.ids, "method": method, "params": params})
        )
        frame = await receive.receive()
        return frame.get("result", frame.get("error"))


@asynccontextmanager
async def linked(broker: Served, party: "Party | None" = None, reader: str = "first") -> AsyncIterator[Link]:
    """A connection of nobody, or one that `authenticate` still has to make a party's."""
    host, port = broker.dealing.removeprefix("ws://").split(":")
    async with await trio.open_tcp_stream(host, int(port)) as stream, trio.open_nursery() as nursery:
        socket = await trio_websocket.wrap_client_stream(nursery, stream, host, "/")
        hello = json.loads(await socket.get_message())["params"]
        link = Link(socket, party, reader)
        nursery.start_soon(link.read)
        if party is not None:
            proof = party.statement("authenticate", broker.pk, hello["challenge"])
            assert "code" not in await link.ask("authenticate", proof)
        yield link
        nursery.cancel_scope.cancel()


@contextmanager
def ended_by_the_broker() -> Iterator[None]:
    """Swallow that a connection is gone, and nothing else: an assertion in a nursery stays one."""
    try:
        yield
    except* LOST:
        pass


class Party:
    """A desk that outlives the broker: its key, its cursor, every event that it saw."""

    def __init__(self, code: str, history: History) -> None:
        self.code = code
        self.key = SigningKey.generate()
        self.history = history
        self.cursor = "0"
        self.seen = 0

    def see(self, reader: str, event: dict[str, Any]) -> None:
        at, cursor = time.monotonic(), read_cursor(event["cursor"])
        assert cursor is not None
        if reader == "first":
            self.cursor = event["cursor"]
            self.seen += 1
        stream, place = self.key.pk, (event["conv"], event["n"], event["sig"])
        self.history.seen.append(Seen(stream, reader, cursor.epoch, cursor.position, *place, at))

    def statement(self, do: str, wire: str, nonce: str | None = None, **members: Any) -> dict[str, Any]:
        text, sig = build_statement(
            do, self.key, wire, int(time.time()), nonce or os.urandom(16).hex(), **members
        )
        return {"statement": json.loads(text), "sig": sig}

    @asynccontextmanager
    async def connected(self, broker: Served) -> AsyncIterator[Link]:
        """The party's link, from its last cursor on."""
        async with linked(broker, self) as link:
            opened = await link.ask("open_desk", self.statement("open_desk", broker.pk, code=self.code))
            assert opened.get("code") == self.code, opened
            resume = await link.ask("follow", {"after": self.cursor})
            assert resume["recovered"], resume
            yield link

    async def read_again(self, broker: Served, reader: str) -> None:
        """Be another reader of the same stream, from its beginning to what the first has seen."""
        before = len(self.history.seen)
        async with linked(broker, self, reader) as link:
            await link.ask("follow", {"after": "0"})
            with trio.fail_after(10):
                while len(self.history.seen) - before < self.seen:  # noqa: ASYNC110  # sockets of another library
                    await trio.sleep(0.01)


async def send(link: Link, request: Request, history: History) -> Any:
    """Ask, and keep what became of it."""
    method, params = request
    envelope = params["envelope"]
    kept = Send(
        envelope["conv"], envelope["n"], params["sig"], envelope["from"], envelope["to"], time.monotonic()
    )
    history.sends.append(kept)
    answer = await link.ask(method, params)
    kept.ended = time.monotonic()
    if "chain" in answer:
        kept.answer = Ok(answer["chain"], answer["accepted_at"], answer.get("replayed", False))
    else:
        kept.answer = Refused(answer["data"]["code"] if "data" in answer else "fault")
    return answer


class Pair:
    """Two desks and their present conversation, across restarts."""

    def __init__(self, number: int, history: History, chance: random.Random) -> None:
        letter = chr(65 + number)
        self.history = history
        self.chance = chance
        self.caller, self.called = (
            Party(f"CA{letter}{letter}", history),
            Party(f"CB{letter}{letter}", history),
        )
        self.acked: dict[str, dict[int, str]] = {}
        self.pending: list[Request] = []
        """What was sent and is not settled: one request, or two rivals for one place."""
        self.refused: Counter[str] = Counter()
        """Refusals that ask for the identical request again, by code."""
        self.connections = 0
        self.talk = TALK
        """Which envelope ends a conversation."""
        self.begin()

    def begin(self) -> None:
        self.conv, self.n, self.sig = os.urandom(8).hex(), -1, ""

    async def run(self, broker: Served) -> None:
        """Deal until the connection dies."""
        with ended_by_the_broker():
            async with (
                self.caller.connected(broker) as one,
                self.called.connected(broker) as other,
                linked(broker) as third,
            ):
                self.connections += 1
                while True:
                    await self.step(broker, one, other, third)

    async def step(self, broker: Served, one: Link, other: Link, third: Link) -> None:
        """Send what is next; after a restart first what was under way, the identical bytes, until it is settled."""
        if again := bool(self.pending):
            self.chance.shuffle(self.pending)
        else:
            self.pending = self.next(broker.pk)
        own = one if self.pending[0][1]["from_pk"] == self.caller.key.pk else other
        answers: dict[str, Any] = {}

        async def ask(link: Link, request: Request) -> None:
            answers[request[1]["sig"]] = await send(link, request, self.history)

        if again:
            for request in self.pending:
                await ask(own, request)
        else:
            async with trio.open_nursery() as nursery:
                for link, request in zip((third, own), reversed(self.pending), strict=False):
                    nursery.start_soon(ask, link, request)
        standing = [request for request in self.pending if "chain" in answers[request[1]["sig"]]]
        codes = [answer["data"]["code"] for answer in answers.values() if "chain" not in answer]
        if not standing:
            assert set(codes) <= {"unavailable", "in_doubt"}, answers
            self.refused.update(codes)
            await trio.sleep(0.02)
            return
        [stands] = standing
        assert set(codes) <= {"conflict"}, answers
        if again:
            assert (await send(own, stands, self.history))["replayed"] is True
        self.n, self.sig, self.pending = stands[1]["envelope"]["n"], stands[1]["sig"], []
        self.acked.setdefault(self.conv, {})[self.n] = self.sig
        if stands[1]["envelope"]["type"] == "END":
            self.begin()

    def next(self, wire: str) -> list[Request]:
        """The next envelope, now and then with a rival."""
        n = self.n + 1
        type = {0: "CALL", 1: "PICKUP", self.talk: "END"}.get(n, "CHAT")
        if n == 0:
            desks = {"code_from": self.caller.code, "code_to": self.called.code, "wire": wire}
            [call] = [self._request(n, type, desks)]
            return [("send_call", {**call, "to_code": self.called.code})]
        bodies = [{"n": n}]
        if type == "CHAT" and self.chance.random() < RIVALS:
            bodies.append({"n": n, "rival": True})
        return [("send_env", {**self._request(n, type, body), "conv": self.conv, "n": n}) for body in bodies]

    def _request(self, n: int, type: str, body: dict[str, Any]) -> dict[str, Any]:
        sender, to = (self.called, self.caller) if n % 2 else (self.caller, self.called)
        text = build(
            conv=ConvId(self.conv),
            n=n,
            type=type,
            sender=sender.key.pk,
            to=to.key.pk,
            ts=int(time.time()),
            prev_sig=self.sig if n else bootstrap(ConvId(self.conv)),
            body=body,
        )
        return {"from_pk": sender.key.pk, "sig": sender.key.sign(text), "envelope": json.loads(text)}


async def read_conv(link: Link, conv: str, history: History) -> list[dict[str, Any]]:
    """A transcript, kept in the history as it was read; [] for one that is not there."""
    began = time.monotonic()
    answer = await link.ask("read_conv", {"conv": conv, "limit": 500})
    rows: list[dict[str, Any]] = answer.get("rows", [])
    assert rows or answer["data"]["code"] == "unknown_conv", answer
    assert [row["n"] for row in rows] == list(range(len(rows)))
    history.readings.append(Reading(conv, began, time.monotonic(), tuple(row["sig"] for row in rows)))
    return rows


async def look_on(broker: Served, pairs: list[Pair], history: History, chance: random.Random) -> None:
    """Read transcripts that are being written, until the connection dies."""
    with ended_by_the_broker():
        async with linked(broker) as link:
            while True:
                await read_conv(link, chance.choice(pairs).conv, history)
                await trio.sleep(0.005)


def kill(broker: Served, nursery: trio.Nursery) -> None:
    """Kill the broker under those who live in `nursery`; who has not seen it after CUT_S is ended.

    The other library may wait for ever for a peer that died amid its handshake (trio-websocket#182).
    """
    broker.kill()
    nursery.cancel_scope.deadline = trio.current_time() + CUT_S


async def deal(
    broker: Served, pairs: list[Pair], seconds: float, history: History, chance: random.Random
) -> None:
    """Load the broker, read along, and kill it after `seconds`."""
    async with trio.open_nursery() as nursery:
        for pair in pairs:
            nursery.start_soon(pair.run, broker)
        nursery.start_soon(partial(look_on, broker, pairs, history, chance))
        await trio.sleep(seconds)
        kill(broker, nursery)


async def _quiet(link: Link, pair: Pair, history: History) -> None:
    """Wait until a pair that stopped amid its dealing has nothing under way: what its last call holds stands still."""
    before = -1
    with trio.fail_after(20):
        while (now := len(await read_conv(link, pair.conv, history))) != before:
            before = now
            await trio.sleep(0.3)


async def settle(broker: Served, pairs: list[Pair], history: History) -> int:
    """Read every transcript and stream to its end, which makes the history complete; how many envelopes were
    acknowledged. Each transcript must verify."""
    acknowledged = 0
    for pair in pairs:
        events = 0
        async with linked(broker) as link:
            await _quiet(link, pair, history)
            for conv, acked in pair.acked.items():
                rows = await read_conv(link, conv, history)
                stored = {row["n"]: row["sig"] for row in rows}
                assert acked.items() <= stored.items(), "an acknowledged envelope is lost"
                verdict = verify_transcript([json.dumps(row) for row in rows])
                assert verdict.ok, verdict.broken
                acknowledged += len(acked)
                events += len(rows)
        for party in (pair.caller, pair.called):
            async with party.connected(broker):
                with trio.fail_after(10):
                    while party.seen < events:  # noqa: ASYNC110  # sockets of another library
                        await trio.sleep(0.01)
            await party.read_again(broker, "again")
    history.complete = True
    return acknowledged
