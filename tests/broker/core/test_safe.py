"""Names, templates, and what a holder keeps."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.core.safe import MOST, NAME, VALUE, SafeRow, fill, names_in, with_secret, without_secret
from broker.wire.refusals import Refusal

names = st.from_regex(NAME, fullmatch=True)
values = st.from_regex(VALUE, fullmatch=True)
plain = st.text(st.characters(min_codepoint=32, max_codepoint=126, exclude_characters="$"), max_size=8)


@pytest.mark.requirement("trial.secret-names")
@pytest.mark.parametrize(
    ("template", "named", "filled"),
    [
        ("", (), ""),
        ("Bearer ${A}", ("A",), "Bearer <A>"),
        ("${A}${B_1}${A}", ("A", "B_1"), "<A><B_1><A>"),
        ("$${A}", (), "${A}"),
        ("$$${A}", (), "$${A}"),
        ("$$$${A}", (), "$$${A}"),
        ("$${${A}}", ("A",), "${<A>}"),
        ("$ $$ $A {A} $}", (), "$ $$ $A {A} $}"),
        ("${a}", None, ""),
        ("${}", None, ""),
        ("${A", None, ""),
        ("${A${B}}", None, ""),
        ("${ A}", None, ""),
        ("${1A}", None, ""),
        ("${A.B}", None, ""),
        ("${A}${", None, ""),
        (f"${{{'A' * 64}}}", ("A" * 64,), f"<{'A' * 64}>"),
        (f"${{{'A' * 65}}}", None, ""),
    ],
)
def test_a_template_names_what_it_names(template: str, named: tuple[str, ...] | None, filled: str) -> None:
    assert names_in(template) == named
    if named is not None:
        assert fill(template, {name: f"<{name}>" for name in named}) == filled


@pytest.mark.requirement("trial.secret-names")
@given(st.lists(st.one_of(plain, names.map(lambda name: ("name", name)), st.just(("text",)))), st.data())
def test_a_template_of_parts_is_filled_part_by_part(
    parts: list[str | tuple[str, ...]], data: st.DataObject
) -> None:
    """Whatever the values say: they are not read again."""
    template = "".join(
        each if isinstance(each, str) else "$${" if each[0] == "text" else f"${{{each[1]}}}" for each in parts
    )
    named = dict.fromkeys(each[1] for each in parts if not isinstance(each, str) and each[0] == "name")
    of = {name: data.draw(st.one_of(values, st.just("${A}"), st.just("$${"))) for name in named}
    assert names_in(template) == tuple(named)
    assert fill(template, of) == "".join(
        each if isinstance(each, str) else "${" if each[0] == "text" else of[each[1]] for each in parts
    )


@pytest.mark.requirement("trial.secret-names")
@given(st.text(st.sampled_from("$${}AB_ a1"), max_size=20))
def test_whatever_a_template_says_it_is_filled_or_refused(template: str) -> None:
    named = names_in(template)
    if named is not None:
        assert all(re.fullmatch(NAME, name) for name in named)
        assert "${" not in fill(
            template.replace("$${", ""), dict.fromkeys("AB", "x") | dict.fromkeys(named, "x")
        )


@pytest.mark.requirement("trial.secret-names")
@pytest.mark.parametrize(
    "value", ["", " a", "a ", "a\nb", "a\r\nX-Other: b", "ä", "a\x00", "a" * 4097, "a\n"]
)
def test_what_is_no_value(value: str) -> None:
    assert re.search(rf"^{VALUE}$(?!\n)", value) is None


def test_a_holder_keeps_so_many_each_once_in_order() -> None:
    row = SafeRow()
    for number in reversed(range(MOST)):
        row = _set(row, f"N{number:02}", number)
    assert [each.name for each in row.kept] == [f"N{number:02}" for number in range(MOST)]
    refused = with_secret(row, "OTHER", "ff", "k", 1)
    assert isinstance(refused, Refusal)
    assert (refused.code, refused.detail) == ("quota_exceeded", {"reason": "secrets", "limit": MOST})
    changed = _set(row, "N03", 900)
    kept = changed.find("N03")
    assert kept is not None
    assert (kept.created_at, kept.updated_at, len(changed.kept)) == (3, 900, MOST)
    left = without_secret(changed, "N03")
    assert isinstance(left, SafeRow)
    assert left.find("N03") is None
    assert isinstance(without_secret(left, "N03"), Refusal)


def _set(row: SafeRow, name: str, now: int) -> SafeRow:
    changed = with_secret(row, name, "ff", "k", now)
    assert isinstance(changed, SafeRow)
    return changed
