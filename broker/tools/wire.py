"""send_call and send_env: the two tools that write envelopes, in the order of checks of wire.md.

An envelope that is the next one of a live conversation goes the way without waiting (`start_env`): the same checks
in the same order, and nothing is awaited but its commit. Whatever else it is goes through send_env.
"""

import itertools
from collections.abc import Sequence
from functools import partial
from typing import Any

from broker.actors.actor import GONE, Actor
from broker.actors.calls import Ack, find_replay, pair_name
from broker.actors.conversation import Dial, taken
from broker.actors.deskcommands import Release, ReservePlace, ReserveRing
from broker.actors.guard import place_of
from broker.core import conversation as core
from broker.core.conversation import Conversation, Hangup, Send
from broker.core.desk import Place, Ring
from broker.core.machine import Now
from broker.tools.agree import call_form, desks_agree, disagree, suspended
from broker.tools.context import Context, Services
from broker.tools.lookup import (
    ConvParam,
    EnvelopeParam,
    NParam,
    SigParam,
    conv_row,
    disk_full,
    live,
    missing_conv,
)
from broker.tools.proof import check_signature, forged
from broker.tools.registry import Then, tool
from broker.wire.envelope import Envelope, read_envelope
from broker.wire.ids import SIG, CodeParam, Pk, PkParam, Sig
from broker.wire.refusals import Refusal, refuse

_tokens = itertools.count()
"""Names askers to desks: what one asker holds, no other gives back."""


@tool(face="wire", title="Dial a desk")
async def send_call(
    context: Context, to_code: CodeParam, from_pk: PkParam, sig: SigParam, envelope: EnvelopeParam
) -> Ack | Refusal:
    """Dial a counterparty: send the signed CALL that opens a conversation and rings the desk called.

    The envelope has n 0, type CALL, a new random conv, and body {code_from, code_to, ...}; put the wire's pk in
    body.wire. The same bytes sent again give the stored acknowledgement.
    """
    read = read_envelope(envelope)
    if isinstance(read, Refusal):
        return read
    services = context.services
    fault = _call_agrees(read, to_code, from_pk, services.keyring.opening)
    if fault is not None:
        return fault
    document = await services.store.get("conv", read.conv)
    if document is not None:
        replay = await find_replay(services.store, read, sig)
        if replay is not None:
            return replay
    if (late := _late(services)) is not None:
        return late
    refused = await desks_agree(services, read) or await check_signature(
        context, read.sender, read.canonical, sig, "bad_signature"
    )
    refused = refused or suspended(services, read)
    if refused is not None:
        return refused
    if document is not None:
        return await _conv_taken(services, read)
    verdict = core.decide_call(read, Sig(sig), _now(services), services.rules)
    if isinstance(verdict, Refusal):
        return verdict
    return await _dial(context, read, Sig(sig))


def start_env(context: Context, given: Any, then: Then) -> bool:
    """send_env without waiting. False for what has to be looked up, or is refused before its signature."""
    services, caller = context.services, context.caller
    actor = services.house.alive("conversation", given.conv)
    if actor is None or actor.gone or actor.state is None:
        return False
    state: Conversation = actor.state
    read = read_envelope(bytes(given.envelope))
    if (
        isinstance(read, Refusal)
        or (read.conv, read.n, read.sender) != (given.conv, given.n, given.from_pk)
        or read.n <= state.n
        or read.type == "PICKUP"
        or read.sender not in (state.caller, state.callee)
        or (services.guard.alert and services.guard.check(caller.address, caller.exempt) is not None)
    ):
        return False
    if read.type != "END" and (late := _late(services)) is not None:
        then(late)
        return True
    command = Send(read, given.sig)
    then = partial(_verified, context, actor, command, then)
    services.verifier.submit(read.sender, read.canonical, given.sig, then)
    return True


def _verified(context: Context, actor: Actor[Any], command: Send, then: Then, good: bool) -> None:
    """Go on after the signature: the rest of step 9, then the conversation."""
    envelope = command.envelope
    if not good:
        formed = SIG.fullmatch(command.sig) is not None  # else it is the form that is refused
        then(forged(context, envelope.canonical, "bad_signature") if formed else GONE)
    elif context.services.suspended and (refused := suspended(context.services, envelope)) is not None:
        then(refused)
    elif not context.services.house.begin(actor, command, then):
        then(GONE)


@tool(face="wire", title="Send an envelope", start=start_env)
async def send_env(
    context: Context, conv: ConvParam, n: NParam, from_pk: PkParam, sig: SigParam, envelope: EnvelopeParam
) -> Ack | Refusal:
    """Send any signed envelope after the CALL: PICKUP or END at n 1, then the parties in turn.

    prev_sig is the signature of envelope n - 1. The same bytes sent again give the stored acknowledgement; on
    conflict read the head and sign a new envelope, on in_doubt repeat the identical request only.
    """
    read = read_envelope(envelope)
    if isinstance(read, Refusal):
        return read
    fault = _envelope_agrees(read, conv, n, from_pk)
    if fault is not None:
        return fault
    services = context.services
    parties_only = services.settings.transcripts == "parties"
    if parties_only and not await _is_party(services, read):
        return missing_conv(context)  # before an actor starts: a foreign id costs what a missing one costs
    actor = await live(services, read.conv)
    if actor is None or actor.state is None:
        return missing_conv(context)
    state = actor.state
    if read.n <= state.n:
        replay = await find_replay(services.store, read, sig)
        if replay is not None:
            return replay
    if not core.may_send(state, read, _now(services), services.rules):
        return (
            missing_conv(context)
            if parties_only
            else refuse("not_a_party", "this key is not a party of the conversation")
        )
    if read.type != "END" and (late := _late(services)) is not None:
        return late
    refused = await check_signature(context, read.sender, read.canonical, sig, "bad_signature")
    refused = refused or suspended(services, read)
    if refused is not None:
        return refused
    command = Send(read, Sig(sig))
    if read.type == "PICKUP":
        return await _pick_up(services, state, command)
    answer: Ack | Refusal = await services.house.ask("conversation", read.conv, command)
    return answer


def _call_agrees(envelope: Envelope, to_code: str, from_pk: str, wires: Sequence[str]) -> Refusal | None:
    """Step 3 for a CALL: params agree with the envelope, and the envelope has the form of a CALL to this wire."""
    if envelope.sender != from_pk:
        return disagree("from", "from_pk is not the envelope's from")
    if envelope.body.get("code_to") != to_code:
        return disagree("body.code_to", "to_code is not body.code_to")
    return call_form(envelope, wires)


def _envelope_agrees(envelope: Envelope, conv: str, n: int, from_pk: str) -> Refusal | None:
    """Step 3 for what follows a CALL."""
    if envelope.conv != conv:
        return disagree("conv", "conv is not the envelope's conv")
    if envelope.n != n:
        return disagree("n", "n is not the envelope's n")
    if envelope.sender != from_pk:
        return disagree("from", "from_pk is not the envelope's from")
    if n == 0:
        return disagree("n", "the CALL goes through send_call; send_env takes n from 1")
    return None


async def _is_party(services: Services, envelope: Envelope) -> bool:
    """Whether `from` belongs to the conversation, the wire included (its END may be sent again)."""
    row = await conv_row(services, envelope.conv)
    return row is not None and envelope.sender in (row.caller, row.callee, row.wire)


async def _conv_taken(services: Services, envelope: Envelope) -> Refusal:
    """Step 10: the id is taken, also by a transcript that retention removed."""
    actor = await live(services, envelope.conv)
    if actor is None or actor.state is None:
        return refuse("conv_exists", "this conv was used before; choose a new random one")
    return taken(actor.state, envelope.sender)


async def _dial(context: Context, envelope: Envelope, sig: Sig) -> Ack | Refusal:
    """Steps 17 and 18: a ring at the desk called, the disk, a place at the caller's desk, the eviction, the CALL.

    The desk called comes first, so that a dial that is refused has named nobody to evict. Cancelled half-way it
    leaves only reservations, which end by themselves.
    """
    services = context.services
    house, conv, token = services.house, envelope.conv, next(_tokens)
    pair = pair_name(envelope.sender, envelope.to)
    known = bool(await services.store.find("conv", "pair", pair, limit=1))
    address = None if context.caller.loopback else place_of(context.caller.address)
    refused = await house.ask(
        "desk", envelope.to, ReserveRing(conv, token, Ring(envelope.sender, address, known))
    )
    if isinstance(refused, Refusal):
        return refused
    full = disk_full(services, "no new call begins, open ones go on")
    place = full or await house.ask("desk", envelope.sender, ReservePlace(conv, token))
    if isinstance(place, Refusal):
        house.tell("desk", envelope.to, Release(token))
        return place
    answer: Ack | Refusal | None = await _evict(services, place, Pk(envelope.sender))
    if answer is None:
        answer = await house.ask("conversation", conv, Dial(envelope, sig))
    if isinstance(answer, Refusal) and answer.code != "in_doubt":
        house.tell("desk", envelope.sender, Release(token))
        house.tell("desk", envelope.to, Release(token))
    assert answer is not None  # a Dial is answered
    return answer


async def _pick_up(services: Services, state: Conversation, command: Send) -> Ack | Refusal:
    """A PICKUP takes one of the eight places of the key that picks up.

    One that would be refused as things stand evicts nobody; one that then loses to the caller's END has done so.
    """
    refused = core.decide_send(state, command, _now(services), services.rules)
    if isinstance(refused, Refusal):
        return refused
    conv, sender, token = state.conv, Pk(command.envelope.sender), next(_tokens)
    place = await services.house.ask("desk", sender, ReservePlace(conv, token))
    if isinstance(place, Refusal):
        return place
    answer: Ack | Refusal | None = await _evict(services, place, sender)
    if answer is None:
        answer = await services.house.ask("conversation", conv, command)
    if isinstance(answer, Refusal) and answer.code != "in_doubt":
        services.house.tell("desk", sender, Release(token))
    assert answer is not None  # a Send is answered
    return answer


async def _evict(services: Services, place: Place, by: Pk) -> Refusal | None:
    """Have the wire end the conversations that are one too many; None when all have ended."""
    for conv in place.evict:
        answer = await services.house.ask("conversation", conv, Hangup("evicted", by))
        if isinstance(answer, Refusal):
            return refuse(
                "unavailable",
                "the oldest conversation could not be ended yet; nothing was written, try again",
            )
    return None


def _late(services: Services) -> Refusal | None:
    """overloaded, while new envelopes would be late (actors/admission.py). An END is never asked."""
    return services.house.admission.refuse(services.verifier.late_s())


def _now(services: Services) -> Now:
    return Now(services.clock.now_ms(), services.clock.monotonic())
