"""Strict-Transport-Security (RFC 6797): a browser that came by TLS once comes by TLS from then on.

It is said where TLS is ours, or the public URL says that a proxy's is, and of a public name alone: of `localhost` it
would hold for every port of the reader's machine.
"""

from typing import Final

from gateways.listen import App, Message, Receive, Scope, Send, read_hop

HEADER: Final = (b"strict-transport-security", b"max-age=31536000")
"""One year; of this host alone."""


def strict_transport(app: App, public_url: str | None = None) -> App:
    """Add the header to each answer of a host that is reached by TLS."""
    proxied = (public_url or "").lower().startswith("https://")

    async def strict(scope: Scope, receive: Receive, send: Send) -> None:
        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message.get("headers", []), HEADER]}
            await send(message)

        said = (proxied or scope.get("scheme") == "https") and _is_named(scope)
        await app(scope, receive, sending if said else send)

    return strict


def _is_named(scope: Scope) -> bool:
    """Whether the host that was asked has a name of its own: no address, and not this machine's."""
    host = next((value for name, value in scope["headers"] if name.lower() == b"host"), b"").decode("latin-1")
    name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() and not host.endswith("]") else host
    return bool(name) and name.lower().rstrip(".") != "localhost" and read_hop(name) is None
