"""What agents and their agreements do, as the law says it: three agents, plain lists, no store."""

import msgspec

DAY_MS = 86_400_000
AGENTS = 3
DECLINED_MS = 7 * DAY_MS
DECLINES = 2
DECLINES_MS = 30 * DAY_MS
REQUEST_MS = 30 * DAY_MS


class Asked(msgspec.Struct):
    """A contact request."""

    asker: int
    target: int
    scopes: frozenset[str]
    days: int
    at: int
    status: str = "pending"


class Held(msgspec.Struct):
    """An agreement; `one_way`: only `one` may act."""

    one: int
    other: int
    scopes: frozenset[str]
    until: int | None
    one_way: bool = False
    status: str = "active"


class Model:
    """Predicts the code of each answer, and what every agent sees."""

    def __init__(self) -> None:
        self.requests: list[Asked] = []
        self.held: list[Held] = []
        self.declines: dict[tuple[int, int], list[int]] = {}
        self.policies = ["agent-decides"] * AGENTS
        self.suspended = [False] * AGENTS
        self.inboxes: list[list[tuple[int, bool]]] = [[] for _ in range(AGENTS)]
        """By recipient: the message's serial, and whether it is read."""

    def lapse(self, now: int) -> None:
        """What is over by itself."""
        for request in self.requests:
            if request.status == "pending" and now >= request.at + REQUEST_MS:
                request.status = "expired"
        for held in self.held:
            if held.status == "active" and held.until is not None and now >= held.until:
                held.status = "expired"

    def ask(self, asker: int, target: int, scopes: frozenset[str], days: int, now: int) -> str:
        if self.suspended[asker]:
            return "suspended"
        if asker == target:
            return "bad_request"
        if self.suspended[target]:
            return "not_found"
        pair = {asker, target}
        if any(each.status == "pending" and {each.asker, each.target} == pair for each in self.requests):
            return "already_exists"
        holding = [each for each in self.held if each.status == "active" and {each.one, each.other} == pair]
        for held in holding:
            long = held.until is None or held.until - now >= days * DAY_MS // 2
            if not held.one_way and long and scopes <= held.scopes:
                return "already_exists"
        if len(holding) >= 8:
            return "already_exists"
        if now < self._free_at(asker, target):
            return "quota_exceeded"
        request = Asked(asker, target, scopes, days, now)
        self.requests.append(request)
        if self.policies[target] == "deny":
            self._decline(request, now)
        elif self.policies[target] == "auto-accept":
            self._accept(request, scopes, days, now)
        return request.status

    def respond(self, request: Asked, by: int, accept: bool, scopes: frozenset[str] | None, now: int) -> str:
        if self.suspended[by]:
            return "suspended"
        if by != request.target:
            return "not_found"
        if request.status != "pending":
            return "already_exists"
        if self.suspended[request.asker]:
            return "not_found"
        if not accept:
            self._decline(request, now)
        elif scopes is not None and not scopes <= request.scopes:
            return "bad_request"
        else:
            self._accept(request, scopes or request.scopes, request.days, now)
        return request.status

    def cancel(self, request: Asked, by: int) -> str:
        if self.suspended[by]:
            return "suspended"
        if by != request.asker:
            return "not_found"
        if request.status != "pending":
            return "already_exists"
        request.status = "cancelled"
        return "cancelled"

    def revoke(self, held: Held, by: int) -> str:
        if self.suspended[by]:
            return "suspended"
        if by not in (held.one, held.other):
            return "not_found"
        if held.status == "active":
            held.status = "revoked"
        return held.status

    def grant(self, one: int, other: int, scopes: frozenset[str], days: int | None, now: int) -> str:
        if one == other:
            return "bad_request"
        for held in self.held:
            if held.one_way and held.status == "active" and (held.one, held.other) == (one, other):
                held.status = "replaced"
        self.held.append(Held(one, other, scopes, None if days is None else now + days * DAY_MS, True))
        return "active"

    def ungrant(self, one: int, other: int) -> str:
        for held in self.held:
            if held.one_way and held.status == "active" and (held.one, held.other) == (one, other):
                held.status = "revoked"
                return "revoked"
        return "not_found"

    def send(self, sender: int, recipient: int, serial: int) -> str:
        if self.suspended[sender]:
            return "suspended"
        if self.suspended[recipient] or not self.allows(sender, recipient):
            return "agreement_required"
        self.inboxes[recipient].append((serial, False))
        return "accepted"

    def mark(self, by: int, serial: int) -> str:
        if self.suspended[by]:
            return "suspended"
        own = self.inboxes[by]
        if (serial, False) not in own and (serial, True) not in own:
            return "not_found"
        self.inboxes[by] = [(each, read or each == serial) for each, read in own]
        return "accepted"

    def allows(self, sender: int, recipient: int) -> bool:
        for each in self.held:
            way = (each.one, each.other)
            ways = [way] if each.one_way else [way, way[::-1]]
            if each.status == "active" and "message" in each.scopes and (sender, recipient) in ways:
                return True
        return False

    def active(self, agent: int) -> set[int]:
        """The agreements that an agent's list shows, by their place in `held`."""
        return {
            n
            for n, each in enumerate(self.held)
            if each.status == "active"
            and agent in (each.one, each.other)
            and not self.suspended[each.other if agent == each.one else each.one]
        }

    def _free_at(self, asker: int, target: int) -> int:
        declines = self.declines.get((asker, target), [])
        free = declines[-1] + DECLINED_MS if declines else 0
        if len(declines) >= DECLINES:
            free = max(free, declines[-DECLINES] + DECLINES_MS)
        return free

    def _decline(self, request: Asked, now: int) -> None:
        request.status = "declined"
        self.declines.setdefault((request.asker, request.target), []).append(now)

    def _accept(self, request: Asked, scopes: frozenset[str], days: int, now: int) -> None:
        request.status = "accepted"
        self.declines.pop((request.asker, request.target), None)
        self.held.append(Held(request.asker, request.target, scopes, now + days * DAY_MS))
