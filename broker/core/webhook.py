"""What a webhook's receiver gets of an event: a body and its signature (network.md, Webhooks).

Source: Standard Webhooks 1.0, "Webhook payload", "Signature scheme": HMAC-SHA256 over `id.timestamp.body` by each live
secret, in one header; the timestamp is the attempt's, the id the event's.
"""

import base64
import hmac
from datetime import UTC, datetime
from typing import Final

import msgspec

from broker.core.push import Occurrence, PushRow, Request

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
