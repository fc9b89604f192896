"""`turret agent`: a model deals with a key that it never sees."""

REQUIREMENTS: dict[str, str] = {
    "agent.deal": "the official client makes a whole deal through two agents, in both eras, with no signing code",
    "agent.stdio": "one JSON-RPC message a line and nothing else on standard output, in both eras; what is no message "
    "is answered with a JSON-RPC error and breaks nothing",
    "agent.handshake": "initialize of 2025-11-25, 2025-06-18 and 2025-03-26 negotiates; a request with `_meta` of "
    "2026-07-28 needs none, on the same pipes",
    "agent.cancel": "notifications/cancelled ends a request in both eras, and nothing more is sent for it; a dial "
    "that is cancelled is hung up",
    "agent.ends": "the end of the input and SIGTERM end the agent in bounded time, and open calls are hung up",
    "agent.secrets": "neither the seed nor any part of it is on standard output or standard error",
    "agent.refusals": "a refusal is a result with isError, the wire's code, and the way out in the agent's own tools",
    "agent.untrusted": "what other parties wrote stands in structured members, marked untrusted, and out of our words",
    "agent.counterparties": "with counterparties set, no other is dialled, answered or spoken to; their rings are "
    "declined unseen",
    "agent.cap": "no body is signed in which a capped member, at any depth, is beyond its cap or no plain number; one "
    "that does not name it is judged by what was last named in the call",
    "agent.types": "with types set, no other type is said; hanging up is always allowed",
    "agent.ask-before": "before a type that is asked for is signed the user accepts exactly that envelope, once; who "
    "declines or can't be asked is refused",
    "agent.guard-rail": "what a guard rail stops is answered with the code guard_rail and the rule, and not signed",
    "agent.settings": "rails come from a TOML file and the command line; one that can't be read stops the agent",
    "agent.code": "with a code set, that desk is opened at the start, and no other can be",
    "agent.once": "a saying whose outcome is not known is settled before anything else is signed, and the same said "
    "again is not said twice",
    "agent.connects": "tools are served at once; without a connection they say unavailable, and it is tried again; a "
    "wire that lies ends the dealing for good",
    "agent.news": "each event reaches the model once, in order, from one call or from all",
    "agent.base-install": "the agent needs no server library",
}
