"""One real broker process for all tests of the faces, and the four doors through which a client may come."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from broker.wire.keys import SigningKey
from broker.wire.statement import build_statement

VECTORS = Path(__file__).parents[1] / "vectors"
KEYS = {
    name: SigningKey.from_seed(row["seed"])
    for name, row in json.loads((VECTORS / "wire" / "keys.json").read_text()).items()
}
DESKS = {"ALFA": "alpha", "BRAV": "bravo"}


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """The ready line of a broker process on loopback, with desks ALFA and BRAV open; ended after the tests."""
    data = tmp_path_factory.mktemp("faces") / "data"
    command = [sys.executable, "-m", "gateways.cli", "serve", "--json", "--data", str(data)]
    command += ["--bind", "127.0.0.1:0", "--dealing-bind", "127.0.0.1:0"]
    errors = data.parent / "errors"
    with errors.open("wb") as log:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, env=dict(os.environ))
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, errors.read_text()
        ready = json.loads(line)
        ready["errors"] = errors
        door = Plain(ready)
        now = httpx.post(f"{ready['http']}/v1/wire_info", json={}).json()["time"] // 1000
        for code, name in DESKS.items():
            text, sig = build_statement(
                "open_desk", KEYS[name], ready["pk"], now, os.urandom(16).hex(), code=code
            )
            answer = door.call("open_desk", b'{"statement":%s,"sig":"%s"}' % (text, sig.encode()))
            assert "refusal" not in answer, answer
        door.close()
        yield ready
        assert process.poll() is None, f"the broker ended: {errors.read_text()}"
        assert b"Traceback" not in errors.read_bytes(), errors.read_text()
    finally:
        process.terminate()
        try:
            process.wait(12)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()


class Door:
    """One way in. `call` gives the tool's result, {"refusal": …}, {"malformed": JSON-RPC code} or {"closed": code}."""

    def call(self, tool: str, params: bytes) -> dict[str, Any]:
        raise NotImplementedError

    def raw(self, body: bytes) -> dict[str, Any]:
        """Send a body or frame as it is; what came back."""
        raise NotImplementedError

    def close(self) -> None:
        """End the connection."""


class Plain(Door):
    """POST /v1/<tool>."""

    def __init__(self, ready: dict[str, Any]) -> None:
        self._http = httpx.Client(base_url=ready["http"], headers={"content-type": "application/json"})

    def call(self, tool: str, params: bytes) -> dict[str, Any]:
        answer = self._http.post(f"/v1/{tool}", content=params)
        body: dict[str, Any] = answer.json()
        if "refusal" in body:
            assert answer.status_code == body["refusal"]["status"]
        else:
            assert answer.status_code == 200
        return body

    def raw(self, body: bytes) -> dict[str, Any]:
        return self.call("wire_info", body)

    def close(self) -> None:
        self._http.close()


class Mcp(Door):
    """POST /mcp, tools/call, without a session as the modern era has it, or with one."""

    def __init__(self, ready: dict[str, Any]) -> None:
        self._http = httpx.Client(base_url=ready["http"])
        opening = {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "t", "version": "1"},
        }
        answer = self._post(json.dumps(self._frame("initialize", opening)).encode(), {})
        self._headers = {
            "mcp-session-id": answer.headers["mcp-session-id"],
            "mcp-protocol-version": "2025-11-25",
        }

    def _frame(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}

    def _post(self, body: bytes, headers: dict[str, str]) -> httpx.Response:
        fixed = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
        return self._http.post("/mcp", content=body, headers={**fixed, **headers})

    def call(self, tool: str, params: bytes) -> dict[str, Any]:
        frame = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"%s","arguments":%s}}'
        return self.raw(frame % (tool.encode(), params))

    def raw(self, body: bytes) -> dict[str, Any]:
        answer = self._post(body, self._headers)
        assert answer.status_code < 500, answer.text
        content = answer.json()
        assert content["jsonrpc"] == "2.0"
        if "error" in content:
            return {"malformed": content["error"]["code"]}
        result: dict[str, Any] = content["result"]
        if result.get("isError"):
            refusal = result["structuredContent"]["refusal"]
            assert result["content"][0]["text"].startswith(f"{refusal['code']}: ")
            return {"refusal": refusal}
        structured: dict[str, Any] = result["structuredContent"]
        return structured

    def close(self) -> None:
        self._http.close()


class WebSocket(Door):
    """A JSON-RPC frame on the dealing port, or on /ws of the public port."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._open()

    def _open(self) -> None:
        self._ws: ClientConnection = connect(
            self._url, compression=None, max_size=None, proxy=None, legacy=True
        )
        hello = json.loads(self._ws.recv(5))
        assert hello["method"] == "hello"

    def call(self, tool: str, params: bytes) -> dict[str, Any]:
        frame = b'{"jsonrpc":"2.0","id":1,"method":"%s","params":%s}' % (tool.encode(), params)
        return self.raw(frame)

    def raw(self, body: bytes) -> dict[str, Any]:
        try:
            self._ws.send(body, text=True)
            content = json.loads(self._ws.recv(5))
        except ConnectionClosed as closed:
            code = closed.rcvd.code if closed.rcvd is not None else None
            self._open()
            return {"closed": code}
        if "error" not in content:
            result: dict[str, Any] = content["result"]
            return result
        error = content["error"]
        if error["code"] == -32000:
            return {"refusal": error["data"]}
        if error["code"] == -32602 and "refusal" in error.get("data", {}):
            return {"refusal": error["data"]["refusal"]}
        return {"malformed": error["code"]}

    def close(self) -> None:
        self._ws.close()


@pytest.fixture(params=["plain", "mcp", "ws", "dealing"])
def door(request: pytest.FixtureRequest, served: dict[str, Any]) -> Iterator[Door]:
    """Each door in turn, over a real socket."""
    made: Door
    if request.param == "plain":
        made = Plain(served)
    elif request.param == "mcp":
        made = Mcp(served)
    elif request.param == "ws":
        made = WebSocket(served["http"].replace("http", "ws", 1) + "/ws")
    else:
        made = WebSocket(served["dealing"])
    yield made
    made.close()
