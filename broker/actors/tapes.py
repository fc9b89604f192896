"""Tapes in memory, made or read when a trial needs one; the ones that were used last stay."""

import re
from collections import OrderedDict
from typing import Any, Final

import trio

from broker.actors.tapestore import find_imported, read_imported
from broker.core.tapes.synthetic import KINDS, SEED, make
from broker.core.tapes.tape import Tape
from broker.core.trials.script import Entry
from broker.store.port import Store
from broker.store.stored import damaged
from broker.wire.refusals import Refusal, refuse

_REF: Final = re.compile("[0-9a-f]{64}")
KEPT_TICKS: Final = 4_000_000
"""Ticks of the tapes that stay: some 100 MB."""


class Tapes:
    """Tapes by their ref."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._kept: OrderedDict[str, Tape] = OrderedDict()
        self._made: dict[str, Entry] = {}
        """By kind, with the seed SEED: what the catalog shows, and need not make again."""
        self._reading = trio.Lock()

    @property
    def price(self) -> dict[str, Any]:
        """What a trial costs."""
        return {"free": True}

    async def find(self, entry: str | int, seed: int | None) -> Entry | Refusal:
        """The entry that is meant by an index, a name or a ref of the catalog; NOT_FOUND. Raises Unavailable.

        An index may come as its digits: a model's client that keeps to a schema of one type sends text.
        """
        if isinstance(entry, str) and re.fullmatch("[0-9]{1,9}", entry):
            entry = int(entry)
        if isinstance(entry, str) and _REF.fullmatch(entry):
            entry = await self._named(entry)
        kinds = list(KINDS.values())
        kind = KINDS.get(entry) if isinstance(entry, str) else None
        if isinstance(entry, int) and 0 <= entry < len(kinds):
            kind = kinds[entry]
        if kind is None:
            return await self._imported(entry, seed)
        seed = SEED if seed is None else seed
        if (known := self._made.get(kind.name)) is not None and seed == SEED:
            return known
        async with self._reading:
            tape = await trio.to_thread.run_sync(make, kind, seed)
            ref = await trio.to_thread.run_sync(tape.ref)
            self._keep(ref, tape)
        found = Entry(ref, tape.about, len(tape), kind.name, seed)
        if seed == SEED:
            self._made[kind.name] = found
        return found

    async def tape(self, entry: Entry) -> Tape:
        """The tape of an entry. Raises Unavailable where it is not there, or has another ref. Cancelling waits for a
        tape that is being made."""
        async with self._reading:
            tape = self._kept.get(entry.ref)
            if tape is None:
                if entry.kind is None:
                    tape = await read_imported(self._store, entry.ref)
                else:
                    tape = await trio.to_thread.run_sync(made, entry)
                if tape is None:
                    raise damaged("tape", entry.ref, "it is not there")
                self._keep(entry.ref, tape)
            self._kept.move_to_end(entry.ref)
            return tape

    async def is_gone(self, entry: Entry) -> bool:
        """Whether a tape is not kept here any more. Raises Unavailable."""
        if entry.kind is None:
            return await find_imported(self._store, entry.ref) is None
        return entry.kind not in KINDS

    async def _named(self, ref: str) -> str:
        """The name of the made tape that the catalog shows with this ref; a ref that is none of these as it is."""
        for name in KINDS:
            shown = await self.find(name, None)
            if isinstance(shown, Entry) and shown.ref == ref:
                return name
        return ref

    async def _imported(self, entry: str | int, seed: int | None) -> Entry | Refusal:
        row = await find_imported(self._store, entry)
        if row is None or row.about is None:
            return refuse(
                "NOT_FOUND",
                f"the catalog has no such entry: {', '.join(KINDS)} are names, each tape has an index and a ref; "
                "over MCP kestrel://catalog shows all",
                path="entry",
            )
        if seed is not None:
            return refuse("bad_request", "this tape is no made one: it has no seed", path="seed")
        return Entry(row.ref, row.about, row.ticks)

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
