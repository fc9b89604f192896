"""All areas are collected."""

from pathlib import Path

from broker.tools.areas import AREAS
from broker.tools.registry import collect


def test_every_file_that_registers_a_tool_is_an_area() -> None:
    folder = Path(__file__).parents[3] / "broker" / "tools"
    found = {path.stem for path in folder.glob("*.py") if "\n@tool(" in path.read_text()}
    assert {area.__name__.rpartition(".")[2] for area in AREAS} == found


def test_each_tool_knows_its_area() -> None:
    names = {area.__name__.rpartition(".")[2] for area in AREAS}
    spaces = [collect("public"), collect("operator"), collect("signin")]
    assert all(tool.area in names for space in spaces for tool in space.values())
