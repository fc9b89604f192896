"""The way out to webhooks and to tapes of others: one POST or GET, to what is public alone, and what came of it
(network.md, Webhooks; trial.md, Tape sources).

1. What a receiver answers beside its status is read, a little of it, and thrown away: no agent sees a byte of it. Of a
   source that does not answer 200 nothing is read.
2. One that is slow costs its own patience. Names are looked up in threads of their own (Resolver), so that a slow
   server of names takes none from the disk.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from socket import getaddrinfo, getnameinfo
from typing import Any, Final

import trio

from broker.app import Missed, Outcome
from gateways.outbound import NoAnswer, NotPublic, Outbound, TooLarge, TooSlow

PATIENCE_S: Final = 15.0
"""For one POST, from the name's resolution to the status: what Standard Webhooks recommends at least."""
LOOKUPS: Final = 16
"""Names that are looked up at once; a thread that hangs in one stays taken until the system gives up."""


class Courier:
    """What open_broker is given, over the guarded way out."""

    def __init__(self, out: Outbound, *, patience_s: float = PATIENCE_S) -> None:
        self._out = out
        self._patience_s = patience_s

    async def send(self, url: str, headers: Sequence[tuple[str, str]], body: bytes) -> Outcome:
        """POST once. Raises nothing for what the URL or the receiver does; cancelling closes the connection."""
        try:
            status, answered = await self._out.status(
                "POST", url, headers=headers, body=body, patience_s=self._patience_s
            )
        except NotPublic:
            return Outcome(None, "not_public")
        except NoAnswer:
            return Outcome(None, "no_answer")
        asked = read_retry_after(answered.get("retry-after", "")) if status in (429, 503) else None
        return Outcome(status, retry_after_s=asked)


class Fetcher:
    """What open_broker is given to fetch files with, over the same guarded way out."""

    def __init__(self, out: Outbound) -> None:
        self._out = out

    async def fetch(
        self, url: str, headers: Sequence[tuple[str, str]], *, most: int, patience_s: float
    ) -> bytearray | Missed:
        """GET once, all of it. Raises nothing for what the URL or the source does; cancelling closes the connection."""
        try:
            came = await self._out.download(url, headers=headers, most=most, patience_s=patience_s)
        except NotPublic:
            return Missed("not_public")
        except TooSlow:
            return Missed("too_slow")
        except TooLarge:
            return Missed("too_large")
        except NoAnswer:
            return Missed("no_answer")
        if came.status != 200:
            return Missed("redirect" if 300 <= came.status < 400 else "status", came.status)
        if came.headers.get("content-encoding", "identity").lower() != "identity":
            return Missed("encoding", came.status)
        return came.body


class Resolver(trio.abc.HostnameResolver):
    """Looks names up in threads of its own. Install it with `trio.socket.set_custom_hostname_resolver`."""

    def __init__(self, at_once: int = LOOKUPS) -> None:
        self._places = trio.CapacityLimiter(at_once)

    async def getaddrinfo(
        self,
        host: bytes | None,
        port: bytes | str | int | None,
        family: int = 0,
        type: int = 0,
        proto: int = 0,
        flags: int = 0,
    ) -> list[Any]:
        """As the system does. Cancelling leaves the thread to itself."""
        return await trio.to_thread.run_sync(
            getaddrinfo, host, port, family, type, proto, flags,
            limiter=self._places, abandon_on_cancel=True,
        )  # fmt: skip

    async def getnameinfo(self, sockaddr: Any, flags: int) -> tuple[str, str]:
        """As the system does."""
        return await trio.to_thread.run_sync(
            getnameinfo, sockaddr, flags, limiter=self._places, abandon_on_cancel=True
        )


def read_retry_after(text: str, now: datetime | None = None) -> float | None:
    """Seconds that a Retry-After asks for (RFC 9110, 10.2.3: seconds, or a date); None where it says nothing."""
    text = text.strip()
    if text.isascii() and text.isdigit():
        return float(text[:9])
    try:
        then = parsedate_to_datetime(text)
    except (ValueError, IndexError, TypeError):
        return None
    if then.tzinfo is None:
        then = then.replace(tzinfo=UTC)
    return max(0.0, (then - (now or datetime.now(UTC))).total_seconds())
