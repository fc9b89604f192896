"""What the parts of a broker have counted, at one moment, for metrics."""

import msgspec

from broker.actors.pusher import PushStatistics
from broker.store.port import StoreStatistics
from broker.tools.context import Services


class Rehearsals(msgspec.Struct, frozen=True, kw_only=True):
    """Trials, and what agents have computed in turns."""

    open: int
    opened: int
    over: dict[str, int]
    """By why."""
    calls: int
    """Accepted; one that takes long counts when it begins."""
    rejected: dict[str, int]
    """By code."""
    plans: dict[str, int]
    """That were read: valid, invalid."""
    ticks: int
    turns: int
    waiting: int
    """Who waits for a turn now."""
    operations: int
    """Under way now."""


class Statistics(msgspec.Struct, frozen=True, kw_only=True):
    """A moment of the broker, for metrics: no ids in it. What only grows counts since the start."""

    actors: dict[str, int]
    crashes: int
    turned_away: int
    """Letters that found an actor's mailbox full."""
    late: int
    """Envelopes refused because they had waited too long (overload)."""
    readers: int
    readers_by_kind: dict[str, int]
    slow_readers: int
    resumed: dict[tuple[str, str], int]
    """Readers that began: whether without loss, and the reason."""
    pending_bytes: int
    desks_online: int
    verified: dict[str, int]
    """Signatures by who verified them: inline, helper."""
    signatures_delayed: int
    signatures_waiting: int
    verify_helpers: int
    """Helper processes that take work now."""
    helper_failures: int
    accepted: int
    """Envelopes accepted since the start."""
    sessions_open: int
    """Of the arena."""
    sessions_opened: int
    sessions_over: dict[str, int]
    """By why."""
    actions: int
    """Accepted in sessions of the arena."""
    actions_rejected: dict[str, int]
    """By code."""
    trials: Rehearsals
    free_bytes: int
    pushes: PushStatistics
    """What is sent to webhooks."""
    store: StoreStatistics


def statistics_of(services: Services) -> Statistics:
    """A frozen moment; its cost grows with readers and pushes."""
    hub, verifier, played = services.hub.statistics(), services.verifier.statistics(), services.played
    return Statistics(
        actors=services.house.counts(),
        crashes=services.house.crashes,
        turned_away=services.house.turned_away,
        late=services.house.admission.refused,
        readers=hub.readers,
        readers_by_kind=hub.by_kind,
        slow_readers=hub.slow,
        resumed=hub.resumed,
        pending_bytes=hub.pending_bytes,
        desks_online=services.presence.statistics().desks,
        verified={"inline": verifier.inline, "helper": verifier.helped},
        signatures_delayed=verifier.delayed,
        signatures_waiting=verifier.waiting,
        verify_helpers=verifier.helpers,
        helper_failures=verifier.helpers_failed,
        accepted=services.tally.accepted,
        sessions_open=played.open,
        sessions_opened=played.opened,
        sessions_over=dict(played.over),
        actions=played.accepted,
        actions_rejected=dict(played.rejected),
        trials=_rehearsals(services),
        free_bytes=services.store.free_bytes(),
        pushes=services.pusher.statistics(),
        store=services.store.statistics(),
    )


def _rehearsals(services: Services) -> Rehearsals:
    counted, mill = services.rehearsed, services.mill
    return Rehearsals(
        open=counted.open,
        opened=counted.opened,
        over=dict(counted.over),
        calls=counted.accepted,
        rejected=dict(counted.rejected),
        plans=dict(counted.plans),
        ticks=counted.ticks,
        turns=mill.turns,
        waiting=mill.waiting,
        operations=mill.under_way,
    )
