"""Gateways translate between bytes and the broker, and nothing else.

Each door (plain HTTP, SSE, WebSocket, MCP, A2A) knows the broker's verbs, the tool registry and
the wire. The client in `gateways.client`, a dealer's and an agent's, is the far end of the same doors.

Reading order for a newcomer: session.py (one connection), plain.py (one request), gate.py and
oauth/bearer.py (a token becomes a caller), oauth/server.py and oauth/token.py (where tokens come
from), pages/site.py (a browser's request becomes a page), operator/server.py (the operators' port),
doors.py (each port with what stands behind it), serve.py (all of it put together).
"""
