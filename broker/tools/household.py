"""The wire's actors: how the house makes a conversation and a desk."""

from collections.abc import Callable

from broker.actors.conversation import ConversationActor
from broker.actors.desk import DeskActor
from broker.actors.recent import Recent
from broker.actors.timers import Timers
from broker.core.desk import Capacity
from broker.core.machine import Now
from broker.tools.context import Services


def add_wire_actors(
    services: Services, timers: Timers, desk_changed: Callable[[str, str | None, str | None], None]
) -> None:
    """Say how conversations and desks are made. `desk_changed`: told of a code, its key before and its key now."""
    settings, limits = services.settings, services.settings.limits
    mailbox, timeout = settings.actors.mailbox, settings.store.commit_timeout_s
    started = Now(services.clock.now_ms(), services.clock.monotonic())
    recent = Recent()
    capacity = Capacity(
        limits.conversations,
        limits.rings,
        limits.rings_per_address,
        limits.rings_known,
        limits.reservation_s,
    )
    services.house.add(
        "conversation",
        lambda conv: ConversationActor(
            conv,
            store=services.store,
            clock=services.clock,
            rules=services.rules,
            keyring=services.keyring,
            house=services.house,
            started=started,
            recent=recent,
            tally=services.tally,
            nudge=timers.nudge,
            mailbox=mailbox,
            commit_timeout_s=timeout,
            holder=services.standing.holder,
        ),
    )
    services.house.add(
        "desk",
        lambda pk: DeskActor(
            pk,
            store=services.store,
            clock=services.clock,
            capacity=capacity,
            settings=settings.desks,
            nudge=timers.nudge,
            changed=desk_changed,
            mailbox=mailbox,
            commit_timeout_s=timeout,
            holder=services.standing.holder,
        ),
    )
