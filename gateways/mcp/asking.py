"""What only the client can tell, in the way of each era: input_required, or a request of ours to it.

1. Nobody waits inside a tool: it says what it Needs, and the same work is done again with the answers. So one
   tool serves both eras.
2. Nothing is asked that the client did not say it can answer; what can't go on without is -32021.
3. What comes back is judged: an answer by its form, state by its seal.

2026-07-28: the questions are the result, and the client sends its request again with the answers. The handshake
era: each question is a request on the stream of the client's own request, answered by a POST of its own.
Source: MCP 2026-07-28, Multi Round-Trip Requests; MCP 2025-11-25, Elicitation, Sampling, Roots.
"""

import hashlib
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import msgspec
import trio

from broker.wire import canonical
from broker.wire.refusals import Refusal
from gateways import jsonrpc
from gateways.mcp.revisions import CAPABILITY_MISSING, MODERN, Fault
from gateways.mcp.sealed import STATE_S, Seal
from gateways.mcp.surface import Ask, Needs, Outcome, Question, Result

ROUNDS: Final = 8
"""Times that one request may ask; beyond it something asks in a circle."""
_ACTIONS: Final = ("accept", "decline", "cancel")

Params = dict[str, msgspec.Raw]
Work = Callable[[Ask], Awaitable[Outcome]]


def form(message: str, properties: Mapping[str, Any], required: list[str] | None = None) -> Question:
    """elicitation/create in form mode; all properties are required unless `required` says less.

    A form never asks for a secret: a key, a password, a token (MCP, Elicitation).
    """
    schema = {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties) if required is None else required,
    }
    return Question("elicitation/create", {"message": message, "requestedSchema": schema})


_FORM: Final = form("", {})


def accepted(ask: Ask, key: str) -> dict[str, Any] | None:
    """What a form was filled in with; None where it was not (yet), or was declined: see `answered`."""
    answer = ask.answers.get(key)
    if not isinstance(answer, dict) or answer.get("action") != "accept":
        return None
    content = answer.get("content", {})
    return content if isinstance(content, dict) else None


def answered(ask: Ask, key: str) -> bool:
    """Whether the client said anything to a question, be it no."""
    return key in ask.answers


def can_answer(capabilities: Mapping[str, Any], question: Question) -> bool:
    """Whether the client declared what it takes to answer. An empty `elicitation` means forms."""
    name, mode = _needed(question)
    declared = capabilities.get(name)
    if not isinstance(declared, dict):
        return False
    return name != "elicitation" or mode in declared or (mode == "form" and not declared)


def takes_forms(capabilities: Mapping[str, Any]) -> bool:
    """Whether the client's user can be asked to fill in a form."""
    return can_answer(capabilities, _FORM)


def can_ask(ask: Ask) -> bool:
    """Whether a form can be asked for now: declared, and with a way to the client."""
    way = ask.revision == MODERN or (ask.session is not None and ask.notify is not None)
    return way and takes_forms(ask.capabilities)


async def carry_out(seal: Seal, ask: Ask, method: str, params: Params, work: Work) -> Result:
    """Do the work until it needs no more (handshake era), or until it needs more (2026-07-28).

    Cancelling ends the wait for the client's answer.
    """
    if ask.revision == MODERN:
        return await _one_round(seal, ask, method, params, work)
    for _ in range(ROUNDS):
        outcome = await work(ask)
        if not isinstance(outcome, Needs):
            return outcome
        answers = await _ask_client(ask, outcome)
        if isinstance(answers, Fault):
            return answers
        ask = msgspec.structs.replace(ask, answers=answers, state=outcome.state)
    return Fault(jsonrpc.INTERNAL_ERROR, f"still not enough after asking {ROUNDS} times")


async def _one_round(seal: Seal, ask: Ask, method: str, params: Params, work: Work) -> Result:
    if "inputResponses" in params or "requestState" in params:
        again = _answered(seal, ask, method, params)
        if isinstance(again, Fault):
            return again
        ask = again
    outcome = await work(ask)
    if not isinstance(outcome, Needs):
        return outcome
    if (fault := _undeclared(ask, outcome)) is not None:
        return fault
    result: dict[str, Any] = {"resultType": "input_required"}
    if outcome.questions:
        result["inputRequests"] = dict(outcome.questions)
    if outcome.state is not None or not outcome.questions:  # one of the two must be there
        owner, request = ask.caller.identity or "", _digest(method, params)
        result["requestState"] = seal.close(outcome.state or "", owner, request)
    return result


def _answered(seal: Seal, ask: Ask, method: str, params: Params) -> Ask | Fault:
    """The same ask with the answers and the state that came with it. What we did not ask nobody looks at."""
    answers = _value(params["inputResponses"]) if "inputResponses" in params else {}
    if not isinstance(answers, dict) or not all(map(_is_answer, answers.values())):
        return Fault(jsonrpc.INVALID_PARAMS, "inputResponses must be an object of results, one a question")
    state = None
    if "requestState" in params:
        text = _value(params["requestState"])
        if isinstance(text, str):
            state = seal.open(text, ask.caller.identity or "", _digest(method, params))
        if state is None:
            return Fault(
                jsonrpc.INVALID_PARAMS,
                "requestState is not ours, not of this request, or too old: begin again without it",
            )
    return msgspec.structs.replace(ask, answers=answers, state=state)


async def _ask_client(ask: Ask, needs: Needs) -> dict[str, Any] | Fault:
    """All questions at once, on the request's own stream; the answers by key. It ends when the client leaves."""
    if (fault := _undeclared(ask, needs)) is not None:
        return fault
    session, notify = ask.session, ask.notify
    if session is None or notify is None:
        return Fault(jsonrpc.INVALID_REQUEST, "this needs a session, and a client that takes an event stream")
    responses: dict[str, jsonrpc.Response] = {}

    async def one(key: str, question: Question) -> None:
        responses[key] = await session.request(notify, question.method, question.params)

    with trio.move_on_after(STATE_S) as patience:
        async with trio.open_nursery() as watching:
            watching.start_soon(_end_with, ask.left, patience)
            async with trio.open_nursery() as nursery:
                for key, question in needs.questions.items():
                    nursery.start_soon(one, key, question)
            watching.cancel_scope.cancel()
    if len(responses) < len(needs.questions):
        return Fault(jsonrpc.INVALID_REQUEST, "the client was asked and did not answer in time")
    answers: dict[str, Any] = {}
    for key, response in responses.items():
        value = None if response.result is None else _value(response.result)
        if not _is_answer(value):
            said = None if response.error is None else _value(response.error)
            return Fault(jsonrpc.INVALID_REQUEST, "the client did not answer what it was asked", said)
        answers[key] = value
    return answers


async def _end_with(event: trio.Event, scope: trio.CancelScope) -> None:
    """Nobody waits for a client that has left: its answer would have nowhere to go."""
    await event.wait()
    scope.cancel()


def _is_answer(value: Any) -> bool:
    """Whether a value has the form of a client's result: of elicitation, of sampling, or of roots."""
    if not isinstance(value, dict):
        return False
    if "action" in value:
        return value["action"] in _ACTIONS and isinstance(value.get("content", {}), dict | None)
    if "roots" in value:
        return isinstance(value["roots"], list)
    return isinstance(value.get("role"), str) and isinstance(value.get("content"), dict | list)


def _undeclared(ask: Ask, needs: Needs) -> Fault | None:
    """-32021 for what the client did not declare; the handshake era has no code of its own for it."""
    lacking: dict[str, Any] = {}
    for question in needs.questions.values():
        if not can_answer(ask.capabilities, question):
            name, mode = _needed(question)
            lacking.setdefault(name, {}).update({mode: {}} if mode else {})
    if not lacking:
        return None
    code = CAPABILITY_MISSING if ask.revision == MODERN else jsonrpc.INVALID_REQUEST
    words = f"this needs a client that can do {', '.join(lacking)}"
    return Fault(code, words, {"requiredCapabilities": lacking})


def _needed(question: Question) -> tuple[str, str]:
    """The capability that a question takes, and for elicitation the mode."""
    if question.method == "elicitation/create":
        return "elicitation", str(question.params.get("mode", "form"))
    return question.method.partition("/")[0], ""


def _digest(method: str, params: Params) -> str:
    """What the request is of: its method, its name or uri, and its arguments, however they are written."""
    parts = [method.encode()]
    for name in ("name", "uri", "arguments"):
        text = bytes(params.get(name, b"{}"))
        written = canonical.canonicalize(text)
        parts.append(text if isinstance(written, Refusal) else written)
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def _value(raw: msgspec.Raw | bytes) -> Any:
    try:
        return msgspec.json.decode(raw)
    except (msgspec.MsgspecError, RecursionError, ValueError):
        return None
