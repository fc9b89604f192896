"""What only the client can tell: asked in each era's own way, judged when it comes, done again with the answer."""

import json
from collections.abc import Callable
from typing import Any

import pytest
import trio

from gateways.mcp import asking
from gateways.mcp.asking import ROUNDS
from gateways.mcp.endpoint import mcp_app
from gateways.mcp.sealed import STATE_S
from gateways.mcp.surface import Ask, Needs, Outcome, PromptOffer, Question, Surface
from tests.gateways.mcp.harness import (
    LEGACY_REVISIONS,
    Door,
    Response,
    fake_broker,
    modern,
    offer,
    request,
    text,
)
from tests.support.broker_fake import proof

FORMS = {"elicitation": {}}
ALL = {"elicitation": {"form": {}}, "sampling": {}, "roots": {}}
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
NAME = {"name": {"type": "string"}}
SAMPLE = Question("sampling/createMessage", {"messages": [], "maxTokens": 10})
SAID = {"role": "assistant", "content": {"type": "text", "text": "Paris"}, "model": "m"}
FAITH = {"action": "accept", "content": {"name": "Faith"}}


async def greet(ask: Ask, arguments: bytes) -> Outcome:
    """Asks for a name; a second time where it was not given."""
    if (given := asking.accepted(ask, "who")) is not None:
        return text(f"Hello, {given['name']}!")
    if asking.answered(ask, "who"):
        return text("Hello, whoever you are.")
    return Needs({"who": asking.form("Who are you?", NAME)})


async def all_three(ask: Ask, arguments: bytes) -> Outcome:
    if len(ask.answers) == 3:
        return text(",".join(sorted(ask.answers)))
    questions = {"a": asking.form("?", NAME), "b": SAMPLE, "c": Question("roots/list")}
    return Needs(questions, state="all")


async def count(ask: Ask, arguments: bytes) -> Outcome:
    """Two questions, one after the other, with what was learnt in the state."""
    if ask.state is None:
        return Needs({"first": asking.form("First?", NAME)}, state="1")
    if ask.state == "1":
        name = (asking.accepted(ask, "first") or {}).get("name", "?")
        return Needs({"second": asking.form("Second?", NAME)}, state=f"2{name}")
    return text(f"{ask.state} then {(asking.accepted(ask, 'second') or {}).get('name')}")


async def circle(ask: Ask, arguments: bytes) -> Outcome:
    return Needs({"again": asking.form("Again?", NAME)})


async def nothing(ask: Ask, arguments: bytes) -> Outcome:
    return text(f"state {ask.state}") if ask.state is not None else Needs({})


async def prompt(ask: Ask, arguments: dict[str, str]) -> Outcome:
    if not asking.answered(ask, "who"):
        return Needs({"who": asking.form("Who?", NAME)})
    return {"messages": []}


async def read(ask: Ask, uri: str) -> Any:
    if not asking.answered(ask, "who"):
        return Needs({"who": asking.form("Who?", NAME)})
    return [{"uri": uri, "text": "read"}]


@pytest.fixture
def door() -> Door:
    tools = {
        call.__name__: offer(call.__name__, call, waits=True)
        for call in (greet, all_three, count, circle, nothing)
    }
    prompts = {"p": PromptOffer(descriptor={"name": "p", "description": "p"}, get=prompt)}
    broker = fake_broker()
    return Door(mcp_app(broker, faces={"": Surface(tools=tools, prompts=prompts, read=read)}), broker)


async def call(
    door: Door, name: str, capabilities: dict[str, Any], authorization: str = "", **params: Any
) -> Response:
    body, headers = modern("tools/call", name=name, _meta={CAPABILITIES: capabilities}, **params)
    return await door.ask(body=body, **headers, authorization=authorization)


@pytest.mark.requirement("mcp.input-required")
async def test_a_question_is_the_result_and_the_answer_comes_with_the_next_request(door: Door) -> None:
    result = (await call(door, "greet", FORMS)).result
    assert result["resultType"] == "input_required"
    question = result["inputRequests"]["who"]
    assert question["method"] == "elicitation/create"
    assert question["params"]["requestedSchema"]["required"] == ["name"]
    assert "requestState" not in result
    assert "content" not in result
    done = (await call(door, "greet", FORMS, inputResponses={"who": FAITH, "unasked": FAITH})).result
    assert (done["resultType"], done["content"][0]["text"]) == ("complete", "Hello, Faith!")
    for no in ("decline", "cancel"):
        done = (await call(door, "greet", FORMS, inputResponses={"who": {"action": no}})).result
        assert done["content"][0]["text"] == "Hello, whoever you are."


@pytest.mark.requirement("mcp.input-required")
async def test_what_is_still_missing_is_asked_for_again(door: Door) -> None:
    result = (await call(door, "greet", FORMS, inputResponses={"other": FAITH})).result
    assert result["resultType"] == "input_required"


@pytest.mark.requirement("mcp.input-required")
@pytest.mark.parametrize(
    "answers",
    [
        {"who": 12345},
        {"who": None},
        {"who": {}},
        {"who": {"action": "maybe"}},
        {"who": {"action": ["accept"]}},
        {"who": {"action": "accept", "content": [1]}},
        {"who": {"role": "assistant"}},
        {"who": {"roots": {}}},
        [FAITH],
        "x",
        None,
    ],
)
async def test_an_answer_of_no_known_form_is_invalid_params(door: Door, answers: Any) -> None:
    answer = await call(door, "greet", FORMS, inputResponses=answers)
    assert (answer.status, answer.error["code"]) == (400, -32602)


@pytest.mark.requirement("mcp.capability-missing")
async def test_nothing_is_asked_that_the_client_can_not_answer(door: Door) -> None:
    lacking = [
        ("greet", {}, {"elicitation": {"form": {}}}),
        ("greet", {"elicitation": {"url": {}}}, {"elicitation": {"form": {}}}),
        ("greet", {"elicitation": True, "sampling": {}}, {"elicitation": {"form": {}}}),
        ("all_three", {"roots": {}}, {"elicitation": {"form": {}}, "sampling": {}}),
    ]
    for name, capabilities, wanted in lacking:
        answer = await call(door, name, capabilities)
        assert (answer.status, answer.error["code"]) == (400, -32021)
        assert answer.error["data"] == {"requiredCapabilities": wanted}
    assert (await call(door, "all_three", ALL)).result["inputRequests"].keys() == {"a", "b", "c"}


@pytest.mark.requirement("mcp.request-state")
async def test_state_goes_through_the_client_from_round_to_round(door: Door) -> None:
    first = (await call(door, "count", FORMS)).result
    second = (
        await call(door, "count", FORMS, requestState=first["requestState"], inputResponses={"first": FAITH})
    ).result
    assert second["inputRequests"].keys() == {"second"}
    assert second["requestState"] != first["requestState"]
    third = (
        await call(
            door, "count", FORMS, requestState=second["requestState"], inputResponses={"second": FAITH}
        )
    ).result
    assert third["content"][0]["text"] == "2Faith then Faith"


@pytest.mark.requirement("mcp.request-state")
async def test_state_is_taken_from_nobody_else_for_nothing_else_and_not_for_ever(
    door: Door, autojump_clock: object
) -> None:
    mine, other = f"Turret {proof()}", f"Turret {proof(pk='2b' * 32)}"
    first = (await call(door, "count", FORMS, authorization=mine, arguments={"a": 1, "b": 2.0})).result
    state, answers = first["requestState"], {"first": FAITH}

    async def again(name: str = "count", by: str = mine, arguments: Any = None, state: Any = state) -> int:
        arguments = {"a": 1, "b": 2.0} if arguments is None else arguments
        answer = await call(
            door, name, FORMS, by, requestState=state, inputResponses=answers, arguments=arguments
        )
        if answer.status == 200:
            return 0
        assert (answer.status, "begin again" in answer.error["message"]) == (400, True)
        return int(answer.error["code"])

    assert await again() == 0
    assert await again(arguments={"b": 2, "a": 1}) == 0  # the same arguments, written in another way
    assert await again(by=other) == -32602
    assert await again(by="") == -32602
    assert await again(name="greet") == -32602
    assert await again(arguments={"a": 1}) == -32602
    assert await again(state=state + "-TAMPERED") == -32602
    assert await again(state=7) == -32602
    await trio.sleep(STATE_S + 1)
    assert await again() == -32602


async def test_a_tool_may_need_nothing_but_to_be_asked_again(door: Door) -> None:
    result = (await call(door, "nothing", {})).result
    assert "inputRequests" not in result
    again = await call(door, "nothing", {}, requestState=result["requestState"])
    assert again.result["content"][0]["text"] == "state "


@pytest.mark.requirement("mcp.input-required")
async def test_prompts_and_resources_may_ask_too(door: Door) -> None:
    meta, answers = {CAPABILITIES: FORMS}, {"who": FAITH}
    for method, params in (("prompts/get", {"name": "p"}), ("resources/read", {"uri": "x:y"})):
        first = (await door.modern(method, **params, _meta=meta)).result
        assert first["resultType"] == "input_required"
        assert "ttlMs" not in first
        done = (await door.modern(method, **params, _meta=meta, inputResponses=answers)).result
        assert done["resultType"] == "complete"


@pytest.mark.requirement("mcp.server-requests")
@pytest.mark.parametrize("revision", LEGACY_REVISIONS)
async def test_in_a_session_the_question_is_a_request_on_the_calls_own_stream(
    door: Door, revision: str
) -> None:
    session = await door.session(revision, FORMS)
    body = request("tools/call", "c", name="greet")
    async with door.open(body=body, **session.headers) as exchange:
        with trio.fail_after(5):
            (asked,) = await exchange.wait_requests(1)
            assert asked["method"] == "elicitation/create"
            assert asked["params"]["message"] == "Who are you?"
            assert (await session.respond(asked["id"], result=FAITH)).status == 202
            await exchange.finished.wait()
    last = exchange.response().events[-1]
    assert (last["id"], last["result"]["content"][0]["text"]) == ("c", "Hello, Faith!")
    assert "resultType" not in last["result"]


@pytest.mark.requirement("mcp.server-requests")
async def test_several_questions_go_out_at_once_and_are_answered_in_any_order(door: Door) -> None:
    session = await door.session(capabilities=ALL)
    async with door.open(body=request("tools/call", 1, name="all_three"), **session.headers) as exchange:
        with trio.fail_after(5):
            asked = {each["method"]: each["id"] for each in await exchange.wait_requests(3)}
            await session.respond(asked["roots/list"], result={"roots": []})
            await session.respond(asked["elicitation/create"], result={"action": "cancel"})
            await session.respond(asked["sampling/createMessage"], result=SAID)
            await exchange.finished.wait()
    assert exchange.response().events[-1]["result"]["content"][0]["text"] == "a,b,c"


@pytest.mark.requirement("mcp.server-requests")
async def test_rounds_in_a_session_keep_their_state(door: Door) -> None:
    session = await door.session(capabilities=FORMS)
    async with door.open(body=request("tools/call", 1, name="count"), **session.headers) as exchange:
        with trio.fail_after(5):
            for number in (1, 2):
                asked = await exchange.wait_requests(number)
                await session.respond(asked[-1]["id"], result=FAITH)
            await exchange.finished.wait()
    assert exchange.response().events[-1]["result"]["content"][0]["text"] == "2Faith then Faith"


@pytest.mark.requirement("mcp.server-requests")
@pytest.mark.parametrize(
    "outcome", [{"error": {"code": -1, "message": "no"}}, {"result": {}}, {"result": 7}, {"result": None}]
)
async def test_a_client_that_will_not_answer_ends_the_call_with_an_error(
    door: Door, outcome: dict[str, Any]
) -> None:
    session = await door.session(capabilities=FORMS)
    async with door.open(body=request("tools/call", 1, name="greet"), **session.headers) as exchange:
        with trio.fail_after(5):
            (asked,) = await exchange.wait_requests(1)
            assert (await session.respond(asked["id"], **outcome)).status == 202
            await exchange.finished.wait()
    last = exchange.response().events[-1]
    assert last["error"]["code"] == -32600
    assert last["error"].get("data") == outcome.get("error")


@pytest.mark.requirement("mcp.server-requests")
async def test_an_answer_counts_in_its_own_session_and_once(door: Door) -> None:
    mine, theirs = await door.session(capabilities=FORMS), await door.session(capabilities=FORMS)
    async with door.open(body=request("tools/call", 1, name="greet"), **mine.headers) as exchange:
        with trio.fail_after(5):
            (asked,) = await exchange.wait_requests(1)
            for id in (asked["id"] + 1, str(asked["id"]), float(asked["id"]) + 0.5, "x"):
                assert (await mine.respond(id, result=FAITH)).status in (202, 400)
            assert (await theirs.respond(asked["id"], result=FAITH)).status == 202
            assert not exchange.finished.is_set()
            assert (await mine.respond(asked["id"], result=FAITH)).status == 202
            await exchange.finished.wait()
            assert (await mine.respond(asked["id"], result=FAITH)).status == 202  # too late, and no harm


@pytest.mark.requirement("mcp.server-requests")
async def test_an_answer_that_never_comes_ends_the_call_in_time(door: Door, autojump_clock: object) -> None:
    session = await door.session(capabilities=FORMS)
    started = trio.current_time()
    async with door.open(body=request("tools/call", 1, name="greet"), **session.headers) as exchange:
        await exchange.finished.wait()
    assert trio.current_time() - started == pytest.approx(STATE_S)
    assert exchange.response().events[-1]["error"]["code"] == -32600


@pytest.mark.requirement("mcp.server-requests")
async def test_nobody_waits_for_the_answer_of_a_client_that_has_left(door: Door) -> None:
    session = await door.session(capabilities=FORMS)
    with trio.fail_after(5):
        async with door.open(body=request("tools/call", 1, name="greet"), **session.headers) as exchange:
            await exchange.wait_requests(1)
        assert door.app.sessions.statistics().busy == 0


@pytest.mark.requirement("mcp.cancel")
async def test_a_call_that_waits_for_its_client_can_be_cancelled(door: Door) -> None:
    session = await door.session(capabilities=FORMS)
    async with door.open(body=request("tools/call", 1, name="greet"), **session.headers) as exchange:
        with trio.fail_after(5):
            await exchange.wait_requests(1)
            cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
            assert (await door.ask(body=cancel, **session.headers)).status == 202
            await exchange.finished.wait()
    assert exchange.response().events[-1]["error"]["code"] == -32800


async def test_a_tool_that_asks_in_a_circle_is_stopped(door: Door) -> None:
    session = await door.session(capabilities=FORMS)
    async with door.open(body=request("tools/call", 1, name="circle"), **session.headers) as exchange:
        with trio.fail_after(5):
            for number in range(1, ROUNDS + 1):
                asked = await exchange.wait_requests(number)
                await session.respond(asked[-1]["id"], result=FAITH)
            await exchange.finished.wait()
    assert exchange.response().events[-1]["error"]["code"] == -32603


@pytest.mark.requirement("mcp.capability-missing")
@pytest.mark.parametrize(
    ("capabilities", "accept"), [({}, "application/json, text/event-stream"), (FORMS, "application/json")]
)
async def test_a_session_that_can_not_be_asked_is_told_so(
    door: Door, capabilities: dict[str, Any], accept: str
) -> None:
    session = await door.session(capabilities=capabilities)
    answer = await door.ask(body=request("tools/call", 1, name="greet"), **session.headers, accept=accept)
    assert (answer.status, answer.error["code"]) == (200, -32600)
    assert (await door.bare("tools/call", name="greet")).error["code"] == -32600


@pytest.mark.parametrize(
    ("capabilities", "able"),
    [
        ({}, False),
        ({"elicitation": {}}, True),
        ({"elicitation": {"form": {}}}, True),
        ({"elicitation": None}, False),
    ],
)
def test_an_empty_elicitation_means_forms(capabilities: dict[str, Any], able: bool) -> None:
    assert asking.takes_forms(capabilities) is able
    url = Question("elicitation/create", {"mode": "url", "url": "https://x.example", "message": "?"})
    assert not asking.can_answer(capabilities, url)
    assert asking.can_answer({"elicitation": {"url": {}}}, url)


def test_a_form_requires_all_of_its_properties_unless_it_says_less() -> None:
    made: Callable[..., Question] = asking.form
    assert made("?", NAME).params["requestedSchema"]["required"] == ["name"]
    assert made("?", NAME, []).params["requestedSchema"]["required"] == []
    assert json.dumps(made("?", NAME).params)
