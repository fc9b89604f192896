"""Retention: what may go, goes, a little at a time (wire.md, Streams).

Events older than streams.keep_days (never the last keep_events), remembered answers past their time, and, where
store.conversations_days is set, transcripts of conversations that ended that long ago: a tombstone keeps the id taken.
"""

import logging

import msgspec
import trio

from broker.actors.calls import log_name, read_conv_row
from broker.clock import Clock
from broker.config import Settings
from broker.core.desk import DAY_MS
from broker.store.port import Conflict, Drop, InDoubt, Put, Retention, Store, Unavailable, Unit

log = logging.getLogger("turret.janitor")
PAGE = 100


class Janitor:
    """One loop; each step is bounded, so that it holds up nobody."""

    def __init__(self, store: Store, clock: Clock, settings: Settings) -> None:
        self._store = store
        self._clock = clock
        self._settings = settings

    async def run(self) -> None:
        """Sweep for ever. Cancelling loses nothing."""
        while True:
            await trio.sleep(self._settings.store.sweep_s)
            try:
                while await self.sweep():
                    await trio.lowlevel.checkpoint()
            except (Unavailable, InDoubt, Conflict) as error:
                log.warning("the sweep goes on later: %s", type(error).__name__)

    async def sweep(self) -> int:
        """One bounded step; how much was removed. 0: nothing left to do."""
        now = self._clock.now_ms()
        streams = self._settings.streams
        retention = Retention(
            now=now,
            events_before=now - round(streams.keep_days * DAY_MS),
            events_keep=streams.keep_events,
        )
        return await self._store.sweep(retention, 1000) + await self._drop_transcripts(now)

    async def _drop_transcripts(self, now: int) -> int:
        days = self._settings.store.conversations_days
        if days is None:
            return 0
        # Events refer to their rows: a transcript stays at least as long as the streams keep events.
        before = now - round(max(days, self._settings.streams.keep_days) * DAY_MS)
        dropped = 0
        for document in await self._store.due("conv", "ended", before, PAGE):
            try:
                row = read_conv_row(document)
            except Unavailable:  # it is named in the log, and stays; the others go
                continue
            tombstone = msgspec.structs.replace(row, dropped=True, end=None)
            await self._store.commit(
                Unit(
                    puts=(Put("conv", row.conv, document.version, msgspec.json.encode(tombstone)),),
                    drop=Drop(log_name(row.conv)),
                )
            )
            dropped += 1
        return dropped
