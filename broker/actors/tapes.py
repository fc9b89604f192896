"""Tapes in memory, made or read when a trial needs one; the ones that were used last stay."""

from collections import OrderedDict
from typing import Any, Final

import trio

from broker.core.tapes.synthetic import KINDS, make
from broker.core.tapes.tape import Tape
from broker.core.trials.script import Entry
from broker.store.stored import damaged
from broker.wire.refusals import Refusal, refuse

KEPT_TICKS: Final = 4_000_000
"""Ticks of the tapes that stay: some 100 MB."""


class Tapes:
    """Tapes by their ref."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, Tape] = OrderedDict()
        self._reading = trio.Lock()

    @property
    def price(self) -> dict[str, Any]:
        """What a trial costs."""
        return {"free": True}

    async def find(self, entry: str | int, seed: int | None) -> Entry | Refusal:
        """The entry that is meant by an index or a name of the catalog; NOT_FOUND. Raises Unavailable."""
        kinds = list(KINDS.values())
        kind = KINDS.get(entry) if isinstance(entry, str) else None
        if isinstance(entry, int) and 0 <= entry < len(kinds):
            kind = kinds[entry]
        if kind is None:
            return refuse("NOT_FOUND", "the catalog has no such entry", path="entry")
        seed = 1 if seed is None else seed
        async with self._reading:
            tape = await trio.to_thread.run_sync(make, kind, seed)
            ref = await trio.to_thread.run_sync(tape.ref)
            self._keep(ref, tape)
        return Entry(ref, tape.about, len(tape), kind.name, seed)

    async def tape(self, entry: Entry) -> Tape:
        """The tape of an entry. Raises Unavailable where it is not there, or has another ref. Cancelling waits for a
        tape that is being made."""
        async with self._reading:
            tape = self._kept.get(entry.ref)
            if tape is None:
                tape = await trio.to_thread.run_sync(made, entry)
                if tape is None:
                    raise damaged("tape", entry.ref, "it is not there")
                self._keep(entry.ref, tape)
            self._kept.move_to_end(entry.ref)
            return tape

    def _keep(self, ref: str, tape: Tape) -> None:
        self._kept[ref] = tape
        while len(self._kept) > 1 and sum(map(len, self._kept.values())) > KEPT_TICKS:
            self._kept.popitem(last=False)


def made(entry: Entry) -> Tape | None:
    """The tape of an entry that is made by rule; None: it is not, or the rule gives another one."""
    kind = KINDS.get(entry.kind or "")
    if kind is None or entry.seed is None:
        return None
    tape = make(kind, entry.seed, entry.ticks)
    return tape if tape.ref() == entry.ref else None
