"""What must be true, whatever breaks: judged at each commit, each answer and each event, and over all at the end.

The ledger hears of commits where the broker's own listener does, so it holds the one order there is. Everything
that a dealer is told is compared with it. It knows nothing of how the broker comes to its answers.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from broker.store.port import Event, Unit
from broker.wire.envelope import bootstrap
from broker.wire.ids import ConvId

LIMIT, WINDOW_S, OPEN = 30, 10.0, 8
GRAIN_S = 0.0011
"""Clocks in whole milliseconds differ by as much from the loop's."""


class Broken(Exception):
    """Something that must be true is not."""


class Row(msgspec.Struct, frozen=True):
    """A committed envelope."""

    n: int
    type: str
    sender: str
    sig: str
    chain: str
    at: int
    mono: float
    """When it was decided, on the clock that never steps."""
    life: int
    """Of which process."""
    body: dict[str, Any]


class Call(msgspec.Struct):
    """A conversation as committed."""

    conv: str
    caller: str
    called: str
    rows: list[Row] = msgspec.field(default_factory=list)

    @property
    def ended(self) -> bool:
        return self.rows[-1].type == "END"

    def row(self, n: int) -> Row | None:
        return self.rows[n] if n < len(self.rows) else None


class Ledger:
    """All that was committed, and what dealers were told."""

    def __init__(self, wire: str, mono: Callable[[], float], ring_s: float, idle_s: float) -> None:
        self._times = {"no_answer": ring_s, "idle": idle_s}
        self.calls: dict[str, Call] = {}
        self.streams: dict[str, list[tuple[str, str, int, str, bool, int]]] = {}
        """Stream → (kind, conv, n, sig, own, at) by position - 1."""
        self.open: dict[str, list[str]] = {}
        """Key → the conversations that count for it, oldest first."""
        self.acknowledged: dict[tuple[str, int], tuple[str, str, int]] = {}
        self.refused: dict[str, str] = {}
        """Sig → the code of an answer that says that it was certainly not written."""
        self.checks: Counter[str] = Counter()
        self.life = 0
        self.began = 0.0
        """When this process was ready: a restart ends no call."""
        self.doubted: set[str] = set()
        """Conversations with some commit in doubt: of it a process may know the time by the wall clock alone."""
        self.forward: list[tuple[float, float]] = []
        """(when, by how many seconds) the wall clock stepped forward."""
        self.small = 0.0
        """Seconds of all its steps of less than one: they are left alone, and move an END either way."""
        self.fault: Broken | None = None
        """The first thing found where nobody could be told: within a commit."""
        self._wire = wire
        self._mono = mono
        self._begun: dict[tuple[str, int, int], float] = {}

    def check(self, what: str, true: bool, *shown: object) -> None:
        """Count a check; raises Broken where it is not true."""
        self.checks[what] += 1
        if not true:
            raise Broken(f"{what}: {' '.join(map(str, shown))}")

    # ── commits ──

    def begun(self, unit: Unit, doubt: bool) -> None:
        """The store was asked to write a unit: its envelope was decided now. `doubt`: it will be in doubt."""
        if unit.append is not None:
            if doubt:
                self.doubted.add(unit.append.log.removeprefix("conv:"))
            append = unit.append
            self._begun.setdefault((append.log, append.n, hash(append.data) ^ append.at), self._mono())

    def committed(self, events: Sequence[Event]) -> None:
        """The store's listener."""
        for event in events:
            try:
                self._event(event)
            except Broken as broken:
                self.fault = self.fault or broken

    def _event(self, event: Event) -> None:
        stream = self.streams.setdefault(event.stream, [])
        self.check("positions without a gap", event.position == len(stream) + 1, event.stream, event.position)
        if event.kind not in ("ring", "env", "end"):
            stream.append((event.kind, "", 0, "", event.own, event.at))
            return
        row = msgspec.json.decode(event.data)
        conv, n, sig = row["conv"], row["n"], row["sig"]
        call = self.calls.get(conv)
        if call is None or n >= len(call.rows):
            self._row(conv, row, event)
        else:
            self.check("no fork", call.rows[n].sig == sig, conv, n)
        stream.append((event.kind, conv, n, sig, event.own, event.at))

    def _row(self, conv: str, row: dict[str, Any], event: Event) -> None:
        envelope, n, sig = row["envelope"], row["n"], row["sig"]
        call = self.calls.get(conv)
        if call is None:
            call = self.calls[conv] = Call(conv, envelope["from"], envelope["to"])
        rows = call.rows
        self.check("no gap", n == len(rows) == envelope["n"] and envelope["conv"] == conv, conv, n, len(rows))
        prev_sig = rows[-1].sig if rows else bootstrap(ConvId(conv))
        self.check("each names the one before", envelope["prev_sig"] == prev_sig, conv, n)
        link = bytes.fromhex(rows[-1].chain + sig) if rows else b"cdp:" + conv.encode()
        self.check("chain", row["chain"] == hashlib.sha256(link).hexdigest(), conv, n)
        self.check("times rise", not rows or event.at >= rows[-1].at, conv, n)
        self._turn(call, n, envelope)
        at_begin = self._begun.get((f"conv:{conv}", n, hash(event.data) ^ event.at))
        self.check("what is committed was asked for", at_begin is not None, conv, n)
        self.check("refused is not written", sig not in self.refused, conv, n, self.refused.get(sig))
        assert at_begin is not None
        rows.append(
            Row(
                n,
                envelope["type"],
                envelope["from"],
                sig,
                row["chain"],
                event.at,
                at_begin,
                self.life,
                envelope["body"],
            )
        )
        self._window(call)
        self._places(call)

    def _turn(self, call: Call, n: int, envelope: dict[str, Any]) -> None:
        kind, sender = envelope["type"], envelope["from"]
        self.check("nothing after END", not call.rows or not call.ended, call.conv, n)
        self.check("CALL is first", (kind == "CALL") == (n == 0), call.conv, n, kind)
        self.check("PICKUP or END is second", n != 1 or kind in ("PICKUP", "END"), call.conv, kind)
        if kind == "END":
            good = sender in (call.caller, call.called, self._wire)
        else:
            good = sender == (call.called if n % 2 else call.caller)
        self.check("alternation", good, call.conv, n, kind)

    def _window(self, call: Call) -> None:
        """No 10 s hold more than 30 counted: by the clock that never steps, but for what a process can't know.

        Of rows accepted by an earlier process, and after a commit in doubt, only the wall clock tells.
        """
        counted = [row for row in call.rows if row.type != "END"]
        if len(counted) <= LIMIT or call.rows[-1].type == "END":
            return
        late, early = counted[-1], counted[-1 - LIMIT]
        apart = late.mono - early.mono
        if call.conv in self.doubted or late.life != early.life:
            apart += self._stepped(early, late)
        self.check("30 in 10 s", apart >= WINDOW_S - GRAIN_S, call.conv, late.n, f"{apart:.4f} s")

    def _stepped(self, early: Row, late: Row) -> float:
        """How far the wall clock stepped forward between two rows, seconds."""
        return sum(by for when, by in self.forward if early.mono - 1 <= when <= late.mono + 1)

    def stepped(self, at: float, by: float) -> None:
        """The wall clock steps by so many seconds."""
        self.forward.append((at, max(0.0, by)))
        if abs(by) < 1:
            self.small += abs(by)

    def _places(self, call: Call) -> None:
        row = call.rows[-1]
        if row.type == "CALL":
            self._take(call.caller, call)
        elif row.type == "PICKUP":
            self._take(call.called, call)
        elif row.type == "END":
            if row.sender == self._wire:
                self._ended(call, row)
            for key in (call.caller, call.called):
                if call.conv in self.open.get(key, ()):
                    self.open[key].remove(call.conv)

    def _take(self, key: str, call: Call) -> None:
        convs = self.open.setdefault(key, [])
        convs.append(call.conv)
        # One that was in doubt and landed after its place was given up is counted from then on.
        late = len(self.doubted.intersection(convs))
        self.check("8 at once", len(convs) <= OPEN + late, key[:8], len(convs))

    def _ended(self, call: Call, row: Row) -> None:
        """The wire's END: not before its time, and for its reason."""
        reason, before = row.body["reason"], call.rows[-2]
        if reason in self._times:
            since = row.mono - max(before.mono, self.began) + self.small
            good = (reason == "no_answer") == (row.n == 1)
            # A commit that was in doubt is placed by the wall clock, once another actor reads it.
            good = good and (since >= self._times[reason] - 5 * GRAIN_S or call.conv in self.doubted)
            self.check("no END before its time", good, call.conv, row.n, reason, since)
            return
        convs = self.open.get(row.body["by"], [])
        self.check("evicted is an open one", call.conv in convs, call.conv)
        self.check("the oldest is evicted", len(convs) < OPEN or convs[-1] != call.conv, call.conv)

    def doubt_since(self, mono: float) -> None:
        """Commits that were asked for since then may have been given up."""
        self.doubted.update(
            log.removeprefix("conv:") for (log, _, _), at in self._begun.items() if at >= mono
        )

    # ── what dealers are told ──

    def stored(self, conv: str, n: int, sig: str) -> bool:
        """Whether this very envelope is committed."""
        call = self.calls.get(conv)
        row = call.row(n) if call is not None else None
        return row is not None and row.sig == sig

    def acknowledge(self, conv: str, n: int, sig: str, answer: dict[str, Any], before: bool) -> None:
        """An acknowledgement. `before`: the envelope was committed before it was sent this time."""
        row = self.calls[conv].row(n) if conv in self.calls else None
        self.check("acknowledged is committed", row is not None and row.sig == sig, conv, n)
        assert row is not None
        told = (answer["conv"], answer["n"], answer["chain"], answer["accepted_at"])
        self.check("acknowledged as committed", told == (conv, n, row.chain, row.at), conv, n, told)
        self.check("a replay says so", answer.get("replayed", False) or not before, conv, n)
        known = self.acknowledged.setdefault((conv, n), (sig, row.chain, row.at))
        self.check("one acknowledgement", known == (sig, row.chain, row.at), conv, n)

    def refuse(self, conv: str, n: int, sig: str, code: str, before: bool, sure: bool) -> None:
        """A refusal. `sure`: these bytes were sent once only, so that they certainly are not written."""
        free = ["overloaded", "unavailable"]
        if (
            conv,
            n,
        ) not in self.acknowledged:  # it was in doubt, has landed unseen, and the store hangs again
            free.append("in_doubt")
        self.check("what is stored is replayed", not before or code in free, conv, n, code)
        if sure and code not in ("in_doubt", "rate_limited", "overloaded", "desk_busy", "unavailable"):
            self.check("refused is not written", not self.stored(conv, n, sig), conv, n, code)
            self.refused[sig] = code
        if sure and code == "unavailable":
            self.check("unavailable is not written", not self.stored(conv, n, sig), conv, n)

    def read(self, stream: str, position: int, kind: str, params: dict[str, Any]) -> None:
        """An event that a reader got at a position of its stream."""
        events = self.streams.get(stream, [])
        self.check("only what is committed is delivered", position <= len(events), stream[:11], position)
        mine = (
            kind,
            params.get("conv", ""),
            params.get("n", 0),
            params.get("sig", ""),
            params["own"],
            params.get("accepted_at", 0),
        )
        if kind in ("ring", "env", "end"):
            self.check("one order for all readers", mine == events[position - 1], stream[:11], position, kind)

    def kept(self, rows_of: dict[str, list[dict[str, Any]]]) -> None:
        """What the store gives at the end, by conversation: all that was committed, and nothing else."""
        for conv, call in self.calls.items():
            stored = [(row["n"], row["sig"], row["chain"], row["accepted_at"]) for row in rows_of[conv]]
            known = [(row.n, row.sig, row.chain, row.at) for row in call.rows]
            self.check("committed is kept", stored == known, conv, len(stored), len(known))
        for (conv, n), (sig, _, _) in self.acknowledged.items():
            self.check("nothing acknowledged is lost", rows_of[conv][n]["sig"] == sig, conv, n)
