"""Which era a request is of, and what each era asks first."""

from typing import Any

import pytest

from gateways.mcp.endpoint import mcp_app
from gateways.mcp.revisions import CAPABILITIES_KEY, MODERN, SUPPORTED, VERSION_KEY
from gateways.mcp.sessions import Sessions
from tests.gateways.mcp.harness import LEGACY_REVISIONS, Door, fake_broker, modern, request
from tests.support.broker_fake import proof


@pytest.mark.requirement("mcp.both-eras")
async def test_meta_with_a_version_makes_a_request_modern_whatever_the_headers_lack(faked: Door) -> None:
    body, headers = modern("tools/list")
    answer = await faked.ask(body=body)
    assert (answer.status, answer.error["code"]) == (400, -32020)
    assert (await faked.ask(body=body, **headers)).status == 200


@pytest.mark.requirement("mcp.header-ladder")
async def test_a_modern_header_without_meta_is_invalid_params(faked: Door) -> None:
    answer = await faked.ask(body=request("tools/list"), mcp_protocol_version=MODERN, mcp_method="tools/list")
    assert (answer.status, answer.error["code"]) == (400, -32602)


@pytest.mark.requirement("mcp.unsupported-revision")
@pytest.mark.parametrize("version", ["2099-01-01", "2024-11-05", "x", "1.0"])
async def test_an_unknown_revision_is_told_which_are_known(faked: Door, version: str) -> None:
    body, headers = modern("tools/list", _meta={VERSION_KEY: version})
    headers["mcp_protocol_version"] = version
    for answer in (
        await faked.ask(body=body, **headers),
        await faked.ask(body=request("tools/list"), mcp_protocol_version=version),
        await faked.ask(body={"jsonrpc": "2.0", "method": "x"}, mcp_protocol_version=version),
    ):
        assert (answer.status, answer.error["code"]) == (400, -32022)
        assert answer.error["data"] == {"supported": list(SUPPORTED), "requested": version}


async def test_header_and_body_that_disagree_are_told_so_before_anything_is_looked_up(faked: Door) -> None:
    body, headers = modern("tools/call", name="no_such_tool")
    headers["mcp_name"] = "echo"
    answer = await faked.ask(body=body, **headers)
    assert (answer.status, answer.error["code"], answer.json["id"]) == (400, -32020, 1)


async def test_session_and_resumption_headers_mean_nothing_in_the_modern_era(faked: Door) -> None:
    body, headers = modern("tools/list")
    answer = await faked.ask(body=body, mcp_session_id="unknown", last_event_id="9", **headers)
    assert answer.status == 200
    assert "mcp-session-id" not in answer.headers


@pytest.mark.parametrize("method", ["initialize", "ping"])
async def test_what_the_modern_era_removed_is_not_found_even_without_meta(faked: Door, method: str) -> None:
    for body in (request(method), modern(method)[0]):
        answer = await faked.ask(body=body, mcp_protocol_version=MODERN, mcp_method=method)
        assert (answer.status, answer.error["code"]) == (404, -32601)


async def test_a_modern_notification_is_taken_and_dropped(faked: Door) -> None:
    answer = await faked.ask(
        body={"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}},
        mcp_protocol_version=MODERN,
    )
    assert (answer.status, answer.body) == (202, b"")


async def test_a_response_from_a_client_is_refused_in_the_modern_era(faked: Door) -> None:
    answer = await faked.ask(body={"jsonrpc": "2.0", "id": 1, "result": {}}, mcp_protocol_version=MODERN)
    assert (answer.status, answer.error["code"]) == (400, -32600)


async def test_a_response_from_a_client_is_taken_in_a_session_alone(faked: Door) -> None:
    session = await faked.session()
    body = {"jsonrpc": "2.0", "id": 1, "result": {}}
    assert (await faked.ask(body=body, **session.headers)).status == 202
    assert (await faked.ask(body=body)).status == 400


@pytest.mark.requirement("mcp.bare")
async def test_a_request_that_names_neither_session_nor_revision_is_answered(faked: Door) -> None:
    answer = await faked.ask(body=b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}', accept="")
    assert answer.status == 200
    assert [tool["name"] for tool in answer.result["tools"]][:1] == ["wire_info"]


@pytest.mark.requirement("mcp.session-needed")
@pytest.mark.parametrize("revision", LEGACY_REVISIONS)
async def test_a_named_revision_without_a_session_is_400(faked: Door, revision: str) -> None:
    answer = await faked.ask(body=request("tools/list", 7), mcp_protocol_version=revision)
    assert (answer.status, answer.error["code"], answer.json["id"]) == (400, -32600, 7)


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"protocolVersion": 1},
        {"protocolVersion": "2025-11-25", "capabilities": []},
        {"protocolVersion": None},
    ],
)
async def test_a_malformed_handshake_leaves_no_session_behind(faked: Door, params: dict[str, Any]) -> None:
    answer = await faked.ask(body=request("initialize", **params))
    assert (answer.status, answer.error["code"]) == (200, -32602)
    assert "mcp-session-id" not in answer.headers
    assert faked.app.sessions.statistics().sessions == 0


@pytest.mark.requirement("mcp.session-caps")
async def test_no_place_for_a_session_is_overloaded_and_says_when_to_come_back() -> None:
    broker = fake_broker()
    door = Door(mcp_app(broker, sessions=Sessions(most=1)), broker)
    session = await door.session()
    async with door.open("GET", **session.headers) as stream:
        await stream.started.wait()
        answer = await door.ask(body=request("initialize", protocolVersion="2025-11-25"))
        assert answer.status == 503
        assert answer.error["data"]["code"] == "overloaded"
        assert answer.headers["retry-after"] == "5"


@pytest.mark.requirement("mcp.session-bound")
async def test_a_session_is_unknown_to_another_principal_and_known_under_a_new_proof(faked: Door) -> None:
    session = await faked.session(authorization=f"Turret {proof(nonce='1')}")
    ask = request("ping")
    renewed = await faked.ask(body=ask, **session.headers, authorization=f"Turret {proof(nonce='2')}")
    other = await faked.ask(body=ask, **session.headers, authorization=f"Turret {proof(pk='2b' * 32)}")
    nobody = await faked.ask(body=ask, **session.headers)
    assert [renewed.status, other.status, nobody.status] == [200, 404, 404]


async def test_two_session_headers_are_refused(faked: Door) -> None:
    session = await faked.session()
    doubled = {"mcp_session_id": session.id, "Mcp-Session-Id": session.id}
    assert (await faked.ask(body=request("ping"), **doubled)).status == 400


async def test_a_capability_of_the_client_is_no_reason_to_be_modern(faked: Door) -> None:
    session = await faked.session()
    answer = await session.ask("tools/list", _meta={CAPABILITIES_KEY: {}, "progressToken": 1})
    assert set(answer.result) == {"tools"}
