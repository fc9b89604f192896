"""The door: who may come in, in which version, with what body; and the cards (network.md, A2A)."""

import json
from collections.abc import Callable
from typing import Any

import pytest
import trio

from broker.app import Caller
from gateways.a2a import door
from gateways.a2a.card import PREFIX
from tests.support.a2a import Doors, said
from tests.support.agents import owner_caller


@pytest.mark.requirement("network.a2a.callers")
@pytest.mark.parametrize("to", ["bob", "nobody"])
async def test_without_a_good_token_nothing_is_told(doors: Doors, to: str) -> None:
    path = str(doors.bob.agent) if to == "bob" else "ag_" + "0" * 26
    for token in (None, "made-up"):
        answer = await doors.rpc("GetTask", {"id": "x"}, token=token, to=path)
        assert answer.status == 401
        assert answer.headers["www-authenticate"].startswith("Bearer ")
        assert answer.json["refusal"]["code"] == "unauthenticated"


@pytest.mark.requirement("network.a2a.callers")
async def test_a_token_acts_for_an_agent_and_has_the_scope(doors: Doors) -> None:
    doors.bearers.give("less", doors.ann, scopes=frozenset({"message"}))
    less = await doors.rpc("ListTasks", token="less")
    assert (less.status, less.json["refusal"]["code"]) == (403, "insufficient_scope")
    assert 'scope="task"' in less.headers["www-authenticate"]
    doors.bearers.give("owner", owner_caller(doors.bench, "ow_" + "0" * 26))
    doors.bearers._broker = None
    owner = await doors.rpc("ListTasks", token="owner")
    assert (owner.status, owner.json["refusal"]["code"]) == (403, "agent_required")


@pytest.mark.requirement("network.a2a.callers")
@pytest.mark.parametrize(("token", "code"), [("made-up", "unauthenticated"), ("less", "insufficient_scope")])
async def test_who_may_call_nothing_holds_no_room_for_a_large_body(
    doors: Doors, token: str, code: str
) -> None:
    doors.bearers.give("less", doors.ann, scopes=frozenset({"message"}))
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b" " * 70_000, "more_body": False} if sent else await never()

    async def never() -> Any:
        await trio.sleep_forever()

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    head = [(b"authorization", f"Bearer {token}".encode()), (b"content-type", b"application/json")]
    scope = {"type": "http", "method": "POST", "path": f"{PREFIX}{doors.bob.agent}", "headers": head}
    with trio.fail_after(1):
        await doors.app(scope, receive, send)
    assert sent[0]["status"] == (401 if code == "unauthenticated" else 403)
    assert json.loads(sent[1]["body"])["refusal"]["code"] == code


@pytest.mark.requirement("network.a2a.errors")
async def test_what_is_large_is_read_beside_the_loop(doors: Doors, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []

    async def apart(judge: Callable[[bytes], Any], body: bytes) -> Any:
        read.append(len(body))
        return judge(body)

    monkeypatch.setattr(door, "apart", apart)
    text = b'{"jsonrpc":"2.0","id":1,"method":"ListTasks","params":{},"z":' + b"[" * 60_000
    shown = {"content_type": "application/json", "a2a_version": "1.0"}
    for size in (0, 60_000):
        body = text + b"[" * size
        answer = await doors.ask(f"{PREFIX}{doors.bob.agent}", "POST", body, "ann", **shown)
        assert answer.json["error"]["code"] == -32700
    assert read == [len(text) + 60_000]


@pytest.mark.requirement("network.a2a.callers")
async def test_a_suspended_agent_is_refused_at_the_door(doors: Doors) -> None:
    await doors.bench.call("suspend_agent", Caller(operator=True), agent_id=doors.ann.agent, reason="x")
    answer = await doors.rpc("ListTasks")
    assert (answer.status, answer.json["refusal"]["code"]) == (403, "suspended")


@pytest.mark.requirement("network.a2a.version")
@pytest.mark.parametrize(
    ("version", "query", "good"),
    [
        ("1.0", "", True),
        ("1.0.1", "", True),
        ("", "?A2A-Version=1.0", True),
        ("", "", False),
        ("0.3", "", False),
        ("1.1", "", False),
        ("99.0", "", False),
        ("1", "", False),
    ],
)
async def test_a_version_that_is_not_spoken_is_refused(
    doors: Doors, version: str, query: str, good: bool
) -> None:
    answer = await doors.rpc("ListTasks", to=f"{doors.bob.agent}{query}", a2a_version=version)
    assert answer.status == 200
    if good:
        assert answer.json["result"]["tasks"] == []
    else:
        error = answer.json["error"]
        assert (error["code"], error["data"][0]["reason"]) == (-32009, "VERSION_NOT_SUPPORTED")
        assert error["data"][0]["metadata"]["supported"] == "1.0"


@pytest.mark.requirement("network.a2a.errors")
@pytest.mark.parametrize(
    ("body", "code", "id"),
    [
        (b"{", -32700, None),
        (b'\xff{"jsonrpc":"2.0"}', -32700, None),
        (b"[]", -32600, None),
        (b'{"jsonrpc":"2.0","method":"ListTasks"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":3,"result":{}}', -32600, 3),
        (b'{"jsonrpc":"1.0","id":3,"method":"ListTasks"}', -32600, 3),
        (b'{"jsonrpc":"2.0","id":"a","method":"Nothing"}', -32601, "a"),
        (b'{"jsonrpc":"2.0","id":4,"method":"GetTask"}', -32602, 4),
        (b'{"jsonrpc":"2.0","id":5,"method":"GetTask","params":{"id":7}}', -32602, 5),
    ],
)
async def test_what_is_no_request_is_an_error_of_json_rpc(
    doors: Doors, body: bytes, code: int, id: Any
) -> None:
    headers = {"content-type": "application/json", "a2a-version": "1.0"}
    answer = await doors.ask(f"{PREFIX}{doors.bob.agent}", "POST", body, "ann", **headers)
    assert (answer.status, answer.json["error"]["code"], answer.json["id"]) == (200, code, id)


@pytest.mark.requirement("network.a2a.errors")
async def test_another_body_method_or_path_is_refused(doors: Doors) -> None:
    path = f"{PREFIX}{doors.bob.agent}"
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ListTasks"}).encode()
    text = await doors.ask(path, "POST", body, "ann", content_type="text/plain")
    assert (text.status, text.json["error"]["code"]) == (415, -32005)
    got = await doors.ask(path, "GET", token="ann")
    assert (got.status, got.headers["allow"]) == (405, "POST")
    posted = await doors.ask(f"{path}/.well-known/agent-card.json", "POST", body, "ann")
    assert (posted.status, posted.headers["allow"]) == (405, "GET, HEAD")
    assert (await doors.ask(f"{path}/more", "POST", body, "ann")).status == 404
    assert (await doors.ask(PREFIX, "POST", body, "ann")).status == 404
    large = await doors.ask(path, "POST", b" " * 300_000, "ann", content_type="application/json")
    assert large.status == 413
    text = b'{"jsonrpc":"2.0","id":1,"method":"ListTasks","params":{}}' + b" " * 100_000
    good = await doors.ask(path, "POST", text, "ann", content_type="application/json", a2a_version="1.0")
    assert good.json["result"]["tasks"] == []
    assert (await doors.ask(path, "POST", text, content_type="application/json")).status == 413
    slash = await doors.rpc("ListTasks", to=f"{doors.bob.agent}/")
    assert slash.json["result"]["totalSize"] == 0


@pytest.mark.requirement("network.a2a.errors")
async def test_a_fault_shows_a_number_and_nothing_else(doors: Doors, monkeypatch: Any) -> None:
    async def broken(call: Any, params: bytes) -> Any:
        raise ValueError("a secret")

    monkeypatch.setitem(__import__("gateways.a2a.methods").a2a.methods.METHODS, "ListTasks", broken)
    error = await doors.error("ListTasks")
    assert error["code"] == -32603
    assert "secret" not in json.dumps(error)
    assert len(error["data"][0]["requestId"]) == 16


@pytest.mark.requirement("network.a2a.card")
async def test_the_card_of_a_listed_agent_is_for_anybody(doors: Doors) -> None:
    path = f"{PREFIX}{doors.bob.agent}/.well-known/agent-card.json"
    answer = await doors.ask(path)
    assert answer.status == 200
    assert answer.headers["cache-control"] == "public, max-age=60"
    card = answer.json
    assert (card["name"], card["capabilities"]["streaming"]) == ("Bob", True)
    (interface,) = card["supportedInterfaces"]
    assert interface == {
        "url": f"http://127.0.0.1:8766/a2a/{doors.bob.agent}",
        "protocolBinding": "JSONRPC",
        "protocolVersion": "1.0",
    }
    name = answer.headers["etag"]
    for known in (name, f"W/{name}", f'"x", W/"y",{name}', "*"):
        same = await doors.ask(path, if_none_match=known)
        assert (same.status, same.body, same.headers["etag"]) == (304, b"", name)
    for other in ('"x"', name.strip('"'), "", f"{name}x"):
        assert (await doors.ask(path, if_none_match=other)).status == 200
    assert (await doors.ask(path, "HEAD")).headers["content-length"] == str(len(answer.body))
    await doors.bench.call("update_my_profile", doors.bob, capabilities=["fx-quotes"])
    changed = await doors.ask(path, if_none_match=answer.headers["etag"])
    assert changed.status == 200
    assert [each["id"] for each in changed.json["skills"]] == ["fx-quotes"]


@pytest.mark.requirement("network.a2a.card")
async def test_the_card_of_a_hidden_agent_is_for_agents_and_of_nobody_for_none(doors: Doors) -> None:
    def path(agent: Any) -> str:
        return f"{PREFIX}{agent}/.well-known/agent-card.json"

    hidden = await doors.ask(path(doors.ann.agent))
    nobody = await doors.ask(path("ag_" + "0" * 26))
    assert (hidden.status, hidden.json) == (404, nobody.json)
    shown = await doors.ask(path(doors.ann.agent), token="eve")
    assert (shown.status, shown.json["name"]) == (200, "Ann")
    assert shown.headers["cache-control"].startswith("private")
    assert (await doors.ask(path(doors.ann.agent), token="made-up")).status == 401
    await doors.bench.call("suspend_agent", Caller(operator=True), agent_id=doors.bob.agent, reason="x")
    assert (await doors.ask(path(doors.bob.agent))).json == nobody.json
    assert (await doors.ask(path(doors.bob.agent), token="eve")).json == nobody.json


@pytest.mark.requirement("network.a2a.direct")
async def test_the_card_names_the_endpoint_that_an_agent_has_published(doors: Doors) -> None:
    await doors.bench.call("set_a2a_endpoint", doors.bob, url="https://bob.a2a-agents.org/a2a")
    card = (await doors.ask(f"{PREFIX}{doors.bob.agent}/.well-known/agent-card.json")).json
    assert card["supportedInterfaces"][0]["url"] == "https://bob.a2a-agents.org/a2a"
    assert "securitySchemes" not in card
    assert card["capabilities"] == {}


async def test_without_a_sign_in_nobody_comes_in(doors: Doors) -> None:
    from gateways.a2a.door import a2a_app
    from tests.support.a2a import PLACE

    doors.app = a2a_app(doors.bench.broker, PLACE)
    answer = await doors.rpc("SendMessage", {"message": said()})
    assert answer.status == 401
    assert (await doors.ask(f"{PREFIX}{doors.bob.agent}/.well-known/agent-card.json")).status == 200


@pytest.mark.requirement("network.a2a.errors")
@pytest.mark.parametrize("method", ["ListTasks", "SubscribeToTask"])
async def test_a_fault_of_ours_is_an_incident_in_json_rpc(
    doors: Doors, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: Any) -> Any:
        raise ZeroDivisionError("no such words go out")

    monkeypatch.setitem(door.METHODS, "ListTasks", broken)
    monkeypatch.setattr(door, "open_stream", broken)
    answer = await doors.rpc(method, {"id": "x"}, token="ann", to=str(doors.bob.agent))
    assert answer.json["error"]["code"] == -32603
    assert "no such words" not in json.dumps(answer.json)
