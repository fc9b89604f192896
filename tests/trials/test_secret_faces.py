"""A secret's value is in no answer of any tool at any door, whatever names it, and in no artifact or report."""

import base64
from typing import Any, Final
from urllib.parse import quote

import pytest

from broker.app import Caller
from broker.tools.registry import collect
from tests.gateways.mcp.harness import modern
from tests.isolation.rows import ROWS
from tests.isolation.world import client_of as open_client
from tests.isolation.world import open_world
from tests.support.rehearsals import do, started
from tests.support.ws import open_session

NAME, VALUE = "HOOK_TOKEN", "planted+value/of=a secret"
NAMED: Final = f"${{{NAME}}}"
SPELLINGS: Final = {VALUE, quote(VALUE), VALUE.encode().hex(), base64.b64encode(VALUE.encode()).decode()}


def naming(value: Any) -> Any:
    """The same with the secret's name in place of each text that people write."""
    if isinstance(value, dict):
        return {name: naming(each) for name, each in value.items()}
    free = isinstance(value, str) and (" " in value or "secret" in value or "Alice" in value)
    return NAMED if free else value


@pytest.mark.requirement("trial.secret-hidden", "threat.secret-store")
async def test_no_tool_at_any_door_and_no_page_shows_a_value() -> None:
    shown: dict[str, str] = {}
    done: set[str] = set()
    async with open_world() as world, open_client(world) as http:
        alice = world.people["alice"]
        await world.bench.call("kestrel.secrets.set", alice, name=NAME, value=VALUE)
        await world.call("update_my_profile", "alice", description=NAMED)
        await world.call("set_webhook", "alice", url="https://hooks.example/", headers={"X-Key": NAMED})
        ended = await do(world.bench, alice, await started(world.bench, alice), "finalize")
        http.headers["authorization"] = f"Bearer {world.token('alice')}"
        async with open_session(world.bench.broker, bearing=world.gate.admit) as peer:
            await peer.ask("authenticate", token=world.token("alice"))
            for name, row in ROWS.items():
                params = row.params(world)
                for given in (params, naming(params)):
                    if collect()[name].face == "operator":
                        answer = await world.bench.call(name, Caller(operator=True), **given)
                        shown[f"operator {name}"] = repr(answer)
                    told = await http.post(f"/v1/{name}", json=given)
                    shown[f"/v1 {name} {given}"] = f"{told.headers.raw!r}{told.text}"
                    done |= {name} if told.status_code == 200 else set()
                body, headers = modern("tools/call", name=name, arguments=params)
                headers = {each.replace("_", "-"): str(value) for each, value in headers.items()}
                told = await http.post("/mcp", json=body, headers=headers | {"accept": "application/json"})
                shown[f"MCP {name}"] = told.text
                shown[f"WS {name}"] = repr(await peer.ask(name, **params))
            peer.session.close()
        said = {"role": "ROLE_USER", "messageId": "m1", "parts": [{"text": NAMED}]}
        call = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": said}}
        shown["A2A"] = (await http.post(f"/a2a/{world.people['bob'].agent}", json=call)).text
        card, artifact = f"/a2a/{alice.agent}/.well-known/agent-card.json", f"/artifact/{ended['ref']}"
        for path in ("/openapi.json", card, artifact, f"{artifact}/report"):
            page = await http.get(path)
            assert page.status_code == 200, path
            shown[path] = page.text
    assert {"kestrel.secrets.list", "get_webhook", "set_webhook", "kestrel.session.resume", "whoami"} <= done
    assert [where for where, text in shown.items() if any(each in text for each in SPELLINGS)] == []
