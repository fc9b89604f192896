"""The connection's own methods: what their params may hold, the time, and a store that gives nothing."""

from typing import Any

import pytest
from trio.testing import MockClock

from broker.app import Caller
from broker.clock import SystemClock
from broker.store.port import Unavailable
from tests.support.broker import open_bench
from tests.support.broker_fake import DEALER_PK, FakeBroker
from tests.support.ws import open_session

STATEMENT: dict[str, Any] = {"statement": {"pk": DEALER_PK}, "sig": "ab" * 64}


@pytest.mark.requirement("ws.params-fault")
@pytest.mark.parametrize(
    ("method", "params", "path"),
    [
        ("authenticate", {}, "statement"),
        ("authenticate", {"statement": {}}, "sig"),
        ("authenticate", {"sig": "ab"}, "statement"),
        ("authenticate", {"statement": "text", "sig": "ab"}, "statement"),
        ("authenticate", {"statement": {}, "sig": 5}, "sig"),
        ("authenticate", {"statement": {}, "sig": "ab", "more": 1}, None),
        ("follow", {"after": 5}, "after"),
        ("follow", {"code": "abcd"}, "code"),
        ("follow", {"statement": {}}, "sig"),
        ("follow", {"statement": [], "sig": "ab"}, "statement"),
        ("watch", {}, None),
        ("watch", {"codes": "ABCD"}, "codes"),
        ("watch", {"codes": ["ABC"]}, "codes[0]"),
        (
            "watch",
            {"codes": [f"A{n:03}".translate(str.maketrans("0123456789", "ABCDEFGHIJ")) for n in range(65)]},
            "codes",
        ),
        ("unfollow", {"x": 1}, None),
        ("ping", {"x": 1}, None),
    ],
)
async def test_wrong_params_of_the_connections_own_methods_name_the_path(
    method: str, params: dict[str, Any], path: str | None
) -> None:
    async with open_session(FakeBroker()) as peer:
        error = (await peer.ask(method, **params))["error"]
        assert error["code"] == -32602
        assert error["data"]["refusal"]["code"] == "bad_request"
        assert error["data"]["refusal"].get("path") == path


@pytest.mark.requirement("ws.params-fault")
async def test_a_param_given_twice_is_refused() -> None:
    async with open_session(FakeBroker()) as peer:
        await peer.session.receive(
            [b'{"jsonrpc":"2.0","id":1,"method":"follow","params":{"after":"0","after":"1"}}']
        )
        refusal = (await peer.next())["error"]["data"]["refusal"]
        assert (refusal["code"], refusal["path"]) == ("bad_request", "after")


@pytest.mark.requirement("ws.params-at-every-depth", "ws.params-fault")
@pytest.mark.parametrize(
    ("method", "params", "path"),
    [
        ("follow", '{"code":"ABCD","x":{"a":1,"a":2}}', "x.a"),
        ("follow", '{"x":[[{"a":1,"\\u0061":2}]]}', "x[0][0].a"),
        ("follow", '{"after":"0","wait_ms":9007199254740993}', "wait_ms"),
        ("follow", '{"after":"0","wait_ms":1e400}', "wait_ms"),
        ("follow", '{"after":"\\ud800"}', "after"),
        ("watch", '{"codes":[{"a":1,"a":2}]}', "codes[0].a"),
        ("watch", '{"codes":' + "[" * 40 + "]" * 40 + "}", None),
        ("unfollow", '{"code":{"a":1,"a":2}}', "code.a"),
        ("authenticate", '{"token":{"a":1,"a":2}}', "token.a"),
        ("ping", '{"x":{"a":1,"a":2}}', "x.a"),
    ],
)
async def test_what_is_forbidden_is_seen_at_every_depth_of_the_params(
    method: str, params: str, path: str | None
) -> None:
    frame = b'{"jsonrpc":"2.0","id":1,"method":"%s","params":%s}' % (method.encode(), params.encode())
    async with open_session(FakeBroker()) as peer:
        await peer.session.receive([frame])
        error = (await peer.next())["error"]
        assert error["code"] == -32602
        refusal = error["data"]["refusal"]
        assert refusal["code"] == "bad_request"
        assert refusal["path"].startswith("codes[0]") if path is None else refusal["path"] == path


@pytest.mark.requirement("ws.params-at-every-depth")
async def test_what_stands_in_a_statement_is_judged_as_a_statement() -> None:
    broker = FakeBroker()
    async with open_session(broker) as peer:
        for method in ("follow", "authenticate"):
            frame = (
                b'{"jsonrpc":"2.0","id":1,"method":"%s","params":{"statement":{"a":1,"a":2},"sig":"x"}}'
                % method.encode()
            )
            await peer.session.receive([frame])
            assert (await peer.next())["error"]["data"]["code"] == "bad_statement"


async def test_ping_tells_the_wires_time(autojump_clock: MockClock) -> None:
    async with open_bench() as bench, open_session(bench.broker) as peer:
        assert await peer.result("ping") == {"time": bench.clock.now_ms()}


async def test_the_time_is_read_off_a_clock_and_no_document_is_made_for_it() -> None:
    broker = FakeBroker()
    until = SystemClock().now_ms() // 1000 + 3600
    async with open_session(broker, Caller(until=until)) as peer:
        broker.wire_info = None  # type: ignore[assignment,method-assign]
        before = SystemClock().now_ms()
        assert before <= (await peer.result("ping"))["time"] <= SystemClock().now_ms()
        assert await peer.result("echo") == {"echo": {}}


@pytest.mark.requirement("ws.unavailable")
async def test_a_store_that_gives_nothing_is_unavailable_and_no_fault(
    caplog: pytest.LogCaptureFixture,
) -> None:
    broker = FakeBroker()
    broker.answers["echo"] = Unavailable("the disk is gone")
    async with open_session(broker) as peer:
        assert (await peer.refusal("echo"))["code"] == "unavailable"
        await peer.result("follow", **STATEMENT)
        broker.readers[0]._send.send_nowait(Unavailable("the disk is gone"))
        ended = await peer.next()
        assert (ended["method"], ended["params"]["refusal"]["code"]) == ("ended", "unavailable")
        await peer.result("follow", **STATEMENT)
        broker.follow = unavailable  # type: ignore[method-assign]
        assert (await peer.refusal("follow", **STATEMENT))["code"] == "unavailable"
        assert peer.outbox.closing is None
    assert "incident" not in caplog.text
    assert "disk" not in caplog.text


async def unavailable(*_: Any, **__: Any) -> None:
    raise Unavailable("the disk is gone")
