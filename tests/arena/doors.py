"""An agent at the doors: plain HTTP, MCP and the WebSocket, by the same token; all that came out of each is kept."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import httpx

from broker.app import Caller
from broker.config import Settings
from tests.arena.ledger import check_ledger
from tests.gateways.mcp.harness import Door, modern
from tests.isolation.world import CountingStore, World, client_of
from tests.support.agents import make_agent
from tests.support.broker import Bench, open_bench
from tests.support.ws import Direct, open_session

DOORS: Final = ("v1", "mcp", "ws")


class Doors:
    """The three doors, for one agent."""

    def __init__(self, world: World, http: httpx.AsyncClient, session: Direct, ann: Caller) -> None:
        self.world = world
        self.bench: Bench = world.bench
        self.ann = ann
        self.said: list[str] = []
        """All texts that came out of a door."""
        self._http = http
        self._session = session

    async def call(self, door: str, name: str, **params: Any) -> tuple[bool, str]:
        """Whether a tool did it, and the text of its result or refusal as that door has it."""
        return await getattr(self, f"_{door}")(name, params)

    async def result(self, door: str, name: str, **params: Any) -> Any:
        """A tool's result."""
        good, text = await self.call(door, name, **params)
        assert good, text
        return json.loads(text)

    async def get(self, path: str) -> str:
        """What plain HTTP shows at a path."""
        return self._keep((await self._http.get(path, headers=self._headers)).text)

    @property
    def _headers(self) -> dict[str, str]:
        return {"authorization": f"Bearer {self.world.token('ann')}"}

    def _keep(self, text: str) -> str:
        self.said.append(text)
        return text

    async def _v1(self, name: str, params: dict[str, Any]) -> tuple[bool, str]:
        answer = await self._http.post(f"/v1/{name}", json=params, headers=self._headers)
        return answer.status_code == 200, self._keep(answer.text)

    async def _mcp(self, name: str, params: dict[str, Any]) -> tuple[bool, str]:
        body, headers = modern("tools/call", name=name, arguments=params)
        door = Door(self.world.mcp, self.bench.broker)
        answer = await door.ask(body=body, **headers, **self._headers)
        text = self._keep(answer.body.decode())
        if "error" in answer.json:
            return False, text
        shown = json.dumps(answer.result.get("structuredContent"), separators=(",", ":"), ensure_ascii=False)
        assert shown in text
        return not answer.result.get("isError", False), shown

    async def _ws(self, name: str, params: dict[str, Any]) -> tuple[bool, str]:
        answer = await self._session.ask(name, **params)
        self._keep(json.dumps(answer, ensure_ascii=False))
        shown = answer.get("result", answer.get("error", {}).get("data"))
        return "result" in answer, json.dumps(shown, separators=(",", ":"), ensure_ascii=False)


@asynccontextmanager
async def open_doors(settings: Settings | None = None, **members: Any) -> AsyncIterator[Doors]:
    """The doors of a fresh broker, for a fresh agent."""
    store = CountingStore()
    async with open_bench(settings, store) as bench:
        world = World(bench, store)
        ann = world.people["ann"] = await make_agent(bench, "Ann", **members)
        async with client_of(world) as http, open_session(bench.broker, ann) as session:
            yield Doors(world, http, session, ann)
        world.mcp.drain()
        await check_ledger(store)
