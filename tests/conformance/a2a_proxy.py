"""A proxy in front of a broker that puts a token into each request: the TCK has no way to sign in.

In a card the broker's address becomes the proxy's, so that what reads it comes through here too.
"""

import http.client
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final
from urllib.parse import urlsplit

CARD: Final = "/.well-known/agent-card.json"
_OURS: Final = ("transfer-encoding", "content-length", "connection", "server", "date")
"""Headers that are each connection's own."""


class Proxy(ThreadingHTTPServer):
    """`upstream` and `token` are set before the first request."""

    daemon_threads = True
    upstream = ""
    token = ""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self._pass()

    def do_POST(self) -> None:
        self._pass()

    def log_message(self, format: str, *args: Any) -> None:
        return None

    def _pass(self) -> None:
        proxy = self.server
        assert isinstance(proxy, Proxy)
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        target = http.client.HTTPConnection(urlsplit(proxy.upstream).netloc, timeout=60)
        given = {
            name: value for name, value in self.headers.items() if name.lower() not in ("connection", "host")
        }
        try:
            target.request(self.command, self.path, body, {**given, "authorization": f"Bearer {proxy.token}"})
            answer = target.getresponse()
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in _OURS:
                    self.send_header(name, value)
            self.send_header("connection", "close")
            self.end_headers()
            while piece := answer.read1(65_536):
                if self.path.endswith(CARD):
                    piece = piece.replace(proxy.upstream.encode(), proxy.url.encode())
                self.wfile.write(piece)
        except OSError:  # one of the two has left
            self.close_connection = True
        finally:
            target.close()


@contextmanager
def proxy() -> Iterator[Proxy]:
    """A proxy on a port that the kernel chooses."""
    with Proxy(("127.0.0.1", 0), _Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
