"""No tick is seen before it was run: trials are done at all doors, with everything that can be seen kept, and all of it
is searched for later prices of a tape whose prices nothing else has."""

import logging
import re
from array import array
from itertools import cycle
from typing import Any

import msgspec
import pytest

from broker.core.tapes import synthetic
from broker.core.tapes.tape import Tape
from tests.arena.doors import DOORS, Doors, open_doors
from tests.support.rehearsals import QUIET, new_key

FIRST = 7_310_000_001
"""The bid of tick 0; each tick's is 3 higher, its ask 1 above: no number of a time, an id or an amount is like them."""
PRICE = re.compile(r"73100\d{5}")
TRADES = """plan fade 1
on EURUSD
bound position 9, loss 900000, orders 90, until 2000
when position = 0: buy 1 at 99999999999
when position > 0: sell 1 at 1"""


def recognisable(kind: Any, seed: int, ticks: int | None = None) -> Tape:
    """A tape whose prices say which tick they are of."""
    bids = array("q", range(FIRST, FIRST + 3 * 400, 3))
    asks = array("q", (bid + 1 for bid in bids))
    about = synthetic.About("EURUSD", synthetic.START, 1000, 1, 0, False)
    return Tape(about, bids, asks, array("q"))


def latest(texts: list[str]) -> int:
    """The last tick of which a price is seen; -1: none."""
    found = [(int(price) - FIRST) // 3 for text in texts for price in PRICE.findall(text)]
    return max(found, default=-1)


@pytest.mark.requirement("trial.session-seen")
async def test_no_answer_error_or_log_has_a_price_of_a_later_tick(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("broker.actors.tapes.make", recognisable)
    doors: Doors
    with caplog.at_level(logging.DEBUG):
        async with open_doors() as doors:
            turns = cycle(DOORS)

            async def call(name: str, **params: Any) -> Any:
                if name not in ("session.resume", "validate"):
                    params.setdefault("idempotency_key", new_key())
                _, text = await doors.call(next(turns), f"kestrel.{name}", **params)
                return msgspec.json.decode(text)

            def check(ran: int) -> None:
                log = [record.getMessage() for record in caplog.records]
                assert latest([*doors.said, *log]) == ran - 1

            seen = await call("session.open", entry="trend")
            id = {"session_id": seen["session_id"]}
            await call("session.advance", **id, ticks=5, expected_version=0)
            await call("session.start", **id, plan=QUIET.replace("EURUSD", "USDSEK"), expected_version=0)
            await call("session.start", **id, plan="plan x", expected_version=0)
            await call("validate", plan=TRADES)
            check(0)
            await call("session.start", **id, plan=TRADES, expected_version=0)
            check(0)
            version, ran = 1, 0
            for ticks in (1, 4, 30, 7):
                seen = await call("session.advance", **id, ticks=ticks, expected_version=version)
                version, ran = version + 1, ran + ticks
                check(ran)
                order = {"side": "buy", "size": 5, "at": 1}
                await call("session.submit", **id, order=order, expected_version=version)
                version += 1
                await call("session.advance", **id, ticks=9, expected_version=0)
                await call("session.submit", **id, order={"side": "up"}, expected_version=version)
                await call("session.resume", **id)
                check(ran)
            await call("session.revise", **id, plan=QUIET, expected_version=version)
            done = await call("session.finalize", **id, expected_version=version + 1)
            doors.said.append(await doors.get(f"/artifact/{done['ref']}"))
            check(ran)
            assert seen["fills_count"] > 20
            doors.said.append(await doors.get("/metrics"))
            check(ran)
