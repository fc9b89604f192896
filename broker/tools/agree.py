"""What a CALL must agree with before anybody asks a conversation: its own form, its desks, the operators.

send_call and the dry run judge by the same functions, so that the one foretells the other.
"""

from collections.abc import Sequence

from broker.tools.context import Services
from broker.tools.lookup import holds, resolve, unknown_desk
from broker.wire.envelope import Envelope, call_codes
from broker.wire.refusals import Refusal, refuse


def call_form(envelope: Envelope, wires: Sequence[str]) -> Refusal | None:
    """Step 3 of the order of checks for the envelope alone: codes, n = 0, type CALL, body.wire is this wire."""
    codes = call_codes(envelope)
    if isinstance(codes, Refusal):
        return codes
    if envelope.n != 0:
        return disagree("n", "send_call takes n 0; later envelopes go through send_env")
    if envelope.type != "CALL":
        return disagree("type", "the first envelope is a CALL")
    if "wire" in envelope.body and envelope.body["wire"] not in wires:
        return refuse("bad_envelope", "body.wire names another wire", path="body.wire", wire=wires[-1])
    return None


async def desks_agree(services: Services, envelope: Envelope) -> Refusal | None:
    """Step 7: both codes are known, code_from is from's and code_to is to's."""
    code_from, code_to = envelope.body["code_from"], envelope.body["code_to"]
    if holds(services, envelope.sender, code_from) and holds(services, envelope.to, code_to):
        return None
    caller = await resolve(services, code_from)
    if caller is None:
        return unknown_desk(code_from)
    called = await resolve(services, code_to)
    if called is None:
        return unknown_desk(code_to)
    if caller.pk != envelope.sender:
        return disagree("body.code_from", "code_from does not resolve to from")
    if called.pk != envelope.to:
        return refuse(
            "bad_envelope", "code_to resolves to another key now; address that one", path="to", pk=called.pk
        )
    return None


def suspended(services: Services, envelope: Envelope) -> Refusal | None:
    """Step 9: a suspended desk dials nobody and is dialled by nobody; its key may still send END."""
    if envelope.type == "CALL":
        if services.suspended.isdisjoint((envelope.sender, envelope.to)):
            return None
        return refuse("suspended", "a desk of this call is suspended by the operators")
    if envelope.sender not in services.suspended or envelope.type == "END":
        return None
    return refuse("suspended", "this key's desk is suspended by the operators; END is still taken")


def disagree(path: str, message: str) -> Refusal:
    """bad_envelope for a member that disagrees."""
    return refuse("bad_envelope", message, path=path)
