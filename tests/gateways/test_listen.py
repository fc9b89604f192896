"""Sockets with deadlines of their own, and the places that a port has."""

import ipaddress
import socket

import pytest
import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st

from broker.actors.guard import place_of as client_of
from gateways.listen import (
    EXEMPT,
    Address,
    Bounds,
    DeadlineStream,
    Places,
    peer_of,
    place_of,
    read_hop,
    tune,
    values_of,
)
from tests.support.network import listening
from tests.support.peers import read_all, stalled


class Pair:
    """Both ends of one connection of the kernel, the near one in a DeadlineStream."""

    def __init__(self, send_s: float) -> None:
        near, far = socket.socketpair()
        self.breaks = 0
        self.near = DeadlineStream(
            trio.SocketStream(trio.socket.from_stdlib_socket(near)), send_s, self._count
        )
        self.far = trio.SocketStream(trio.socket.from_stdlib_socket(far))

    def _count(self) -> None:
        self.breaks += 1


async def test_what_is_sent_arrives_whole_and_in_order() -> None:
    pair = Pair(5)
    data = bytes(range(256)) * 4096
    async with trio.open_nursery() as nursery, pair.far:

        async def send() -> None:
            await pair.near.send_all(data)
            await pair.near.send_all(b"")
            await pair.near.send_eof()

        nursery.start_soon(send)
        assert await read_all(pair.far) == data
    await pair.near.aclose()
    assert pair.breaks == 0


@pytest.mark.requirement("http.send-deadline")
async def test_a_write_without_progress_breaks_the_stream_also_inside_a_shield() -> None:
    pair = Pair(0.1)
    async with pair.far:
        began = trio.current_time()
        with trio.CancelScope(shield=True), pytest.raises(trio.BrokenResourceError, match="does not read"):
            await pair.near.send_all(b"x" * 10_000_000)
        assert trio.current_time() - began < 2
        with pytest.raises(trio.BrokenResourceError):
            await pair.near.send_all(b"more")
        with pytest.raises((trio.BrokenResourceError, trio.ClosedResourceError)):
            await pair.near.receive_some()
        assert pair.breaks == 1


async def test_a_reader_that_is_slow_but_goes_on_is_not_broken() -> None:
    pair = Pair(0.3)
    async with trio.open_nursery() as nursery, pair.far:
        nursery.start_soon(pair.near.send_all, b"x" * 600_000)
        left = 600_000
        while left:
            left -= len(await pair.far.receive_some(65_536))
            await trio.sleep(0.05)
    await pair.near.aclose()
    assert pair.breaks == 0


async def test_a_far_end_that_left_breaks_the_stream_once() -> None:
    pair = Pair(1)
    await pair.far.aclose()
    with pytest.raises(trio.BrokenResourceError):
        await pair.near.send_all(b"x" * 1000)
    with pytest.raises(trio.BrokenResourceError):
        await pair.near.send_all(b"x")
    assert pair.breaks == 1


async def test_aborting_wakes_whoever_sends_or_reads() -> None:
    pair = Pair(60)
    async with pair.far:
        with trio.fail_after(2):
            async with trio.open_nursery() as nursery:

                async def send() -> None:
                    with pytest.raises((trio.ClosedResourceError, trio.BrokenResourceError)):
                        await pair.near.send_all(b"x" * 10_000_000)

                async def read() -> None:
                    with pytest.raises((trio.ClosedResourceError, trio.BrokenResourceError)):
                        await pair.near.receive_some()

                nursery.start_soon(send)
                nursery.start_soon(read)
                await trio.testing.wait_all_tasks_blocked()
                pair.near.abort()
                pair.near.abort()
    assert pair.breaks == 1


async def test_a_write_in_the_midst_of_another_is_refused() -> None:
    pair = Pair(5)
    async with pair.far, trio.open_nursery() as nursery:
        nursery.start_soon(pair.near.send_all, b"x" * 10_000_000)
        await trio.testing.wait_all_tasks_blocked()
        with pytest.raises(trio.BusyResourceError):
            await pair.near.send_all(b"y")
        nursery.cancel_scope.cancel()
    assert pair.breaks == 1  # cancelled half-way: nobody knows what was sent


async def test_the_kernel_is_told_to_find_dead_peers() -> None:
    options: list[int] = []

    async def handler(stream: trio.SocketStream) -> None:
        tune(stream, 30)
        options.append(stream.socket.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE))
        options.append(stream.socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT))

    async with listening(handler) as address, stalled(address, b"") as stream:
        await read_all(stream)
    assert options == [1, 30_000]


@pytest.mark.requirement("http.connection-bounds")
@given(st.lists(st.tuples(st.sampled_from(["a", "b", EXEMPT]), st.booleans())))
def test_places_are_never_more_than_the_bounds_and_all_come_back(steps: list[tuple[str, bool]]) -> None:
    places = Places(Bounds(connections=5, per_address=2))
    held: list[str] = []
    for address, enter in steps:
        if enter:
            room = len(held) < 5 and (address == EXEMPT or held.count(address) < 2)
            assert places.take(address) is room
            held += [address] if room else []
        elif address in held:
            held.remove(address)
            places.leave(address)
    for address in held:
        places.leave(address)
    assert places.taken == 0
    assert all(places.take(address) for address in ("a", "a", "b", "b", EXEMPT))


@pytest.mark.requirement("http.connection-bounds")
@pytest.mark.parametrize(
    ("address", "place"),
    [
        (None, EXEMPT),
        ("", EXEMPT),
        ("127.0.0.1", EXEMPT),
        ("::1", EXEMPT),
        ("::ffff:127.0.0.1", EXEMPT),
        ("10.0.0.5", EXEMPT),
        ("::ffff:10.0.0.5", EXEMPT),
        ("fd00::5", EXEMPT),
        ("203.0.113.9", "203.0.113.9"),
        ("::ffff:203.0.113.9", "203.0.113.9"),
        ("2001:db8::1:2:3:4", "2001:db8::/64"),
        ("2001:db8::9:9:9:9", "2001:db8::/64"),
        ("fe80::1%eth0", "fe80::/64"),
    ],
)
def test_connections_are_counted_by_address_but_not_from_loopback_and_proxies(
    address: str | None, place: str
) -> None:
    proxies = tuple(ipaddress.ip_network(text) for text in ("10.0.0.0/8", "fd00::5"))
    assert place_of(address, proxies) == place


@given(st.ip_addresses())
def test_a_port_and_the_limits_of_the_broker_agree_on_what_one_address_is(address: Address) -> None:
    expected = None if address.is_loopback else client_of(str(address))
    assert place_of(str(address), ()) == (expected or EXEMPT)


@given(st.text(max_size=40))
def test_a_hop_is_an_address_or_nothing(text: str) -> None:
    assert read_hop(text) is None or "." in text or ":" in text


def test_a_request_tells_its_peer_and_every_value_of_a_header() -> None:
    scope = {"client": ("::ffff:10.0.0.1", 80), "headers": [(b"X-A", b"1"), (b"b", b"2"), (b"x-a", b"3")]}
    assert peer_of(scope) == ipaddress.ip_address("10.0.0.1")
    assert peer_of({**scope, "client": None}) is None
    assert (values_of(scope, b"x-a"), values_of(scope, b"c")) == ([b"1", b"3"], [])
