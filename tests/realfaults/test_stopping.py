"""SIGTERM under load: what is under way is finished, streams end with their events, the process ends in time."""

import base64
import json
import random
import time
from pathlib import Path

import httpx
import pytest
import trio
import trio_websocket

from broker.wire.statement import build_statement
from tests.crash.dealers import Pair, Party, ended_by_the_broker, settle
from tests.history.checker import check
from tests.history.model import History, Ok
from tests.support.process import Served, served


class Watchers:
    """Two who only listen: a WebSocket of nobody, and an SSE stream of a desk."""

    def __init__(self) -> None:
        self.close: trio_websocket.CloseReason | None = None
        self.positions: list[int] = []
        self.last: tuple[str, str] = ("", "")

    async def wait_closed(self, broker: Served) -> None:
        """Be connected until the broker ends it."""
        host, port = broker.dealing.removeprefix("ws://").split(":")
        async with await trio.open_tcp_stream(host, int(port)) as stream, trio.open_nursery() as nursery:
            socket = await trio_websocket.wrap_client_stream(nursery, stream, host, "/")
            try:
                while True:
                    await socket.get_message()
            except trio_websocket.ConnectionClosed as closed:
                self.close = closed.reason
            nursery.cancel_scope.cancel()

    async def read_stream(self, broker: Served, party: Party) -> None:
        """Read a desk's stream from its beginning until the broker ends it."""
        now = int(time.time())
        text, sig = build_statement("follow", party.key, broker.pk, now, "0" * 32, until=now + 60)
        proof = base64.urlsafe_b64encode(text).decode().rstrip("=")
        headers = {"authorization": f"Turret {proof}.{sig}"}
        url = f"{broker.http}/rings/{party.code}?after=0"
        name = ""
        async with httpx.AsyncClient() as http, http.stream("GET", url, headers=headers) as answer:
            async for line in answer.aiter_lines():
                field, _, value = line.partition(": ")
                if field == "event":
                    name = value
                elif field == "data":
                    self.last = (name, value)
                    if name in ("ring", "env", "end"):
                        self.positions.append(int(json.loads(value)["cursor"].rpartition(".")[2]))


async def deal_on_one_connection(pair: Pair, broker: Served) -> None:
    """Both parties' envelopes over one connection, so that its end cuts off no answer that comes over another."""
    async with pair.called.connected(broker):
        pass
    with ended_by_the_broker():
        async with pair.caller.connected(broker) as link:
            while True:
                await pair.step(broker, link, link, link)


@pytest.mark.requirement("streams.sigterm", "faults.drain")
async def test_sigterm_under_load_finishes_what_is_under_way_and_ends_in_time(tmp_path: Path) -> None:
    history, watchers = History(), Watchers()
    pairs = [Pair(number, history, random.Random(number)) for number in range(6)]
    async with served(tmp_path / "data") as broker:
        async with trio.open_nursery() as nursery:
            for pair in pairs:
                nursery.start_soon(deal_on_one_connection, pair, broker)
            nursery.start_soon(watchers.wait_closed, broker)
            await trio.sleep(0.3)
            nursery.start_soon(watchers.read_stream, broker, pairs[0].caller)
            await trio.sleep(0.3)
            before, began = pairs[0].caller.seen, time.monotonic()
            assert await broker.stop(10) == 0
            assert time.monotonic() - began < 5
        said = [json.loads(line) for line in broker.errors.read_text().splitlines()]
        assert said[-1]["event"] == "stopping"
        assert {each["level"] for each in said} == {"info"}
    assert watchers.close is not None
    assert watchers.close.code == 1012
    assert json.loads(watchers.close.reason)["retry_in_ms"] > 0
    assert watchers.positions == list(range(1, len(watchers.positions) + 1))
    assert len(watchers.positions) >= before > 0
    assert watchers.last[0] == "closed"
    assert json.loads(watchers.last[1])["reason"] == "unavailable"
    async with served(tmp_path / "data") as broker:
        await settle(broker, pairs, history)
    assert check(history) == []
    told = {(send.conv, send.n) for send in history.sends if isinstance(send.answer, Ok)}
    stored = {(reading.conv, n) for reading in history.readings for n in range(len(reading.sigs))}
    assert stored <= told, "what was written was acknowledged"
