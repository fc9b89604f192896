"""The tutorial's commands, run as they are printed beside a live broker."""

import os
import re
import shlex
import sys
from pathlib import Path

import msgspec
import trio

from tests.gateways.client.live import live_broker

PAGE = Path(__file__).parents[2] / "docs" / "tutorial" / "first-deal.md"


def commands(text: str) -> list[list[str]]:
    """The `turret` and `sed` command lines of the page's shell blocks, as arguments, in order."""
    blocks = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
    lines = [line for block in blocks for line in block.replace("\\\n", " ").splitlines()]
    split = [shlex.split(line, comments=True) for line in lines]
    return [each for each in split if each and each[0] in ("turret", "sed")]


class Terminal:
    """Runs command lines in one directory, with the broker's address in the environment."""

    def __init__(self, directory: Path, url: str) -> None:
        self._directory = directory
        self._environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("TURRET_")},
            "TURRET_URL": url,
            "XDG_CONFIG_HOME": str(directory / "config"),
            "PYTHONPATH": str(Path(__file__).parents[2]),
        }

    async def run(self, arguments: list[str], code: int = 0) -> str:
        """Run one and give its output; the exit code must be this one."""
        if arguments[0] == "turret":
            arguments = [sys.executable, "-m", "gateways.cli", *arguments[1:]]
        command = shlex.join(arguments) if ">" not in arguments else _redirected(arguments)
        ran = await trio.run_process(
            ["sh", "-c", command],
            cwd=self._directory,
            env=self._environment,
            capture_stdout=True,
            capture_stderr=True,
            check=False,
        )
        assert ran.returncode == code, ran.stderr.decode()
        return (ran.stdout + ran.stderr).decode()


def _redirected(arguments: list[str]) -> str:
    at = arguments.index(">")
    return f"{shlex.join(arguments[:at])} > {shlex.quote(arguments[at + 1])}"


async def test_the_first_deal_goes_as_the_tutorial_says(tmp_path: Path) -> None:
    page = PAGE.read_text()
    by_name = {" ".join(each[:2]): each for each in commands(page)}
    keygens = [each for each in commands(page) if each[1] == "keygen"]
    opens = [each for each in commands(page) if each[1] == "open-desk"]
    shown: dict[str, str] = {}
    with trio.fail_after(55):
        async with live_broker() as live:
            terminal = Terminal(tmp_path, live.http)
            for each in [*keygens, *opens]:
                await terminal.run(each)

            async def run(name: str) -> None:
                shown[name] = await terminal.run(by_name[name])

            async with trio.open_nursery() as nursery:
                nursery.start_soon(run, "turret answer")
                nursery.start_soon(run, "turret dial")
            listed = await terminal.run([*by_name["turret list-convs"], "--json"])
            conv = msgspec.json.decode(listed)["convs"][0]["conv"]
            export = [
                conv if re.fullmatch("[0-9a-f]{16}", word) else word for word in by_name["turret export"]
            ]
            assert "8 envelopes in deal.jsonl" in await terminal.run(export)
        assert "holds: 8 envelopes" in await terminal.run(["turret", "verify", "deal.jsonl"])
        await terminal.run(by_name["sed s/1\\.0843/1.0743/"])
        assert "breaks at n = 3 (line 4)" in await terminal.run(["turret", "verify", "forged.jsonl"], code=1)
    said = re.findall(r"^[\d:.]+  (\w{4} → \w{4}    \d  \w+)", page, re.MULTILINE)
    for output in shown.values():
        assert re.findall(r"^[\d:.]+  (\w{4} → \w{4}    \d  \w+)", output, re.MULTILINE) == said


def test_every_command_line_in_the_docs_exists() -> None:
    from gateways.cli import cli
    from gateways.commands.tools import tools

    names = cli.list_commands(None)  # type: ignore[arg-type]  # it asks no context
    known = {*names, *(name.replace("_", "-") for name in tools())}
    for page in [PAGE, *(PAGE.parents[1] / "how-to").glob("*.md"), PAGE.parents[2] / "README.md"]:
        for each in commands(page.read_text()):
            if each[0] == "turret":
                assert each[1] in known, f"{page.name}: {shlex.join(each)}"
