"""What is printed from the code says what the code says, and what the pages show can be run."""

import ast
import importlib.util
import re
from types import ModuleType

import pytest

from tests.sizes import ROOT


def generator() -> ModuleType:
    """docs/generate.py, which is a script and no package."""
    spec = importlib.util.spec_from_file_location("docs_generate", ROOT / "docs" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    "name",
    ["refusals.md", "call.md", "config.md", "events.md", "metrics.md", "tools.md", "cli.md", "plan.md"],
)
def test_a_printed_page_says_what_the_code_says(name: str) -> None:
    there = ROOT / "docs" / "reference" / name
    assert there.exists(), "run `make docs`"
    assert there.read_text() == generator().pages()[name], f"{name} is out of date: run `make docs`"


@pytest.mark.requirement("call.table", "call.types-in-place")
def test_the_life_of_a_call_is_printed_as_the_wire_has_it() -> None:
    rows = re.findall(r"^\| \*\*(\w+)\*\* \| (.*) \|$", generator().call(), re.MULTILINE)
    refused = "refused"
    assert {phase: cells.split(" | ") for phase, cells in rows} == {
        #           CALL         PICKUP    END        any other type
        "new": ["→ ringing", refused, refused, refused],
        "ringing": [refused, "→ open", "→ ended", refused],
        "open": [refused, refused, "→ ended", "→ open"],
        "ended": [refused, refused, refused, refused],
    }


def test_every_setting_has_its_sentence() -> None:
    rows = re.findall(r"^\| `[\w.]+` \| .* \| (.*) \|$", generator().config(), re.MULTILINE)
    assert rows
    assert all(rows)


def test_every_event_has_its_row() -> None:
    from broker.wire.events import KINDS

    assert set(generator().EVENTS) == set(KINDS)


def links() -> list[tuple[str, str]]:
    """(page, target) of every link inside the tree."""
    found = []
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *ROOT.glob("bench/*.md")]:
        for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
            if "://" not in target:
                found.append((page.relative_to(ROOT).as_posix(), target))
    return found


def anchors(text: str) -> set[str]:
    """The anchors of a page's headings, as forges make them."""
    return {
        re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")
        for heading in re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    }


def test_every_link_leads_somewhere() -> None:
    broken = []
    for page, target in links():
        name, _, anchor = target.partition("#")
        there = (ROOT / page).parent / name if name else ROOT / page
        if not there.exists() or (anchor and anchor not in anchors(there.read_text())):
            broken.append(f"{page}: {target}")
    assert broken == []


def test_every_part_of_the_networks_law_that_the_code_names_is_there() -> None:
    there = set(
        re.findall(r"^## (.+)$", (ROOT / "docs" / "reference" / "network.md").read_text(), re.MULTILINE)
    )
    named: set[str] = set()
    for folder in ("broker", "gateways"):
        for source in (ROOT / folder).rglob("*.py"):
            for parts in re.findall(r"network\.md, ([A-Z][^;:.)]*)", source.read_text()):
                named.update(part.strip() for part in re.split(r",|\band\b", parts.replace("\n", " ")))
    assert len(named) > 8
    assert {part for part in named if part[:1].isupper()} - there == set()


def test_the_readme_shows_the_ten_lines_as_they_are() -> None:
    program = (ROOT / "docs" / "examples" / "ten_lines.py").read_text()
    assert f"```python\n{program}```" in (ROOT / "README.md").read_text()


def programs() -> list[tuple[str, str]]:
    """(page, text) of every Python block in the pages."""
    return [
        (page.relative_to(ROOT).as_posix(), text)
        for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
        for text in re.findall(r"^```python\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)
    ]


@pytest.mark.parametrize(("page", "text"), programs(), ids=lambda each: each[:40].replace("\n", " "))
def test_a_program_in_the_pages_is_python_and_what_it_imports_is_there(page: str, text: str) -> None:
    tree = compile(text, page, "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    assert isinstance(tree, ast.Module)
    for node in tree.body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            exec(ast.unparse(node), {})


def test_the_names_of_news_fragments_are_what_towncrier_takes() -> None:
    kinds = {"feature", "bugfix", "doc", "removal", "misc"}
    for fragment in (ROOT / "docs" / "news").iterdir():
        assert fragment.name.split(".")[-2] in kinds, fragment


def test_every_decision_stands_in_the_index() -> None:
    folder = ROOT / "docs" / "decisions"
    index = (folder / "README.md").read_text()
    assert [each.name for each in sorted(folder.glob("0*.md")) if f"({each.name})" not in index] == []
