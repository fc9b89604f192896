"""Methods and their params, in both eras."""

from typing import Any

import pytest

from tests.gateways.mcp.harness import LEGACY_REVISIONS, Door, SessionDoor


@pytest.fixture
async def session(faked: Door) -> SessionDoor:
    return await faked.session()


@pytest.mark.requirement("mcp.both-eras")
@pytest.mark.parametrize(
    "method", ["tools/list", "resources/list", "resources/templates/list", "prompts/list"]
)
async def test_lists_are_the_same_in_every_revision(faked: Door, method: str) -> None:
    member = {"resources/templates/list": "resourceTemplates"}.get(method, method.partition("/")[0])
    items = (await faked.modern(method)).result[member]
    for revision in LEGACY_REVISIONS:
        legacy = await (await faked.session(revision)).ask(method)
        assert legacy.result == {member: items}
    assert (await faked.bare(method)).result[member] == items


@pytest.mark.requirement("mcp.result-type")
async def test_a_modern_result_says_its_type_its_server_and_how_long_it_keeps(faked: Door) -> None:
    result = (await faked.modern("tools/list")).result
    assert result["resultType"] == "complete"
    assert result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "turret"
    assert result["ttlMs"] > 0
    assert result["cacheScope"] == "public"


@pytest.mark.requirement("mcp.result-type")
async def test_a_legacy_result_has_none_of_the_modern_members(session: SessionDoor) -> None:
    assert set((await session.ask("tools/list")).result) == {"tools"}


@pytest.mark.requirement("mcp.discover")
async def test_discover_names_every_revision_and_only_what_is_served(faked: Door) -> None:
    result = (await faked.modern("server/discover")).result
    assert result["supportedVersions"] == ["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26"]
    assert result["capabilities"] == {
        "tools": {},
        "resources": {"subscribe": True},
        "prompts": {},
        "completions": {},
    }
    assert result["instructions"]


@pytest.mark.requirement("mcp.discover")
async def test_a_face_without_prompts_and_resources_declares_none(door: Door) -> None:
    assert (await door.modern("server/discover")).result["capabilities"] == {"tools": {}}


@pytest.mark.requirement("mcp.handshake")
@pytest.mark.parametrize("asked", [*LEGACY_REVISIONS, "2024-11-05", "2026-07-28", "2099-01-01", "", "x"])
async def test_initialize_answers_with_the_asked_revision_or_our_newest(faked: Door, asked: str) -> None:
    session = await faked.session(asked)
    assert session.revision == (asked if asked in LEGACY_REVISIONS else "2025-11-25")


async def test_ping_is_answered_in_the_handshake_era_alone(faked: Door, session: SessionDoor) -> None:
    assert (await session.ask("ping")).result == {}
    assert (await faked.bare("ping")).result == {}
    answer = await faked.modern("ping")
    assert (answer.status, answer.error["code"]) == (404, -32601)


@pytest.mark.requirement("mcp.call")
async def test_arguments_reach_the_broker_as_they_were_written(faked: Door) -> None:
    body = (
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"x": 1.0e0 }}}'
    )
    answer = await faked.ask(body=body)
    assert answer.result["structuredContent"] == {"echo": {"x": 1.0}}
    assert faked.broker.calls[-1][1:] == ("echo", b'{"x": 1.0e0 }')


@pytest.mark.parametrize("arguments", [{}, {"arguments": None}, {"arguments": {}}])
async def test_absent_null_and_empty_arguments_are_an_empty_object(
    session: SessionDoor, arguments: dict[str, Any]
) -> None:
    assert (await session.ask("tools/call", name="echo", **arguments)).result["structuredContent"] == {
        "echo": {}
    }


@pytest.mark.requirement("mcp.unknown-tool")
@pytest.mark.parametrize(
    "params",
    [
        {"name": "no_such_tool"},
        {"name": "no_such_tool", "arguments": {}},
        {},
        {"name": 7},
        {"name": None},
        {"name": ["echo"]},
        {"name": "echo", "arguments": []},
        {"name": "echo", "arguments": "{}"},
        {"name": "echo", "_meta": []},
        {"name": "echo", "_meta": {"progressToken": 1.5}},
        {"name": "echo", "_meta": {"progressToken": True}},
    ],
)
async def test_malformed_members_of_the_method_are_invalid_params(
    faked: Door, session: SessionDoor, params: dict[str, Any]
) -> None:
    legacy = await session.ask("tools/call", **params)
    assert (legacy.status, legacy.error["code"], legacy.json["id"]) == (200, -32602, 1)
    if isinstance(params.get("_meta", {}), dict):
        modern = await faked.modern("tools/call", **params)
        assert (modern.status, modern.error["code"], modern.json["id"]) == (400, -32602, 1)
    assert faked.broker.calls == []


async def test_members_of_params_that_stand_twice_are_invalid_params(faked: Door) -> None:
    body = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","n\\u0061me":"x"}}'
    answer = await faked.ask(body=body)
    assert (answer.error["code"], faked.broker.calls) == (-32602, [])


@pytest.mark.requirement("mcp.wrong-arguments")
async def test_wrong_arguments_of_a_known_tool_are_its_result(faked: Door) -> None:
    body = (
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"a":1,"a":2}}}'
    )
    answer = await faked.ask(body=body)
    assert answer.status == 200
    assert answer.result["isError"] is True
    assert answer.result["structuredContent"]["refusal"]["code"] in ("bad_request", "bad_envelope")


@pytest.mark.requirement("mcp.fault")
async def test_a_fault_shows_nothing_of_the_inside(door: Door, caplog: pytest.LogCaptureFixture) -> None:
    for answer in (
        await door.modern("tools/call", name="broken"),
        await door.bare("tools/call", name="broken"),
    ):
        assert answer.status == 200
        assert answer.error["code"] == -32603
        assert b"secret" not in answer.body
        assert answer.error["data"]["incident"] in caplog.text


@pytest.mark.parametrize("cursor", [5, ["x"], {"a": 1}, "nonsense"])
async def test_a_cursor_that_is_none_of_ours_is_invalid_params(faked: Door, cursor: Any) -> None:
    answer = await faked.modern("tools/list", cursor=cursor)
    assert (answer.status, answer.error["code"]) == (400, -32602)


@pytest.mark.parametrize("cursor", [None, ""])
async def test_a_cursor_that_says_nothing_is_the_start(faked: Door, cursor: Any) -> None:
    assert (await faked.modern("tools/list", cursor=cursor)).result["tools"]


@pytest.mark.requirement("mcp.resource-missing")
async def test_a_missing_resource_is_told_in_each_eras_own_way(faked: Door, session: SessionDoor) -> None:
    uri = "turret://nothing/here"
    legacy, modern = (
        await session.ask("resources/read", uri=uri),
        await faked.modern("resources/read", uri=uri),
    )
    assert (legacy.status, legacy.error["code"], legacy.error["data"]) == (200, -32002, {"uri": uri})
    assert (modern.status, modern.error["code"], modern.error["data"]) == (400, -32602, {"uri": uri})


@pytest.mark.parametrize("params", [{}, {"uri": 1}, {"uri": None}])
async def test_a_uri_that_is_no_string_is_invalid_params(
    session: SessionDoor, params: dict[str, Any]
) -> None:
    assert (await session.ask("resources/read", **params)).error["code"] == -32602


@pytest.mark.parametrize(
    "params",
    [
        {"name": "nothing"},
        {},
        {"name": "make_a_call"},
        {"name": "answer_a_ring", "arguments": {"code": 5}},
        {"name": "answer_a_ring", "arguments": []},
        {"name": "answer_a_ring", "arguments": {"code": "ALFA", "more": "x"}},
    ],
)
async def test_an_unknown_prompt_and_wrong_arguments_are_invalid_params(
    session: SessionDoor, params: dict[str, Any]
) -> None:
    assert (await session.ask("prompts/get", **params)).error["code"] == -32602


@pytest.mark.parametrize("method", ["x", "tools/lists", "rpc.discover", "logging/setLevel"])
async def test_an_unknown_method_is_404_in_the_modern_era_and_a_plain_error_before(
    faked: Door, session: SessionDoor, method: str
) -> None:
    modern, legacy = await faked.modern(method), await session.ask(method)
    assert (modern.status, modern.error["code"], modern.json["id"]) == (404, -32601, 1)
    assert (legacy.status, legacy.error["code"], legacy.json["id"]) == (200, -32601, 1)


async def test_a_wrong_log_level_is_invalid_params(faked: Door) -> None:
    answer = await faked.modern("tools/list", _meta={"io.modelcontextprotocol/logLevel": "loud"})
    assert answer.error["code"] == -32602
