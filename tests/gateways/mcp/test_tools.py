"""The registry's tools on the MCP face: what they answer, refuse and stream."""

import json
from typing import Any

import jsonschema
import msgspec
import pytest
import trio

from broker.app import Again, Broker, Caller, Then, Tool
from broker.wire.refusals import refuse
from gateways.mcp.revisions import MODERN
from gateways.mcp.surface import Ask
from gateways.mcp.tools import broker_tools
from tests.gateways.mcp.harness import Door, fake_broker, modern, request
from tests.support.broker import Bench, Party
from tests.support.broker_fake import FakeTool


def follow(bench: Bench, party: Party) -> dict[str, Any]:
    return party.statement("follow", bench.broker.pk, bench.ts, code=party.code, until=bench.ts + 3600)


@pytest.mark.requirement("mcp.refusal")
async def test_a_refusal_is_a_result_complete_on_its_own(faked: Door) -> None:
    faked.broker.answers["send_env"] = refuse("rate_limited", "30 in 10 s", retry_after_ms=700)
    for answer in (
        await faked.modern("tools/call", name="send_env"),
        await faked.bare("tools/call", name="send_env"),
    ):
        assert answer.status == 200
        result = answer.result
        assert result["isError"] is True
        words = result["content"][0]["text"]
        assert words.startswith("rate_limited: 30 in 10 s")
        assert "700" in words
        assert "identical request" in words
        refusal = result["structuredContent"]["refusal"]
        assert refusal == {
            "code": "rate_limited",
            "status": 429,
            "message": "30 in 10 s",
            "retryable": True,
            "retry_after_ms": 700,
        }
        assert json.loads(result["content"][1]["text"]) == {"refusal": refusal}


def test_the_operators_tools_are_on_no_public_face() -> None:
    broker = fake_broker()
    broker.tools["suspend_desk"] = FakeTool(name="suspend_desk", face="operator")
    assert "suspend_desk" not in broker_tools(broker, None)  # type: ignore[arg-type]  # a fake
    assert list(broker_tools(broker, "operator")) == ["suspend_desk"]  # type: ignore[arg-type]  # a fake


@pytest.mark.requirement("mcp.schemas")
async def test_every_tool_of_the_wire_has_a_plain_described_schema(real: Door) -> None:
    tools = (await real.modern("tools/list")).result["tools"]
    assert {"send_call", "send_env", "read_conv", "desk_rings", "resolve_code", "presence"} <= {
        tool["name"] for tool in tools
    }
    for tool in tools:
        assert tool["title"]
        assert tool["description"]
        for side in ("inputSchema", "outputSchema"):
            schema = tool[side]
            jsonschema.Draft202012Validator.check_schema(schema)
            assert schema["type"] == "object"
            assert "$ref" not in json.dumps(schema)
            assert not {"anyOf", "oneOf", "allOf"} & schema.keys()
        assert "required" not in tool["outputSchema"]
        assert "refusal" in tool["outputSchema"]["properties"]
        for name, member in tool["inputSchema"]["properties"].items():
            assert member.get("description"), f"{tool['name']}.{name}"


async def test_every_refusal_and_result_fits_its_output_schema(real: Door, bench: Bench) -> None:
    alfa, brav = await bench.open("ALFA"), await bench.open("BRAV")
    line = await bench.connect(alfa, brav)
    calls: list[tuple[str, dict[str, Any]]] = [
        ("wire_info", {}),
        ("resolve_code", {"code": "ALFA"}),
        ("resolve_code", {"code": "NOPE"}),
        ("presence", {}),
        ("read_conv", {"conv": line.conv}),
        ("read_conv", {"conv": "0" * 16}),
        ("list_convs", follow(bench, alfa)),
        ("receipt", {"conv": line.conv, "n": 1}),
        ("canonicalize", {"envelope": {"a": 1}}),
        ("desk_rings", {"code": "BRAV", "after": "0", **follow(bench, brav)}),
        ("wait_for_events", {"after": "0", **follow(bench, brav)}),
        ("send_env", line.next("RFQ", {"qty": 1})),
    ]
    schemas = {
        tool["name"]: tool["outputSchema"] for tool in (await real.modern("tools/list")).result["tools"]
    }
    for name, arguments in calls:
        result = (await real.modern("tools/call", name=name, arguments=arguments)).result
        jsonschema.validate(result["structuredContent"], schemas[name])
        assert json.loads(result["content"][1]["text"]) == result["structuredContent"]


@pytest.mark.requirement("mcp.rings")
async def test_desk_rings_answers_at_once_with_what_waits(real: Door, bench: Bench) -> None:
    alfa, brav = await bench.open("ALFA"), await bench.open("BRAV")
    line = await bench.dial(alfa, brav)
    answer = await real.modern(
        "tools/call", name="desk_rings", arguments={"code": "BRAV", "after": "0", **follow(bench, brav)}
    )
    found = answer.result["structuredContent"]
    assert [ring["conv"] for ring in found["rings"]] == [line.conv]
    assert found["untrusted"] is True
    assert f"{line.conv} from ALFA" in answer.result["content"][0]["text"]


@pytest.mark.requirement("mcp.rings")
async def test_desk_rings_with_a_wait_ends_at_the_first_ring(
    real: Door, bench: Bench, autojump_clock: object
) -> None:
    alfa, brav = await bench.open("ALFA"), await bench.open("BRAV")
    arguments = {"code": "BRAV", "wait_ms": 25_000, **follow(bench, brav)}
    body, headers = modern("tools/call", name="desk_rings", arguments=arguments)
    async with real.open(body=body, **headers) as exchange:
        await trio.sleep(3)
        line = await bench.dial(alfa, brav)
        with trio.fail_after(1):
            await exchange.finished.wait()
    assert exchange.headers["content-type"].startswith("application/json")
    rings = exchange.response().result["structuredContent"]["rings"]
    assert [ring["conv"] for ring in rings] == [line.conv]


@pytest.mark.requirement("mcp.rings", "mcp.untrusted")
async def test_desk_rings_with_a_progress_token_streams_each_ring_and_ends_when_the_wait_is_over(
    real: Door, bench: Bench, autojump_clock: object
) -> None:
    alfa, brav = await bench.open("ALFA"), await bench.open("BRAV")
    arguments = {"code": "BRAV", "wait_ms": 20_000, **follow(bench, brav)}
    session = await real.session()
    body = request("tools/call", "r1", name="desk_rings", arguments=arguments, _meta={"progressToken": 7})
    started = trio.current_time()
    async with real.open(body=body, **session.headers) as exchange:
        lines = []
        for _ in range(2):
            await trio.sleep(2)
            lines.append(await bench.dial(alfa, brav))
            await exchange.wait_said(lines[-1].conv.encode())
        await exchange.finished.wait()
    assert trio.current_time() - started == pytest.approx(20, abs=1)
    assert b": keep-alive\n\n" in exchange.body
    *rings, last = exchange.response().events
    assert [ring["params"]["progress"] for ring in rings] == [1, 2]
    assert {ring["params"]["progressToken"] for ring in rings} == {7}
    told = [json.loads(ring["params"]["message"]) for ring in rings]
    assert [(ring["conv"], ring["untrusted"]) for ring in told] == [(line.conv, True) for line in lines]
    assert last["id"] == "r1"
    final = last["result"]["structuredContent"]
    assert [ring["cursor"] for ring in final["rings"]] == [ring["cursor"] for ring in told]
    assert final["cursor"] == told[-1]["cursor"]


async def test_a_wait_makes_the_desk_online_and_leaving_ends_the_wait(
    real: Door, bench: Bench, autojump_clock: object
) -> None:
    brav = await bench.open("BRAV")
    body, headers = modern(
        "tools/call", name="desk_rings", arguments={"code": "BRAV", "wait_ms": 25_000, **follow(bench, brav)}
    )
    started = trio.current_time()
    async with real.open(body=body, **headers) as exchange:
        await trio.sleep(1)
        assert (await bench.call("resolve_code", code="BRAV"))["online"] is True
        exchange.leave()
    assert trio.current_time() - started == pytest.approx(1, abs=0.1)
    assert not exchange.started.is_set()


CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"


async def modern_call(door: Door, name: str, given: dict[str, Any], **params: Any) -> Any:
    capable = {CAPABILITIES: {"elicitation": {}}}
    return (await door.modern("tools/call", name=name, arguments=given, _meta=capable, **params)).result


def filled(**content: Any) -> dict[str, Any]:
    return {"arguments": {"action": "accept", "content": content}}


@pytest.mark.requirement("mcp.asks-missing")
async def test_a_tool_that_reads_asks_for_what_it_lacks_and_goes_on_with_it(real: Door, bench: Bench) -> None:
    alfa, brav = await bench.open("ALFA"), await bench.open("BRAV")
    line = await bench.connect(alfa, brav)
    for name, given, content in (
        ("resolve_code", {}, {"code": "ALFA"}),
        ("read_conv", {"limit": 1}, {"conv": line.conv}),
        ("receipt", {"n": 1}, {"conv": line.conv}),
        ("receipt", {}, {"conv": line.conv, "n": 0}),
        ("desk_rings", {"after": "0", **follow(bench, brav)}, {"code": "BRAV"}),
    ):
        asked = await modern_call(real, name, given)
        assert asked["resultType"] == "input_required"
        schema = asked["inputRequests"]["arguments"]["params"]["requestedSchema"]
        assert schema["required"] == sorted(content)
        assert set(schema["properties"]) == set(content)
        done = await modern_call(real, name, given, inputResponses=filled(**content))
        assert done["resultType"] == "complete"
        assert done["isError"] is False, done


@pytest.mark.requirement("mcp.asks-missing")
async def test_a_session_is_asked_on_the_calls_own_stream(real: Door, bench: Bench) -> None:
    alfa = await bench.open("ALFA")
    session = await real.session(capabilities={"elicitation": {"form": {}}})
    async with real.open(body=request("tools/call", 1, name="resolve_code"), **session.headers) as exchange:
        with trio.fail_after(5):
            (asked,) = await exchange.wait_requests(1)
            await session.respond(asked["id"], result={"action": "accept", "content": {"code": "ALFA"}})
            await exchange.finished.wait()
    result = exchange.response().events[-1]["result"]
    assert result["structuredContent"]["pk"] == alfa.pk
    whole = await session.ask("tools/call", name="resolve_code", arguments={"code": "ALFA"})
    assert whole.headers["content-type"].startswith("application/json")


@pytest.mark.requirement("mcp.asks-missing")
async def test_what_a_person_will_not_or_wrongly_answers_is_refused_as_ever(real: Door, bench: Bench) -> None:
    for answers, path in (
        ({"arguments": {"action": "decline"}}, "code"),
        ({"arguments": {"action": "cancel"}}, "code"),
        (filled(), "code"),
        (filled(code="alfa"), "code"),
        (filled(code=7, conv="x"), "code"),
    ):
        refused = await modern_call(real, "resolve_code", {}, inputResponses=answers)
        assert refused["structuredContent"]["refusal"]["code"] == "bad_request"
        assert path in refused["structuredContent"]["refusal"]["message"]


@pytest.mark.requirement("mcp.asks-missing")
async def test_nobody_is_asked_who_can_not_be_or_need_not_be(real: Door, bench: Bench) -> None:
    line = await bench.dial(await bench.open("ALFA"), await bench.open("BRAV"))
    silent = await real.session(capabilities={"elicitation": {}})
    for answer in (
        await real.modern("tools/call", name="resolve_code"),
        await real.bare("tools/call", name="resolve_code"),
        await (await real.session()).ask("tools/call", name="resolve_code"),
        await real.ask(
            body=request("tools/call", name="resolve_code"), **silent.headers, accept="application/json"
        ),
    ):
        assert answer.result["structuredContent"]["refusal"]["code"] == "bad_request"
    unsigned = line.next("PICKUP")
    del unsigned["conv"]
    for name, given in (("send_env", unsigned), ("open_desk", {}), ("canonicalize", {}), ("read_conv", "x")):
        capable = {CAPABILITIES: {"elicitation": {}}}
        answer = await real.modern("tools/call", name=name, arguments=given, _meta=capable)
        assert "input_required" not in answer.body.decode()


@pytest.mark.requirement("mcp.asks-missing")
def test_only_tools_that_read_ask_and_only_for_what_a_person_knows() -> None:
    broker = fake_broker()
    schemas = {"code": (["code"], True), "signed": (["code", "sig"], True), "write": (["code"], False)}
    for name, (required, reads) in schemas.items():
        properties = {each: {"type": "string", "description": each} for each in required}
        schema = {"type": "object", "properties": properties, "required": required}
        broker.tools[name] = FakeTool(name=name, read_only=reads, input_schema=schema)
    offers = broker_tools(broker, None)  # type: ignore[arg-type]  # a fake
    assert {name: set(offers[name].asks) for name in schemas} == {
        "code": {"code"},
        "signed": set(),
        "write": set(),
    }


class _Watched:
    """A broker whose verbs are noted. `again`: what begins turns out to need the tool itself."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.tools = broker.tools
        self.verbs: list[str] = []
        self.again = False

    def begin(self, caller: Caller, tool: Tool, arguments: Any, then: Then) -> bool:
        if self.again:
            then(Again())
            return True
        begun = self.broker.begin(caller, tool, arguments, then)
        self.verbs += ["begin"] if begun else []
        return begun

    async def call(self, caller: Caller, name: str, params: bytes, *, progress: Any = None) -> Any:
        self.verbs.append("call")
        return await self.broker.call(caller, name, params, progress=progress)


@pytest.mark.requirement("mcp.without-waiting")
async def test_a_plain_envelope_goes_without_waiting_and_every_other_is_judged_by_the_tool(
    bench: Bench,
) -> None:
    line = await bench.connect(await bench.open("ALFA"), await bench.open("BRAV"))
    watched = _Watched(bench.broker)
    send = broker_tools(watched, "wire")["send_env"].call
    ask = Ask(caller=Caller(), revision=MODERN, meta={})

    async def sent(text: bytes) -> tuple[Any, list[str]]:
        watched.verbs.clear()
        result = await send(ask, text)
        assert isinstance(result, dict)
        members = json.loads(msgspec.json.encode(result["structuredContent"]))
        return members.get("refusal", members), [*watched.verbs]

    def written(params: dict[str, Any]) -> bytes:
        return json.dumps(params, separators=(",", ":")).encode()

    rfq = line.next("RFQ")
    assert (await sent(written({**rfq, "sig": "0" * 128})))[0]["code"] == "bad_signature"
    answer, verbs = await sent(written(rfq))
    assert (answer["n"], verbs) == (2, ["begin"])
    answer, verbs = await sent(written(rfq))
    assert (answer["replayed"], verbs) == (True, ["call"]), "a replay"
    line.n, line.sig = rfq["n"], rfq["sig"]
    quote = line.next("QUOTE")
    for odd in (written({**quote, "more": 1}), written(quote)[:-1] + b',"n":3}', b"{}"):
        answer, verbs = await sent(odd)
        assert (answer["code"], verbs) == ("bad_request", ["call"])
    answer, verbs = await sent(written(quote).replace(b'"n":3,"from', b'"n":3.0,"from'))
    assert (answer["n"], verbs) == (3, ["call"]), "another form of the same number"
    line.n, line.sig = quote["n"], quote["sig"]
    watched.again = True
    answer, verbs = await sent(written(line.next("ORDER")))
    assert (answer["n"], verbs) == (4, ["call"]), "it turned out to need the tool"
