"""The tools of the Resource Library: who finds and reads what, and what is told of it."""

import hashlib
from typing import Any

import pytest
import trio
import trio.testing

from broker.tools import resources
from broker.wire.refusals import Refusal
from tests.support.agents import make_agent
from tests.support.broker import Bench, code, open_bench, tuned
from tests.support.pairs import agree
from tests.support.registration import OPERATOR
from tests.support.resources import found, publish, read

NOBODY = "rs_00000000000000000000000000"
NAUGHTY = (
    "\u202etest\u202e",
    "Ṱ̺̺̕o͞ ̷i̲̬͇̪͙n̝̗͕v̟̜̘̦͟o̶̙̰̠kè͚̮̺̪̹̱̤",
    "＜script＞alert(1)＜/script＞",
    "1'; DROP TABLE document--",
    "{{7*7}} ${jndi:ldap://x} %s%n",
    "田中さんにあげて下さい",
    "🏳️‍🌈 👩‍👩‍👧 🇩🇪",
    "ÅÍÎÏ˝ÓÔ\uf8ffÒÚÆ☃",
    "../../etc/passwd\\x00",
    "NULL undefined NaN -0 1e309",
    "\ufeffbom \u200b zero width",
    "ﷺ 𝕥𝕖𝕤𝕥 𝟙𝟚",
)
"""Texts that have broken other programs."""


@pytest.mark.requirement("resource.provenance")
async def test_what_is_read_is_what_was_published_with_its_provenance(bench: Bench) -> None:
    ann, bob = await make_agent(bench, "Ann"), await make_agent(bench, "Bob")
    text = "# Rates\n\r\n\tEURUSD 1.0842\u2028 🚀 \x00 end "
    made = await bench.call(
        "publish_resource", ann, title="Rates", content=text, tags=["fx", "fx"], content_type="text/markdown"
    )
    answer = await read(bench, bob, made["resource_id"])
    assert answer == {**made, "publisher_name": "Ann", "content": text}
    assert answer["sha256"] == hashlib.sha256(text.encode()).hexdigest()
    assert (answer["size"], answer["version"], answer["tags"]) == (len(text.encode()), 1, ["fx"])
    assert answer["created_at"] == answer["updated_at"] <= bench.clock.now_ms()
    assert (answer["access"], answer["publisher_agent_id"]) == ("public", ann.agent)
    assert answer["uri"] == f"turret://resource/{made['resource_id']}"


@pytest.mark.requirement("resource.edit")
async def test_an_update_changes_what_it_is_given(bench: Bench) -> None:
    ann = await make_agent(bench, "Ann")
    id = await publish(bench, ann, tags=["fx"], description="of today")
    before = await read(bench, ann, id)
    changes: list[dict[str, Any]] = [
        {"title": "New"},
        {"description": ""},
        {"tags": []},
        {"content_type": "text/csv"},
        {"access": "agreement"},
        {"content": "longer text"},
    ]
    for version, change in enumerate(changes, 2):
        answer = await bench.call("update_resource", ann, resource_id=id, **change)
        after = await read(bench, ann, id)
        told = {name for name in after if after[name] != before[name]}
        assert told - {"version", "updated_at", "size", "sha256"} <= set(change)
        assert (after["version"], answer["version"]) == (version, version)
        assert all(after[name] == value for name, value in change.items())
        before = after
    assert code(await bench.call("update_resource", ann, resource_id=id)) == "bad_request"
    refused = await bench.call("update_resource", ann, resource_id=id, title="x", expected_version=3)
    assert (code(refused), refused.detail["version"]) == ("conflict", 7)
    assert (
        code(await bench.call("update_resource", ann, resource_id=id, title="x", expected_version=7))
        == "accepted"
    )


@pytest.mark.requirement("resource.access", "resource.private")
async def test_who_reads_and_finds_what(bench: Bench) -> None:
    ann, bob, cay = [await make_agent(bench, name) for name in ("Ann", "Bob", "Cay")]
    ids = {
        access: await publish(bench, ann, title=access, access=access)
        for access in ("public", "agreement", "private")
    }
    agreement = await agree(bench, bob, ann, scopes=["resource"])
    await agree(bench, cay, ann, scopes=["message", "channel", "task"])

    async def told(who: Any) -> dict[str, str]:
        return {access: code(await read(bench, who, id)) for access, id in ids.items()}

    async def readable(who: Any, **more: Any) -> dict[str, bool]:
        hits = (await bench.call("search_resources", who, **more))["resources"]
        assert all("content" not in each and "sha256" not in each for each in hits)
        return {each["title"]: each["can_read"] for each in hits}

    assert await told(ann) == dict.fromkeys(ids, "accepted")
    assert await told(bob) == {"public": "accepted", "agreement": "accepted", "private": "not_found"}
    assert await told(cay) == {
        "public": "accepted",
        "agreement": "agreement_required",
        "private": "not_found",
    }
    assert await readable(bob) == {"agreement": True, "public": True}
    assert await readable(cay, publisher_agent_id=ann.agent) == {"agreement": False, "public": True}
    assert await readable(ann) == {"agreement": True, "public": True}
    assert await readable(ann, publisher_agent_id=ann.agent) == {
        "private": True,
        "agreement": True,
        "public": True,
    }
    await bench.call("revoke_agreement", bob, agreement_id=agreement)
    assert await readable(bob) == {"agreement": False, "public": True}
    refused = await read(bench, bob, ids["agreement"])
    assert (code(refused), refused.detail) == ("agreement_required", {"publisher_agent_id": ann.agent})
    await bench.call("update_resource", ann, resource_id=ids["public"], access="private")
    await bench.call("update_resource", ann, resource_id=ids["private"], access="public")
    assert await told(bob) == {
        "public": "not_found",
        "agreement": "agreement_required",
        "private": "accepted",
    }
    assert await readable(bob) == {"private": True, "agreement": False}


@pytest.mark.requirement("resource.private")
async def test_a_private_one_looks_missing_and_asking_starts_nothing(bench: Bench) -> None:
    ann, bob = await make_agent(bench, "Ann"), await make_agent(bench, "Bob")
    id = await publish(bench, ann, title="secret plans", access="private", tags=["plans"])
    actors = bench.broker.statistics().actors["library"]
    for name, params in (("read_resource", {}), ("update_resource", {"title": "x"}), ("delete_resource", {})):
        foreign = await bench.call(name, bob, resource_id=id, **params)
        assert foreign == await bench.call(name, bob, resource_id=NOBODY, **params)
        assert code(foreign) == "not_found"
    public = await publish(bench, ann)
    for name, params in (("update_resource", {"title": "x"}), ("delete_resource", {})):
        assert code(await bench.call(name, bob, resource_id=public, **params)) == "not_found"
    for more in ({"q": "secret"}, {"tag": "plans"}, {"publisher_agent_id": ann.agent, "q": "plans"}):
        assert await found(bench, bob, **more) == []
    assert bench.broker.statistics().actors["library"] == actors


@pytest.mark.requirement("resource.publisher")
async def test_what_a_suspended_agent_published_is_gone_until_it_is_back(bench: Bench) -> None:
    ann, bob = await make_agent(bench, "Ann"), await make_agent(bench, "Bob")
    id = await publish(bench, ann)
    await bench.call("suspend_agent", OPERATOR, agent_id=ann.agent, reason="x")
    assert await read(bench, bob, id) == await read(bench, bob, NOBODY)
    assert await found(bench, bob, "rates") == await found(bench, bob) == []
    await bench.call("unsuspend_agent", OPERATOR, agent_id=ann.agent)
    assert (await read(bench, bob, id))["content"] == "text"
    assert await found(bench, bob, "rates") == ["Rates"]


@pytest.mark.requirement("resource.search")
async def test_words_tags_and_publisher_narrow_what_is_found_the_best_first(bench: Bench) -> None:
    ann, bob = await make_agent(bench, "Ann"), await make_agent(bench, "Bob")
    await publish(bench, ann, title="Hotels", description="and their rates", tags=["travel"])
    await publish(bench, ann, title="FX rates", tags=["fx"])
    await publish(bench, bob, title="Cards", tags=["rates"])
    await publish(bench, bob, title="Rates of interest", tags=["fx", "money"])
    assert await found(bench, ann, "rates") == ["Rates of interest", "FX rates", "Cards", "Hotels"]
    assert await found(bench, ann, "rat") == ["Rates of interest", "FX rates", "Cards", "Hotels"]
    assert await found(bench, ann, "hotel rat") == []
    assert await found(bench, ann, "rates hot") == ["Hotels"]
    assert await found(bench, ann, tag="fx") == ["Rates of interest", "FX rates"]
    assert await found(bench, ann, "rates", tag="fx", publisher_agent_id=ann.agent) == ["FX rates"]
    assert await found(bench, ann, publisher_agent_id=bob.agent) == ["Rates of interest", "Cards"]
    assert await found(bench, ann, publisher_agent_id="ag_00000000000000000000000000") == []
    assert await found(bench, ann) == ["Rates of interest", "Cards", "FX rates", "Hotels"]
    assert await found(bench, ann, "!?") == []
    assert code(await bench.call("search_resources", ann, q="x" * 201)) == "bad_request"


@pytest.mark.requirement("resource.form", "resource.search")
@pytest.mark.parametrize("text", NAUGHTY)
async def test_strings_that_break_programs_are_kept_found_and_never_an_error(bench: Bench, text: str) -> None:
    ann = await make_agent(bench, "Ann")
    id = await publish(bench, ann, title=text, content=text, description=text)
    got = await read(bench, ann, id)
    assert (got["title"], got["description"], got["content"]) == (text, text, text)
    assert await found(bench, ann, text) == [text]
    assert await found(bench, ann, f'{text}" OR "x') in ([], [text])
    assert code(await bench.call("search_resources", ann, tag=text)) == "bad_request"


@pytest.mark.requirement("resource.search-pages")
async def test_b75_pages_show_each_hit_once_whatever_comes_and_goes(bench: Bench) -> None:
    ann, bob = await make_agent(bench, "Ann"), await make_agent(bench, "Bob")
    ids = [await publish(bench, ann, title=f"gold {number}") for number in range(9)]
    first = await bench.call("search_resources", bob, q="gold", limit=3)
    assert [each["title"] for each in first["resources"]] == ["gold 8", "gold 7", "gold 6"]
    for number in range(3):
        await publish(bench, bob, title=f"gold new {number}")
    await bench.call("delete_resource", ann, resource_id=ids[7])
    seen, after = [], first["next"]
    while after is not None:
        page = await bench.call("search_resources", bob, q="gold", limit=2, after=after)
        seen += [each["title"] for each in page["resources"]]
        after = page.get("next")
    assert seen == [f"gold {number}" for number in range(5, -1, -1)]
    assert await found(bench, bob, "gold", offset=4, limit=2) == ["gold 6", "gold 5"]
    assert "next" not in await bench.call("search_resources", bob, q="gold", limit=11)
    for bad in ("x", "of-1", "search-x", "search--1"):
        assert code(await bench.call("search_resources", bob, q="gold", after=bad)) == "bad_request"


@pytest.mark.requirement("resource.search-pages")
async def test_a_page_is_filled_past_publishers_that_are_not_there(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann, bob = await make_agent(bench, "Ann"), await make_agent(bench, "Bob")
    await publish(bench, ann, title="old")
    for number in range(12):
        await publish(bench, bob, title=f"bob {number}")
    await publish(bench, ann, title="young")
    await bench.call("suspend_agent", OPERATOR, agent_id=bob.agent, reason="x")
    page = await bench.call("search_resources", ann, limit=2)
    assert [each["title"] for each in page["resources"]] == ["young", "old"]
    assert "next" not in page
    monkeypatch.setattr(resources, "LOOKED_AT", 6)
    page = await bench.call("search_resources", ann, limit=2)
    assert [each["title"] for each in page["resources"]] == ["young"]
    seen = []
    for _ in range(9):
        page = await bench.call("search_resources", ann, limit=2, after=page["next"])
        seen += [each["title"] for each in page["resources"]]
        if "next" not in page:
            break
    assert seen == ["old"]


@pytest.mark.requirement("resource.search-pages")
async def test_a_page_of_long_descriptions_ends_before_it_is_too_long(bench: Bench) -> None:
    ann = await make_agent(bench, "Ann")
    for number in range(75):
        await publish(bench, ann, title=f"t{number} " + "🚀" * 190, description="🚀" * 1000)
    for name, more in (("search_resources", {}), ("list_my_resources", {})):
        page = await bench.call(name, ann, limit=100, **more)
        assert 40 < len(page["resources"]) < 75
        rest = await bench.call(name, ann, limit=100, after=page["next"])
        titles = [each["title"].split()[0] for each in [*page["resources"], *rest["resources"]]]
        assert titles == [f"t{number}" for number in range(74, -1, -1)]


@pytest.mark.requirement("resource.search-pages")
async def test_ones_own_are_listed_newest_first_in_pages(bench: Bench) -> None:
    ann, bob = await make_agent(bench, "Ann"), await make_agent(bench, "Bob")
    for number, access in enumerate(("public", "private", "agreement")):
        await publish(bench, ann, title=str(number), access=access)
    await publish(bench, bob)
    page = await bench.call("list_my_resources", ann, limit=2)
    assert [each["title"] for each in page["resources"]] == ["2", "1"]
    assert (page["count"], page["bytes"]) == (3, 12)
    last = await bench.call("list_my_resources", ann, limit=2, after=page["next"])
    assert [each["title"] for each in last["resources"]] == ["0"]
    assert "next" not in last
    assert [
        each["title"] for each in (await bench.call("list_my_resources", ann, offset=1))["resources"]
    ] == ["1", "0"]


async def test_where_the_disk_is_nearly_full_nothing_is_published_or_changed() -> None:
    async with open_bench(tuned(store={"min_free_bytes": 1 << 50})) as bench:
        ann = await make_agent(bench, "Ann")
        refused = await bench.call("publish_resource", ann, title="t", content="x")
        assert isinstance(refused, Refusal)
        assert refused.code == "unavailable"
        assert code(await bench.call("update_resource", ann, resource_id=NOBODY, title="x")) == "unavailable"
        assert code(await bench.call("delete_resource", ann, resource_id=NOBODY)) == "not_found"


@pytest.mark.requirement("resource.search-fair")
async def test_an_agent_that_searches_without_end_is_in_nobodys_way(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann, bob = await make_agent(bench, "Ann"), await make_agent(bench, "Bob")
    await publish(bench, ann)
    looked, gate, answers = bench.store.search, trio.Event(), list[Any]()
    at_once = [0, 0]

    async def slow(*args: Any) -> Any:
        at_once[0] += 1
        at_once[1] = max(at_once)
        await gate.wait()
        at_once[0] -= 1
        return await looked(*args)

    async def search() -> None:
        answers.append(await bench.call("search_resources", ann, q="rates"))

    monkeypatch.setattr(bench.store, "search", slow)
    async with trio.open_nursery() as nursery:
        for _ in range(30):
            nursery.start_soon(search)
        await trio.testing.wait_all_tasks_blocked()
        assert [code(each) for each in answers] == ["rate_limited"] * (29 - resources.WAITING)
        assert at_once == [1, 1]
        monkeypatch.setattr(bench.store, "search", looked)
        assert await found(bench, bob, "rates") == ["Rates"]
        gate.set()
    assert len(answers) == 30
    assert sum("resources" in each for each in answers if isinstance(each, dict)) == resources.WAITING + 1
