"""A dealer as the wire's rules want it: it never signs twice for one n, repeats in doubt, and resumes by cursor.

It outlives connections and brokers. What it is told is handed to the ledger; what it sees is where it goes on.
"""

import random
from typing import TYPE_CHECKING, Any

import trio

from broker.wire.envelope import bootstrap
from broker.wire.events import read_cursor
from broker.wire.ids import ConvId
from broker.wire.keys import SigningKey
from tests.simulation.links import Link, Lost, PortLink, Told, Wrong
from tests.simulation.plan import Talk
from tests.support.broker import Party

if TYPE_CHECKING:
    from tests.simulation.world import World

TRIES = 400
"""Times that a request is sent before the broker counts as stuck."""
ANSWER_S = 11.0
"""The longest that an envelope waits: for the commit before it, and for its own, 5 s each."""
WAITS = ("unavailable", "overloaded", "in_doubt", "rate_limited", "desk_busy")
GIVE_UP = ("desk_busy", "overloaded")
"""A dial that is refused so is not tried for ever."""
Params = dict[str, Any]


class Line:
    """A call as one party sees it."""

    def __init__(self) -> None:
        self.n = -1
        self.sig = ""
        self.ended = False
        self.moved = trio.Event()

    def note(self, n: int, sig: str, type: str) -> None:
        """The head is at least there."""
        if n > self.n:
            self.n, self.sig = n, sig
        self.ended = self.ended or type == "END"
        self.moved.set()
        self.moved = trio.Event()


class Dealer:
    """One desk."""

    def __init__(self, world: "World", index: int, port: bool) -> None:
        self.world = world
        self.index = index
        self.port = port
        self.party = Party("D" + "ABCDEFGH"[index] * 3, SigningKey.from_seed(f"{index + 1:064x}"))
        self.stream = f"pk:{self.party.pk}"
        self.link: Link | None = None
        self.linked = trio.Event()
        self.following = False
        self.gone_at = 0.0
        """Since when no connection of it is known to be open; the clock that never steps."""
        self.away_until = 0.0
        self.cursor = "0"
        self.position = 0
        self.lines: dict[str, Line] = {}
        self.sent: list[tuple[str, Params]] = []
        """Requests that were acknowledged, to be repeated."""
        self.opened = trio.Event()
        self.leaving = False
        self._nonces = 0
        self._chance = random.Random(f"dealer {world.plan.seed} {index}")

    # ── the connection ──

    async def live(self) -> None:
        """Connect, follow, read; and again, for as long as the run lasts."""
        while not self.leaving:
            wait = self.away_until - trio.current_time()
            await trio.sleep(max(wait, 0.0))
            await self.world.up.wait()
            try:
                async with trio.open_nursery() as nursery:
                    link = await self.connect(nursery)
                    self.link = link
                    self.linked.set()
                    await link.down.wait()
                    nursery.cancel_scope.cancel()
            except* Lost:
                pass
            self.link = None
            self.following = False
            self.linked = trio.Event()
            self.gone_at = trio.current_time()
            self.world.note(f"{self.party.code} lost")
            await trio.sleep(self._chance.choice((0.0, 0.1, 1.0)))

    async def connect(self, nursery: trio.Nursery, after: str | None = None) -> Link:
        """A connection that has proved its key, has its desk and follows its stream. Raises Lost."""
        seen = _Other(self, after).take if after is not None else self.take
        link: Link
        if self.port:
            pipe = await self.world.dial()
            link = port = PortLink(pipe, seen)
            nursery.start_soon(port.run)
            await port.open()
            proof = self.statement("authenticate", port.hello["challenge"])
            told = await port.ask("authenticate", proof)
            if told.code == "bad_statement":
                self.world.skewed(told)
            if told.code:
                link.drop()
                raise Lost
        else:
            link = self.world.direct(self, seen)
        if not self.opened.is_set():
            told = await link.ask("open_desk", self.statement("open_desk", code=self.party.code))
            if told.code:
                link.drop()
                raise Lost
            self.opened.set()
        await link.follow(self.cursor if after is None else after)
        if not self.port:
            nursery.start_soon(link.run)
        self.following = after is None or self.following
        self.world.note(f"{self.party.code} up")
        return link

    def statement(self, do: str, nonce: str | None = None, **members: Any) -> Params:
        self._nonces += 1
        nonce = nonce or f"{self.index:08x}{self._nonces:024x}"
        return self.party.statement(do, self.world.keyring.pk, self.world.ts, nonce, **members)

    # ── the stream ──

    def take(self, kind: str, params: Params) -> None:
        """What the followed stream gives, in order."""
        try:
            self._take(kind, params)
        except Exception as error:
            self.world.fail(error)

    def _take(self, kind: str, params: Params) -> None:
        if kind == "resume":
            self._resumed(params)
            return
        if kind == "ended":
            return
        cursor = read_cursor(params["cursor"])
        check = self.world.ledger.check
        check(
            "each event once, in order",
            cursor is not None and cursor.position == self.position + 1,
            params["cursor"],
            self.position,
        )
        self.position += 1
        self.cursor = params["cursor"]
        self.world.ledger.read(self.stream, self.position, kind, params)
        if kind in ("ring", "env", "end"):
            envelope = params["envelope"]
            self.world.note(f"{self.party.code} {kind} {params['conv']} {params['n']}")
            self.line(params["conv"]).note(params["n"], params["sig"], envelope["type"])
            if kind == "ring":
                self.world.rung(self, params["conv"])

    def _resumed(self, resume: Params) -> None:
        """Contiguous, or honestly refused: only what retention took may be missing."""
        check = self.world.ledger.check
        start, head = read_cursor(resume["from"]), read_cursor(resume["head"])
        assert start is not None
        assert head is not None
        newest = len(self.world.ledger.streams.get(self.stream, ()))
        check("the head is told", head.position <= newest, resume, newest)
        if resume["recovered"] and self.cursor != "0":
            check("resumed where it was", start.position == self.position, resume, self.position)
        elif not resume["recovered"]:
            check("only retention loses a cursor", resume["reason"] == "trimmed", resume)
            check("trimmed goes on behind", start.position > self.position, resume, self.position)
            check("trimmed by the settings", newest - start.position >= self.world.plan.keep_events, resume)
            self.world.reread(self)
        self.position, self.cursor = start.position, resume["from"]

    async def reread(self) -> None:
        """After a gap: how each call stands is read from its transcript."""
        for conv, line in list(self.lines.items()):
            after = line.n
            while not line.ended:
                try:
                    told = await self.ask("read_conv", {"conv": conv, "after": after})
                except Lost:
                    await trio.sleep(0.1)
                    continue
                if told.code:
                    await trio.sleep(1)
                    continue
                for row in told.body["rows"]:
                    self.world.ledger.check(
                        "read as committed",
                        self.world.ledger.stored(conv, row["n"], row["sig"]),
                        conv,
                        row["n"],
                    )
                    line.note(row["n"], row["sig"], row["envelope"]["type"])
                    after = row["n"]
                if "next" not in told.body:
                    break

    def line(self, conv: str) -> Line:
        return self.lines.setdefault(conv, Line())

    # ── asking ──

    async def ask(self, method: str, params: Params) -> Told:
        """Ask on the present connection, waiting for one. Raises Lost."""
        while self.link is None:
            await self.linked.wait()
        return await self.link.ask(method, params)

    async def settle(self, method: str, params: Params, clean: bool = True) -> Told | None:
        """Send until the outcome is known: the acknowledgement, or a refusal that is final.

        None: it is not known, and nothing more can be done (a statement's or envelope's time is over).
        """
        envelope = params["envelope"]
        conv, n, sig = envelope["conv"], int(envelope["n"]), params["sig"]
        ledger, doubt, waited = self.world.ledger, False, -1.0
        for count in range(TRIES):
            before, life = ledger.stored(conv, n, sig), ledger.life
            sure, began, link = count == 0 and clean, trio.current_time(), self.link
            try:
                told = await self.ask(method, params)
            except Lost:
                doubt = True
                await trio.sleep(0.1)
                continue
            self.world.note(f"{self.party.code} {method} {conv} {n} {told.code or 'ok'}")
            if link is self.link and not self.port and envelope["type"] == "CHAT":
                took = trio.current_time() - began
                ledger.check("answered in time", took <= ANSWER_S, conv, n, f"{took:.1f} s")
            if not told.code:
                ledger.acknowledge(conv, n, sig, told.body, before)
                self.sent.append((method, params))
                return told
            ledger.refuse(conv, n, sig, told.code, before, sure)
            doubt = doubt or told.code == "in_doubt"
            if told.code == "clock_skew" and doubt:
                return None
            if told.code not in WAITS or (method == "send_call" and told.code in GIVE_UP and count > 5):
                return told
            if told.code == "rate_limited":
                quiet = waited == life == ledger.life and not doubt and conv not in ledger.doubted
                ledger.check("waiting as told is enough", not quiet, conv, n, told.body)
                waited = life
            await trio.sleep(told.body.get("retry_after_ms", 1000) / 1000)
        raise Wrong(f"{method} {conv} {n} is never settled")

    # ── calls ──

    def build(self, talk: Talk, n: int, type: str, prev_sig: str, body: Params) -> Params:
        """The signed params of an envelope of a talk."""
        other = self.world.dealers[talk.called if talk.caller == self.index else talk.caller]
        conv = self.world.conv(talk)
        return self.party.envelope(conv, n, type, other.party.pk, self.world.ts, prev_sig, body)

    async def dial(self, talk: Talk) -> Told | None:
        """Send the CALL of a talk until it is settled."""
        called = self.world.dealers[talk.called]
        conv = self.world.conv(talk)
        while True:
            params = self.build(
                talk,
                0,
                "CALL",
                bootstrap(ConvId(conv)),
                {"code_from": self.party.code, "code_to": called.party.code, "wire": self.world.keyring.pk},
            )
            del params["conv"], params["n"]
            params["to_code"] = called.party.code
            told = await self.settle("send_call", params)
            if told is not None and told.code == "clock_skew":
                continue  # the clock stepped while it was on its way; it certainly was not written
            if told is not None and not told.code:
                self.line(conv).note(0, params["sig"], "CALL")
            return told


class _Other:
    """A second reader of the same stream, from some cursor."""

    def __init__(self, dealer: Dealer, after: str) -> None:
        self._dealer = dealer
        self._after = after
        self._position = -1

    def take(self, kind: str, params: Params) -> None:
        """As the dealer's own, but that nothing follows from it."""
        try:
            self._take(kind, params)
        except Exception as error:
            self._dealer.world.fail(error)

    def _take(self, kind: str, params: Params) -> None:
        ledger, stream = self._dealer.world.ledger, self._dealer.stream
        if kind == "resume":
            start = read_cursor(params["from"])
            assert start is not None
            self._position = start.position
            asked = read_cursor(self._after)
            if params["recovered"] and asked is not None:
                ledger.check("resumed where it was", start.position == asked.position, params)
            elif asked is not None and params.get("reason") not in (None, "trimmed"):
                wrong = asked.tag != start.tag or asked.position > start.position
                ledger.check("a good cursor is taken", wrong, params, self._after)
        elif kind != "ended":
            cursor = read_cursor(params["cursor"])
            ledger.check(
                "each event once, in order", cursor is not None and cursor.position == self._position + 1
            )
            self._position += 1
            ledger.read(stream, self._position, kind, params)
