"""What two agents have agreed on: asked, accepted, revoked, expired (network.md, Agreements).

1. A pair is one row: the requests that wait, the agreements that hold, what was declined, and how many messages are
   kept each way. What is over leaves it; its last state stands in a document of its own.
2. Nobody may do more than an agreement that holds now says; nothing is remembered of one that ended.
3. What an agent is told never tells a policy from a decision: a decline is a decline.
"""

from typing import Final, Literal

import msgspec

from broker.wire.refusals import Refusal, refuse

Scope = Literal["message", "channel", "task", "resource"]
Waits = Literal["agent", "owner"]
RequestState = Literal["pending", "accepted", "declined", "cancelled", "expired"]
AgreementState = Literal["active", "revoked", "expired", "replaced"]

SCOPES: Final[tuple[Scope, ...]] = ("message", "channel", "task", "resource")
DAY_MS: Final = 86_400_000
MOST_AGREEMENTS: Final = 8
"""Agreements of one pair that hold at once."""


class Request(msgspec.Struct, frozen=True, omit_defaults=True):
    """A contact request (kind "contact", id = request_id). Times are wall milliseconds."""

    request_id: str
    asker: str
    target: str
    purpose: str
    scopes: tuple[Scope, ...]
    ttl_days: int
    asked_at: int
    expires_at: int
    """After this nobody answers it any more."""
    asker_name: str = ""
    target_name: str = ""
    owner_id: str | None = None
    """The owner of the target who is to decide while it is the owner; None: the target itself."""
    status: RequestState = "pending"
    ended_at: int | None = None
    agreement_id: str | None = None


class Agreement(msgspec.Struct, frozen=True, omit_defaults=True):
    """An agreement (kind "agreement", id = agreement_id). Times are wall milliseconds."""

    agreement_id: str
    one: str
    """Who asked; of a one-way agreement, who may."""
    other: str
    scopes: tuple[Scope, ...]
    made_at: int
    expires_at: int | None = None
    """None: not by itself."""
    one_way: bool = False
    """An operator's: `one` may act towards `other`, not the other way round."""
    one_name: str = ""
    other_name: str = ""
    request_id: str | None = None
    status: AgreementState = "active"
    ended_at: int | None = None
    ended_by: str | None = None
    """The agent that revoked it, or "operator"."""
    slots: tuple[str, ...] = ()
    """Agents that may hold no other one: each has the document that says so (kind "slot")."""


class Lane(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is kept of the messages to one of the two."""

    kept: int = 0
    unread: int = 0


class PairRow(msgspec.Struct, frozen=True, omit_defaults=True):
    """Two agents (kind "pair", id = pair_key)."""

    agents: tuple[str, str]
    requests: tuple[Request, ...] = ()
    """Those that wait: at most one each way."""
    agreements: tuple[Agreement, ...] = ()
    """Those that hold, the oldest first."""
    declines: dict[str, tuple[int, ...]] = {}
    """By asker: when the other one declined, the oldest first; as many as count."""
    lanes: dict[str, Lane] = {}
    """By recipient."""


class Rules(msgspec.Struct, frozen=True):
    """How often one may ask (broker.config.Network), milliseconds."""

    declined_ms: int
    declines: int
    declines_ms: int


def pair_key(one: str, other: str) -> str:
    """The name of a pair of agents: the same for both."""
    return ":".join(sorted((one, other)))


def holds(agreement: Agreement, now: int) -> bool:
    """Whether it allows anything at `now`."""
    return agreement.status == "active" and (agreement.expires_at is None or now < agreement.expires_at)


def find_agreement(row: PairRow | None, actor: str, scope: Scope, now: int) -> Agreement | None:
    """The agreement by which `actor` may do what `scope` says towards the other one, now."""
    for each in row.agreements if row is not None else ():
        if scope in each.scopes and holds(each, now) and (not each.one_way or each.one == actor):
            return each
    return None


def read_scopes(scopes: list[Scope] | None, most: tuple[Scope, ...] = SCOPES) -> tuple[Scope, ...] | Refusal:
    """The scopes named, each once, in their order; None means all of `most`. At least one, and none beside `most`."""
    if scopes is None:
        return most
    beyond = [each for each in scopes if each not in most]
    if beyond or not scopes:
        return refuse("bad_request", f"scopes are some of: {', '.join(most)}", path="scopes")
    return tuple(each for each in SCOPES if each in scopes)


def judge_request(row: PairRow, request: Request, rules: Rules) -> Refusal | None:
    """Why this request may not be made now: it is there already, in either direction, or was declined lately."""
    now = request.asked_at
    for each in row.requests:
        if now < each.expires_at:
            if each.asker == request.asker:
                words = "your request to this agent still waits; cancel it to ask for something else"
            else:
                words = "this agent has asked you: answer its request with respond_to_contact_request"
            return refuse("already_exists", words, request_id=each.request_id)
    for held in row.agreements:
        if not held.one_way and holds(held, now) and _covers(held, request):
            return refuse(
                "already_exists",
                "you have an agreement with this agent that allows all of that",
                agreement_id=held.agreement_id,
            )
    if len(row.agreements) >= MOST_AGREEMENTS:
        return refuse("already_exists", "you have too many agreements with this agent; revoke one first")
    until = asks_again_at(row.declines.get(request.asker, ()), rules)
    if now < until:
        return refuse(
            "quota_exceeded",
            "this agent declined; you may ask it again later",
            reason="declined",
            until=until,
        )
    return None


def _covers(held: Agreement, request: Request) -> bool:
    """Whether an agreement has all that is asked for, for at least half of the time: else it may be renewed."""
    lasts = held.expires_at is None or held.expires_at - request.asked_at >= request.ttl_days * DAY_MS // 2
    return lasts and set(request.scopes) <= set(held.scopes)


def asks_again_at(declines: tuple[int, ...], rules: Rules) -> int:
    """From when on somebody who was declined at these times may ask again."""
    if not declines:
        return 0
    until = declines[-1] + rules.declined_ms
    if len(declines) >= rules.declines:
        until = max(until, declines[-rules.declines] + rules.declines_ms)
    return until


def ask(row: PairRow, request: Request) -> PairRow:
    """The pair with a request that waits."""
    return msgspec.structs.replace(row, requests=(*row.requests, request))


def find_request(row: PairRow, request_id: str) -> Request | None:
    """A request that waits."""
    return next((each for each in row.requests if each.request_id == request_id), None)


def close(
    row: PairRow, request: Request, status: RequestState, now: int, rules: Rules
) -> tuple[PairRow, Request]:
    """A request comes to its end; a decline is counted."""
    ended = msgspec.structs.replace(request, status=status, ended_at=now)
    declines = row.declines
    if status == "declined":
        kept = (*declines.get(request.asker, ()), now)[-rules.declines :]
        declines = {**declines, request.asker: kept}
    elif status == "accepted":
        declines = {who: at for who, at in declines.items() if who != request.asker}
    rest = tuple(each for each in row.requests if each.request_id != request.request_id)
    return msgspec.structs.replace(row, requests=rest, declines=declines), ended


def made_of(
    request: Request, agreement_id: str, scopes: tuple[Scope, ...], ttl_days: int, now: int
) -> Agreement:
    """What accepting a request makes."""
    return Agreement(
        agreement_id,
        request.asker,
        request.target,
        scopes,
        now,
        now + ttl_days * DAY_MS,
        one_name=request.asker_name,
        other_name=request.target_name,
        request_id=request.request_id,
    )


def add(row: PairRow, agreement: Agreement) -> PairRow:
    """The pair with one more agreement."""
    return msgspec.structs.replace(row, agreements=(*row.agreements, agreement))


def end(
    row: PairRow, agreement: Agreement, status: AgreementState, now: int, by: str | None = None
) -> tuple[PairRow, Agreement]:
    """An agreement comes to its end."""
    ended = msgspec.structs.replace(agreement, status=status, ended_at=now, ended_by=by)
    rest = tuple(each for each in row.agreements if each.agreement_id != agreement.agreement_id)
    return msgspec.structs.replace(row, agreements=rest), ended


def next_due(row: PairRow) -> int | None:
    """When something of the pair is over by itself."""
    times = [each.expires_at for each in row.requests]
    times += [each.expires_at for each in row.agreements if each.expires_at is not None]
    return min(times, default=None)


def sent(row: PairRow, recipient: str, *, dropped: int = 0, dropped_unread: int = 0) -> PairRow:
    """One message more to `recipient`, and so many that are kept no longer."""
    lane = row.lanes.get(recipient, Lane())
    lane = Lane(lane.kept + 1 - dropped, lane.unread + 1 - dropped_unread)
    return msgspec.structs.replace(row, lanes={**row.lanes, recipient: lane})


def read(row: PairRow, recipient: str, count: int) -> PairRow:
    """So many messages to `recipient` are read now that were not."""
    lane = row.lanes.get(recipient, Lane())
    return msgspec.structs.replace(row, lanes={**row.lanes, recipient: Lane(lane.kept, lane.unread - count)})
