"""A tape that the broker fetches from a URL: what may come of it (docs/reference/trial.md, Tape sources; pure).

Nothing that a source says is told, the number of its status apart: it may say again what it was asked with.
"""

from typing import Any, Final, Literal

import msgspec

from broker.core.push import Outcome
from broker.core.tapes.csvfile import Complaint
from broker.wire.refusals import Refusal, refuse

MOST: Final = 64 * 1024 * 1024
"""Bytes of a file: a million lines of some 60 bytes."""
PATIENCE_S: Final = 60.0
"""Seconds from the look-up of the name to the last byte."""
Why = Literal["not_public", "no_answer", "too_slow", "too_large", "redirect", "status", "encoding"]
_SAID: Final[dict[Why, str]] = {
    "not_public": "the URL has an address that is not public, or is none that may be asked",
    "no_answer": "nothing came that can be used: no connection, no TLS, or no whole answer that says where it ends",
    "too_slow": f"the whole file did not come within {PATIENCE_S:g} seconds",
    "too_large": f"the file has more than {MOST} bytes; cut it",
    "redirect": "it leads elsewhere, and nobody follows: give the URL that it leads to",
    "status": "the source refuses",
    "encoding": "the source sends it compressed, unasked; it must come as it is",
}
_LATER: Final = frozenset({"no_answer", "too_slow"})


class Missed(msgspec.Struct, frozen=True):
    """Why there is no file."""

    why: Why
    status: int | None = None
    """Of HTTP, where it answered."""


def refusal_of(missed: Missed) -> Refusal:
    """What is told of a file that did not come: `unavailable` where it may come later."""
    status: dict[str, Any] = {} if missed.status is None else {"http_status": missed.status}
    later = missed.why in _LATER or (missed.status or 0) >= 500 or missed.status == 429
    code = "too_large" if missed.why == "too_large" else "unavailable" if later else "bad_request"
    answered = "" if missed.status is None else f" (HTTP {missed.status})"
    return _no(code, f"{_SAID[missed.why]}{answered}", reason=missed.why, **status)


def unset(outcome: Outcome) -> Refusal:
    """What is told where a header names a secret that is not to be had."""
    what = (
        "is not set" if outcome.why == "secret_unset" else "can't be read: the key that sealed it is not here"
    )
    said = f"the secret {outcome.secret} of the operators {what}; set_secret"
    return _no("bad_request", said, path="headers", reason=outcome.why, secret=outcome.secret)


def wrong(complaint: Complaint) -> Refusal:
    """What is told of a file that is no tape."""
    where = f"line {complaint.line}: " if complaint.line else ""
    return _no("bad_request", f"{where}{complaint.plain}", reason="line", line=complaint.line)


def _no(code: str, said: str, *, path: str = "url", **detail: Any) -> Refusal:
    return refuse(code, f"nothing was imported: {said}", path=path, **detail)
