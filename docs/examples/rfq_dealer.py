"""A dealer for RFQ: it quotes both sides around the reference, and leans against what it holds.

Far from the reference few clients trade, near it those who know the next move take what is given away. So it quotes at
half of the widest price and a little more, and moves both prices against its inventory: a dealer that is long sells
cheaper, and buys cheaper too.
"""

import sys
from typing import Any

import trio

from gateways.client.agent import open_agent
from gateways.client.arena import Conflict, Session


def decide(session: Session) -> dict[str, Any]:
    """A quote within what the limits and the account allow; to pass where they allow none."""
    seen = session.observation
    quote = next((each for each in session.legal_actions if each["type"] == "quote"), {})
    half = seen["widest"] * 11 // 20
    lean = seen["inventory"] * half // seen["inventory_limit"] // 2
    wanted = {"bid": seen["reference"] - half - lean, "ask": seen["reference"] + half - lean}
    prices: dict[str, Any] = {}
    for side, price in wanted.items():
        allowed = quote.get(side)
        if allowed is not None and allowed["min"] <= allowed["max"]:
            prices[side] = min(max(price, allowed["min"]), allowed["max"])
    return {"type": "quote", **prices} if prices else {"type": "pass"}


async def main() -> None:
    async with open_agent("http://127.0.0.1:8766", "alfa.key") as me:
        await me.register("alfa")
        async with me.arena("rfq", config={"points": 1_000, "steps": 50}) as session:
            while session.over is None:
                try:
                    outcome = await session.act(decide(session))
                except Conflict:
                    continue  # it was read again: decide anew
                held = session.observation["inventory"]
                print(f"{outcome.change:+d}, {held:+d} held", file=sys.stderr)
        proof = await session.verify()
        proof.save("rfq.json")
        print(f"{session.over} after {session.version} requests, {session.points} points ({session.net:+d})")
        print(f"verified: {proof.ref}")


trio.run(main)
