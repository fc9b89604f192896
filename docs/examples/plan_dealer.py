"""ALFA: deals by a plan that was graded. Its ref names it; the quotes of BRAV are its tape.

It is the same run as in the trial: an order is decided on one quote and held against the next, within the plan's
bounds. What would be a fill there is a HIT here.
"""

import os
import sys
from array import array
from decimal import Decimal

import trio

from broker.core.tapes.tape import MAX_TICKS, MICRO, About, Tape
from broker.core.trials.run import Place, Run
from broker.core.trials.script import Revise, Start, read_artifact
from gateways.client.agent import open_agent
from gateways.client.artifacts import fetch_artifact

BROKER = os.environ.get("TURRET_URL", "http://127.0.0.1:8766")


class Quotes(Tape):
    """A tape that comes quote by quote, and whose end nobody knows."""

    def __init__(self, about: About) -> None:
        super().__init__(about, array("q"), array("q"), array("q"))
        self.unit = Decimal(about.tick) / MICRO

    def __len__(self) -> int:
        return MAX_TICKS

    def add(self, bid: str, ask: str) -> None:
        """The next quote. Raises ValueError for one that is none: what comes over the wire may be anything."""
        prices = [Decimal(bid), Decimal(ask)]
        ticks = [int(each / self.unit) for each in prices]
        if not 0 < ticks[0] <= ticks[1] or [each * self.unit for each in ticks] != prices:
            raise ValueError(f"no quote: {bid} / {ask}")
        self.bids.append(ticks[0])
        self.asks.append(ticks[1])


async def main(ref: str) -> None:
    trial = read_artifact(await fetch_artifact(BROKER, ref))
    plan = [call.plan for call in trial.calls if isinstance(call, Start | Revise)][-1]
    tape = Quotes(trial.entry.about)
    run = Run(tape, plan, Place())
    async with open_agent(BROKER, "alfa.key") as me, me.dealer("ALFA") as desk, desk.dial("BRAV") as call:
        while run.place.over is None:
            await call.send("RFQ", {"instrument": plan.on, "qty": str(plan.bound.position)})
            quote = await call.receive()
            tape.add(quote.body["bid"], quote.body["ask"])
            for fill in run.advance(1):
                px = str(fill.price * tape.unit)
                await call.send("HIT", {"side": fill.side, "qty": str(fill.size), "px": px})
                answer = await call.receive()
                if (answer.type, answer.body.get("px")) != ("CONFIRM", px):
                    raise SystemExit(f"not confirmed: {answer.type}")
                print(f"tick {fill.tick}: {fill.side} {fill.size} at {px}", flush=True)
        print(f"{plan.name} {plan.version} is over ({run.place.over}): {run.place.account.cash / MICRO:+.2f}")
        print(f"conversation {call.conv}")


trio.run(main, sys.argv[1])
