"""Every request, and every WebSocket connection, has an id: the log has it, the client is told it.

1. A request's id stands in its answer's X-Request-Id, and begins the number of an incident in it: whoever has one of
   them finds the lines of the log.
2. It goes where the task goes (a context variable). What serves many requests binds the one at hand.
"""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_request: ContextVar[str] = ContextVar("turret.request", default="")


def current() -> str:
    """The id of the request at hand; "" outside of any."""
    return _request.get()


def new_id() -> str:
    """One that nobody has had: 16 hex characters."""
    return secrets.token_hex(8)


def bind(request_id: str) -> None:
    """Have the rest of this task, and what it starts, belong to a request."""
    _request.set(request_id)


@contextmanager
def bound(request_id: str) -> Iterator[None]:
    """Have a block belong to a request."""
    before = _request.set(request_id)
    try:
        yield
    finally:
        _request.reset(before)
