"""The house keeps its own rules: layers, sizes, mirror, requirements, light imports, and a clean tree."""

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.tools.areas import AREAS
from tests.requirements import load
from tests.sizes import ROOT, measure, sources, too_large

WITHOUT_MIRROR = {
    "broker/store/port.py": "a port holds no code; tests/broker/store/conformance.py is its test",
}
"""Source files that need no test file of their own, and why."""

SERVER_LIBRARIES = (
    "quart",
    "quart_trio",
    "hypercorn",
    "sqlite3",
    "prometheus_client",
    "joserfc",
    "argon2",
    "structlog",
    "trio",
)
"""What the wire and the offline verifier must not load."""


def tracked() -> list[Path]:
    """The text files of the tree, as version control knows them; all of them in a bare copy of the tree."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    names = listed.stdout.splitlines()
    if not names:
        names = [str(each.relative_to(ROOT)) for each in ROOT.rglob("*") if ".venv" not in each.parts]
    return [
        ROOT / name for name in names if not name.startswith("tests/vectors/") and (ROOT / name).is_file()
    ]


def test_every_package_file_is_a_docstring_and_nothing_else() -> None:
    for folder in ("broker", "gateways"):
        for path in (ROOT / folder).rglob("__init__.py"):
            body = ast.parse(path.read_text()).body
            assert len(body) == 1, f"{path}: a package file holds its docstring alone"
            assert isinstance(body[0], ast.Expr)
            assert isinstance(body[0].value, ast.Constant)


@pytest.mark.parametrize("folder", ["broker", "gateways"])
def test_every_folder_with_modules_is_a_package(folder: str) -> None:
    for path in (ROOT / folder).rglob("*.py"):
        assert (path.parent / "__init__.py").exists(), path


@pytest.mark.parametrize(
    "modules", ["broker.wire.*", "gateways.client.verify"], ids=["the wire", "the offline verifier"]
)
def test_what_every_dealer_needs_loads_no_server(modules: str) -> None:
    if modules.endswith(".*"):
        folder = ROOT / modules[:-2].replace(".", "/")
        names = [f"{modules[:-2]}.{each.stem}" for each in folder.glob("*.py") if each.stem != "__init__"]
    else:
        names = [modules]
    program = (
        f"import sys\nfor name in {sorted(names)!r}: __import__(name)\n"
        f"print(*(each for each in {SERVER_LIBRARIES!r} if each in sys.modules))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.split() == []


def test_the_client_loads_no_server() -> None:
    names = [
        ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for path in (ROOT / "gateways/client").rglob("*.py")
        if path.stem != "__init__"
    ]
    libraries = tuple(each for each in SERVER_LIBRARIES if each != "trio")
    program = (
        f"import sys\nfor name in {sorted(names)!r}: __import__(name)\n"
        f"print(*(each for each in {libraries!r} if each in sys.modules))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.split() == []


def test_files_and_functions_keep_their_sizes() -> None:
    for path in sources():
        beyond = too_large(measure(path.read_text(), path.relative_to(ROOT).as_posix()))
        assert not beyond, "\n".join(map(str, beyond))


def test_a_size_beyond_its_limit_is_seen() -> None:
    text = "def long() -> None:\n" + "    pass\n" * 60 + "# a line\n" * 500
    assert [(each.lines, each.name) for each in too_large(measure(text, "x.py"))] == [(561, ""), (61, "long")]


def test_every_source_file_has_its_test_file() -> None:
    missing = []
    for folder in ("broker", "gateways"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            name = path.relative_to(ROOT)
            mirror = ROOT / "tests" / name.parent / f"test_{name.name}"
            if path.stem != "__init__" and name.as_posix() not in WITHOUT_MIRROR and not mirror.exists():
                missing.append(str(mirror.relative_to(ROOT)))
    assert missing == []


def marks() -> Iterator[tuple[str, str]]:
    """(requirement id, test file) for each mark in the tests, read without running them."""
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr == "requirement"
            ):
                for argument in node.args:
                    assert isinstance(argument, ast.Constant), f"{path}:{node.lineno}: name the id itself"
                    yield str(argument.value), path.relative_to(ROOT).as_posix()


def test_every_mark_names_a_known_requirement() -> None:
    known = load()
    assert sorted({f"{name} in {path}" for name, path in marks() if name not in known}) == []


def test_every_requirement_has_a_test_that_names_it() -> None:
    named = {name for name, _ in marks()}
    assert sorted(set(load()) - named) == []


def test_the_import_contracts_are_kept() -> None:
    program = Path(sys.executable).parent / "lint-imports"
    ran = subprocess.run(
        [program, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False, timeout=50
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_every_area_of_tools_stands_in_the_contracts_that_keep_areas_apart() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    five, eight = (next(each for each in contracts if each["name"].startswith(n)) for n in ("5.", "8."))
    areas = {module.__name__ for module in AREAS}
    assert areas - set(five["forbidden_modules"]) == set()
    assert areas ^ set(eight["modules"]) == set()


# Written so that this file does not find itself.
MACHINE_PATHS = r"(?<![\w.~-])/(?:work|root|farm|home/\w+|tmp)/[\w.]"
REGISTRY_HOSTS = r"pypi\.(?:org|python)|pythonhosted\.|registry\.npm|proxy\.golang|deb\.debian|extra-index"
STAFFING = r"\b(?:sub-?ag[e]nts?|co-auth[o]red-by|the br[i]ef)\b"
PRODUCTS = r"\b(?:cl[a]ude|anth[r]opic|open[a]i|ch[a]tgpt|cop[i]lot)\b"
ABOUT_CLIENTS = "docs/how-to/"
"""Pages that may name MCP clients by their names."""


@pytest.mark.parametrize(
    ("pattern", "but"),
    [(MACHINE_PATHS, None), (REGISTRY_HOSTS, None), (STAFFING, None), (PRODUCTS, ABOUT_CLIENTS)],
    ids=["machine paths", "registry hosts", "staffing", "products"],
)
def test_the_tree_names_nothing_of_where_and_how_it_was_made(pattern: str, but: str | None) -> None:
    found = []
    expression = re.compile(pattern, re.IGNORECASE)
    for path in tracked():
        name = path.relative_to(ROOT).as_posix()
        if path == Path(__file__) or name == "LICENSE" or (but is not None and name.startswith(but)):
            continue
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
            if expression.search(line):
                found.append(f"{name}:{number}: {line.strip()[:100]}")
    assert found == []


def test_every_page_that_the_code_names_is_in_the_docs() -> None:
    pages = {
        each.name for each in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *ROOT.glob("bench/*.md")]
    }
    missing = []
    for path in sources():
        for name in re.findall(r"\b([\w-]+\.md)\b", path.read_text()):
            if name not in pages and path != Path(__file__):
                missing.append(f"{path.relative_to(ROOT)} names {name}")
    assert sorted(set(missing)) == []
