"""The tutorial on two agents, done as it is written, beside a live broker."""

import json
import os
import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest
import trio

from gateways import cli
from gateways.client.mcp_link import http_client
from tests.docs.pages import blocks
from tests.gateways.client.live import Live, live_broker
from tests.support.broker import tuned
from tests.support.owners import PASSWORD

ROOT = Path(__file__).parents[2]
PAGE = "../tutorial/two-agents.md"
ADDRESS = '"http://127.0.0.1:8766"'
NAMES = ("brav.py", "alfa.py", "host.py", "guest.py")
PROGRAMS = dict(zip(NAMES, blocks(PAGE, "python"), strict=True))
SHOWN = blocks(PAGE, "text")
"""What the page shows of what is printed, after the first: alfa.py, brav.py, host.py, guest.py."""


class Agents:
    """The directory of the tutorial: its programs, keys and files."""

    def __init__(
        self,
        directory: Path,
        live: Live,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        self.directory = directory
        self._capsys = capsys
        monkeypatch.chdir(directory)
        monkeypatch.setenv("TURRET_URL", live.http)
        monkeypatch.setenv("XDG_CONFIG_HOME", str(directory / "config"))
        for name, text in PROGRAMS.items():
            assert text.count(ADDRESS) == 1
            (directory / name).write_text(text.replace(ADDRESS, repr(live.http)))

    async def turret(self, line: str) -> str:
        """A command line of the page, in a thread of ours; what it prints."""
        program, *arguments = line.split()
        assert program == "turret"
        code = await trio.to_thread.run_sync(cli.run, arguments)
        shown = self._capsys.readouterr()
        assert code == 0, shown.err
        return shown.out

    @asynccontextmanager
    async def running(self, name: str, *arguments: str) -> AsyncIterator[trio.Process]:
        """A program of the page; ended with the block."""
        with (self.directory / f"{name}.err").open("w") as errors:
            process = await trio.lowlevel.open_process(
                [sys.executable, name, *arguments],
                cwd=self.directory,
                stdout=-1,
                stderr=errors,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
            )
        try:
            yield process
        finally:
            if process.returncode is None:
                process.terminate()
            with trio.CancelScope(shield=True):
                await process.wait()

    async def said(self, process: trio.Process, lines: int) -> str:
        """Its next lines."""
        assert process.stdout is not None
        data = b""
        while data.count(b"\n") < lines:
            piece = await process.stdout.receive_some()
            assert piece, [each.read_text() for each in self.directory.glob("*.err")]
            data += piece
        return data.decode()


async def register(agents: Agents) -> dict[str, tuple[str, str]]:
    """Step 2; agent id and claim code by name."""
    found = {}
    for block in blocks(PAGE, "sh")[1:3]:
        for line in block.splitlines():
            out = await agents.turret(line)
        match = re.fullmatch(r"(ag_\w{26})\nclaim code: (\S+)\n", out)
        assert match, out
        found[line.split()[2]] = (match[1], match[2])
    return found


async def claim(live: Live, code: str) -> None:
    """Step 5, in a browser that keeps cookies and sends forms."""
    async with http_client(live.http) as browser:
        person = {"email": "ann@example.org", "password": PASSWORD}
        assert await submit(browser, f"{live.http}/sign-up", **person) == "/owner"
        assert await submit(browser, f"{live.http}/owner/claim", code=code) == "/owner?done=claimed"


async def submit(browser: httpx.AsyncClient, url: str, **fields: str) -> str:
    """Fill in the form of a page and send it; where it leads."""
    hidden = re.search(r'name="token" value="([^"]+)"', (await browser.get(url)).text)
    assert hidden
    origin = url.partition("/sign")[0].partition("/owner")[0]
    answer = await browser.post(url, data={"token": hidden[1], **fields}, headers={"Origin": origin})
    assert answer.status_code == 303
    return answer.headers["location"]


@pytest.mark.requirement("client.agent-tutorial")
async def test_two_agents_do_what_the_tutorial_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with trio.fail_after(55):
        async with live_broker(tuned(owners={"sign_up": "open"})) as live:
            agents = Agents(tmp_path, live, monkeypatch, capsys)
            by_name = await register(agents)
            (alfa, code), (brav, _) = by_name["alfa"], by_name["brav"]
            async with agents.running("brav.py") as listener:
                async with agents.running("alfa.py", brav) as asker:
                    assert await agents.said(asker, 2) == SHOWN[1]
                    assert await asker.wait() == 0
                assert await agents.said(listener, 2) == SHOWN[2]
            await claim(live, code)
            shown = json.loads(await agents.turret(blocks(PAGE, "sh")[3]))
            assert (shown["agent_id"], shown["tier"]) == (alfa, "claimed")
            async with agents.running("guest.py") as guest, agents.running("host.py", brav) as host:
                assert await agents.said(host, 2) == SHOWN[3]
                assert await agents.said(guest, 1) == SHOWN[4]
                assert (await host.wait(), await guest.wait()) == (0, 0)


def test_the_page_names_each_program() -> None:
    text = (Path(__file__).parents[2] / "docs" / "tutorial" / "two-agents.md").read_text()
    for name in NAMES:
        assert f"`{name}`" in text
    assert len(SHOWN) == 5
