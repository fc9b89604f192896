"""Headers that an agent has sent with each event to its webhook, beside the form's own (network.md, Webhooks; pure).

1. Ours stay ours: what frames the request, what it is of, who asks and what signs it is not named by others; nor is
   what the receiver's proxies say.
2. Names count once, whatever their case, and are sent in small letters.
3. All together they stay small, whatever the secrets that they name hold.

Source: RFC 9110, 5.1 (names), 5.5 (values) and 7.6.1 (connection options); RFC 7239 (Forwarded).
"""

from collections.abc import Mapping
from typing import Final

from broker.core.safe import names_in
from broker.wire.refusals import Refusal, refuse

NAME: Final = "[A-Za-z][A-Za-z0-9-]{0,63}"
TEMPLATE: Final = "[!-~]([ -~]{0,1022}[!-~])?"
"""Printable ASCII, without spaces around it."""
MOST: Final = 8
MOST_NAMED: Final = 8
"""Secrets that all headers name, counted as often as they are named: so what is sent has 40 KB of them at most."""
OURS: Final = frozenset(
    {
        "accept-encoding", "connection", "cookie", "date", "expect", "forwarded", "host", "keep-alive", "te",
        "traceparent", "tracestate", "trailer", "transfer-encoding", "upgrade", "user-agent", "via", "x-real-ip",
    }
)  # fmt: skip
OUR_KINDS: Final = ("access-control-", "content-", "proxy-", "sec-", "webhook-", "x-forwarded-")


def read_headers(headers: Mapping[str, str]) -> tuple[tuple[str, str], ...] | Refusal:
    """Headers as they are kept: names (NAME) in small letters, templates (TEMPLATE) as given; or why one is not."""
    if len(headers) > MOST:
        return _no(f"at most {MOST} headers are added")
    kept: dict[str, str] = {}
    named = 0
    for given, template in headers.items():
        name = given.lower()
        if name in OURS or name.startswith(OUR_KINDS):
            return _no(f"{name} is not for others to set", header=name)
        if name in kept:
            return _no(f"{name} is there twice", header=name)
        names = names_in(template)
        if names is None:
            said = f"in {name} a ${{ begins no name of a secret: ${{NAME}}; ${{ itself is written $${{"
            return _no(said, header=name)
        named += template.count("${")
        kept[name] = template
    if named > MOST_NAMED:
        return _no(f"all headers together name at most {MOST_NAMED} secrets")
    return tuple(kept.items())


def _no(words: str, **detail: str) -> Refusal:
    return refuse("bad_request", words, path="headers", **detail)
