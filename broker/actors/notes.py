"""A note for the audit on its way (network.md, Audit).

It goes into the commit of the change itself, as a document that waits for its place in the chain: the change and its
note are there together, or neither is.
"""

from typing import Final

import msgspec

from broker.core.audit import AuditEvent
from broker.store.port import Put

WAITING: Final = "audit-waiting"
"""The kind of notes that wait for their place; their ids are in order of time."""


class Note:
    """An event on its way into a commit. `taken`: some commit has carried it, or was asked to."""

    def __init__(self, note_id: str, event: AuditEvent) -> None:
        self.id = note_id
        self.event = event
        self.taken = False

    def put(self, about: str | None = None) -> Put:
        """The op that has the note wait, for the unit of the change. `about`: its subject, where it names none."""
        self.taken = True
        if self.event.subject is None:
            self.event = msgspec.structs.replace(self.event, subject=about)
        return Put(WAITING, self.id, 0, msgspec.json.encode(self.event), (("all", "1"),))
