"""Work in pieces: a generator that yields after each some milliseconds of it, and returns what came of it.

Whoever does it may do something else between two pieces, or stop. What comes of it is the same wherever it was cut.
"""

from collections.abc import Generator
from typing import Any, TypeVar

T = TypeVar("T")
Pieces = Generator[Any, None, T]


def whole(pieces: Pieces[T]) -> T:
    """All of it in one go: for who has nothing else to do."""
    while True:
        try:
            next(pieces)
        except StopIteration as end:
            made: T = end.value
            return made
