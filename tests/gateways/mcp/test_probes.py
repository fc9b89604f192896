"""A table of edge probes: what a scanner, a fuzzer or a careless client sends, and the one right answer to each.

Every answer must also be one that any client can read: JSON-RPC with the id where it could be read, the code's
status, and nothing of the inside; no probe may end in a fault.
"""

import logging

import pytest

from gateways.mcp.revisions import SUPPORTED
from tests.gateways.mcp.harness import BOTH, Door, Response
from tests.gateways.mcp.probes import ANY, FRAMES, METHODS, OK, TEXTS, Probe
from tests.gateways.mcp.probes_of_heads import HEADS, LADDER, UNSUPPORTED

STATUSES = {200, 202, 400, 404, 405, 406, 413, 415}
ALL = [
    (f"{part} {at}: {probe.name}", probe)
    for part, probes in (
        ("frame", FRAMES),
        ("text", TEXTS),
        ("method", METHODS),
        ("head", HEADS),
        ("2026", LADDER),
    )
    for at, probe in enumerate(probes)
]


def readable(answer: Response) -> None:
    """What every client can make sense of, whatever it asked."""
    assert answer.status in STATUSES
    if answer.status == 202:
        assert answer.body == b""
        return
    assert answer.headers["content-type"] == "application/json; charset=utf-8"
    message = answer.json
    assert set(message) in ({"jsonrpc", "id", "result"}, {"jsonrpc", "id", "error"})
    assert message["jsonrpc"] == "2.0"
    if "error" in message:
        assert type(message["error"]["code"]) is int
        assert message["error"]["code"] != -32603
        assert isinstance(message["error"]["message"], str)


@pytest.mark.requirement("mcp.ids", "mcp.not-json", "mcp.batch", "mcp.body-limit", "mcp.header-ladder")
@pytest.mark.parametrize("probe", [probe for _, probe in ALL], ids=[name for name, _ in ALL])
async def test_a_probe_gets_its_one_right_answer(
    faked: Door, probe: Probe, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR):
        answer = await faked.ask(path=probe.path, body=probe.body, **probe.headers)
    assert [record.message for record in caplog.records] == []
    readable(answer)
    assert answer.status != 200 or len(answer.body) < len(probe.body) + 8000
    assert answer.status == probe.status, answer.body[:300]
    if answer.status == 202:
        return
    found = answer.json
    if probe.code != ANY:
        assert found.get("error", {"code": OK})["code"] == probe.code, found
    if probe.id != ANY or probe.id is None:
        assert found["id"] == probe.id
        assert type(found["id"]) is type(probe.id)
    if probe.code == UNSUPPORTED:
        assert found["error"]["data"]["supported"] == list(SUPPORTED)


@pytest.mark.parametrize("probe", [probe for _, probe in ALL if probe.path == "/mcp"][::7])
async def test_a_probe_inside_a_session_is_as_readable(faked: Door, probe: Probe) -> None:
    session = await faked.session()
    headers = {**probe.headers, "accept": probe.headers.get("accept", BOTH), **session.headers}
    readable(await faked.ask(body=probe.body, **headers))
    assert (await session.ask("ping")).status == 200


def test_there_are_as_many_probes_as_were_measured_and_more() -> None:
    assert len(ALL) > 300
