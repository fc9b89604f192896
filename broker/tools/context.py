"""Who calls, and the parts of the broker that a tool may use."""

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from broker.actors.conversation import Tally
from broker.actors.guard import Guard
from broker.actors.house import House
from broker.actors.presence import Presence
from broker.actors.streams import Hub
from broker.actors.verifier import Verifier
from broker.clock import Clock
from broker.config import Settings
from broker.core.conversation import Rules
from broker.store.port import Store
from broker.tools.follows import Follows
from broker.wire.ids import Pk
from broker.wire.keyring import Keyring

Progress = Callable[[bytes], Awaitable[None]]
"""Takes one event's JSON text while the tool is still running."""


class Caller(msgspec.Struct, frozen=True, kw_only=True):
    """Who is on the other side of a door: an address, and what it has proved."""

    address: str = "127.0.0.1"
    """The client's address, seen through configured proxies."""
    loopback: bool = True
    """Exempt from the limits that are counted by address."""
    pk: Pk | None = None
    """The key that it proved: an authenticated connection, or a follow statement's."""
    code: str | None = None
    """A follow statement for one code: the stream ends when the desk moves or closes."""
    until: int | None = None
    """Unix seconds at which the capability ends."""
    authenticated: bool = False
    """The connection answered its challenge (not merely showed a read capability)."""
    principal: str | None = None
    """For whom its token speaks: issuer, client and subject as one text."""
    operator: bool = False

    @property
    def identity(self) -> str | None:
        """Whose its sessions are: who its token speaks for, else the key that it proved."""
        return self.principal or self.pk

    @property
    def exempt(self) -> bool:
        """Whether the guessing limit passes it by."""
        return self.loopback or self.authenticated


class Services(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of one running broker."""

    store: Store
    clock: Clock
    settings: Settings
    keyring: Keyring
    house: House
    hub: Hub
    presence: Presence
    guard: Guard
    verifier: Verifier
    rules: Rules
    tally: Tally
    suspended: set[str]
    """Keys of suspended desks: kept in memory, since every envelope asks."""
    info: Callable[[], dict[str, Any]]
    """The well-known document (wire.md, wire_info)."""
    follows: Follows = msgspec.field(default_factory=Follows)
    """Follow statements that were verified."""


class Context(msgspec.Struct, frozen=True):
    """One call: who, with what, and where progress goes (None: the door cannot stream)."""

    caller: Caller
    services: Services
    progress: Progress | None = None
