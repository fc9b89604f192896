"""`turret serve` with the judges' fixtures on its MCP faces: the same composition root, doors and dispatcher.

Run as `python -m tests.conformance.server serve …`, with the options of `turret serve`.
"""

from typing import Any

from broker.app import Broker
from gateways import cli, doors
from gateways.mcp.endpoint import McpApp, mcp_app
from gateways.mcp.faces import surfaces
from tests.conformance.fixtures import with_fixtures


def app_with_fixtures(broker: Broker, **options: Any) -> McpApp:
    """The endpoint as serve makes it, its wire faces with fixtures."""
    faces = {name: with_fixtures(surface) for name, surface in surfaces(broker).items()}
    return mcp_app(broker, faces=faces, **options)


def main() -> None:
    """Serve until a signal says stop."""
    doors.mcp_app = app_with_fixtures
    cli.main()


if __name__ == "__main__":
    main()
