"""The OpenAPI 3.1 document of the plain doors, out of the tool registry and the table of refusals."""

from collections.abc import Iterable
from typing import Any, Final

from broker.app import Tool
from broker.tools.registry import collect
from broker.wire.ids import CHANNEL, REF
from broker.wire.refusals import CODES

SCHEMAS: Final = "#/components/schemas/"


def document(tools: Iterable[Tool], version: str, server: str | None = None) -> dict[str, Any]:
    """The whole document. `version`: the broker's; `server`: the public URL, if it is known."""
    paths = {f"/v1/{tool.name}": {"post": _operation(tool)} for tool in tools if tool.face != "operator"}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Turret",
            "version": version,
            "description": "Desks dial each other and deal in signed envelopes. A refusal has one shape "
            "everywhere; branch on its code.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": server or "/"}],
        "paths": {**paths, "/agents/register": {"post": _registration()}, **_fixed_paths()},
        "components": {
            "schemas": {"Refusal": _refusal_schema(), "Fault": _fault_schema()},
            "securitySchemes": {
                "turret": {
                    "type": "apiKey",
                    "in": "header",
                    "name": "Authorization",
                    "description": "Turret <base64url of a follow statement's canonical text>.<sig>",
                },
                "bearer": {
                    "type": "http",
                    "scheme": "bearer",
                    "bearerFormat": "JWT",
                    "description": "An access token for this origin's /mcp (RFC 9728 says whose); the scope that a "
                    "tool needs stands beside it.",
                },
            },
        },
    }


def _operation(tool: Tool) -> dict[str, Any]:
    shown = {
        name: each for name, each in tool.output_schema.get("properties", {}).items() if name != "refusal"
    }
    return {
        "operationId": tool.name,
        "tags": [tool.face],
        "summary": tool.title or tool.name,
        "description": tool.description,
        "security": _security(tool),
        **({"parameters": [IDEMPOTENCY]} if tool.keyed else {}),
        "requestBody": {
            "required": bool(tool.input_schema.get("required")),
            "content": {"application/json": {"schema": tool.input_schema}},
        },
        "responses": {
            "200": {
                "description": "The result.",
                "content": {"application/json": {"schema": {**tool.output_schema, "properties": shown}}},
            },
            **refusals(),
        },
    }


def _registration() -> dict[str, Any]:
    """The door for agents that register themselves: the proof inside is the authority."""
    made = _operation(collect("signin")["register_agent"])
    answers = made["responses"]
    new = {"201": {**answers["200"], "description": "The new agent."}}
    again = {"200": {**answers["200"], "description": "The same agent: the identical request came before."}}
    return {**made, "tags": ["network"], "security": [{}], "responses": {**new, **answers, **again}}


IDEMPOTENCY: Final[dict[str, Any]] = {
    "name": "Idempotency-Key",
    "in": "header",
    "schema": {"type": "string", "minLength": 1, "maxLength": 128},
    "description": "another spelling of idempotency_key",
}


def _security(tool: Tool) -> list[dict[str, list[str]]]:
    """What a tool asks of its caller: a token with its scope, or nothing, a key's proof or a token."""
    if tool.scope is not None:
        return [{"bearer": [tool.scope]}]
    return [{}, {"turret": []}, {"bearer": []}]


def refusals() -> dict[str, Any]:
    """One response a status: which codes come with it. 405 and 415 are bad_request to a program."""
    by_status: dict[int, list[str]] = {405: ["bad_request"], 415: ["bad_request"]}
    for name, code in CODES.items():
        by_status.setdefault(code.status, []).append(name)
    answers: dict[str, Any] = {}
    for status, codes in sorted(by_status.items()):
        schema = {
            "type": "object",
            "required": ["refusal"],
            "properties": {
                "refusal": {
                    "allOf": [{"$ref": f"{SCHEMAS}Refusal"}, {"properties": {"code": {"enum": codes}}}]
                }
            },
        }
        answers[str(status)] = {
            "description": "; ".join(f"{name}: {CODES[name].meaning}" for name in codes),
            "content": {"application/json": {"schema": schema}},
        }
    fault = {"schema": {"$ref": f"{SCHEMAS}Fault"}}
    answers["500"] = {"description": "An unexpected fault.", "content": {"application/json": fault}}
    return answers


def _refusal_schema() -> dict[str, Any]:
    return {
        "type": "object",
        "required": ["code", "status", "message", "retryable"],
        "properties": {
            "code": {"type": "string", "enum": list(CODES)},
            "status": {"type": "integer"},
            "message": {"type": "string", "description": "for people; its words may change"},
            "retryable": {"type": "boolean", "description": "the identical request may be sent again"},
            "retry_after_ms": {"type": "integer", "minimum": 0},
            "path": {"type": "string", "description": "the member at fault"},
            "rebuild": {"type": "boolean", "description": "read the head and make a new request"},
        },
    }


def _fault_schema() -> dict[str, Any]:
    return {
        "type": "object",
        "required": ["error", "incident"],
        "properties": {"error": {"const": "internal"}, "incident": {"type": "string"}},
    }


def _fixed_paths() -> dict[str, Any]:
    code = {
        "name": "code",
        "in": "path",
        "required": True,
        "schema": {"type": "string", "pattern": "^[A-Z]{4}$"},
    }
    after = {"name": "after", "in": "query", "schema": {"type": "string"}, "description": "the last cursor"}
    auth = {"name": "auth", "in": "query", "schema": {"type": "string"}, "description": "for EventSource"}
    last = {"name": "Last-Event-ID", "in": "header", "schema": {"type": "string"}}
    stream = {
        "operationId": "rings",
        "summary": "A desk's events as text/event-stream",
        "security": [{"turret": []}, {"bearer": ["message"]}],
        "parameters": [code, after, auth, last],
        "responses": {
            "200": {
                "description": "Events.",
                "content": {"text/event-stream": {"schema": {"type": "string"}}},
            },
            **refusals(),
        },
    }
    channel = {
        "name": "channel_id",
        "in": "path",
        "required": True,
        "schema": {"type": "string", "pattern": f"^{CHANNEL.pattern}$"},
    }
    seq = {"name": "after_seq", "in": "query", "schema": {"type": "integer"}, "description": "the last seq"}
    return {
        "/rings/{code}": {"get": stream},
        "/channels/{channel_id}": {
            "get": {
                **stream,
                "operationId": "channels",
                "summary": "A channel's messages as text/event-stream, for its members",
                "security": [{"bearer": ["channel"]}],
                "parameters": [channel, after, seq, auth, last],
            }
        },
        "/artifact/{ref}": {"get": _artifact()},
        "/artifact/{ref}/report": {"get": _report()},
        "/.well-known/turret.json": {"get": _simple("well_known", "The wire's keys, limits and time")},
        "/healthz": {"get": _simple("healthz", "The process lives")},
        "/readyz": {"get": _simple("readyz", "Whether new work is taken; 503 with the reasons when not")},
    }


def _artifact() -> dict[str, Any]:
    """Whoever has the ref may read: no security, and no refusal of a token."""
    ref = {
        "name": "ref",
        "in": "path",
        "required": True,
        "schema": {"type": "string", "pattern": f"^{REF.pattern}$"},
        "description": "SHA-256 of the artifact's bytes, hex",
    }
    made = _simple("artifact", "A published artifact, its exact bytes")
    answers = {
        **made["responses"],
        "304": {"description": "The ref is the ETag of If-None-Match."},
        **{status: each for status, each in refusals().items() if status not in ("401", "403")},
    }
    return {**made, "security": [{}], "parameters": [ref], "responses": answers}


def _report() -> dict[str, Any]:
    """The same right, and a page for people whatever comes of it."""
    artifact, content = _artifact(), {"text/html": {"schema": {"type": "string"}}}
    answers = {
        status: {**answer, "content": content}
        for status, answer in artifact["responses"].items()
        if status != "304"
    }
    summary = "A finished trial, for people"
    return {**artifact, "operationId": "trial_report", "summary": summary, "responses": answers}


def _simple(name: str, summary: str) -> dict[str, Any]:
    content = {"application/json": {"schema": {"type": "object"}}}
    return {
        "operationId": name,
        "summary": summary,
        "responses": {"200": {"description": summary, "content": content}},
    }
