"""The faces of the endpoint."""

import re

import pytest

from gateways.mcp import resources, trial_resources
from gateways.mcp.faces import surface, surfaces
from tests.gateways.mcp.harness import fake_broker
from tests.support.broker import Bench
from tests.support.broker_fake import FakeTool


@pytest.mark.requirement("mcp.faces")
async def test_the_endpoint_lists_all_and_a_face_its_own(bench: Bench) -> None:
    found = surfaces(bench.broker)
    assert set(found) == {"", "wire", "network", "arena", "trial"}
    assert set(found[""].tools) == set().union(*(face.tools for name, face in found.items() if name))
    assert all(name.startswith("kestrel.") for name in found["trial"].tools)
    assert set(found["arena"].tools) & set(found["network"].tools) == {"get_agent"}
    assert "submit_action" in found["arena"].tools
    assert set(found["wire"].tools) & set(found["network"].tools) == {"wait_for_events"}
    assert "send_call" in found["wire"].tools
    assert "get_inbox" in found["network"].tools
    assert [each["uri"] for each in found["network"].resources] == ["turret://inbox"]
    library, channel = found["network"].templates
    assert library["uriTemplate"] == "turret://resource/{resource_id}"
    assert channel["uriTemplate"] == "turret://channel/{channel_id}"
    assert all(each not in found["wire"].templates for each in (library, channel))
    assert found["wire"].resources == []
    (artifact,) = found["arena"].templates
    assert artifact["uriTemplate"] == "kestrel://artifact/{ref}"
    assert artifact in found[""].templates
    assert all(artifact not in found[face].templates for face in ("wire", "network"))


@pytest.mark.requirement("mcp.faces")
async def test_what_a_model_is_told_names_only_what_its_face_has(bench: Bench) -> None:
    for face, found in surfaces(bench.broker).items():
        named = set(re.findall(r"[a-z]+(?:_[a-z]+)+", found.instructions))
        dotted = set(re.findall(r"kestrel(?:\.[a-z]+)+", found.instructions))
        assert {"arena": "submit_action", "trial": "kestrel.secrets.set"}.get(
            face, "wait_for_events"
        ) in named | dotted
        assert named | dotted <= {*found.tools, *found.prompts}, face


@pytest.mark.requirement("oauth.guarded-faces")
async def test_a_face_that_is_to_stand_is_there_without_tools(bench: Bench) -> None:
    found = surfaces(bench.broker, ("soon", "operator"))
    assert set(found) == {"", "wire", "network", "arena", "trial", "soon"}
    assert not found["soon"].tools
    assert found["trial"].templates == [*trial_resources.TEMPLATES, *resources.ARTIFACT_TEMPLATES]


def test_a_face_of_another_area_has_no_wire_prompts_and_no_resources_but_artifacts() -> None:
    broker = fake_broker()
    broker.tools["deal"] = FakeTool(name="deal", face="arena")
    broker.tools["halt"] = FakeTool(name="halt", face="operator")
    found = surfaces(broker)  # type: ignore[arg-type]  # a fake
    assert set(found) == {"", "wire", "arena"}
    assert set(found["arena"].tools) == {"deal"}
    assert not found["arena"].prompts
    assert found["arena"].templates == resources.ARTIFACT_TEMPLATES
    assert found["arena"].watch is None
    assert "deal" in found[""].tools
    assert all("halt" not in each.tools for each in found.values())
    assert set(surface(broker, "operator").tools) == {"halt"}  # type: ignore[arg-type]  # a fake
