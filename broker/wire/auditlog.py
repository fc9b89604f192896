"""The form of the audit log (network.md, Audit): rows in a chain of hashes, each signed by the wire, and the head.

1. hash_n = sha256(hash_{n-1} || canonical text of row n). Before row 1 stand 32 zero bytes.
2. A row's seal, and the head, are the wire's signature over its number and hash, behind a name that no other signed
   text begins with. So whoever has no key of the wire's can't link rows anew: the first one that was touched is found.
3. The verifier names each row that does not hold once, and goes on from what the next one says itself.
"""

import hashlib
from collections.abc import Collection, Mapping
from typing import Any, Final

import msgspec

from broker.wire.canonical import encode, parse
from broker.wire.ids import PK, SIG
from broker.wire.keys import SigningKey, verify
from broker.wire.refusals import Refusal

NAME: Final = b"turret audit head\n"
"""What each signed text begins with: no JSON does."""
NOTHING: Final = "0" * 64
"""The hash before the first row."""
ALARM: Final = "audit_alarm"
"""The kind of a row that says that the log was not as it was left."""
RESTORED: Final = "restored"
"""The kind of a row that says that the store was made of a backup."""
SHOWN: Final = 20
"""Faults that are listed; all are counted."""
IN_STORE: Final = "the head in the store"
BESIDE: Final = "the head beside the store"
KNOWN: Final = "the head that the broker remembers"
_SEAL: Final = ("hash", "sealed_at", "wire", "sig")


class AuditHead(msgspec.Struct, frozen=True):
    """So many rows, the last one's hash, when (wall ms) and by which of the wire's keys that was signed."""

    count: int
    hash: str
    at: int
    wire: str
    sig: str

    def is_signed(self, wires: Collection[str]) -> bool:
        """Whether one of these keys of the wire signed it."""
        return self.wire in wires and verify(
            self.wire, _text(self.count, self.hash, self.at, self.wire), self.sig
        )


class AuditFault(msgspec.Struct, frozen=True, omit_defaults=True):
    """What does not hold. `n`: the row; None: the head."""

    message: str
    n: int | None = None


class Verdict(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a verifier came to. `first`: the row that is first of those that do not hold."""

    ok: bool
    rows: int
    """Rows that were looked at."""
    head: AuditHead | None = None
    """As the last row that holds is sealed."""
    first: int | None = None
    faults: list[AuditFault] = []
    count: int = 0
    """Faults, the listed ones being the first of them."""
    remarks: list[str] = []
    """What is to be known, and no fault: restores, a head that is behind."""


def seal(key: SigningKey, previous: str, members: Mapping[str, Any], at: int) -> tuple[bytes, AuditHead]:
    """A row's text, of its members (`n` among them) and the hash before it, and the head that it makes.

    Raises ValueError for members that have no canonical form.
    """
    digest = _hash(previous, encode(dict(members)))
    sig = key.sign(_text(members["n"], digest, at, key.pk))
    head = AuditHead(members["n"], digest, at, key.pk, sig)
    return encode({**members, **dict(zip(_SEAL, (digest, at, key.pk, sig), strict=True))}), head


def nothing(key: SigningKey, at: int) -> AuditHead:
    """The head of a log that has no rows yet: it stands beside the store before the first one is written."""
    return AuditHead(0, NOTHING, at, key.pk, key.sign(_text(0, NOTHING, at, key.pk)))


def head_text(head: AuditHead) -> bytes:
    """A head as it is kept and exported: canonical JSON."""
    return encode(msgspec.to_builtins(head))


def read_head(text: bytes) -> AuditHead | None:
    """A head of its text; None for what is none. Whether it is signed is not looked at."""
    try:
        head = msgspec.json.decode(text, type=AuditHead)
    except (msgspec.MsgspecError, UnicodeError):
        return None
    formed = PK.fullmatch(head.hash) and PK.fullmatch(head.wire) and SIG.fullmatch(head.sig)
    return head if formed and head.count >= 0 else None


def read_row(text: bytes) -> tuple[dict[str, Any], AuditHead] | None:
    """A row's members without its seal, and the head that it makes; None for what is no row."""
    parsed = parse(text)
    if isinstance(parsed, Refusal) or type(parsed[0]) is not dict:
        return None
    members = dict(parsed[0])
    try:
        digest, at, wire, sig = (members.pop(name) for name in _SEAL)
        head = msgspec.convert(
            {"count": members["n"], "hash": digest, "at": at, "wire": wire, "sig": sig}, AuditHead
        )
    except (KeyError, msgspec.ValidationError):
        return None
    return members, head


class Verifier:
    """Takes all rows in their order, then says what does not hold.

    `head`: the text of the head that is kept with the rows; `beside`: of that which is kept apart from them, None where
    it is missing. `apart`: whether there should be one. `known`: the last one that a running broker made. `restored`:
    the store was made of a backup and no row says so yet, since nobody has served it.
    """

    def __init__(
        self,
        wires: Collection[str],
        head: bytes | None,
        beside: bytes | None = None,
        *,
        apart: bool = True,
        known: AuditHead | None = None,
        restored: bool = False,
    ) -> None:
        self._wires = wires
        self._texts = {IN_STORE: head} | ({BESIDE: beside} if apart else {})
        if known is not None:
            self._texts[KNOWN] = head_text(known)
        self._restored = restored
        self._heads = {name: read_head(text) for name, text in self._texts.items() if text is not None}
        self._wanted = {head.count for head in self._heads.values() if head is not None}
        self._found: dict[int, str] = {0: NOTHING}
        self._next = 1
        self._last: str | None = NOTHING
        """The hash before the next row; None: not known."""
        self._used: list[str] = []
        """The wire's keys in the order in which they came to seal: who has stolen an earlier one seals nothing now."""
        self._good: AuditHead | None = None
        self._rows = 0
        self._faults: list[AuditFault] = []
        self._count = 0
        self._first: int | None = None
        self._remarks: list[str] = []

    def row(self, n: int, text: bytes | None) -> None:
        """The next row that there is, by the number that it is kept under; None: it can't be read."""
        self._rows += 1
        if n > self._next:
            missing = f"row {self._next} is" if n == self._next + 1 else f"rows {self._next} to {n - 1} are"
            self._fault(f"{missing} missing", self._next)
            self._last = None
        elif n < self._next:
            self._fault(f"row {n} is there twice", n)
            return
        self._next = n + 1
        found = None if text is None else read_row(text)
        if found is None:
            self._fault(f"row {n} can't be read", n)
            self._last = None
            return
        members, head = found
        sealed = head.count == n and head.is_signed(self._wires) and head.wire not in self._used[:-1]
        if sealed and head.wire not in self._used:
            self._used.append(head.wire)
        why = self._judge(n, members, head, sealed)
        if why is not None:
            self._fault(f"row {n} {why}", n)
        else:
            self._good = head
            self._tell(n, members)
        self._last = head.hash if sealed else None
        if n in self._wanted:
            self._found[n] = head.hash

    def stray(self, name: str) -> None:
        """What lies among the rows under a name that is no row's number, or has no seal and belongs to no head."""
        self._fault(f"{name[:40]!r} lies among the rows, and is none")

    def unlisted(self, rows: tuple[int, int] | None) -> None:
        """These rows, from one to another, are there, and a list of the log does not show them in their place. None:
        it shows nothing."""
        if rows is None:
            self._fault("the list of the rows can't be read")
        else:
            self._fault(f"rows {rows[0]} to {rows[1]} are not in the list, or not in their place")

    def end(self) -> Verdict:
        """After the last row."""
        for name, text in self._texts.items():
            self._look(name, text, self._heads.get(name))
        return Verdict(
            ok=self._count == 0,
            rows=self._rows,
            head=self._good,
            first=self._first,
            faults=self._faults,
            count=self._count,
            remarks=self._remarks,
        )

    def _judge(self, n: int, members: dict[str, Any], head: AuditHead, sealed: bool) -> str | None:
        """What is wrong with a row."""
        if head.count != n:
            return f"says that it is row {head.count}"
        if self._last is not None and _hash(self._last, encode(members)) != head.hash:
            return "was changed, or does not follow from the one before it"
        if not sealed:
            return "has no seal of the wire's: it was put there, changed or linked anew by somebody else"
        return None

    def _tell(self, n: int, members: dict[str, Any]) -> None:
        """What a good row says of the log itself."""
        detail = members.get("detail") or {}
        if members.get("kind") == ALARM:
            self._fault(f"row {n} is an alarm of the broker's: {detail.get('what')}", n)
        elif members.get("kind") == RESTORED:
            former = detail.get("former")
            known = former.get("count") if isinstance(former, dict) else None
            said = "" if known is None else f"; {known} rows were known before"
            self._remark(f"row {n}: the store was made of a backup{said}")

    def _look(self, name: str, text: bytes | None, head: AuditHead | None) -> None:
        """Hold a head against the rows."""
        rows = self._next - 1
        if text is None:
            # Before the first row there is one beside the store alone, and none before the first start.
            if rows or any(head is not None and head.count for head in self._heads.values()):
                self._fault(f"{name} is missing")
        elif head is None or not head.is_signed(self._wires):
            self._fault(f"{name} is not signed by the wire")
        elif head.count > rows:
            if self._restored:
                self._remark(
                    f"{name} knows {head.count} rows: the store was made of a backup, and not served since"
                )
            elif not any(fault.n == rows + 1 for fault in self._faults):
                said = f"rows {rows + 1} to {head.count} are gone: {name} knows {head.count}"
                self._fault(f"{said} (the tail was cut off, or an older store put back)", rows + 1)
        elif (found := self._found.get(head.count)) is not None and found != head.hash:
            self._fault(f"{name} is of another chain than row {head.count}", head.count)
        elif head.count < rows and name == IN_STORE:
            self._fault(f"{name} knows {head.count} rows, and there are {rows}", head.count + 1)
        elif head.count < rows and name == BESIDE:
            self._remark(f"{name} is behind by {rows - head.count}: the next change brings it up")

    def _fault(self, message: str, n: int | None = None) -> None:
        self._count += 1
        if n is not None and (self._first is None or n < self._first):
            self._first = n
        if len(self._faults) < SHOWN:
            self._faults.append(AuditFault(message, n))

    def _remark(self, remark: str) -> None:
        if len(self._remarks) < SHOWN:
            self._remarks.append(remark)


def _text(count: int, digest: str, at: int, wire: str) -> bytes:
    return NAME + encode({"at": at, "count": count, "hash": digest, "wire": wire})


def _hash(previous: str, text: bytes) -> str:
    return hashlib.sha256(bytes.fromhex(previous) + text).hexdigest()
