"""A push: a place in a stream, and a URL to which what follows it is sent, one event after the other (network.md,
Webhooks).

1. What is stored is the place, not the events: nothing is written for an event but the event. What was sent after the
   place that is stored is sent again after a restart, under the same id: at least once.
2. The next event is sent when the last one was taken. One that is not taken is tried again, later and later, for 24
   hours; then the push is disabled, and its agent is told.
3. How an event becomes a request is a matter of the push's `form`: a function (Form) without I/O.

Source of the schedule and the answers' meaning: Standard Webhooks, "Operational considerations".
"""

from collections.abc import Callable
from typing import Final, Literal
from urllib.parse import urlsplit

import msgspec
from msgspec.structs import replace

from broker.wire.refusals import Refusal, refuse

Why = Literal["status", "not_public", "no_answer", "no_secret", "secret_unset", "secret_unreadable"]
"""Why an event was not taken: the answer's status, a URL that may not be asked, no answer that could be used, no secret
to sign it with, or a header names a secret of the agent's that is not there, or that no key opens."""
FormName = Literal["webhook", "a2a"]
State = Literal["active", "failing", "disabled"]
"""failing: the next event was not taken, and is tried again; disabled: nothing is sent any more."""

DELAYS_S: Final = (5, 30, 120, 600, 1_800, 3_600, 7_200, 14_400)
"""Seconds between two tries of one event; the last one from then on."""
JITTER: Final = 0.2
"""Of a delay so much is left to chance, so that those who failed together do not come back together."""
LONGEST_DELAY_S: Final = DELAYS_S[-1] * (1 + JITTER / 2)
GIVE_UP_MS: Final = 24 * 3_600_000
"""One event is tried for so long."""
LEAST: Final = 8
"""Tries of one event before that ends it: while we were down, or the agent suspended, nothing was tried."""
LONGEST_S: Final = 3_600
"""A receiver may ask (Retry-After) to be left alone for so long at once."""
MAX_URL: Final = 2_048
OLD_SECRET_MS: Final = 24 * 3_600_000
"""After a rotation the old secret signs beside the new one for so long."""

_BAD_URL: Final = refuse(
    "bad_request",
    f"a URL that is asked is https://, on port 443, without user, password and fragment, at most {MAX_URL} characters "
    "of ASCII",
    path="url",
)


class Outcome(msgspec.Struct, frozen=True):
    """What came of one attempt: an answer's status, or (None) why there is none. `retry_after_s`: how long the
    receiver asks to be left alone."""

    status: int | None
    why: Why = "status"
    retry_after_s: float | None = None
    secret: str | None = None
    """The name of the agent's secret that was not to be had."""

    @property
    def taken(self) -> bool:
        """Whether the event was taken: any 2xx."""
        return self.status is not None and 200 <= self.status < 300


class Secret(msgspec.Struct, frozen=True, omit_defaults=True):
    """A secret, sealed (broker.tools.sealing), and until when it signs (wall ms; None: until it is replaced)."""

    sealed: str
    until: int | None = None


class Failing(msgspec.Struct, frozen=True):
    """The event after the place is not taken: since when, how often it was tried, and when it is tried next (wall
    ms)."""

    since: int
    tries: int
    next_at: int


class Last(msgspec.Struct, frozen=True, omit_defaults=True):
    """The last attempt that was written down: when (wall ms), and what came of it."""

    at: int
    status: int | None
    why: Why = "status"
    secret: str | None = None


class Disabled(msgspec.Struct, frozen=True):
    """Since when (wall ms) and why nothing is sent: `gone` (the receiver said 410), `expired` (one event was not taken
    for 24 hours), `no_secret` (the secret can't be read here any more)."""

    at: int
    reason: Literal["gone", "expired", "no_secret"]


class PushRow(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A push as stored (kind "push", id = push_id). Times are wall milliseconds."""

    push_id: str
    """A webhook's is its agent's id, of which there is one; else whoever makes it says."""
    form: FormName
    agent_id: str
    """For whom it is sent: while that agent may not speak nothing is, and when it is gone the push is."""
    stream: str
    url: str
    position: int
    """All events up to here were taken, or are not to be sent."""
    created_at: int
    epoch: str = ""
    """The stream's, when the place was written."""
    secrets: tuple[Secret, ...] = ()
    """Newest first; two at most."""
    extra: dict[str, str] = {}
    """What else its form wants to know."""
    headers: tuple[tuple[str, str], ...] = ()
    """What its agent has sent with each event beside the form's own: names, and templates (broker.core.safe)."""
    turn: int = 1
    """Counts what was changed by hand (another URL, place or secret): what was under way before counts no more."""
    delivered: int = 0
    failing: Failing | None = None
    last: Last | None = None
    disabled: Disabled | None = None

    @property
    def state(self) -> State:
        """How it does."""
        return (
            "disabled" if self.disabled is not None else "failing" if self.failing is not None else "active"
        )


class Occurrence(msgspec.Struct, frozen=True):
    """An event to be sent."""

    id: str
    """The same at each attempt, and no other event's: receivers drop repeats by it."""
    kind: str
    at: int
    """Wall milliseconds."""
    text: bytes
    """The JSON object that the stream's readers get, `cursor` included."""
    gap: str | None = None
    """Why what lay before it is missing: trimmed (the stream keeps it no more), epoch_changed (the store was restored
    from a backup)."""


class Request(msgspec.Struct, frozen=True):
    """What is posted to the URL."""

    headers: tuple[tuple[str, str], ...]
    body: bytes


Form = Callable[[PushRow, Occurrence, tuple[str, ...], int], Request | None]
"""Makes of an event a request: takes the push, the event, its secrets that sign now (opened, newest first) and the
time (wall ms). None: this event is not sent."""


def judge_url(url: str, *, loopback: bool = False) -> Refusal | None:
    """Why a URL can't be pushed to, by its form alone: it is https://, without user or password, on port 443. Whether
    what it names is public is seen at each attempt. `loopback`: this machine may be named, in the clear too and on any
    port."""
    try:
        parts = urlsplit(url)
        port, host = parts.port, parts.hostname
    except ValueError:
        return _BAD_URL
    plain = url.isascii() and url.isprintable() and not set(' \\"<>^`{|}') & set(url)
    if not (plain and host) or "@" in parts.netloc or parts.fragment or len(url) > MAX_URL:
        return _BAD_URL
    if loopback and host in ("localhost", "127.0.0.1", "::1") and parts.scheme in ("http", "https"):
        return None
    return None if parts.scheme == "https" and port in (None, 443) else _BAD_URL


def after(row: PushRow, position: int, outcome: Outcome, now: int, chance: float) -> PushRow:
    """The push after an attempt with the event at `position`. `chance`: 0 to 1."""
    last = Last(now, outcome.status, outcome.why, outcome.secret)
    if outcome.taken:
        return replace(row, position=position, failing=None, last=last, delivered=row.delivered + 1)
    if outcome.status == 410:
        return replace(row, last=last, disabled=Disabled(now, "gone"))
    if outcome.why == "no_secret":
        return replace(row, last=last, disabled=Disabled(now, "no_secret"))
    since, tries = (row.failing.since, row.failing.tries) if row.failing is not None else (now, 0)
    end = since + GIVE_UP_MS
    if now >= end and tries >= LEAST:
        return replace(row, last=last, disabled=Disabled(now, "expired"))
    next_at = now + delay_ms(tries, outcome.retry_after_s, chance)
    if now < end:
        next_at = min(next_at, end)
    return replace(row, last=last, failing=Failing(since, tries + 1, next_at))


def delay_ms(tries: int, retry_after_s: float | None, chance: float) -> int:
    """Milliseconds until the next try, after `tries` earlier ones that failed too."""
    delay = DELAYS_S[min(tries, len(DELAYS_S) - 1)] * (1 + JITTER * (chance - 0.5))
    return round(1000 * max(delay, min(retry_after_s or 0.0, LONGEST_S)))


def skipped(row: PushRow, position: int) -> PushRow:
    """The push where the event at `position` is not to be sent."""
    return replace(row, position=position, failing=None)


def renewed(row: PushRow, sealed: str, now: int) -> PushRow:
    """With another secret. The one before signs beside it for a day, none before that."""
    old = tuple(Secret(each.sealed, now + OLD_SECRET_MS) for each in row.secrets[:1])
    return replace(row, secrets=(Secret(sealed), *old), turn=row.turn + 1)


def again(row: PushRow, position: int | None, epoch: str) -> PushRow:
    """Sent from after `position` on (None: from where it stands), enabled, and at once."""
    place = row.position if position is None else position
    return replace(row, position=place, epoch=epoch, failing=None, disabled=None, turn=row.turn + 1)


def live_secrets(row: PushRow, now: int) -> tuple[Secret, ...]:
    """Those that sign now, newest first."""
    return tuple(each for each in row.secrets if each.until is None or now < each.until)
