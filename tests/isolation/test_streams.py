"""Streams and resources × callers: who may read, who may listen, and that another's is as a missing one."""

import json
from collections.abc import Callable
from typing import Any, Final

import httpx
import msgspec
import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from gateways.eventstream import Decoder
from gateways.mcp.faces import surfaces
from tests.gateways.mcp.harness import Door, modern
from tests.isolation.rows import gone
from tests.isolation.world import WHO, World, client_of, open_world
from tests.support.ws import open_session

Named = Callable[[World], str]


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """A stream or resource of Alice's, one that is not, and what each caller is told of it. `read` and `listen` are
    codes for nobody, scopeless, stranger, owner; a suspended agent's and an expired token are refused everywhere."""

    uri: Named
    missing: Named | None = None
    read: tuple[str, str, str, str] | None = None
    listen: tuple[str, str, str, str] | None = None


MISSING: Final = "missing"
TRIED: Final = ("unauthenticated", "insufficient_scope", "accepted", "accepted")
"""What is for every token with the scope `trial`."""
RESOURCES: Final[dict[str, Row]] = {
    "turret://conv/{conv}": Row(
        uri=lambda w: f"turret://conv/{w.line.conv}",
        missing=lambda _: f"turret://conv/{'f' * 16}",
        read=(MISSING,) * 4,
        listen=(MISSING,) * 4,
    ),
    "turret://desk/{code}": Row(
        uri=lambda _: "turret://desk/ALIC", read=("accepted",) * 4, listen=(MISSING,) * 4
    ),
    "turret://desk/{code}/rings": Row(
        uri=lambda _: "turret://desk/ALIC/rings",
        read=("unauthenticated", "not_a_party", "not_a_party", "agent_required"),
        listen=("unauthenticated", "not_a_party", "not_a_party", "agent_required"),
    ),
    "turret://channel/{channel_id}": Row(
        uri=lambda w: f"turret://channel/{w.channel}",
        missing=lambda _: f"turret://channel/{gone('ch_')}",
        read=("unauthenticated", "insufficient_scope", MISSING, "agent_required"),
        listen=("unauthenticated", "insufficient_scope", MISSING, "agent_required"),
    ),
    "turret://resource/{resource_id}": Row(
        uri=lambda w: f"turret://resource/{w.resource}",
        missing=lambda _: f"turret://resource/{gone('rs_')}",
        read=("unauthenticated", "insufficient_scope", MISSING, "agent_required"),
        listen=(MISSING,) * 4,
    ),
    "turret://inbox": Row(
        uri=lambda _: "turret://inbox",
        read=("unauthenticated", "insufficient_scope", "accepted", "agent_required"),
        listen=("unauthenticated", "insufficient_scope", "accepted", "agent_required"),
    ),
    "kestrel://catalog": Row(uri=lambda _: "kestrel://catalog", read=TRIED, listen=(MISSING,) * 4),
    "kestrel://catalog-pricing": Row(
        uri=lambda _: "kestrel://catalog-pricing", read=TRIED, listen=(MISSING,) * 4
    ),
    "kestrel://catalog/{index}": Row(uri=lambda _: "kestrel://catalog/2", read=TRIED, listen=(MISSING,) * 4),
    "kestrel://artifact/{ref}": Row(  # who has the ref may read
        uri=lambda w: f"kestrel://artifact/{w.artifact}",
        read=("accepted",) * 4,
        listen=(MISSING,) * 4,
    ),
}
SCOPE: Final = {
    "turret://channel/{channel_id}": "channel",
    "turret://resource/{resource_id}": "resource",
    "kestrel://catalog": "trial",
    "kestrel://catalog-pricing": "trial",
    "kestrel://catalog/{index}": "trial",
}
"""Which scope the scopeless lack, where it is not `message`."""


@pytest.mark.requirement("isolation.streams")
async def test_every_resource_has_a_row() -> None:
    async with open_world() as world:
        listed = {
            each.get("uri", each.get("uriTemplate"))
            for face in surfaces(world.bench.broker).values()
            for each in [*face.resources, *face.templates]
        }
        assert listed == set(RESOURCES)


def expected(codes: tuple[str, str, str, str]) -> dict[str, str]:
    told = dict(zip(("nobody", "scopeless", "stranger", "owner"), codes, strict=True))
    return {**told, "suspended": "suspended", "expired": "unauthenticated"}


@pytest.mark.requirement("isolation.streams", "doors.mcp-denied")
@pytest.mark.parametrize("verb", ["read", "listen"])
async def test_each_caller_is_told_of_a_resource_what_the_table_says(verb: str) -> None:
    wrong = {}
    async with open_world() as world:
        for name, row in RESOURCES.items():
            codes = row.read if verb == "read" else row.listen
            assert codes is not None
            for who in WHO:
                token = world.shown(who, SCOPE.get(name, "message"))
                told = await mcp(world, verb, row.uri(world), token)
                if told[0] != expected(codes)[who]:
                    wrong[name, who] = told
                if told[0] == MISSING and row.missing is not None:
                    absent = row.missing(world)
                    said = await mcp(world, verb, absent, token)
                    if said[1].replace(absent, row.uri(world)) != told[1]:
                        wrong[name, f"{who}, missing"] = said
    assert wrong == {}


async def mcp(world: World, verb: str, uri: str, token: str | None) -> tuple[str, str]:
    """Read or listen on the open face: what it comes to, and the whole answer. A listen that stands is accepted."""
    door = Door(world.mcp, world.bench.broker)
    if verb == "read":
        body, headers = modern("resources/read", uri=uri)
    else:
        body, headers = modern("subscriptions/listen", notifications={"resourceSubscriptions": [uri]})
    shown = {"authorization": f"Bearer {token}"} if token is not None else {}
    async with door.open(body=body, **headers, **shown) as exchange:
        await wait_all_tasks_blocked()
        if verb == "read":  # a tape that is made by rule is made in a thread
            with trio.fail_after(10):
                await exchange.finished.wait()
        if not exchange.finished.is_set():
            assert b"acknowledged" in exchange.body
            return "accepted", ""
    text = exchange.body.decode()
    answer = json.loads(text) if text.startswith("{") else json.loads(Decoder().feed(exchange.body)[-1].data)
    if "result" in answer:
        return "accepted", text
    data = answer["error"].get("data") or {}
    if "scope" in data:  # a token would do: the status says so, and the way to one
        assert exchange.status == (403 if data["code"] == "insufficient_scope" else 401)
        assert "www-authenticate" in exchange.headers
    return str(data.get("code", MISSING)), text


STREAMS: Final[dict[str, Row]] = {
    "/rings/": Row(
        uri=lambda _: "/rings/ALIC",
        read=("unauthenticated", "not_a_party", "not_a_party", "agent_required"),
    ),
    "/channels/": Row(
        uri=lambda w: f"/channels/{w.channel}",
        missing=lambda _: f"/channels/{gone('ch_')}",
        read=("unauthenticated", "insufficient_scope", "not_found", "agent_required"),
    ),
}
"""Event streams over plain HTTP, by what their paths begin with."""


@pytest.mark.requirement("isolation.streams", "doors.sse")
async def test_each_caller_is_told_of_an_event_stream_what_the_table_says() -> None:
    wrong = {}
    async with open_world() as world, client_of(world) as client:
        for name, row in STREAMS.items():
            assert row.read is not None
            for who in WHO:
                token = world.shown(who, "channel" if name == "/channels/" else "message")
                told = await sse(client, row.uri(world), token)
                if told[0] != expected(row.read)[who]:
                    wrong[name, who] = told
                if (
                    told[0] == "not_found"
                    and row.missing is not None
                    and told != await sse(client, row.missing(world), token)
                ):
                    wrong[name, who] = ("not as a missing one", "")
    assert wrong == {}


async def sse(client: httpx.AsyncClient, path: str, token: str | None) -> tuple[str, str]:
    with trio.fail_after(5):
        answer = await client.get(
            path, headers={"authorization": f"Bearer {token}"} if token is not None else {}
        )
    refusal = answer.json()["refusal"]
    assert refusal["status"] == answer.status_code
    return str(refusal["code"]), answer.text


FOLLOWS: Final[dict[str, tuple[Callable[[World], dict[str, Any]], tuple[str, str, str, str]]]] = {
    "own": (lambda _: {}, ("unauthenticated", "insufficient_scope", "accepted", "agent_required")),
    "code": (
        lambda _: {"code": "ALIC"},
        ("unauthenticated", "not_a_party", "not_a_party", "agent_required"),
    ),
    "channel": (
        lambda w: {"channel": w.channel},
        ("unauthenticated", "insufficient_scope", "not_found", "agent_required"),
    ),
    "no channel": (
        lambda _: {"channel": gone("ch_")},
        ("unauthenticated", "insufficient_scope", "not_found", "agent_required"),
    ),
}


@pytest.mark.requirement("isolation.streams", "doors.ws-token")
async def test_each_caller_is_told_of_a_follow_what_the_table_says() -> None:
    wrong, said = {}, {}
    async with open_world() as world:
        for name, (params, codes) in FOLLOWS.items():
            for who in WHO:
                token = world.shown(who, "channel" if "channel" in name else "message")
                told = await follow(world, token, params(world))
                said[name, who] = told
                if told[0] != expected(codes)[who]:
                    wrong[name, who] = told
    assert wrong == {}
    for who in WHO:
        assert said["channel", who] == said["no channel", who]


async def follow(world: World, token: str | None, params: dict[str, Any]) -> tuple[str, str]:
    async with open_session(world.bench.broker, bearing=world.gate.admit) as peer:
        try:
            told = await peer.ask("authenticate", token=token) if token is not None else {"result": {}}
            if "result" in told:
                told = await peer.ask("follow", **params)
            if "result" in told:
                return "accepted", ""
            return str(told["error"]["data"]["code"]), str(told["error"]["message"])
        finally:
            peer.session.close()
