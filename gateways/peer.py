"""Who the far end of one connection is: what it has proved, for how long, and that the connection ends with that.

1. A key's proof and a token's stand side by side. A key's has no end of its own (a capability of the upgrade has); a
   token runs out, and is renewed in place by another of the same subject before it does.
2. The connection is held by both: it closes with 4001 when the token runs out, and when whoever speaks has lost the
   right to (suspended, revoked, gone). 4001 is about the authentication alone, never about the network: who comes back
   with the same token is refused again.
"""

from collections.abc import Callable
from contextlib import ExitStack
from typing import Final

import msgspec
import trio

from broker.app import Broker, Caller
from broker.clock import Clock
from broker.wire.refusals import Refusal, refuse
from gateways import render

LOOK_S: Final = 30.0
"""Seconds after which the wall clock is looked at again: it may have stepped."""
_RUN_OUT: Final = render.CLOSE["auth_expired"]


class Peer:
    """See the module. `lost` is called with the close, once; `nursery` is the connection's own, for a token's time.

    `close` gives up what is held: call it at the connection's very end.
    """

    def __init__(
        self,
        broker: Broker,
        caller: Caller,
        nursery: trio.Nursery,
        clock: Clock,
        lost: Callable[[render.Close], None],
    ) -> None:
        self._broker = broker
        self._clock = clock
        self._nursery = nursery
        self._lost = lost
        self._over = False
        self._held = ExitStack()
        self._term = trio.CancelScope()
        """The present token's time."""
        if caller.principal is not None:
            self.caller = msgspec.structs.replace(caller, until=None)
            self._begin_term(caller.until)
        else:
            self.caller = caller
        self._hold()

    def now(self) -> Caller:
        """The peer as it stands now: a capability that the upgrade carried is dropped when its time is over."""
        until = self.caller.until
        if until is not None and self._clock.now_ms() >= until * 1000:
            self.caller = msgspec.structs.replace(self.caller, pk=None, code=None, until=None)
        return self.caller

    def prove(self, caller: Caller) -> None:
        """It has proved a key; what its token says stays."""
        self.caller = caller
        self._hold()

    def bear(self, caller: Caller) -> Refusal | None:
        """It has shown a token, which was judged just now; refused where that is another subject's."""
        before = self.caller.principal
        if before is not None and before != caller.principal:
            return refuse(
                "unauthenticated", "this connection speaks for another subject; open one for this token"
            )
        self.caller = msgspec.structs.replace(caller, until=self.caller.until)
        self._begin_term(caller.until)
        self._hold()
        return None

    def close(self) -> None:
        """Hold nothing any more."""
        self._over = True
        self._held.close()

    def _hold(self) -> None:
        """Be held by what was proved until now, in place of what was before."""
        self._held.close()
        if self.caller.identity is not None and not self._over:
            self._held.enter_context(self._broker.hold(self.caller, self._lose))

    def _begin_term(self, until: int | None) -> None:
        self._term.cancel()
        if until is not None:
            self._term = trio.CancelScope()
            self._nursery.start_soon(self._run_out, self._term, until)

    async def _run_out(self, term: trio.CancelScope, until: int) -> None:
        """End the connection when a token's time is over, unless another took its place."""
        with term:
            while (left := until - self._clock.now_ms() / 1000) > 0:
                with trio.move_on_after(min(left, LOOK_S)):
                    await trio.sleep_forever()
            self._end(_RUN_OUT)

    def _lose(self, refusal: Refusal) -> None:
        self._end(render.Close(_RUN_OUT.code, f"{refusal.code}: {refusal.message}"[:120]))

    def _end(self, close: render.Close) -> None:
        if not self._over:
            self._over = True
            self._lost(close)
