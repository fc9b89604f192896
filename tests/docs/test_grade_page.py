"""The commands and the program of docs/how-to/grade-a-trial.md, run beside a broker."""

from collections.abc import AsyncIterator

import pytest
import trio

from gateways.web import web_app
from tests.docs.pages import blocks, command_lines
from tests.gateways.commands.conftest import Turret, turret
from tests.support.broker import Bench
from tests.support.network import serving
from tests.support.trials import market, publish, trial

PAGE = "grade-a-trial.md"
__all__ = ["turret"]


@pytest.fixture
async def ref(bench: Bench, turret: Turret, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[str]:
    """The ref of a finished trial at a broker that TURRET_URL names."""
    async with serving(web_app(bench.broker, None)) as server:
        monkeypatch.setenv("TURRET_URL", server.url)
        yield await publish(bench, trial(*market(ticks=300)))


@pytest.mark.requirement("trial.grade-command")
async def test_the_page_grades_and_draws(
    ref: str, turret: Turret, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = command_lines(PAGE)
    assert [line[1] for line in lines] == ["grade", "artifact", "grade", "grade", "grade"]
    said = []
    for line in lines:
        ran = await turret(*(ref if each == "REF" else each for each in line[1:]))
        assert ran.code == 0, ran.err
        said.append(ran)
    assert turret.files("trial.*") == ["trial.html", "trial.json", "trial.svg"]
    (program,) = blocks(PAGE, "python")
    await trio.to_thread.run_sync(lambda: exec(compile(program, PAGE, "exec"), {}))
    made = said[2].json
    assert capsys.readouterr().out == f"{made['grades']['pnl']} {made['naive']['pnl']}\n"
