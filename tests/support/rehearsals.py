"""Trials in a broker of a test's own."""

from itertools import count
from typing import Any, Final

import msgspec

from broker.app import Caller
from broker.wire.refusals import Refusal
from tests.support.broker import Bench

FADE: Final = """plan fade 1
on EURUSD
bound position 3000000, loss 250000, orders 5000, until 100000
when position = 0 and tick % 3 = 0: buy 1000 at ask + 2
when position > 0: sell 1000 at bid - 2"""
"""Trades on the tape `trend`, often."""
QUIET: Final = """plan quiet 1
on EURUSD
bound position 1000, loss 100, orders 5, until 100000
when tick < 0: flatten"""
"""Does nothing."""
HEAVY: Final = QUIET + "".join(
    f"\nwhen avg(mid, {n}) > avg(mid, {n + 7}) + 999: cancel" for n in range(2, 22)
)
"""Does nothing either, and takes long at it."""
DOWN: Final = QUIET + "\nwhen tick >= 5: stand_down"
_keys = count(1)


def new_key() -> str:
    """An idempotency_key that no other call has."""
    return f"trial-{next(_keys)}"


async def ask(bench: Bench, who: Caller, name: str, **params: Any) -> Any:
    """The answer of a tool of trials: its members, or the Refusal."""
    answer = await bench.call(f"kestrel.{name}", who, **params)
    return answer if isinstance(answer, Refusal) else msgspec.to_builtins(answer)


async def opened(bench: Bench, who: Caller, entry: str | int = "trend", **params: Any) -> dict[str, Any]:
    """A new trial, as its agent sees it."""
    params.setdefault("idempotency_key", new_key())
    shown: dict[str, Any] = await ask(bench, who, "session.open", entry=entry, **params)
    assert not isinstance(shown, Refusal), shown
    return shown


async def do(bench: Bench, who: Caller, seen: dict[str, Any], verb: str, **params: Any) -> Any:
    """A call in a trial as it was seen: start, advance, revise, submit or finalize."""
    params.setdefault("idempotency_key", new_key())
    params.setdefault("expected_version", seen["version"])
    params.setdefault("session_id", seen["session_id"])
    return await ask(bench, who, f"session.{verb}", **params)


async def started(bench: Bench, who: Caller, plan: str = FADE, **params: Any) -> dict[str, Any]:
    """A trial that has its plan."""
    seen: dict[str, Any] = await do(bench, who, await opened(bench, who, **params), "start", plan=plan)
    assert not isinstance(seen, Refusal), seen
    return seen


async def resumed(bench: Bench, who: Caller, seen: dict[str, Any], **params: Any) -> Any:
    """A trial as it is now."""
    return await ask(bench, who, "session.resume", session_id=seen["session_id"], **params)


async def whole(bench: Bench, who: Caller, answer: dict[str, Any]) -> dict[str, Any]:
    """What an advance comes to, also where it takes long."""
    while "operation" in answer:
        operation_id = answer["operation"]["operation_id"]
        answer = await ask(bench, who, "operation.resume", operation_id=operation_id, wait_ms=60_000)
    return answer
