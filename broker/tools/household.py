"""How the house makes its actors: those of the wire, and those of the network."""

from collections.abc import Callable
from functools import partial
from typing import Any

from broker.actors.agent import AgentActor
from broker.actors.agentdocs import read_facts
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
from broker.actors.push import PushActor
from broker.actors.recent import Recent
from broker.actors.report import ReportActor
from broker.actors.task import TaskActor
from broker.actors.timers import Timers
from broker.core.desk import Capacity
from broker.core.machine import Now
from broker.core.pace import Pace
from broker.core.resource import Quota
from broker.tools.context import Services
from broker.tools.parts import agent_told


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
    standing, told = services.standing, partial(agent_told, services)
    services.house.add("agent", lambda agent_id: AgentActor(agent_id, told=told, **parts))
    standing.learn("ag_", partial(read_facts, services.store))
    services.house.add("leaving", lambda agent_id: LeavingActor(agent_id, **parts))
    settings = services.settings.owners
    services.house.add("owner", lambda owner_id: OwnerActor(owner_id, settings=settings, **parts))
    standing.learn("ow_", partial(read_owner_facts, services.store))
    services.house.add("grant", lambda grant_id: GrantActor(grant_id, told=standing.told, **parts))
    standing.learn("gr_", partial(read_grant_facts, services.store))
    services.house.add("clients", lambda key: ClientsActor(key, **parts))
    services.house.add("assertion", lambda agent_id: AssertionActor(agent_id, **parts))
    services.house.add("irc", lambda account: BindingActor(account, **parts))
    witness = Witness()
    services.house.add(
        "auditor",
        lambda key: AuditorActor(
            key,
            keyring=services.keyring,
            keeper=services.keeper,
            witness=witness,
            new_id=services.new_id,
            **parts,
        ),
    )
    services.house.add("report", lambda report_id: ReportActor(report_id, **parts))
    pushes: dict[str, Any] = {"told": services.pusher.told, "new_id": services.new_id, **parts}
    services.house.add("push", lambda push_id: PushActor(push_id, **pushes))
    network, receipts = services.settings.network, services.receipts
    pair: dict[str, Any] = {"settings": network, "receipts": receipts, **parts}
    services.house.add("pair", lambda key: PairActor(key, **pair))
    services.house.add("task", lambda key: TaskActor(key, rouse=services.house.rouse, **pair))
    services.house.add("endpoint", lambda agent_id: EndpointActor(agent_id, **parts))
    limits = services.settings.limits
    pace = Pace(limits.channel_messages, limits.member_messages, limits.channel_window_ms / 1000)
    windows, started = Windows(pace.window_s), Now(services.clock.now_ms(), services.clock.monotonic())
    channel: dict[str, Any] = {"followers": services.followers, "receipts": services.receipts, **parts}
    services.house.add(
        "channel", lambda key: ChannelActor(key, started=started, windows=windows, pace=pace, **channel)
    )
    quota = Quota(network.resources, network.resource_bytes)
    services.house.add("library", lambda agent_id: LibraryActor(agent_id, quota=quota, **parts))
