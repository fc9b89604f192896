"""A dealer's own copy of one conversation: each row is checked before it is believed.

1. A row enters when its envelope reads, its signature verifies, it names the row before it, and the chain
   value that the wire showed is the one computed here. Anything else is a WireFault.
2. A row that is here already is a repeat and is dropped; another row at its place is a WireFault.
3. It knows no connection: the caller fetches what is missing (`next_n` says from where).

Source: wire.md, Chain and Life of a call.
"""

from collections.abc import Collection

import msgspec

from broker.wire.call import advance, in_turn, phase_at, speaker
from broker.wire.chain import chain_next, chain_start
from broker.wire.envelope import Envelope, answers_late, bootstrap, read_envelope
from broker.wire.ids import Pk, Sig
from broker.wire.keys import verify
from broker.wire.refusals import Refusal
from gateways.client.errors import WireFault


class Row(msgspec.Struct, frozen=True):
    """One envelope as the wire accepted it. `accepted_at` in Unix milliseconds, where the wire told it.

    `late`: it takes up a quote whose `valid_until_ms` had passed when the wire accepted it.
    """

    envelope: Envelope
    sig: Sig
    chain: str
    accepted_at: int | None
    late: bool = False


class Transcript:
    """Rows from n = 0 on. `wire`: keys whose END counts as the wire's own, beside what CALL's body.wire names."""

    def __init__(self, conv: str, wire: Collection[Pk]) -> None:
        self.conv = conv
        self.rows: list[Row] = []
        self._wire = frozenset(wire)
        self._chain = chain_start(conv)

    @property
    def next_n(self) -> int:
        """The n that the next envelope must have."""
        return len(self.rows)

    @property
    def prev_sig(self) -> str:
        """The prev_sig that the next envelope must carry."""
        return self.rows[-1].sig if self.rows else bootstrap(self.conv)

    @property
    def end(self) -> Envelope | None:
        """The END, once it is here."""
        if self.rows and self.rows[-1].envelope.type == "END":
            return self.rows[-1].envelope
        return None

    def speaks_next(self) -> Pk:
        """Whose turn it is, END aside: even n is the caller's. Asks for a row 0."""
        first = self.rows[0].envelope
        return Pk(speaker(self.next_n, first.sender, first.to))

    def holds(self, n: int, sig: str) -> bool:
        """Whether row n is here and carries this signature."""
        return n < self.next_n and self.rows[n].sig == sig

    def admit(self, raw: bytes, sig: str, chain: str | None, accepted_at: int | None) -> Row | None:
        """Check the next row and keep it; None for a repeat. Raises WireFault; LookupError for a gap."""
        envelope = read_envelope(raw)
        if isinstance(envelope, Refusal):
            raise WireFault(f"the wire showed an envelope that breaks its rules: {envelope.message}")
        if envelope.conv != self.conv:
            raise self._fault(envelope.n, f"the envelope belongs to {envelope.conv}")
        if envelope.n < self.next_n:
            if self.rows[envelope.n].sig != sig:
                raise self._fault(envelope.n, "the wire shows two different envelopes at this place")
            return None
        if envelope.n > self.next_n:
            raise LookupError(f"envelope {envelope.n} came before {self.next_n}")
        return self._append(envelope, sig, chain, accepted_at)

    def _append(self, envelope: Envelope, sig: str, chain: str | None, accepted_at: int | None) -> Row:
        self._check_place(envelope)
        if envelope.prev_sig != self.prev_sig:
            raise self._fault(envelope.n, "prev_sig is not the signature before it")
        if not verify(envelope.sender, envelope.canonical, sig):
            raise self._fault(envelope.n, "the signature does not verify")
        due = self._chain if envelope.n == 0 else chain_next(self._chain, sig)
        if chain is not None and chain != due.hex():
            raise self._fault(envelope.n, f"the wire says chain {chain}, but it is {due.hex()}")
        late = self._is_late(envelope, accepted_at)
        row = Row(envelope, Sig(sig), due.hex(), accepted_at, late)
        self._chain = due
        self.rows.append(row)
        return row

    def _check_place(self, envelope: Envelope) -> None:
        """Type, parties and turn: what the wire checks before it accepts."""
        n, phase = envelope.n, "ended" if self.end is not None else phase_at(envelope.n)
        moved = advance(phase, envelope.type)
        if isinstance(moved, Refusal):
            raise self._fault(n, moved.message)
        if n == 0:
            return
        first = self.rows[0].envelope
        parties = (first.sender, first.to)
        if envelope.to not in parties:
            raise self._fault(n, "it is addressed to neither party")
        if envelope.sender in parties:
            if not in_turn(n, envelope.type, envelope.sender, *parties):
                raise self._fault(n, "the other party was to speak")
        elif envelope.type != "END" or envelope.sender not in (*self._wire, first.body_wire):
            raise self._fault(n, "it is from neither party nor this wire")

    def _is_late(self, envelope: Envelope, accepted_at: int | None) -> bool:
        answered = next(
            (row.envelope for row in reversed(self.rows) if row.envelope.sender == envelope.to), None
        )
        if answered is None or accepted_at is None:
            return False
        return answers_late(envelope.type, answered.valid_until_ms, accepted_at)

    def _fault(self, n: int, why: str) -> WireFault:
        return WireFault(f"conversation {self.conv}, n = {n}: {why}")
