"""Sessions of the arena in a broker of a test's own."""

from itertools import count
from typing import Any

import msgspec

from broker.actors.arena import read_events
from broker.app import Caller
from broker.core.arena import Acted, Opened
from broker.store.port import Store
from broker.wire.refusals import Refusal
from tests.support.broker import Bench

_keys = count(1)


def new_key() -> str:
    """An idempotency_key that no other call has."""
    return f"key-{next(_keys)}"


async def open_session(bench: Bench, who: Caller, game: str = "hilo", **params: Any) -> dict[str, Any]:
    """A new session, as its agent sees it."""
    params.setdefault("idempotency_key", new_key())
    answer = await bench.call("open_session", who, game=game, **params)
    assert not isinstance(answer, Refusal), answer
    shown: dict[str, Any] = msgspec.to_builtins(answer)
    return shown


async def submit(
    bench: Bench, who: Caller, session: dict[str, Any], action: dict[str, Any] | None = None, **params: Any
) -> Any:
    """Act in a session as it was seen (without an action: the first legal one, with the least stake)."""
    params.setdefault("idempotency_key", new_key())
    params.setdefault("expected_version", session["version"])
    answer = await bench.call(
        "submit_action",
        who,
        session_id=session["session_id"],
        action=action or first_legal(session),
        **params,
    )
    return answer if isinstance(answer, Refusal) else msgspec.to_builtins(answer)


def first_legal(session: dict[str, Any]) -> dict[str, Any]:
    """A legal action of Hi-Lo's with the least stake; to stop where there is none."""
    legal = session["legal_actions"][0]
    return legal if legal["type"] == "stop" else {**call(legal["guess"]), "stake": legal["stake"]["min"]}


def call(guess: str, stake: int = 1) -> dict[str, Any]:
    """A call of Hi-Lo's."""
    return {"type": "call", "stake": stake, "guess": guess}


async def ledger_sum(store: Store, session_ids: list[str]) -> int:
    """The sum of all entries of these sessions."""
    total = 0
    for session_id in session_ids:
        for event in await read_events(store, session_id):
            if isinstance(event, Opened | Acted):
                total += sum(points for _, points in event.entries)
    return total
