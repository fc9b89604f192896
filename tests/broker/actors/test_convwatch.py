"""Wake-ups of conversations."""

import trio

from broker.actors.convwatch import ConvWatches
from broker.store.port import Event

ONE, TWO = "00000000000000a1", "00000000000000a2"


def event(conv: str, kind: str = "env", stream: str = "pk:x") -> Event:
    return Event(stream, 1, kind, False, b'{"chain":"","conv":"%s","n":1}' % conv.encode())


async def quiet(watch: object) -> bool:
    with trio.move_on_after(1):
        await watch.changed()  # type: ignore[attr-defined]  # a ConvWatch
        return False
    return True


async def test_a_watch_hears_of_its_own_conversation_alone(autojump_clock: object) -> None:
    watches = ConvWatches()
    async with watches.watch(ONE) as one, watches.watch(TWO) as two:
        watches.committed([event(ONE), event(ONE, stream="pk:y")])
        assert await one.changed()
        assert await quiet(one)  # both parties' events of one envelope are one change
        assert await quiet(two)
        watches.committed([event(TWO, "end"), event(ONE, "ring")])
        assert await one.changed()
        assert await two.changed()


async def test_other_events_wake_nobody(autojump_clock: object) -> None:
    watches = ConvWatches()
    async with watches.watch(ONE) as one:
        watches.committed(
            [Event("pk:x", 1, "desk_moved", False, b'{"code":"ALFA","conv":"%s"}' % ONE.encode())]
        )
        assert await quiet(one)


async def test_what_came_while_nobody_waited_is_not_lost(autojump_clock: object) -> None:
    watches = ConvWatches()
    async with watches.watch(ONE) as one:
        watches.committed([event(ONE)])
        with trio.CancelScope() as scope:
            scope.cancel()
            await one.changed()
        assert await one.changed()


async def test_a_watch_that_was_left_is_forgotten(autojump_clock: object) -> None:
    watches = ConvWatches()
    first = watches.watch(ONE)
    async with watches.watch(ONE) as second:
        first.close()
        first.close()
        watches.committed([event(ONE)])
        assert await second.changed()
    assert not watches._watching
    watches.committed([event(ONE)])
