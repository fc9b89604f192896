"""Resources as values: what is taken, what a change gives, what an agent may have."""

import hashlib
from typing import Any

import pytest
from msgspec.structs import replace

from broker.core.resource import (
    MAX_CONTENT,
    Changed,
    Edit,
    LibraryRow,
    Quota,
    change,
    content_of,
    index_of,
    judge_words,
    may_read,
    publish,
    remove,
    tags_of,
    text_of,
)
from broker.wire.refusals import Refusal
from tests.support.resources import ROW

QUOTA = Quota(2, 10)


def code(answer: Any) -> str:
    return answer.code if isinstance(answer, Refusal) else "taken"


@pytest.mark.requirement("resource.form")
@pytest.mark.parametrize(
    ("title", "description", "answer"),
    [
        ("Rates of today", "with\ttabs\nand lines", "taken"),
        ("日本語 🚀 \u202e", "", "taken"),
        (None, None, "taken"),
        (" ", None, "bad_request"),
        ("a\nb", None, "bad_request"),
        ("a\tb", None, "bad_request"),
        ("a\x00b", None, "bad_request"),
        ("a\u2028b", None, "bad_request"),
        (None, "a\rb", "bad_request"),
        (None, "\x1b[31m", "bad_request"),
    ],
)
def test_titles_and_descriptions(title: str | None, description: str | None, answer: str) -> None:
    assert code(judge_words(title, description)) == answer


@pytest.mark.requirement("resource.form")
def test_tags_stand_once_and_have_a_form() -> None:
    assert tags_of(["fx", "a-1", "fx"]) == ("fx", "a-1")
    for bad in (["Fx"], [""], ["a b"], ["fx\n"], ["a" * 33], [f"t{n}" for n in range(11)]):
        assert code(tags_of(bad)) == "bad_request"


@pytest.mark.requirement("resource.form")
def test_a_content_is_measured_in_bytes() -> None:
    assert content_of("ä" * (MAX_CONTENT // 2)) == "ä".encode() * (MAX_CONTENT // 2)
    refused = content_of("ä" * (MAX_CONTENT // 2) + "a")
    assert isinstance(refused, Refusal)
    assert (refused.code, refused.detail) == (
        "too_large",
        {"path": "content", "limit": MAX_CONTENT, "size": MAX_CONTENT + 1},
    )


@pytest.mark.requirement("resource.edit")
def test_a_change_changes_what_it_is_given() -> None:
    library = LibraryRow("ag_1", 1, 4)
    changed = change(library, ROW, Edit(title="New", tags=()), None, 2_000, QUOTA)
    assert changed == Changed(library, replace(ROW, title="New", tags=(), version=2, updated_at=2_000))
    longer = change(library, ROW, Edit(content=b"longer"), 1, 500, QUOTA)
    assert isinstance(longer, Changed)
    assert longer.resource is not None
    assert longer.library == LibraryRow("ag_1", 1, 6)
    assert longer.resource.sha256 == hashlib.sha256(b"longer").hexdigest()
    assert (longer.resource.size, longer.resource.text, longer.resource.version) == (6, 2, 2)
    assert longer.resource.updated_at == 1_000  # a clock that stepped back does not
    refused = change(library, ROW, Edit(title="New"), 2, 2_000, QUOTA)
    assert isinstance(refused, Refusal)
    assert (refused.code, refused.detail["version"]) == ("conflict", 1)


@pytest.mark.requirement("resource.limits")
def test_an_agent_has_so_many_and_so_much() -> None:
    library = LibraryRow("ag_1")
    first = publish(library, ROW, QUOTA)
    assert isinstance(first, Changed)
    second = publish(first.library, replace(ROW, size=6), QUOTA)
    assert second == Changed(LibraryRow("ag_1", 2, 10), replace(ROW, size=6))
    third = publish(second.library, replace(ROW, size=0), QUOTA)
    assert isinstance(third, Refusal)
    assert (third.code, third.detail) == ("quota_exceeded", {"reason": "resources", "limit": 2})
    fourth = publish(first.library, replace(ROW, size=7), QUOTA)
    assert isinstance(fourth, Refusal)
    assert (fourth.code, fourth.detail) == ("quota_exceeded", {"reason": "resource_bytes", "limit": 10})
    assert code(change(second.library, ROW, Edit(content=b"12345"), None, 1, QUOTA)) == "quota_exceeded"


@pytest.mark.requirement("resource.limits")
def test_who_has_too_much_by_a_new_quota_may_still_change_what_takes_no_more_room() -> None:
    library, none = LibraryRow("ag_1", 5, 50), Quota(0, 0)
    assert code(change(library, ROW, Edit(title="New"), None, 1, none)) == "taken"
    assert code(change(library, ROW, Edit(content=b"1234"), None, 1, none)) == "taken"
    assert code(change(library, ROW, Edit(content=b"12345"), None, 1, none)) == "quota_exceeded"
    assert remove(library, ROW) == Changed(LibraryRow("ag_1", 4, 46), None)
    assert remove(LibraryRow("ag_1"), ROW) == Changed(LibraryRow("ag_1"), None)


@pytest.mark.requirement("resource.private")
def test_a_private_one_is_among_no_open_ones() -> None:
    assert index_of(ROW) == (("of", "ag_1"), ("open", "1"), ("tag", "fx"), ("tag", "day"))
    assert index_of(replace(ROW, access="agreement"))[1] == ("open", "1")
    assert index_of(replace(ROW, access="private")) == (("of", "ag_1"), ("tag", "fx"), ("tag", "day"))


def test_a_title_weighs_more_than_tags_and_tags_more_than_a_description() -> None:
    assert text_of(replace(ROW, description="of the day")) == ("Rates", "fx day", "of the day")


@pytest.mark.requirement("resource.access")
@pytest.mark.parametrize(
    ("access", "reader", "agreed", "answer"),
    [
        ("public", "ag_2", False, True),
        ("agreement", "ag_2", True, True),
        ("agreement", "ag_2", False, False),
        ("agreement", "ag_1", False, True),
        ("private", "ag_2", True, False),
        ("private", "ag_1", False, True),
    ],
)
def test_who_may_read(access: Any, reader: str, agreed: bool, answer: bool) -> None:
    assert may_read(replace(ROW, access=access), reader, agreed) is answer
