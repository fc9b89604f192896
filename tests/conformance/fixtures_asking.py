"""The judges' fixtures that ask the client: elicitation, sampling and roots, in both eras."""

import json
from typing import Any

from gateways.mcp import asking
from gateways.mcp.surface import Ask, Needs, Outcome, PromptOffer, Question, ToolOffer

NAME = {"name": {"type": "string"}}
ROOTS = Question("roots/list")


def said(text: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}], "isError": False}


def sample(text: str, tokens: int = 100) -> Question:
    message = {"role": "user", "content": {"type": "text", "text": text}}
    return Question("sampling/createMessage", {"messages": [message], "maxTokens": tokens})


def asker(name: str, call: Any, **properties: Any) -> ToolOffer:
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    about = f"A fixture of the judges: {name}"
    return ToolOffer(
        descriptor={"name": name, "description": about, "inputSchema": schema}, call=call, waits=True
    )


def once(name: str, key: str, question: Question) -> ToolOffer:
    """A tool that asks one thing and repeats the answer."""

    async def call(ask: Ask, arguments: bytes) -> Outcome:
        if not asking.answered(ask, key):
            return Needs({key: question})
        return said(f"{name}: {json.dumps(ask.answers[key])}")

    return asker(name, call)


async def sampling(ask: Ask, arguments: bytes) -> Outcome:
    if not asking.answered(ask, "sample"):
        return Needs({"sample": sample(json.loads(arguments)["prompt"])})
    return said(f"LLM response: {ask.answers['sample']['content']['text']}")


async def elicitation(ask: Ask, arguments: bytes) -> Outcome:
    if not asking.answered(ask, "user"):
        properties = {"response": {"type": "string", "description": "User's response"}}
        return Needs({"user": asking.form(json.loads(arguments)["message"], properties)})
    answer = ask.answers["user"]
    return said(f"User response: action={answer['action']}, content={json.dumps(answer.get('content'))}")


CONFIRM = asking.form("Please confirm", {"ok": {"type": "boolean"}})


async def request_state(ask: Ask, arguments: bytes) -> Outcome:
    if asking.answered(ask, "confirm") and ask.state == "nonce":
        return said("state-ok")
    return Needs({"confirm": CONFIRM}, state="nonce")


async def several(ask: Ask, arguments: bytes) -> Outcome:
    if {"user_name", "greeting", "client_roots"} <= ask.answers.keys():
        return said("All inputs received.")
    questions = {
        "user_name": asking.form("What is your name?", NAME),
        "greeting": sample("Generate a greeting", 50),
        "client_roots": ROOTS,
    }
    return Needs(questions, state="several")


async def rounds(ask: Ask, arguments: bytes) -> Outcome:
    at, name = json.loads(ask.state or '[0, ""]')
    if at == 2 and asking.answered(ask, "step2"):
        return said(f"{name} likes {(asking.accepted(ask, 'step2') or {}).get('color')}.")
    if at == 1 and asking.answered(ask, "step1"):
        name = (asking.accepted(ask, "step1") or {}).get("name")
        color = asking.form("Step 2: What is your favorite color?", {"color": {"type": "string"}})
        return Needs({"step2": color}, state=json.dumps([2, name]))
    return Needs({"step1": asking.form("Step 1: What is your name?", NAME)}, state=json.dumps([1, ""]))


async def by_capability(ask: Ask, arguments: bytes) -> Outcome:
    wanted = {"sample": sample("Say hello", 50), "ask": asking.form("What is your name?", NAME)}
    able = {key: each for key, each in wanted.items() if asking.can_answer(ask.capabilities, each)}
    return Needs(able, state="by capability")


async def needs_sampling(ask: Ask, arguments: bytes) -> Outcome:
    return said("answered") if ask.answers else Needs({"sample": sample("Say hello")})


DEFAULTS = {
    "name": {"type": "string", "description": "User name", "default": "John Doe"},
    "age": {"type": "integer", "description": "User age", "default": 30},
    "score": {"type": "number", "description": "User score", "default": 95.5},
    "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
    "verified": {"type": "boolean", "description": "Verification status", "default": True},
}
ENUMS = {
    "untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
    "titledSingle": {
        "type": "string",
        "oneOf": [{"const": f"value{n}", "title": f"Option {n}"} for n in (1, 2, 3)],
    },
    "legacyEnum": {
        "type": "string",
        "enum": ["opt1", "opt2", "opt3"],
        "enumNames": ["Option One", "Option Two", "Option Three"],
    },
    "untitledMulti": {
        "type": "array",
        "items": {"type": "string", "enum": ["option1", "option2", "option3"]},
    },
    "titledMulti": {
        "type": "array",
        "items": {"anyOf": [{"const": f"value{n}", "title": f"Choice {n}"} for n in (1, 2, 3)]},
    },
}


def asking_tools() -> list[ToolOffer]:
    prefix = "test_input_required_result"
    name = asking.form("What is your name?", NAME)
    text = {"type": "string", "description": "what to ask"}
    return [
        asker("test_sampling", sampling, prompt=text),
        asker("test_elicitation", elicitation, message=text),
        once("test_elicitation_sep1034_defaults", "user", asking.form("Please check this", DEFAULTS, [])),
        once("test_elicitation_sep1330_enums", "user", asking.form("Please choose", ENUMS, [])),
        once("test_streaming_elicitation", "user_name", name),
        asker("test_missing_capability", needs_sampling),
        once(f"{prefix}_elicitation", "user_name", name),
        once(f"{prefix}_sampling", "capital_question", sample("What is the capital of France?")),
        once(f"{prefix}_list_roots", "client_roots", ROOTS),
        asker(f"{prefix}_request_state", request_state),
        asker(f"{prefix}_multiple_inputs", several),
        asker(f"{prefix}_multi_round", rounds),
        asker(f"{prefix}_tampered_state", request_state),
        asker(f"{prefix}_capabilities", by_capability),
    ]


async def context_prompt(ask: Ask, arguments: dict[str, str]) -> Outcome:
    if not asking.answered(ask, "user_context"):
        properties = {"context": {"type": "string"}}
        return Needs({"user_context": asking.form("What context should the prompt use?", properties)})
    context = (asking.accepted(ask, "user_context") or {}).get("context", "none")
    return {"messages": [{"role": "user", "content": {"type": "text", "text": f"Use this: {context}"}}]}


def asking_prompts() -> list[PromptOffer]:
    name = "test_input_required_result_prompt"
    about = f"A fixture of the judges: {name}"
    return [PromptOffer(descriptor={"name": name, "description": about, "arguments": []}, get=context_prompt)]
