"""How the house makes its actors: those of the wire, and those of the network."""

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from broker.actors.actor import Actor
from broker.actors.agent import AgentActor
from broker.actors.agentdocs import read_facts
from broker.actors.arena import ArenaActor
from broker.actors.auditor import AuditorActor, Witness
from broker.actors.binding import BindingActor
from broker.actors.channel import ChannelActor, Windows
from broker.actors.conversation import ConversationActor
from broker.actors.desk import DeskActor
from broker.actors.endpoint import EndpointActor
from broker.actors.grant import AssertionActor, ClientsActor, GrantActor
from broker.actors.grant import read_facts as read_grant_facts
from broker.actors.leaving import LeavingActor
from broker.actors.library import LibraryActor
from broker.actors.owner import OwnerActor
from broker.actors.owner import read_facts as read_owner_facts
from broker.actors.pair import PairActor
from broker.actors.player import PlayerActor
from broker.actors.push import PushActor
from broker.actors.recent import Recent
from broker.actors.report import ReportActor
from broker.actors.safe import SafeActor
from broker.actors.tapesource import WHO
from broker.actors.tapestore import TapeActor
from broker.actors.task import TaskActor
from broker.actors.timers import Timers
from broker.actors.trainee import TraineeActor
from broker.actors.trial import TrialActor
from broker.core.desk import Capacity
from broker.core.machine import Now
from broker.core.pace import Pace
from broker.core.resource import Quota
from broker.tools.context import Services
from broker.tools.parts import agent_told

PLAIN: Final[dict[str, Callable[..., Actor[Any]]]] = {
    "endpoint": EndpointActor,
    "clients": ClientsActor,
    "assertion": AssertionActor,
    "irc": BindingActor,
    "report": ReportActor,
    "safe": SafeActor,
}
"""The actors that need nothing of their own."""


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


def add_network_actors(services: Services, timers: Timers) -> None:
    """Say how the actors of the network are made (each is one stored document: broker.actors.record), and how Standing
    reads what is true of agents, owners and consents."""
    parts: dict[str, Any] = {
        "store": services.store,
        "clock": services.clock,
        "nudge": timers.nudge,
        "mailbox": services.settings.actors.mailbox,
        "commit_timeout_s": services.settings.store.commit_timeout_s,
    }

    def add(kind: str, actor: Callable[..., Actor[Any]], **more: Any) -> None:
        services.house.add(kind, lambda key: actor(key, **more, **parts))

    standing, store, rouse = services.standing, services.store, services.house.rouse
    standing.learn("ag_", partial(read_facts, store))
    standing.learn("ow_", partial(read_owner_facts, store))
    standing.learn("gr_", partial(read_grant_facts, store))
    network, limits = services.settings.network, services.settings.limits
    receipts, new_id = services.receipts, services.new_id

    for kind, plain in PLAIN.items():
        add(kind, plain)
    add("agent", AgentActor, told=partial(agent_told, services))
    add("leaving", LeavingActor, rouse=rouse)
    add("owner", OwnerActor, settings=services.settings.owners)
    add("grant", GrantActor, told=standing.told)
    add("push", PushActor, told=services.pusher.told, new_id=new_id)
    add("pair", PairActor, settings=network, receipts=receipts)
    add("task", TaskActor, settings=network, receipts=receipts, rouse=rouse)
    add("library", LibraryActor, quota=Quota(network.resources, network.resource_bytes))
    _add_sessions(add, services)
    pace = Pace(limits.channel_messages, limits.member_messages, limits.channel_window_ms / 1000)
    add(
        "channel",
        ChannelActor,
        followers=services.followers,
        receipts=receipts,
        pace=pace,
        windows=Windows(pace.window_s),
        started=Now(services.clock.now_ms(), services.clock.monotonic()),
    )
    add(
        "auditor",
        AuditorActor,
        keyring=services.keyring,
        keeper=services.keeper,
        witness=Witness(),
        new_id=new_id,
    )


def _add_sessions(add: Callable[..., None], services: Services) -> None:
    """Those of the arena and of trials, and of the tapes that trials run on."""
    settings, mill, new_id = services.settings, services.mill, services.new_id
    arena: dict[str, Any] = {
        "settings": settings.arena,
        "vault": services.vault,
        "played": services.played,
    }
    add("player", PlayerActor, **arena)
    add("arena", ArenaActor, games=services.games, **arena)
    trials: dict[str, Any] = {
        "settings": settings.trials,
        "tapes": services.tapes,
        "rehearsed": services.rehearsed,
    }
    add("tape", TapeActor, turn=partial(mill.turn, WHO))
    add("trainee", TraineeActor, **trials)
    add("trial", TrialActor, mill=mill, new_id=new_id, **trials)
