"""A note travels in the commit of its change."""

import msgspec

from broker.actors.notes import WAITING, WAITS, Note, by_itself
from broker.core.audit import AuditEvent

EVENT = AuditEvent(at=1, actor="operator", kind="x")


def test_a_note_is_taken_by_the_commit_that_carries_it() -> None:
    note = Note("au_1", EVENT)
    assert not note.taken
    put = note.put()
    assert note.taken
    assert (put.kind, put.id, put.expect, put.index) == (WAITING, "au_1", 0, ((WAITS, 1),))


def test_the_document_that_is_changed_is_the_subject_or_one_more_thing_that_is_said() -> None:
    note = Note("au_1", EVENT)
    note.put("ag_1")
    assert (note.event.subject, note.event.detail) == ("ag_1", {})
    note.put("ag_1")
    assert note.event.detail == {}
    note.put("rp_1")
    assert (note.event.subject, note.event.detail) == ("ag_1", {"document": "rp_1"})


def test_more_is_said_of_it_where_more_is_known() -> None:
    note = Note("au_1", EVENT)
    note.tell(by="key", about="ALFA", new_pk="k2")
    assert note.event == AuditEvent(1, "key", "x", "ALFA", {"new_pk": "k2"})
    note.tell(more=1)
    assert note.event == AuditEvent(1, "key", "x", "ALFA", {"new_pk": "k2", "more": 1})


def test_what_happens_by_itself_is_a_note_too() -> None:
    put = by_itself("due:1", EVENT)
    assert put.doc is not None
    assert (put.id, msgspec.json.decode(put.doc, type=AuditEvent)) == ("due:1", EVENT)
