"""The forms of the Resource Library's tools."""

from typing import Any

import pytest
from msgspec.structs import replace

from broker.tools.resource_forms import Reader, edit_of
from broker.wire.refusals import Refusal
from tests.support.agents import make_agent
from tests.support.broker import Bench, code
from tests.support.pairs import agree
from tests.support.resources import ROW, publish


@pytest.mark.requirement("resource.form")
@pytest.mark.parametrize(
    ("content_type", "answer"),
    [
        *((each, "accepted") for each in ("text/plain", "text/markdown", "text/x-python", "text/csv")),
        *((f"application/{each}", "accepted") for each in ("json", "xml", "yaml", "ld+json", "vnd.x.y+xml")),
        *((each, "bad_request") for each in ("text/", "text", "TEXT/plain", "text/html; charset=utf-8")),
        *((each, "bad_request") for each in ("image/png", "application/pdf", "text/plain\n", "text/a b", "")),
        *(
            (each, "bad_request")
            for each in ("application/+json", "application/jsonx", "text/plain,text/csv")
        ),
    ],
)
async def test_a_media_type_is_one_of_text(bench: Bench, content_type: str, answer: str) -> None:
    ann = await make_agent(bench, "Ann")
    made = await bench.call("publish_resource", ann, title="t", content="x", content_type=content_type)
    assert code(made) == answer
    if isinstance(made, Refusal):
        assert made.detail["path"] == "content_type"


@pytest.mark.requirement("resource.form")
@pytest.mark.parametrize(
    ("params", "path"),
    [
        ({"title": "t" * 201}, "title"),
        ({"title": ""}, "title"),
        ({"title": "\u00a0"}, "title"),
        ({"title": "a\nb"}, "title"),
        ({"content": ""}, "content"),
        ({"description": "d" * 1001}, "description"),
        ({"description": "\x07"}, "description"),
        ({"tags": [f"t{n}" for n in range(11)]}, "tags"),
        ({"tags": ["No"]}, "tags"),
        ({"tags": "fx"}, "tags"),
        ({"access": "secret"}, "access"),
        ({"publisher_agent_id": "ag_1"}, "publisher_agent_id"),
    ],
)
async def test_each_param_has_its_limits_and_nothing_is_written(
    bench: Bench, params: dict[str, Any], path: str
) -> None:
    ann = await make_agent(bench, "Ann")
    refused = await bench.call("publish_resource", ann, **{"title": "t", "content": "x", **params})
    assert isinstance(refused, Refusal)
    assert (refused.code, refused.detail["path"].split("[")[0]) == ("bad_request", path)
    id = await publish(bench, ann)
    if path != "publisher_agent_id":
        assert code(await bench.call("update_resource", ann, resource_id=id, **params)) == "bad_request"
    assert (await bench.call("list_my_resources", ann))["count"] == 1


@pytest.mark.requirement("resource.form")
async def test_the_largest_of_everything_is_taken(bench: Bench) -> None:
    ann = await make_agent(bench, "Ann")
    params = {
        "title": "\U0001f680" * 200,
        "description": "d" * 1000,
        "tags": [f"{n}".zfill(32) for n in range(10)],
    }
    made = await bench.call("publish_resource", ann, content="ä" * 131_072, **params)
    assert (made["size"], made["title"]) == (262_144, params["title"])
    too_large = await bench.call("publish_resource", ann, title="t", content="ä" * 131_072 + "a")
    assert (code(too_large), too_large.detail["size"]) == ("too_large", 262_145)


def test_what_is_wrong_with_any_part_is_said() -> None:
    assert edit_of(None, None, None, None, None, None) == edit_of(None, None, None, None, None, None)
    for bad in (("\n", None, None), (None, "\r", None), (None, None, ["No"])):
        assert code(edit_of(*bad, None, None, None)) == "bad_request"


async def test_a_reader_asks_of_each_publisher_once(bench: Bench) -> None:
    ann, bob = await make_agent(bench, "Ann"), await make_agent(bench, "Bob")
    await agree(bench, bob, ann, scopes=["resource"])
    reader = Reader(bench.broker._services, str(bob.agent))
    row = replace(ROW, publisher=str(ann.agent), access="agreement")
    reads: list[str] = []
    get = bench.store.get

    async def counted(kind: str, id: str) -> Any:
        reads.append(kind)
        return await get(kind, id)

    bench.store.get = counted  # type: ignore[method-assign]  # a test's
    for _ in range(3):
        hit = await reader.hit(row)
        assert hit is not None
        assert (hit.can_read, hit.publisher_name) == (True, "Ann")
    assert (reads.count("pair"), reads.count("agent")) == (1, 2)
