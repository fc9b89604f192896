"""What `turret check` finds in the arena: sessions that are what their events say, and points of which none is lost.

1. Nothing is dealt again: a check needs no game, and no secret. `turret arena verify` replays what is published.
2. A session's document is what its events add up to, and its artifact is these events.
3. An agent's persistent account is what the entries of all its sessions leave there. Sessions play with it side by
   side: each change is a step from one balance to another, and together the steps are one way from 0 to what it has.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final, NamedTuple, Protocol, TypeVar

import msgspec
from msgspec.structs import replace

from broker.actors.record import Index
from broker.actors.session import Rejected
from broker.core import arena as core
from broker.core.arena import AccountRow, Acted, Closed, Ended, Opened, PlayerRow, SessionRow, change_of
from broker.core.artifact import KIND, ref_of
from broker.core.chance import Secret, commit_of
from broker.store.port import Document, Entry, Fault, Snapshot

_EVENT: Final[Any] = core.Event


class Log(NamedTuple):
    """A log that a session leads to: its name and its rows."""

    name: str
    rows: int


class _Totals(msgspec.Struct):
    """What the sessions of one agent come to."""

    numbers: list[int] = []
    """Of its sessions."""
    account: AccountRow = AccountRow(0, 0, 0)
    """By the entries of those that are persistent."""
    steps: Counter[int] = msgspec.field(default_factory=Counter)
    """How often a balance was come to, less how often it was left."""
    seen: set[int] = set()
    """Balances that their events say."""
    persistent: int = 0


class _Kind(msgspec.Struct):
    kind: str = ""


def check_arena(snapshot: Snapshot) -> Iterator[tuple[tuple[Log, ...], list[Fault]]]:
    """The logs of each session, and what is wrong with it; at the end what is wrong with players, accounts and
    artifacts. Raises what reading raises."""
    totals: dict[str, _Totals] = {}
    refs: set[str] = set()
    for document in snapshot.documents("arena"):
        events, rejected = (
            snapshot.rows(name(document.id)) for name in (core.session_log, core.rejected_log)
        )
        faults = [*_session(snapshot, document, events, totals, refs), *check_rejected(document.id, rejected)]
        logs = (
            Log(core.session_log(document.id), len(events)),
            Log(core.rejected_log(document.id), len(rejected)),
        )
        yield logs, faults
    yield (), [*_players(snapshot, totals), *_accounts(snapshot, totals), *_artifacts(snapshot, refs)]


def _session(
    snapshot: Snapshot, document: Document, rows: list[Entry], totals: dict[str, _Totals], refs: set[str]
) -> Iterator[Fault]:
    """One session: its events, then its document and its artifact beside them."""
    id = document.id
    try:
        row = msgspec.json.decode(document.doc, type=SessionRow)
    except msgspec.MsgspecError as error:
        yield Fault("document", id, f"is no session's: {error}")
        return
    try:
        events = [msgspec.json.decode(each.data, type=_EVENT) for each in rows]
    except msgspec.MsgspecError as error:
        yield Fault("session", id, f"no event: {error}")
        return
    if [each.n for each in rows] != list(range(len(rows))):
        yield Fault("session", id, "its events are not numbered from 0 on")
    if (
        not events
        or not isinstance(events[0], Opened)
        or any(isinstance(each, Opened) for each in events[1:])
    ):
        yield Fault("session", id, "its first event, and no other, is that it was opened")
        return
    yield from _points(id, events, totals.setdefault(row.agent_id, _Totals()))
    yield from _ending(id, events)
    ref = None
    if len(events) > 1 and events[-1].ended is not None:
        content = core.artifact_of(events)
        ref = ref_of(content)
        refs.add(ref)
        published = snapshot.document(KIND, ref)
        if published is None or published.doc != content:
            yield Fault("session", id, f"its artifact {ref} is not there as it was published")
    found = _by_events(row, events, rows, ref)
    yield from check_document(snapshot, "arena", id, row, found, core.index_of(row))


class Listed(Protocol):
    """A session's document, of whatever is played, as far as it is found by it."""

    @property
    def session_id(self) -> str: ...
    @property
    def due(self) -> int | None: ...
    @property
    def over(self) -> str | None: ...
    @property
    def __struct_fields__(self) -> tuple[str, ...]: ...


RowT = TypeVar("RowT", bound=Listed)


def check_document(
    snapshot: Snapshot, kind: str, id: str, row: RowT, found: RowT, index: Index
) -> Iterator[Fault]:
    """A session's document beside what its events say (`found`), and what it is to be found by."""
    for name in row.__struct_fields__:
        if (said := getattr(row, name)) != (told := getattr(found, name)):
            yield Fault("document", id, f"{name} is {said!r}, its events say {told!r}")
    if row.session_id != id:
        yield Fault("document", id, f"says that it is {row.session_id}")
    if (row.due is None) != (row.over is not None):
        yield Fault("document", id, "is due though it is over, or never though it is open")
    if snapshot.marks(kind, id) != set(index):
        yield Fault("document", id, "is not found by what it says")


def _by_events(row: SessionRow, events: list[Any], rows: list[Entry], ref: str | None) -> SessionRow:
    """A session's document as its events have it; the rest as it says."""
    opened: Opened = events[0]
    last = events[-1].ended if len(events) > 1 else None
    acted = [each for each in events if isinstance(each, Acted)]
    return replace(
        row,
        agent_id=opened.agent_id,
        game=opened.game,
        game_version=opened.game_version,
        mode=opened.mode,
        balance=acted[-1].balance if acted else opened.balance,
        net=sum(change_of(each.entries) for each in acted),
        opened_at=rows[0].at,
        version=len(events) - 1,
        over=None if last is None else last.over,
        ref=ref,
    )


def _points(id: str, events: list[Any], totals: _Totals) -> Iterator[Fault]:
    """Points by double entry: each event's sum is 0, and balances follow from one to the next."""
    opened: Opened = events[0]
    totals.numbers.append(opened.games)
    before = 0 if opened.entries else opened.balance
    for n, event in enumerate(events):
        if isinstance(event, Closed):
            continue
        if sum(points for _, points in event.entries):
            yield Fault("session", id, "its entries do not sum to 0", n)
        change = change_of(event.entries)
        if event.balance < 0 or event.balance < change:
            yield Fault("session", id, f"a balance of {event.balance} after {change:+}", n)
        if opened.mode == "persistent":
            _step(totals, event, change)
        elif event.balance != before + change:
            yield Fault("session", id, f"a balance of {event.balance} after {before} and {change:+}", n)
        before = event.balance
    totals.persistent += opened.mode == "persistent"


def _step(totals: _Totals, event: Opened | Acted, change: int) -> None:
    """An event of a persistent account's."""
    if event.entries:
        totals.steps[event.balance] += 1
        totals.steps[event.balance - change] -= 1
    totals.seen.add(event.balance)
    totals.account = core.added(totals.account, event.entries)


def _ending(id: str, events: list[Any]) -> Iterator[Fault]:
    """Nothing follows the end, and a secret that is shown is the one that was committed to."""
    opened: Opened = events[0]
    ends: list[tuple[int, Ended]] = [
        (n, each.ended) for n, each in enumerate(events[1:], 1) if each.ended is not None
    ]
    for n, ended in ends:
        if n != len(events) - 1:
            yield Fault("session", id, "events follow its end", n)
        if ended.seed is None or ended.salt is None:
            continue
        try:
            commit = commit_of(Secret(ended.seed, ended.salt), opened.agent_id, opened.games)
        except ValueError:
            commit = ""
        if commit != opened.commit:
            yield Fault("session", id, "its seed and salt are not those that were committed to", n)


def check_rejected(id: str, rows: list[Entry]) -> Iterator[Fault]:
    """A session's rejected attempts, of whatever is played."""
    for number, entry in enumerate(rows):
        try:
            msgspec.json.decode(entry.data, type=Rejected)
        except msgspec.MsgspecError as error:
            yield Fault("session", id, f"no rejected attempt: {error}", number)
        if entry.n != number:
            yield Fault("session", id, f"a rejected attempt is stored as row {entry.n}", number)


def _players(snapshot: Snapshot, totals: dict[str, _Totals]) -> Iterator[Fault]:
    """Each agent's sessions are numbered from 0 on, and as many as it has opened."""
    opened = {agent_id: sorted(each.numbers) for agent_id, each in totals.items()}
    for document in snapshot.documents("player"):
        try:
            row = msgspec.json.decode(document.doc, type=PlayerRow)
        except msgspec.MsgspecError as error:
            yield Fault("document", document.id, f"is no player's: {error}")
            opened.pop(document.id, None)
            continue
        if row.agent_id != document.id:
            yield Fault("document", document.id, f"is the player {row.agent_id}")
        if (numbers := opened.pop(document.id, [])) != list(range(row.games)):
            said = f"has opened {row.games} sessions, and {len(numbers)} are there, each number once or not"
            yield Fault("document", document.id, said)
    for agent_id in sorted(opened):
        yield Fault("document", agent_id, "has sessions, and no document of a player")


def _accounts(snapshot: Snapshot, totals: dict[str, _Totals]) -> Iterator[Fault]:
    """Each persistent account is what its sessions' entries leave there."""
    played = {agent_id: each for agent_id, each in totals.items() if each.persistent}
    for document in snapshot.documents("account"):
        try:
            row = msgspec.json.decode(document.doc, type=AccountRow)
        except msgspec.MsgspecError as error:
            yield Fault("document", document.id, f"is no account: {error}")
            played.pop(document.id, None)
            continue
        sums = played.pop(document.id, None) or _Totals()
        if row != sums.account:
            yield Fault("document", document.id, f"the account is {row}, its sessions say {sums.account}")
        way = Counter(sums.steps)
        way[0] += 1
        way[row.balance] -= 1
        if any(way.values()) or not sums.seen <= {0, *sums.steps}:
            yield Fault("document", document.id, "the balances of its sessions are not those of one account")
    for agent_id in sorted(played):
        yield Fault("document", agent_id, "has persistent sessions, and no account")


def _artifacts(snapshot: Snapshot, refs: set[str]) -> Iterator[Fault]:
    """Each artifact has the hash that names it; one of a session is some session's."""
    for document in snapshot.documents(KIND):
        if ref_of(document.doc) != document.id:
            yield Fault("document", document.id, "is an artifact whose bytes have another hash")
        elif document.id not in refs and kind_of(document.doc) == core.KIND:
            yield Fault("document", document.id, "is the artifact of a session that is not there")


def kind_of(content: bytes) -> str:
    """What kind of artifact this is; empty where it has none."""
    try:
        return msgspec.json.decode(content, type=_Kind).kind
    except msgspec.MsgspecError:
        return ""
