"""What a webhook's receiver gets of an event, a body and its signature; and how a webhook is shown to whose it is
(network.md, Webhooks).

Source: Standard Webhooks 1.0, "Webhook payload", "Signature scheme": HMAC-SHA256 over `id.timestamp.body` by each live
secret, in one header; the timestamp is the attempt's, the id the event's.
"""

import base64
import hmac
from datetime import UTC, datetime
from typing import Final

import msgspec

from broker.core.push import Occurrence, PushRow, Request, State, Why, live_secrets

PREFIX: Final = "whsec_"
SECRET_BYTES: Final = 32
PING: Final = "ping"
"""The type of an event that says nothing but that it came."""


class Payload(msgspec.Struct, frozen=True, omit_defaults=True):
    """The body. `data` is the event as the stream's readers get it; `gap` says why some before it are missing."""

    type: str
    timestamp: str
    """When the event was made, ISO 8601."""
    data: msgspec.Raw
    gap: str | None = None


class Webhook(msgspec.Struct, frozen=True, omit_defaults=True):
    """A webhook as its agent sees it. Times are Unix milliseconds."""

    url: str
    state: State
    created_at: int
    waiting: int
    """Events that were not taken yet."""
    delivered: int
    """Attempts that took an event, in all."""
    last_at: int | None = None
    last_status: int | None = None
    """What the receiver answered last that was written down; none: there was no answer, and `last_error` says why."""
    last_error: Why | None = None
    last_secret: str | None = None
    """Which secret was not to be had, where that was the error."""
    failing_since: int | None = None
    tries: int = 0
    """How often the event that fails was tried."""
    next_try_at: int | None = None
    disabled_at: int | None = None
    disabled_reason: str | None = None
    headers: tuple[str, ...] = ()
    """The names of its own headers."""
    old_secret_until: int | None = None
    """Until then the secret before the last rotation signs too."""


def write_secret(chance: bytes) -> str:
    """SECRET_BYTES of chance as a secret that receivers' libraries take."""
    return PREFIX + base64.b64encode(chance).decode()


def sign(secret: str, id: str, timestamp: int, body: bytes) -> str:
    """One signature, with its version: `v1,<base64>`."""
    key = base64.b64decode(secret.removeprefix(PREFIX))
    mac = hmac.digest(key, b"%s.%d.%s" % (id.encode(), timestamp, body), "sha256")
    return f"v1,{base64.b64encode(mac).decode()}"


def webhook_form(row: PushRow, event: Occurrence, secrets: tuple[str, ...], now: int) -> Request:
    """An event for a webhook's URL, signed by each of its secrets. `now`: wall milliseconds."""
    del row  # all webhooks are alike
    at = datetime.fromtimestamp(event.at / 1000, UTC).isoformat(timespec="milliseconds")
    made = Payload(event.kind, at.replace("+00:00", "Z"), msgspec.Raw(event.text), event.gap)
    body, timestamp = msgspec.json.encode(made), now // 1000
    headers = (
        ("content-type", "application/json"),
        ("webhook-id", event.id),
        ("webhook-timestamp", str(timestamp)),
        ("webhook-signature", " ".join(sign(secret, event.id, timestamp, body) for secret in secrets)),
    )
    return Request(headers, body)


def waiting(position: int, oldest: int, newest: int) -> int:
    """How many events after a position a stream still has, by where it stands."""
    return max(0, newest - max(position, oldest - 1))


def show(row: PushRow, oldest: int, newest: int, now: int) -> Webhook:
    """A webhook as whose it is sees it. `oldest`, `newest`: the positions that its stream keeps; `now`: wall
    milliseconds."""
    last, failing, disabled = row.last, row.failing, row.disabled
    old = [each.until for each in live_secrets(row, now) if each.until is not None]
    return Webhook(
        url=row.url,
        state=row.state,
        created_at=row.created_at,
        waiting=waiting(row.position, oldest, newest),
        delivered=row.delivered,
        last_at=last.at if last is not None else None,
        last_status=last.status if last is not None else None,
        last_error=last.why if last is not None and last.status is None else None,
        last_secret=last.secret if last is not None else None,
        headers=tuple(name for name, _ in row.headers),
        failing_since=failing.since if failing is not None else None,
        tries=failing.tries if failing is not None else 0,
        next_try_at=failing.next_at if failing is not None and disabled is None else None,
        disabled_at=disabled.at if disabled is not None else None,
        disabled_reason=disabled.reason if disabled is not None else None,
        old_secret_until=old[0] if old else None,
    )
