"""The yardstick: the official Python SDK's server on uvicorn, with the tool `echo`. For measuring alone.

Run as `python -m bench.sdk_server MODE`; one line of JSON on stdout says where it listens. MODE is one of

- `default`: MCPServer as it comes (the handshake era is answered with event streams),
- `json`: the same with json_response=True, the fastest that this interface has,
- `lowlevel`: Server, the interface below it, with json_response=True; the tool checks its own arguments.

Logs of requests are off in all of them, which is in their favour.
"""

import json
import socket
import sys
from typing import Any

import uvicorn
from mcp.server.lowlevel.server import Server
from mcp.server.mcpserver import MCPServer
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
)

HOST = "127.0.0.1"
SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}


def echo(text: str) -> str:
    """Give the text back."""
    return text


async def _list(context: Any, params: PaginatedRequestParams | None) -> ListToolsResult:
    return ListToolsResult(tools=[Tool(name="echo", description="Give the text back.", input_schema=SCHEMA)])


async def _call(context: Any, params: CallToolRequestParams) -> CallToolResult:
    text = (params.arguments or {})["text"]
    if params.name != "echo" or not isinstance(text, str):
        raise ValueError("echo takes a text")
    return CallToolResult(content=[TextContent(text=text)], structured_content={"result": text})


def app(mode: str) -> Any:
    """The ASGI application. Raises SystemExit for a mode that there is not."""
    if mode == "lowlevel":
        low: Server[dict[str, Any]] = Server("yardstick", on_list_tools=_list, on_call_tool=_call)
        return low.streamable_http_app(host=HOST, json_response=True)
    if mode not in ("default", "json"):
        raise SystemExit("usage: python -m bench.sdk_server default|json|lowlevel")
    server = MCPServer("yardstick", log_level="WARNING")
    server.tool()(echo)
    return server.streamable_http_app(host=HOST, json_response=mode == "json")


def main() -> None:
    """Serve until a signal says stop."""
    config = uvicorn.Config(app(sys.argv[-1]), log_level="warning", access_log=False)
    # asyncio sets TCP_NODELAY where the protocol is named, as uvicorn's own listeners have it; without it each
    # answer would wait 40 ms for an acknowledgement, and we would measure that.
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        listener.bind((HOST, 0))
        print(json.dumps({"http": f"http://{HOST}:{listener.getsockname()[1]}"}), flush=True)
        uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
