"""The stages of an envelope's way through the broker, each alone, with what it is given on that way.

A stage is a call that is made again and again; `check` makes it once and looks at what it gives.
"""

import time
from collections import deque
from collections.abc import Callable
from typing import Any, Final, cast

import msgspec
import trio
from websockets.protocol import State
from websockets.server import ServerProtocol

from bench.kit.parties import Dealer, Line
from bench.kit.websocket import Lost
from bench.whole import Party
from broker.actors.actor import Actor, Letter, Reply
from broker.actors.calls import Ack
from broker.app import Tool
from broker.config import Settings
from broker.core import conversation as core
from broker.core.conversation import Accepted, Conversation, Rules, Send
from broker.core.machine import Now
from broker.store.memory import MemoryStore
from broker.tools.registry import collect
from broker.wire import canonical, keys
from broker.wire.call import Phase
from broker.wire.chain import chain_next, row_text
from broker.wire.envelope import Envelope, read_envelope
from broker.wire.events import splice
from broker.wire.ids import Pk, Sig
from gateways import jsonrpc
from gateways.dealing import text_frame
from gateways.frames import Messages
from gateways.quick import QuickReader

RULES: Final = Rules(envelopes=1 << 30, window_s=10.0, skew_s=300, ring_s=30.0, idle_s=3600.0)
CURSOR: Final = "0123abcd.0123456789abcdef.4711"


class Stage:
    """One call, `name`, and what it does. `right` judges its result."""

    def __init__(
        self, name: str, what: str, call: Callable[[], Any], right: Callable[[Any], bool] = bool
    ) -> None:
        self.name = name
        self.what = what
        self._call = call
        self._right = right

    def check(self) -> None:
        """Call it once. Raises Lost where it gives what it should not."""
        found = self._call()
        if not self._right(found):
            raise Lost(f"{self.name} gave {found!r}")

    def run(self, count: int) -> float:
        """CPU seconds of so many calls."""
        call = self._call
        began = time.process_time()
        for _ in range(count):
            call()
        return time.process_time() - began


class ActorStage(Stage):
    """A letter to a live actor that decides on the spot, and its answer: by a call, or (`asks`) by waiting for it."""

    def __init__(self, name: str, what: str, *, asks: bool = False) -> None:
        super().__init__(name, what, lambda: None)
        self._asks = asks

    def check(self) -> None:
        """Raises Lost where an answer is missing."""
        self.run(10)

    def run(self, count: int) -> float:
        return trio.run(self._run, count)

    async def _run(self, count: int) -> float:
        actor = _Echo("bench", store=MemoryStore(), mailbox=64, commit_timeout_s=5.0)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(actor.run)
            await actor.wait_loaded()
            began = time.process_time()
            answers = await _ask(actor, count) if self._asks else _post(actor, count)
            took = time.process_time() - began
            nursery.cancel_scope.cancel()
        if answers != count:
            raise Lost(f"{self.name}: {answers} of {count} letters were answered")
        return took


class _Echo(Actor[int]):
    """Answers each command with itself, without waiting."""

    async def load(self) -> int:
        return 0

    async def handle(self, command: Any) -> Any:
        return command

    def decide(self, command: Any) -> Any:
        return command


def _post(actor: _Echo, count: int) -> int:
    answers = 0

    def then(_: Any) -> None:
        nonlocal answers
        answers += 1

    for _ in range(count):
        actor.post(Letter(count, then))
    return answers


async def _ask(actor: _Echo, count: int) -> int:
    answers = 0
    for _ in range(count):
        reply = Reply()
        actor.post(Letter(count, reply.answer))
        answers += await reply.wait() == count
    return answers


class Sample:
    """One QUOTE of an open call, and everything that the stages make of it."""

    def __init__(self) -> None:
        wire = keys.SigningKey.generate().pk
        parties = [Party(wire, code) for code in ("AAAB", "AAAC")]
        line = Line(0, *cast("list[Dealer]", parties))  # it asks for nothing that a Party has not
        line.sign(3)
        self.frame = line.frames[2]
        self.text = _messages().read(self.frame)[0] or b""
        request = jsonrpc.read(self.text)
        if not isinstance(request, jsonrpc.Request):
            raise Lost(f"no request: {request!r}")
        self.request = request
        self.tool: Tool = collect()[request.method]
        arguments = self.tool.decode(request.params)
        envelope = read_envelope(arguments["envelope"]) if isinstance(arguments, dict) else None
        if not isinstance(arguments, dict) or not isinstance(envelope, Envelope):
            raise Lost(f"no arguments: {arguments!r}")
        self.raw: bytes = arguments["envelope"]
        self.sig = Sig(arguments["sig"])
        self.envelope = envelope
        self.body = msgspec.json.encode(envelope.body)
        self.chain = bytes.fromhex(line.chains[1].decode())
        self.next_chain = line.chains[2].decode()
        self.now = Now(envelope.ts * 1000, 1000.0)
        self.ack = Ack(envelope.conv, 2, self.next_chain, self.now.wall_ms)
        self.row = row_text(envelope.conv, 2, self.sig, self.next_chain, envelope.canonical)

    def state(self) -> Conversation:
        """The conversation before this envelope."""
        envelope = self.envelope
        return Conversation(
            conv=envelope.conv,
            caller=Pk(envelope.sender),
            callee=Pk(envelope.to),
            code_from="AAAB",
            code_to="AAAC",
            wire=Pk(envelope.to),
            phase=Phase.OPEN,
            n=1,
            sig=Sig(envelope.prev_sig),
            chain=self.chain,
            last_from=Pk(envelope.to),
            last_at=0,
            last_mono=0.0,
            spent=deque(),
        )


def _messages() -> Messages:
    return Messages(ServerProtocol(state=State.OPEN), Settings().limits.frame_bytes)


def stages() -> list[Stage]:
    """All of them, in the order of the way."""
    sample = Sample()
    return [*_reading(sample), *_deciding(sample), *_telling(sample)]


def _reading(sample: Sample) -> list[Stage]:
    """From a connection's bytes to a verified envelope."""
    messages = _messages()
    frame, text, params, raw, body = sample.frame, sample.text, sample.request.params, sample.raw, sample.body
    envelope, sig, tool, quick = sample.envelope, sample.sig, sample.tool, QuickReader(collect())
    return [
        Stage("frame", "one masked frame to its text", lambda: messages.read(frame), lambda it: it == [text]),
        Stage(
            "request", "text to request, arguments and all, in one pass",
            lambda: quick.read(text), lambda it: it.arguments.n == 2,
        ),
        Stage(
            "json-rpc, strictly", "text to request, for all others",
            lambda: jsonrpc.read(text), lambda it: it == sample.request,
        ),
        Stage(
            "params, strictly", "its arguments, for all others", lambda: tool.decode(params), lambda it: it["n"] == 2
        ),
        Stage("canonical", "of it, of the body", lambda: canonical.quick(body), lambda it: it[1] == body),
        Stage(
            "envelope", "text to envelope, canonical form proven", lambda: read_envelope(raw),
            lambda it: it == envelope,
        ),
        Stage(
            "verify", "Ed25519, its hex forms read",
            lambda: keys.verify(envelope.sender, envelope.canonical, sig),
        ),
    ]  # fmt: skip


def _deciding(sample: Sample) -> list[Stage]:
    """What the conversation does."""
    state, after = sample.state(), sample.state()
    command, now = Send(sample.envelope, sample.sig), sample.now
    record = core.decide_send(state, command, now, RULES)
    if not isinstance(record, Accepted):
        raise Lost(f"not accepted: {record!r}")
    conv, sig, chain, text = sample.envelope.conv, sample.sig, sample.next_chain, sample.envelope.canonical

    def fold() -> int:
        core.fold(after, record, 30)
        return after.n

    return [
        ActorStage("actor hop", "a letter and its answer, decided on the spot"),
        ActorStage("actor, asked", "the same by one who waits for the answer", asks=True),
        Stage(
            "decide", "steps 11 to 17, the chain among them",
            lambda: core.decide_send(state, command, now, RULES), lambda it: it.chain.hex() == chain,
        ),
        Stage("chain", "of it", lambda: chain_next(sample.chain, sig), lambda it: it.hex() == chain),
        Stage("fold", "the record into the state", fold, lambda n: n == 2),
        Stage("row", "the stored text", lambda: row_text(conv, 2, sig, chain, text), lambda it: it == sample.row),
    ]  # fmt: skip


def _telling(sample: Sample) -> list[Stage]:
    """What goes out."""
    row, ack, at = sample.row, sample.ack, sample.now.wall_ms

    def event() -> bytes:
        return text_frame(jsonrpc.notification("env", splice(row, CURSOR, False, at)))

    def answer() -> bytes:
        return text_frame(jsonrpc.result(1, ack))

    chain = sample.next_chain.encode()
    return [
        Stage("event", "a frame for all readers of one stream", event, lambda it: chain in it),
        Stage("answer", "the acknowledgement as a frame", answer, lambda it: chain in it),
    ]
