"""The broker as the doors get it: every call is counted and timed, and nothing else is changed.

On the hot path it takes plain numbers alone (gateways.metrics).
"""

from typing import Any, Final, cast

import trio

from broker.app import Again, Broker, Caller, Progress, Then, Tool
from broker.wire.refusals import Refusal
from gateways.metrics import ENVELOPES, Metrics

AUDIT: Final = "verify_audit_log"


def measured(broker: Broker, metrics: Metrics) -> Broker:
    """The same broker, with every call counted; give this one to the doors."""
    return cast(Broker, _Measured(broker, metrics))  # all else is the broker's own


class _Measured:
    def __init__(self, broker: Broker, metrics: Metrics) -> None:
        self._broker = broker
        self._metrics = metrics
        # What the doors read at every call stands here, so that __getattr__ is not asked.
        self.tools = broker.tools
        self.settings = broker.settings
        self.admission = broker.admission
        self._names = {*broker.tools, *broker.operator_tools}
        self._acknowledged = metrics.acknowledged.add
        self._called = metrics.called

    def __getattr__(self, name: str) -> Any:
        return getattr(self._broker, name)

    def begin(self, caller: Caller, tool: Tool, arguments: Any, then: Then) -> bool:
        """As the broker's; what turns out to need `call` is counted there. The time begins when the request could be
        read, where the door knows that."""
        name, began = tool.name, self.admission.since
        if began is None:
            began = trio.current_time()

        def answered(outcome: Any) -> None:
            if isinstance(outcome, Refusal):
                self._called(name, outcome.code, trio.current_time() - began)
            elif not isinstance(outcome, Again):
                self._answered(name, outcome, trio.current_time() - began)
            then(outcome)

        return self._broker.begin(caller, tool, arguments, answered)

    async def call(
        self, caller: Caller, name: str, params: bytes, *, progress: Progress | None = None
    ) -> Any:
        """As the broker's. A name that is no tool is not counted: names that clients choose are no labels."""
        began = trio.current_time()
        outcome = "fault"
        try:
            result = await self._broker.call(caller, name, params, progress=progress)
            outcome = result.code if isinstance(result, Refusal) else "ok"
        except trio.Cancelled:
            outcome = "cancelled"
            raise
        finally:
            if name in self._names:
                seconds = trio.current_time() - began
                if outcome == "ok":
                    self._answered(name, result, seconds)
                else:
                    self._called(name, outcome, seconds)
        return result

    async def signin(self, caller: Caller, name: str, params: bytes) -> Any:
        """As the broker's; the names are the code's own."""
        outcome = "fault"
        try:
            result = await self._broker.signin(caller, name, params)
            outcome = result.code if isinstance(result, Refusal) else "ok"
        except trio.Cancelled:
            outcome = "cancelled"
            raise
        finally:
            self._metrics.sign_ins[name, outcome] += 1
        return result

    def _answered(self, name: str, result: Any, seconds: float) -> None:
        """A call that was not refused: a repeated envelope is a duplicate, a new one is an acknowledgement."""
        if name not in ENVELOPES:
            self._called(name, "ok", seconds)
            if name == AUDIT:
                self._metrics.audit_intact = bool(result.ok)
        elif getattr(result, "replayed", False):
            self._called(name, "duplicate", seconds)
        else:
            self._called(name, "ok", seconds)
            self._acknowledged(seconds)
