"""The sizes that the house keeps: a file is at most 500 lines, a function at most 60.

`make size` runs this; it prints the largest of each and exits 1 when one is too large. A function is counted
from its `def` line to its last one, docstring and nested functions included, decorators not.
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
FOLDERS = ("broker", "gateways", "tests", "bench", "docs")
FILE_LINES = 500
FUNCTION_LINES = 60


class Size(NamedTuple):
    """A file (`name` is empty) or a function with its number of lines."""

    lines: int
    path: str
    name: str

    def __str__(self) -> str:
        return f"{self.lines:4} {self.path}{':' if self.name else ''}{self.name}"


def sources(root: Path = ROOT) -> Iterator[Path]:
    """All Python files of the tree, in order."""
    for folder in FOLDERS:
        yield from sorted((root / folder).rglob("*.py"))


def measure(text: str, path: str) -> list[Size]:
    """The sizes of one file and of its functions."""
    found = [Size(len(text.splitlines()), path, "")]
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno is not None:
            found.append(Size(node.end_lineno - node.lineno + 1, path, node.name))
    return found


def too_large(sizes: list[Size]) -> list[Size]:
    """Those beyond their limit, the largest first."""
    beyond = [each for each in sizes if each.lines > (FUNCTION_LINES if each.name else FILE_LINES)]
    return sorted(beyond, reverse=True)


def main() -> int:
    """Print the largest three of each and what is too large. Returns the exit code."""
    sizes = [
        size for path in sources() for size in measure(path.read_text(), path.relative_to(ROOT).as_posix())
    ]
    for title, limit, group in (
        ("files", FILE_LINES, [each for each in sizes if not each.name]),
        ("functions", FUNCTION_LINES, [each for each in sizes if each.name]),
    ):
        print(f"{len(group)} {title}, at most {limit} lines each; the largest:")
        for size in sorted(group, reverse=True)[:3]:
            print("  ", size)
    beyond = too_large(sizes)
    for size in beyond:
        print("too large:", size)
    return 1 if beyond else 0


if __name__ == "__main__":
    sys.exit(main())
