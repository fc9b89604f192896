"""What is written down for the operators' audit (network.md, Audit).

1. Nothing secret comes into an event: whoever makes one names what belongs there.
2. What becomes a row must have a canonical form; what has none is said to be so, and never stops the log.
3. Refused sign-ins are summed up so that their rows have a bound, from however many addresses they come.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from broker.wire.auditlog import ALARM, RESTORED, AuditHead
from broker.wire.canonical import encode

OWN_A_MINUTE: Final = 20
"""Sums of refused sign-ins that have rows of their own, the largest first; the others of a minute share one."""
OWN_AN_HOUR: Final = 120
LARGEST: Final = 8192
"""Bytes of an event's canonical text; of a larger one the detail is left out."""
BROKER: Final = "broker"
"""The actor of what happens by itself."""
REFUSED: Final = "sign_in_refused"
OTHERS: Final = "others"
"""Where refusals are summed up of addresses beyond a bound."""


class AuditEvent(msgspec.Struct, frozen=True, omit_defaults=True):
    """Something that was done. `at`: wall milliseconds. `actor`: operator, an agent's or owner's id, a key, an address,
    or broker. `kind`: the tool's name, or a name of ours. `subject`: whom or what it was done to."""

    at: int
    actor: str
    kind: str
    subject: str | None = None
    detail: dict[str, Any] = {}


class AuditRow(msgspec.Struct, frozen=True, omit_defaults=True):
    """A row of the log as it is shown: an event with its number and its hash. `id`: of the note that it was."""

    n: int
    id: str
    at: int
    actor: str
    kind: str
    hash: str
    subject: str | None = None
    detail: dict[str, Any] = {}


class Sum(msgspec.Struct, frozen=True):
    """How often an address was refused a sign-in in one Unix minute."""

    minute: int
    place: str
    kind: str
    count: int


def members_of(n: int, note_id: str, event: AuditEvent) -> dict[str, Any]:
    """The members of row `n` without its seal: they have a canonical form, and are not too large."""
    members = {"n": n, "id": note_id, **msgspec.to_builtins(event)}
    try:
        if len(encode(members)) <= LARGEST:
            return members
        why = "too large"
    except ValueError as error:  # a number or a letter that JSON readers do not agree on
        why = str(error)
    return {
        "n": n,
        "id": note_id,
        "at": event.at,
        "actor": _plain(event.actor),
        "kind": _plain(event.kind),
        "subject": None if event.subject is None else _plain(event.subject),
        "detail": {"left_out": why},
    }


def index_of(members: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    """What a row is found by."""
    actor, kind, subject = members["actor"], members["kind"], members.get("subject")
    index = [("all", "1"), ("actor", actor), ("kind", kind), ("kind actor", f"{kind} {actor}")]
    if subject is not None:
        index.append(("subject", subject))
    return tuple(index)


def unreadable(text: bytes, at: int) -> AuditEvent:
    """The event of a note that can't be read any more."""
    return AuditEvent(at, BROKER, "unreadable_note", detail={"sha256": hashlib.sha256(text).hexdigest()})


def alarm(what: str, at: int, **evidence: Any) -> AuditEvent:
    """The log is not as it was left."""
    return AuditEvent(at, BROKER, ALARM, detail={"what": what, **evidence})


def restored(backup_at: int, restored_at: int, former: AuditHead | None, at: int) -> AuditEvent:
    """The store was made of a backup; `former`: the last head that was known before."""
    detail: dict[str, Any] = {"backup_at": backup_at, "restored_at": restored_at}
    if former is not None:
        detail["former"] = msgspec.to_builtins(former)
    return AuditEvent(at, BROKER, RESTORED, detail=detail)


class RefusedSums:
    """Makes events of sums of refused sign-ins, with its bound in mind: in an hour OWN_AN_HOUR that have a row of their
    own, and a row a minute for all others."""

    def __init__(self) -> None:
        self._hour = 0
        self._spent = 0

    def events(self, sums: Iterable[Sum], at: int) -> list[AuditEvent]:
        """The events of these sums, minute by minute."""
        minutes: dict[int, list[Sum]] = {}
        for each in sums:
            minutes.setdefault(each.minute, []).append(each)
        return [
            event for minute, those in sorted(minutes.items()) for event in self._minute(minute, those, at)
        ]

    def _minute(self, minute: int, sums: list[Sum], at: int) -> list[AuditEvent]:
        if minute // 60 != self._hour:
            self._hour, self._spent = minute // 60, 0
        named = [each for each in sums if each.place != OTHERS]
        named.sort(key=lambda each: (-each.count, each.place, each.kind))
        own = named[: min(OWN_A_MINUTE, OWN_AN_HOUR - self._spent)]
        self._spent += len(own)
        events = [_refused(each.place, minute, at, {"kind": each.kind, "count": each.count}) for each in own]
        rest = [*named[len(own) :], *(each for each in sums if each.place == OTHERS)]
        if rest:
            counts: Counter[str] = Counter()
            for each in rest:
                counts[each.kind] += each.count
            events.append(_refused(OTHERS, minute, at, {"counts": dict(counts.most_common(20))}))
        return events


def _refused(place: str, minute: int, at: int, detail: dict[str, Any]) -> AuditEvent:
    return AuditEvent(at, BROKER, REFUSED, place, {"minute": minute, **detail})


def _plain(text: str) -> str:
    return text.encode(errors="replace").decode()[:200]
