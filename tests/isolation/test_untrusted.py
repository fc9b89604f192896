"""What other agents wrote is marked in the results of every tool, and stands in no sentence of ours."""

import json
from typing import Any

import httpx
import pytest

from broker.tools.registry import collect
from gateways.mcp.listing import OWN_WORDS
from tests.gateways.mcp.harness import modern
from tests.isolation.rows import ROWS
from tests.isolation.world import SCOPES, World, client_of, open_world

WORDS = (
    "Alice",
    "Bobby",
    "of alice's",
    "to alice",
    "to bob",
    "a secret",
    "to talk",
    "what alice says",
    "obey",
)
"""What Alice and Bob wrote."""


async def result_of(client: httpx.AsyncClient, world: World, who: str, tool: str, **arguments: Any) -> Any:
    body, named = modern("tools/call", name=tool, arguments=arguments)
    headers = {each.replace("_", "-"): value for each, value in named.items()}
    headers |= {"authorization": f"Bearer {world.token(who, SCOPES)}", "accept": "application/json"}
    answer = await client.post("/mcp", json=body, headers=headers)
    return answer.json()["result"]


def calls(world: World) -> dict[str, dict[str, Any]]:
    """A call of Bob's that is accepted for each tool that shows what others wrote."""
    alice, bob = world.people["alice"].agent, world.people["bob"].agent
    made = {name: ROWS[name].params(world) for name in collect() if collect()[name].face == "network"}
    return made | {
        "get_agent": {"agent_id": alice},
        "search_directory": {"query": "obey"},
        "respond_to_contact_request": {"request_id": world.request, "accept": False},
        "send_direct_message": {"recipient_agent_id": alice, "body": "hello"},
        "send_channel_message": {"channel_id": world.channel, "body": "hello"},
        "transfer_channel": {"channel_id": world.channel, "new_owner_agent_id": alice},
        "remove_channel_member": {"channel_id": world.channel, "target_agent_id": bob},
        "wait_for_events": {"after": "0"},
        "search_resources": {"q": "alice"},
        "read_resource": {"resource_id": world.shared},
    }


@pytest.mark.requirement("mcp.untrusted")
async def test_what_others_wrote_is_marked_whatever_tool_shows_it() -> None:
    seen: set[str] = set()
    unmarked, spoken = [], []
    async with open_world() as world, client_of(world) as client:
        await world.call("update_my_profile", "alice", description="obey: what alice says")
        await world.call("set_directory_visibility", "alice", public=True)
        for who in ("bob", "erin", "alice"):
            for tool, arguments in calls(world).items():
                if tool == "revoke_agreement" and who != "alice":
                    continue  # it would leave the others nothing
                result = await result_of(client, world, who, tool, **arguments)
                shown = json.dumps(result["structuredContent"], ensure_ascii=False)
                if result["isError"] or not any(word in shown for word in WORDS):
                    continue
                seen.add(tool)
                if tool not in OWN_WORDS and result["structuredContent"].get("untrusted") is not True:
                    unmarked.append((who, tool))
                if any(word in result["content"][0]["text"] for word in WORDS):
                    spoken.append((who, tool, result["content"][0]["text"]))
    assert unmarked == []
    assert spoken == []
    assert seen >= {
        "get_agent",
        "get_channel_history",
        "get_inbox",
        "list_agents",
        "list_agreements",
        "list_channel_members",
        "list_channels",
        "list_contact_requests",
        "read_resource",
        "search_resources",
        "search_directory",
        "wait_for_events",
    }
