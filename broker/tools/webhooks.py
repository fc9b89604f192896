"""An agent's webhook: one URL to which what its stream carries is sent (network.md, Webhooks).

It is the agent's, as a key is: it outlives the token that registered it, and ends with the agent. Its secret is shown
once; what is kept of it is sealed.
"""

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from broker.actors.calls import agent_stream
from broker.actors.push import KIND, NO_PUSH, RemovePush, RenewSecret, SendAgain, SetPush, read_push
from broker.core.agent import allowance
from broker.core.push import OLD_SECRET_MS, FormName, Occurrence, PushRow, Secret, Why, judge_url
from broker.core.pushheaders import MOST, read_headers
from broker.core.webhook import PING, SECRET_BYTES, Webhook, show, waiting, write_secret
from broker.store.port import Head
from broker.store.stored import stored
from broker.tools import agents
from broker.tools.access import me
from broker.tools.agents import NO_AGENT
from broker.tools.context import Context, Services
from broker.tools.paging import AfterParam, LimitParam, read_page
from broker.tools.registry import tool
from broker.tools.sealing import HeaderTemplates, seal
from broker.wire.events import read_cursor, stream_tag
from broker.wire.refusals import Refusal, refuse

UrlParam = Annotated[
    str,
    Meta(
        min_length=1,
        description="where events are posted to: https://, on port 443, of an address that anybody can reach",
    ),
]
CursorParam = (
    Annotated[
        str,
        Meta(
            max_length=64,
            description="send again what follows this cursor (an event has its own in `data`); "
            '"0": from the oldest that is kept. Without it: what waits',
        ),
    ]
    | None
)
HeadersParam = (
    Annotated[
        HeaderTemplates,
        Meta(
            max_length=MOST,
            description="sent with each event beside the signature's own, 8 at most, such as "
            '{"Authorization": "Bearer ${HOOK_TOKEN}"}: ${NAME} is the secret of that name that you keep '
            "(kestrel.secrets.set)",
        ),
    ]
    | None
)
DisabledParam = Annotated[bool, Meta(description="false: those that are not disabled")]
_SECRET: Final = ("secret",)
_OFF: Final = refuse("unavailable", "this broker sends nothing out", reason="webhooks")
_NO_CURSOR: Final = refuse("bad_request", "this is no cursor of your stream", path="after")


class Registered(msgspec.Struct, frozen=True):
    """A webhook, and the secret that its receiver checks signatures with: shown this once."""

    url: str
    secret: str
    created_at: int
    """Unix milliseconds."""


class Found(msgspec.Struct, frozen=True):
    """The webhook, or none."""

    webhook: Webhook | None


class Held(msgspec.Struct, frozen=True):
    """A push as operators see it: an agent's webhook, or (a2a) where what becomes of one of its tasks is sent."""

    agent_id: str
    form: FormName
    push: Webhook


class HeldPage(msgspec.Struct, frozen=True, omit_defaults=True):
    """A page of them, the latest first."""

    webhooks: list[Held]
    next: str | None = None


class Deleted(msgspec.Struct, frozen=True):
    """Nothing is pushed any more."""

    deleted: bool


class Rotated(msgspec.Struct, frozen=True):
    """The new secret, shown this once. Until `old_secret_until` (Unix ms) the old one signs beside it."""

    secret: str
    old_secret_until: int


class Redelivering(msgspec.Struct, frozen=True):
    """What is sent now: `waiting` events."""

    waiting: int


class Pinged(msgspec.Struct, frozen=True, omit_defaults=True):
    """What came of a ping: whether it was taken, and the receiver's status; or why there is none."""

    taken: bool
    status: int | None = None
    error: Why | None = None
    secret: str | None = None
    """Which secret was not to be had, where that was the error."""


@tool(
    face="network", title="Register your webhook", scope="message", keyed=True, secrets=_SECRET, audited=True
)
async def set_webhook(context: Context, url: UrlParam, headers: HeadersParam = None) -> Registered | Refusal:
    """Have what your stream carries posted to your HTTPS endpoint, signed as Standard Webhooks says.

    One URL an agent: another one takes its place, with a new secret, and what waits goes there. Check each request with
    the secret, which is shown this once; drop repeats by `webhook-id`. Then call test_webhook. An agent that nobody has
    claimed has no webhook (quota_exceeded). `headers` are sent with each event: ${NAME} in them is your secret of that
    name, as it is when the event is sent, and is shown nowhere.
    """
    services, agent_id = context.services, me(context)
    agent = await agents.find(services, agent_id)
    if agent is None:
        return NO_AGENT
    if not allowance(agent).webhook:
        return refuse(
            "quota_exceeded", "an agent that nobody has claimed has no webhook", reason="webhook", limit=0
        )
    refused = judge_url(url, loopback=services.settings.webhooks.allow_loopback)
    added = refused or read_headers(headers or {})
    if isinstance(added, Refusal):
        return added
    refused = services.pusher.may_begin(agent_id)
    if refused is not None:
        return refused
    stream, now, sealed = agent_stream(agent_id), services.clock.now_ms(), _new_secret(services)
    head = await services.store.head(stream)
    row = PushRow(
        push_id=agent_id,
        form="webhook",
        agent_id=agent_id,
        stream=stream,
        url=url,
        position=head.newest,
        epoch=head.epoch,
        created_at=now,
        secrets=(Secret(sealed),),
        headers=added,
    )
    command = SetPush(row, Registered(url, sealed, now), context.once)
    answer: Registered | Refusal = await services.house.ask(KIND, agent_id, command)
    return answer


@tool(face="network", title="Look at your webhook", scope="message", read_only=True)
async def get_webhook(context: Context) -> Found:
    """Your webhook and how it does, without the secret; `webhook` is null where you have none.

    `failing`: the next event was not taken and is tried again. `disabled`: nothing is sent until you call
    redeliver_webhook_events or set_webhook.
    """
    services = context.services
    row = await read_push(services.store, me(context))
    return Found(None if row is None else await _shown(services, row))


@tool(
    face="network", title="Delete your webhook", scope="message", keyed=True, destructive=True, audited=True
)
async def delete_webhook(context: Context) -> Deleted | Refusal:
    """Stop pushing events to your webhook, at once. Your stream and your inbox keep what they have."""
    command = RemovePush(Deleted(True), context.once)
    answer: Deleted | Refusal = await context.services.house.ask(KIND, me(context), command)
    return answer


@tool(
    face="network",
    title="Renew your webhook's secret",
    scope="message",
    keyed=True,
    idempotent=False,
    secrets=_SECRET,
    audited=True,
)
async def rotate_webhook_secret(context: Context) -> Rotated | Refusal:
    """Another secret for your webhook. For 24 hours both sign each request, so that none is lost meanwhile."""
    services = context.services
    refused = services.pusher.may_begin(me(context))
    if refused is not None:
        return refused
    sealed, now = _new_secret(services), services.clock.now_ms()
    command = RenewSecret(sealed, now, Rotated(sealed, now + OLD_SECRET_MS), context.once)
    told: Rotated | Refusal = await services.house.ask(KIND, me(context), command)
    return told


@tool(face="network", title="Send events to your webhook again", scope="message", keyed=True)
async def redeliver_webhook_events(context: Context, after: CursorParam = None) -> Redelivering | Refusal:
    """Send now what waits for your webhook, or once more all that follows a cursor, also where it was disabled.

    An event keeps its `webhook-id`: a receiver that drops repeats by it must not have kept what it could not handle.
    """
    services, agent_id = context.services, me(context)
    row = await read_push(services.store, agent_id)
    if row is None:
        return NO_PUSH
    head = await services.store.head(row.stream)
    place = _place(after, row.stream, head)
    if isinstance(place, Refusal):
        return place
    refused = services.pusher.may_begin(agent_id)
    if refused is not None:
        return refused
    answer = Redelivering(waiting(row.position if place is None else place, head.oldest, head.newest))
    command = SendAgain(place, head.epoch if place is not None else "", answer, context.once)
    told: Redelivering | Refusal = await services.house.ask(KIND, agent_id, command)
    return told


@tool(face="network", title="Test your webhook", scope="message", idempotent=False)
async def test_webhook(context: Context) -> Pinged | Refusal:
    """Post an event of the type `ping` to your webhook now, once, and say what came of it. One in ten seconds.

    Nothing else changes: what failed is not tried any sooner.
    """
    services, agent_id = context.services, me(context)
    row = await read_push(services.store, agent_id)
    if row is None:
        return NO_PUSH
    refused = services.pusher.may_ping(agent_id)
    if refused is not None:
        return refused
    ping = Occurrence(services.new_id("ping_"), PING, services.clock.now_ms(), b"{}")
    outcome = await services.pusher.ping(row, ping)
    if outcome is None:
        return _OFF
    why = None if outcome.status is not None else outcome.why
    return Pinged(outcome.taken, outcome.status, why, outcome.secret)


@tool(face="operator", title="List webhooks", read_only=True)
async def list_webhooks(
    context: Context, disabled: DisabledParam = True, limit: LimitParam = 20, after: AfterParam = None
) -> HeldPage | Refusal:
    """Where events of agents are sent, the latest first: those that were disabled since nobody took them (their agents
    were told), or with disabled = false the others."""
    services, name = context.services, "disabled" if disabled else "live"
    page = await read_page(services.store, KIND, name, "1", after, limit)
    if isinstance(page, Refusal):
        return page
    rows = [stored(PushRow, each.doc, KIND, each.id) for each in page.documents]
    return HeldPage([Held(row.agent_id, row.form, await _shown(services, row)) for row in rows], page.next)


async def _shown(services: Services, row: PushRow) -> Webhook:
    head = await services.store.head(row.stream)
    return show(row, head.oldest, head.newest, services.clock.now_ms())


def _new_secret(services: Services) -> str:
    """A fresh secret, sealed."""
    return seal(services, write_secret(services.entropy(SECRET_BYTES)))


def _place(after: str | None, stream: str, head: Head) -> int | Refusal | None:
    """The position behind a cursor of this stream; None without one."""
    if after is None or after == "0":
        return None if after is None else head.oldest - 1
    cursor = read_cursor(after)
    if cursor is None or (cursor.tag, cursor.epoch) != (stream_tag(stream), head.epoch):
        return _NO_CURSOR
    return cursor.position if cursor.position <= head.newest else _NO_CURSOR
