"""Commands that deal: open-desk, dial, answer, tail. Each holds a key and keeps a stream open.

Calls are typed: a line `TYPE {json}` is sent when it is one's turn (at a terminal one out of turn is refused); END
hangs up at once.
"""

import math
import os
import re
import sys
from collections import deque
from contextlib import AbstractAsyncContextManager, suppress
from typing import Any, Final

import click
import msgspec
import trio

from broker.wire.envelope import read_envelope
from broker.wire.refusals import Refusal
from gateways.client.asking import open_asker
from gateways.client.call import Call
from gateways.client.connect import connect
from gateways.client.dealer import Desk
from gateways.client.errors import CallEnded, Refused
from gateways.client.show import Names, line, printable
from gateways.client.transcript import Row
from gateways.commands.common import Failure, Options, common, echo_error, fail, is_terminal, run
from gateways.commands.reading import signer_for
from gateways.keyfile import load_key

_LINE: Final = re.compile(r"\s*([A-Z][A-Z0-9_]{0,31})\s*(\{.*\})?\s*", re.DOTALL)

Line = tuple[str, dict[str, Any]]


def open_desk_link(options: Options) -> AbstractAsyncContextManager[Desk]:
    """A connection with the key of the options."""
    return connect(options.url, options.key_path(), options.wire)


@click.command("open-desk")
@click.argument("code")
@click.option("--recovery-pk", metavar="PK", help="A key that may move the desk, after a day's wait.")
@common
def open_desk(options: Options, code: str, recovery_pk: str | None) -> None:
    """Open a desk: claim a four-letter code for your key. For one that is yours already it shows it.

    \b
    Example:
      turret open-desk ALFA --key alfa.key
    """

    key = load_key(options.key_path())

    async def ask() -> dict[str, Any]:
        async with open_asker(options.url) as asker:
            signer = await signer_for(options, asker, key)
            text, sig = signer.sign("open_desk", code=code.upper(), recovery_pk=recovery_pk)
            answer = await asker.ask("open_desk", {"statement": msgspec.Raw(text), "sig": sig})
        return msgspec.json.decode(answer, type=dict[str, Any])

    found = run(ask)
    options.show(found, f"{found['code']}  {found['pk']}")


@click.command()
@click.argument("code")
@click.option("--from", "code_from", metavar="CODE", required=True, help="Your own desk's code.")
@click.option(
    "--say", multiple=True, metavar="LINE", help="Send this line instead of asking; may be repeated."
)
@click.option("--wait", default=30.0, show_default=True, help="Seconds to wait for a reply at the end.")
@common
def dial(options: Options, code: str, code_from: str, say: tuple[str, ...], wait: float) -> None:
    """Call a desk and talk: each line is TYPE {json}, from standard input or --say; the replies are shown.

    After the last line it waits for a reply and hangs up; END hangs up at once. What is shown is checked: signatures
    and chain.

    \b
    Example:
      turret dial BRAV --from ALFA --key alfa.key --say 'RFQ {"instrument":"EURUSD","qty":"5000000"}'
    """
    lines = [read_line(each) for each in say]

    async def talk() -> None:
        async with open_desk_link(options) as desk:
            desk.code = code_from.upper()
            if not lines and sys.stdin.isatty():
                echo_error(f"calling {code.upper()} …")
            async with desk.dial(code.upper()) as call:
                await converse(options, call, lines, wait)

    run(talk)


@click.command()
@click.option(
    "--say", multiple=True, metavar="LINE", help="Send this line instead of asking; may be repeated."
)
@click.option("--wait", default=30.0, show_default=True, help="Seconds to wait for a reply at the end.")
@click.option("--ring-wait", type=float, default=math.inf, help="Seconds to wait for a ring; else for ever.")
@common
def answer(options: Options, say: tuple[str, ...], wait: float, ring_wait: float) -> None:
    """Wait for a call, pick up and talk, as with `turret dial`.

    \b
    Example:
      turret answer --key brav.key --say 'QUOTE {"bid":"1.0841","ask":"1.0843"}'
    """
    lines = [read_line(each) for each in say]

    async def talk() -> None:
        async with open_desk_link(options) as desk:
            with trio.move_on_after(ring_wait) as waiting:
                ring = await desk.next_ring()
            if waiting.cancelled_caught:
                raise Failure("no_ring", f"nobody called in {ring_wait:g} s")
            async with ring.answer() as call:
                await converse(options, call, lines, wait)

    run(talk)


async def converse(options: Options, call: Call, lines: list[Line], wait: float) -> None:
    """Show the call as it goes, send the lines in turn, wait for a last reply, hang up."""
    rows = _Rows(options, call)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(rows.follow)
        nursery.start_soon(_leave_when_ended, call, nursery.cancel_scope)
        await _talk(call, lines, wait)
        nursery.cancel_scope.cancel()
    rows.show()


async def _talk(call: Call, lines: list[Line], wait: float) -> None:
    source = _Typed() if not lines else _Listed(lines)
    by_hand = not lines and sys.stdin.isatty()
    if by_hand:
        echo_error('When it is your turn, type a line such as RFQ {"qty":"5"}. END hangs up.')
    with suppress(CallEnded):
        while (said := await source.next_line()) is not None:
            type, body = said
            if type == "END":
                await call.end(body=body)
                return
            if (
                not by_hand
            ):  # a person has not read yet what a line kept for later would answer: it is out of turn
                await call.wait_turn()
            try:
                await call.send(type, body)
            except Refused as no:
                if lines:
                    raise
                fail(str(no))
        with trio.move_on_after(wait):
            await call.wait_turn()
        await call.end()


async def _leave_when_ended(call: Call, scope: trio.CancelScope) -> None:
    await call.wait_ended()
    scope.cancel()


class _Rows:
    """Prints each row of a call once, ours and theirs, from the CALL on."""

    def __init__(self, options: Options, call: Call) -> None:
        self._options = options
        self._call = call
        self._shown = 0
        self._names = Names()

    async def follow(self) -> None:
        while True:
            self.show()
            await self._call.wait_row(self._shown)

    def show(self) -> None:
        rows = self._call.transcript.rows
        for row in rows[self._shown :]:
            show_row(self._options, row, self._names)
        self._shown = len(rows)


def show_row(options: Options, row: Row, names: Names) -> None:
    if options.json:
        raw = msgspec.Raw(row.envelope.canonical)
        shown = {"n": row.envelope.n, "sig": row.sig, "envelope": raw, "chain": row.chain}
        options.show({**shown, "accepted_at": row.accepted_at})
        return
    text = line(row.envelope, row.accepted_at, names, colour=is_terminal())
    click.echo(text + ("  (after its valid_until_ms!)" if row.late else ""))


def read_line(text: str) -> Line:
    """TYPE {json} as typed. Raises a usage error."""
    found = _LINE.fullmatch(text)
    if found is None:
        raise click.UsageError(f'a line is TYPE {{json}}, such as RFQ {{"qty":"5"}}, not {text.strip()!r}')
    try:
        body = msgspec.json.decode(found[2] or "{}", type=dict[str, Any])
    except (msgspec.MsgspecError, RecursionError) as fault:
        raise click.UsageError(f"the body of {found[1]} is no JSON object: {fault}") from None
    return found[1], body


class _Listed:
    """Lines that were given."""

    def __init__(self, lines: list[Line]) -> None:
        self._lines = deque(lines)

    async def next_line(self) -> Line | None:
        return self._lines.popleft() if self._lines else None


class _Typed:
    """Lines from standard input. The reading thread is left behind when the call is over.

    os.read, not readline: an abandoned thread must hold no lock of the interpreter's own.
    """

    def __init__(self) -> None:
        self._rest = b""

    async def next_line(self) -> Line | None:
        while (text := await self._next_text()) is not None:
            try:
                if text.strip():
                    return read_line(text)
            except click.UsageError as fault:
                fail(f"usage: {fault.message}")
        return None

    async def _next_text(self) -> str | None:
        while b"\n" not in self._rest:
            data = await trio.to_thread.run_sync(os.read, sys.stdin.fileno(), 65_536, abandon_on_cancel=True)
            if not data:
                last, self._rest = self._rest, b""
                return last.decode(errors="replace") if last else None
            self._rest += data
        line, _, self._rest = self._rest.partition(b"\n")
        return line.decode(errors="replace")


@click.command()
@click.option(
    "--after", metavar="CURSOR", help='Go on after this cursor; "0" from the oldest kept; else from now.'
)
@click.option("--count", type=click.IntRange(1), help="Stop after so many events; else go on for ever.")
@common
def tail(options: Options, after: str | None, count: int | None) -> None:
    """Show your key's events as they come: rings, envelopes and ends of all its calls.

    \b
    Example:
      turret tail --key alfa.key --after 0
    """

    async def follow() -> None:
        send, events = trio.open_memory_channel[tuple[str, bytes]](math.inf)

        def take(kind: str, params: bytes) -> None:
            send.send_nowait((kind, params))

        names, shown = Names(), 0
        async with connect(options.url, options.key_path(), options.wire, after=after, on_event=take):
            while shown != count:
                _show_event(options, *await events.receive(), names)
                shown += 1

    run(follow)


def _show_event(options: Options, kind: str, params: bytes, names: Names) -> None:
    found = msgspec.json.decode(params, type=dict[str, msgspec.Raw])
    if options.json:
        options.show({"event": kind, **found})
        return
    if "envelope" not in found:
        click.echo(f"{printable(kind)}  {printable(params.decode())}")
        return
    envelope = read_envelope(bytes(found["envelope"]))
    if isinstance(envelope, Refusal):
        echo_error(f"an event that can't be read: {envelope.message}")
        return
    at = msgspec.json.decode(found["accepted_at"])
    click.echo(f"{envelope.conv}  {line(envelope, at, names, colour=is_terminal())}")
