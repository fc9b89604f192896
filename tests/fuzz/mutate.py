"""Mutants of good inputs, fast and by number: the same number makes the same mutant, on every machine.

Hypothesis knows what it draws, and pays for it; these are bytes for which a plain generator does, fifty times as fast.
What fails is made small by leaving out what is not needed to fail.
"""

from collections.abc import Callable, Iterable, Sequence
from random import Random

from tests.fuzz.harness import LARGEST
from tests.fuzz.inputs import BITS

GIANTS = 0.03
"""Share of the mutants that get a piece repeated until LARGEST bytes are full."""


def mutant(number: str, seeds: Sequence[bytes], tokens: Sequence[bytes]) -> bytes:
    """The mutant of this number: one to six edits of a seed."""
    chance = Random(number)
    data = bytearray(chance.choice(seeds))
    for _ in range(1 + int(chance.random() ** 2 * 6)):
        _edit(chance, data, seeds, tokens)
    if chance.random() < GIANTS:
        bit = chance.choice([*BITS, *tokens])
        at = _place(chance, data)
        room = chance.choice([LARGEST, LARGEST, 10_000]) - len(data)
        data[at:at] = bit * max(0, room // max(1, len(bit)))
    return bytes(data[:LARGEST])


def _place(chance: Random, data: bytearray) -> int:
    """Somewhere, and as often as not where a piece begins or ends: there readers make their decisions."""
    at = chance.randint(0, len(data))
    if chance.random() < 0.5:
        for step in range(min(64, len(data) - at)):
            if (data[at + step] | 32) not in b"abcdefghijklmnopqrstuvwxyz" and data[
                at + step
            ] not in b"0123456789":
                return at + step + (chance.random() < 0.5)
    return at


def _edit(chance: Random, data: bytearray, seeds: Sequence[bytes], tokens: Sequence[bytes]) -> None:
    at = _place(chance, data)
    until = min(len(data), at + chance.choice([0, 0, 1, 1, 2, 4, 16, 200]))
    kind = chance.randrange(8)
    if kind == 0 and at < len(data):
        data[at] ^= 1 << chance.randrange(8)
    elif kind in (1, 2):
        data[at:until] = chance.choice(tokens)
    elif kind == 3:
        other = chance.choice(seeds)
        start = chance.randint(0, len(other))
        data[at:until] = other[start : start + chance.choice([1, 4, 30, 300])]
    elif kind == 4:
        data[at:at] = data[at:until] * chance.choice([1, 1, 3, 40])
    elif kind == 5:
        del data[at:until]
    elif kind == 6:
        data[at:at] = chance.randbytes(chance.choice([1, 1, 2, 4]))
    else:
        data[at:until] = bytes([chance.choice(b"0123456789")]) * chance.choice([1, 2, 17, 20, 400, 5000])


def smaller(data: bytes, fails: Callable[[bytes], bool], tries: int = 300) -> bytes:
    """A part of an input that still fails, each piece of it needed as far as so many tries tell."""
    size = max(1, len(data) // 2)
    while size and tries:
        at = 0
        while at < len(data) and tries:
            tries -= 1
            shorter = data[:at] + data[at + size :]
            if fails(shorter):
                data = shorter
            else:
                at += size
        size //= 2
    return data


def numbered(name: str, base: int, count: int) -> Iterable[str]:
    """The numbers of a run."""
    return (f"{name}.{base}.{at}" for at in range(count))
