"""Agents that outlive the broker: they agree, talk, meet in channels and take names, and keep all that they asked.

They speak to /v1 with another project's HTTP library. What got no answer is asked again with the identical bytes, by
the next process, until it is answered for good.
"""

import json
import random
import re
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

import httpx
import trio

from broker.actors.agent import Create
from broker.clock import VirtualClock
from broker.core.agent import AgentRow, Key, Policy
from broker.store.sqlite import SqliteStore
from broker.wire.jwk import thumbprint
from broker.wire.keys import SigningKey
from broker.wire.refusals import Refusal
from gateways.client.assertion import TYPE, client_assertion
from gateways.client.mcp_link import Body
from tests.support.broker import open_bench
from tests.support.process import Served

LIMITS: Final = {
    "TURRET_NETWORK_REQUESTS_PER_DAY": "100000",
    "TURRET_NETWORK_REQUESTS_OPEN": "500",
    "TURRET_NETWORK_DECLINED_DAYS": "0",
    "TURRET_NETWORK_DECLINES_DAYS": "0",
    "TURRET_NETWORK_LOOP_MESSAGES": "1000000",
    "TURRET_LIMITS_CHANNEL_WINDOW_MS": "1",
}
"""What would only slow the load down."""
NAMES: Final = ("Ada", "Bea", "Cleo", "Dora", "Edda", "Fay", "Gwen", "Hanna")
"""What the agents call themselves: they want each other's names."""
TOWNS: Final = ("agora", "bazaar", "corso")
AGAIN: Final = frozenset({"unavailable", "in_doubt", "overloaded", "rate_limited"})
"""Refusals that ask for the identical request again."""


class Asked:
    """A request with its key, and its answer once it has one for good."""

    def __init__(self, agent: "Talker", tool: str, params: dict[str, Any], number: int) -> None:
        self.agent = agent
        self.tool = tool
        self.params = {**params, "idempotency_key": f"{agent.first}-{number}"}
        self.text = json.dumps(self.params).encode()
        self.status = 0
        self.body = b""

    @property
    def answer(self) -> Any:
        return json.loads(self.body)

    @property
    def done(self) -> bool:
        return self.status == 200


class Talker:
    """One agent: its key, what it asked in this order, and what it saw of each channel."""

    def __init__(self, first: str, key: SigningKey, chance: random.Random) -> None:
        self.first = first
        self.key = key
        self.chance = chance
        self.agent_id = ""
        self.asked: list[Asked] = []
        self.pending: Asked | None = None
        self.others: list[Talker] = []
        self.seen: dict[str, list[tuple[int, str]]] = {}
        """By channel: seq and message_id, as they came."""
        self._token = ""

    @asynccontextmanager
    async def connected(self, broker: Served) -> AsyncIterator[httpx.AsyncClient]:
        """A client that bears a fresh token of this agent's."""
        async with httpx.AsyncClient(base_url=broker.http, timeout=20, verify=False) as http:
            issuer = (await http.get("/.well-known/oauth-authorization-server")).json()
            resource = (await http.get("/.well-known/oauth-protected-resource/mcp")).json()["resource"]
            endpoint = issuer["token_endpoint"]
            proof = client_assertion(self.key, self.agent_id, endpoint, int(time.time()))
            form = {
                "grant_type": "client_credentials",
                "client_assertion_type": TYPE,
                "client_assertion": proof,
                "resource": resource,
            }
            answer = await post(http, endpoint, urlencode(form).encode(), "application/x-www-form-urlencoded")
            assert answer.status_code == 200, answer.text
            http.headers["Authorization"] = f"Bearer {answer.json()['access_token']}"
            yield http

    async def run(self, broker: Served) -> None:
        """Ask for one thing after the other until the broker is gone."""
        with suppress(httpx.HTTPError):
            async with self.connected(broker) as http:
                while True:
                    asked = self.pending or await self._next(http)
                    if asked is None:
                        continue
                    self.pending = asked
                    await settle(http, asked)
                    self.asked.append(asked)
                    self.pending = None
                    self.heard(asked)

    def heard(self, asked: Asked) -> None:
        """It was answered for good."""

    async def follow(self, broker: Served, channel_id: str) -> None:
        """See the channel's messages from the last one seen on, until the broker is gone."""
        seen = self.seen.setdefault(channel_id, [])
        after = seen[-1][0] if seen else 0
        with suppress(httpx.HTTPError):
            async with (
                self.connected(broker) as http,
                http.stream("GET", f"/channels/{channel_id}?after_seq={after}") as stream,
            ):
                if stream.status_code != 200:
                    return  # it is not in it any more
                async for line in stream.aiter_lines():
                    if line.startswith("data:") and '"message_id"' in line:
                        event = json.loads(line[5:])
                        seen.append((event["seq"], event["message_id"]))

    async def _next(self, http: httpx.AsyncClient) -> Asked | None:
        other = self.chance.choice(self.others)
        match self.chance.randrange(14):
            case 0:
                return self._ask("request_contact", target_agent_id=other.agent_id, purpose="to talk")
            case 1 | 2:
                waiting = await self._list(http, "list_contact_requests", "requests", status="pending")
                if waiting:
                    accept = self.chance.random() < 0.8
                    return self._ask(
                        "respond_to_contact_request", request_id=waiting[0]["request_id"], accept=accept
                    )
            case 3:
                waiting = await self._list(
                    http, "list_contact_requests", "requests", status="pending", direction="outgoing"
                )
                if waiting and self.chance.random() < 0.3:
                    return self._ask("cancel_contact_request", request_id=waiting[0]["request_id"])
            case 4:
                held = await self._list(http, "list_agreements", "agreements")
                if held and self.chance.random() < 0.3:
                    return self._ask("revoke_agreement", agreement_id=held[-1]["agreement_id"])
            case 5 | 6 | 7:
                body = f"{self.first} {len(self.asked)}"
                return self._ask("send_direct_message", recipient_agent_id=other.agent_id, body=body)
            case 8:
                unread = await self._list(http, "get_inbox", "messages", unread_only=True, limit=5)
                if unread:
                    ids = [each["message_id"] for each in unread]
                    return self._ask("mark_messages_read", message_ids=[*ids, "msg_none"])
            case 9:
                return self._ask("update_my_profile", name=self.chance.choice(NAMES))
            case 10 | 11:
                return await self._in_a_channel(http)
            case 12 | 13:
                return self._at_the_shelf()
        return None

    def _at_the_shelf(self) -> Asked:
        """Publish, change or delete a resource: its title, its tag and its content say the same."""
        said = f"{self.first}-{len(self.asked)}"
        shown = {"title": said, "tags": [said], "content": said * self.chance.choice((1, 9_000))}
        mine = list(self.shelf())
        if not mine or self.chance.random() < 0.3:
            return self._ask("publish_resource", **shown)
        resource_id = self.chance.choice(mine)
        if self.chance.random() < 0.15:
            return self._ask("delete_resource", resource_id=resource_id)
        return self._ask("update_resource", resource_id=resource_id, **shown)

    def shelf(self) -> dict[str, tuple[int, dict[str, Any]]]:
        """Its resources, by what it was told: each one's version, and what it says."""
        held: dict[str, tuple[int, dict[str, Any]]] = {}
        for each in self.asked:
            if each.done and each.tool in ("publish_resource", "update_resource"):
                held[each.answer["resource_id"]] = each.answer["version"], each.params
            elif each.done and each.tool == "delete_resource":
                del held[each.answer["resource_id"]]
        return held

    async def _in_a_channel(self, http: httpx.AsyncClient) -> Asked | None:
        listed = await self._list(http, "list_channels", "channels")
        if len(listed) < len(TOWNS) and self.chance.random() < 0.3:
            return self._ask("create_channel", name=self.chance.choice(TOWNS), is_private=False)
        if not listed:
            return None
        channel = self.chance.choice(listed)
        if "role" not in channel:
            return self._ask("join_channel", channel_id=channel["channel_id"])
        if channel["role"] == "member" and self.chance.random() < 0.05:
            return self._ask("leave_channel", channel_id=channel["channel_id"])
        body = f"{self.first} {len(self.asked)}"
        return self._ask("send_channel_message", channel_id=channel["channel_id"], body=body)

    def _ask(self, tool: str, **params: Any) -> Asked:
        return Asked(self, tool, params, len(self.asked))

    async def _list(self, http: httpx.AsyncClient, tool: str, member: str, **params: Any) -> list[Any]:
        answer = await call(http, tool, **params)
        assert answer.status_code == 200, answer.text
        found: list[Any] = answer.json()[member]
        return found


async def post(
    http: httpx.AsyncClient, url: str, text: bytes, kind: str = "application/json"
) -> httpx.Response:
    """POST a text; whoever breaks this off leaves no half-read generator of httpx's."""
    request = http.build_request("POST", url, content=text, headers={"Content-Type": kind})
    request.stream = Body(text)
    return await http.send(request)


async def call(http: httpx.AsyncClient, tool: str, **params: Any) -> httpx.Response:
    """A tool called over plain HTTP."""
    return await post(http, f"/v1/{tool}", json.dumps(params).encode())


async def settle(http: httpx.AsyncClient, asked: Asked) -> None:
    """Ask, and ask the identical thing again while the broker says that this may help."""
    for _ in range(200):
        answer = await post(http, f"/v1/{asked.tool}", asked.text)
        assert answer.status_code < 500 or answer.status_code == 503, answer.text
        if answer.status_code == 200 or code_of(answer.content) not in AGAIN:
            asked.status, asked.body = answer.status_code, answer.content
            return
        await trio.sleep(0.02)
    raise AssertionError(f"{asked.tool} is never settled: {answer.text}")


def code_of(body: bytes) -> str:
    """The code of a refusal's body."""
    found = re.search(rb'"code":"(\w+)"', body)
    return found[1].decode() if found else ""


async def all_pages(http: httpx.AsyncClient, tool: str, member: str, **params: Any) -> list[Any]:
    """All that a list holds."""
    found: list[Any] = []
    while True:
        answer = (await call(http, tool, **params, limit=100)).json()
        found += answer[member]
        if "next" not in answer:
            return found
        params["after"] = answer["next"]


async def make_talkers(data: Path, chance: random.Random, count: int) -> list[Talker]:
    """Agents that operators made, in a fresh store."""
    store = SqliteStore(data, hop="inline")
    talkers = [Talker(f"talker-{number}", SigningKey.generate(), chance) for number in range(count)]
    try:
        async with open_bench(store=store, clock=VirtualClock(int(time.time() * 1000) - 60_000)) as bench:
            services, now = bench.broker._services, bench.clock.now_ms()
            for talker in talkers:
                talker.agent_id = services.new_id("ag_")
                keys = (Key(thumbprint(talker.key.pk), talker.key.pk, now),)
                policy: Policy = chance.choice(("auto-accept", "agent-decides"))
                row = AgentRow(talker.agent_id, talker.first, "standard", now, keys=keys, policy=policy)
                answer = await services.house.ask("agent", talker.agent_id, Create(row, None))
                assert not isinstance(answer, Refusal), answer
    finally:
        await store.aclose()
    for talker in talkers:
        talker.others = [each for each in talkers if each is not talker]
    return talkers
