"""What the audit is told of (network.md, Audit): changes by operators, and those of tools that say `audited`.

1. The registry makes the note before the tool runs; the actor that makes the change carries it in its own commit
   (Once.notes). Where the change is no actor's of ours, or has several commits, the note follows right after it.
2. Arguments are noted where it was decided that they may be; long ones by their beginning.
3. Then the auditor is asked to give it its place: an operator's tool waits for that, a little. Whatever becomes of it,
   the change stands, and so does its answer.
4. What happens without a tool is noted where it happens; refused sign-ins each minute, in sums.
5. Rows are kept for ever, so an agent has a bound of them, and is refused what would be one more. What ends something
   is never refused: it has a bound in what there is.
"""

import logging
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

import msgspec
import trio

from broker.actors.actor import Crashed
from broker.actors.auditor import FAR, KEY, Drain
from broker.actors.notes import WAITING, WAITS, Note, by_itself
from broker.actors.once import Once
from broker.core.audit import AuditEvent
from broker.store.port import Conflict, InDoubt, Unavailable, Unit
from broker.tools.context import Context, Services
from broker.wire.ids import CODE
from broker.wire.refusals import Refusal

log = logging.getLogger("turret.audit")
OPERATOR: Final = "operator"
AUDITOR: Final = "auditor"
SUBJECTS: Final = (
    "agent_id", "from_agent_id", "target_agent_id", "channel_id", "owner_id", "report_id", "kid", "code", "conv",
    "grant_id", "ref",
)  # fmt: skip
"""Of the arguments, or of the answer, the first of these is what the change was made to."""
NOTED: Final = frozenset(
    {
        "after", "agent_id", "allow", "capabilities", "category", "channel_id", "client_id", "code", "config_id",
        "conv", "description", "fee", "from_agent_id", "grant_id", "instrument", "is_private", "kid", "licence",
        "name", "network", "new_owner_agent_id", "nick", "note", "outcome", "owner_agent_id", "owner_id", "parts",
        "public_jwk", "public_key", "reason", "ref", "report_id", "scheme",
        "scopes", "subject", "target_agent_id", "task_id", "test", "tick", "title", "to_agent_id", "topic", "ttl_days",
    }
)  # fmt: skip
"""The arguments that are noted, and no others: what nobody has thought of may be a secret."""
SECRET: Final = frozenset(
    {
        "ask", "credentials", "details", "email", "headers", "invitation", "new_password", "new_sig", "password",
        "proof", "refresh_token", "sig", "statement", "token", "url", "value",
    }
)  # fmt: skip
"""Those that never are: secrets, proofs, persons' addresses, and what agents confide to the operators. (A webhook's URL
and its headers may hold a secret.) A test wants each argument of an audited tool in one of the two."""
LONGEST: Final = 500
"""Characters of a text that is noted; of a longer one so many."""
WAIT_S: Final = 2.0
"""How long an operator's answer, and the end of the broker, wait for the place in the chain."""
MINUTE_S: Final = 60.0
AUDITED_AN_HOUR: Final = 120
"""Changes of one agent that the audit is told of, in an hour: some 100 KB."""
_TOO_OFTEN: Final = f"an agent changes {AUDITED_AN_HOUR} things in an hour that the audit is told of"
TURNS: Final = 16
"""How often the auditor is asked at the end: what waits then, waits for the next start."""


def may_begin(context: Context) -> Refusal | None:
    """Before an agent's change that is noted and ends nothing: None, and it counts; or rate_limited."""
    services, agent_id = context.services, context.caller.principal
    if agent_id is None:
        return None
    return services.audited.spend(services.clock.monotonic(), _TOO_OFTEN, agent_id)


def begin(context: Context, kind: str, arguments: Mapping[str, Any]) -> tuple[Context, Note]:
    """The call's context with a note for the change that it asks for."""
    services, caller = context.services, context.caller
    # Of the verbs behind the pages `owner_id` is whose the browser's session is.
    actor = OPERATOR if caller.operator else caller.principal or caller.pk or arguments.get("owner_id")
    shown = {
        name: value
        for name, value in arguments.items()
        if value is not None and _is_noted(name, value) and (name, value) != ("owner_id", actor)
    }
    event = AuditEvent(
        at=services.clock.now_ms(),
        actor=actor or caller.address,
        kind=kind,
        subject=_subject(shown),
        detail={name: _shown(value) for name, value in shown.items()},
    )
    note = Note(services.new_id("au_"), event)
    once = context.once or Once("", "", b"", 0)
    return msgspec.structs.replace(context, once=msgspec.structs.replace(once, note=note)), note


async def finish(context: Context, note: Note, answer: Any) -> None:
    """After the tool: a change whose commit did not carry the note is noted now, and the note gets its place. A refusal
    changed nothing, and what was done before was noted then."""
    services = context.services
    if isinstance(answer, Refusal) or _is_replay(answer):
        return
    if not note.taken:
        try:
            await services.store.commit(Unit(puts=(note.put(_subject(msgspec.to_builtins(answer))),)))
        except (Unavailable, InDoubt) as error:
            # The change stands, and says so; what can't be written now can't be noted.
            log.error("%s by %s was done and is not noted: %s", note.event.kind, note.event.actor, error)
            return
    if context.caller.operator:
        await drain(services)
    elif services.house.actor(AUDITOR, KEY).waiting() < 2:  # another letter would find nothing left to do
        services.house.rouse(AUDITOR, KEY, Drain())


async def drain(services: Services, turns: int = 1) -> None:
    """Have what waits get its place, WAIT_S at most. It raises nothing: what waits is durable, and goes on waiting."""
    with trio.move_on_after(WAIT_S):
        for _ in range(turns):
            try:
                answer = await services.house.ask(AUDITOR, KEY, Drain())
            except Crashed:  # the house has logged it
                return
            if isinstance(answer, Refusal) or not answer:
                return


async def run(services: Services) -> None:
    """At the start, and each minute: refused sign-ins in sums, and the places of what waits. For ever; cancelling loses
    nothing but the sums of that minute."""
    if services.keeper is not None:  # the head beside the store may be behind, or gone
        services.house.rouse(AUDITOR, KEY, Drain())
    while True:
        await _turn(services, all=False)
        await trio.sleep(MINUTE_S)


async def settle(services: Services) -> None:
    """At a clean stop: the same for the minute that is not over."""
    with trio.move_on_after(WAIT_S):
        await _turn(services, all=True, turns=TURNS)


async def _turn(services: Services, *, all: bool, turns: int = 1) -> None:
    try:
        await _sum_up(services, all=all)
        waits = bool(await services.store.due(WAITING, WAITS, FAR, 1))
    except (Unavailable, InDoubt) as error:
        log.warning("the audit goes on later: %s", type(error).__name__)
        return
    if waits:
        await drain(services, turns)


async def _sum_up(services: Services, *, all: bool) -> None:
    """Write down the sums, those first that were not written the last time; what was in doubt may have landed."""
    sign_in = services.sign_in
    while True:
        if sign_in.unwritten is None:
            sums, now = sign_in.take_refused(all=all), services.clock.now_ms()
            events = services.refused_sums.events(sums, now)
            if not events:
                return
            sign_in.unwritten = Unit(puts=tuple(by_itself(services.new_id("au_"), event) for event in events))
        with suppress(Conflict):
            await services.store.commit(sign_in.unwritten)
        sign_in.unwritten = None


def _is_replay(answer: Any) -> bool:
    return bool(answer.get("replayed") if isinstance(answer, dict) else getattr(answer, "replayed", False))


def _is_noted(name: str, value: Any) -> bool:
    # A desk's code is in every telephone book; a claim code, an invitation's or a consent's is a secret.
    return name in NOTED and (
        name != "code" or (isinstance(value, str) and CODE.fullmatch(value) is not None)
    )


def _subject(members: Mapping[str, Any]) -> str | None:
    for name in SUBJECTS:
        value = members.get(name)
        if value is not None and _is_noted(name, value):
            return str(value)
    return None


def _shown(value: Any) -> Any:
    shown = msgspec.to_builtins(value)
    return shown[:LONGEST] if isinstance(shown, str) else shown
