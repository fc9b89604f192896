"""Bodies of requests: counted as they come, and read away where nobody wants them."""

from collections.abc import Sequence

import pytest
import trio

from broker.apart import LARGE
from gateways import bodies
from gateways.bodies import Gone, Held, NoRoom, Rooms, TooLarge, drain, is_json, read_body
from gateways.listen import Message, Receive


def coming(*pieces: bytes | None, more: bool = False) -> Receive:
    """A client that sends these pieces and then says no more; None: it leaves. `more`: it never ends."""
    messages: list[Message] = [
        {"type": "http.disconnect"}
        if piece is None
        else {"type": "http.request", "body": piece, "more_body": more or place < len(pieces)}
        for place, piece in enumerate(pieces, 1)
    ]

    async def receive() -> Message:
        await trio.lowlevel.checkpoint()
        if not messages:
            await trio.sleep_forever()
        return messages.pop(0)

    return receive


@pytest.mark.parametrize("pieces", [[b""], [b"abcd"], [b"a", b"b", b"", b"cd"]])
async def test_a_body_is_put_together_from_its_pieces(pieces: Sequence[bytes]) -> None:
    assert await read_body(coming(*pieces), 4) == b"".join(pieces)


@pytest.mark.requirement("http.body-limit")
async def test_a_body_beyond_the_limit_is_known_at_once_and_says_whether_more_comes() -> None:
    assert await read_body(coming(b"abc", b"de"), 4) == TooLarge(5, whole=True)
    with trio.fail_after(5):
        assert await read_body(coming(b"abc", b"de", more=True), 4) == TooLarge(5, whole=False)


async def test_a_client_that_leaves_early_is_gone() -> None:
    with pytest.raises(Gone):
        await read_body(coming(b"a", None), 4)


async def test_what_is_left_is_read_away_within_a_bound_of_time_and_bytes(
    autojump_clock: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    await drain(coming(b"a" * 100, b"b"), 5)
    await drain(coming(b"a", None), 5)
    assert trio.current_time() == 0
    await drain(coming(b"a", more=True), 5)
    assert trio.current_time() == 5
    monkeypatch.setattr(bodies, "DRAIN_BYTES", 10)
    await drain(coming(b"a" * 6, b"b" * 6, more=True), 5)
    assert trio.current_time() == 5


@pytest.mark.requirement("http.json-only")
@pytest.mark.parametrize(
    ("value", "good"),
    [
        ("application/json", True),
        ("Application/JSON; Charset=UTF-8", True),
        ('application/json; charset="utf-8"', True),
        ("application/json; profile=x", True),
        ("application/json; charset=latin-1", False),
        ("application/json; charset=utf-8; charset=latin-1", False),
        ("text/plain", False),
        ("application/x-www-form-urlencoded", False),
        ("", False),
    ],
)
def test_only_json_in_utf8_is_read(value: str, good: bool) -> None:
    assert is_json(value) is good


@pytest.mark.requirement("doors.large")
async def test_only_so_many_large_bodies_are_held_at_once() -> None:
    rooms, large, most = Rooms(1), b"x" * (LARGE + 1), 4 * LARGE
    with Held(rooms) as first, Held(rooms) as second:
        assert await read_body(coming(large), most, first) == large
        assert await read_body(coming(b"x" * LARGE), most, second) == b"x" * LARGE, (
            "one that is not needs no place"
        )
        assert await read_body(coming(large, b"x"), most, second) == NoRoom(whole=False)
        assert await read_body(coming(large), most, first) == large, "who has a place keeps it"
        first.leave()
        assert await read_body(coming(large), most, second) == large
        first.leave()
    with Held(rooms) as third:
        assert await read_body(coming(large), most, third) == large


@pytest.mark.requirement("doors.large-shares")
def test_nobody_has_all_rooms() -> None:
    rooms = Rooms(3, 2)
    first, second, third = Held(rooms, "ag_1"), Held(rooms, "ag_1"), Held(rooms, "ag_1")
    other, last = Held(rooms, "ag_2"), Held(rooms, "ag_2")
    assert [each.take() for each in (first, second, third, other, last)] == [True, True, False, True, False]
    first.who = "ag_2"  # its bearer has changed, whose room it is has not
    first.leave()
    assert [third.take(), last.take()] == [True, False]
    for each in (second, third, other):
        each.leave()
    assert [Held(rooms, "ag_1").take() for _ in range(3)] == [True, True, False]
