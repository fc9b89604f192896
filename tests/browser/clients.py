"""An app and agents, as they reach a broker from outside: registered, signed in, asking."""

import base64
import hashlib
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import httpx
import msgspec

from broker.wire.jwk import jwk_of
from broker.wire.keys import SigningKey
from broker.wire.statement import build_statement
from gateways.client.assertion import TYPE, client_assertion

VERIFIER = "v" * 43
CHALLENGE = base64.urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest()).rstrip(b"=").decode()


class Agent:
    """An agent that registers itself, and signs in by its key."""

    def __init__(self, url: str, name: str) -> None:
        self.url = url
        self.key = SigningKey.generate()
        wire = httpx.get(f"{url}/.well-known/turret.json").json()["wire"]
        text, sig = build_statement(
            "register_agent", self.key, wire, int(time.time()), SigningKey.generate().pk[:32], name=name
        )
        proof = {"statement": msgspec.json.decode(text), "sig": sig}
        body = {"name": name, "public_jwk": msgspec.to_builtins(jwk_of(self.key.pk)), "proof": proof}
        answer = httpx.post(f"{url}/agents/register", json=body)
        assert answer.status_code in (200, 201), answer.text
        self.agent_id: str = answer.json()["agent_id"]
        self.claim_code: str = answer.json()["claim_code"]

    def call(self, tool: str, **params: Any) -> dict[str, Any]:
        """Call a tool with a token of its own."""
        form = {
            "grant_type": "client_credentials",
            "client_id": self.agent_id,
            "client_assertion_type": TYPE,
            "client_assertion": client_assertion(self.key, self.agent_id, self.url, int(time.time())),
            "resource": f"{self.url}/mcp",
        }
        answer = httpx.post(f"{self.url}/oauth/token", data=form)
        assert answer.status_code == 200, answer.text
        called = call(self.url, answer.json()["access_token"], tool, **params)
        assert called.status_code == 200, called.text
        result: dict[str, Any] = called.json()
        return result


def call(url: str, token: str, tool: str, **params: Any) -> httpx.Response:
    """Call a tool over plain HTTP."""
    return httpx.post(f"{url}/v1/{tool}", json=params, headers={"authorization": f"Bearer {token}"})


class App:
    """A program that asks an owner to let it in, and waits for the answer at an address of its own."""

    def __init__(self, url: str, back: str, came: list[dict[str, str]], name: str) -> None:
        self.url = url
        self.back = back
        self.came = came
        self.name = name
        metadata = {"client_name": name, "redirect_uris": [back], "token_endpoint_auth_method": "none"}
        answer = httpx.post(f"{url}/oauth/register", json=metadata)
        assert answer.status_code == 201, answer.text
        self.client_id: str = answer.json()["client_id"]

    def asking(self, scope: str) -> str:
        """The address that the app opens in the owner's browser."""
        params = {
            "response_type": "code",
            "client_id": self.client_id,
            "redirect_uri": self.back,
            "state": "a state",
            "code_challenge": CHALLENGE,
            "code_challenge_method": "S256",
            "resource": f"{self.url}/mcp",
            "scope": scope,
        }
        return f"{self.url}/oauth/authorize?{urlencode(params)}"

    def token(self) -> str:
        """The access token for the code that came last."""
        form = {
            "grant_type": "authorization_code",
            "client_id": self.client_id,
            "redirect_uri": self.back,
            "code": self.came[-1]["code"],
            "code_verifier": VERIFIER,
            "resource": f"{self.url}/mcp",
        }
        answer = httpx.post(f"{self.url}/oauth/token", data=form)
        assert answer.status_code == 200, answer.text
        token: str = answer.json()["access_token"]
        return token


@contextmanager
def app(url: str, name: str) -> Iterator[App]:
    """An app, listening. Who comes back to it is sent on to another host, as apps do that have a page for it."""
    came: list[dict[str, str]] = []

    class Back(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            if parts.path == "/back":
                came.append(dict(parse_qsl(parts.query)))
                self.send_response(302)
                self.send_header("location", f"http://localhost:{server.server_port}/done")
                self.send_header("content-length", "0")
                self.end_headers()
                return
            body = b"<!doctype html><html lang=en><title>Done</title><h1>Back in the app</h1>"
            self.send_response(200 if parts.path == "/done" else 404)
            self.send_header("content-type", "text/html")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Back)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield App(url, f"http://127.0.0.1:{server.server_port}/back", came, name)
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)
