"""What the official judges ask for by name: tools, prompts and resources that no broker has.

They are mounted beside the broker's own on the real dispatcher, so that every byte that a judge sees was made by
the product. Names and texts are those that the judges look for.
"""

import json
from collections.abc import Callable
from typing import Any

import msgspec
import trio

from gateways.mcp.lists import Lists
from gateways.mcp.surface import Ask, Missing, Outcome, PromptOffer, Surface, ToolOffer, Updates, Watch
from tests.conformance.fixtures_asking import asking_prompts, asking_tools

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
WAV = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA="
IMAGE = {"type": "image", "data": PNG, "mimeType": "image/png"}
AUDIO = {"type": "audio", "data": WAV, "mimeType": "audio/wav"}
NOTHING: dict[str, Any] = {"type": "object", "properties": {}}
STEP_S = 0.05
SCHEMA_2020_12 = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}


def words(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def embedded(uri: str, text: str, kind: str = "text/plain") -> dict[str, Any]:
    return {"type": "resource", "resource": {"uri": uri, "mimeType": kind, "text": text}}


def says(*content: dict[str, Any], error: bool = False) -> dict[str, Any]:
    return {"content": list(content), "isError": error}


def tool(name: str, call: Any, *, schema: dict[str, Any] = NOTHING, waits: bool = False) -> ToolOffer:
    about = f"A fixture of the judges: {name}"
    return ToolOffer(
        descriptor={"name": name, "description": about, "inputSchema": schema}, call=call, waits=waits
    )


def constant(name: str, result: dict[str, Any], **more: Any) -> ToolOffer:
    async def call(ask: Ask, arguments: bytes) -> Outcome:
        return dict(result)

    return tool(name, call, **more)


async def progress(ask: Ask, arguments: bytes) -> Outcome:
    for step in (0, 50, 100):
        await ask.progress(step, f"step {step}", total=100)
        await trio.sleep(STEP_S)
    return says(words("done"))


async def logging(ask: Ask, arguments: bytes) -> Outcome:
    for text in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        await ask.log("info", text)
        await trio.sleep(STEP_S)
    return says(words("logged"))


async def region(ask: Ask, arguments: bytes) -> Outcome:
    return says(words(f"region: {json.loads(arguments).get('region')}"))


REGION = {
    "type": "object",
    "properties": {"region": {"type": "string", "description": "a region", "x-mcp-header": "Region"}},
}


def plain_tools() -> list[ToolOffer]:
    return [
        constant("test_simple_text", says(words("This is a simple text response for testing."))),
        constant("test_image_content", says(IMAGE)),
        constant("test_audio_content", says(AUDIO)),
        constant("test_embedded_resource", says(embedded("test://embedded-resource", "embedded"))),
        constant(
            "test_multiple_content_types",
            says(
                words("Multiple content types test:"),
                IMAGE,
                embedded("test://mixed-content-resource", '{"test":"data","value":123}', "application/json"),
            ),
        ),
        constant(
            "test_error_handling",
            says(words("This tool intentionally returns an error for testing"), error=True),
        ),
        constant("json_schema_2020_12_tool", says(words("seen")), schema=SCHEMA_2020_12),
        # Nothing is said early, so that the answer is JSON: we have cursors instead of replayed streams.
        constant("test_reconnection", says(words("Reconnection test completed")), waits=True),
        tool("test_tool_with_progress", progress, waits=True),
        tool("test_tool_with_logging", logging, waits=True),
        tool("test_logging_tool", logging, waits=True),
        tool("test_x_mcp_header", region, schema=REGION),
    ]


class Changing:
    """Tools that change what is offered, and say so."""

    def __init__(self) -> None:
        self.lists = Lists(("tools", "prompts"))
        self.tools: dict[str, ToolOffer] = {}
        self.prompts: dict[str, PromptOffer] = {}

    def offers(self) -> list[ToolOffer]:
        return [
            tool("test_trigger_tool_change", self._change_tools),
            tool("test_trigger_prompt_change", self._change_prompts),
        ]

    async def _change_tools(self, ask: Ask, arguments: bytes) -> Outcome:
        self.tools["test_dynamic_tool"] = constant("test_dynamic_tool", says(words("dynamic")))
        self.lists.changed("tools")
        del self.tools["test_dynamic_tool"]
        self.lists.changed("tools")
        return says(words("changed"))

    async def _change_prompts(self, ask: Ask, arguments: bytes) -> Outcome:
        self.prompts["test_dynamic_prompt"] = prompt("test_dynamic_prompt", lambda given: [words("dynamic")])
        self.lists.changed("prompts")
        del self.prompts["test_dynamic_prompt"]
        self.lists.changed("prompts")
        return says(words("changed"))


def prompt(name: str, content: Callable[[dict[str, str]], list[dict[str, Any]]], *names: str) -> PromptOffer:
    async def get(ask: Ask, arguments: dict[str, str]) -> Outcome:
        return {"messages": [{"role": "user", "content": each} for each in content(arguments)]}

    arguments = [{"name": each, "description": each, "required": True} for each in names]
    about = f"A fixture of the judges: {name}"
    return PromptOffer(descriptor={"name": name, "description": about, "arguments": arguments}, get=get)


def plain_prompts() -> list[PromptOffer]:
    return [
        prompt("test_simple_prompt", lambda _: [words("This is a simple prompt for testing.")]),
        prompt(
            "test_prompt_with_arguments",
            lambda given: [words(f"Prompt with arguments: arg1='{given['arg1']}', arg2='{given['arg2']}'")],
            "arg1",
            "arg2",
        ),
        prompt(
            "test_prompt_with_embedded_resource",
            lambda given: [embedded(given["resourceUri"], "embedded"), words("Process the resource above.")],
            "resourceUri",
        ),
        prompt("test_prompt_with_image", lambda _: [IMAGE, words("Analyze the image above.")]),
    ]


RESOURCES = [
    {"uri": "test://static-text", "name": "static text", "mimeType": "text/plain"},
    {"uri": "test://static-binary", "name": "static binary", "mimeType": "image/png"},
    {"uri": "test://watched-resource", "name": "watched", "mimeType": "text/plain"},
]
TEMPLATES = [{"uriTemplate": "test://template/{id}/data", "name": "template", "mimeType": "application/json"}]


def contents(uri: str) -> dict[str, Any] | None:
    """What stands under a uri of the fixtures."""
    if uri == "test://static-text":
        return {"mimeType": "text/plain", "text": "This is the content of the static text resource."}
    if uri == "test://static-binary":
        return {"mimeType": "image/png", "blob": PNG}
    if uri == "test://watched-resource":
        return {"mimeType": "text/plain", "text": "watched"}
    head, tail = "test://template/", "/data"
    if uri.startswith(head) and uri.endswith(tail):
        data = {"id": uri[len(head) : -len(tail)], "templateTest": True}
        return {"mimeType": "application/json", "text": json.dumps(data)}
    return None


def with_fixtures(surface: Surface) -> Surface:
    """The same surface with all that the judges ask for, in front: they read one page, and take what stands first."""
    changing = Changing()
    for offer in [*plain_tools(), *asking_tools(), *changing.offers()]:
        changing.tools[offer.descriptor["name"]] = offer
    changing.tools.update(surface.tools)
    for each in [*plain_prompts(), *asking_prompts()]:
        changing.prompts[each.descriptor["name"]] = each
    changing.prompts.update(surface.prompts)
    own_read, own_watch = surface.read, surface.watch
    assert own_read is not None

    async def read(ask: Ask, uri: str) -> Any:
        found = contents(uri)
        return await own_read(ask, uri) if found is None else [{"uri": uri, **found}]

    return msgspec.structs.replace(
        surface,
        tools=changing.tools,
        prompts=changing.prompts,
        resources=[*RESOURCES, *surface.resources],
        templates=[*surface.templates, *TEMPLATES],
        read=read,
        watch=watching(own_watch),
        lists=changing.lists,
        logs=True,
    )


def watching(own: Watch | None) -> Watch:
    """The fixtures' resources can be watched, and never change; of a face without changes they alone."""
    still = Lists(("resources",))

    async def watch(ask: Ask, uri: str) -> Updates | Missing | Any:
        if contents(uri) is not None:
            return still.watch("resources")
        return Missing(uri) if own is None else await own(ask, uri)

    return watch
