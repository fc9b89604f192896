"""A desk answers each of its commands."""

import inspect
from pathlib import Path

from broker.actors import desk, deskcommands


def test_the_desk_handles_every_command() -> None:
    source = Path(str(desk.__file__)).read_text()
    commands = [
        name
        for name, each in inspect.getmembers(deskcommands, inspect.isclass)
        if each.__module__ == deskcommands.__name__
    ]
    assert len(commands) == 11
    assert [name for name in commands if f"case {name}(" not in source] == []
