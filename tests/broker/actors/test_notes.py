"""A note travels in the commit of its change."""

from broker.actors.notes import WAITING, Note
from broker.core.audit import AuditEvent


def test_a_note_is_taken_by_the_commit_that_carries_it() -> None:
    note = Note("au_1", AuditEvent(at=1, actor="operator", kind="x"))
    assert not note.taken
    put = note.put()
    assert note.taken
    assert (put.kind, put.id, put.expect) == (WAITING, "au_1", 0)
