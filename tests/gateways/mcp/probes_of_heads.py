"""Edge probes of HTTP headers, and of the ladder of 2026-07-28."""

import json
from typing import Any

from gateways.mcp.revisions import CAPABILITIES_KEY, MODERN, VERSION_KEY
from tests.gateways.mcp.harness import modern
from tests.gateways.mcp.probes import CALL, INVALID, METHOD, OK, PARAMS, Probe, frame

JSON = "application/json"
HEADS = [
    *(
        Probe(f"accept {value!r}", frame(), 200, OK, 1, {"accept": value})
        for value in (
            "",
            "*/*",
            JSON,
            "APPLICATION/JSON",
            "application/*",
            f"text/html, {JSON};q=0.1",
            f"{JSON} ; charset=utf-8",
            f"{JSON},",
            f",{JSON}",
            f"text/event-stream;q=0, {JSON}",
        )
    ),
    *(
        Probe(f"accept {value!r}", frame(), 406, INVALID, None, {"accept": value})
        for value in (
            "text/html",
            "image/*",
            f"{JSON};q=0",
            "application/jsonx",
            "x",
            "text/event-streams",
            f"{JSON};q=0.000",
        )
    ),
    *(
        Probe(f"content type {value!r}", frame(), 200, OK, 1, {"content_type": value})
        for value in (
            JSON,
            "APPLICATION/JSON",
            f"{JSON};charset=UTF-8",
            f'{JSON}; charset="utf-8"',
            f"{JSON}; x=y",
            "",
        )
    ),
    *(
        Probe(f"content type {value!r}", frame(), 415, INVALID, None, {"content_type": value})
        for value in (
            "text/plain",
            "application/x-www-form-urlencoded",
            "multipart/form-data; boundary=x",
            "application/jsonx",
            f"{JSON}; charset=latin-1",
            f"{JSON}, text/plain",
            "x",
        )
    ),
    *(
        Probe(f"session {value!r:.20}", frame(), 404, -32001, 1, {"mcp_session_id": value})
        for value in ("x", "0" * 48, "ü", "a b", "0" * 5000, "../../x")
    ),
    *(
        Probe(
            f"revision {value!r} without a session", frame(), 400, INVALID, 1, {"mcp_protocol_version": value}
        )
        for value in ("2025-11-25", "2025-06-18", "2025-03-26")
    ),
    *(
        Probe(f"revision {value!r}", frame(), 400, -32022, 1, {"mcp_protocol_version": value})
        for value in ("2024-11-05", "2099-01-01", "x", "2025-11-25x", "2025-11-25, 2025-11-25", "ü")
    ),
    Probe(
        "what means nothing before a session",
        frame(),
        200,
        OK,
        1,
        {"mcp_method": "x", "mcp_name": "y", "last_event_id": "9"},
    ),
    *(
        Probe(f"path {path}", frame(), 404, INVALID, None, path=path)
        for path in (
            "/mcp/x",
            "/mcp//",
            "/mcp/wire/x",
            "/mcp/operator",
            "/mcpx",
            "/MCP",
            "/mcp/%77ire",
            "/mcp/../mcp",
        )
    ),
]


def meta(**changes: Any) -> dict[str, Any]:
    """`_meta` of 2026-07-28; a member that is ... is left out."""
    names = {"version": VERSION_KEY, "capabilities": CAPABILITIES_KEY}
    found = {VERSION_KEY: MODERN, CAPABILITIES_KEY: {}}
    found.update({names.get(name, name): value for name, value in changes.items()})
    return {name: value for name, value in found.items() if value is not ...}


def era(method: str, **params: Any) -> tuple[bytes, dict[str, str]]:
    body, headers = modern(method, **{name: value for name, value in params.items() if name != "_meta"})
    if "_meta" in params:
        body["params"]["_meta"] = params["_meta"]
    return json.dumps(body).encode(), headers


def laddered(
    what: str,
    status: int,
    code: int,
    method: str = "tools/list",
    /,
    head: dict[str, str] | None = None,
    **params: Any,
) -> Probe:
    """A probe of 2026-07-28: all that it asks for, then some headers changed; "" leaves one out."""
    body, headers = era(method, **params)
    return Probe(what, body, status, code, 1, {**headers, **(head or {})})


def echoed(
    what: str, status: int, code: int, head: dict[str, str] | None = None, arguments: Any = None
) -> Probe:
    """The same for a call of `echo`."""
    given = {} if arguments is None else {"arguments": arguments}
    return laddered(what, status, code, CALL, head=head, name="echo", **given)


MISMATCH, UNSUPPORTED = -32020, -32022
LADDER = [
    laddered("all that is asked for", 200, OK),
    echoed("a tool", 200, OK),
    echoed("OWS around values", 200, OK, head={"mcp_name": " \techo ", "mcp_method": f" {CALL}"}),
    echoed("a name in base64", 200, OK, head={"mcp_name": "=?base64?ZWNobw==?="}),
    laddered("a session means nothing", 200, OK, head={"mcp_session_id": "x", "last_event_id": "1"}),
    *(
        laddered(f"version header {value!r}", 400, MISMATCH, head={"mcp_protocol_version": value})
        for value in ("", "2025-11-25", "2099-01-01", "2026-07-28x")
    ),
    *(
        laddered(f"method header {value!r}", 400, MISMATCH, head={"mcp_method": value})
        for value in ("", "Tools/List", "tools/call", "tools/list,tools/list", "=?base64?dG9vbHMvbGlzdA==?=")
    ),
    *(
        echoed(f"name header {value!r}", 400, MISMATCH, head={"mcp_name": value})
        for value in (
            "",
            "Echo",
            "echo,echo",
            "=?base64?ZWNobw=?=",
            "=?base64?ZWNobw?=",
            "=?base64?ZWNo!w==?=",
            "=?base64?ZWNobx==?=",
            "=?BASE64?ZWNobw==?=",
            "=?base64??=",
            "=?base64?/w==?=",
            "ech\xf6",
        )
    ),
    *(
        echoed(f"{name} twice", 400, MISMATCH, head={name.replace("_", "-").title(): value})
        for name, value in (("mcp_protocol_version", MODERN), ("mcp_method", CALL), ("mcp_name", "echo"))
    ),
    *(
        laddered(f"_meta {value!r:.60}", 400, PARAMS, _meta=value)
        for value in (
            meta(capabilities=...),
            meta(version=7),
            meta(capabilities=[]),
            meta(capabilities=None),
            meta(progressToken=1.5),
            meta(**{"io.modelcontextprotocol/logLevel": "loud"}),
            {},
            [],
            None,
            7,
        )
    ),
    laddered("_meta without a version", 400, PARAMS, _meta=meta(version=...)),
    *(
        laddered(
            f"client info {value!r}", 200, OK, _meta=meta(**{"io.modelcontextprotocol/clientInfo": value})
        )
        for value in ({}, {"name": "x"})
    ),
    *(
        laddered(
            f"revision {value!r}",
            400,
            UNSUPPORTED,
            head={"mcp_protocol_version": value},
            _meta=meta(version=value),
        )
        for value in ("2099-01-01", "2024-11-05", "2025-11-25x", "x", "draft")
    ),
    *(
        laddered(f"method {name}", 404, METHOD, name)
        for name in (
            "initialize",
            "ping",
            "logging/setLevel",
            "resources/subscribe",
            "resources/unsubscribe",
            "tasks/list",
            "x",
        )
    ),
    *(laddered(f"tool {name!r}", 400, PARAMS, CALL, name=name) for name in ("x", "ECHO")),
    laddered("a tool's name that is no string", 400, PARAMS, CALL, name=7),
    laddered("a tool without a name", 400, PARAMS, CALL),
    echoed("arguments in a list", 400, PARAMS, arguments=[]),
    laddered("a missing resource", 400, PARAMS, "resources/read", uri="turret://nothing"),
    laddered("a made-up cursor", 400, PARAMS, cursor="zz"),
    laddered("listen to nothing named", 400, PARAMS, "subscriptions/listen"),
    *(
        laddered(f"listen {value!r:.50}", 400, PARAMS, "subscriptions/listen", notifications=value)
        for value in (
            None,
            [],
            "x",
            {"toolsListChanged": 1},
            {"resourceSubscriptions": "x"},
            {"resourceSubscriptions": [7]},
            {"resourceSubscriptions": ["x"] * 65},
        )
    ),
    Probe(
        "listen without a stream",
        era("subscriptions/listen", notifications={})[0],
        406,
        INVALID,
        1,
        {**era("subscriptions/listen", notifications={})[1], "accept": JSON},
    ),
    Probe("a response", frame(method=..., result={}), 400, INVALID, None, {"mcp_protocol_version": MODERN}),
    Probe("a batch", b"[" + era("tools/list")[0] + b"]", 400, INVALID, None, era("tools/list")[1]),
    Probe(
        "a notification",
        frame(id=..., method="notifications/x"),
        202,
        OK,
        headers={"mcp_protocol_version": MODERN},
    ),
]
