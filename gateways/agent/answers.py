"""What the agent's tools answer, in MCP's form: a sentence, the object, or a refusal with the way out.

1. Our sentences hold nothing that another party wrote: only codes, ids, numbers and states of a strict form.
2. An answer that carries what others wrote has `"untrusted": true` beside it.
3. A refusal keeps the wire's code; the way out names tools of the agent, not what a signer would do by hand.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from broker.wire.refusals import CODES, Refusal, refuse
from gateways import render
from gateways.agent.rails import Blocked
from gateways.client.errors import CallEnded, DealerError, Disconnected, Refused
from gateways.mcp.results import plain, untrusted

WAY_OUT: Final[dict[str, str]] = {
    "bad_request": "Correct the arguments and call the tool again.",
    "bad_envelope": "Correct the type or the body and say it again.",
    "too_large": "Say less: a body may have 8192 bytes.",
    "out_of_turn": "The other party is to speak: use wait.",
    "conflict": "Something else was said meanwhile: use wait, look, and decide again.",
    "not_a_party": "This key has no part in that conversation.",
    "unknown_desk": "Check the code. To dial, open your own desk first with open_desk.",
    "unknown_conv": "Check the id: who lists the calls of this key.",
    "conv_ended": "The call is over: dial again if there is more to say.",
    "desk_exists": "Call open_desk with the code that this key holds already.",
    "desk_busy": "Dial again later.",
    "unavailable": "Certainly not done. Try again later.",
    "in_doubt": "It may have been recorded. Say exactly the same again to learn the outcome: it is not said twice.",
}
"""Where render.WAY_OUT speaks to whoever signs by hand."""
_FACTS: Final = ("path", "retry_after_ms", "limit", "size", "n")


class Said(msgspec.Struct, frozen=True):
    """A result: our sentence, the object, and whether others wrote any of it."""

    text: str
    value: dict[str, Any]
    untrusted: bool = False


class Fault(msgspec.Struct, frozen=True):
    """The wire showed what can't be true: nothing is sent to it any more."""

    message: str

    def body(self) -> dict[str, Any]:
        """In the form of a refusal."""
        return {"code": "wire_fault", "status": 502, "message": self.message, "retryable": False}


def result(answer: Said | Refusal | Blocked | Fault) -> dict[str, Any]:
    """The result of tools/call."""
    match answer:
        case Said():
            text = msgspec.json.encode(answer.value)
            text = untrusted(text) if answer.untrusted else text
            return _result(answer.text, text, failed=False)
        case Refusal():
            words, body = _refused(answer), _body(answer)
        case Blocked():
            words = f"guard_rail: {answer.message} (rule: {answer.rule}). {answer.way_out}"
            body = answer.body()
        case Fault():
            words = f"wire_fault: {answer.message}. Stop, and tell the person who runs the agent."
            body = answer.body()
    return _result(words, msgspec.json.encode({"refusal": body}), failed=True)


def from_error(error: DealerError) -> Refusal | Fault:
    """The client's exception as an answer."""
    match error:
        case Refused():
            return error.refusal
        case CallEnded():
            reason = {} if error.reason is None else {"reason": error.reason}
            return refuse("conv_ended", "the call has ended", **reason)
        case Disconnected():
            return refuse("unavailable", f"the wire can't be reached: {error}")
        case _:
            return Fault(str(error))


def _body(refusal: Refusal) -> dict[str, Any]:
    """The refusal's object. A reason in it is an END's, as a party wrote it; a newer wire may know more codes."""
    known = refusal.code in CODES
    head = {"code": refusal.code, "status": 400, "message": refusal.message, "retryable": False}
    body = refusal.body() if known else {**head, **refusal.detail}
    return {**body, "untrusted": True} if "reason" in body else body


def _refused(refusal: Refusal) -> str:
    facts = [f"{name}: {plain(refusal.detail[name])}" for name in _FACTS if name in refusal.detail]
    aside = f" ({', '.join(facts)})" if facts else ""
    way_out = WAY_OUT.get(refusal.code) or render.WAY_OUT.get(refusal.code, "")
    return f"{refusal.code}: {refusal.message}{aside}. {way_out}".rstrip()


def _result(words: str, text: bytes, *, failed: bool) -> dict[str, Any]:
    return {
        "content": [{"type": "text", "text": words}, {"type": "text", "text": text.decode()}],
        "structuredContent": msgspec.Raw(text),
        "isError": failed,
    }


def call_words(state: Mapping[str, Any]) -> str:
    """Where a call stands, in a sentence."""
    phase = {"ringing": "is ringing", "open": "is open"}.get(state["state"], "has ended")
    turn = " It is your turn." if state["your_turn"] else ""
    return f"Call {plain(state['call'])} with {plain(state['with'] or state['pk'])} {phase}.{turn}"
