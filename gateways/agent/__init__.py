"""`turret agent`: an MCP server over standard input and output that holds a key, so that a model can deal."""
