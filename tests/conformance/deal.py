"""A whole deal as a list of tool calls, signed beforehand: any client can play it without a key."""

import secrets
import time
from typing import Any

from broker.wire.statement import build_statement
from tests.support.broker import Party

TYPES = ("PICKUP", "RFQ", "QUOTE", "HIT", "CONFIRM", "CONFIRM")
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXY"


def new_code() -> str:
    """A desk's code that nobody holds, nearly certainly; never ZZZZ, which stands for nobody."""
    return "".join(secrets.choice(LETTERS) for _ in range(4))


def plan(wire: str) -> dict[str, Any]:
    """Two desks are opened and make a deal. `steps` and then `last` are params of tools/call.

    `wire`: the wire's key. The plan is good for five minutes, once.
    """
    from broker.wire.envelope import bootstrap
    from broker.wire.ids import ConvId

    ts = int(time.time())
    caller, called = Party(new_code()), Party(new_code())
    steps = []
    for party in (caller, called):
        statement = party.statement("open_desk", wire, ts, secrets.token_hex(16), code=party.code)
        steps.append({"name": "open_desk", "arguments": statement})
    conv = secrets.token_hex(8)
    body = {"code_from": caller.code, "code_to": called.code, "wire": wire}
    params = caller.envelope(conv, 0, "CALL", called.pk, ts, bootstrap(ConvId(conv)), body)
    sig = params["sig"]
    call = {name: value for name, value in params.items() if name not in ("conv", "n")}
    steps.append({"name": "send_call", "arguments": {**call, "to_code": called.code}})
    for n, type in enumerate((*TYPES, "END"), start=1):
        sender, other = (called, caller) if n % 2 else (caller, called)
        params = sender.envelope(conv, n, type, other.pk, ts, sig, {"qty": 3, "px": "101.25"})
        sig = params["sig"]
        steps.append({"name": "send_env", "arguments": params})
    follow, follow_sig = build_statement(
        "follow", called.key, wire, ts, secrets.token_hex(16), code=called.code, until=ts + 3600
    )
    return {
        "steps": steps[:-1],
        "last": steps[-1],
        "conv": conv,
        "envelopes": len(TYPES) + 2,
        "code": called.code,
        "pk": called.pk,
        "follow": {"statement": follow.decode(), "sig": follow_sig},
    }
