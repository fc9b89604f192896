"""A plan over MCP: it is checked, rehearsed, revised half-way, and graded on tapes that it has not seen."""

import os
from typing import Any

import msgspec
import trio

from gateways.client.agent import open_agent
from gateways.client.mcp_link import ToolCaller

BROKER = os.environ.get("TURRET_URL", "http://127.0.0.1:8766")
HEAD = "on EURUSD bound position 1000000, loss 500, orders 20, until 40 "
DRAFT = f"plan follow 1 {HEAD}" + (
    "when mid > mid[1] and position = 0: buy 1000000 at aks when mid < mid[1] and position > 0: flatten"
)
CALMER = f"plan follow 2 {HEAD}" + (
    "when mid >= mid[8] + 4 and position = 0: buy 1000000 at ask + 1 "
    "when position > 0 and mid < max(mid, 12) - 6: flatten"
)


class Trials:
    """The tools of trials, asked over MCP."""

    def __init__(self, mcp: ToolCaller) -> None:
        self.mcp = mcp

    async def ask(self, tool: str, **params: Any) -> Any:
        return msgspec.json.decode(await self.mcp.call(f"kestrel.{tool}", msgspec.json.encode(params), 30))

    async def do(self, session: Any, verb: str, **params: Any) -> Any:
        """A call that changes a trial, decided on the version that was seen last."""
        id, version = session["session_id"], session["version"]
        given = {**params, "session_id": id, "expected_version": version}
        seen = await self.ask(f"session.{verb}", **given, idempotency_key=f"{id}-{version}")
        while "operation" in seen:  # a long advance goes on by itself
            seen = await self.ask("operation.resume", operation_id=seen["operation"]["operation_id"])
        return seen


async def checked(trials: Trials, plan: str) -> str:
    """The plan in its canonical form, with what validating says how to repair."""
    while not (found := await trials.ask("validate", plan=plan))["valid"]:
        wrong = found["diagnostics"][0]
        print(f"line {wrong['line']}, column {wrong['column']}: {wrong['message']}")
        assert "repair" in wrong, "nobody but its author can repair that"
        at = wrong["column"] - 1  # the plan has one line
        plan = plan[:at] + wrong["repair"] + plan[at + wrong["length"] :]
    return str(found["text"])


async def rehearse(trials: Trials, plan: str, seed: int, revised: str | None = None) -> str:
    """A trial from its first tick to its last; the ref of its artifact."""
    seen = await trials.ask("session.open", entry="trend", seed=seed, idempotency_key=os.urandom(8).hex())
    seen = await trials.do(seen, "start", plan=plan)
    if revised is not None:
        seen = await trials.do(seen, "advance", ticks=20)
        print(f"tick {seen['observation']['tick']}: {seen['observation']['pnl'] / 1e6:+.2f}, revised")
        seen = await trials.do(seen, "revise", plan=revised)
    seen = await trials.do(seen, "advance", ticks=3600)
    done = await trials.do(seen, "finalize")
    graded = await trials.ask("grade", ref=done["ref"])
    print(f"seed {seed}: {seen['outcome']}, {graded['grades']['pnl'] / 1e6:+.2f}", end=", ")
    print(f"naive maker {graded['naive']['pnl'] / 1e6:+.2f}")
    return str(done["ref"])


async def main() -> None:
    async with open_agent(BROKER, "alfa.key") as me, ToolCaller(f"{BROKER}/mcp/trial") as mcp:
        await me.register("alfa")
        mcp.token, trials = await me.token(), Trials(mcp)
        first, second = await checked(trials, DRAFT), await checked(trials, CALMER)
        await rehearse(trials, first, 9, revised=second)
        for seed in (3, 4, 5):
            ref = await rehearse(trials, second, seed)
        print(second + ref)


trio.run(main)
