"""What one running broker is made of: the parts that its tools use, put together, and told what the store knows.

A part is made here, and kept in Services; what runs for itself is started by open_broker.
"""

import secrets
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from broker.actors.activity import Activity
from broker.actors.agentdocs import read_all_facts
from broker.actors.attempts import Attempts
from broker.actors.conversation import Tally
from broker.actors.guard import CAP, HOUR_S, Guard, Times
from broker.actors.headkeeper import HeadKeeper
from broker.actors.house import House
from broker.actors.mill import Mill
from broker.actors.passwords import Passwords
from broker.actors.played import Played, Rehearsed
from broker.actors.player import Vault
from broker.actors.presence import Presence
from broker.actors.pusher import Courier, Pusher
from broker.actors.receipts import Receipts
from broker.actors.safe import Safe
from broker.actors.signin import SignIn
from broker.actors.standing import Facts, Standing
from broker.actors.streams import Hub
from broker.actors.suspended import Suspended
from broker.actors.tapes import Tapes
from broker.actors.tapesource import Source, TapeSource
from broker.actors.verifier import Verifier
from broker.clock import Clock
from broker.config import BadSetting, Settings
from broker.core.conversation import Rules
from broker.core.games import table
from broker.core.taskpush import a2a_form
from broker.core.webhook import webhook_form
from broker.store.port import Store
from broker.tools.auditing import AUDITED_AN_HOUR
from broker.tools.context import Services
from broker.tools.keyrate import KeyRate
from broker.tools.sealing import root_of, seal_with, unseal
from broker.wire.ids import MAX_SAFE
from broker.wire.keyring import Keyring
from broker.wire.safekeys import SafeKeys

MOST_COUNTED: Final = 100_000
"""Open sessions that the start counts at most: it reads each."""


async def make_services(
    settings: Settings,
    store: Store,
    clock: Clock,
    keyring: Keyring,
    house: House,
    rules: Rules,
    *,
    info: Callable[[], dict[str, Any]],
    keeper: HeadKeeper | None,
    courier: Courier | None,
    source: Source | None,
    safe_keys: SafeKeys,
) -> Services:
    """The parts of a broker on an open store, of which the hub hears each commit from now on.

    They know which desks and agents are suspended, and whose each key is. Raises what the store raises; cancelling
    leaves the hub as the store's listener.
    """
    hub, standing = Hub(store, settings.streams, clock), Standing(now_ms=clock.now_ms)
    safe = await _safe(store, clock, safe_keys)
    parts = {"store": store, "clock": clock, "house": house, "standing": standing}
    mill = Mill(store, house)
    pusher = _pusher(keyring, safe, courier, **parts)
    hub.beside = pusher.committed
    services = Services(
        store=store,
        clock=clock,
        settings=settings,
        keyring=keyring,
        house=house,
        hub=hub,
        presence=Presence(settings.presence, clock),
        guard=Guard(settings.limits, clock),
        verifier=Verifier(settings.actors.signatures_per_tick, helpers=settings.verify.helpers),
        rules=rules,
        tally=Tally(),
        suspended=Suspended(each.id for each in await store.due("desk", "suspended", 1, 10_000)),
        info=info,
        standing=standing,
        activity=Activity(clock),
        receipts=Receipts(settings.network.loop_messages),
        key_rate=KeyRate(clock, settings.limits.keyed_per_hour),
        attempts=Attempts(clock),
        passwords=Passwords(settings.owners),
        sign_in=SignIn(clock),
        keeper=keeper,
        audited=Times(AUDITED_AN_HOUR, HOUR_S, CAP),
        pusher=pusher,
        safe=safe,
        games=_games(settings),
        vault=_vault(keyring),
        mill=mill,
        tapes=Tapes(store),
        tape_source=TapeSource(source, mill, house),
        played=Played(await _count_open(store, "arena")),
        rehearsed=Rehearsed(await _count_open(store, "trial")),
    )
    await _learn(services)
    return services


async def _count_open(store: Store, kind: str) -> int:
    """Sessions of a kind whose time is not over, as far as they are counted."""
    return len(await store.due(kind, "due", MAX_SAFE, MOST_COUNTED))


async def _learn(services: Services) -> None:
    """What is stored of each agent, for who must know it without a look."""
    async for agent_id, facts in read_all_facts(services.store):
        agent_told(services, agent_id, facts)


async def _safe(store: Store, clock: Clock, keys: SafeKeys) -> Safe:
    safe = Safe(store=store, clock=clock, keys=keys, entropy=secrets.token_bytes)
    await safe.look()
    return safe


def _pusher(keyring: Keyring, safe: Safe, courier: Courier | None, **parts: Any) -> Pusher:
    return Pusher(
        forms={"webhook": webhook_form, "a2a": a2a_form},
        opened=partial(unseal, keyring),
        fill=safe.fill,
        chance=lambda: secrets.randbits(32) / 2**32,
        courier=courier,
        **parts,
    )


def _games(settings: Settings) -> table.Table:
    try:
        return table.load(settings.arena.games)
    except ValueError as error:
        raise BadSetting(f"arena.games: {error}") from error


def _vault(keyring: Keyring) -> Vault:
    sealing = partial(seal_with, keyring, secrets.token_bytes)
    return Vault(partial(root_of, keyring), sealing, partial(unseal, keyring))


def agent_told(services: Services, agent_id: str, facts: Facts) -> None:
    """A commit has changed an agent: its right to speak, and that of its keys on the wire."""
    services.standing.told(agent_id, facts)
    services.pusher.stands(agent_id)
    services.suspended.agent(agent_id, facts.pks if facts.suspended else frozenset())
