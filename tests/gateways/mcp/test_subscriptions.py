"""Updates of resources: listen, subscribe, and the session's stream."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any

import pytest
import trio

from broker.wire.refusals import Refusal, refuse
from gateways.mcp.endpoint import mcp_app
from gateways.mcp.sessions import MOST_SUBSCRIPTIONS
from gateways.mcp.subscriptions import LISTEN_S
from gateways.mcp.surface import Ask, Missing, Surface
from tests.gateways.mcp.harness import Door, Exchange, SessionDoor, fake_broker, modern, request

KEY = "io.modelcontextprotocol/subscriptionId"
ONE, TWO = "test://one", "test://two"


class Source:
    """Changes of one resource, made by the test."""

    def __init__(self) -> None:
        self.open = False
        self._send, self._receive = trio.open_memory_channel[bool](64)

    def change(self) -> None:
        self._send.send_nowait(True)

    def end(self) -> None:
        self._send.send_nowait(False)

    async def __aenter__(self) -> "Source":
        self.open = True
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.open = False

    async def changed(self) -> bool:
        return await self._receive.receive()


class Sources:
    """A surface whose resources change when the test says so; every opening gives a new source."""

    def __init__(self) -> None:
        self.opened: dict[str, list[Source]] = {ONE: [], TWO: []}

    async def watch(self, ask: Ask, uri: str) -> Source | Missing | Refusal:
        await trio.lowlevel.checkpoint()
        if uri == "test://broken":
            raise RuntimeError("a secret of the inside")
        if uri == "test://barred":
            return refuse("unauthenticated", "not you")
        if uri not in self.opened:
            return Missing(uri)
        self.opened[uri].append(Source())
        return self.opened[uri][-1]

    def change(self, uri: str) -> None:
        for source in self.opened[uri]:
            if source.open:
                source.change()


@pytest.fixture
def sources() -> Sources:
    return Sources()


@pytest.fixture
def watched(sources: Sources) -> Door:
    async def read(ask: Ask, uri: str) -> Missing:
        return Missing(uri)

    broker = fake_broker()
    surface = Surface(tools={}, read=read, watch=sources.watch)
    return Door(mcp_app(broker, faces={"": surface}), broker)


@asynccontextmanager
async def listening(door: Door, *uris: str, id: Any = "L") -> AsyncIterator[Exchange]:
    body, headers = modern("subscriptions/listen", id, notifications={"resourceSubscriptions": list(uris)})
    async with door.open(body=body, **headers) as exchange:
        with trio.fail_after(5):
            await exchange.wait_said(b"acknowledged")
        yield exchange


@pytest.mark.requirement("mcp.listen")
@pytest.mark.parametrize("id", ["L", 7])
async def test_a_listen_is_acknowledged_then_told_of_changes_under_its_own_id(
    watched: Door, sources: Sources, id: Any
) -> None:
    async with listening(watched, ONE, TWO, "test://none", "test://barred", ONE, id=id) as exchange:
        sources.change(TWO)
        await exchange.wait_said(b'"uri":"test://two"')
        sources.change(ONE)
        await exchange.wait_said(b'"uri":"test://one"')
        assert not exchange.finished.is_set()
    first, *updates = exchange.response().events
    assert first["method"] == "notifications/subscriptions/acknowledged"
    assert first["params"]["notifications"] == {"resourceSubscriptions": [ONE, TWO]}
    assert [each["params"]["uri"] for each in updates] == [TWO, ONE]
    assert all(each["params"]["_meta"] == {KEY: id} for each in (first, *updates))
    assert not any(source.open for all in sources.opened.values() for source in all)


@pytest.mark.requirement("mcp.listen")
async def test_a_listen_ends_with_its_result_when_the_process_stops(watched: Door, sources: Sources) -> None:
    async with listening(watched, ONE) as exchange:
        watched.app.drain()
        with trio.fail_after(5):
            await exchange.finished.wait()
    last = exchange.response().events[-1]
    assert last["id"] == "L"
    assert last["result"]["resultType"] == "complete"
    assert last["result"]["_meta"][KEY] == "L"


async def test_a_listen_ends_when_all_that_it_watches_has_ended(watched: Door, sources: Sources) -> None:
    async with listening(watched, ONE, TWO) as exchange:
        sources.opened[ONE][0].end()
        sources.change(TWO)
        await exchange.wait_said(b'"uri":"test://two"')
        sources.opened[TWO][0].end()
        with trio.fail_after(5):
            await exchange.finished.wait()


async def test_a_listen_for_nothing_stays_open_and_ends_after_its_time(
    watched: Door, autojump_clock: object
) -> None:
    body, headers = modern("subscriptions/listen", "L", notifications={"toolsListChanged": True})
    async with watched.open(body=body, **headers) as exchange:
        await trio.sleep(LISTEN_S - 1)
        assert exchange.body.count(b": keep-alive") == 239
        assert not exchange.finished.is_set()
        await trio.sleep(2)
        assert exchange.finished.is_set()
    assert exchange.response().events[0]["params"]["notifications"] == {}


async def test_a_client_that_leaves_its_listen_frees_what_it_watched(watched: Door, sources: Sources) -> None:
    async with listening(watched, ONE) as exchange:
        exchange.leave()
        await trio.testing.wait_all_tasks_blocked()
        assert not sources.opened[ONE][0].open
        assert not exchange.finished.is_set()


@pytest.mark.requirement("mcp.listen")
@pytest.mark.parametrize(
    ("uris", "code"), [(["test://none"], -32602), (["test://barred", "test://none"], -32000)]
)
async def test_a_listen_of_which_nothing_can_be_watched_is_refused_with_the_first_reason(
    watched: Door, uris: list[str], code: int
) -> None:
    answer = await watched.modern("subscriptions/listen", 5, notifications={"resourceSubscriptions": uris})
    assert (answer.error["code"], answer.json["id"]) == (code, 5)
    assert answer.headers["content-type"].startswith("application/json")


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"notifications": None},
        {"notifications": []},
        {"notifications": {"resourceSubscriptions": "x"}},
        {"notifications": {"resourceSubscriptions": [1]}},
        {"notifications": {"toolsListChanged": "yes"}},
        {"notifications": {"resourceSubscriptions": [f"test://{n}" for n in range(MOST_SUBSCRIPTIONS + 1)]}},
    ],
)
async def test_a_malformed_listen_is_invalid_params(watched: Door, params: dict[str, Any]) -> None:
    answer = await watched.modern("subscriptions/listen", **params)
    assert (answer.status, answer.error["code"]) == (400, -32602)


async def test_a_listen_of_a_client_that_takes_no_stream_is_406(watched: Door) -> None:
    body, headers = modern("subscriptions/listen", 3, notifications={})
    answer = await watched.ask(body=body, **headers, accept="application/json")
    assert (answer.status, answer.json["id"]) == (406, 3)


@pytest.fixture
async def session(watched: Door) -> SessionDoor:
    return await watched.session()


@pytest.mark.requirement("mcp.subscribe")
async def test_a_subscription_is_told_of_on_the_sessions_stream(
    watched: Door, sources: Sources, session: SessionDoor
) -> None:
    async with watched.open("GET", **session.headers) as stream:
        await stream.started.wait()
        assert (await session.ask("resources/subscribe", uri=ONE)).result == {}
        sources.change(ONE)  # at once: the answer says that it is watched
        await stream.wait_said(b'"uri":"test://one"')
        assert (await session.ask("resources/unsubscribe", uri=ONE)).result == {}
        await trio.testing.wait_all_tasks_blocked()
        assert not any(source.open for source in sources.opened[ONE])
        assert (await session.ask("resources/subscribe", uri=TWO)).result == {}
        sources.change(TWO)
        await stream.wait_said(b'"uri":"test://two"')
    assert [each["method"] for each in stream.response().events] == ["notifications/resources/updated"] * 2
    assert not any(source.open for all in sources.opened.values() for source in all)


@pytest.mark.requirement("mcp.subscribe")
async def test_a_new_stream_tells_at_once_of_what_was_subscribed_before(
    watched: Door, sources: Sources, session: SessionDoor
) -> None:
    await session.ask("resources/subscribe", uri=ONE)
    for _ in range(2):
        async with watched.open("GET", **session.headers) as stream:
            with trio.fail_after(5):
                await stream.wait_said(b'"uri":"test://one"')


async def test_a_subscription_that_ended_or_broke_ends_alone(
    watched: Door, sources: Sources, session: SessionDoor, caplog: pytest.LogCaptureFixture
) -> None:
    async with watched.open("GET", **session.headers) as stream:
        await session.ask("resources/subscribe", uri=ONE)
        await session.ask("resources/subscribe", uri=TWO)
        await trio.testing.wait_all_tasks_blocked()
        next(source for source in sources.opened[ONE] if source.open).end()
        found = watched.app.sessions.find(session.id, None)
        assert found is not None
        found.subscribe("test://broken", lambda _: sources.watch(None, "test://broken"))  # type: ignore[arg-type]
        await trio.testing.wait_all_tasks_blocked()
        assert set(found.subscriptions) == {TWO}
        assert "incident" in caplog.text
        sources.change(TWO)
        await stream.wait_said(b'"uri":"test://two"')


@pytest.mark.parametrize(
    ("params", "code"),
    [
        ({}, -32602),
        ({"uri": 1}, -32602),
        ({"uri": "test://none"}, -32002),
        ({"uri": "test://barred"}, -32000),
    ],
)
async def test_what_can_not_be_subscribed_is_refused(
    session: SessionDoor, params: dict[str, Any], code: int
) -> None:
    assert (await session.ask("resources/subscribe", **params)).error["code"] == code


async def test_a_subscription_needs_a_session_and_the_handshake_era(watched: Door) -> None:
    for method in ("resources/subscribe", "resources/unsubscribe"):
        assert (await watched.ask(body=request(method, uri=ONE))).error["code"] == -32600
        assert (await watched.modern(method, uri=ONE)).status == 404


async def test_subscriptions_of_a_session_are_bounded(watched: Door, session: SessionDoor) -> None:
    found = watched.app.sessions.find(session.id, None)
    assert found is not None

    async def opened(_: object) -> None:
        await trio.lowlevel.checkpoint()

    for number in range(MOST_SUBSCRIPTIONS):
        assert found.subscribe(f"x{number}", opened)
    assert (await session.ask("resources/subscribe", uri=ONE)).error["code"] == -32602
    assert (await session.ask("resources/unsubscribe", uri="x0")).result == {}
    assert (await session.ask("resources/subscribe", uri=ONE)).result == {}
