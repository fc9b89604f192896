"""kestrel://artifact/<ref>: on the endpoint and on the faces of what is played."""

from typing import Any

import pytest

from gateways.mcp import resources
from tests.gateways.mcp.harness import Door
from tests.gateways.mcp.test_library_resource import Faces
from tests.support.agents import make_agent
from tests.support.artifacts import damage, publish_one
from tests.support.broker import Bench


@pytest.mark.requirement("artifact.mcp", "mcp.untrusted")
async def test_an_artifact_is_its_exact_text_for_whoever_has_the_ref(real: Door, bench: Bench) -> None:
    ref, stored = await publish_one(bench)
    uri = f"kestrel://artifact/{ref}"
    (content,) = (await real.modern("resources/read", uri=uri)).result["contents"]
    assert content.pop("text").encode() == stored
    assert content == {"uri": uri, "mimeType": "application/json", "_meta": {"untrusted": True}}


@pytest.mark.requirement("artifact.mcp")
async def test_the_arenas_face_gives_it_to_every_agent_and_no_other_resource(bench: Bench) -> None:
    ref, stored = await publish_one(bench)
    bob = await make_agent(bench, "Bob")
    faces = Faces(bench, bob=bob)

    async def read(uri: str, token: str | None = "bob") -> Any:
        return await faces.read(token, uri, path="/mcp/arena")

    (content,) = (await read(f"kestrel://artifact/{ref}")).result["contents"]
    assert content["text"].encode() == stored
    assert (await read("turret://inbox")).error["message"]
    assert (await read(f"kestrel://artifact/{ref}", None)).status == 401


@pytest.mark.requirement("artifact.mcp")
@pytest.mark.parametrize(
    "uri",
    [
        "kestrel://artifact/" + "0" * 64,
        "kestrel://artifact/" + "0" * 63,
        "kestrel://artifact/" + "A" * 64,
        "kestrel://artifact/" + "0" * 65,
        "kestrel://artifact/",
        "KESTREL://artifact/" + "0" * 64,
    ],
)
async def test_what_no_artifact_is_called_is_missing(real: Door, uri: str) -> None:
    session = await real.session()
    assert (await session.ask("resources/read", uri=uri)).error["code"] == -32002


@pytest.mark.requirement("artifact.mcp", "artifact.intact")
async def test_a_damaged_one_is_unavailable(real: Door, bench: Bench) -> None:
    ref, stored = await publish_one(bench)
    await damage(bench, ref)
    answer = await real.modern("resources/read", uri=f"kestrel://artifact/{ref}")
    assert answer.error["data"]["code"] == "unavailable"
    assert stored[:40] not in answer.body


@pytest.mark.requirement("artifact.bounded")
async def test_a_large_one_is_read_at_the_plain_door(
    real: Door, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    ref, stored = await publish_one(bench)
    uri = f"kestrel://artifact/{ref}"
    monkeypatch.setattr(resources, "ARTIFACT_BYTES", len(stored))
    assert (await real.modern("resources/read", uri=uri)).result["contents"]
    monkeypatch.setattr(resources, "ARTIFACT_BYTES", len(stored) - 1)
    error = (await real.modern("resources/read", uri=uri)).error
    assert error["data"]["code"] == "too_large"
    assert f"/artifact/{ref}" in error["data"]["message"]
