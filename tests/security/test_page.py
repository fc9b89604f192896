"""The page of threats and the tests agree: each threat has a test, and each test of a threat is on the page."""

import re
from collections.abc import Iterator

import pytest

from tests.requirements import load, security
from tests.sizes import ROOT

PAGE = ROOT / "docs" / "explanation" / "security.md"


def rows(text: str) -> Iterator[tuple[str, list[str]]]:
    """(a threat's id, the requirements that show what stops it), as the tables have them."""
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if re.fullmatch(r"`threat\.[a-z-]+`", cells[0]):
            assert len(cells) == 4, line
            assert all(cells), f"a cell is empty: {line}"
            yield cells[0].strip("`"), re.findall(r"`([^`]+)`", cells[3])


def disagreements(text: str) -> list[str]:
    """What is wrong between a page and the requirements."""
    known, found = load(), list(rows(text))
    ids = [threat for threat, _ in found]
    wrong = [f"{threat} stands twice" for threat in set(ids) if ids.count(threat) > 1]
    wrong += [f"{threat} names no test" for threat, shown in found if not shown]
    wrong += [f"{threat} names {name}" for threat, shown in found for name in shown if name not in known]
    own = {name for threat, shown in found for name in shown if name == threat}
    wrong += [f"{name} is not on the page" for name in security.REQUIREMENTS if name not in own]
    return wrong


def test_each_threat_of_the_page_has_a_test_and_each_tested_one_is_there() -> None:
    """That each requirement has a test which names it, test_house.py shows."""
    assert disagreements(PAGE.read_text()) == []
    assert len(list(rows(PAGE.read_text()))) > 40


LINE = "| `threat.helper` | who | how | `threat.helper` |"


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        (LINE, "stands twice"),
        ("| `threat.new` | who | how | none yet |", "threat.new names no test"),
        ("| `threat.new` | who | how | `keys.nowhere` |", "threat.new names keys.nowhere"),
    ],
)
def test_a_disagreement_is_seen(line: str, wrong: str) -> None:
    assert any(wrong in each for each in disagreements(f"{PAGE.read_text()}\n{line}\n"))


def test_a_threat_that_is_not_on_the_page_is_seen() -> None:
    text = "\n".join(line for line in PAGE.read_text().splitlines() if "`threat.helper`" not in line)
    assert disagreements(text) == ["threat.helper is not on the page"]


def test_the_files_that_the_pages_name_are_there() -> None:
    for page in (PAGE, ROOT / "SECURITY.md"):
        for target in re.findall(r"\]\(([^)#]+)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} names {target}"
