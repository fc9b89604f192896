"""Requests to addresses that others have named: to public ones alone, once, bounded in time and size.

1. The name is resolved once, every address that it has must be public, and the connection goes to one of these very
   addresses: what the name resolves to a moment later changes nothing, and what it looks like (decimal, octal, an
   IPv6 address around an IPv4 one) was never looked at.
2. Redirects are not followed, proxies of the environment not asked, cookies not kept, and one answer is read: at most
   so many bytes, within so many seconds all told.
3. One address is asked A_MINUTE times in a minute at most, however many names it has and however many agents name
   them: who has us call at somebody's door does it no faster. Others wait, within their own time.
4. What went wrong is said in words that hold nothing of what was asked or answered.

Source: RFC 6890 and IANA's registries of special-purpose addresses; RFC 6052 (NAT64), 3056 (6to4), 4380 (Teredo).
"""

import ipaddress
import ssl
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any, Final, TypeVar
from urllib.parse import SplitResult, urlsplit

import h11
import msgspec
import trio

from broker.wire.limits import wait_ms

T = TypeVar("T")
PATIENCE_S: Final = 5.0
"""Seconds for a whole exchange, from the name's resolution on."""
MOST: Final = 65_536
"""Bytes of an answer's body."""
AT_ONCE: Final = 16
"""Exchanges under way; others wait, within their own time."""
DRAIN_S: Final = 1.0
"""Seconds for the rest of an answer whose status alone counts."""
MARGIN_S: Final = 0.05
TRIED: Final = 3
"""Addresses of one name to which a connection is tried."""
A_MINUTE: Final = 6_000
"""Connections to one address (IPv6: /64) in a minute; this machine's own loopback is exempt."""
MINUTE_S: Final = 60.0
PIECES: Final = 1_024
"""Of a body: each is some 20 µs of the loop's time, however small."""
SMALL: Final = 512
"""Bytes that a further piece wants: whoever sends more pieces sends a long body."""
BREATH: Final = 64
"""Pieces after which the loop is everybody else's for a moment."""
EARLY: Final = 8
"""Answers of 1xx before the one that counts."""
NOT_PUBLIC_4: Final = tuple(
    map(
        ipaddress.IPv4Network,
        (
            "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12",
            "168.63.129.16/32", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15",
            "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
        ),
    )
)  # fmt: skip
"""168.63.129.16 looks like a public one, and is the platform of Azure's own machines to each of them."""
PUBLIC_6: Final = ipaddress.IPv6Network("2000::/3")
NOT_PUBLIC_6: Final = tuple(
    map(ipaddress.IPv6Network, ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20"))
)
"""Of the public ones: those that lead elsewhere (Teredo, ORCHID, 6to4) or nowhere (documentation)."""


class NotPublic(Exception):
    """The URL may not be asked: it leads to what is not public, or is no plain https:// URL."""


class NoAnswer(Exception):
    """There is no answer that can be used; the message holds nothing of it."""


class TooSlow(NoAnswer):
    """It took longer than it may."""


class TooLarge(NoAnswer):
    """The body is larger than it may be."""


class Download(msgspec.Struct, frozen=True):
    """What came back to who wants a body: it is read of a 200 alone, and then is all of it."""

    status: int
    headers: dict[str, str]
    body: bytearray


class Answer(msgspec.Struct, frozen=True):
    """What came back: the status, the headers by lower-case name (of a repeated one, all values joined by commas)."""

    status: int
    headers: dict[str, str]
    body: bytes


class _Pace:
    """When each address was asked in the last minute. Nothing stays of one that was quiet for so long."""

    def __init__(self) -> None:
        self._asked: OrderedDict[str, deque[float]] = OrderedDict()

    async def turn(self, address: str) -> None:
        """Wait until this address may be asked again, and count it. Cancelling counts nothing."""
        if _is_loopback(address):
            return
        place = _place(address)
        while left_ms := wait_ms(  # noqa: ASYNC110  # until a known time
            self._asked.get(place, ()), trio.current_time(), A_MINUTE, MINUTE_S
        ):
            await trio.sleep(left_ms / 1000)
        now = trio.current_time()
        self._asked.setdefault(place, deque(maxlen=A_MINUTE)).append(now)
        self._asked.move_to_end(place)
        while now - next(iter(self._asked.values()))[-1] >= MINUTE_S:
            self._asked.popitem(last=False)


class Outbound:
    """A way out. `loopback`: this machine's own loopback may be asked too, without TLS and on any port (tests)."""

    def __init__(
        self, *, loopback: bool = False, tls: ssl.SSLContext | None = None, at_once: int = AT_ONCE
    ) -> None:
        self._loopback = loopback
        self._tls = tls
        self._places = trio.CapacityLimiter(at_once)
        self._pace = _Pace()

    async def request(
        self,
        method: str,
        url: str,
        *,
        headers: Sequence[tuple[str, str]] = (),
        body: bytes = b"",
        most: int = MOST,
        patience_s: float = PATIENCE_S,
    ) -> Answer:
        """One exchange. Raises NotPublic, NoAnswer. Cancelling closes the connection; the other side may have acted."""

        async def whole(stream: trio.abc.Stream, parts: SplitResult) -> Answer:
            return await _exchange(stream, method, parts, headers, body, most)

        return await self._over(url, patience_s, whole)

    async def download(
        self, url: str, *, headers: Sequence[tuple[str, str]] = (), most: int, patience_s: float
    ) -> Download:
        """GET what is large, in one exchange, and not a byte of it twice in memory. An answer that does not say where
        it ends is none: half of it would look like the whole. Raises and cancels as `request`."""

        async def whole(stream: trio.abc.Stream, parts: SplitResult) -> Download:
            return await _download(stream, parts, headers, most)

        return await self._over(url, patience_s, whole)

    async def status(
        self,
        method: str,
        url: str,
        *,
        headers: Sequence[tuple[str, str]] = (),
        body: bytes = b"",
        patience_s: float = PATIENCE_S,
    ) -> tuple[int, dict[str, str]]:
        """One exchange of whose answer only the status and the headers count: the body is thrown away, and may be as
        long and as slow as it likes. Raises and cancels as `request`."""

        async def head(stream: trio.abc.Stream, parts: SplitResult) -> tuple[int, dict[str, str]]:
            return await _ask_status(stream, method, parts, headers, body)

        return await self._over(url, patience_s, head)

    async def _over(
        self, url: str, patience_s: float, exchange: Callable[[trio.abc.Stream, SplitResult], Awaitable[T]]
    ) -> T:
        """What an exchange over a fresh connection gives. Raises NotPublic, NoAnswer."""
        parts, port = self._target(url)
        try:
            with trio.fail_after(patience_s):
                async with self._places:
                    stream = await self._connect(parts, port)
                    try:
                        return await exchange(stream, parts)
                    finally:
                        await trio.aclose_forcefully(stream)
        except trio.TooSlowError:
            raise TooSlow(f"it took longer than {patience_s:g} s") from None
        except (OSError, trio.BrokenResourceError, h11.ProtocolError) as fault:
            raise NoAnswer(type(fault).__name__) from None

    def _target(self, url: str) -> tuple[SplitResult, int]:
        """The URL's parts and port. Raises NotPublic."""
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError:
            raise NotPublic("it is no URL") from None
        if (
            not url.isascii()
            or not url.isprintable()
            or " " in url
            or not parts.hostname
            or "@" in parts.netloc
        ):
            raise NotPublic("it is no plain URL")
        here = parts.hostname == "localhost" or _is_loopback(parts.hostname)
        if self._loopback and here and parts.scheme in ("http", "https"):
            return parts, port or (443 if parts.scheme == "https" else 80)
        if parts.scheme != "https" or port not in (None, 443):
            raise NotPublic("it is not https:// on its own port")
        return parts, 443

    async def _connect(self, parts: SplitResult, port: int) -> trio.abc.Stream:
        """A connection to an address that was looked at. Raises NotPublic, OSError, BrokenResourceError."""
        host = parts.hostname or ""
        try:
            found = await trio.socket.getaddrinfo(host, port, type=trio.socket.SOCK_STREAM)
        except UnicodeError:  # a label that no name has
            raise NotPublic("it is no name of a host") from None
        if not found or not all(self._may_ask(str(each[4][0])) for each in found):
            raise NotPublic("it has an address that is not public")
        fault: OSError | None = None
        for family, kind, protocol, _, address in found[:TRIED]:
            await self._pace.turn(str(address[0]))
            link = trio.socket.socket(family, kind, protocol)
            try:
                await link.connect(address)
            except OSError as error:
                link.close()
                fault = error
                continue
            except BaseException:
                link.close()
                raise
            stream = trio.SocketStream(link)
            return stream if parts.scheme == "http" else self._secured(stream, host)
        assert fault is not None  # there was an address
        raise fault

    def _secured(self, stream: trio.SocketStream, host: str) -> trio.SSLStream[trio.SocketStream]:
        if self._tls is None:
            self._tls = ssl.create_default_context()  # loading the certificates takes a while
        return trio.SSLStream(stream, self._tls, server_hostname=host, https_compatible=True)

    def _may_ask(self, address: str) -> bool:
        return is_public(address) or (self._loopback and _is_loopback(address))


def is_public(address: str) -> bool:
    """Whether an address (as the resolver gives it) is one that anybody on the internet may be asked at."""
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return False
    if isinstance(ip, ipaddress.IPv4Address):
        return not any(ip in each for each in NOT_PUBLIC_4)
    return ip in PUBLIC_6 and not any(ip in each for each in NOT_PUBLIC_6)


def _place(address: str) -> str:
    """What counts as one address: an IPv4 address, an IPv6 /64."""
    ip = ipaddress.ip_address(address)
    return str(
        ip if isinstance(ip, ipaddress.IPv4Address) else ipaddress.IPv6Network((int(ip) >> 64 << 64, 64))
    )


def _is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False


async def _exchange(
    stream: trio.abc.Stream,
    method: str,
    parts: SplitResult,
    headers: Sequence[tuple[str, str]],
    body: bytes,
    most: int,
) -> Answer:
    """Send one request and read its answer. Raises NoAnswer, and what the stream and h11 raise."""
    connection = h11.Connection(h11.CLIENT, max_incomplete_event_size=most)
    await _ask(connection, stream, method, parts, headers, body)
    head = await _head(connection, stream)
    got = await _body(connection, stream, most)
    return Answer(head.status_code, _by_name(head.headers), bytes(got))


async def _download(
    stream: trio.abc.Stream, parts: SplitResult, headers: Sequence[tuple[str, str]], most: int
) -> Download:
    connection = h11.Connection(h11.CLIENT, max_incomplete_event_size=MOST)
    await _ask(connection, stream, "GET", parts, headers, b"")
    head = await _head(connection, stream)
    said = _by_name(head.headers)
    if head.status_code != 200:
        return Download(head.status_code, said, bytearray())
    if "content-length" not in said and "transfer-encoding" not in said:
        raise NoAnswer("its answer does not say where it ends")
    if int(said.get("content-length", 0)) > most:  # h11 has read it as a number
        raise TooLarge(f"its answer has more than {most} bytes")
    return Download(200, said, await _body(connection, stream, most))


async def _ask_status(
    stream: trio.abc.Stream,
    method: str,
    parts: SplitResult,
    headers: Sequence[tuple[str, str]],
    body: bytes,
) -> tuple[int, dict[str, str]]:
    """Send one request and read how its answer begins. Raises as `_exchange`."""
    connection = h11.Connection(h11.CLIENT, max_incomplete_event_size=MOST)
    await _ask(connection, stream, method, parts, headers, body)
    head = await _head(connection, stream)
    ends = min(trio.current_time() + DRAIN_S, trio.current_effective_deadline() - MARGIN_S)
    with trio.move_on_at(ends), suppress(NoAnswer, OSError, trio.BrokenResourceError, h11.ProtocolError):
        await _body(connection, stream, MOST)  # some servers stop what they do when the client leaves early
    return head.status_code, _by_name(head.headers)


async def _ask(
    connection: h11.Connection,
    stream: trio.abc.Stream,
    method: str,
    parts: SplitResult,
    headers: Sequence[tuple[str, str]],
    body: bytes,
) -> None:
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    sent = [("host", parts.netloc), ("connection", "close"), ("user-agent", "turret"), *headers]
    if body or method != "GET":
        sent.append(("content-length", str(len(body))))
    request = h11.Request(method=method, target=target, headers=sent)
    data = connection.send(request) or b""
    data += connection.send(h11.Data(body)) or b"" if body else b""
    await stream.send_all(data + (connection.send(h11.EndOfMessage()) or b""))


async def _head(connection: h11.Connection, stream: trio.abc.Stream) -> h11.Response:
    """The answer's status and headers; what comes before (1xx) is passed over, a little of it."""
    for _ in range(EARLY + 1):
        event = await _next(connection, stream)
        if isinstance(event, h11.Response):
            return event
    raise NoAnswer(f"more than {EARLY} answers came before the one that counts")


async def _body(connection: h11.Connection, stream: trio.abc.Stream, most: int) -> bytearray:
    got, pieces = bytearray(), 0
    while pieces < PIECES + len(got) // SMALL:
        event = await _next(connection, stream)
        pieces += 1
        if isinstance(event, h11.Data):
            got += event.data
            if len(got) > most:
                raise TooLarge(f"its answer has more than {most} bytes")
        elif isinstance(event, h11.EndOfMessage):
            return got
        if pieces % BREATH == 0:
            await trio.lowlevel.checkpoint()
    raise NoAnswer(f"its answer is in more than {PIECES} small pieces")


async def _next(connection: h11.Connection, stream: trio.abc.Stream) -> Any:
    """The next event of h11's. Raises NoAnswer where the other side has closed."""
    while (event := connection.next_event()) is h11.NEED_DATA:
        connection.receive_data(bytes(await stream.receive_some(16_384)))
    if isinstance(event, h11.ConnectionClosed):
        raise NoAnswer("it closed the connection")
    return event


def _by_name(headers: Any) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in headers:
        key, text = name.decode("latin-1"), value.decode("latin-1")
        found[key] = f"{found[key]}, {text}" if key in found else text
    return found
