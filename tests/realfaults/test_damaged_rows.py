"""Each kind of document and row, damaged so that its sum does not tell: refused by name, and the rest is served."""

import logging
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest
import trio
from trio.testing import MockClock

from broker.store import stored
from broker.store.complaints import Complaints
from tests.realfaults.damaged import Outcome, World, attempt

OF_CONV: Final = "(SELECT id FROM log WHERE name = 'conv:' || ?)"
LAST: Final = 20
"""Of the first ended call."""
DAMAGES: Final = {
    "an open call's document": ("UPDATE document SET {junk} WHERE kind = 'conv' AND name = ?", "open", "conv"),
    "an ended call's document": ("UPDATE document SET {junk} WHERE kind = 'conv' AND name = ?", "ended", "conv"),
    "a desk's document": ("UPDATE document SET {junk} WHERE kind = 'desk' AND name = ?", "pk", "desk"),
    "a code's document": ("UPDATE document SET {junk} WHERE kind = 'code' AND name = ?", "code", "code"),
    "the first row of a log": (f"UPDATE text SET {{junk}} WHERE n = 0 AND log = {OF_CONV}", "open", "conv"),
    "a row within a log": (f"UPDATE text SET {{junk}} WHERE n = 3 AND log = {OF_CONV}", "open", "conv"),
    "the last row of a log": (f"UPDATE text SET {{junk}} WHERE n = {LAST} AND log = {OF_CONV}", "ended", "conv"),
    "a log without rows": ("UPDATE log SET name = 'nobody''s' WHERE name = 'conv:' || ?", "open", "conv"),
    "what was answered to a statement": (
        "UPDATE remembered SET outcome = {bytes}, sum = NULL WHERE ? IS NOT NULL", "pk", "answer",
    ),
}  # fmt: skip
JUNK: Final = (b"", b"{", b'{"conv":7,"pk":7,"code":7,"n":"x"}', b"\xff\xfe", b"[" * 5_000)


def run(function: Any, *arguments: Any) -> Any:
    return trio.run(function, *arguments, clock=MockClock(autojump_threshold=0))


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """A store with something in it, closed."""
    made = World(tmp_path_factory.mktemp("world") / "store")
    run(made.fill)
    return made


def names(world: World) -> dict[str, str]:
    """What the damages are done to."""
    open = [conv for conv, *_ in world.lines]
    ended = next(conv for conv in world.convs if conv not in open)
    return {"open": open[1], "ended": ended, "pk": world.parties[2].pk, "code": world.parties[2].code}


@pytest.mark.requirement("faults.damage", "faults.named")
@pytest.mark.parametrize("damage", DAMAGES)
def test_what_can_not_be_read_is_refused_by_name_and_the_rest_is_served(
    damage: str,
    world: World,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    statement, whose, kind = DAMAGES[damage]
    name = names(world)[whose]
    for junk in JUNK:
        caplog.clear()
        monkeypatch.setattr(stored, "_complaints", Complaints(logging.getLogger("turret.store")))
        folder = tmp_path / str(len(junk))
        with closing(sqlite3.connect(world.copy(folder))) as db:
            words = statement.format(junk=f"data = x'{junk.hex()}', sum = NULL", bytes=f"x'{junk.hex()}'")
            assert db.execute(words, (name,)).rowcount >= 1
            db.commit()
        outcome: Outcome = run(attempt, world, folder)
        assert outcome.start == ""
        assert outcome.wrong == []
        assert outcome.codes["unavailable"] >= 1
        assert outcome.codes["right"] >= 30
        shown = {"conv": name[:8] + "…", "answer": ""}.get(kind, name)
        assert f"what is stored of {kind} {shown}" in caplog.text
