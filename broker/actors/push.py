"""The actor of one push: its document (network.md, Webhooks).

1. Tools change what is pushed where; the worker (broker.actors.pusher) says how far it came. What it says of an
   earlier `turn` is passed over: the URL, the place or the secret is another one by now.
2. The worker is told of each change right after its commit.
3. A webhook that is ended writes into its agent's inbox, in the same commit.
"""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from broker.actors.calls import agent_stream
from broker.actors.notices import Notice, write_notice
from broker.actors.once import Once
from broker.actors.record import Index, RecordActor, Told
from broker.core import push as core
from broker.core.push import Disabled, PushRow, Secret
from broker.store.port import Put, Store
from broker.store.stored import read_row
from broker.wire.refusals import Refusal, refuse

KIND: Final = "push"
NO_PUSH: Final = refuse("not_found", "you have no webhook; set_webhook registers one")
_ENDED: Final = {
    "gone": "the receiver answered 410 Gone",
    "expired": "one event was not taken for 24 hours",
    "no_secret": "its secret can't be read any more; rotate_webhook_secret makes another",
}


async def read_push(store: Store, push_id: str) -> PushRow | None:
    """A push as stored, or None."""
    return await read_row(store, PushRow, KIND, push_id)


def index_of_push(row: PushRow) -> Index:
    """What a push is found by: its agent, its stream, and whether it is disabled."""
    state = "live" if row.disabled is None else "disabled"
    return (("agent", row.agent_id), ("stream", row.stream), (state, "1"))


class SetPush(msgspec.Struct, frozen=True):
    """A new push, or another URL for one (which keeps its place). Answer: `answer`."""

    row: PushRow
    answer: Any
    once: Once | None = None


class RemovePush(msgspec.Struct, frozen=True):
    """No push any more. Answer: `answer`, or not_found. `by_other`: its agent is told."""

    answer: Any
    once: Once | None = None
    by_other: bool = False


class RenewSecret(msgspec.Struct, frozen=True):
    """Another secret, beside which the old one signs for a day from `at` (wall ms). Answer: `answer`, or not_found."""

    sealed: str
    at: int
    answer: Any
    once: Once | None = None


class SendAgain(msgspec.Struct, frozen=True):
    """Send what follows `position` (None: what waits), at once, also where the push was disabled. Answer: `answer`."""

    position: int | None
    epoch: str
    answer: Any
    once: Once | None = None


class Came(msgspec.Struct, frozen=True):
    """How far the worker came with the push that it was given: its row, further on. Answer: the row as it is now; None
    where there is none any more."""

    row: PushRow


class PushActor(RecordActor[PushRow]):
    """One push."""

    kind = KIND
    type = PushRow

    def __init__(
        self,
        key: str,
        *,
        told: Callable[[str, PushRow | None], None],
        new_id: Callable[[str], str],
        **parts: Any,
    ) -> None:
        """`told`: hears what each commit made of the push."""
        super().__init__(key, **parts)
        self._told = told
        self._new_id = new_id

    def index_of(self, row: PushRow) -> Index:
        return index_of_push(row)

    def stands(self, row: PushRow | None) -> None:
        self._told(self.key, row)

    async def do(self, command: Any) -> Any:
        row = self.row
        match command:
            case SetPush(wanted, answer, once):
                return await self.write(wanted if row is None else _moved(row, wanted), answer, once=once)
            case Came(came):
                return await self._came(row, came)
        if row is None:
            return NO_PUSH
        match command:
            case RemovePush(answer, once, by_other):
                what = {"what": "webhook_deleted", "at": self.clock.now_ms(), "url": row.url}
                events = [Told(agent_stream(row.agent_id), "notice", what)] if by_other else []
                return await self.write(None, answer, once=once, events=events)
            case RenewSecret(sealed, at, answer, once):
                return await self.write(core.renewed(row, sealed, at), answer, once=once)
            case SendAgain(position, epoch, answer, once):
                return await self.write(core.again(row, position, epoch or row.epoch), answer, once=once)
        raise TypeError(type(command))

    async def _came(self, row: PushRow | None, came: PushRow) -> PushRow | Refusal | None:
        if row is None or not same_turn(row, came):
            return row
        puts: Sequence[Put] = ()
        events: Sequence[Told] = ()
        if came.disabled is not None and row.disabled is None and row.form == "webhook":
            puts, events = await self._notice(came, came.disabled)
        answer = await self.write(came, None, puts=puts, events=events)
        return answer if isinstance(answer, Refusal) else came

    async def _notice(self, row: PushRow, disabled: Disabled) -> Notice:
        """What tells the agent that nothing is sent any more."""
        message_id, letter = self._new_id("msg_"), _letter(row, disabled)
        members = {"reason": disabled.reason, "url": row.url}
        return await write_notice(
            self.store, row.agent_id, message_id, letter, "webhook_disabled", members, disabled.at
        )


def same_turn(row: PushRow, came: PushRow) -> bool:
    """Whether nothing was changed by hand in between: it is the same push (not one that was set after it was removed),
    in the same turn."""
    return (row.created_at, row.turn, row.url) == (came.created_at, came.turn, came.url)


def _moved(row: PushRow, wanted: PushRow) -> PushRow:
    """The push with another URL and another secret: it keeps its place, and is sent at once."""
    secrets: tuple[Secret, ...] = wanted.secrets
    changed = replace(
        row,
        url=wanted.url,
        secrets=secrets,
        extra=wanted.extra,
        headers=wanted.headers,
        created_at=wanted.created_at,
    )
    return core.again(changed, None, row.epoch)


def _letter(row: PushRow, disabled: Disabled) -> str:
    since = (
        f" Since {datetime.fromtimestamp(row.failing.since / 1000, UTC):%Y-%m-%d %H:%M} UTC it took nothing."
        if row.failing is not None
        else ""
    )
    return (
        f"Your webhook {row.url} was disabled: {_ENDED[disabled.reason]}.{since} Nothing is lost while your stream "
        "keeps it: redeliver_webhook_events sends what waits, set_webhook names another URL."
    )
