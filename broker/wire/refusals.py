"""The one table of refusals (wire.md, Refusals): code → status, retryable, and what it means.

1. A refusal is a value, an exception is a fault: functions return `Result | Refusal`.
2. Clients branch on `code`; the words may change.
3. Every gateway renders the same body; none adds a code of its own.
"""

from typing import Any, Final

import msgspec


class Code(msgspec.Struct, frozen=True):
    """One row of the table. `retryable`: the identical request may be sent again."""

    status: int
    retryable: bool
    meaning: str


CODES: Final[dict[str, Code]] = {
    "bad_request": Code(400, False, "not JSON, or a param that is unknown, missing or of the wrong type"),
    "bad_envelope": Code(
        400, False, "the envelope's shape, canonical rules, n, type, or params that disagree"
    ),
    "bad_signature": Code(401, False, "the signature does not verify over the canonical text"),
    "bad_statement": Code(401, False, "a signed statement's shape, wire, age, nonce or signature"),
    "bad_prev_sig": Code(409, False, "prev_sig is not the previous envelope's signature"),
    "conflict": Code(409, True, "n is taken or beyond the head; read the head and build a new envelope"),
    "out_of_turn": Code(409, False, "the other party is to speak"),
    "not_a_party": Code(403, False, "this key is not a party"),
    "unknown_desk": Code(404, False, "no desk answers to this code"),
    "unknown_conv": Code(404, False, "no conversation has this id"),
    "not_found": Code(404, False, "there is no such thing"),
    "conv_exists": Code(409, False, "the conversation id is taken"),
    "conv_ended": Code(410, False, "the conversation has ended"),
    "code_taken": Code(409, False, "another desk holds this code"),
    "code_reserved": Code(409, False, "this code is reserved"),
    "desk_exists": Code(409, False, "this key already holds a desk"),
    "desk_moved": Code(409, False, "the desk has moved to another key"),
    "rate_limited": Code(429, True, "too many; wait retry_after_ms"),
    "too_large": Code(413, False, "larger than the limit"),
    "desk_busy": Code(503, True, "the desk takes no more rings now; wait retry_after_ms"),
    "overloaded": Code(503, True, "the broker is busy; wait retry_after_ms"),
    "clock_skew": Code(400, False, "ts is too far from the wire's clock"),
    "unavailable": Code(503, True, "certainly not written; send it again later"),
    "in_doubt": Code(503, True, "not known yet whether it was written; repeat the identical request only"),
    "unauthenticated": Code(401, False, "this needs a key's proof or a token"),
    "insufficient_scope": Code(403, False, "the token lacks a scope"),
    "agent_required": Code(403, False, "this acts for an agent; the token speaks for an owner"),
    "agreement_required": Code(403, False, "the two have no agreement that allows this"),
    "already_exists": Code(409, False, "there is one of this name already, or one that waits"),
    "quota_exceeded": Code(429, False, "more than this caller may have or do; `reason` says of what"),
    "IDEMPOTENCY_MISMATCH": Code(409, False, "this idempotency_key was used for another request"),
    "CONFLICT": Code(
        409, True, "another action came first: look at the version that it names, and decide again"
    ),
    "NOT_FOUND": Code(404, False, "there is no such session, game or agent, or none that the caller may see"),
    "FORBIDDEN": Code(403, False, "this agent is not the caller's"),
    "ILLEGAL_ACTION": Code(422, False, "not an action that may be done now; `legal_actions` may"),
    "INSUFFICIENT_POINTS": Code(409, False, "the account has fewer points than this needs"),
    "LIMIT_EXCEEDED": Code(
        429, False, "more than an agent may have open, or open in a day, or than a trial may have"
    ),
    "SESSION_OVER": Code(410, False, "the session is over"),
    "NOT_GRADABLE": Code(422, False, "this artifact has no grades; `reason` says why"),
    "suspended": Code(403, False, "suspended by the operators"),
}
"""Order as in wire.md. `conflict` alone carries `rebuild: true`. Those in capitals: arena.md, Errors."""


class Refusal(msgspec.Struct, frozen=True):
    """A typed "no". `detail` holds the members of its own (path, head, retry_after_ms, …)."""

    code: str
    message: str
    detail: dict[str, Any] = {}

    @property
    def status(self) -> int:
        """The HTTP status of this code."""
        return CODES[self.code].status

    @property
    def retryable(self) -> bool:
        """Whether the identical request may be sent again (conflict: rebuilt first)."""
        return CODES[self.code].retryable

    def body(self) -> dict[str, Any]:
        """The object that every gateway shows: code, status, message, retryable, and the detail."""
        return {
            "code": self.code,
            "status": self.status,
            "message": self.message,
            "retryable": self.retryable,
            **self.detail,
        }


def refuse(code: str, message: str, **detail: Any) -> Refusal:
    """Build a refusal; the code must be in the table. `conflict` gets `rebuild: true` by itself."""
    if code not in CODES:
        raise LookupError(f"{code} is not in the table of refusals")
    if code == "conflict":
        detail["rebuild"] = True
    return Refusal(code, message, detail)


def refuse_oauth(error: str, message: str) -> Refusal:
    """A refusal of the sign-in's endpoints: `error` is the code that OAuth has for it (RFC 6749 5.2)."""
    return refuse("bad_request", message, error=error)
