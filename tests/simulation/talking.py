"""Both sides of a call, each in a style of its own (plan.py)."""

import random
from typing import Any

import trio

from tests.simulation.dealer import Dealer, Line
from tests.simulation.links import Lost, Wrong
from tests.simulation.plan import Talk

FINAL = ("conflict", "conv_ended", "clock_skew")
"""What a right envelope may be refused with for good: another one was first, or the wall clock stepped."""


class Side:
    """One party of one call."""

    def __init__(self, dealer: Dealer, talk: Talk, caller: bool) -> None:
        self.dealer = dealer
        self.talk = talk
        self.caller = caller
        self.conv = dealer.world.conv(talk)
        self._serial = 0
        self._chance = random.Random(f"side {dealer.world.plan.seed} {talk.number} {caller}")

    async def run(self) -> None:
        """Talk until the call has ended, or until this side stops taking part."""
        line = self.dealer.line(self.conv)
        while not line.ended:
            n, type = line.n + 1, self._next(line)
            if type is None:
                await line.moved.wait()
                continue
            if self.talk.think_s:
                await trio.sleep(self._chance.uniform(0, 2 * self.talk.think_s))
                if line.n + 1 != n or line.ended:
                    continue
            if self.talk.style == "rude":
                await self._rudely(line, n)
            if not await self._speak(line, n, type):
                return

    def _next(self, line: Line) -> str | None:
        """What this side is to send now; None: it waits for the other one, or for the wire."""
        n, style = line.n + 1, self.talk.style
        mine = (n % 2 == 0) == self.caller
        if n == 0:
            return None
        if n == 1:
            if self.caller:
                return "END" if style == "cancel" else None
            return None if style == "silent" else "PICKUP"
        if n >= self.talk.length:
            if style == "abandon":
                return None
            return "END" if mine or style == "race" else None
        return "CHAT" if mine else None

    async def _speak(self, line: Line, n: int, type: str) -> bool:
        """Send it; whether to go on."""
        if self.talk.style == "twice" and type == "CHAT":
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._send, line, n, type)
                nursery.start_soon(self._send, line, n, type)
            return True
        return await self._send(line, n, type)

    async def _send(self, line: Line, n: int, type: str) -> bool:
        while True:
            self._serial += 1
            params = self.dealer.build(self.talk, n, type, line.sig, {"x": self._serial, "at": n})
            told = await self.dealer.settle("send_env", params)
            if told is None:
                return False  # never another for this n: the wire will end the call
            if not told.code:
                line.note(n, params["sig"], type)
                return True
            if told.code not in FINAL:
                raise Wrong(f"{self.conv} {n} {type} ({self.talk.style}): {told}")
            if told.code == "clock_skew":
                continue
            await self._catch_up(line, n)
            return True

    async def _catch_up(self, line: Line, n: int) -> None:
        """Another envelope took its place: it is on the stream, or will be."""
        with trio.move_on_after(600) as bound:
            while line.n < n and not line.ended:
                await line.moved.wait()
        if bound.cancelled_caught:
            raise Wrong(f"{self.conv} {n} was taken, and nobody is told by what")

    async def _rudely(self, line: Line, n: int) -> None:
        """Requests that must be refused, and with what."""
        wrong = self._chance.choice(("sig", "ahead", "prev_sig", "stranger", "type", "gone"))
        if line.n + 1 != n or line.ended:
            return
        params, expected = self._wrong(line, n, wrong)
        try:
            told = await self.dealer.ask("send_env", params)
        except Lost:
            return
        if told.code not in (*expected, "overloaded", "unavailable", "conv_ended", "clock_skew"):
            raise Wrong(f"{wrong} was answered {told}, not {expected}")

    def _wrong(self, line: Line, n: int, wrong: str) -> tuple[dict[str, Any], tuple[str, ...]]:
        type, prev_sig, at = ("PICKUP" if n == 1 else "CHAT"), line.sig, n
        if wrong == "ahead":
            at += 2
        elif wrong == "prev_sig":
            prev_sig = "0" * 128
        elif wrong == "type":
            type = "CALL"
        params = self.dealer.build(self.talk, at, type, prev_sig, {"wrong": n})
        if wrong == "sig":
            params["sig"] = params["sig"][:-2] + ("00" if params["sig"][-2:] != "00" else "01")
        elif wrong == "gone":
            params["conv"] = params["envelope"]["conv"] = "f" * 16
        elif wrong == "stranger":
            talk = self.talk
            other = next(
                each for each in self.dealer.world.dealers if each.index not in (talk.caller, talk.called)
            )
            text = other.party.envelope(
                self.conv, at, type, self.dealer.party.pk, self.dealer.world.ts, prev_sig, {}
            )
            params = text
        return params, {
            "sig": ("bad_signature",),
            "ahead": ("conflict",),
            "prev_sig": ("bad_prev_sig",),
            "stranger": ("not_a_party",),
            "type": ("bad_envelope",),
            "gone": ("unknown_conv",),
        }[wrong]
