"""A model at the agent's tools, in the test's own process: asks as dispatch does, checks the form of each answer."""

from typing import Any

import msgspec

from broker.app import Caller
from gateways.agent import tools
from gateways.agent.line import Line
from gateways.mcp.dispatch import Dispatch
from gateways.mcp.revisions import CAPABILITIES_KEY, MODERN, VERSION_KEY, Fault
from gateways.mcp.surface import Ask


class Model:
    """`await model("say", call=…)` gives structuredContent. `user`: what the user does when asked; None: no user."""

    def __init__(self, line: Line, user: str | None = None) -> None:
        self.line = line
        self.user = user
        self.asked: list[str] = []
        """What the user was asked."""
        self.text = ""
        """The words of the last answer."""
        self._dispatch = Dispatch(tools.surface(line))

    async def __call__(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """A tool's result, which must not be an error."""
        failed, value = await self.ask(tool, arguments)
        assert not failed, value
        return value

    async def refused(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The refusal of a tool that must refuse; the words name its code."""
        failed, value = await self.ask(tool, arguments)
        assert failed, value
        refusal: dict[str, Any] = value["refusal"]
        assert self.text.startswith(f"{refusal['code']}: ")
        return refusal

    async def ask(self, tool: str, arguments: dict[str, Any]) -> tuple[bool, dict[str, Any]]:
        """isError and structuredContent."""
        params = {"name": tool, "arguments": arguments}
        while True:
            result = await self.raw(params)
            if result["resultType"] != "input_required":
                break
            questions = result["inputRequests"]
            self.asked += [each["params"]["message"] for each in questions.values()]
            answers = {key: {"action": self.user, "content": {}} for key in questions}
            params = {**params, "inputResponses": answers, "requestState": result["requestState"]}
        self.text = result["content"][0]["text"]
        assert msgspec.json.decode(result["content"][1]["text"]) == result["structuredContent"]
        return result["isError"], result["structuredContent"]

    async def raw(self, params: dict[str, Any]) -> dict[str, Any]:
        """One tools/call of 2026-07-28, whatever it answers."""
        can: dict[str, Any] = {} if self.user is None else {"elicitation": {}}
        ask = Ask(
            id=1,
            caller=Caller(pk=self.line.own),
            revision=MODERN,
            meta={VERSION_KEY: MODERN, CAPABILITIES_KEY: can},
            capabilities=can,
        )
        members = {name: msgspec.Raw(msgspec.json.encode(value)) for name, value in params.items()}
        result = await self._dispatch.answer(ask, "tools/call", members)
        assert not isinstance(result, Fault), result
        found: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(result))
        return found
