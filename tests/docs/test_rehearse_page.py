"""The pages on rehearsing: the tutorial from the first draft to the verified deal, and the how-to's calls."""

import json
import os
import re
import sys
from array import array
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from broker.core.tapes.tape import Tape
from broker.core.trials.script import Advance, Start, read_artifact, replay
from gateways.client.artifacts import fetch_artifact
from tests.docs.pages import blocks, command_lines
from tests.gateways.client.live import Live, live_broker
from tests.gateways.commands.conftest import Turret, turret
from tests.support.broker import tuned

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "docs" / "examples"
TUTORIAL = "../tutorial/rehearse-a-plan.md"
NAMES = ("rehearse_plan.py", "quoting_desk.py", "plan_dealer.py")
__all__ = ["turret"]


@asynccontextmanager
async def running(name: str, live: Live, directory: Path, *arguments: str) -> AsyncIterator[trio.Process]:
    """A program of the page as a process; ended with the block."""
    (directory / name).write_text((EXAMPLES / name).read_text())
    process = await trio.lowlevel.open_process(
        [sys.executable, name, *arguments],
        cwd=directory,
        stdout=-1,
        env={**os.environ, "PYTHONPATH": str(ROOT), "TURRET_URL": live.http},
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.terminate()
        with trio.CancelScope(shield=True):
            await process.wait()


async def said(process: trio.Process, until: str = "") -> str:
    """What it prints, to its end or until these words are there."""
    assert process.stdout is not None
    data = b""
    while not until or until.encode() not in data:
        piece = await process.stdout.receive_some()
        if not piece:
            break
        data += piece
    return data.decode()


def shaped(text: str) -> str:
    """A text of the page as a pattern: any hashes."""
    return re.escape(re.sub(r"[0-9a-f]{64}|[0-9a-f]{16}", "\0", text)).replace("\0", "[0-9a-f]+")


@pytest.mark.requirement("trial.tutorial-programs")
def test_the_page_shows_the_programs_as_they_are_and_none_is_long() -> None:
    shown = blocks(TUTORIAL, "python")
    for name, text in zip(NAMES, shown, strict=True):
        assert text == (EXAMPLES / name).read_text(), name
        assert len(text.splitlines()) <= 80


@pytest.mark.requirement("trial.tutorial-deal")
async def test_a_plan_is_rehearsed_graded_and_deals(turret: Turret, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [line[1:] for line in command_lines(TUTORIAL) if line[0] == "turret"]
    assert lines.pop(0)[0] == "serve"
    rehearsed, dealt, verified = blocks(TUTORIAL, "text")
    with trio.fail_after(50):
        async with live_broker(tuned(limits={"envelopes": 1_000})) as live:
            monkeypatch.setenv("TURRET_URL", live.http)
            for line in lines[:3]:
                assert (await turret(*line)).code == 0
            async with running(NAMES[0], live, turret.directory) as rehearsal:
                out = await said(rehearsal)
                assert out == rehearsed, "the same ref too, on every machine"
            ref = out.split()[-1]
            async with running(NAMES[1], live, turret.directory) as desk:
                assert await said(desk, "open") == "BRAV is open\n"
                async with running(NAMES[2], live, turret.directory, ref) as dealer:
                    out = await said(dealer)
                    assert re.fullmatch(shaped(dealt), out), out
            conv = out.split()[-1]
            ran = await turret(*(conv if each == "e7b6…" else each for each in lines[3]))
            assert ran.code == 0, ran.err
            artifact = read_artifact(await fetch_artifact(live.http, ref))
    ran = await turret(*lines[4])
    assert ran.code == 0, ran.out
    assert re.match(shaped(verified.split("\n")[0]), ran.out), ran.out
    assert_as_rehearsed(turret.directory / "deal.jsonl", artifact)


def assert_as_rehearsed(file: Path, artifact: Any) -> None:
    """The hits of the transcript are the fills of the same plan on the tape of its quotes."""
    spoken = [json.loads(line)["envelope"] for line in file.read_text().splitlines()]
    quotes = [each["body"] for each in spoken if each["type"] == "QUOTE"]
    bids, asks = (
        array("q", (round(float(each[side]) * 100_000) for each in quotes)) for side in ("bid", "ask")
    )
    [start] = [each for each in artifact.calls if isinstance(each, Start)]
    replayed = replay(Tape(artifact.entry.about, bids, asks, array("q")), [start, Advance(len(quotes))])
    hits = [each["body"] for each in spoken if each["type"] == "HIT"]
    assert hits
    assert [(each["side"], each["qty"], each["px"]) for each in hits] == [
        (fill.side, str(fill.size), f"{fill.price / 100_000:.5f}") for fill in replayed.fills
    ]
