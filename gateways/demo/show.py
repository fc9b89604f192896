"""The demo's director: starts the broker and the bots, shows the deal, proves it, breaks a copy of it.

Everything happens in one directory, which is named at the end. Nothing is left running, whatever happens.
"""

import random
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, TextIO

import msgspec
import trio

from broker.wire.chain import Verdict
from broker.wire.envelope import Envelope, read_envelope
from broker.wire.ids import Pk
from broker.wire.keys import SigningKey
from gateways.client.asking import open_asker
from gateways.client.errors import DealerError, collapse
from gateways.client.export import check_lines, read_lines
from gateways.client.show import Names, line
from gateways.client.verify import report, verify_file
from gateways.demo.agents import meet
from gateways.demo.processes import Child, ChildFailed, child
from gateways.keyfile import load_key, save_key

START_S: Final = 15.0
"""Seconds that a process may take until it is ready, on a machine that is busy with other things."""
DEFAULT_SEED: Final = 20
"""A market in which the second price is good enough."""
DEAL_S: Final = 30.0
"""Seconds that the whole call may take."""


class Stage:
    """Where the demo is shown: standard output, with colours where it is a terminal."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self.colour = out.isatty()

    def title(self, number: int, text: str) -> None:
        self.say(f"\n{self._paint('1', f'{number}. {text}')}")

    def good(self, text: str) -> None:
        self.say(f"   {self._paint('32', '✓')} {text}")

    def note(self, text: str) -> None:
        for each in text.splitlines():
            self.say(f"   {each}")

    def say(self, text: str) -> None:
        self._out.write(text + "\n")
        self._out.flush()

    def _paint(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self.colour else text


def run_demo(keep: Path | None = None, seed: int | None = None, out: TextIO | None = None) -> int:
    """Run it and return the exit code: 0 when the deal was made or declined, proven, and the forgery found."""
    stage = Stage(out or sys.stdout)
    directory = keep if keep is not None else Path(tempfile.mkdtemp(prefix="turret-demo-"))
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    if any(directory.iterdir()):
        stage.say(f"turret: usage: {directory} is not empty")
        return 2
    try:
        trio.run(_until_signal, stage, directory, DEFAULT_SEED if seed is None else seed)
    except KeyboardInterrupt:
        stage.say("\nstopped")
        return 130
    except BaseExceptionGroup as group:
        return _failed(stage, collapse(group), directory)
    except (ChildFailed, DealerError, OSError) as fault:
        return _failed(stage, fault, directory)
    return 0


def _failed(stage: Stage, fault: BaseException, directory: Path) -> int:
    if isinstance(fault, KeyboardInterrupt):
        stage.say("\nstopped")
        return 130
    if not isinstance(fault, ChildFailed | DealerError | OSError):
        raise fault
    stage.say(f"\nturret: demo_failed: {fault}\nlogs: {directory}")
    return 1


async def _until_signal(stage: Stage, directory: Path, seed: int) -> None:
    """The play, left in good order also on SIGTERM (Ctrl-C comes as KeyboardInterrupt)."""
    async with trio.open_nursery() as nursery:
        if hasattr(signal, "SIGTERM"):
            nursery.start_soon(_stop_on_sigterm)
        await play(stage, directory, seed)
        nursery.cancel_scope.cancel()


async def _stop_on_sigterm() -> None:
    with trio.open_signal_receiver(signal.SIGTERM) as signals:
        async for _ in signals:
            raise KeyboardInterrupt


async def play(stage: Stage, directory: Path, seed: int) -> None:
    """The whole demo in one directory. Raises ChildFailed, DealerError. Cancelling ends every process."""
    stage.title(1, "A broker, and two bots with fresh keys")
    arguments = ["-m", "gateways.cli", "serve", "--json", "--data", str(directory / "data")]
    async with child("broker", [*arguments, *_ANY_PORT], directory) as broker:
        ready = await broker.expect("ready", START_S)
        wire, http = Pk(ready["pk"]), str(ready["http"])
        stage.note(f"broker  {http}  {ready['dealing']}")
        stage.note(f"wire    {wire}")
        for name in ("alfa", "brav"):
            save_key(directory / f"{name}.key", SigningKey.generate())
        maker = _bot(directory, "maker", "BRAV", f"{http}/mcp", wire, seed)
        taker = [*_bot(directory, "taker", "ALFA", str(ready["dealing"]), wire, seed), "--dial", "BRAV"]
        async with child("brav", maker, directory) as brav:
            stage.note(f"BRAV    {(await brav.expect('ready', START_S))['pk']}  over MCP: makes prices")
            async with child("alfa", taker, directory) as alfa:
                stage.note(f"ALFA    {(await alfa.expect('ready', START_S))['pk']}  over WebSocket: deals")
                stage.title(2, f"The call (seed {seed})")
                conv = await _watch(stage, alfa)
                await alfa.finish(START_S)
                await brav.finish(START_S)
        stage.title(3, "The same two keys as agents: they meet, agree and talk")
        await _meet(stage, directory, http, wire)
        stage.title(4, "The proof")
        lines = await _export(f"{http}/mcp", conv, wire, directory / "deal.jsonl")
    stage.good(f"exported {len(lines)} envelopes with the wire's receipts; the broker is stopped")
    _prove(stage, directory, lines, wire, seed)


_ANY_PORT: Final = ("--bind", "127.0.0.1:0", "--dealing-bind", "127.0.0.1:0")


def _bot(directory: Path, part: str, code: str, url: str, wire: Pk, seed: int) -> list[str]:
    key = str(directory / f"{code.lower()}.key")
    given = {"url": url, "key": key, "wire": wire, "code": code, "seed": str(seed)}
    options = [text for name, value in given.items() for text in (f"--{name}", value)]
    return ["-m", "gateways.demo.bot", part, *options]


async def _watch(stage: Stage, bot: Child) -> str:
    """Show the call as the bot tells it, line by line. Returns the conversation's id."""
    names = Names()
    with trio.move_on_after(DEAL_S):
        while (told := await bot.read_line()) is not None:
            if "conv" in told:
                return str(told["conv"])
            envelope = read_envelope(msgspec.json.encode(told["envelope"]))
            assert isinstance(envelope, Envelope), "our own bot checked it"
            stage.say(f"   {line(envelope, told['accepted_at'], names, colour=stage.colour)}")
        await bot.process.wait()
        raise bot.failed(f"ended with exit code {bot.process.returncode}")
    raise bot.failed(f"was not done in {DEAL_S:g} s")


async def _meet(stage: Stage, directory: Path, url: str, wire: Pk) -> None:
    """The second act, in this process. It must end as it should: nothing is said after the agreement's end."""
    keys = load_key(directory / "alfa.key"), load_key(directory / "brav.key")
    with trio.move_on_after(DEAL_S):
        end = await meet(url, wire, keys, stage.note)
        if end != "agreement_required":
            raise ChildFailed(f"a message after the agreement's end: {end}")
        stage.good("alfa ends the agreement: what brav says then is refused (agreement_required)")
        return
    raise ChildFailed(f"the agents were not done in {DEAL_S:g} s")


async def _export(url: str, conv: str, wire: Pk, path: Path) -> list[bytes]:
    async with open_asker(url) as asker:
        lines = await read_lines(asker.ask, conv, {}, receipts=True)
    check_lines(lines, conv, (wire,))
    await trio.Path(path).write_bytes(b"".join(each + b"\n" for each in lines))
    return lines


def _prove(stage: Stage, directory: Path, lines: Sequence[bytes], wire: Pk, seed: int) -> None:
    """Verify the file offline; then change one byte of a copy, and see where it breaks."""
    deal, forged = directory / "deal.jsonl", directory / "forged.jsonl"
    verdict = verify_file(deal, (wire,))
    if not verdict.ok:
        raise ChildFailed(f"the transcript does not verify:\n{report(verdict)}")
    stage.good("verified offline")
    stage.note(report(verdict))
    n, text, change = forge(lines, seed)
    forged.write_bytes(text)
    found = verify_file(forged, (wire,))
    if found.broken is None or found.broken.n != n:
        raise ChildFailed(f"a forged copy was not found out at n = {n}:\n{report(found)}")
    stage.good(f"a copy with one byte changed ({change} in envelope {n}) is refused at that step:")
    stage.note(_first_line(found))
    stage.say(f"\nEverything is in {directory}\n   turret verify {deal}\n   turret verify {forged}")


def _first_line(verdict: Verdict) -> str:
    return report(verdict).splitlines()[0]


def forge(lines: Sequence[bytes], seed: int) -> tuple[int, bytes, str]:
    """A copy of the export with one digit of one body changed: (n, the file's bytes, what was changed).

    The change keeps the JSON sound and the form of every member, so that the signature alone can tell.
    """
    chance = random.Random(f"{seed}/forger")  # noqa: S311  # a forger for show
    rows: list[dict[str, Any]] = [msgspec.json.decode(each, type=dict[str, msgspec.Raw]) for each in lines]
    bodies = [
        bytes(msgspec.json.decode(row["envelope"], type=dict[str, msgspec.Raw])["body"]) for row in rows
    ]
    spots = [
        (n, lines[n].index(body) + at)
        for n, body in enumerate(bodies)
        for at, byte in enumerate(body)
        if n >= 2 and chr(byte).isdigit() and b"." in body[max(0, at - 8) : at]
    ]
    n, at = chance.choice(spots or [(0, lines[0].index(bodies[0]) + 3)])
    old = chr(lines[n][at])
    new = str((int(old) + 1) % 10) if old.isdigit() else ("x" if old != "x" else "y")
    changed = lines[n][:at] + new.encode() + lines[n][at + 1 :]
    text = b"".join((changed if i == n else each) + b"\n" for i, each in enumerate(lines))
    return n, text, f"{old} → {new}"
