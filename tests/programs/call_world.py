"""Plays steps of a call program against a real broker and compares each answer with the model's."""

from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Literal

import msgspec
import trio
from trio.testing import wait_all_tasks_blocked

from broker.app import Caller, Delivery
from broker.clock import VirtualClock
from broker.store.port import Store, Unit
from broker.wire.chain import verify_transcript
from broker.wire.envelope import bootstrap
from broker.wire.ids import ConvId
from broker.wire.keys import SigningKey
from broker.wire.refusals import Refusal
from tests.programs.call_model import Call, Moment, Request
from tests.programs.flaky import FlakyMemory, FlakySqlite, Way, flaky
from tests.support.broker import START_MS, Bench, Party, open_bench, tuned

LIMIT = 8
"""Envelopes in 10 s here: reached within a short program."""
SETTINGS = tuned(limits={"envelopes": LIMIT})
MOST_CALLS = 6
"""So that nobody is evicted; the desk program does that."""

Fault = Literal["prev_sig", "ahead", "behind", "skew", "edge", "sig", "to", "wire", "desk", "taken"]
"""`edge` is none: a ts that is just good enough. `taken`: an ended call's conv, or else the last one's."""


class Dial(msgspec.Struct, frozen=True):
    """One of the two parties dials the other."""

    swap: bool = False
    fault: Fault | None = None
    way: Way | None = None


class Send(msgspec.Struct, frozen=True):
    """An envelope of a call (by index), by whose turn it is, the other party, or a stranger; type None: what fits."""

    call: int
    type: str | None = None
    who: Literal["turn", "other", "stranger"] = "turn"
    fault: Fault | None = None
    way: Way | None = None


class Again(msgspec.Struct, frozen=True):
    """An earlier request, byte for byte: the `back`-th last."""

    back: int
    way: Way | None = None


class Land(msgspec.Struct, frozen=True):
    """A commit that was in doubt reaches the log."""


class Wait(msgspec.Struct, frozen=True):
    """Time passes."""

    seconds: float


class Restart(msgspec.Struct, frozen=True):
    """The broker ends, and begins again later, perhaps with another wall clock."""

    down_s: float = 0.0
    step_ms: int = 0


Step = Dial | Send | Again | Land | Wait | Restart


class World:
    """Two parties and a stranger, a broker that restarts on one store, and what must be true of it."""

    def __init__(self, directory: Path | None = None) -> None:
        self._directory = directory
        self.clock = VirtualClock(START_MS)
        self.key = SigningKey.from_seed("07" * 32)
        self.alfa, self.brav, self.stranger = (
            Party(code, SigningKey.from_seed(f"{i + 1:064x}"))
            for i, code in enumerate(("ALFA", "BRAV", "CHAR"))
        )
        self.calls: list[Call] = []
        self.sent: list[Request] = []
        self.acknowledged: list[dict[str, Any]] = []
        self.read: dict[str, list[Delivery]] = {self.alfa.pk: [], self.brav.pk: []}
        self.ready = 0.0
        self.late: tuple[Call, Request, Moment] | None = None
        self.stale: dict[str, int] = {}  # conv → rows that an actor may have read before a late commit
        self.bench: Bench
        self.store: Store
        self._serial = 0
        self._stack = AsyncExitStack()

    # ── the broker's life ──

    async def start(self) -> None:
        if self._directory is not None:
            self.store = FlakySqlite(self._directory, hop="inline")
        elif not hasattr(self, "store"):
            self.store = FlakyMemory()
        self._stack = AsyncExitStack()
        self.bench = await self._stack.enter_async_context(
            open_bench(SETTINGS, self.store, self.clock, self.key)
        )
        self.ready = trio.current_time()
        nursery = await self._stack.enter_async_context(trio.open_nursery())
        self._stack.callback(nursery.cancel_scope.cancel)
        for party in (self.alfa, self.brav):
            await nursery.start(self._follow, party)

    async def stop(self) -> None:
        await wait_all_tasks_blocked()
        await self._stack.aclose()
        self.late = None
        flaky(self.store).lose()
        if self._directory is not None:
            await self.store.aclose()

    async def _follow(self, party: Party, task_status: Any) -> None:
        """A live reader that goes on from its last cursor."""
        seen = self.read[party.pk]
        after = seen[-1].cursor if seen else "0"
        reader = await self.bench.broker.follow(Caller(pk=party.key.pk), after=after)
        assert not isinstance(reader, Refusal)
        assert reader.resume.recovered
        async with reader:
            task_status.started()
            while True:
                seen.extend(await reader.receive())

    async def open_desks(self) -> None:
        for party in (self.alfa, self.brav, self.stranger):
            statement = party.statement("open_desk", self.bench.broker.pk, self.bench.ts, code=party.code)
            assert not isinstance(await self.bench.call("open_desk", **statement), Refusal)

    def now(self) -> Moment:
        return Moment(self.clock.now_ms(), trio.current_time())

    # ── the steps ──

    async def play(self, step: Step) -> None:
        await self._catch_up()
        match step:
            case Dial():
                if len(self.calls) < MOST_CALLS or step.fault == "taken":
                    await self.ask(self._call(step), step.way)
            case Send():
                if self.calls:
                    await self.ask(self._env(self.calls[step.call % len(self.calls)], step), step.way)
            case Again(back, way):
                if self.sent:
                    await self.ask(self.sent[-1 - back % len(self.sent)], way)
            case Land():
                await self._land()
            case Wait(seconds):
                await trio.sleep(seconds)
                await self._ends()
            case Restart(down_s, step_ms):
                await self._restart(down_s, step_ms)

    def _call(self, step: Dial) -> Request:
        caller, called = (self.brav, self.alfa) if step.swap else (self.alfa, self.brav)
        fault = step.fault
        self._serial += 1
        conv = f"{self._serial:016x}"
        if fault == "taken" and self.calls:
            taken = next((call for call in self.calls if call.ended), self.calls[-1])
            conv = taken.conv
            caller, called = (taken.called, taken.caller) if step.swap else (taken.caller, taken.called)
        body = {
            "code_from": caller.code,
            "code_to": "ZULU" if fault == "desk" else called.code,
            "x": self._serial,
        }
        body["wire"] = "f" * 64 if fault == "wire" else self.bench.broker.pk
        params = caller.envelope(
            conv,
            0,
            "CALL",
            called.pk,
            self._ts(fault),
            "0" * 64 if fault == "prev_sig" else bootstrap(ConvId(conv)),
            body,
        )
        params = {name: value for name, value in params.items() if name not in ("conv", "n")}
        params["to_code"] = body["code_to"]
        if fault == "sig":
            params["sig"] = "0" * 128
        request = Request(params, caller, fault != "sig", fault != "wire", fault != "desk")
        if fault != "taken" or not self.calls:
            self.calls.append(Call(conv, caller, called, LIMIT))
        return request

    def _env(self, call: Call, step: Send) -> Request:
        n = max(1, len(call.rows))
        fault = step.fault
        n = n + 1 if fault == "ahead" else max(1, n - 1) if fault == "behind" else n
        speaker = call.speaker(n)
        other = call.caller if speaker is call.called else call.called
        sender = {"turn": speaker, "other": other, "stranger": self.stranger}[step.who]
        to = other if sender is not other else speaker
        self._serial += 1
        params = sender.envelope(
            call.conv,
            n,
            step.type or ("PICKUP" if n == 1 else "CHAT"),
            self.stranger.pk if fault == "to" and sender is not self.stranger else to.pk,
            self._ts(fault),
            "0" * 128 if fault == "prev_sig" or not call.rows else call.rows[-1].sig,
            {"x": self._serial},
        )
        if fault == "sig":
            params["sig"] = "0" * 128
        return Request(params, sender, fault != "sig")

    def _ts(self, fault: Fault | None) -> int:
        return self.bench.ts + (301 if fault == "skew" else 300 if fault == "edge" else 0)

    # ── asking, and what must be answered ──

    async def ask(self, request: Request, way: Way | None = None) -> None:
        call = next(each for each in self.calls if each.conv == request.envelope["conv"])
        now = self.now()
        expect = (
            call.judge_call(request, now) if request.tool == "send_call" else call.judge_env(request, now)
        )
        allowed = {expect}
        stale = self.stale.get(call.conv)
        if stale is not None and request.tool == "send_env":
            allowed |= {call.judge_env(request, now, stale)} - {"accepted"}
        elif way is not None and not (way == "late" and self.late is not None):
            flaky(self.store).fail(way, self._writes(request))
            if expect == "accepted":
                allowed = {"unavailable" if way == "unavailable" else "in_doubt"}
        answer = await self.bench.call(request.tool, **request.params)
        flaky(self.store).fail(None)
        self.sent.append(request)
        got = (
            answer.code if isinstance(answer, Refusal) else "replayed" if "replayed" in answer else "accepted"
        )
        assert got in allowed, (got, allowed, request, answer)
        if expect == "accepted" and (got == "accepted" or way == "applied"):
            self._take(call, request, now)
            self.stale.pop(call.conv, None)
        elif expect == "accepted" and got == "in_doubt" and way == "late":
            self.late = (call, request, now)
        if isinstance(answer, Refusal):
            self._detail(answer, call, now)
        else:
            self._acknowledgement(answer, call, request)

    def _take(self, call: Call, request: Request, at: Moment) -> None:
        if (
            not call.rows and request.sender is not call.caller
        ):  # another one dialled that conv, and this one stands
            call.caller, call.called = call.called, call.caller
        call.take(request.envelope, request.sig, at)

    def _writes(self, request: Request) -> Any:
        sig = request.sig.encode()

        def writes(unit: Unit) -> bool:
            return unit.append is not None and sig in unit.append.data

        return writes

    def _acknowledgement(self, answer: dict[str, Any], call: Call, request: Request) -> None:
        row = call.stored(request)
        assert row is not None
        told = {"conv": call.conv, "n": row.envelope["n"], "chain": row.chain, "accepted_at": row.at}
        assert {name: value for name, value in answer.items() if name != "replayed"} == told
        self.acknowledged.append({**told, "sig": request.sig})

    def _detail(self, answer: Refusal, call: Call, now: Moment) -> None:
        """The members of its own that a refusal carries."""
        detail = answer.detail
        if answer.code in ("conflict", "bad_prev_sig") and "head" in detail:
            heads = [call.head(), *([call.head(self.stale[call.conv])] if call.conv in self.stale else [])]
            assert detail["head"] in heads
            assert answer.code != "conflict" or detail["rebuild"] is True
        elif answer.code == "conv_ended":
            assert detail["reason"] == call.reason
        elif answer.code == "rate_limited":
            assert detail["retry_after_ms"] == call.wait_ms(now.mono)
            assert 1 <= detail["retry_after_ms"] <= 10_000
        elif answer.code == "clock_skew":
            assert detail["wire_ts"] == now.wall_ms // 1000

    # ── what happens without a request ──

    async def _land(self) -> None:
        if self.late is None:
            return
        call, request, at = self.late
        self.late = None
        possible = request.envelope["n"] == len(call.rows) and not call.ended
        landed = await flaky(self.store).land()
        assert possible or not landed
        # What changes the call's document loses against a due time that was put off meanwhile.
        assert landed or not possible or request.envelope["type"] in ("PICKUP", "END")
        if landed:
            if call.rows:
                self.stale[call.conv] = len(call.rows)
            self._take(call, request, at)
            call.lag_s += max(0.0, trio.current_time() - call.due(self.ready)) + 60.0

    async def _catch_up(self) -> None:
        """Where the wire is late it may be writing its END just now."""
        now = trio.current_time()
        if any(call.rows and not call.ended and call.due(self.ready) <= now for call in self.calls):
            await wait_all_tasks_blocked()
            await self._ends()

    async def _restart(self, down_s: float, step_ms: int) -> None:
        await self.stop()
        await trio.sleep(down_s)
        self.clock.step(step_ms)
        await self.start()
        for call in self.calls:
            call.restarted(self.now())
            call.lag_s += max(0, -step_ms) / 1000
        self.stale.clear()
        await self._ends()

    async def _ends(self) -> None:
        """Take in the ENDs that the wire wrote, each exactly when it was due."""
        for call in self.calls:
            if not call.rows or call.ended or call.due(self.ready) > trio.current_time():
                continue
            due = call.due(self.ready)
            if trio.current_time() - due < 0.01:
                await trio.sleep(0.01)
            rows = (await self.bench.call("read_conv", conv=call.conv, after=len(call.rows) - 1))["rows"]
            if not rows:
                assert trio.current_time() <= due + call.lag_s + 0.01, "the wire's END is overdue"
                continue
            (row,) = rows
            self._judge_end(call, row, due)

    def _judge_end(self, call: Call, row: dict[str, Any], due: float) -> None:
        envelope = row["envelope"]
        assert envelope["from"] == self.bench.broker.pk
        assert envelope["body"] == {"reason": "no_answer" if len(call.rows) == 1 else "idle"}
        last = call.rows[-1].envelope["from"]
        assert envelope["to"] == (call.called.pk if last == call.caller.pk else call.caller.pk)
        since = (self.now().wall_ms - row["accepted_at"]) / 1000
        assert -call.lag_s - 0.01 <= trio.current_time() - since - due <= call.lag_s + 0.01
        taken = call.take(envelope, row["sig"], Moment(row["accepted_at"], due))
        assert (taken.chain, taken.at) == (row["chain"], row["accepted_at"])

    # ── at the end ──

    async def finish(self) -> None:
        """Everything that was promised, over the whole program."""
        await self._catch_up()
        await self._restart(0.0, 0)
        await wait_all_tasks_blocked()
        for call in self.calls:
            if call.rows:
                await self._judge_transcript(call)
        for told in self.acknowledged:
            call = next(each for each in self.calls if each.conv == told["conv"])
            row = call.rows[told["n"]]
            assert (row.sig, row.chain, row.at) == (told["sig"], told["chain"], told["accepted_at"])
        await self._judge_streams()

    async def _judge_transcript(self, call: Call) -> None:
        rows = (await self.bench.call("read_conv", conv=call.conv, limit=500))["rows"]
        told = [(row["n"], row["sig"], row["chain"], row["accepted_at"], row["envelope"]) for row in rows]
        assert told == [(n, row.sig, row.chain, row.at, row.envelope) for n, row in enumerate(call.rows)], (
            "the stored transcript is what was accepted"
        )
        verdict = verify_transcript([msgspec.json.encode(row) for row in rows], (self.bench.broker.pk,))
        assert verdict.ok, verdict.broken

    async def _judge_streams(self) -> None:
        """Both parties read every row exactly once, in the order of the commits."""
        rows = sorted((call.conv, n) for call in self.calls for n in range(len(call.rows)))
        orders = []
        for party, seen in self.read.items():
            events = [(each.kind, each.own, msgspec.json.decode(each.params)) for each in seen]
            order = [(event["conv"], event["n"]) for _, _, event in events]
            assert sorted(order) == rows, "each row once"
            for conv, n in order:
                assert (
                    order.index((conv, n)) == 0 or n == 0 or (conv, n - 1) in order[: order.index((conv, n))]
                )
            for kind, own, event in events:
                envelope = event["envelope"]
                assert own is (envelope["from"] == party)
                ring = envelope["type"] == "CALL" and not own
                assert kind == ("ring" if ring else "end" if envelope["type"] == "END" else "env")
            orders.append(order)
        assert orders[0] == orders[1]
