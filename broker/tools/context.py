"""Who calls, and the parts of the broker that a tool may use."""

import secrets
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from broker.actors.activity import Activity
from broker.actors.attempts import Attempts
from broker.actors.conversation import Tally
from broker.actors.followers import Followers
from broker.actors.grader import Grader
from broker.actors.guard import Guard, Times
from broker.actors.headkeeper import HeadKeeper
from broker.actors.house import House
from broker.actors.mill import Mill
from broker.actors.once import Once
from broker.actors.passwords import Passwords
from broker.actors.played import Played, Rehearsed
from broker.actors.player import Vault
from broker.actors.presence import Presence
from broker.actors.pusher import Pusher
from broker.actors.receipts import Receipts
from broker.actors.safe import Safe
from broker.actors.signin import SignIn
from broker.actors.standing import Standing
from broker.actors.streams import Hub
from broker.actors.suspended import Suspended
from broker.actors.tapes import Tapes
from broker.actors.tapesource import TapeSource
from broker.actors.verifier import Verifier
from broker.clock import Clock
from broker.config import Settings
from broker.core.audit import RefusedSums
from broker.core.conversation import Rules
from broker.core.games.table import Table
from broker.store.port import Store
from broker.tools.follows import Follows
from broker.tools.keyrate import KeyRate
from broker.tools.lanes import Lanes
from broker.tools.underway import Underway
from broker.wire import base64url
from broker.wire.ids import Pk, ulid
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
    """Its token's subject: an agent's id or an owner's; of an outside issuer's other subjects, issuer and subject."""
    agent: str | None = None
    """The agent that the token acts for."""
    owner: str | None = None
    """The owner that the token acts for, or the owner of that agent."""
    client: str | None = None
    """The OAuth client to which the token was given."""
    grant: str | None = None
    """The owner's consent that it came of."""
    kid: str | None = None
    """The agent's key that it was got with."""
    issued: int = 0
    """Unix seconds at which the token was made."""
    scopes: frozenset[str] = frozenset()
    """What the token allows."""
    operator: bool = False

    @property
    def identity(self) -> str | None:
        """Whose its sessions are: who its token speaks for, else the key that it proved."""
        return self.principal or self.pk

    @property
    def exempt(self) -> bool:
        """Whether the guessing limit passes it by."""
        return self.loopback or self.authenticated or self.principal is not None


class Services(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of one running broker, put together by broker.tools.parts."""

    store: Store
    clock: Clock
    settings: Settings
    keyring: Keyring
    entropy: Callable[[int], bytes] = secrets.token_bytes
    """So many bytes of chance, for ids and secrets."""
    info: Callable[[], dict[str, Any]]
    """The well-known document (wire.md, wire_info)."""

    # Who does what, and who hears of it.
    house: House
    """All actors."""
    hub: Hub
    """All readers of streams."""
    presence: Presence
    pusher: Pusher
    """Sends events to the URLs that were named for them."""

    # The wire.
    rules: Rules
    """Of calls, for every conversation."""
    tally: Tally
    verifier: Verifier
    guard: Guard
    follows: Follows = msgspec.field(default_factory=Follows)
    """Follow statements that were verified."""
    suspended: Suspended
    """Keys of suspended desks and agents: kept in memory, since every envelope asks."""

    # Who may speak, and how somebody signs in.
    standing: Standing
    """Who may still speak."""
    activity: Activity
    """When agents last called something."""
    sign_in: SignIn
    """Requests that wait for an owner's consent, and who was refused a sign-in."""
    attempts: Attempts
    """How often somebody may try to sign in."""
    passwords: Passwords
    """Owners' passwords, hashed off the loop."""

    # The network.
    followers: Followers = msgspec.field(default_factory=Followers)
    """Who follows which channel."""
    receipts: Receipts
    """Who received what lately, for the loop guard."""
    underway: Underway = msgspec.field(default_factory=Underway)
    """Requests with an idempotency key that are being done."""
    key_rate: KeyRate
    """How many of them there may be."""
    searching: Lanes = msgspec.field(default_factory=Lanes)
    """Who searches the library now, by agent."""
    lanes: Lanes = msgspec.field(default_factory=Lanes)
    """Who begins a task now, of those of one agent with another."""

    # The arena.
    games: Table
    """The games that are played here."""
    vault: Vault
    """What hides the secrets of sessions."""
    played: Played
    """What all sessions count together."""
    rehearsed: Rehearsed
    """What all trials count together."""
    mill: Mill
    """Who computes ticks of trials now, and the advances that take long."""
    tapes: Tapes
    """The tapes of trials, in memory."""
    tape_source: TapeSource
    """Fetches tapes from where operators say."""
    playing: Lanes = msgspec.field(default_factory=Lanes)
    """Who plays with its persistent account now, by agent."""

    # Secrets of agents.
    safe: Safe

    # Trials.
    grader: Grader = msgspec.field(default_factory=Grader)
    """Grades published trials, one after the other."""

    # The audit.
    keeper: HeadKeeper | None = None
    """Where its head is kept beside the store; None: nowhere."""
    audited: Times
    """How often agents had something noted, which is kept for ever."""
    refused_sums: RefusedSums = msgspec.field(default_factory=RefusedSums)
    """How refused sign-ins are summed up for it."""

    def new_id(self, prefix: str) -> str:
        """A fresh id: the prefix (`ag_`) and a ULID."""
        return prefix + ulid(self.clock.now_ms(), self.entropy(10))

    def new_secret(self, size: int = 32) -> str:
        """So many bytes of chance as text (base64url): no guess finds it, so that a plain hash of it may be kept."""
        return base64url.encode(self.entropy(size))


class Context(msgspec.Struct, frozen=True):
    """One call: who, with what, and where progress goes (None: the door cannot stream)."""

    caller: Caller
    services: Services
    progress: Progress | None = None
    once: Once | None = None
    """The request's idempotency key: whoever makes the change remembers the answer with it, in the same commit."""
