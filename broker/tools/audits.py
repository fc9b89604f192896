"""What operators read of the audit, and whether it holds (network.md, Audit)."""

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from broker.actors.auditor import BATCH, FAR, KEY, ROW, Look, Looked, number_of, row_id
from broker.core.audit import AuditRow
from broker.store.port import Unavailable
from broker.store.stored import every, stored
from broker.tools.auditing import AUDITOR, drain
from broker.tools.context import Context, Services
from broker.tools.paging import AfterParam, LimitParam, read_page
from broker.tools.registry import tool
from broker.wire.auditlog import Verdict, Verifier, read_head, read_row
from broker.wire.refusals import Refusal, refuse

ActorParam = Annotated[
    str, Meta(min_length=1, max_length=200, description="who did it: operator, an id, a key, or broker")
]
KindParam = Annotated[
    str,
    Meta(min_length=1, max_length=100, description="what was done: the tool's name, or one of the broker's"),
]
SubjectParam = Annotated[
    str, Meta(min_length=1, max_length=200, description="to what it was done; without actor and kind")
]


_DAMAGED: Final = refuse(
    "unavailable",
    "the list meets a row that can't be read: verify_audit_log names it, and `turret audit export` writes all others",
)


class AuditEvents(msgspec.Struct, frozen=True, omit_defaults=True):
    """A page of the audit log, the newest first; `next`: `after` of the page that follows. `at`: Unix milliseconds."""

    events: list[AuditRow]
    next: str | None = None


@tool(face="operator", title="List audit events", read_only=True)
async def list_audit_events(
    context: Context,
    after: AfterParam = None,
    limit: LimitParam = 100,
    actor: ActorParam | None = None,
    kind: KindParam | None = None,
    subject: SubjectParam | None = None,
) -> AuditEvents | Refusal:
    """What was done, the newest first: all of it, what one did (`actor`), what was done so (`kind`), both of these, or
    what was done to one (`subject`). What has no seal of the wire's is not shown: verify_audit_log names it."""
    kind = None if kind is None else kind.replace("-", "_")  # as the commands are called
    if subject is not None and (actor is not None or kind is not None):
        return refuse("bad_request", "subject goes without actor and kind", path="subject")
    if actor is not None and kind is not None:
        name, value = "kind actor", f"{kind} {actor}"
    else:
        given = {"subject": subject, "actor": actor, "kind": kind, "all": "1"}
        name, value = next((name, value) for name, value in given.items() if value is not None)
    try:
        page = await read_page(context.services.store, ROW, name, value, after, limit)
    except Unavailable:
        return _DAMAGED
    if isinstance(page, Refusal):
        return page
    wires = _wires(context.services)
    rows = [each for each in page.documents if _is_sealed(each.doc, number_of(each.id), wires)]
    return AuditEvents([stored(AuditRow, each.doc, ROW, each.id) for each in rows], page.next)


@tool(face="operator", title="Verify the audit log", read_only=True)
async def verify_audit_log(context: Context) -> Verdict | Refusal:
    """Look through the whole audit log: its rows' chain and seals, and the signed heads in the store and beside it.

    `first` is the first row that does not hold. Some 0.1 ms a row; the broker goes on meanwhile.
    """
    services = context.services
    await drain(services)
    looked = await services.house.ask(AUDITOR, KEY, Look())
    if isinstance(looked, Refusal):
        return looked
    return await _verify(services, looked)


async def _verify(services: Services, looked: Looked) -> Verdict:
    wires = _wires(services)
    verifier = Verifier(wires, looked.head, looked.beside, apart=looked.apart, known=looked.known)
    heads = [looked.known, *(read_head(text) for text in (looked.head, looked.beside) if text is not None)]
    last = max((head.count for head in heads if head is not None and head.is_signed(wires)), default=FAR)
    there = bytearray(1)
    """For each number whether there is such a row."""
    missing = 0
    while missing < BATCH or len(there) <= last < FAR:
        n = len(there)
        try:
            document = await services.store.get(ROW, row_id(n))
        except Unavailable:
            verifier.row(n, None)
            there.append(0)
            continue
        missing = missing + 1 if document is None else 0
        # Beyond the head stand rows that came since we have looked, which are sealed, or somebody's own.
        if document is not None and (n <= last or not _is_sealed(document.doc, n, wires)):
            verifier.row(n, document.doc)
        there.append(document is not None and n <= last)
    await _look_at_list(services, verifier, there, wires)
    return verifier.end()


async def _look_at_list(
    services: Services, verifier: Verifier, there: bytearray, wires: frozenset[str]
) -> None:
    """Whether the list shows each row that is there, in its place, and nothing else."""
    due = 1
    try:
        async for document in every(services.store, ROW, "all", "1"):
            n = number_of(document.id)
            if n is None or (n >= len(there) and not _is_sealed(document.doc, n, wires)):
                verifier.stray(document.id)
            elif n < len(there) and there[n]:
                hidden = [each for each in range(due, n) if there[each]]
                if hidden:
                    verifier.unlisted((hidden[0], hidden[-1]))
                due = max(due, n + 1)
        hidden = [each for each in range(due, len(there)) if there[each]]
        if hidden:
            verifier.unlisted((hidden[0], hidden[-1]))
    except Unavailable:
        verifier.unlisted(None)


def _wires(services: Services) -> frozenset[str]:
    return frozenset(row["pk"] for row in services.keyring.listing())


def _is_sealed(text: bytes, n: int | None, wires: frozenset[str]) -> bool:
    found = read_row(text)
    return found is not None and found[1].count == n and found[1].is_signed(wires)
