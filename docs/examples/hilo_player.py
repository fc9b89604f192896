"""Hi-Lo, played by the odds: the likelier guess, and more points at stake the surer it is.

Every guess costs a fiftieth of its stake on average, so no staking wins in the long run; this one loses slowly. It
shows the shape of a player: look, decide, act, and look again where somebody else came first.
"""

import sys

import trio

from gateways.client.agent import open_agent
from gateways.client.arena import Conflict, Session


def decide(session: Session) -> dict[str, object]:
    """The likeliest guess, for up to a twentieth of the points; the least where it is certain, and pays 49/50."""
    guesses = [each for each in session.legal_actions if each["type"] == "call"]
    best = max(guesses, key=lambda each: each["odds"][0])
    favourable, left = best["odds"]
    sure = 2 * favourable / left - 1  # 0 for a coin's toss, 1 for a certain card
    stake = 1 if favourable == left else int(session.points / 20 * max(0, sure))
    return {"type": "call", "guess": best["guess"], "stake": max(1, min(stake, best["stake"]["max"]))}


async def main() -> None:
    async with open_agent("http://127.0.0.1:8766", "alfa.key") as me:
        await me.register("alfa")
        async with me.arena("hilo", config={"points": 1_000}) as session:
            while session.over is None:
                try:
                    outcome = await session.act(decide(session))
                except Conflict:
                    continue  # it was read again: decide anew
                print(f"{outcome.facts['card']} {outcome.change:+d}", file=sys.stderr)
        proof = await session.verify()
        proof.save("hilo.json")
        print(f"{session.over} after {session.version} guesses, {session.points} points ({session.net:+d})")
        print(f"verified: {proof.ref}")


trio.run(main)
