"""One refusal, or one fault, in the form of each door (wire.md, Refusals).

1. A refusal looks the same everywhere: {code, status, message, retryable, …detail}.
2. A fault (an unexpected exception) is shown as an incident number and nothing else, and is logged under it.
"""

import logging
import math
import secrets
from typing import Any, Final

import msgspec

from broker.wire.refusals import Refusal, refuse
from gateways import jsonrpc, requestid

log = logging.getLogger(__name__)

Headers = list[tuple[bytes, bytes]]

JSON_HEADERS: Final[Headers] = [(b"content-type", b"application/json; charset=utf-8")]


class Close(msgspec.Struct, frozen=True):
    """How a WebSocket ends: the code (RFC 6455, 7.4) and a reason of at most 123 bytes."""

    code: int
    reason: str


CLOSE: Final[dict[str, Close]] = {
    "binary": Close(1003, "text frames only"),
    "not_utf8": Close(1007, "a text frame must be UTF-8"),
    "too_large": Close(1009, "a frame beyond the limit"),
    "fault": Close(1011, "an unexpected fault"),
    "restart": Close(1012, "the broker restarts"),
    "overloaded": Close(1013, "too many connections"),
    "auth_expired": Close(4001, "the authentication has run out"),
    "slow": Close(4008, "too slow a reader; resume by cursor"),
}
"""Every close that we begin, by what led to it."""

NOTHING: Final = refuse("not_found", "there is nothing to be had here")
"""For a path at which no door stands, or none for who asks."""
NO_STORE: Final = refuse("unavailable", "the store gives nothing now; try again later")
"""Why a stream ends that can't be read; the broker's verbs say the like themselves."""

WAY_OUT: Final[dict[str, str]] = {
    "bad_request": "Correct the parameters and send the request again.",
    "bad_envelope": "Correct the envelope, sign it anew and send it; canonicalize shows what is due.",
    "bad_signature": "Sign exactly the canonical text given here, with the key named in from.",
    "bad_statement": "Make a new statement with a new nonce and the present time, and sign it.",
    "bad_prev_sig": "Set prev_sig to the head's sig and sign again.",
    "conflict": "Read the head, build a new envelope on it and send that.",
    "out_of_turn": "Wait for the other party's envelope.",
    "not_a_party": "Use the key of a party.",
    "unknown_desk": "Check the code with resolve_code.",
    "unknown_conv": "Check the conversation's id.",
    "not_found": "Check the name or id.",
    "conv_exists": "Choose a new random conversation id.",
    "conv_ended": "Start a new call.",
    "code_taken": "Choose another code.",
    "code_reserved": "Choose another code.",
    "desk_exists": "Use the desk that this key holds, or close it first.",
    "desk_moved": "Ask resolve_code for the present key.",
    "rate_limited": "Wait, then send the identical request.",
    "too_large": "Send less.",
    "desk_busy": "Wait, then send the identical request.",
    "overloaded": "Wait, then send the identical request.",
    "clock_skew": "Set the clock by wire_ts, sign again and send.",
    "unavailable": "Nothing was written: send the identical request later.",
    "in_doubt": "Send the identical request until the outcome is known; never sign another for this n.",
    "unauthenticated": "Sign in for a token, or send a signed follow statement, in the Authorization header.",
    "insufficient_scope": "Ask for a token with the scope.",
    "agent_required": "Sign in again and choose one of your agents.",
    "agreement_required": "Ask for an agreement with request_contact, and wait until it is accepted.",
    "already_exists": "Use the one that there is, or choose another name.",
    "quota_exceeded": "Wait, or do without; reason says what there was too much of.",
    "IDEMPOTENCY_MISMATCH": "Choose a new idempotency_key for a new request.",
    "CONFLICT": "Look again (get_session; get_agent before opening), decide again, and use a new idempotency_key.",
    "NOT_FOUND": "Check the id or name; describe_arena lists the games, get_agent your sessions.",
    "FORBIDDEN": "Act for an agent of your own.",
    "ILLEGAL_ACTION": "Choose one of legal_actions, under a new idempotency_key.",
    "INSUFFICIENT_POINTS": "Stake less, or stop.",
    "LIMIT_EXCEEDED": "Stop a session that you need no more, or wait for tomorrow; reason says which.",
    "SESSION_OVER": "Look at its result with get_session, or open another one.",
    "NOT_GRADABLE": "Give the ref of a finished trial whose tape is in the catalog; reason says what this one is.",
    "suspended": "Ask the operators.",
}
"""What the one refused can do next, for models and people; every code of the table has one."""

TRIAL_WAY_OUT: Final[dict[str, str]] = {
    "CONFLICT": "With an operation_id wait for it with kestrel.operation.resume; else look again with "
    "kestrel.session.resume, decide again, and use a new idempotency_key.",
    "NOT_FOUND": "Check the id, the ref or the name; kestrel://catalog shows the tapes.",
    "LIMIT_EXCEEDED": "Finalize a trial that you need no more, or wait for tomorrow; reason says which.",
    "SESSION_OVER": "kestrel.session.resume shows its ref; grade it, or open another trial.",
    "quota_exceeded": "Unset a secret that you need no more; an agent keeps some once an owner has claimed it.",
}
"""The same in the tools of trials, where it is another than the arena's."""


def http(refusal: Refusal) -> tuple[int, Headers, bytes]:
    """Plain HTTP: status, headers (Retry-After in whole seconds, rounded up) and {"refusal": …}.

    A `status` in the detail stands in for the table's: 405, 415 and 421 are bad_request to a program.
    """
    headers = [*JSON_HEADERS]
    wait_ms = refusal.detail.get("retry_after_ms")
    if isinstance(wait_ms, int):
        headers.append((b"retry-after", b"%d" % max(1, math.ceil(wait_ms / 1000))))
    if refusal.status == 401:
        headers.append((b"www-authenticate", b"Turret"))
    body = refusal.body()
    return body["status"], headers, msgspec.json.encode({"refusal": body})


def jsonrpc_error(id: jsonrpc.Id | None, refusal: Refusal) -> bytes:
    """WebSocket: -32000 with the refusal as data; wrong params (bad_request) -32602 with data.refusal."""
    if refusal.code == "bad_request":
        return jsonrpc.error(id, jsonrpc.INVALID_PARAMS, refusal.message, {"refusal": refusal.body()})
    return jsonrpc.error(id, jsonrpc.REFUSED, refusal.message, refusal.body())


def refusal_text(refusal: Refusal, tool: str = "") -> str:
    """`<code>: <message>`, what stands in the way in figures, and the way out, with that tool: complete on its own."""
    facts = [
        f"{name}: {value}"
        for name in (
            "path",
            "retry_after_ms",
            "limit",
            "size",
            "wire_ts",
            "reason",
            "version",
            "operation_id",
        )
        if (value := refusal.detail.get(name)) is not None
    ]
    aside = f" ({', '.join(facts)})" if facts else ""
    ways = WAY_OUT | TRIAL_WAY_OUT if tool.startswith("kestrel.") else WAY_OUT
    return f"{refusal.code}: {refusal.message}{aside}. {ways.get(refusal.code, '')}".rstrip()


def tool_result(refusal: Refusal, tool: str = "") -> dict[str, Any]:
    """MCP tools/call: isError, the words, the same object as compact JSON, and structuredContent.refusal."""
    shown = {"refusal": refusal.body()}
    return {
        "content": [
            {"type": "text", "text": refusal_text(refusal, tool)},
            {"type": "text", "text": msgspec.json.encode(shown).decode()},
        ],
        "structuredContent": shown,
        "isError": True,
    }


def incident(fault: BaseException, where: str) -> str:
    """Log a fault with its traceback under a new random number, and give the number.

    It begins with the id of the request at hand, where there is one: the log is searched by either. `where` names the
    door or the tool; never a conversation, a key or what a client sent.
    """
    request_id = requestid.current()
    number = f"{request_id}-{secrets.token_hex(4)}" if request_id else secrets.token_hex(8)
    log.error("incident %s in %s", number, where, exc_info=fault)
    return number


def http_fault(number: str) -> tuple[int, Headers, bytes]:
    """Plain HTTP: 500 with {"error": "internal", "incident": …}."""
    return 500, [*JSON_HEADERS], msgspec.json.encode({"error": "internal", "incident": number})


def jsonrpc_fault(id: jsonrpc.Id | None, number: str) -> bytes:
    """WebSocket and MCP: -32603 with the incident's number."""
    return jsonrpc.error(id, jsonrpc.INTERNAL_ERROR, "internal error", {"incident": number})
