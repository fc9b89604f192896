"""A note for the audit on its way (network.md, Audit).

It goes into the commit of the change itself, as a document that waits for its place in the chain: the change and its
note are there together, or neither is.
"""

from typing import Any, Final

import msgspec

from broker.core.audit import AuditEvent
from broker.store.port import Put

WAITING: Final = "audit-waiting"
"""The kind of notes that wait for their place."""
WAITS: Final = "waits"
"""The index that they are found by: when it was, wall milliseconds."""


class Note:
    """An event on its way into a commit. `taken`: some commit has carried it, or was asked to."""

    def __init__(self, note_id: str, event: AuditEvent) -> None:
        self.id = note_id
        self.event = event
        self.taken = False

    def tell(self, *, by: str | None = None, about: str | None = None, **detail: Any) -> None:
        """Say more of it, before it is put: who it was, where that was proved later; to what it was done; and more."""
        event = self.event
        self.event = msgspec.structs.replace(
            event,
            actor=by or event.actor,
            subject=event.subject if about is None else about,
            detail={**event.detail, **detail},
        )

    def put(self, about: str | None = None) -> Put:
        """The op that has the note wait, for the unit of the change. `about`: the document that is changed, which is
        its subject where it names none, else one more thing that is said of it."""
        self.taken = True
        if self.event.subject is None:
            self.tell(about=about)
        elif about not in (None, self.event.subject):
            self.tell(document=about)
        return Put(WAITING, self.id, 0, msgspec.json.encode(self.event), ((WAITS, self.event.at),))


def by_itself(note_id: str, event: AuditEvent) -> Put:
    """The op for what happens without a tool: what falls due, or is summed up."""
    return Note(note_id, event).put()
