"""What one connection follows: streams and a watch of presence, each of which feeds its outbox.

1. A stream that is followed again takes the place of the one before; after it was stopped nothing of it is put.
2. A stream that falls behind closes the connection as slow (4008): the peer resumes by cursor.
3. The peer is told why a stream ends, unless it ended it itself.
"""

from collections.abc import Sequence
from functools import partial
from typing import Final

import trio

from broker.app import Delivery, Ended, Reader, Slow, Watch
from broker.store.port import Unavailable
from broker.wire.events import read_cursor
from broker.wire.refusals import Refusal, refuse
from gateways import jsonrpc, render
from gateways.outbox import Outbox

STREAMS: Final = 16
"""Streams that one connection may follow: a bot of many desks, not a fan-out of its own."""


class _Running:
    """A stream or a watch that feeds the outbox. After `stop` nothing of it is put any more."""

    def __init__(self, code: str | None = None, channel: str | None = None) -> None:
        self.code = code
        self.channel = channel
        self.live = True
        self.scope = trio.CancelScope()

    def stop(self) -> None:
        self.live = False
        self.scope.cancel()


class Feeds:
    """See the module. `nursery` is the connection's own."""

    def __init__(self, outbox: Outbox, nursery: trio.Nursery) -> None:
        self._outbox = outbox
        self._nursery = nursery
        self._streams: dict[str, _Running] = {}
        self._watching: _Running | None = None

    def follow(
        self, id: jsonrpc.Id, reader: Reader, code: str | None = None, channel: str | None = None
    ) -> Refusal | None:
        """Answer the request with the reader's resume, and feed from it. A Refusal closes the reader."""
        cursor = read_cursor(reader.resume.head)
        stream = cursor.tag if cursor is not None else ""
        if stream not in self._streams and len(self._streams) >= STREAMS:
            reader.close()
            return refuse("bad_request", f"one connection follows at most {STREAMS} streams")
        if (old := self._streams.get(stream)) is not None:
            old.stop()
        running = self._streams[stream] = _Running(code, channel)
        self._outbox.put(jsonrpc.result(id, reader.resume))
        self._nursery.start_soon(self._feed, stream, running, reader)
        return None

    def unfollow(self, code: str | None, channel: str | None = None) -> int:
        """End the streams that are followed through a code, or that of a channel (neither: all); how many."""
        ending = [
            (stream, running)
            for stream, running in self._streams.items()
            if (code, channel) in ((None, None), (running.code, running.channel))
        ]
        for stream, running in ending:
            running.stop()
            del self._streams[stream]
        return len(ending)

    def watch(self, id: jsonrpc.Id, watch: Watch) -> None:
        """Answer with the snapshot, then tell of changes; the watch before ends."""
        if self._watching is not None:
            self._watching.stop()
        self._watching = _Running()
        self._outbox.put(jsonrpc.result(id, {"desks": watch.snapshot}))
        self._nursery.start_soon(self._report, self._watching, watch)

    def stop(self) -> None:
        """Stop all: the peer is gone."""
        for running in self._streams.values():
            running.stop()
        if self._watching is not None:
            self._watching.stop()

    async def _feed(self, stream: str, running: _Running, reader: Reader) -> None:
        """Put a stream's events until it ends, is replaced, or the peer falls behind."""
        outbox = self._outbox
        try:
            async with reader:
                with running.scope:
                    reader.push_to(partial(self._push, running))
                    while True:
                        for event in await reader.receive():
                            if outbox.full:
                                await outbox.wait_room()
                            if not running.live:
                                return
                            outbox.put_frame(_framed(event, outbox))
        except Slow:
            if running.live:
                self._outbox.end(render.CLOSE["slow"], at_once=True)
        except Ended as end:
            self._tell_end(running, end.refusal)
        except Unavailable:
            self._tell_end(running, render.NO_STORE)
        except Exception as fault:
            self._fail(fault, "a stream")
        finally:
            if self._streams.get(stream) is running:
                del self._streams[stream]

    def _push(self, running: _Running, events: Sequence[Delivery]) -> bool:
        """Take events where they were committed, while the feed has nothing else to do and there is room."""
        outbox = self._outbox
        if outbox.full or not running.live:
            return False
        for event in events:
            outbox.put_frame(_framed(event, outbox))
        return True

    def _tell_end(self, running: _Running, refusal: Refusal) -> None:
        """Say why a stream ends, where the peer has not ended it itself."""
        if running.live:
            named = {"code": running.code} if running.channel is None else {"channel": running.channel}
            params = {**named, "refusal": refusal.body()}
            self._outbox.put(jsonrpc.notification("ended", params))

    async def _report(self, running: _Running, watch: Watch) -> None:
        """Put the changes of presence until another watch takes this one's place."""
        try:
            async with watch:
                with running.scope:
                    while True:
                        await self._outbox.wait_room()
                        changes = await watch.receive()
                        if not running.live:
                            return
                        self._outbox.put(jsonrpc.notification("presence", {"desks": changes}))
        except Exception as fault:
            self._fail(fault, "presence")

    def _fail(self, fault: Exception, where: str) -> None:
        """A follower crashed: without it the connection would be silent, so it is closed; the peer resumes."""
        render.incident(fault, where)
        self._outbox.end(render.CLOSE["fault"])


def _framed(event: Delivery, outbox: Outbox) -> bytes:
    """An event as a frame, made once for all connections that have the same way of framing."""
    made = event.made
    if made is None or made[0] is not outbox.frame:
        text = b'{"jsonrpc":"2.0","method":"%b","params":%b}' % (event.kind.encode(), event.params)
        made = event.made = (outbox.frame, outbox.frame(text))
    return made[1]
