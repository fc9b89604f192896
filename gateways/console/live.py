"""The first page: the tape of envelopes as they are accepted, and the broker's figures, live.

1. One stream of server-sent events a page; it ends when the session does, and the browser comes back by itself after a
   restart. While nobody looks there is no stream, and nothing is read.
2. An event is the whole tape, ROWS lines of it, four times a second at most: what a page costs has a bound, however
   much is said.
3. Desks' codes are read from their conversation, a few new ones a time; until then a key's first letters stand there.
"""

from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator, Mapping
from functools import partial
from typing import Any, Final

import msgspec
import trio
from quart import Response

from broker.app import Broker, Ended, Passed, TapeWatch
from broker.wire.refusals import Refusal, refuse
from gateways.console.sessions import Session
from gateways.console.site import Console, Shown, Visit, away
from gateways.eventstream import comment, encode
from gateways.pages.shell import Page
from gateways.streaming import HEADERS

ROWS: Final = 40
"""Lines of the tape on a page."""
BEAT_S: Final = 2.0
"""How old figures get, and how soon a reader that left is noticed."""
NAMED: Final = 8
"""Conversations whose desks one event looks up."""
REMEMBERED: Final = 512
"""Conversations whose desks a page remembers."""
OVER: Final = refuse("unauthenticated", "signed out")
FINE: Final = frozenset({"ok", "duplicate", "cancelled"})
"""Outcomes that are no refusals."""


class Counts:
    """The figures of the first page and of health, read when somebody looks."""

    def __init__(self, broker: Broker, counts: Mapping[tuple[str, str], int]) -> None:
        self._broker = broker
        self._counts = counts

    def refusals(self) -> list[tuple[str, int]]:
        """Refusals and faults by code since the start, the most frequent first."""
        by_code: Counter[str] = Counter()
        for (_, outcome), count in list(self._counts.items()):
            if outcome not in FINE:
                by_code[outcome] += count
        return by_code.most_common(30)

    def figures(self) -> dict[str, Any]:
        """Statistics as plain values, and why the broker is not ready."""
        found: dict[str, Any] = msgspec.structs.asdict(self._broker.statistics())
        return {**found, "reasons": self._broker.readiness(), "refusals": self.refusals()}


class Desks:
    """Which desks a conversation is between, remembered for as long as a page is open."""

    def __init__(self, console: Console, session: Session) -> None:
        self._console = console
        self._session = session
        self._known: OrderedDict[str, dict[str, str]] = OrderedDict()

    async def learn(self, convs: list[str]) -> None:
        """Look up what is not known yet: a few at a time."""
        for conv in [each for each in dict.fromkeys(convs) if each not in self._known][:NAMED]:
            found = await self._console.ask(self._session, "read_conv", conv=conv, limit=1)
            parties = {} if isinstance(found, Refusal) else found["parties"]
            self._known[conv] = {party["pk"]: party["code"] for party in parties.values()}
            while len(self._known) > REMEMBERED:
                self._known.popitem(last=False)

    def name(self, conv: str, pk: str) -> str:
        """The code under which a key takes part, "the wire", or the key's first letters."""
        known = self._known.get(conv)
        if known is not None and pk in known:
            return known[pk]
        return "the wire" if pk == self._console.broker.pk else f"{pk[:8]}…"


def register(console: Console, counts: Counts) -> None:
    """Add the page and its stream."""

    async def show(visit: Visit) -> Shown:
        answer = await console.ask(visit.session, "review_queue")
        waiting = {} if isinstance(answer, Refusal) else answer
        reported = {"reported": len(waiting.get("queue", ())), "more": "next" in waiting}
        return Page("now.html", {**counts.figures(), **reported, "lines": [], "missed": 0})

    async def stream(visit: Visit) -> Shown:
        session = visit.session
        if session is None:
            return _events(_over(console))
        watch = await console.broker.tape(session.operator)
        if isinstance(watch, Refusal):
            return away(watch)
        return _events(_tell(console, counts, session, watch))

    console.get("/", show)
    console.get("/live", stream, open_to_all=True)


def _over(console: Console) -> bytes:
    """The last event: the page says so, and comes back no more."""
    return encode(console.part("over.html", {}).encode(), event="over")


async def _tell(console: Console, counts: Counts, session: Session, watch: TapeWatch) -> AsyncIterator[bytes]:
    """The events of one page, until its session or the broker ends."""
    end = partial(watch.end, OVER)
    session.on_end(end)
    lines: deque[Passed] = deque(maxlen=ROWS)
    desks, missed, last = Desks(console, session), 0, ""
    try:
        with watch:
            yield comment("live")
            while session.until > trio.current_time():
                glance = None
                with trio.move_on_after(BEAT_S):
                    glance = await watch.take()
                if glance is not None:
                    missed += glance.count - len(glance.rows)
                    await desks.learn([each.conv for each in reversed(glance.rows)])
                    lines.extend(glance.rows)
                    shown = {"lines": list(reversed(lines)), "missed": missed, "name": desks.name}
                    yield encode(console.part("tape.html", shown).encode(), event="tape")
                text = console.part("figures.html", counts.figures())
                yield encode(text.encode(), event="figures") if text != last else comment()
                last = text
    except Ended:
        if not session.over:  # the broker stops: the browser comes back when there is one again
            return
    finally:
        session.forget(end)
    yield _over(console)


def _events(stream: AsyncIterator[bytes] | bytes) -> Response:
    response = Response(stream, 200)
    response.timeout = None
    response.headers.update({name.decode(): value.decode() for name, value in HEADERS})
    response.headers["x-content-type-options"] = "nosniff"
    return response
