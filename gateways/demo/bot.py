"""A bot of the demo, as a process of its own: `python -m gateways.demo.bot maker|taker …`.

1. It decides by its market alone (market.py); what it hears is judged, never trusted.
2. It tells its parent what happens as JSON lines on standard output, and leaves when the parent is gone
   (standard input ends).
"""

import argparse
import os
import sys
from contextlib import suppress
from typing import Any

import msgspec
import trio

from gateways.client.call import Call
from gateways.client.connect import connect
from gateways.client.dealer import Desk
from gateways.client.errors import CallEnded, DealerError, collapse
from gateways.demo.market import VALID_MS, Maker, Quote, Side, Taker, price_text, read_price, read_quote

INSTRUMENT = "EURUSD"


def tell(**event: Any) -> None:
    """One line to the parent."""
    sys.stdout.buffer.write(msgspec.json.encode(event) + b"\n")
    sys.stdout.buffer.flush()


class Teller:
    """Tells each row of a call, ours and theirs, once it has been checked."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._told = 0

    async def follow(self) -> None:
        """For ever, as they come."""
        while True:
            await self._call.wait_row(self._told)
            self.tell()

    def tell(self) -> None:
        """Those that are here and not told yet."""
        for row in self._call.transcript.rows[self._told :]:
            raw = msgspec.Raw(row.envelope.canonical)
            tell(envelope=raw, sig=row.sig, chain=row.chain, accepted_at=row.accepted_at)
            self._told += 1


async def take(desk: Desk, code: str, taker: Taker) -> None:
    """Dial, ask for prices until one is good or patience ends, deal, and see the deal confirmed."""
    async with desk.dial(code) as call, trio.open_nursery() as nursery:
        teller = Teller(call)
        nursery.start_soon(teller.follow)
        with suppress(CallEnded):
            await _negotiate(call, taker)
            await call.wait_ended()
        teller.tell()
        tell(conv=call.conv)
        nursery.cancel_scope.cancel()


async def _negotiate(call: Call, taker: Taker) -> None:
    qty = str(taker.qty)
    while taker.patient:
        await call.send("RFQ", {"instrument": INSTRUMENT, "qty": qty})
        answer = await call.receive()
        quote = read_quote(answer.body) if answer.type == "QUOTE" else None
        if quote is None or not taker.takes(quote):
            continue
        px = price_text(quote.price(taker.side))
        await call.send("HIT", {"side": taker.side, "qty": qty, "px": px})
        confirm = await call.receive()
        if confirm.type != "CONFIRM":
            continue  # the quote had run out: ask again
        agreed = {"instrument": INSTRUMENT, "side": taker.side, "qty": qty, "px": px}
        if any(confirm.body.get(name) != value for name, value in agreed.items()):
            await call.end("not what was dealt")
            return
        await call.send("CONFIRM", confirm.body)
        return
    await call.end("no price within the limit")


async def make(desk: Desk, maker: Maker) -> None:
    """Answer one call: quote whoever asks, stand for the last quote while it is valid, confirm."""
    ring = await desk.next_ring()
    async with ring.answer() as call:
        quoted: tuple[Quote, str, int] | None = None
        async for envelope in call:
            match envelope.type, envelope.body:
                case "RFQ", {"instrument": "EURUSD", "qty": str(qty)}:
                    quoted = (maker.quote(), qty, desk.now_ms() + VALID_MS)
                    await call.send("QUOTE", _quote_body(*quoted))
                case "HIT", body if quoted is not None and _stands(body, *quoted, desk):
                    await call.send("CONFIRM", _deal(call, body))
                case "CONFIRM", _:
                    await call.end("done")
                case _:
                    await call.send("REJECT", {"reason": "no quote of mine stands for that"})


def _quote_body(quote: Quote, qty: str, until_ms: int) -> dict[str, Any]:
    return {
        "bid": price_text(quote.bid),
        "ask": price_text(quote.ask),
        "qty": qty,
        "valid_until_ms": until_ms,
    }


def _stands(body: dict[str, Any], quote: Quote, qty: str, until_ms: int, desk: Desk) -> bool:
    """Whether a HIT takes up the last quote as it was made, and in time."""
    side: Side | None = next((each for each in ("buy", "sell") if each == body.get("side")), None)
    if side is None or body.get("qty") != qty or desk.now_ms() > until_ms:
        return False
    return read_price(body.get("px")) == quote.price(side)


def _deal(call: Call, body: dict[str, Any]) -> dict[str, Any]:
    return {
        "trade_ref": f"T-{call.conv[:6]}",
        "instrument": INSTRUMENT,
        "side": body["side"],
        "qty": body["qty"],
        "px": body["px"],
    }


async def leave_with_parent(scope: trio.CancelScope) -> None:
    """Cancel everything when standard input ends: the parent holds its other end.

    os.read holds no lock that an abandoned thread would keep from the interpreter's end.
    """
    while await trio.to_thread.run_sync(os.read, sys.stdin.fileno(), 4096, abandon_on_cancel=True):
        pass
    scope.cancel()


async def run_bot(options: argparse.Namespace) -> None:
    """Open the desk, say so, and deal once."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(leave_with_parent, nursery.cancel_scope)
        async with connect(options.url, options.key, options.wire) as desk:
            await desk.open(options.code)
            tell(ready=options.code, pk=desk.pk)
            if options.part == "maker":
                await make(desk, Maker(options.seed))
            else:
                await take(desk, options.dial, Taker(options.seed))
        nursery.cancel_scope.cancel()


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="gateways.demo.bot")
    parser.add_argument("part", choices=("maker", "taker"))
    for name in ("url", "key", "wire", "code"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--dial")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    try:
        trio.run(run_bot, options)
    except (DealerError, BaseExceptionGroup) as raised:
        fault = collapse(raised) if isinstance(raised, BaseExceptionGroup) else raised
        if not isinstance(fault, DealerError):
            raise
        sys.stderr.write(f"{options.code}: {fault}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
