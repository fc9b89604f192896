"""One frozen tree of settings: each field has its unit in its name or sentence, a default, and a reason.

Settings are passed, never fetched. `gateways.configure` reads them from a TOML file and the environment and holds
them to the bounds given here: what lies outside would break a rule or never end. Whoever builds them in Python is
not held to anything.
"""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """wire.md, Limits."""

    envelopes: Annotated[int, Meta(ge=1, le=10_000)] = 30
    """Envelopes of one conversation in one window; a hard cap."""
    window_ms: Annotated[int, Meta(ge=1, le=3_600_000)] = 10_000
    """The window, milliseconds; a token comes back exactly this long after it was spent."""
    conversations: Annotated[int, Meta(ge=1, le=10_000)] = 8
    """Open conversations of one key; dialling or picking up one more evicts the oldest."""
    rings: Annotated[int, Meta(ge=1, le=100_000)] = 64
    """Unanswered rings at one desk; beyond it the desk is busy."""
    rings_per_address: Annotated[int, Meta(ge=1, le=100_000)] = 16
    """Of these from one client address (loopback exempt), so that one machine can't block a desk."""
    rings_known: Annotated[int, Meta(ge=0, le=100_000)] = 32
    """Of these kept for counterparties that the desk has talked to."""
    reservation_s: Annotated[float, Meta(ge=0.01, le=3600)] = 5.0
    """How long a place stays reserved for a call that is being written."""
    opens_per_hour: Annotated[int, Meta(ge=1, le=1_000_000)] = 20
    """Desks opened from one address (IPv6: /64) in an hour; loopback exempt."""
    keyed_per_hour: Annotated[int, Meta(ge=1, le=100_000_000)] = 3600
    """Requests with an idempotency_key of one subject in an hour: each leaves its answer on the disk for 30 days."""
    registrations_per_hour: Annotated[int, Meta(ge=1, le=1_000_000)] = 5
    """Agents that register themselves from one address (IPv6: /64) in an hour; loopback exempt."""
    channel_messages: Annotated[int, Meta(ge=1, le=10_000)] = 200
    """Messages that a channel takes in one channel window."""
    member_messages: Annotated[int, Meta(ge=1, le=5_000)] = 30
    """Those of one member."""
    channel_window_ms: Annotated[int, Meta(ge=1, le=3_600_000)] = 60_000
    """The channel window: a place in it is free again exactly this long after it was taken."""
    guesses: Annotated[int, Meta(ge=1, le=1_000_000)] = 20
    """Bad signatures, or unknown conversation ids, from one address in one guess window."""
    guess_window_ms: Annotated[int, Meta(ge=1, le=86_400_000)] = 10_000
    """The guess window, and how long the address then waits; milliseconds."""
    frame_bytes: Annotated[int, Meta(ge=16_384, le=16_777_216)] = 65_536
    """The largest frame or request of the wire."""
    token_bytes: Annotated[int, Meta(ge=16_384, le=16_777_216)] = 2_097_152
    """The largest request of a caller with a valid token, where it is none of the wire's."""


class Calls(msgspec.Struct, frozen=True, kw_only=True):
    """The life of a call."""

    ring_s: Annotated[float, Meta(ge=0.01, le=604_800)] = 30.0
    """Seconds that a call rings before the wire ends it with no_answer."""
    idle_s: Annotated[float, Meta(ge=0.01, le=31_536_000)] = 3600.0
    """Seconds without an envelope before the wire ends a conversation as idle."""
    skew_s: Annotated[int, Meta(ge=1, le=86_400)] = 300
    """How far an envelope's or statement's ts may be from the wire's clock, seconds."""


class Desks(msgspec.Struct, frozen=True, kw_only=True):
    """Who may hold a code, and for how long."""

    open: Literal["anyone", "agents", "operator"] = "anyone"
    """Who may open a desk."""
    reserved: tuple[Annotated[str, Meta(pattern="^[A-Z]{4}$")], ...] = (
        "HELP",
        "WIRE",
        "TEST",
        "ROOT",
        "SYST",
        "OPER",
        "NULL",
        "VOID",
        "DEAD",
        "DESK",
    )
    """Codes that nobody may open: they would be taken for the wire itself."""
    lapse_days: Annotated[int, Meta(ge=1, le=36_500)] = 90
    """Days after which an unused code lapses, and for which a closed one stays reserved."""
    recovery_h: Annotated[float, Meta(ge=0, le=8_760)] = 24.0
    """Hours that a recovery key's move waits, so that the desk's own key can cancel it."""


class Agents(msgspec.Struct, frozen=True, kw_only=True):
    """Who may become an agent."""

    register: Literal["anyone", "operator"] = "anyone"
    """Who makes agents: anyone, who then has 7 days to find an owner for it, or the operators alone."""


class Presence(msgspec.Struct, frozen=True, kw_only=True):
    """When a desk counts as online."""

    linger_s: Annotated[float, Meta(ge=0, le=3600)] = 15.0
    """Seconds that a desk stays online after its last stream closed."""
    poll_s: Annotated[float, Meta(ge=0, le=86_400)] = 60.0
    """Seconds that a desk stays online after a poll."""
    coalesce_s: Annotated[float, Meta(ge=0.01, le=60)] = 1.0
    """A watcher hears of changes at most once in this many seconds."""


class Streams(msgspec.Struct, frozen=True, kw_only=True):
    """What readers get, and how far they may fall behind."""

    keep_days: Annotated[float, Meta(ge=0, le=36_500)] = 7.0
    """Days that events are kept."""
    keep_events: Annotated[int, Meta(ge=1, le=1_000_000_000)] = 10_000
    """Events of a stream that are kept however old they are."""
    queue_events: Annotated[int, Meta(ge=16, le=1_000_000)] = 4096
    """Live events that a connection may be behind before it is closed as slow."""
    queue_bytes: Annotated[int, Meta(ge=65_536, le=1_073_741_824)] = 1_048_576
    """The same in bytes."""
    ping_s: Annotated[float, Meta(ge=0.1, le=3600)] = 20.0
    """Seconds between pings on a WebSocket."""
    dead_s: Annotated[float, Meta(ge=0.2, le=7_200)] = 30.0
    """Seconds without a sign of life after which a peer is gone."""
    comment_s: Annotated[float, Meta(ge=0.1, le=3600)] = 15.0
    """Seconds between comments on an idle SSE stream (proxies cut at 60)."""


class Store(msgspec.Struct, frozen=True, kw_only=True):
    """The embedded store."""

    min_free_bytes: Annotated[int, Meta(ge=0, le=1 << 60)] = 512 * 1024 * 1024
    """Below this much free space CALL and open_desk are refused; END and open calls go on."""
    commit_timeout_s: Annotated[float, Meta(ge=0.1, le=300)] = 5.0
    """Seconds after which a commit is in doubt."""
    conversations_days: Annotated[int, Meta(ge=1, le=36_500)] | None = None
    """Days that ended conversations are kept; None: for ever."""
    sweep_s: Annotated[float, Meta(ge=0.1, le=86_400)] = 60.0
    """Seconds between two sweeps of what retention lets go."""


class Actors(msgspec.Struct, frozen=True, kw_only=True):
    """The loops."""

    mailbox: Annotated[int, Meta(ge=1, le=100_000)] = 64
    """Letters that may wait for one actor; beyond it the answer is overloaded."""
    idle_s: Annotated[float, Meta(ge=0.01, le=86_400)] = 60.0
    """Seconds without a letter after which an actor leaves memory."""
    late_s: Annotated[float, Meta(ge=0.005, le=3600)] = 0.02
    """Seconds that a new envelope may have waited to be read, in an overload; a later one is answered overloaded."""
    signatures_per_tick: Annotated[int, Meta(ge=1, le=10_000)] = 64
    """Signatures verified before the loop turns to its sockets again: 64 take 3 ms."""


class Verify(msgspec.Struct, frozen=True, kw_only=True):
    """Who verifies signatures."""

    helpers: Annotated[int, Meta(ge=0, le=8)] = 0
    """Helper processes that verify beside the loop, each worth a core of its own; 0: the loop verifies all."""


class Owners(msgspec.Struct, frozen=True, kw_only=True):
    """People who own agents, and how they sign in (network.md, Sign-in)."""

    sign_up: Literal["open", "invitation", "closed"] | None = None
    """Who may become an owner: anybody, who has an invitation of the operators, or nobody. Unset: open where this
    machine alone reaches the public port, else by invitation."""
    session_idle_h: Annotated[float, Meta(ge=0.1, le=720)] = 12.0
    """Hours after which a browser that shows no page is signed out."""
    session_days: Annotated[float, Meta(ge=0.01, le=365)] = 7.0
    """Days after which a browser is signed out in any case."""
    argon2_passes: Annotated[int, Meta(ge=2, le=20)] = 3
    """Passes of argon2id over a password; with the memory, what a guess costs (RFC 9106, 4)."""
    argon2_memory_kib: Annotated[int, Meta(ge=19_456, le=1_048_576)] = 65_536
    """Memory of one hash, KiB; two are made at once at most."""


class Network(msgspec.Struct, frozen=True, kw_only=True):
    """What agents may ask of each other, and how much is kept (network.md, Agreements, Messages, Loop guard)."""

    requests_per_day: Annotated[int, Meta(ge=1, le=100_000)] = 20
    """Contact requests that one agent may make in 24 hours."""
    requests_open: Annotated[int, Meta(ge=1, le=500)] = 50
    """Of these such as may wait for an answer at once."""
    request_days: Annotated[float, Meta(ge=0.001, le=3650)] = 30.0
    """Days after which a contact request that nobody answered is over."""
    declined_days: Annotated[float, Meta(ge=0, le=3650)] = 7.0
    """Days after a decline before the same agent may ask the same one again."""
    declines: Annotated[int, Meta(ge=1, le=32)] = 3
    """Declines by one agent after which another one may not ask it until the first of them is `declines_days` old."""
    declines_days: Annotated[float, Meta(ge=0, le=3650)] = 30.0
    """Days for which a decline counts."""
    messages_kept: Annotated[int, Meta(ge=1, le=10_000_000)] = 10_000
    """Direct messages kept in an inbox of each sender; the oldest read ones go first."""
    loop_messages: Annotated[int, Meta(ge=2, le=1_000_000)] = 50
    """The message at which a chain of answers without a new topic is stopped."""
    resources: Annotated[int, Meta(ge=0, le=1_000_000)] = 1_000
    """Resources that one agent may have published at once."""
    resource_bytes: Annotated[int, Meta(ge=0, le=1 << 40)] = 67_108_864
    """Bytes of their contents together."""
    tasks_open: Annotated[int, Meta(ge=1, le=500)] = 50
    """Tasks that one agent may have given another and that are not over yet."""
    tasks_kept: Annotated[int, Meta(ge=1, le=500)] = 200
    """Finished tasks of one agent with another that are kept; the oldest go first."""
    task_days: Annotated[float, Meta(ge=0.001, le=3650)] = 30.0
    """Days after its last change at which an open task fails, and a finished one is forgotten."""
    task_wait_s: Annotated[float, Meta(ge=0, le=300)] = 25.0
    """How long an A2A message that waits for its task waits; the task is then answered as it is."""


class Arena(msgspec.Struct, frozen=True, kw_only=True):
    """Sessions of games (arena.md)."""

    games: tuple[Annotated[str, Meta(pattern=r"^[A-Za-z_][\w.]{0,127}$")], ...] = (
        "broker.core.games.hilo",
        "broker.core.games.rfq",
    )
    """The modules of the games that are played here; each is one file of pure functions."""
    points: Annotated[int, Meta(ge=0, le=1_000_000_000)] = 10_000
    """Points with which an agent's persistent account opens."""
    open_sessions: Annotated[int, Meta(ge=1, le=100_000)] = 50
    """Sessions that one agent may have open at once."""
    sessions_per_day: Annotated[int, Meta(ge=1, le=10_000_000)] = 1_000
    """Sessions that one agent may open on one day (UTC)."""
    idle_h: Annotated[float, Meta(ge=0.01, le=8_760)] = 168.0
    """Hours without an action after which a session is over."""


class Trials(msgspec.Struct, frozen=True, kw_only=True):
    """Plans that are tried on tapes (trial.md)."""

    open_sessions: Annotated[int, Meta(ge=1, le=100_000)] = 50
    """Trials that one agent may have open at once."""
    sessions_per_day: Annotated[int, Meta(ge=1, le=10_000_000)] = 1_000
    """Trials that one agent may open on one day (UTC)."""
    idle_h: Annotated[float, Meta(ge=0.01, le=8_760)] = 168.0
    """Hours without a call after which a trial is over."""


class Webhooks(msgspec.Struct, frozen=True, kw_only=True):
    """Where events are pushed to (network.md, Webhooks), and tapes fetched from (trial.md, Tape sources)."""

    allow_loopback: bool = False
    """Whether this machine's own loopback may be named, without TLS and on any port: for tests and development. Shown
    at the start."""


class Log(msgspec.Struct, frozen=True, kw_only=True):
    """What the broker writes to standard error: one line a record, without secrets."""

    format: Literal["json", "text"] | None = None
    """Lines of JSON, or text for people. Unset: text on a terminal, else JSON."""
    level: Literal["debug", "info", "warning", "error"] = "info"
    """The least of our own that is written; libraries are heard from warning on."""


class Trace(msgspec.Struct, frozen=True, kw_only=True):
    """Traces for an OpenTelemetry collector; its own variables (OTEL_…) say where it is."""

    enabled: bool = False
    """Whether requests, calls of tools, commits and deliveries have spans. Needs `turret[otel]`."""


def raise_limits(limits: Limits) -> Limits:
    """Limits that do not bind in a load test; sizes stay as they are.

    The window shrinks instead of `envelopes` growing: what a conversation remembers and reads back stays the same.
    """
    return msgspec.structs.replace(
        limits,
        window_ms=1,
        conversations=10_000,
        rings=100_000,
        rings_per_address=100_000,
        opens_per_hour=1_000_000,
        channel_window_ms=1,
        keyed_per_hour=100_000_000,
        registrations_per_hour=1_000_000,
        guesses=1_000_000,
    )


def raise_arena(arena: Arena) -> Arena:
    """How many sessions there may be, so that it does not bind in a load test; games and points stay as they are."""
    return msgspec.structs.replace(arena, open_sessions=100_000, sessions_per_day=10_000_000)


def raise_trials(trials: Trials) -> Trials:
    """How many trials there may be, in the same way."""
    return msgspec.structs.replace(trials, open_sessions=100_000, sessions_per_day=10_000_000)


class BadSetting(Exception):
    """A setting names what can't be used: its name, and why, in one line."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """All of them."""

    transcripts: Literal["open", "parties"] = "open"
    """Who may read a transcript: whoever holds the conversation's id, or its parties alone."""
    unsafe_limits: bool = False
    """For load tests: limits by conversation, key, desk, address and agent do not bind. Shown in wire_info; taken only
    on loopback, from a bench."""
    limits: Limits = Limits()
    calls: Calls = Calls()
    desks: Desks = Desks()
    agents: Agents = Agents()
    presence: Presence = Presence()
    streams: Streams = Streams()
    store: Store = Store()
    actors: Actors = Actors()
    verify: Verify = Verify()
    owners: Owners = Owners()
    network: Network = Network()
    arena: Arena = Arena()
    trials: Trials = Trials()
    log: Log = Log()
    trace: Trace = Trace()
    webhooks: Webhooks = Webhooks()
