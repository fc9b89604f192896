"""Gateways translate between bytes and the broker, and nothing else.

Each door (plain HTTP, SSE, WebSocket, MCP) knows the broker's verbs, the tool registry and
the wire. The dealer's client in `gateways.client` is the far end of the same doors.
"""
