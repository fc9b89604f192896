"""Does each rule's test bite? Plants one mutant at a time and runs the tests that name its requirement.

    python tests/mutants.py [--jobs 2] [--only TEXT] [--list]

1. A mutant is data (tests/planted/): a requirement, a file, the exact old text and the new one.
2. It is planted in a copy of the tree; the tests that name the requirement must then fail, within a limit.
3. Exit 1 when one survives or no longer fits the source, or when the tests fail without any.

tests/test_mutants.py checks, running none, that each mutant fits and that each rule of the core has one.
"""

import argparse
import ast
import concurrent.futures
import functools
import importlib
import os
import pkgutil
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
if str(ROOT) not in sys.path:  # run as a script
    sys.path.insert(0, str(ROOT))

LIMIT_S = 120.0
"""A run that is not over by then hangs; the mutant is caught."""
COPIED = (
    "broker",
    "gateways",
    "tests",
    "docs",
    "pyproject.toml",
    "constraints.txt",
    "README.md",
    "LICENSE",
    "Makefile",
)


class Mutant(NamedTuple):
    """One broken rule. `old` stands exactly once in `file`."""

    requirement: str
    file: str
    old: str
    new: str

    def __str__(self) -> str:
        shown = " ".join(self.new.split()) or "(nothing)"
        return f"{self.requirement}: {self.file}: {shown[:70]}"


class Outcome(NamedTuple):
    """What became of a mutant: caught, hangs (caught too), survived, no tests, misfit, or broken."""

    mutant: Mutant
    word: str
    seconds: float
    output: str

    @property
    def good(self) -> bool:
        return self.word in ("caught", "hangs")


def planted() -> list[Mutant]:
    """All mutants, in the order of their files."""
    import tests.planted as package

    found: list[Mutant] = []
    for module in sorted(pkgutil.iter_modules(package.__path__), key=lambda each: each.name):
        for row in importlib.import_module(f"tests.planted.{module.name}").MUTANTS:
            found.append(Mutant(*row))
    return found


def misfit(mutant: Mutant, root: Path = ROOT) -> str | None:
    """Why a mutant can't be planted, or None."""
    path = root / mutant.file
    if not path.exists():
        return f"{mutant.file} is gone"
    count = path.read_text().count(mutant.old)
    return None if count == 1 else f"the old text stands {count} times in {mutant.file}"


@functools.cache
def requirement_tests(root: Path = ROOT) -> dict[str, list[str]]:
    """Requirement → the tests that name it, as pytest addresses them."""
    named: dict[str, list[str]] = {}
    for path in sorted((root / "tests").rglob("test_*.py")):
        address = path.relative_to(root).as_posix()
        tree = ast.parse(path.read_text())
        for name in _ids(_module_marks(tree)):
            named.setdefault(name, []).append(address)
        _collect(tree.body, address, [], named)
    return named


def _module_marks(tree: ast.Module) -> list[ast.expr]:
    return [
        each.value
        for each in tree.body
        if isinstance(each, ast.Assign)
        and any(isinstance(target, ast.Name) and target.id == "pytestmark" for target in each.targets)
    ]


def _collect(body: Iterable[ast.stmt], address: str, outer: list[str], named: dict[str, list[str]]) -> None:
    for node in body:
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        place = f"{address}::{node.name}"
        names = [*outer, *_ids(node.decorator_list)]
        if isinstance(node, ast.ClassDef):
            _collect(node.body, place, names, named)
        elif node.name.startswith("test"):
            for name in names:
                named.setdefault(name, []).append(place)


def _ids(nodes: Iterable[ast.AST]) -> list[str]:
    return [
        str(argument.value)
        for node in nodes
        for call in ast.walk(node)
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and call.func.attr == "requirement"
        for argument in call.args
        if isinstance(argument, ast.Constant)
    ]


def copy_tree(place: Path) -> None:
    """What the tests need, without what was compiled."""
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, place / name, ignore=shutil.ignore_patterns("__pycache__"))
        elif source.exists():
            shutil.copy(source, place / name)


def run(place: Path, tests: Iterable[str]) -> tuple[str, str]:
    """(caught | hangs | survived | broken, output) of these tests in the copy at `place`."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-n0", "-p", "no:cacheprovider", "--timeout=60"]
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(place)}
    try:
        ran = subprocess.run(
            [*command, *tests],
            cwd=place,
            env=environment,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return "hangs", ""
    output = ran.stdout[-4000:] + ran.stderr[-2000:]
    return {0: "survived", 1: "caught"}.get(ran.returncode, "broken"), output


def attempt(place: Path, mutant: Mutant, tests: list[str]) -> Outcome:
    """Plant, run, and put the old text back."""
    began = time.monotonic()
    if not tests:
        return Outcome(mutant, "no tests", 0.0, "")
    path = place / mutant.file
    text = path.read_text()
    if text.count(mutant.old) != 1:
        return Outcome(mutant, "misfit", 0.0, "")
    path.write_text(text.replace(mutant.old, mutant.new))
    try:
        word, output = run(place, tests)
    finally:
        path.write_text(text)
    return Outcome(mutant, word, time.monotonic() - began, output)


def work(mutants: list[Mutant], tests: dict[str, list[str]]) -> list[Outcome]:
    """One worker: its own copy of the tree, its share of the mutants, one after the other."""
    outcomes = []
    with tempfile.TemporaryDirectory(prefix="turret-mutants-") as folder:
        place = Path(folder)
        copy_tree(place)
        for mutant in mutants:
            outcome = attempt(place, mutant, tests.get(mutant.requirement, []))
            outcomes.append(outcome)
            print(f"{outcome.word:9} {outcome.seconds:5.1f} s  {mutant}", flush=True)
            if outcome.word == "broken":
                print(outcome.output, flush=True)
    return outcomes


def sound(mutants: list[Mutant], tests: dict[str, list[str]]) -> bool:
    """Whether the chosen tests pass in a copy with no mutant in it."""
    chosen = sorted({test for mutant in mutants for test in tests.get(mutant.requirement, [])})
    if not chosen:
        return True
    with tempfile.TemporaryDirectory(prefix="turret-mutants-") as folder:
        copy_tree(Path(folder))
        word, output = run(Path(folder), chosen)
    if word != "survived":
        print(f"the tests fail without a mutant ({word}):\n{output}")
    return word == "survived"


def main() -> int:
    """Returns the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--jobs", type=int, default=2, help="copies of the tree to work in at once")
    parser.add_argument("--only", default="", help="mutants whose line contains this text")
    parser.add_argument("--list", action="store_true", help="show the mutants and plant none")
    options = parser.parse_args()
    mutants = [each for each in planted() if options.only in str(each)]
    misfits = [f"{each}: {why}" for each in mutants if (why := misfit(each))]
    if options.list or misfits:
        print(*(misfits or mutants), sep="\n")
        return 1 if misfits else 0
    tests = requirement_tests()
    if not sound(mutants, tests):
        return 1
    shares = [mutants[start :: options.jobs] for start in range(options.jobs)]
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        outcomes = [
            outcome for share in pool.map(lambda each: work(each, tests), shares) for outcome in share
        ]
    bad = [outcome for outcome in outcomes if not outcome.good]
    print(f"{len(outcomes)} mutants, {len(outcomes) - len(bad)} caught")
    for outcome in bad:
        print(f"{outcome.word}: {outcome.mutant}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
