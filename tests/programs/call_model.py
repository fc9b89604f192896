"""The wire's rules for one conversation, written a second time and as plainly as can be: what must be answered.

1. It is written from the law (docs/reference/wire.md), not from the broker, and shares nothing with it but hashes.
2. It predicts; `take` notes what was accepted. Times: `at` wall milliseconds, `mono` seconds of the test's clock.
"""

import hashlib
import math
from typing import Any

import msgspec

from tests.support.broker import Party

SKEW_S = 300
WINDOW_S = 10.0
RING_S = 30.0
IDLE_S = 3600.0


class Request(msgspec.Struct, frozen=True):
    """One send_call or send_env, as a test sends it."""

    params: dict[str, Any]
    sender: Party
    good_sig: bool = True
    this_wire: bool = True
    known_desks: bool = True

    @property
    def tool(self) -> str:
        return "send_call" if "to_code" in self.params else "send_env"

    @property
    def envelope(self) -> dict[str, Any]:
        members: dict[str, Any] = self.params["envelope"]
        return members

    @property
    def sig(self) -> str:
        return str(self.params["sig"])


class Row(msgspec.Struct, frozen=True):
    """An accepted envelope."""

    envelope: dict[str, Any]
    sig: str
    chain: str
    at: int
    mono: float

    @property
    def type(self) -> str:
        return str(self.envelope["type"])


class Moment(msgspec.Struct, frozen=True):
    """When a request is judged."""

    wall_ms: int
    mono: float


class Call:
    """One conversation: its rows, and the tokens that they spent."""

    def __init__(self, conv: str, caller: Party, called: Party, limit: int) -> None:
        self.conv = conv
        self.caller = caller
        self.called = called
        self.limit = limit
        self.rows: list[Row] = []
        self.spent: list[float] = []
        self.lag_s = 0.0
        """How much later than due the wire's END may come: by up to a minute after a commit that landed late."""

    @property
    def ended(self) -> bool:
        return bool(self.rows) and self.rows[-1].type == "END"

    @property
    def reason(self) -> Any:
        return self.rows[-1].envelope["body"].get("reason")

    def head(self, length: int | None = None) -> dict[str, Any]:
        """The head, or what it was when there were `length` rows."""
        rows = self.rows[:length]
        return {"n": len(rows) - 1, "sig": rows[-1].sig, "chain": rows[-1].chain}

    def speaker(self, n: int) -> Party:
        return self.called if n % 2 else self.caller

    def stored(self, request: Request) -> Row | None:
        """The row that this very envelope became."""
        for row in self.rows:
            if row.envelope == request.envelope and row.sig == request.sig:
                return row
        return None

    def judge_call(self, request: Request, now: Moment) -> str:
        """What a send_call for this conv is answered."""
        if not request.this_wire:
            return "bad_envelope"
        if self.stored(request) is not None:
            return "replayed"
        if not request.known_desks:
            return "unknown_desk"
        if not request.good_sig:
            return "bad_signature"
        if self.rows:
            if request.sender is not self.caller:
                return "conv_exists"
            return "conv_ended" if self.ended else "conflict"
        if request.envelope["prev_sig"] != hashlib.sha256(b"cdp:" + self.conv.encode()).hexdigest():
            return "bad_prev_sig"
        return "clock_skew" if skewed(request, now) else "accepted"

    def judge_env(self, request: Request, now: Moment, length: int | None = None) -> str:
        """What a send_env is answered; with `length` where only so many rows were known."""
        rows = self.rows[:length]
        if not rows:
            return "unknown_conv"
        if any(row.envelope == request.envelope and row.sig == request.sig for row in rows):
            return "replayed"
        if request.sender not in (self.caller, self.called):
            return "not_a_party"
        if not request.good_sig:
            return "bad_signature"
        if rows[-1].type == "END":
            return "conv_ended"
        return self._place(request, now, rows)

    def _place(self, request: Request, now: Moment, rows: list[Row]) -> str:
        envelope = request.envelope
        n, type = envelope["n"], envelope["type"]
        if n != len(rows):
            return "conflict"
        if type != "END" and request.sender is not self.speaker(n):
            return "out_of_turn"
        if envelope["to"] not in (self.caller.pk, self.called.pk):
            return "bad_envelope"
        if type != "END" and (type == "PICKUP") != (n == 1):
            return "bad_envelope"
        if type == "CALL":
            return "bad_envelope"
        if envelope["prev_sig"] != rows[-1].sig:
            return "bad_prev_sig"
        if skewed(request, now):
            return "clock_skew"
        if type != "END" and self.wait_ms(now.mono) > 0:
            return "rate_limited"
        return "accepted"

    def wait_ms(self, mono: float) -> int:
        """Milliseconds until a token is back."""
        if len(self.spent) < self.limit:
            return 0
        left = self.spent[-self.limit] + WINDOW_S - mono
        return 0 if left <= 1e-6 else math.ceil((left - 1e-6) * 1000)

    def take(self, envelope: dict[str, Any], sig: str, now: Moment) -> Row:
        """The row that an accepted envelope becomes, appended."""
        link = b"cdp:" + self.conv.encode()
        if self.rows:
            link = bytes.fromhex(self.rows[-1].chain + sig)
        at = max(now.wall_ms, self.rows[-1].at) if self.rows else now.wall_ms
        row = Row(envelope, sig, hashlib.sha256(link).hexdigest(), at, now.mono)
        self.rows.append(row)
        if row.type != "END":
            self.spent.append(now.mono)
        return row

    def restarted(self, start: Moment) -> None:
        """The process is another one: what was accepted is placed by the wall clock at the start."""
        counted = [row for row in self.rows if row.type != "END"]
        self.spent = [start.mono - max(0, start.wall_ms - row.at) / 1000 for row in counted]

    def due(self, ready: float) -> float:
        """When the wire will end it, unless something is accepted before; seconds of the test's clock."""
        limit = RING_S if len(self.rows) == 1 else IDLE_S
        return max(self.rows[-1].mono, ready) + limit


def skewed(request: Request, now: Moment) -> bool:
    """Whether ts is more than 300 s from the wire's clock."""
    return abs(int(request.envelope["ts"]) - now.wall_ms // 1000) > SKEW_S
