"""The commands and the program of docs/how-to/verify-a-session.md, run beside a broker."""

import json
from collections.abc import AsyncIterator

import pytest
import trio

from gateways.web import web_app
from tests.docs.pages import blocks, command_lines
from tests.gateways.commands.conftest import Turret, turret
from tests.support.artifacts import publish_one
from tests.support.broker import Bench
from tests.support.network import serving

PAGE = "verify-a-session.md"
__all__ = ["turret"]


@pytest.fixture
async def ref(bench: Bench, turret: Turret, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[str]:
    """The ref of a session at a broker that TURRET_URL names."""
    async with serving(web_app(bench.broker, None)) as server:
        monkeypatch.setenv("TURRET_URL", server.url)
        found, _ = await publish_one(bench)
        yield found


@pytest.mark.requirement("artifact.command")
async def test_the_page_fetches_and_checks(
    ref: str, turret: Turret, capsys: pytest.CaptureFixture[str]
) -> None:
    fetch, check, both = command_lines(PAGE)
    pipe = both.index("|")
    assert both[:pipe] == ["turret", "artifact", "REF"]
    named = {"REF": ref, "-": "session.json"}  # the one file stands for the pipe
    for line in (fetch, check, both[pipe + 1 :]):
        assert line[0] == "turret"
        ran = await turret(*(named.get(each, each) for each in line[1:]))
        assert ran.code == 0, ran.err
    assert (json.loads(ran.out)["ok"], json.loads(ran.out)["ref"]) == (True, ref)
    (program,) = blocks(PAGE, "python")
    await trio.to_thread.run_sync(lambda: exec(compile(program, PAGE, "exec"), {}))
    assert capsys.readouterr().out == "holds\n"
