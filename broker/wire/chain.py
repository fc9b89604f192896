"""chain[n], the stored row's text, and the walk over a whole transcript, offline (wire.md, Chain).

1. A transcript proves itself: keys, signatures and prev_sig are all in it. Only a wire's END may need a key
   from outside.
2. The walk goes forward and stops at the first broken step, which it names.
3. What is not signed (accepted_at, chain, n of the row) is compared where it is present and believed nowhere.
"""

import hashlib
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

import msgspec

from broker.wire.call import in_turn, type_fault
from broker.wire.canonical import encode, members, read
from broker.wire.envelope import Envelope, answers_late, bootstrap, read_envelope
from broker.wire.grammar import shown
from broker.wire.ids import SIG
from broker.wire.keys import verify
from broker.wire.refusals import Refusal


def chain_start(conv: str) -> bytes:
    """chain[0], 32 bytes: sha256("cdp:" || conv)."""
    return hashlib.sha256(b"cdp:" + conv.encode()).digest()


def chain_next(prev: bytes, sig: str) -> bytes:
    """chain[n] of envelope n ≥ 1, 32 bytes: sha256(chain[n-1] || sig[n]), `sig` being 128 hex characters."""
    return hashlib.sha256(prev + bytes.fromhex(sig)).digest()


def row_text(
    conv: str, n: int, sig: str, chain: str, canonical: bytes, *, resubmitted: bool = False
) -> bytes:
    """A conversation's stored row: canonical JSON without accepted_at, which the log's entry holds beside it."""
    return b'{"chain":"%b","conv":"%b","envelope":%b,"n":%d%b,"sig":"%b"}' % (
        chain.encode(),
        conv.encode(),
        canonical,
        n,
        b',"resubmitted":true' if resubmitted else b"",
        sig.encode(),
    )


def receipt_text(wire: str, conv: str, n: int, sig: str, chain: str, accepted_at: int) -> bytes:
    """What the wire signs in a receipt: canonical {do, wire, conv, n, sig, chain, accepted_at}."""
    return encode(
        {
            "do": "receipt",
            "wire": wire,
            "conv": conv,
            "n": n,
            "sig": sig,
            "chain": chain,
            "accepted_at": accepted_at,
        }
    )


class Broken(msgspec.Struct, frozen=True):
    """The first step that does not hold. `n`: the number it should have; `line`: from 1.

    `code` is a refusal's, or bad_chain, unknown_wire_key.
    """

    n: int
    line: int
    code: str
    message: str


class Warned(msgspec.Struct, frozen=True):
    """Something that proves, but that a dealer should see."""

    n: int
    message: str


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What a walk found. `rows`: how many hold, from the first; the rest describes these.

    `ended`: the END's reason, fit to be shown ("" where it gives none); None while it is open. `chain`: hex, of the
    last row that holds. `received`: for each row the ms at which the wire's receipt says it was received, or None:
    unproven.
    """

    ok: bool
    rows: int
    conv: str | None = None
    parties: tuple[str, ...] = ()
    ended: str | None = None
    ended_by_wire: bool = False
    chain: str | None = None
    broken: Broken | None = None
    warnings: tuple[Warned, ...] = ()
    received: tuple[int | None, ...] = ()


class _Row(msgspec.Struct, frozen=True):
    """A line as read: nothing in it has been believed yet."""

    envelope: Envelope
    sig: str
    told: Mapping[str, Any]
    """n, conv, chain, accepted_at and receipt, where the line has them."""


class _Break(Exception):
    """Ends the walk at a step."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


_COMPARED: Final = ("n", "conv", "chain", "accepted_at", "canonical", "receipt")
_PASSED_OVER: Final = frozenset({"resubmitted", "replayed", "cursor", "own"})
"""What the wire may say beside a row, and nothing here can prove."""


def verify_transcript(
    lines: Iterable[bytes | str | Mapping[str, Any]], wire_pks: Collection[str] = ()
) -> Verdict:
    """Walk a transcript: an export's JSON Lines, or the rows of read_conv.

    A line has `envelope` and `sig`; n, conv, chain, accepted_at, canonical and receipt are compared where present, any
    other member that no export has breaks it. Empty lines are passed over. `wire_pks`: keys of wires that the caller
    trusts, for the wire's END and for receipts; what CALL's body.wire names counts too. Never raises for what a
    transcript holds.
    """
    walk = _Walk(frozenset(wire_pks))
    for number, line in enumerate(lines, 1):
        if isinstance(line, str | bytes) and not line.strip():
            continue
        try:
            walk.step(line)
        except _Break as broken:
            return walk.verdict(Broken(walk.due, number, broken.code, broken.message))
    if walk.due == 0:
        return walk.verdict(Broken(0, 0, "not_found", "there is no envelope"))
    return walk.verdict(None)


def _read_row(line: bytes | str | Mapping[str, Any]) -> _Row:
    """The line's members. Breaks with the code of what it can't read."""
    raw, told = _told_of(line) if isinstance(line, Mapping) else _told_in(line)
    envelope = read_envelope(raw)
    if isinstance(envelope, Refusal):
        path = envelope.detail.get("path")
        raise _Break(envelope.code, f"{path}: {envelope.message}" if path else envelope.message)
    sig = told.pop("sig", None)
    if not isinstance(sig, str) or SIG.fullmatch(sig) is None:
        raise _Break("bad_signature", "sig is not 128 lowercase hex characters")
    return _Row(envelope, sig, told)


def _told_in(line: bytes | str) -> tuple[bytes, dict[str, Any]]:
    """The envelope's text and the other members of a line of JSON."""
    found = members(line.encode("utf-8", "surrogatepass") if isinstance(line, str) else line)
    if isinstance(found, Refusal):
        raise _Break(found.code, found.message)
    told: dict[str, Any] = {}
    for name in _known(found):
        value = read(bytes(found[name]), code="bad_request", at=name)
        if isinstance(value, Refusal):
            raise _Break(value.code, value.message)
        told[name] = value
    return bytes(found["envelope"]), told


def _told_of(row: Mapping[str, Any]) -> tuple[bytes, dict[str, Any]]:
    """The same of a row that was read elsewhere."""
    told = {name: row[name] for name in _known(row)}
    try:
        return encode(row["envelope"]), told
    except ValueError as error:
        raise _Break("bad_envelope", str(error)) from error


def _known(row: Mapping[str, Any]) -> list[str]:
    """The members to compare; breaks where the envelope is missing or a member is none of an export's."""
    if "envelope" not in row:
        raise _Break("bad_envelope", "the line has no envelope")
    told = [name for name in row if name != "envelope" and name not in _PASSED_OVER]
    for name in told:
        if name != "sig" and name not in _COMPARED:
            raise _Break("bad_request", f"{shown(str(name))}: no member of an export")
    return told


class _Walk:
    """Where the walk stands: what the rows so far have fixed."""

    def __init__(self, wires: frozenset[str]) -> None:
        self.wires = wires
        self.due = 0
        self.first: Envelope | None = None
        self.prev_sig = ""
        self.chain = b""
        self.ended: str | None = None
        self.ended_by_wire = False
        self.warnings: list[Warned] = []
        self.received: list[int | None] = []
        self.spoken: dict[str, Envelope] = {}

    def step(self, line: bytes | str | Mapping[str, Any]) -> None:
        row = _read_row(line)
        envelope = row.envelope
        first = self.first if self.first is not None else envelope
        if not verify(envelope.sender, envelope.canonical, row.sig):
            raise _Break("bad_signature", "the signature does not verify over the canonical text")
        if self.ended is not None:
            raise _Break("conv_ended", "nothing stands after an END")
        if envelope.conv != first.conv:
            raise _Break("bad_envelope", "conv: another conversation's envelope")
        if envelope.n != self.due:
            raise _Break("conflict", f"n is {envelope.n} where {self.due} is due")
        prev_sig = self.prev_sig if self.due else bootstrap(envelope.conv)
        if envelope.prev_sig != prev_sig:
            raise _Break("bad_prev_sig", "prev_sig is not the previous envelope's signature")
        wires = self.wires | {first.body_wire} if first.body_wire is not None else self.wires
        by_wire = self.judge_parties(envelope, first, wires)
        chain = chain_next(self.chain, row.sig) if self.due else chain_start(envelope.conv)
        self.compare(row, chain)
        self.note(row, chain, wires)
        self.first, self.prev_sig, self.chain = first, row.sig, chain
        self.due += 1
        if envelope.type == "END":
            reason = envelope.body.get("reason")
            self.ended = shown(reason) if isinstance(reason, str) else ""
            self.ended_by_wire = by_wire

    def judge_parties(self, envelope: Envelope, first: Envelope, wires: Collection[str]) -> bool:
        """Parties, turn and type. True: the wire's own END."""
        parties = (first.sender, first.to)
        by_wire = envelope.sender not in parties
        if by_wire and envelope.type != "END":
            raise _Break("not_a_party", "from is not a party of this conversation")
        if by_wire and envelope.sender not in wires:
            raise _Break("unknown_wire_key", "an END by a key that no CALL and no caller names as the wire's")
        if envelope.to not in parties or envelope.to == envelope.sender:
            raise _Break("not_a_party", "to is not the other party of this conversation")
        if not by_wire and not in_turn(envelope.n, envelope.type, envelope.sender, *parties):
            raise _Break("out_of_turn", "the other party was to speak")
        fault = type_fault(self.due, envelope.type)
        if fault is not None:
            raise _Break(fault.code, f"type: {fault.message}")
        return by_wire

    def compare(self, row: _Row, chain: bytes) -> None:
        """What the line says beside the envelope must agree with it."""
        told = row.told
        if "n" in told and (type(told["n"]) is not int or told["n"] != row.envelope.n):
            raise _Break("bad_request", "the line's n is not the envelope's")
        if "conv" in told and told["conv"] != row.envelope.conv:
            raise _Break("bad_request", "the line's conv is not the envelope's")
        if "chain" in told and told["chain"] != chain.hex():
            raise _Break("bad_chain", "chain is not the hash of this transcript")
        if "canonical" in told and told["canonical"] != row.envelope.canonical.decode():
            raise _Break("bad_envelope", "the line's canonical text is not the envelope's")
        if "accepted_at" in told and (type(told["accepted_at"]) is not int or told["accepted_at"] < 0):
            raise _Break("bad_request", "accepted_at is not in Unix milliseconds")

    def note(self, row: _Row, chain: bytes, wires: Collection[str]) -> None:
        """Warnings and receipts of a row that holds."""
        envelope = row.envelope
        self.received.append(
            receipt_time(row.told.get("receipt"), envelope, row.sig, chain.hex(), wires, row.told)
        )
        answered = self.spoken.get(envelope.to)
        until = answered.valid_until_ms if answered is not None else None
        at_ms = row.told.get("accepted_at", envelope.ts * 1000)
        if answers_late(envelope.type, until, at_ms):
            late = at_ms - until if until is not None else 0
            self.warnings.append(Warned(envelope.n, f"{envelope.type} came {late} ms after valid_until_ms"))
        if envelope.type != "CHAT":
            # A chat in between does not renew what was said before it.
            self.spoken[envelope.sender] = envelope

    def verdict(self, broken: Broken | None) -> Verdict:
        first = self.first
        return Verdict(
            ok=broken is None,
            rows=self.due,
            conv=first.conv if first is not None else None,
            parties=(first.sender, first.to) if first is not None else (),
            ended=self.ended,
            ended_by_wire=self.ended_by_wire,
            chain=self.chain.hex() if first is not None else None,
            broken=broken,
            warnings=tuple(self.warnings),
            received=tuple(self.received),
        )


def receipt_time(
    receipt: Any, envelope: Envelope, sig: str, chain: str, wires: Collection[str], told: Mapping[str, Any]
) -> int | None:
    """When the wire says that it received this row, ms; None: unproven.

    `receipt` is what the tool answers, {receipt: {do, wire, conv, n, sig, chain, accepted_at}, sig}: the wire's
    signature over the inner object. It counts only by a known key of the wire, only for exactly this row, and only
    where the line's own accepted_at, if it has one, is the same.
    """
    if not isinstance(receipt, Mapping) or not isinstance(receipt.get("receipt"), Mapping):
        return None
    said, proof = receipt["receipt"], receipt.get("sig")
    wire, at = said.get("wire"), said.get("accepted_at")
    if not isinstance(wire, str) or wire not in wires or not isinstance(proof, str):
        return None
    if type(at) is not int or told.get("accepted_at", at) != at:
        return None
    try:
        text = receipt_text(wire, envelope.conv, envelope.n, sig, chain, at)
        exact = encode(dict(said)) == text
    except ValueError:
        return None
    return at if exact and verify(wire, text, proof) else None
