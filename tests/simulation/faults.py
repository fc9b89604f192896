"""How each kind of fault is done (plan.py says what it is)."""

from contextlib import suppress
from typing import TYPE_CHECKING

import trio

from broker.app import Caller
from broker.store.port import InDoubt, Unavailable
from broker.tools.lookup import live
from broker.wire.refusals import Refusal
from tests.programs.flaky import Way
from tests.simulation.dealer import Dealer
from tests.simulation.links import Lost
from tests.simulation.plan import Fault, Kind
from tests.simulation.stores import Sim, SimMemory

if TYPE_CHECKING:
    from tests.simulation.world import World

WAYS: dict[Kind, Way] = {"unavailable": "unavailable", "doubt": "doubt", "applied": "applied", "late": "late"}
OFFLINE_S = 15 + 30 + 60 + 10
"""Longer than a desk may count as online after its last sign of life: linger, a dead peer, a poll, and some."""


async def strike(world: "World", fault: Fault) -> None:
    """Do it. What it waits for is bounded by its own seconds."""
    dealer = world.dealers[fault.dealer % len(world.dealers)]
    world.struck[fault.kind] += 1
    match fault.kind:
        case "crash":
            world.steps.after(fault.awaits, lambda: world.crash(fault.seconds))
        case "stop":
            if world.life is not None and world.up.is_set():
                world.life.stop.set()
        case "step":
            world.ledger.stepped(trio.current_time(), fault.seconds)
            world.clock.step(round(fault.seconds * 1000))
        case "probe":
            await _probe(world)
        case "hang" | "hang written" | "outage":
            await _hang(world, fault)
        case "unavailable" | "doubt" | "applied" | "late":
            await _fail_commit(world, fault)
        case _:
            await _connection(world, dealer, fault)


async def _fail_commit(world: "World", fault: Fault) -> None:
    store = world.store
    store.fail(WAYS[fault.kind])
    if fault.kind == "late":
        with trio.move_on_after(20):
            while not store.late():  # noqa: ASYNC110  # the store tells nobody
                await trio.sleep(0.01)
        await _read_without(world, store)
        await trio.sleep(min(fault.seconds, 0.05 * (fault.awaits % 3)))
        while store.late() and not store.dead:
            with suppress(Unavailable, InDoubt):  # it comes during an outage or at a crash, and is lost
                await store.land()


async def _read_without(world: "World", store: Sim) -> None:
    """Somebody asks for the call whose commit is under way: an actor reads its log without it."""
    life = world.life
    if life is None or life.broker is None or not world.up.is_set() or store.dead:
        return
    for conv in store.late_convs():
        with trio.move_on_after(1):
            await live(life.broker._services, conv)


async def _hang(world: "World", fault: Fault) -> None:
    store, began = world.store, trio.current_time()
    if not isinstance(store, SimMemory):
        return
    if fault.kind == "outage":
        store.broken = "as planned"
        await trio.sleep(fault.seconds)
        store.broken = None
        return
    store.gate.hold(written=fault.kind == "hang written")
    await trio.sleep(fault.seconds)
    if fault.seconds > 4:
        world.ledger.doubt_since(began - 6)
    if not store.dead:
        store.gate.release()


async def _connection(world: "World", dealer: Dealer, fault: Fault) -> None:
    link = dealer.link
    if fault.kind == "away":
        dealer.away_until = trio.current_time() + fault.seconds
    if fault.kind == "repeat":
        await _repeat(world, dealer, fault)
    elif fault.kind == "second":
        await _second(world, dealer, fault)
    elif link is None:
        return
    elif fault.kind in ("cut", "away") or (fault.kind == "silence" and link.pipe is None):
        world.steps.after(fault.awaits, link.drop)
    elif fault.kind == "silence" and link.pipe is not None:
        world.silent.append(link)
        link.pipe.silence()
    elif fault.kind == "delay" and link.pipe is not None:
        link.pipe.delay(min(fault.seconds, 7.0))
        await trio.sleep(20)
        link.pipe.delay(0.0)
    elif fault.kind == "slow" and link.paused.is_set():
        pause = link.paused = trio.Event()
        try:
            await trio.sleep(fault.seconds)
        finally:
            pause.set()


async def _repeat(world: "World", dealer: Dealer, fault: Fault) -> None:
    """Old requests again: the same acknowledgement, whatever has become of the call."""
    for method, params in dealer.sent[-1 - fault.awaits % 5 :: -7][:3]:
        await dealer.settle(method, params, clean=False)


async def _second(world: "World", dealer: Dealer, fault: Fault) -> None:
    """Another connection of the same dealer, for a while: from the start, from where it is, or from nonsense."""
    head, _, position = dealer.cursor.rpartition(".")
    other = world.dealers[(dealer.index + 1) % len(world.dealers)].cursor
    after = (
        "0",
        dealer.cursor,
        f"{head}.{int(position) + 1000}" if head else "0",
        other,
        "nonsense",
    )[fault.awaits % 5]
    dealer.gone_at = trio.current_time() + fault.seconds + 5
    try:
        with trio.move_on_after(fault.seconds + 5):
            async with trio.open_nursery() as nursery:
                await world.up.wait()
                link = await dealer.connect(nursery, after)
                try:
                    await link.down.wait()
                finally:
                    link.drop()
    except* Lost:
        pass
    dealer.gone_at = trio.current_time()


async def _probe(world: "World") -> None:
    """Presence is true within its bounds: whoever follows is online, whoever is long gone is not."""
    life = world.life
    if life is None or life.broker is None or not world.up.is_set():
        return
    before = {dealer.index: dealer.link for dealer in world.dealers if dealer.following}
    codes = [dealer.party.code for dealer in world.dealers]
    began = trio.current_time()
    with trio.move_on_after(20) as bound:
        answer = await life.broker.call(
            Caller(), "presence", b'{"codes":%s}' % str(codes).replace("'", '"').encode()
        )
    if (
        bound.cancelled_caught
        or life is not world.life
        or not world.up.is_set()
        or isinstance(answer, Refusal)
    ):
        return
    world.note(f"presence {sorted(answer.desks.items())}")
    for dealer in world.dealers:
        link, online = dealer.link, answer.desks[dealer.party.code]
        if (
            link is not None
            and link not in world.silent
            and link.paused.is_set()
            and before.get(dealer.index) is link
            and not link.down.is_set()
        ):
            world.ledger.check("who follows is online", online, dealer.party.code)
        elif link is None and began - dealer.gone_at > OFFLINE_S:
            world.ledger.check("who is long gone is offline", not online, dealer.party.code)
