"""The whole of one run: a broker that ends and begins again, its dealers, and the faults of the plan."""

import hashlib
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import trio

from broker.app import Broker, Caller, open_broker
from broker.clock import VirtualClock
from broker.config import Settings
from broker.wire.chain import verify_transcript
from broker.wire.keyring import Keyring, WireKey
from broker.wire.keys import SigningKey
from broker.wire.refusals import refuse
from gateways.dealing import serve_dealing
from tests.simulation.dealer import Dealer
from tests.simulation.faults import strike
from tests.simulation.ledger import Broken, Ledger
from tests.simulation.links import DirectLink, Link, Lost, Told
from tests.simulation.plan import SPAN_S, Plan, Step, Talk
from tests.simulation.player import Player
from tests.simulation.schedule import Steps
from tests.simulation.stores import Sim, SimMemory, SimSqlite
from tests.simulation.talking import Side
from tests.support.broker import START_MS, tuned
from tests.support.pipes import Pipe, PipeListener

STOPPING = refuse("unavailable", "the broker stops; come back in a moment")


class Life:
    """One process of the broker, from its start to its end."""

    def __init__(self) -> None:
        self.broker: Broker | None = None
        self.scope = trio.CancelScope()
        self.stop = trio.Event()
        """Set: it is shut down in order."""
        self.listener = PipeListener()
        self.pipes: list[Pipe] = []
        self.links: list[DirectLink] = []
        self.down_s = 0.0
        self.over = False

    def cut(self) -> None:
        """Every connection breaks. No checkpoint."""
        for pipe in self.pipes:
            pipe.cut()
        for link in self.links:
            link.drop()


class World:
    """One run. `play` it once."""

    def __init__(self, plan: Plan, steps: Steps, folder: Path) -> None:
        self.plan = plan
        self.steps = steps
        self.chance = random.Random(f"world {plan.seed}")
        self.clock = VirtualClock(START_MS)
        self.keyring = Keyring((WireKey(SigningKey.from_seed("07" * 32), START_MS),))
        self.ledger = Ledger(self.keyring.pk, trio.current_time, 30.0, plan.idle_s)
        self.settings = _settings(plan)
        self.store: Sim
        if plan.store == "sqlite":
            self.store = SimSqlite(folder / "s", self.ledger.committed, self.ledger.begun)
        else:
            secret = hashlib.sha256(b"%d" % plan.seed).digest()
            self.store = SimMemory(secret, self.ledger.committed, self.ledger.begun)
        self.dealers = [Dealer(self, index, port) for index, port in enumerate(plan.ports)]
        self.players = [Player(self, number) for number in range(plan.players)]
        self.life: Life | None = None
        self.up = trio.Event()
        self.silent: list[Link] = []
        """Connections that went dead without a word."""
        self.struck: Counter[str] = Counter()
        self.trace: list[str] = []
        self.over = False
        self._busy = 0
        """Dials and faults that go on."""
        self._nursery: trio.Nursery
        self._sides: trio.Nursery
        self._talks = {self.conv(step): step for step in plan.steps if isinstance(step, Talk)}
        self._rung: set[tuple[int, str]] = set()

    @property
    def ts(self) -> int:
        """The dealers' clock: they keep to the wire's."""
        return self.clock.now_ms() // 1000

    def conv(self, talk: Talk) -> str:
        """The id of a talk's conversation."""
        return f"{self.plan.seed % 2**32:08x}{talk.number:08x}"

    def note(self, what: str) -> None:
        """A line of the trace."""
        self.trace.append(f"{trio.current_time():.4f} {self.steps.count} {what}")

    def fail(self, error: Exception) -> None:
        """Something is wrong, found where nobody could be told."""
        if self.ledger.fault is None:
            self.ledger.fault = error if isinstance(error, Broken) else Broken(repr(error))

    def skewed(self, told: Told) -> None:
        """A statement was refused: only a step of the wall clock on its way explains it."""
        self.ledger.check("a statement is refused for its time alone", told.body.get("path") == "ts", told)

    # ── the run ──

    async def play(self) -> None:
        """Raises Broken, Wrong, or whatever the broker raised, alone or in groups."""
        for player in self.players:
            await self.store.commit(player.unit())
        with trio.fail_after(6 * 3600):
            async with trio.open_nursery() as self._nursery:
                self._nursery.start_soon(self._keep_up)
                self._nursery.start_soon(self._look)
                await self.up.wait()
                rest = trio.lowlevel.current_statistics().tasks_living
                async with trio.open_nursery() as living:
                    for dealer in self.dealers:
                        living.start_soon(dealer.live)
                    for player in self.players:
                        living.start_soon(player.live, SPAN_S)
                    for dealer in self.dealers:
                        await dealer.opened.wait()
                    await self._steps_of_the_plan()
                    await self._quiet()
                    for dealer in self.dealers:
                        dealer.leaving = True
                    living.cancel_scope.cancel()
                await self._at_rest(rest)
                self.over = True
                self._nursery.cancel_scope.cancel()
        await self._read_all()

    async def _steps_of_the_plan(self) -> None:
        began = trio.current_time()
        async with trio.open_nursery() as self._sides:
            for step in self.plan.steps:
                await trio.sleep_until(began + step.at)
                if isinstance(step, Talk):
                    self._sides.start_soon(self._counted, self._dial, step)
                else:
                    self.note(f"{step.kind} {step.dealer} {step.seconds}")
                    self._sides.start_soon(self._counted, partial(strike, self), step)
            await trio.sleep_until(began + SPAN_S)
            with trio.move_on_after(self.plan.idle_s + 1200):
                while self._busy or not all(call.ended for call in self.ledger.calls.values()):  # noqa: ASYNC110  # what is judged tells nobody
                    await trio.sleep(5)
            await trio.sleep(1)
            self._sides.cancel_scope.cancel()

    async def _counted(self, do: Callable[[Any], Awaitable[None]], step: Step) -> None:
        self._busy += 1
        try:
            await do(step)
        finally:
            self._busy -= 1

    async def _dial(self, talk: Talk) -> None:
        dealer = self.dealers[talk.caller]
        told = await dealer.dial(talk)
        if told is None or told.code:
            allowed = told is None or told.code in ("desk_busy", "overloaded", "conv_ended", "conflict")
            self.ledger.check("a dial is taken", allowed, told)
            if told is not None and told.code != "conflict":
                return
        await Side(dealer, talk, caller=True).run()

    def rung(self, dealer: Dealer, conv: str) -> None:
        """A ring came to a dealer: it talks. Once, however often the ring is read."""
        if (dealer.index, conv) not in self._rung and not self.ledger.calls[conv].ended:
            self._rung.add((dealer.index, conv))
            self._sides.start_soon(Side(dealer, self._talks[conv], caller=False).run)

    def reread(self, dealer: Dealer) -> None:
        """A dealer missed events that retention took."""
        self._nursery.start_soon(dealer.reread)

    async def _quiet(self) -> None:
        """Nothing breaks any more: every call ends, every reader has all, nothing waits."""
        check = self.ledger.check
        for player in self.players:
            with trio.move_on_after(300):
                await player.finished.wait()
            check("every player is answered", player.finished.is_set(), player.agent_id)
        with trio.move_on_after(self.plan.idle_s + 300):
            while not all(map(self._has_all, self.dealers)):  # noqa: ASYNC110  # what is judged tells nobody
                await trio.sleep(1)
        for conv, call in self.ledger.calls.items():
            check("every call ends", call.ended, conv, len(call.rows))
        for dealer in self.dealers:
            check("every reader gets all", self._has_all(dealer), dealer.party.code, dealer.position)
        for key, convs in self.ledger.open.items():
            check("every place is given back", not convs, key[:8], convs)

    def _has_all(self, dealer: Dealer) -> bool:
        return dealer.position == len(self.ledger.streams.get(dealer.stream, ()))

    async def _at_rest(self, tasks: int) -> None:
        """When all have left: nobody is online, no actor, reader or task is left, and none crashed."""
        presence, check = self.settings.presence, self.ledger.check
        await trio.sleep(max(presence.poll_s, presence.linger_s, 2 * self.plan.actors_idle_s) + 45)
        assert self.life is not None
        broker = self.life.broker
        assert broker is not None
        moment = broker.statistics()
        check("at rest no actor", not any(moment.actors.values()), moment.actors)
        check("at rest no reader", (moment.readers, moment.pending_bytes) == (0, 0), moment)
        check("at rest nobody is online", moment.desks_online == 0, moment)
        check("no actor crashed", moment.crashes == 0, moment)
        services = broker._services
        check("at rest no verification", services.verifier.statistics().waiting == 0)
        check("at rest no stream is known", not services.hub._topics, services.hub._topics)
        check("at rest nobody watches", services.presence.statistics().watches == 0)
        left = trio.lowlevel.current_statistics().tasks_living
        check("at rest no task", left <= tasks, left, tasks)

    async def _read_all(self) -> None:
        """All transcripts, from the store alone, as an offline verifier gets them."""
        rows_of: dict[str, list[dict[str, Any]]] = {}
        self.store = await self.store.ended()
        for conv in self.ledger.calls:
            entries = await self.store.entries(f"conv:{conv}", -1, 10_000)
            rows = [{**msgspec.json.decode(entry.data), "accepted_at": entry.at} for entry in entries]
            verdict = verify_transcript(rows, (self.keyring.pk,))
            self.ledger.check("transcripts verify", verdict.ok, conv, verdict)
            rows_of[conv] = rows
        self.ledger.kept(rows_of)
        for player in self.players:
            await player.judge(self.store)
        await self.store.aclose()

    async def _look(self) -> None:
        """What the ledger found where it could raise nothing."""
        while True:
            await trio.sleep(1)
            if self.ledger.fault is not None:
                raise self.ledger.fault

    # ── the broker ──

    async def _keep_up(self) -> None:
        """A broker, and after its end another one on what was committed."""
        while True:
            life = self.life = Life()
            with life.scope:
                async with (
                    open_broker(self.settings, self.store, self.clock, self.keyring) as broker,
                    trio.open_nursery() as nursery,
                ):
                    life.broker = broker
                    self.ledger.began = trio.current_time()
                    serve: Any = partial(serve_dealing, shutdown=life.stop, clock=self.clock)
                    await nursery.start(serve, broker, [life.listener])
                    self.up.set()
                    self.note("broker up")
                    await life.stop.wait()
                    broker.end_streams(STOPPING)
                    self._go_down()
                    await trio.sleep(10)
                    self._count_crashes(life)
                    life.cut()
                    nursery.cancel_scope.cancel()
            if self.over:
                return
            life.over = True
            self._go_down()
            life.cut()
            await trio.sleep(life.down_s)
            self.store = await self.store.ended()
            self.ledger.life += 1

    def crash(self, down_s: float) -> None:
        """The process ends now. No checkpoint."""
        life = self.life
        if life is None or life.scope.cancel_called or life.over:
            return
        self.note("crash")
        self._go_down()
        self._count_crashes(life)
        life.down_s = down_s
        life.cut()
        self.store.die(self.chance)
        life.scope.cancel()

    def _count_crashes(self, life: Life) -> None:
        if life.broker is not None and life.broker.statistics().crashes:
            self.fail(Broken("an actor crashed"))

    def _go_down(self) -> None:
        if self.up.is_set():
            self.up = trio.Event()

    async def dial(self) -> Pipe:
        """A new connection to the dealing port. Raises Lost."""
        life = self.life
        if life is None or not self.up.is_set():
            await trio.sleep(0.1)
            raise Lost
        try:
            pipe = life.listener.dial()
        except trio.BrokenResourceError:  # it was stopped as soon as it was up
            raise Lost from None
        life.pipes.append(pipe)
        return pipe

    def direct(self, dealer: Dealer, seen: Any) -> DirectLink:
        """A way to the broker without a door. Raises Lost."""
        if self.life is None or self.life.broker is None or not self.up.is_set():
            raise Lost
        link = DirectLink(self.life.broker, Caller(pk=dealer.party.key.pk), seen)
        self.life.links.append(link)
        return link


def _settings(plan: Plan) -> Settings:
    return tuned(
        calls={"idle_s": plan.idle_s},
        streams={
            "queue_events": plan.queue_events,
            "keep_events": plan.keep_events,
            "keep_days": plan.keep_days,
        },
        store={"min_free_bytes": 0, "sweep_s": 20.0},
        actors={
            "idle_s": plan.actors_idle_s,
            "mailbox": plan.mailbox,
            "signatures_per_tick": plan.signatures_per_tick,
        },
    )
