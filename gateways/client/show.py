"""A conversation for people: one line an envelope, in columns (pure: text in, text out).

1. What others wrote is shown as data, never as our words: bodies are JSON, and nothing that a terminal would
   take for a command leaves this file.
2. A meaning is added beside the body only for the few types that deals are made of.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

import msgspec

from broker.wire.envelope import Envelope

_COLOURS: Final[dict[str, str]] = {
    "CALL": "36",
    "PICKUP": "36",
    "RFQ": "33",
    "QUOTE": "34",
    "HIT": "35;1",
    "ACCEPT": "35;1",
    "CONFIRM": "32;1",
    "END": "31",
}
_QUOTED: Final = ("bid", "ask", "qty", "valid_until_ms")
_CONFIRMED: Final = ("trade_ref", "side", "qty", "instrument", "px")
_WIDEST: Final = 200
"""Characters of a body that one line shows."""


class Names:
    """Keys to what people call them: a desk's code where it is known, else the beginning of the key."""

    def __init__(self, known: Mapping[str, str] | None = None) -> None:
        self._known = dict(known or {})

    def learn(self, call: Envelope) -> None:
        """A CALL tells both codes."""
        for pk, member in ((call.sender, "code_from"), (call.to, "code_to")):
            if isinstance(code := call.body.get(member), str):
                self._known.setdefault(pk, printable(code)[:4])

    def add(self, pk: str, name: str) -> None:
        self._known[pk] = name

    def get(self, pk: str) -> str:
        return self._known.get(pk, pk[:8])


def line(envelope: Envelope, at_ms: int | None, names: Names, *, colour: bool = False) -> str:
    """One envelope as one line: time, from → to, n, type, meaning."""
    if envelope.type == "CALL":
        names.learn(envelope)
    time = clock_time(at_ms if at_ms is not None else envelope.ts * 1000)
    route = f"{names.get(envelope.sender):>4} → {names.get(envelope.to):<4}"
    kind = f"{envelope.type:<8}"
    if colour:
        time, kind = f"\x1b[2m{time}\x1b[0m", f"\x1b[{_COLOURS.get(envelope.type, '0')}m{kind}\x1b[0m"
    return f"{time}  {route}  {envelope.n:>3}  {kind}  {meaning(envelope)}".rstrip()


def meaning(envelope: Envelope) -> str:
    """The body in words for the types of a deal, else as JSON."""
    match envelope.type, envelope.body:
        case "CALL", _:
            return "calls" + _rest(envelope.body, ("code_from", "code_to", "wire"))
        case "PICKUP", body:
            return "picks up" + _rest(body, ())
        case "RFQ", {"instrument": str(instrument), "qty": str(qty)} as body:
            return f"asks a price for {_text(qty)} {_text(instrument)}{_rest(body, ('instrument', 'qty'))}"
        case "QUOTE", {"bid": str(bid), "ask": str(ask)} as body:
            until = envelope.valid_until_ms
            good = f", good until {clock_time(until)}" if until is not None else ""
            return f"bids {_text(bid)}, offers {_text(ask)}{good}{_rest(body, _QUOTED)}"
        case "HIT", {"side": "buy" | "sell" as side, "px": str(px)} as body:
            return f"{side}s at {_text(px)}{_rest(body, ('side', 'px', 'qty'))}"
        case "CONFIRM", {"trade_ref": str(ref)} as body:
            dealt = [_text(str(body[name])) for name in ("side", "qty", "instrument", "px") if name in body]
            return f"confirms {_text(ref)}: {' '.join(dealt)}{_rest(body, _CONFIRMED)}"
        case "END", {"reason": str(reason)} as body:
            return f"hangs up: {_text(reason)}{_rest(body, ('reason',))}"
        case "END", body:
            return "hangs up" + _rest(body, ())
        case _, body:
            return _json(body)


def _rest(body: Mapping[str, Any], told: tuple[str, ...]) -> str:
    left = {name: value for name, value in body.items() if name not in told}
    return f"  {_json(left)}" if left else ""


def _json(value: object) -> str:
    return _text(msgspec.json.encode(value).decode())


def _text(text: str) -> str:
    text = printable(text)
    return text if len(text) <= _WIDEST else text[: _WIDEST - 1] + "…"


def printable(text: str) -> str:
    """The text with all that a terminal would not simply show (escapes, controls, bidi marks) as \\u escapes."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in text)


def plain_json(text: bytes) -> str:
    """The same JSON, with what a terminal would not simply show as JSON's own escapes: whoever wrote into it can't
    steer the terminal. Line feeds are those between its members; in its texts they are escapes already."""
    shown = text.decode()
    if shown.replace("\n", "").isprintable():
        return shown
    return "".join(c if c.isprintable() or c == "\n" else _escape(c) for c in shown)


def _escape(character: str) -> str:
    units = character.encode("utf-16-be")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))


def clock_time(ms: int) -> str:
    """The local time of day of a Unix time in milliseconds."""
    try:
        return datetime.fromtimestamp(ms / 1000).astimezone().strftime("%H:%M:%S.%f")[:-3]
    except (ValueError, OverflowError, OSError):
        return str(ms)
