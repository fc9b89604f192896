"""The actor of two agents: all that is decided between them is decided here, one thing after the other (network.md,
Agreements, Messages).

1. Its document is the pair's row; requests, agreements and messages that others must find are documents beside it,
   written in the same commit, by this actor alone.
2. What an agreement allows is looked at when the letter is taken: a revocation that came first stops what follows it.
3. Who is not there (suspended, gone, expired) looks like somebody who never was; what was agreed is silent meanwhile.
"""

from typing import Any, Final

import msgspec

from broker.actors.agentdocs import NO_AGENT, read_agent
from broker.actors.once import Once
from broker.actors.pairdocs import (
    FRESH,
    WAITING,
    index_of_pair,
    put_agreement,
    put_ended,
    put_request,
    read_agreement,
    read_request,
    tell_agreement,
    tell_request,
    view_agreement,
)
from broker.actors.pairmail import MailActor, MarkRead, Send
from broker.actors.record import Index, Told
from broker.config import Network
from broker.core import agreement as core
from broker.core.agent import AgentRow, allowance
from broker.core.agreement import DAY_MS, Agreement, PairRow, Request, Scope
from broker.core.conversation import Due
from broker.core.pairviews import show_request
from broker.store.port import Put
from broker.wire.refusals import Refusal, refuse

NO_REQUEST: Final = refuse("not_found", "there is no such contact request of yours")
NO_AGREEMENT: Final = refuse("not_found", "there is no such agreement of yours")
OPERATOR: Final = "operator"


class Ask(msgspec.Struct, frozen=True):
    """One asks the other for an agreement. Answer: the request as its asker sees it."""

    request_id: str
    agreement_id: str
    """For what may be made of it at once."""
    asker: str
    target: str
    purpose: str
    scopes: tuple[Scope, ...]
    ttl_days: int
    once: Once | None = None


class Respond(msgspec.Struct, frozen=True):
    """The target answers, or (`by_owner`, looked at by who asks) its owner. Answer: the request as the target sees it.

    `scopes` and `ttl_days`: less than was asked for; None: all of it.
    """

    request_id: str
    by: str
    accept: bool
    agreement_id: str = ""
    scopes: list[Scope] | None = None
    ttl_days: int | None = None
    by_owner: bool = False
    once: Once | None = None


class Cancel(msgspec.Struct, frozen=True):
    """Who asked takes it back. Answer: the request as its asker sees it."""

    request_id: str
    by: str
    once: Once | None = None


class Revoke(msgspec.Struct, frozen=True):
    """One of the two ends an agreement. Answer: the agreement as that one sees it; also where it is over."""

    agreement_id: str
    by: str
    once: Once | None = None


class Grant(msgspec.Struct, frozen=True):
    """An operator lets `one` act towards `other`, in place of what one let it before. Answer: the agreement."""

    agreement_id: str
    one: str
    other: str
    scopes: tuple[Scope, ...]
    ttl_days: int | None
    once: Once | None = None


class Ungrant(msgspec.Struct, frozen=True):
    """An operator takes that back. Answer: the agreement that ended, or not_found."""

    one: str
    other: str
    once: Once | None = None


class PairActor(MailActor):
    """Two agents; the key is `pair_key` of both."""

    def __init__(self, key: str, *, settings: Network, **parts: Any) -> None:
        super().__init__(key, settings=settings, **parts)
        self._rules = core.Rules(
            round(settings.declined_days * DAY_MS), settings.declines, round(settings.declines_days * DAY_MS)
        )

    def index_of(self, row: PairRow) -> Index:
        return index_of_pair(row)

    async def do(self, command: Any) -> Any:
        refused = await self._lapse()
        if refused is not None:
            return refused
        match command:
            case Send():
                return await self.send(command)
            case MarkRead():
                return await self.mark(command)
            case Ask():
                return await self._ask(command)
            case Respond():
                return await self._respond(command)
            case Cancel():
                return await self._cancel(command)
            case Revoke():
                return await self._revoke(command)
            case Grant():
                return await self._grant(command)
            case Ungrant():
                return await self._ungrant(command)
            case Due():
                return None
        raise TypeError(type(command))

    async def _lapse(self) -> Refusal | None:
        """End what is over by itself; in a commit of its own, so that every command finds the row as it is now."""
        now, row = self.clock.now_ms(), self.row
        due = core.next_due(row) if row is not None else None
        if row is None or due is None or now < due:
            return None
        puts: list[Put] = []
        events: list[Told] = []
        for request in row.requests:
            if request.expires_at <= now:
                row, ended = core.close(row, request, "expired", now, self._rules)
                puts.append(put_request(ended, WAITING))
                events += [tell_request("expired", ended, each) for each in row.agents]
        for agreement in row.agreements:
            if not core.holds(agreement, now):
                row, over = core.end(row, agreement, "expired", now)
                puts += put_ended(over)
                events += await tell_agreement(self.store, "expired", over, now)
        answer = await self.write(row, None, puts=puts, events=events)
        return answer if isinstance(answer, Refusal) else None

    async def _ask(self, command: Ask) -> Any:
        now = self.clock.now_ms()
        asker, target = await self.find_present(command.asker), await self.find_present(command.target)
        if asker is None or target is None:
            return NO_AGENT
        request = Request(
            command.request_id,
            command.asker,
            command.target,
            command.purpose,
            command.scopes,
            command.ttl_days,
            now,
            now + round(self._settings.request_days * DAY_MS),
            asker.name,
            target.name,
            target.owner_id if target.policy == "owner-decides" else None,
        )
        row = self.pair()
        refused = core.judge_request(row, request, self._rules)
        if refused is not None:
            return refused
        row = core.ask(row, request)
        if target.policy == "deny":
            return await self._decline(row, request, command.asker, FRESH, command.once)
        if target.policy == "auto-accept":
            made = core.made_of(request, command.agreement_id, request.scopes, request.ttl_days, now)
            return await self._accept(row, request, made, (asker, target), command.asker, FRESH, command.once)
        return await self.write(
            row,
            show_request(request, command.asker),
            once=command.once,
            puts=[put_request(request, FRESH)],
            events=[tell_request("requested", request, command.target)],
        )

    async def _respond(self, command: Respond) -> Any:
        row, now = self.pair(), self.clock.now_ms()
        request = core.find_request(row, command.request_id)
        if request is None:
            return await self._closed(command.request_id, target=command.by)
        if request.target != command.by:
            return NO_REQUEST
        asker, target = await self.find_present(request.asker), await self.find_present(request.target)
        if asker is None or target is None:
            return NO_REQUEST
        waits = request.owner_id is not None and request.owner_id == target.owner_id
        if waits and not command.by_owner:
            return refuse(
                "not_a_party", "your owner answers this request, on the owner's page", waits_for="owner"
            )
        if not command.accept:
            return await self._decline(row, request, command.by, WAITING, command.once)
        scopes = core.read_scopes(command.scopes, request.scopes)
        if isinstance(scopes, Refusal):
            return scopes
        ttl_days = request.ttl_days if command.ttl_days is None else command.ttl_days
        if ttl_days > request.ttl_days:
            return refuse("bad_request", "ttl_days is at most what was asked for", path="ttl_days")
        made = core.made_of(request, command.agreement_id, scopes, ttl_days, now)
        return await self._accept(row, request, made, (asker, target), command.by, WAITING, command.once)

    async def _decline(
        self, row: PairRow, request: Request, viewer: str, version: int, once: Once | None
    ) -> Any:
        row, ended = core.close(row, request, "declined", self.clock.now_ms(), self._rules)
        return await self.write(
            row,
            show_request(ended, viewer),
            once=once,
            puts=[put_request(ended, version)],
            events=[tell_request("declined", ended, request.asker)],
        )

    async def _accept(
        self,
        row: PairRow,
        request: Request,
        made: Agreement,
        agents: tuple[AgentRow, AgentRow],
        viewer: str,
        version: int,
        once: Once | None,
    ) -> Any:
        """An agreement is made of a request. An agent that may hold one alone has a document that says that it does: of
        two pairs at once that would make it one, one commit conflicts."""
        limited = [each.agent_id for each in agents if allowance(each).agreements is not None]
        for agent_id in limited:
            if await self.store.get("slot", agent_id) is not None:
                whose = "you may" if agent_id == viewer else "the other one may"
                return refuse(
                    "quota_exceeded",
                    f"{whose} hold one agreement until claimed by an owner",
                    reason="agreements",
                )
        now = made.made_at
        made = msgspec.structs.replace(made, slots=tuple(limited))
        request = msgspec.structs.replace(request, agreement_id=made.agreement_id)
        row, ended = core.close(core.add(row, made), request, "accepted", now, self._rules)
        slots = [
            Put("slot", each, FRESH, msgspec.json.encode({"agreement_id": made.agreement_id}))
            for each in limited
        ]
        return await self.write(
            row,
            show_request(ended, viewer),
            once=once,
            puts=[put_request(ended, version), put_agreement(made, FRESH), *slots],
            events=[
                tell_request("accepted", ended, request.asker),
                *await tell_agreement(self.store, "made", made, now),
            ],
        )

    async def _cancel(self, command: Cancel) -> Any:
        row = self.pair()
        request = core.find_request(row, command.request_id)
        if request is None:
            return await self._closed(command.request_id, asker=command.by)
        if request.asker != command.by:
            return NO_REQUEST
        row, ended = core.close(row, request, "cancelled", self.clock.now_ms(), self._rules)
        return await self.write(
            row,
            show_request(ended, command.by),
            once=command.once,
            puts=[put_request(ended, WAITING)],
            events=[tell_request("cancelled", ended, request.target)],
        )

    async def _closed(self, request_id: str, *, asker: str = "", target: str = "") -> Refusal:
        """Why a request that does not wait can't be answered or taken back by who asks."""
        request = await read_request(self.store, request_id)
        if request is None or (asker != request.asker and target != request.target):
            return NO_REQUEST
        said = f"this request waits no more: it was {request.status}"
        return refuse("already_exists", said, request_status=request.status)

    async def _revoke(self, command: Revoke) -> Any:
        now = self.clock.now_ms()
        for agreement in self.pair().agreements:
            if agreement.agreement_id == command.agreement_id:
                return await self._end(agreement, "revoked", command.by, now, command.once)
        over = await read_agreement(self.store, command.agreement_id)
        if over is None:
            return NO_AGREEMENT
        view = await view_agreement(self.store, over, command.by, now)
        return await self.write(self.row, view, once=command.once)

    async def _end(
        self, agreement: Agreement, status: core.AgreementState, by: str, now: int, once: Once | None
    ) -> Any:
        row, ended = core.end(self.pair(), agreement, status, now, by)
        viewer = agreement.one if by == OPERATOR else by
        return await self.write(
            row,
            await view_agreement(self.store, ended, viewer, now),
            once=once,
            puts=put_ended(ended),
            events=await tell_agreement(self.store, "revoked", ended, now),
        )

    async def _grant(self, command: Grant) -> Any:
        now = self.clock.now_ms()
        one = await read_agent(self.store, command.one, now)
        other = await read_agent(self.store, command.other, now)
        if one is None or other is None:
            return NO_AGENT
        until = now + command.ttl_days * DAY_MS if command.ttl_days is not None else None
        made = Agreement(
            command.agreement_id,
            command.one,
            command.other,
            command.scopes,
            now,
            until,
            one_way=True,
            one_name=one.name,
            other_name=other.name,
        )
        row, puts = self.pair(), [put_agreement(made, FRESH)]
        old = self._granted(command.one)
        if old is not None:
            row, ended = core.end(row, old, "replaced", now, OPERATOR)
            puts += put_ended(ended)
        row = core.add(row, made)
        return await self.write(
            row,
            await view_agreement(self.store, made, command.one, now),
            once=command.once,
            puts=puts,
            events=await tell_agreement(self.store, "made", made, now),
        )

    async def _ungrant(self, command: Ungrant) -> Any:
        old = self._granted(command.one)
        if old is None:
            return refuse("not_found", "no operator lets this agent act towards that one", path="to_agent_id")
        return await self._end(old, "revoked", OPERATOR, self.clock.now_ms(), command.once)

    def _granted(self, one: str) -> Agreement | None:
        return next((each for each in self.pair().agreements if each.one_way and each.one == one), None)
