"""The MCP face: both eras on one endpoint."""
