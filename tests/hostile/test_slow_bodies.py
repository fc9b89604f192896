"""A request's body that comes a byte at a time, for ever: each door ends it in time, and tells it where it can."""

from contextlib import suppress

import pytest
import trio

from gateways.listen import Bounds
from gateways.mcp.endpoint import mcp_app
from gateways.metrics import Metrics
from gateways.web import web_app
from tests.support.broker_fake import FakeBroker
from tests.support.network import serving
from tests.support.peers import dial, read_all

BOUNDS = Bounds(body_s=0.2, linger_s=0.1)
"""A hundredth of what a port has, and a byte each 10 ms for one a second."""
TRICKLE_S = 0.01
DOORS = {
    "a tool": (b"POST /v1/resolve_code", b"localhost", b"408"),
    "a tool, in chunks": (b"POST /v1/resolve_code", b"localhost", b"408"),
    "MCP": (b"POST /mcp", b"localhost", b"408"),
    "MCP, in chunks": (b"POST /mcp", b"localhost", b"408"),
    "a page with a body": (b"GET /metrics", b"localhost", b"408"),
    "no door": (b"POST /nothing", b"localhost", b"40"),
    "another host": (b"POST /v1/resolve_code", b"evil.example", b"421"),
}


@pytest.mark.requirement("faults.slow-request", "http.slow-body")
@pytest.mark.parametrize("door", DOORS)
async def test_a_body_of_a_byte_at_a_time_ends_in_time(door: str) -> None:
    line, host, status = DOORS[door]
    chunked = door.endswith("chunks")
    length = b"transfer-encoding: chunked" if chunked else b"content-length: 60000"
    head = b"%b HTTP/1.1\r\nhost: %b\r\ncontent-type: application/json\r\n%b\r\n\r\n" % (line, host, length)
    broker = FakeBroker()
    app = web_app(
        broker,  # type: ignore[arg-type]
        Metrics(broker),  # type: ignore[arg-type]
        mcp_app=mcp_app(broker),  # type: ignore[arg-type]
        bounds=BOUNDS,
    )
    async with (
        serving(app, bounds=BOUNDS) as server,
        dial(server.address) as stream,
        trio.open_nursery() as nursery,
    ):

        async def trickle() -> None:
            with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
                while True:
                    await stream.send_all(b"1\r\n \r\n" if chunked else b" ")
                    await trio.sleep(TRICKLE_S)

        began = trio.current_time()
        await stream.send_all(head)
        nursery.start_soon(trickle)
        answer = await read_all(stream, 5)
        took = trio.current_time() - began
        nursery.cancel_scope.cancel()
    assert took < 10 * (BOUNDS.body_s + BOUNDS.linger_s), "some more on a loaded machine"
    assert answer.startswith(b"HTTP/1.1 " + status), answer
