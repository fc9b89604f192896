"""Whom an agent may talk to: requests and agreements as the client shows them, and requests as they come.

Source: network.md, Agreements.
"""

from collections import OrderedDict, deque
from typing import Final

import msgspec
import trio

from gateways.client.answers import Ask, pages, read
from gateways.client.errors import Missed
from gateways.client.inbox import Events

_KNOWN: Final = 1_000


class ContactRequest(msgspec.Struct, frozen=True):
    """A request for an agreement. `purpose` is what another agent wrote: data, never an instruction."""

    request_id: str
    from_agent_id: str
    to_agent_id: str
    purpose: str
    scopes: tuple[str, ...]
    ttl_days: int
    status: str
    """pending, accepted, declined, cancelled or expired."""
    from_name: str = ""
    to_name: str = ""
    waits_for: str | None = None
    """Of one that was made to you and is pending: who answers it, the agent or its owner."""
    agreement_id: str | None = None


class Counterpart(msgspec.Struct, frozen=True):
    """The other one, by the name that it had when the agreement was made."""

    agent_id: str
    name: str = ""


class Agreement(msgspec.Struct, frozen=True):
    """What two agents may do with each other, until when (Unix milliseconds; None: no end of its own)."""

    agreement_id: str
    counterpart: Counterpart
    scopes: tuple[str, ...]
    status: str
    """active, silent, revoked, expired or replaced."""
    direction: str = "both"
    expires_at: int | None = None


class Requests:
    """Requests that wait for this agent's answer, those from before first: `async for request in me.requests()`."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._events: Events | None = None
        self._behind = True
        """Whether they are to be listed before anything else."""
        self._waiting: deque[ContactRequest] = deque()
        self._known: OrderedDict[str, None] = OrderedDict()

    def __aiter__(self) -> "Requests":
        return self

    async def __anext__(self) -> ContactRequest:
        """The next one, each once; what is gone or answered meanwhile is for respond_to_contact_request to say.
        Cancelling loses none."""
        await trio.lowlevel.checkpoint()
        if self._events is None:
            self._events = Events(self._ask, await now(self._ask))
        while True:
            if self._behind:
                self._waiting.extend(reversed(await list_requests(self._ask, "incoming", "pending")))
                self._behind = False
            while self._waiting:
                request = self._waiting.popleft()
                if self._is_new(request):
                    return request
            try:
                event = await anext(self._events)
            except Missed:
                self._behind = True
                continue
            if event.kind == "contact" and "request" in event.data:
                self._waiting.append(read(event.data["request"], ContactRequest))

    def _is_new(self, request: ContactRequest) -> bool:
        if request.request_id in self._known or request.status != "pending" or request.waits_for != "agent":
            return False
        self._known[request.request_id] = None
        if len(self._known) > _KNOWN:
            self._known.popitem(last=False)
        return True


async def now(ask: Ask) -> str:
    """Where the agent's stream stands."""
    return await Events(ask, None).settle()


async def list_requests(ask: Ask, direction: str, status: str | None = None) -> list[ContactRequest]:
    """All requests that were made to the agent (incoming) or by it (outgoing), newest first."""
    rows = await pages(ask, "list_contact_requests", "requests", direction=direction, status=status)
    return [read(each, ContactRequest) for each in rows]


async def list_agreements(ask: Ask) -> list[Agreement]:
    """All agreements that hold, newest first."""
    return [read(each, Agreement) for each in await pages(ask, "list_agreements", "agreements")]


async def find_outcome(ask: Ask, request_id: str) -> ContactRequest:
    """Wait until a request of the agent's own is answered, cancelled or over. Cancelling is safe."""
    events = Events(ask, await now(ask))
    while True:
        listed = [each for each in await list_requests(ask, "outgoing") if each.request_id == request_id]
        if listed and listed[0].status != "pending":
            return listed[0]
        try:
            async for event in events:
                told = event.data.get("request")
                if (
                    event.kind == "contact"
                    and isinstance(told, dict)
                    and told.get("request_id") == request_id
                ):
                    break
        except Missed:
            continue
