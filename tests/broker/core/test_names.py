"""Names of agents: what they look like, and which are taken."""

import json
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.core.names import judge_name, looks_of
from broker.wire.refusals import Refusal

NAUGHTY = json.loads((Path(__file__).parents[2] / "vectors/naughty/blns.json").read_text())


def same(one: str, other: str) -> bool:
    return bool(set(looks_of(one)) & set(looks_of(other)))


@pytest.mark.requirement("identity.looks")
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("jürgen", unicodedata.normalize("NFD", "jürgen")),
        ("Ａgent", "agent"),
        ("сосо", "coco"),
        ("ΑΒΕ", "ABE"),
        ("AGENTI", "agenti"),
        ("AGENTI", "AGENTl"),
        ("agent1", "agentl"),
        ("AGENT0", "AGENTO"),
        ("ﬁsh", "fish"),
        ("modern", "rnodern"),
        ("l’agent", "l'agent"),
        ("STRASSE", "straße"),
        ("口口", "ロロ"),
    ],
)
def test_names_that_look_the_same_have_a_look_in_common(one: str, other: str) -> None:
    assert same(one, other)


@pytest.mark.requirement("identity.looks")
@pytest.mark.parametrize(
    ("one", "other"),
    [("agent1", "agent2"), ("bill", "bili"), ("agento", "agent0"), ("müller", "muller"), ("a b", "ab")],
)
def test_names_that_look_different_are_different(one: str, other: str) -> None:
    assert not same(one, other)


@pytest.mark.requirement("identity.names")
@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("", "printable"),
        ("x" * 65, "printable"),
        ("a\nb", "printable"),
        ("a\u200db", "printable"),
        ("a\u202eb", "printable"),
        (" a", "single spaces"),
        ("a ", "single spaces"),
        ("a  b", "single spaces"),
        ("аgent", "one script"),
        ("agent٣4", "one script"),
        ("\u0301a", "marks"),
        ("a\u0301\u0301\u0301\u0301\u0301", "marks"),
        ("a\u034fb", "everyday"),
        ("\u1160", "everyday"),
        ("ᏚᎪ", "everyday"),
        ("a│b", "everyday"),
        ("a\ufe0fb", "everyday"),
        ("...", "a letter"),
        ("“”", "a letter"),
    ],
)
def test_what_is_no_name_is_refused_and_said_so(name: str, why: str) -> None:
    refused = judge_name(name)
    assert isinstance(refused, Refusal)
    assert (refused.code, refused.detail["path"]) == ("bad_request", "name")
    assert why in refused.message


@pytest.mark.requirement("identity.names")
@pytest.mark.parametrize(
    "name",
    [
        "a",
        "x" * 64,
        "Zoë's bot (v2.1)",
        "Алиса",
        "日本 bot",
        "東京エージェント",
        "पंकज",
        "agent 🤖",
        "٣٤",
        "한국 agent",
    ],
)
def test_names_of_all_the_world_are_taken(name: str) -> None:
    assert judge_name(name) is None


@pytest.mark.requirement("identity.names")
def test_naughty_strings_are_names_or_refused_and_never_a_fault() -> None:
    assert len(NAUGHTY) == 515
    taken = [each for each in NAUGHTY if judge_name(each) is None]
    assert 300 < len(taken) < 400
    assert all(all(looks_of(each)) for each in taken)


@pytest.mark.requirement("identity.looks")
@given(st.text(min_size=1, max_size=64))
def test_however_a_name_is_written_it_looks_the_same(name: str) -> None:
    for form in ("NFC", "NFD", "NFKC", "NFKD"):
        assert same(name, unicodedata.normalize(form, name))  # type: ignore[arg-type]  # each is a form
    assert same(name, unicodedata.normalize("NFKC", name).casefold())
    assert looks_of(name) == tuple(sorted(set(looks_of(name))))
    judge_name(name)


@pytest.mark.requirement("identity.names")
@given(st.text(st.characters(categories=["L", "N", "P", "S", "M", "Zs"]), min_size=1, max_size=12))
def test_a_name_that_is_taken_shows_something_and_no_blanks_around(name: str) -> None:
    if judge_name(name) is None:
        assert name.isprintable()
        assert name == name.strip()
        assert all(looks_of(name))
