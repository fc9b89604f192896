"""SIGKILL under agents that agree and talk: nothing acknowledged is lost or doubled, and both sides say the same.

KILL_ROUNDS sets the rounds (2 here, more in soak).
"""

import os
import random
from collections import Counter, defaultdict
from contextlib import AsyncExitStack
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx
import pytest
import trio

from tests.crash.dealers import kill
from tests.crash.talkers import LIMITS, NAMES, Asked, Talker, all_pages, call, code_of, make_talkers, settle
from tests.support.process import served

ROUNDS = int(os.environ.get("KILL_ROUNDS", "2"))
TALKERS = 5
Links = dict[Talker, httpx.AsyncClient]
"""Each agent's connection to the last process."""


@pytest.mark.requirement("retries.crash", "resource.whole")
@pytest.mark.timeout(60 + 12 * ROUNDS)
async def test_what_agents_were_told_is_so_when_the_broker_is_killed_under_them(tmp_path: Path) -> None:
    chance = random.Random(20_261_130)
    talkers = await make_talkers(tmp_path / "data", chance, TALKERS)
    for _ in range(ROUNDS):
        async with served(tmp_path / "data", environment=LIMITS) as broker, trio.open_nursery() as nursery:
            for talker in talkers:
                nursery.start_soon(talker.run, broker)
                for channel_id in channels_of(talkers):
                    nursery.start_soon(talker.follow, broker, channel_id)
            with trio.move_on_after(20):
                goal = answered(talkers) + chance.randint(30, 130)
                while answered(talkers) < goal:  # noqa: ASYNC110  # other tasks' lists
                    await trio.sleep(0.005)
            kill(broker, nursery)
    async with served(tmp_path / "data", environment=LIMITS) as broker:
        async with AsyncExitStack() as stack:
            links = {each: await stack.enter_async_context(each.connected(broker)) for each in talkers}
            done = await settle_all(links)
            await replay(links)
            await compare_mail(links, done)
            await compare_agreements(links, done)
            await compare_channels(links, done)
            await compare_library(links)
            await compare_names(links)
        assert await broker.stop() == 0
    counts = Counter(each.tool for each in done)
    assert len(done) > 10 * ROUNDS, f"too little load to tell anything: {counts}"


def answered(talkers: list[Talker]) -> int:
    """How much was answered for good."""
    return sum(len(talker.asked) for talker in talkers)


def channels_of(talkers: list[Talker]) -> list[str]:
    """The channels that somebody was told of."""
    asked = [each for talker in talkers for each in talker.asked]
    return [each.answer["channel_id"] for each in asked if each.done and each.tool == "create_channel"]


async def settle_all(links: Links) -> list[Asked]:
    """What was under way at the last end is asked again; all that was accepted."""
    for talker, http in links.items():
        if talker.pending is not None:
            await settle(http, talker.pending)
            talker.asked.append(talker.pending)
            talker.pending = None
    return [each for talker in links for each in talker.asked if each.done]


async def replay(links: Links) -> None:
    """The identical request gets the very same bytes, also where it was refused for good."""
    passing = {"quota_exceeded", "unauthenticated"}
    for talker, http in links.items():
        for asked in talker.asked:
            if asked.done or code_of(asked.body) not in passing:
                before = asked.status, asked.body
                await settle(http, asked)
                assert (asked.status, asked.body) == before, asked.tool


def of(done: list[Asked], tool: str) -> list[Asked]:
    return [each for each in done if each.tool == tool]


async def compare_mail(links: Links, done: list[Asked]) -> None:
    """Each message that was acknowledged is in one inbox, once; what is unread is counted so."""
    sent: dict[str, dict[str, str]] = defaultdict(dict)
    for each in of(done, "send_direct_message"):
        sent[each.answer["to_agent_id"]][each.answer["message_id"]] = each.params["body"]
    for talker, http in links.items():
        inbox = await all_pages(http, "get_inbox", "messages")
        unread = await all_pages(http, "get_inbox", "messages", unread_only=True)
        count = (await call(http, "get_inbox")).json()["unread"]
        events = await told(http)
        ids = [each["message_id"] for each in inbox]
        assert {each["message_id"]: each["body"] for each in inbox} == sent[talker.agent_id]
        assert len(ids) == len(set(ids))
        assert sorted(each["message_id"] for each in events if "from_agent_id" in each) == sorted(ids)
        assert [each["message_id"] for each in inbox if not each["read"]] == [
            each["message_id"] for each in unread
        ]
        assert count == len(unread)
        marked = {
            id
            for each in of(done, "mark_messages_read")
            if each.agent is talker
            for id in each.answer["marked"]
        }
        assert marked == {each["message_id"] for each in inbox if each["read"]}


async def told(http: Any) -> list[dict[str, Any]]:
    """All that stands on an agent's stream."""
    events: list[dict[str, Any]] = []
    after = "0"
    while True:
        answer = (await call(http, "wait_for_events", after=after, limit=100)).json()
        if not answer["events"]:
            return events
        events += [each.get("params", each) for each in answer["events"]]
        after = answer["cursor"] if "cursor" in answer else answer["events"][-1]["cursor"]


async def compare_agreements(links: Links, done: list[Asked]) -> None:
    """Both sides see each agreement and each request alike, and as they were told."""
    agreements: dict[str, list[tuple[Any, ...]]] = defaultdict(list)
    requests: dict[str, list[str]] = defaultdict(list)
    for http in links.values():
        for each in await all_pages(http, "list_agreements", "agreements", include_inactive=True):
            shown = (each["status"], each["expires_at"], tuple(each["scopes"]))
            agreements[each["agreement_id"]].append(shown)
        for direction in ("incoming", "outgoing"):
            for each in await all_pages(http, "list_contact_requests", "requests", direction=direction):
                requests[each["request_id"]].append(each["status"])
    for seen in (*agreements.values(), *requests.values()):
        assert len(seen) == 2
        assert seen[0] == seen[1]
    answers = [each.answer for each in of(done, "respond_to_contact_request") + of(done, "request_contact")]
    assert {each["agreement_id"] for each in answers if each["status"] == "accepted"} == set(agreements)
    revoked = {each.answer["agreement_id"] for each in of(done, "revoke_agreement")}
    assert revoked == {id for id, seen in agreements.items() if seen[0][0] == "revoked"}
    assert {each.answer["request_id"] for each in of(done, "request_contact")} == set(requests)
    for each in of(done, "cancel_contact_request"):
        assert requests[each.params["request_id"]][0] == "cancelled"


async def compare_channels(links: Links, done: list[Asked]) -> None:
    """The numbers have no gap, all is there once, and who followed saw it in that order."""
    made = {each.answer["channel_id"]: each for each in of(done, "create_channel")}
    names = [each.answer["name"] for each in made.values()]
    assert len(names) == len(set(names))
    for channel_id, create in made.items():
        http = links[create.agent]
        history = partial(call, http, "get_channel_history", channel_id=channel_id, limit=100)
        messages: list[Any] = []
        while page := (await history(after_seq=len(messages))).json()["messages"]:
            messages += page
        members = await all_pages(http, "list_channel_members", "members", channel_id=channel_id)
        listed = {each["channel_id"]: each for each in await all_pages(http, "list_channels", "channels")}
        assert [each["seq"] for each in messages] == list(range(1, len(messages) + 1))
        assert listed[channel_id]["members"] == len(members)
        posts = [each for each in of(done, "send_channel_message") if each.params["channel_id"] == channel_id]
        order = {each["seq"]: each["message_id"] for each in messages}
        assert order == {each.answer["seq"]: each.answer["message_id"] for each in posts}
        assert Counter(each["body"] for each in messages) == Counter(each.params["body"] for each in posts)
        for talker in links:
            seen = talker.seen.get(channel_id, [])
            assert seen == [(seq, order[seq]) for seq, _ in seen]
            assert [seq for seq, _ in seen] == list(range(1, len(seen) + 1))


async def compare_library(links: Links) -> None:
    """Each resource is what its last change made of it, title, tag, content and words together; none other is found."""
    everybodys = dict[str, str]()
    for talker, http in links.items():
        held = talker.shelf()
        listed = await all_pages(http, "list_my_resources", "resources")
        assert {each["resource_id"]: each["version"] for each in listed} == {
            id: version for id, (version, _) in held.items()
        }
        for resource_id, (version, said) in held.items():
            got = (await call(http, "read_resource", resource_id=resource_id)).json()
            assert {name: got[name] for name in ("title", "tags", "content")} == {
                name: said[name] for name in ("title", "tags", "content")
            }
            assert (got["version"], got["sha256"]) == (version, sha256(got["content"].encode()).hexdigest())
            [hit] = await all_pages(http, "search_resources", "resources", q=said["title"], tag=said["title"])
            assert hit["resource_id"] == resource_id
            everybodys[resource_id] = said["title"]
    found = await all_pages(http, "search_resources", "resources", q="talker")
    assert {each["resource_id"]: each["title"] for each in found} == everybodys


async def compare_names(links: Links) -> None:
    """Each has the name that it was given last, and no other is taken."""
    held = {}
    for talker, http in links.items():
        given = [
            each.answer["name"] for each in talker.asked if each.done and each.tool == "update_my_profile"
        ]
        held[talker] = (await call(http, "whoami")).json()["name"]
        assert held[talker] == (given[-1] if given else talker.first)
    assert len(set(held.values())) == len(held)
    probe, http = next(iter(links.items()))
    for name in NAMES:
        answer = await call(http, "update_my_profile", name=name)
        taken = name in held.values() and held[probe] != name
        assert (answer.status_code == 409) is taken, (name, answer.text)
        held[probe] = held[probe] if taken else name
