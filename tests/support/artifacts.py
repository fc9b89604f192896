"""Finished sessions, and what they published."""

from typing import Any

from broker.app import Caller
from broker.store.port import Put, Unit
from broker.wire.refusals import Refusal
from tests.support.agents import make_agent
from tests.support.arena import open_session, submit
from tests.support.broker import Bench

STOP = {"type": "stop"}


async def finish(bench: Bench, who: Caller, game: str = "hilo", plays: int = 2, **params: Any) -> Any:
    """A session of some first legal actions, then stopped: as its agent sees it, its artifact's ref in it."""
    session = await open_session(bench, who, game, **params)
    for action in (*(None,) * plays, STOP):
        if session["status"] == "open":
            answer = await submit(bench, who, session, action)
            assert not isinstance(answer, Refusal), answer
            session = answer["session"]
    return session


async def publish_one(bench: Bench) -> tuple[str, bytes]:
    """The ref and the bytes of an artifact of a new agent's."""
    session = await finish(bench, await make_agent(bench, "Ann"))
    ref = session["artifact"]["ref"]
    document = await bench.store.get("artifact", ref)
    assert document is not None
    return ref, document.doc


async def damage(bench: Bench, ref: str) -> None:
    """Change one byte of a stored artifact."""
    document = await bench.store.get("artifact", ref)
    assert document is not None
    doc = document.doc.replace(b'"balance"', b'"balanze"', 1)
    await bench.store.commit(Unit(puts=(Put("artifact", ref, document.version, doc),)))
