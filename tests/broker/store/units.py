"""The units that the store's tests commit, and what they ask first."""

from collections.abc import Sequence
from typing import Any

import pytest

from broker.store.port import Append, Conflict, Deliver, Drop, Put, Remember, Store, Unit

AT = 1_782_345_678_000
SOME = Unit(append=Append("conv:some", 0, b"some", AT))


def row(log: str, n: int, *streams: str, at: int = AT) -> Unit:
    """An appended row, delivered to each stream."""
    append = Append(log, n, f"{log}/{n}".encode(), at)
    return Unit(append=append, deliver=tuple(Deliver(stream, "env") for stream in streams))


async def refused(store: Store, unit: Unit) -> str:
    """What the conflict is about that this unit must meet."""
    with pytest.raises(Conflict) as caught:
        await store.commit(unit)
    return caught.value.what


def put(id: str, *text: str, expect: int = 0, kind: str = "note", marks: Sequence[str] = ()) -> Unit:
    """A document with a text and index rows ("tag", …)."""
    index = tuple(("tag", mark) for mark in marks)
    return Unit(puts=(Put(kind, id, expect, f"{id}/{expect + 1}".encode(), index, text),))


async def hits(store: Store, text: str | None, *marks: str, **more: Any) -> list[str]:
    """The ids that are found, in their order."""
    found = await store.search("note", text, [("tag", mark) for mark in marks], **more)
    return [document.id for document in found]


async def seen(store: Store) -> list[object]:
    """All that the units below may have touched."""
    streams = [await store.events(name, 0) for name in ("pk:a", "pk:b")]
    newest = [(await store.head(name)).newest for name in ("pk:a", "pk:b")]
    documents = [await store.get("desk", name) for name in ("one", "two", "three")]
    found = [document.id for document in await store.find("desk", "code", "ALFA")]
    rows = [await store.entries(log) for log in ("conv:a", "conv:gone", "conv:new")]
    return [streams, newest, documents, found, rows, await store.recall("pk:a", "fresh")]


BASE = Unit(
    append=Append("conv:a", 0, b"first", AT),
    puts=(Put("desk", "one", 0, b"1", (("code", "ALFA"),)),),
    deliver=(Deliver("pk:a", "ring"),),
    remember=Remember("pk:a", "taken", b"d", b"o", AT),
)
GOOD = Unit(
    append=Append("conv:a", 1, b"second", AT),
    puts=(Put("desk", "one", 1, b"2", (("code", "BRAV"),)), Put("desk", "two", 0, b"2", (("code", "ALFA"),))),
    deliver=(Deliver("pk:a", "env"), Deliver("pk:b", "desk_moved", data=b"{}")),
    remember=Remember("pk:a", "fresh", b"d", b"o", AT),
    drop=Drop("conv:new"),
)
BAD: list[tuple[str, Unit]] = [
    ("append", Unit(Append("conv:a", 0, b"again", AT), GOOD.puts, GOOD.deliver, GOOD.remember, GOOD.drop)),
    ("append", Unit(Append("conv:a", 2, b"gap", AT), GOOD.puts, GOOD.deliver, GOOD.remember, GOOD.drop)),
    ("append", Unit(Append("conv:new", 1, b"not 0", AT), GOOD.puts, GOOD.deliver, GOOD.remember, GOOD.drop)),
    ("drop", Unit(Append("conv:gone", 0, b"ever", AT), GOOD.puts, GOOD.deliver, GOOD.remember, GOOD.drop)),
    ("put", Unit(GOOD.append, (*GOOD.puts, Put("desk", "three", 1, b"3")), GOOD.deliver, GOOD.remember)),
    ("put", Unit(GOOD.append, (*GOOD.puts, Put("desk", "two", 0, b"3")), GOOD.deliver, GOOD.remember)),
    ("put", Unit(GOOD.append, (*GOOD.puts, Put("desk", "three", 4, None)), GOOD.deliver, GOOD.remember)),
    (
        "remember",
        Unit(GOOD.append, GOOD.puts, GOOD.deliver, Remember("pk:a", "taken", b"x", b"y", AT + 9), GOOD.drop),
    ),
]
