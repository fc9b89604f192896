"""An id for each HTTP request: the proxy's or ours, in the answer's X-Request-Id (gateways.requestid).

A proxy of ours may give it; whoever else sends one is not heard, and nor is what has another form: an id gets into the
log as it is.
"""

import re
from collections.abc import Sequence
from typing import Final

from gateways.listen import App, Message, Network, Receive, Scope, Send, is_proxy, peer_of, values_of
from gateways.requestid import bound, new_id

HEADER: Final = b"x-request-id"
_FORM: Final = re.compile(rb"[A-Za-z0-9][A-Za-z0-9._-]{7,63}")


def identified(app: App, proxies: Sequence[Network] = ()) -> App:
    """Give each request its id, and tell the client. The outermost wrapper: nothing before it knows an id."""

    async def named(scope: Scope, receive: Receive, send: Send) -> None:
        request_id = _given(scope, proxies) or new_id()

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                shown = (HEADER, request_id.encode())
                message = {**message, "headers": [*message.get("headers", []), shown]}
            await send(message)

        with bound(request_id):
            await app(scope, receive, sending)

    return named


def _given(scope: Scope, proxies: Sequence[Network]) -> str | None:
    """What a proxy of ours calls the request, where it does so once and in the form of an id."""
    if not proxies:
        return None
    peer = peer_of(scope)
    if peer is None or not is_proxy(peer, proxies):
        return None
    values = values_of(scope, HEADER)
    return values[0].decode() if len(values) == 1 and _FORM.fullmatch(values[0]) else None
