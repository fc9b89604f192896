"""What a store holds of the arena once its broker has gone: every acknowledged action, every point, every artifact.

Sessions are replayed from their events; finished ones are read as artifacts and verified offline.
"""

from collections.abc import Mapping
from pathlib import Path

import msgspec

from bench.kit.report import say
from bench.seats import Session
from broker.actors.arena import read_events
from broker.actors.artifacts import read_artifact
from broker.actors.player import read_account
from broker.config import Arena
from broker.core import arena as core
from broker.core.arenaverify import verify
from broker.core.games.table import Table, load
from broker.store.port import Store
from broker.store.sqlite import SqliteStore


class Books(msgspec.Struct):
    """What was found. `wrong`: what does not hold, in words."""

    sessions: int = 0
    events: int = 0
    artifacts: int = 0
    ledger_sum: int = 0
    """Of all entries of all sessions."""
    wrong: list[str] = []


async def audit(data: Path, known: Mapping[str, Session], moved: Mapping[str, int], points: int) -> Books:
    """Compare the store in `data` with what was acknowledged: `known`, each session as it was told last; `moved`, what
    each agent's persistent account, opened with `points`, has gained in all (none of simulations)."""
    say("reading all sessions back, and verifying all artifacts")
    books, games = Books(), load(Arena().games)
    store = await SqliteStore.open(data)
    try:
        for session in known.values():
            await _session(store, games, session, books)
        for agent_id, change in moved.items():
            account = await read_account(store, agent_id)
            if account is None or account[0].balance != points + change:
                books.wrong.append(f"{agent_id} has {account}, and {points + change} was acknowledged")
            elif account[0].balance + account[0].house + account[0].mint:
                books.wrong.append(f"{agent_id}: {account[0]} is not balanced")
    finally:
        await store.aclose()
    if books.ledger_sum:
        books.wrong.append(f"the ledger's sum is {books.ledger_sum}")
    return books


async def _session(store: Store, games: Table, session: Session, books: Books) -> None:
    events = await read_events(store, session.session_id)
    books.sessions += 1
    books.events += len(events)
    books.ledger_sum += sum(
        points for each in events if isinstance(each, core.Opened | core.Acted) for _, points in each.entries
    )
    opened = events[0] if events else None
    game = games.find(opened.game) if isinstance(opened, core.Opened) else None
    live = core.replay(game, events) if game is not None else None
    stands = None if live is None else (live.version, live.net, live.balance)
    if stands != (session.version, session.net, session.account.balance):
        books.wrong.append(f"{session.session_id} is {stands}, and {session} was acknowledged")
    if session.artifact is not None:
        ref = session.artifact.ref
        content = await read_artifact(store, ref)
        report = None if content is None else verify(content, games, ref)
        books.artifacts += 1
        if report is None or not report.ok or report.events != len(events):
            books.wrong.append(f"artifact {ref} of {session.session_id}: {report}")
