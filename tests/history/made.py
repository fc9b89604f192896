"""Histories that fit, made from a run that never happened; and ways to spoil one, each for a reason."""

from collections.abc import Callable
from random import Random

import msgspec

from tests.history.model import History, Ok, Reading, Refused, Seen, Send

PARTIES = ("ann", "bob")
CONVS = ("c1", "c2", "c3")
JITTER = 3.0
"""Up to this long lies between an event and the times at which clients began or ended; one step is 1.0."""


class _Run:
    """A broker that can't fail, watched by clients that can."""

    def __init__(self, chance: Random) -> None:
        self.chance = chance
        self.history = History(complete=True)
        self.logs: dict[str, list[str]] = {conv: [] for conv in CONVS}
        self.order: list[tuple[float, str, int, str]] = []

    def around(self, at: float) -> tuple[float, float]:
        return at - self.chance.uniform(0, JITTER), at + self.chance.uniform(0, JITTER)

    def write(self, at: float, conv: str) -> None:
        n = len(self.logs[conv])
        sig = f"{conv}.{n}"
        sender, to = PARTIES if n % 2 == 0 else PARTIES[::-1]
        began, ended = self.around(at)
        send = Send(conv, n, sig, sender, to, began)
        self.history.sends.append(send)
        if self.chance.random() < 0.2:  # a rival that came too late, or never
            other = Send(conv, n, f"{sig}.rival", sender, to, *self.around(at))
            if self.chance.random() < 0.5:
                other.answer = Refused("conflict")
            else:
                other.ended = None
            self.history.sends.append(other)
        if self.chance.random() < 0.3:  # the answer was lost; most ask again
            if self.chance.random() < 0.7:
                began, ended = self.around(at + 2 * JITTER)
                again = Send(conv, n, sig, sender, to, began, ended, Ok(f"chain {sig}", n, True))
                self.history.sends.append(again)
        else:
            send.ended, send.answer = ended, Ok(f"chain {sig}", n)
        self.logs[conv].append(sig)
        self.order.append((at, conv, n, sig))

    def read(self, at: float, conv: str) -> None:
        self.history.readings.append(Reading(conv, *self.around(at), tuple(self.logs[conv])))


def good(chance: Random, steps: int = 12) -> History:
    """A history that fits."""
    run = _Run(chance)
    for step in range(steps):
        if chance.random() < 0.8:
            run.write(float(step), chance.choice(CONVS))
        else:
            run.read(float(step), chance.choice(CONVS))
    for conv in CONVS:
        run.read(steps + 4 * JITTER, conv)
    for stream in PARTIES:
        for reader in ("first", "second"):
            for position, (at, conv, n, sig) in enumerate(run.order, 1):
                seen = run.around(at)[1]
                run.history.seen.append(Seen(stream, reader, "e", position, conv, n, sig, seen))
    return run.history


# ── spoiling ──

Spoil = Callable[[History, Random], bool]
"""Changes a history that fits; False: it holds nothing to spoil in this way."""


def _change(history: History, index: int, **members: object) -> None:
    history.seen[index] = msgspec.structs.replace(history.seen[index], **members)


def fork(history: History, chance: Random) -> bool:
    _change(history, chance.randrange(len(history.seen)), sig="another")
    return True


def lost(history: History, chance: Random) -> bool:
    conv = chance.choice([send.conv for send in history.sends])
    last = next(
        index for index in reversed(range(len(history.readings))) if history.readings[index].conv == conv
    )
    sigs = history.readings[last].sigs
    history.readings[last] = msgspec.structs.replace(history.readings[last], sigs=sigs[:-1])
    return bool(sigs)


def lost_to_one_reading(history: History, chance: Random) -> bool:
    """A stale reading; later ones are whole."""
    sent = [send for send in history.sends if isinstance(send.answer, Ok)]
    if not sent:
        return False
    send = chance.choice(sent)
    assert send.ended is not None
    sigs = tuple(f"{send.conv}.{n}" for n in range(send.n))
    history.readings.insert(0, Reading(send.conv, send.ended + 0.1, send.ended + 0.2, sigs))
    return True


def gap(history: History, chance: Random) -> bool:
    of_one = [
        index for index, seen in enumerate(history.seen) if (seen.stream, seen.reader) == ("ann", "first")
    ]
    del history.seen[chance.choice(of_one[:-1])]
    return True


def phantom(history: History, chance: Random) -> bool:
    seen = chance.choice(history.seen)
    history.sends = [send for send in history.sends if send.sig != seen.sig]
    return True


def refused_but_written(history: History, chance: Random) -> bool:
    seen = chance.choice(history.seen)
    for send in history.sends:
        if send.sig == seen.sig:
            send.answer = Refused("unavailable")
    return True


def doubled(history: History, chance: Random) -> bool:
    writers = [send for send in history.sends if isinstance(send.answer, Ok) and not send.answer.replayed]
    if writers:
        history.sends.append(chance.choice(writers))
    return bool(writers)


def answer(history: History, chance: Random) -> bool:
    acked = [send for send in history.sends if isinstance(send.answer, Ok)]
    if acked:
        send = chance.choice(acked)
        history.sends.append(msgspec.structs.replace(send, answer=Ok("another chain", send.n, True)))
    return bool(acked)


def repeat(history: History, chance: Random) -> bool:
    index = chance.randrange(len(history.seen))
    history.seen.insert(index, history.seen[index])
    return True


def epoch(history: History, chance: Random) -> bool:
    _change(history, chance.randrange(len(history.seen)), epoch="f")
    return True


def undelivered(history: History, chance: Random) -> bool:
    newest = max(seen.position for seen in history.seen)
    history.seen = [seen for seen in history.seen if (seen.stream, seen.position) != ("bob", newest)]
    return True


def order(history: History, chance: Random) -> bool:
    """One stream holds two neighbours of two conversations the other way round."""
    rows = {seen.position: (seen.conv, seen.n, seen.sig) for seen in history.seen}
    pairs = [position for position in rows if position > 1 and rows[position][0] != rows[position - 1][0]]
    if not pairs:
        return False
    second = chance.choice(pairs)
    swapped = {second: second - 1, second - 1: second}
    for index, seen in enumerate(history.seen):
        if seen.stream == "bob" and seen.position in swapped:
            conv, n, sig = rows[swapped[seen.position]]
            _change(history, index, conv=conv, n=n, sig=sig)
    return True


def sent_too_late(history: History, chance: Random) -> bool:
    seen = chance.choice(history.seen)
    for send in history.sends:
        if send.sig == seen.sig:
            length = (send.ended or send.began) - send.began
            send.began = seen.at + 0.1
            send.ended = None if send.ended is None else send.began + length
    return True


def overtaken(history: History, chance: Random) -> bool:
    """A row that was acknowledged before the row before it had been sent, which nobody saw meanwhile."""
    for send in history.sends:
        first = next((each for each in history.sends if (each.conv, each.n) == (send.conv, send.n + 1)), None)
        if first is None or not isinstance(first.answer, Ok) or first.answer.replayed or first.ended is None:
            continue
        if not isinstance(send.answer, Ok) or send.answer.replayed:
            continue
        began = first.ended + 0.1
        history.sends = [each for each in history.sends if (each.conv, each.n) != (send.conv, send.n)]
        history.sends.append(msgspec.structs.replace(send, began=began, ended=began + 0.1))
        history.readings = [msgspec.structs.replace(each, ended=1e9) for each in history.readings]
        history.seen = [msgspec.structs.replace(each, at=1e9) for each in history.seen]
        return True
    return False


SPOILT: dict[str, tuple[Spoil, str]] = {
    "fork": (fork, "fork"),
    "lost": (lost, "lost"),
    "lost to one reading": (lost_to_one_reading, "lost"),
    "gap": (gap, "gap"),
    "phantom": (phantom, "phantom"),
    "refused but written": (refused_but_written, "refused-but-written"),
    "doubled": (doubled, "doubled"),
    "answer": (answer, "answer"),
    "repeat": (repeat, "repeat"),
    "epoch": (epoch, "epoch"),
    "undelivered": (undelivered, "undelivered"),
    "order": (order, "order"),
    "sent too late": (sent_too_late, "time"),
    "overtaken": (overtaken, "time"),
}
"""Name → how to spoil a history, and the reason that the checker must give."""
