"""What the audit is told of (network.md, Audit): changes by operators, and those of tools that say `audited`.

1. The registry makes the note before the tool runs; the actor that makes the change carries it in its own commit
   (Once.notes). Where the change is no actor's of ours, or has several commits, the note follows right after it.
2. Arguments are noted, but for those that are secret, long, or a proof.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from broker.actors.notes import Note
from broker.actors.once import Once
from broker.core.audit import AuditEvent
from broker.store.port import InDoubt, Unavailable, Unit
from broker.tools.context import Context
from broker.wire.refusals import Refusal

OPERATOR: Final = "operator"
SUBJECTS: Final = (
    "agent_id", "from_agent_id", "target_agent_id", "channel_id", "owner_id", "report_id", "kid", "code", "conv",
)  # fmt: skip
"""Of the arguments, or of the answer, the first of these is what the change was made to."""
SECRET: Final = frozenset({"password", "proof", "credential", "statement", "sig", "new_sig", "details"})
"""Never noted: secrets, proofs, and what agents confide to the operators."""
LONGEST: Final = 500
"""Characters of a text that is noted; of a longer one so many."""


def begin(context: Context, kind: str, arguments: Mapping[str, Any]) -> tuple[Context, Note]:
    """The call's context with a note for the change that it asks for."""
    services, caller = context.services, context.caller
    actor = OPERATOR if caller.operator else caller.principal or caller.pk or caller.address
    event = AuditEvent(
        at=services.clock.now_ms(),
        actor=actor,
        kind=kind,
        subject=_subject(arguments),
        detail={
            name: _shown(value)
            for name, value in arguments.items()
            if name not in SECRET and value is not None
        },
    )
    note = Note(services.new_id("au_"), event)
    once = context.once or Once("", "", b"", 0)
    return msgspec.structs.replace(context, once=msgspec.structs.replace(once, note=note)), note


async def finish(context: Context, note: Note, answer: Any) -> None:
    """After the tool: a change whose commit did not carry the note is noted now. A refusal changed nothing."""
    if isinstance(answer, Refusal) or (isinstance(answer, dict) and answer.get("replayed")):
        return
    if not note.taken:
        try:
            await context.services.store.commit(Unit(puts=(note.put(_subject(msgspec.to_builtins(answer))),)))
        except (Unavailable, InDoubt):
            return  # the change stands, and says so; what can't be written now can't be noted


def _subject(members: Mapping[str, Any]) -> str | None:
    return next((str(members[name]) for name in SUBJECTS if members.get(name) is not None), None)


def _shown(value: Any) -> Any:
    shown = msgspec.to_builtins(value)
    return shown[:LONGEST] if isinstance(shown, str) else shown
