"""One call: order, turn, limits, and the wire's own END (wire.md, Life of a call, Limits, Order of checks).

1. What is decided here is steps 10 to 17 of the order of checks; signatures were verified before.
2. An envelope is accepted only as the next one; nothing here reads, signs or sends.
3. The limit needs no state of its own: an envelope is in when the 30th last counted one is old enough.
4. What a restore took away may be submitted again (`is_lost`): it meets no clock check and spends no token.
"""

from collections import deque
from math import inf
from typing import Any, Final, Literal

import msgspec

from broker.core.machine import Now
from broker.wire.call import Phase, in_turn, next_phase, type_fault
from broker.wire.chain import chain_next, chain_start
from broker.wire.envelope import Envelope, bootstrap
from broker.wire.ids import Pk, Sig
from broker.wire.limits import wait_ms
from broker.wire.refusals import Refusal, refuse

WireReason = Literal["no_answer", "evicted", "idle", "operator"]
RESUBMIT_MS: Final = 7 * 86_400_000
"""After a restore the lost tail is taken for this long (wire.md, Retries)."""


class Restored(msgspec.Struct, frozen=True):
    """The last restore from a backup, wall milliseconds. What was accepted in between is not in the store."""

    backup_at: int
    """When the backup was begun."""
    restored_at: int


class Rules(msgspec.Struct, frozen=True):
    """The settings that a conversation is judged by."""

    envelopes: int
    window_s: float
    skew_s: int
    ring_s: float
    idle_s: float
    restored: Restored | None = None


class Conversation(msgspec.Struct):
    """What the actor knows of a call. Parties are fixed by the CALL; moving a desk changes no open call."""

    conv: str
    caller: Pk
    callee: Pk
    code_from: str
    code_to: str
    wire: Pk
    """The wire's key when the CALL was accepted: it signs the wire's END and receipts here."""
    phase: Phase
    n: int
    sig: Sig
    chain: bytes
    last_from: Pk
    last_at: int
    last_mono: float
    spent: deque[float]
    """Monotonic seconds of the last counted envelopes, at most as many as the limit."""
    end: dict[str, Any] | None = None
    """The END's body, once there is one."""
    version: int = 0
    """The version of the conversation's document in the store."""
    opened_at: int = 0
    answered_at: int | None = None
    resubmitted: bool = False
    """Whether the head is a row that was submitted again after a restore."""

    def party(self, pk: str) -> bool:
        """Whether pk is one of the two parties."""
        return pk in (self.caller, self.callee)

    def head(self) -> dict[str, Any]:
        """The head as refusals and read_conv show it: n, sig, chain (hex)."""
        return {"n": self.n, "sig": self.sig, "chain": self.chain.hex()}

    def other(self) -> Pk:
        """The party that did not write last: the wire's END is addressed to it."""
        return self.callee if self.last_from == self.caller else self.caller


class Send(msgspec.Struct, frozen=True):
    """A party's envelope, read and verified."""

    envelope: Envelope
    sig: Sig


class Hangup(msgspec.Struct, frozen=True):
    """The wire is to end the conversation, for its own reason; `by` is the key whose dialling evicts it."""

    reason: WireReason
    by: Pk | None = None


class Due(msgspec.Struct, frozen=True):
    """The conversation's due time is there.

    After a step of the wall clock the asker adds what it knows: seconds that are left at least, and by how many
    milliseconds the wall clock was ahead of the monotonic one before.
    """

    left_s: float = -inf
    ahead_ms: float = inf


DUE: Final = Due()
Command = Send | Hangup | Due


class Accepted(msgspec.Struct, frozen=True):
    """The record of an accepted envelope: what the log keeps and what is folded."""

    n: int
    type: str
    sender: Pk
    sig: Sig
    chain: bytes
    at: int
    mono: float
    counted: bool
    body: dict[str, Any]
    resubmitted: bool = False


class Later(msgspec.Struct, frozen=True):
    """Not due yet: look again at wall time `due` (milliseconds)."""

    due: int


def decide_call(envelope: Envelope, sig: Sig, now: Now, rules: Rules) -> Accepted | Refusal:
    """A CALL on an id that nobody used: steps 15 and 16 for it. Its chain is chain[0]."""
    if envelope.prev_sig != bootstrap(envelope.conv):
        return refuse(
            "bad_prev_sig", 'a CALL\'s prev_sig is hex of sha256("cdp:" + conv)', due=bootstrap(envelope.conv)
        )
    skew = clock_skew(envelope.ts, now, rules)
    if skew is not None:
        return skew
    return Accepted(
        n=0,
        type="CALL",
        sender=Pk(envelope.sender),
        sig=sig,
        chain=chain_start(envelope.conv),
        at=now.wall_ms,
        mono=now.mono,
        counted=True,
        body=envelope.body,
    )


def decide_send(state: Conversation, command: Send, now: Now, rules: Rules) -> Accepted | Refusal:
    """Steps 11 to 17 of the order of checks for a verified envelope that is no replay."""
    envelope = command.envelope
    lost = rules.restored is not None and is_lost(state, envelope, now, rules)
    fault = None if is_usual(state, envelope) else _place(state, envelope)
    if fault is None and not lost and abs(envelope.ts - now.wall_ms // 1000) > rules.skew_s:
        fault = clock_skew(envelope.ts, now, rules)
    if fault is not None:
        return fault
    is_end = envelope.type == "END"
    if not is_end and not lost and len(state.spent) >= rules.envelopes:
        wait = wait_ms(state.spent, now.mono, rules.envelopes, rules.window_s)
        if wait > 0:
            return refuse(
                "rate_limited",
                f"{rules.envelopes} envelopes in {rules.window_s:g} s are this conversation's limit; "
                f"send the same bytes again in {wait} ms",
                retry_after_ms=wait,
            )
    return Accepted(
        n=envelope.n,
        type=envelope.type,
        sender=Pk(envelope.sender),
        sig=command.sig,
        chain=chain_next(state.chain, command.sig),
        at=max(now.wall_ms, state.last_at),
        mono=now.mono,
        counted=not is_end and not lost,
        body=envelope.body,
        resubmitted=lost,
    )


def is_lost(state: Conversation, envelope: Envelope, now: Now, rules: Rules) -> bool:
    """Whether this can be the next of the tail that a restore took away: it was said between backup and restore.

    The tail follows the backup's own head, or what was resubmitted before it: after a new envelope there is none.
    As in the clock check `ts` may be off by skew_s; one from the restore on counts as new while that check lets it
    pass.
    """
    restored = rules.restored
    if restored is None or now.wall_ms - restored.restored_at > RESUBMIT_MS:
        return False
    if not state.resubmitted and state.last_at >= restored.restored_at:
        return False
    over = restored.restored_at // 1000
    if abs(envelope.ts - now.wall_ms // 1000) > rules.skew_s:
        over += rules.skew_s + 1
    return restored.backup_at // 1000 - rules.skew_s <= envelope.ts < over


def may_send(state: Conversation, envelope: Envelope, now: Now, rules: Rules) -> bool:
    """Step 6: a party, or the wire where it is its own END that a restore took away."""
    return state.party(envelope.sender) or (
        envelope.type == "END" and envelope.sender == state.wire and is_lost(state, envelope, now, rules)
    )


def decide_due(
    state: Conversation, now: Now, rules: Rules, ready: float, due: Due = DUE
) -> Hangup | Later | None:
    """What a due time means: the wire's END, a later look, or nothing for an ended conversation.

    Timers run from the later of the last envelope and the moment the wire was ready (`ready`, monotonic).
    """
    if state.phase is Phase.ENDED:
        return None
    ringing = state.phase is Phase.RINGING
    limit = rules.ring_s if ringing else rules.idle_s
    last_mono = max(state.last_mono, min((state.last_at - due.ahead_ms) / 1000, now.mono))
    left = max(max(last_mono, ready) + limit - now.mono, due.left_s)
    if left <= 0:
        return Hangup("no_answer" if ringing else "idle")
    return Later(now.wall_ms + max(1, round(left * 1000)))


def fold(state: Conversation, record: Accepted, limit: int) -> None:
    """Take an accepted record into the state. `limit` is how many spent tokens are worth keeping."""
    if state.phase is not Phase.OPEN or record.type in _WIRES_OWN:
        state.phase = next_phase(state.phase, record.type)
    state.n = record.n
    state.sig = record.sig
    state.chain = record.chain
    state.last_from = record.sender
    state.last_at = record.at
    state.last_mono = record.mono
    state.resubmitted = record.resubmitted
    if record.counted:
        state.spent.append(record.mono)
        while len(state.spent) > limit:
            state.spent.popleft()
    if record.type == "PICKUP":
        state.answered_at = record.at
    elif record.type == "END":
        state.end = record.body


def ended(state: Conversation) -> Refusal:
    """conv_ended with the END's reason."""
    reason = (state.end or {}).get("reason")
    return refuse(
        "conv_ended",
        "the conversation has ended; nothing is appended to it. Dial again with a new conv",
        reason=reason if isinstance(reason, str) else None,
    )


def conflict(state: Conversation, n: int) -> Refusal:
    """conflict with the head: n is taken or beyond it."""
    return refuse(
        "conflict",
        f"n {n} does not follow the head {state.n}; build the next envelope on this head",
        head=state.head(),
    )


def clock_skew(ts: int, now: Now, rules: Rules) -> Refusal | None:
    """Step 16: ts within skew_s of the wire's clock, with a hint when it looks like milliseconds."""
    wire_ts = now.wall_ms // 1000
    skew = ts - wire_ts
    if abs(skew) <= rules.skew_s:
        return None
    detail: dict[str, Any] = {"wire_ts": wire_ts, "skew": skew}
    if abs(ts // 1000 - wire_ts) <= 10 * 86_400:
        detail["hint"] = "ts looks like milliseconds; it is whole Unix seconds"
    return refuse(
        "clock_skew",
        f"ts is {abs(skew)} s off the wire's clock; at most {rules.skew_s} s are taken",
        **detail,
    )


def is_usual(state: Conversation, envelope: Envelope) -> bool:
    """Whether an envelope is plainly the next one of an open call, seen at one glance. `_place` judges all others."""
    speaker, other = (state.callee, state.caller) if envelope.n % 2 else (state.caller, state.callee)
    return (
        state.phase is Phase.OPEN
        and envelope.n == state.n + 1
        and envelope.prev_sig == state.sig
        and envelope.sender == speaker
        and envelope.to == other
        and envelope.type not in _WIRES_OWN
    )


_WIRES_OWN: Final = frozenset({"CALL", "PICKUP", "END"})


def _place(state: Conversation, envelope: Envelope) -> Refusal | None:
    """Steps 11 to 15: ended, conflict, turn, type, prev_sig."""
    if state.phase is Phase.ENDED:
        return ended(state)
    if envelope.n != state.n + 1:
        return conflict(state, envelope.n)
    if not in_turn(envelope.n, envelope.type, envelope.sender, state.caller, state.callee):
        return refuse(
            "out_of_turn", "the other party is to speak: even n are the caller's, odd n the called desk's"
        )
    if envelope.to not in (state.caller, state.callee):
        return refuse("bad_envelope", "to is not the other party", path="to")
    fault = type_fault(envelope.n, envelope.type)
    if fault is not None:
        return fault
    if envelope.prev_sig != state.sig:
        return refuse(
            "bad_prev_sig",
            "prev_sig is not the signature of the head; sign the head's sig",
            head=state.head(),
        )
    return None
