"""A2A's errors, and which of them a refusal is.

Source: A2A specification 1.0, 5.4 (codes) and 9.5 (`data` is an array of objects with a `@type`).
"""

from typing import Any, Final

import msgspec

from broker.wire.refusals import Refusal
from gateways import jsonrpc

DOMAIN: Final = "a2a-protocol.org"
OURS: Final = "turret"
"""The domain of reasons that A2A has no error for: the broker's own codes."""
_TYPE: Final = "type.googleapis.com/google.rpc."


class Fault(msgspec.Struct, frozen=True):
    """Why a method gives no result, as JSON-RPC's error says it."""

    code: int
    message: str
    data: list[dict[str, Any]]

    def reply(self, id: jsonrpc.Id | None) -> bytes:
        """The error response."""
        return jsonrpc.error(id, self.code, self.message, self.data)


def fault(code: int, reason: str, message: str, domain: str = DOMAIN, /, **metadata: str) -> Fault:
    """One with a google.rpc.ErrorInfo."""
    info = {"@type": f"{_TYPE}ErrorInfo", "reason": reason, "domain": domain, "metadata": metadata}
    return Fault(code, message, [info])


TASK_NOT_FOUND: Final = fault(-32001, "TASK_NOT_FOUND", "there is no such task of yours")
NO_CARD: Final = fault(-32004, "UNSUPPORTED_OPERATION", "there is no extended Agent Card")
NOT_JSON: Final = fault(-32005, "CONTENT_TYPE_NOT_SUPPORTED", "send application/json in UTF-8")
OVER: Final = fault(-32004, "UNSUPPORTED_OPERATION", "the task is over, and nothing more comes of it")
NO_METHOD: Final = Fault(jsonrpc.METHOD_NOT_FOUND, "there is no such method", [])
NO_ID: Final = Fault(jsonrpc.INVALID_REQUEST, "a request has an id", [])


def not_cancelable(state: str) -> Fault:
    """For a task that is over."""
    return fault(-32002, "TASK_NOT_CANCELABLE", f"the task is {state} already", state=state)


def version(asked: str, served: str) -> Fault:
    """For a version of A2A that is not spoken here."""
    return fault(
        -32009, "VERSION_NOT_SUPPORTED", f"this is A2A {served}: send `A2A-Version: {served}`",
        requested=asked[:32], supported=served,
    )  # fmt: skip


def invalid(field: str, message: str) -> Fault:
    """Params that are wrong."""
    violation = {"field": field, "description": message}
    data = [{"@type": f"{_TYPE}BadRequest", "fieldViolations": [violation]}]
    return Fault(jsonrpc.INVALID_PARAMS, f"Invalid parameters: {message}", data)


def internal(number: str) -> Fault:
    """A fault of ours, of which the client is told the incident's number alone."""
    data = [{"@type": f"{_TYPE}RequestInfo", "requestId": number}]
    return Fault(jsonrpc.INTERNAL_ERROR, "internal error", data)


def of_refusal(refusal: Refusal, *, canceling: bool = False) -> Fault:
    """The error that a refusal of a tool is."""
    state, path = refusal.detail.get("state"), refusal.detail.get("path")
    if refusal.code == "not_found":
        return TASK_NOT_FOUND
    if refusal.code == "bad_request" and state is not None:
        if canceling:
            return not_cancelable(state)
        return fault(-32004, "UNSUPPORTED_OPERATION", refusal.message, state=str(state))
    if refusal.code == "bad_request" and "a2a_endpoint" in refusal.detail:
        return fault(-32004, "UNSUPPORTED_OPERATION", refusal.message, url=refusal.detail["a2a_endpoint"])
    if refusal.code in ("bad_request", "too_large"):
        return invalid(_PATHS.get(str(path), str(path or "params")), refusal.message)
    told = {name: str(value) for name, value in refusal.detail.items()}
    return fault(jsonrpc.REFUSED, refusal.code.upper(), refusal.message, OURS, **told)


_PATHS: Final = {
    "text": "message.parts",
    "context_id": "message.contextId",
    "message_id": "message.messageId",
    "metadata": "message.metadata",
    "after": "pageToken",
    "limit": "pageSize",
    "history": "historyLength",
}
"""Where what a tool calls so stands in A2A's params."""
