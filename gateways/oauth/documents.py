"""Clients whose id is a URL: their metadata documents, fetched and kept by the documents' own headers.

1. Only public addresses are asked, once, without redirects (gateways.outbound); whoever names a URL learns nothing of
   why it could not be had but that it could not.
2. A document is kept as its text, which is small, as long as its headers say, a day at most: read, JSON that somebody
   has made for it takes twenty times the room. A failure is kept for a moment, and one host is asked
   thirty times a minute at most: nobody is flooded through us.

Source: OAuth client ID metadata documents (MCP 2025-11-25, Authorization), 3 to 6; RFC 9111 4.2.
"""

import logging
import re
from collections import OrderedDict, deque
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

import trio

from broker.clock import Clock
from broker.wire import canonical
from gateways.listen import EXEMPT, place_of
from gateways.outbound import Answer, NoAnswer, NotPublic, Outbound

log = logging.getLogger(__name__)

KEPT: Final = 512
"""Documents in memory."""
MOST: Final = 16_384
"""Bytes of one; ours to read are a name and some URLs."""
LONGEST_S: Final = 86_400.0
UNSAID_S: Final = 300.0
"""How long a document is kept that says nothing of it."""
FAILED_S: Final = 30.0
"""How long it is known that there was none."""
A_MINUTE: Final = 30
"""Documents asked of one host in a minute, and for one address."""
COUNTED: Final = 4096
"""Hosts and addresses that are counted."""
_MAX_AGE: Final = re.compile(r'max-age="?([0-9]{1,9})')


class Documents:
    """The documents that were asked for lately."""

    def __init__(self, outbound: Outbound, clock: Clock) -> None:
        self._outbound = outbound
        self._clock = clock
        self._kept: OrderedDict[str, tuple[float, bytes | None]] = OrderedDict()
        self._asking: dict[str, trio.Event] = {}
        self._counted: OrderedDict[tuple[str, str], deque[float]] = OrderedDict()

    async def find(self, url: str, address: str | None = None) -> dict[str, Any] | None:
        """The JSON object at a URL, whatever is in it; None where there is none to be had. Asked once at a time.

        `address`: for whom; None and loopback are not counted. Cancelling gives up; others who wait for the same one
        ask themselves.
        """
        while (under_way := self._asking.get(url)) is not None:
            await under_way.wait()
        kept = self._kept.get(url)
        if kept is not None and kept[0] > self._clock.monotonic():
            await trio.lowlevel.checkpoint()
            return _read(kept[1])
        place = place_of(address, ())
        fair = place == EXEMPT or self._may_ask("for", place)
        if not fair or not self._may_ask("of", urlsplit(url).netloc.lower()):
            await trio.lowlevel.checkpoint()
            return None
        done = self._asking[url] = trio.Event()
        try:
            text, lives_s = await self._fetch(url)
        finally:
            del self._asking[url]
            done.set()
        self._kept[url] = (self._clock.monotonic() + lives_s, text)
        self._kept.move_to_end(url)
        if len(self._kept) > KEPT:
            self._kept.popitem(last=False)
        return _read(text)

    async def _fetch(self, url: str) -> tuple[bytes | None, float]:
        """The text of a good document, None where there is none; and for how many seconds that is kept."""
        try:
            asked = [("accept", "application/json")]
            answer = await self._outbound.request("GET", url, headers=asked, most=MOST)
        except (NotPublic, NoAnswer) as fault:
            log.info("a client's document can't be had: %s", fault)
            return None, FAILED_S
        if not _is_json(answer) or _read(answer.body) is None:
            return None, FAILED_S
        return answer.body, lives_for(answer.headers)

    def _may_ask(self, side: str, who: str) -> bool:
        counted = (side, who)
        now = self._clock.monotonic()
        times = self._counted.setdefault(counted, deque(maxlen=A_MINUTE))
        self._counted.move_to_end(counted)
        if len(self._counted) > COUNTED:
            self._counted.popitem(last=False)
        if len(times) == A_MINUTE and now - times[0] < 60:
            return False
        times.append(now)
        return True


def lives_for(headers: Mapping[str, str]) -> float:
    """Seconds for which an answer may be used again, by its headers; a day at most (pure)."""
    control = headers.get("cache-control", "").lower()
    if "no-store" in control or "no-cache" in control:
        return 0.0
    found = _MAX_AGE.search(control)
    if found is None:
        return UNSAID_S
    age = headers.get("age", "0").strip()
    return max(
        0.0, min(LONGEST_S, float(found[1])) - (float(age) if age.isdigit() and len(age) < 10 else 0.0)
    )


def _is_json(answer: Answer) -> bool:
    """Whether an answer is a good one, of JSON as it stands there."""
    kind = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
    json = kind == "application/json" or (kind.startswith("application/") and kind.endswith("+json"))
    return answer.status == 200 and json and answer.headers.get("content-encoding", "identity") == "identity"


def _read(text: bytes | None) -> dict[str, Any] | None:
    """The object in a text."""
    document = canonical.read(text) if text is not None else None
    return document if isinstance(document, dict) else None
