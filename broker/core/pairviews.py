"""Requests and agreements as each of the two sees them: in answers, in lists and as events (network.md, Agreements).

Who asked never learns who decides on the other side, nor by what rule.
"""

from typing import Literal

import msgspec

from broker.core.agreement import Agreement, AgreementState, Request, RequestState, Scope, Waits, holds

Direction = Literal["incoming", "outgoing"]


class ContactRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """A contact request. Times are Unix milliseconds."""

    request_id: str
    direction: Direction
    from_agent_id: str
    from_name: str
    to_agent_id: str
    to_name: str
    purpose: str
    scopes: tuple[Scope, ...]
    ttl_days: int
    status: RequestState
    asked_at: int
    expires_at: int
    """Nobody answers it after that."""
    waits_for: Waits | None = None
    """Of an incoming one that is pending: who is to answer it."""
    ended_at: int | None = None
    agreement_id: str | None = None


class Counterpart(msgspec.Struct, frozen=True):
    """The other one, by the name that it had when the agreement was made."""

    agent_id: str
    name: str


class IrcAccount(msgspec.Struct, frozen=True):
    """An account that an operator bound to an agent."""

    network: str
    nick: str
    bridged: bool


class AgreementView(msgspec.Struct, frozen=True, omit_defaults=True):
    """An agreement. Times are Unix milliseconds."""

    agreement_id: str
    counterpart: Counterpart
    scopes: tuple[Scope, ...]
    direction: Literal["both", "incoming", "outgoing"]
    """Both may act; or, of an operator's grant, the counterpart towards you, or you towards it."""
    made_by: Literal["agents", "operator"]
    status: AgreementState | Literal["silent"]
    """silent: it allows nothing while one of the two is not there."""
    made_at: int
    expires_at: int | None
    irc_accounts: tuple[IrcAccount, ...]
    """The counterpart's."""
    request_id: str | None = None
    ended_at: int | None = None
    ended_by: str | None = None


def show_request(request: Request, viewer: str) -> ContactRequest:
    """A request as one of the two sees it."""
    incoming = viewer == request.target
    waits: Waits | None = None
    if incoming and request.status == "pending":
        waits = "owner" if request.owner_id is not None else "agent"
    return ContactRequest(
        request.request_id,
        "incoming" if incoming else "outgoing",
        request.asker,
        request.asker_name,
        request.target,
        request.target_name,
        request.purpose,
        request.scopes,
        request.ttl_days,
        request.status,
        request.asked_at,
        request.expires_at,
        waits,
        request.ended_at,
        request.agreement_id,
    )


def counterpart(agreement: Agreement, viewer: str) -> str:
    """The other one's id."""
    return agreement.other if viewer == agreement.one else agreement.one


def show_agreement(
    agreement: Agreement,
    viewer: str,
    now: int,
    accounts: tuple[IrcAccount, ...] = (),
    *,
    silent: bool = False,
) -> AgreementView:
    """An agreement as one of the two sees it. `accounts`: the counterpart's; `silent`: it is not there now."""
    first = viewer == agreement.one
    status: AgreementState | Literal["silent"] = agreement.status
    if status == "active":
        status = "expired" if not holds(agreement, now) else "silent" if silent else "active"
    one_way: Direction = "outgoing" if first else "incoming"
    return AgreementView(
        agreement.agreement_id,
        Counterpart(agreement.other, agreement.other_name)
        if first
        else Counterpart(agreement.one, agreement.one_name),
        agreement.scopes,
        one_way if agreement.one_way else "both",
        "operator" if agreement.one_way else "agents",
        status,
        agreement.made_at,
        agreement.expires_at,
        accounts,
        agreement.request_id,
        agreement.ended_at,
        agreement.ended_by,
    )
