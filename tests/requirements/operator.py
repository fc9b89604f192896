"""The operators' port (docs/reference/network.md, Operators' port)."""

REQUIREMENTS: dict[str, str] = {
    "operator.token": "a token has at least 128 bits, is compared in constant time and kept as a digest alone",
    "operator.port": "with a token a broker opens a port for its operators, on loopback unless told otherwise; without "
    "one it serves all else, and says how to get one",
    "operator.gate": "who shows the operators' token is an operator; who does not is told nothing",
    "operator.guesses": "wrong tokens are summed for the audit, and too many told to wait; the right one is let in",
    "operator.endpoint": "/mcp of the operators' port has the operators' tools, in both eras, within the bounds of all",
    "operator.apart": "nothing of the public port stands on the operators', and nothing of theirs on a public door",
    "operator.origin": "a page may ask that came from the operators' port itself; nobody gets CORS",
    "operator.admin": "turret admin has every tool of the operators as a command, shows a token from a file or the "
    "environment alone, and says in a line what stands in the way; turret operator-token makes one",
    "operator.pages": "all other paths of the operators' port are pages, which know operators by the gate",
}
