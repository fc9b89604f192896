"""The live page: what comes when, who is named how, and that it ends with its session."""

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import pytest
import trio

from broker.app import TapeWatch
from broker.wire.refusals import refuse
from gateways.console import live
from gateways.console.live import BEAT_S, Counts
from gateways.console.site import Console
from gateways.eventstream import Decoder
from gateways.operator.gate import OperatorGate
from gateways.operator.token import OperatorToken
from gateways.web import quart_app
from tests.gateways.pages.conftest import Browser
from tests.support.broker import Bench
from tests.support.operators import OPERATOR, TOKEN


class Page:
    """An open live page: its events as a browser's EventSource has them."""

    def __init__(self, bench: Bench) -> None:
        app = quart_app()
        self.console = Console(app, bench.broker, OperatorGate(bench.broker, OperatorToken(TOKEN)))
        self.bench = bench
        self.sessions = self.console.sessions
        self.secret = self.sessions.open(OPERATOR)
        self.decoder = Decoder()

    async def stream(self) -> AsyncIterator[bytes]:
        watch = await self.bench.broker.tape(OPERATOR)
        assert isinstance(watch, TapeWatch)
        session = self.sessions.find(self.secret)
        assert session is not None
        return live._tell(self.console, Counts(self.bench.broker, {}), session, watch)

    async def until(self, stream: AsyncIterator[bytes], event: str) -> str:
        async for data in stream:
            for each in self.decoder.feed(data):
                if each.event == event:
                    return each.data
        raise AssertionError(f"no {event} came")


@pytest.mark.requirement("console.tape")
async def test_the_tape_shows_an_envelope_within_a_second_by_its_desks_codes(
    bench: Bench, autojump_clock: trio.testing.MockClock
) -> None:
    page = Page(bench)
    alfa, brav = await bench.open("ALFA"), await bench.open("BRAV")
    async with aclosing(await page.stream()) as stream:  # type: ignore[type-var]
        await anext(stream)
        began = trio.current_time()
        line = await bench.connect(alfa, brav)
        tape = await page.until(stream, "tape")
        assert trio.current_time() - began < 1.0
        assert tape.count("<tr><td") == 2
        assert "ALFA" in tape
        assert f"/conversations/{line.conv}" in tape
        assert tape.index("PICKUP") < tape.index("CALL")  # the newest first
        assert "2</b> <span>envelopes" in await page.until(stream, "figures")
        with trio.fail_after(BEAT_S * 3):
            for _ in range(2):  # comments alone while nothing happens
                assert page.decoder.feed(await anext(stream)) == []


@pytest.mark.requirement("console.live-ends")
async def test_it_ends_at_once_with_its_session_and_in_silence_with_the_broker(
    bench: Bench, autojump_clock: trio.testing.MockClock
) -> None:
    page = Page(bench)
    async with aclosing(await page.stream()) as stream:  # type: ignore[type-var]
        await anext(stream)
        page.sessions.close(page.secret)
        began = trio.current_time()
        assert "signed out" in await page.until(stream, "over")
        assert trio.current_time() - began < 1.0
        with pytest.raises(StopAsyncIteration):
            await anext(stream)
    page.secret = page.sessions.open(OPERATOR)
    async with aclosing(await page.stream()) as stream:  # type: ignore[type-var]
        await anext(stream)
        bench.broker.end_streams(refuse("unavailable", "the broker stops"))
        events = [each async for each in stream]
        assert not any(b"event: over" in each for each in events)
    assert not bench.broker._services.hub.tape.watches


@pytest.mark.requirement("console.sessions-end")
async def test_a_live_page_keeps_no_session_alive(
    bench: Bench, autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateways.console.sessions.IDLE_S", 10.0)
    page = Page(bench)
    async with aclosing(await page.stream()) as stream:  # type: ignore[type-var]
        began = trio.current_time()
        assert "signed out" in await page.until(stream, "over")
        assert 10 <= trio.current_time() - began <= 10 + BEAT_S


@pytest.mark.requirement("console.sign-in")
async def test_who_is_not_signed_in_is_told_so_on_the_stream_and_hears_nothing(nobody: Browser) -> None:
    answer = await nobody.get("/live")
    assert answer.headers["content-type"].startswith("text/event-stream")
    events = Decoder().feed(answer.content)
    assert [each.event for each in events] == ["over"]


def test_refusals_are_summed_up_by_code() -> None:
    counts = Counter(
        {("a", "ok"): 5, ("a", "conflict"): 2, ("b", "conflict"): 3, ("b", "cancelled"): 9, ("c", "fault"): 1}
    )
    broker: Any = None
    assert Counts(broker, counts).refusals() == [("conflict", 5), ("fault", 1)]
