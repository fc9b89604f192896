"""What stands in the fenced blocks of the how-to pages."""

import ast
import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HOW_TO = Path(__file__).parents[2] / "docs" / "how-to"


def blocks(page: str, language: str) -> list[str]:
    """The blocks of one language, in order. `py`: Python of libraries that the tests don't have."""
    text = (HOW_TO / page).read_text()
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def command_lines(page: str) -> list[list[str]]:
    """The lines of the page's shell blocks, as arguments."""
    lines = [line for block in blocks(page, "sh") for line in block.replace("\\\n", " ").splitlines()]
    return [shlex.split(line, comments=True) for line in lines]


def servers(page: str) -> Iterator[dict[str, Any]]:
    """Every server that a JSON or Python block configures: {command, args, …} or {url, …}."""
    for text in blocks(page, "json"):
        [named] = json.loads(text).values()
        yield from named.values()
    for text in blocks(page, "py"):
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Dict):
                names = {each.value for each in node.keys if isinstance(each, ast.Constant)}
                if names & {"command", "url"}:
                    yield ast.literal_eval(node)
