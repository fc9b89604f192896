"""The file and the commands of docs/how-to/import-a-tape.md, run in their order."""

from collections.abc import AsyncIterator

import pytest
import trio

from gateways import cli
from gateways.operator.server import operator_app
from gateways.operator.token import OperatorToken
from tests.docs.pages import blocks, command_lines
from tests.gateways.commands.conftest import Turret, turret
from tests.support.broker import Bench, open_bench
from tests.support.imports import Files, csv
from tests.support.network import serving
from tests.support.operators import OPERATOR, TOKEN

__all__ = ["turret"]
PAGE = "import-a-tape.md"


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    async with open_bench() as found:
        yield found


@pytest.mark.requirement("catalog.command")
async def test_each_command_of_the_page_does_what_it_says(
    turret: Turret,  # the fixture
    bench: Bench,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(turret.directory)
    (turret.directory / "ticks.csv").write_text(blocks(PAGE, "csv")[0])
    token = turret.directory / "operators.token"
    token.write_text(TOKEN)
    token.chmod(0o600)
    lines = [line for line in command_lines(PAGE) if line[0] != "export"]
    assert [rest[:2] for _, *rest in lines] == [
        ["tape", "check"],
        ["tape", "import"],
        ["admin", "set-secret"],
        ["tape", "import"],
    ]
    (turret.directory / "feed-token.txt").write_text("a value\n")
    feed = Files(bench, csv())
    async with serving(operator_app(bench.broker, OperatorToken(TOKEN))) as served:
        monkeypatch.setenv("TURRET_OPERATOR_URL", served.url)
        monkeypatch.setenv("TURRET_OPERATOR_TOKEN_FILE", token.name)
        for _, *arguments in lines:
            with trio.fail_after(20):
                assert await trio.to_thread.run_sync(cli.run, arguments) == 0
    *_, file, fetched = (await bench.call("list_tapes", OPERATOR))["entries"]
    for entry, ticks in ((file, 3), (fetched, 40)):
        assert (entry["title"], entry["licence"], entry["ticks"]) == ("A Monday in March", "CC-BY-4.0", ticks)
    assert feed.asked == [("https://feed.example.org/ticks.csv", {"authorization": "Bearer a value"})]
