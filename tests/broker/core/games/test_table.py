"""The games that are played: found by name and version, loaded from the modules that a setting names."""

import sys
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import pytest

from broker.config import Arena
from broker.core.games import hilo, rfq
from broker.core.games.game import Game
from broker.core.games.table import Table, load


def version(number: int, name: str = "hilo") -> Game:
    """A module like Hi-Lo's, of another version."""
    module = ModuleType(f"{name}{number}")
    vars(module).update({**vars(hilo), "VERSION": number, "NAME": name})
    return cast(Game, module)


@pytest.fixture
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Writes a module that can be imported, for this test."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def write(name: str, text: str) -> str:
        (tmp_path / f"{name}.py").write_text(text)
        monkeypatch.delitem(sys.modules, name, raising=False)
        return name

    return write


def test_a_game_is_found_by_name_and_version_and_without_one_the_newest() -> None:
    two, ten = version(2), version(10)
    table = Table([ten, cast(Game, hilo), two, cast(Game, rfq)])
    assert table.find("hilo") is ten
    assert table.find("hilo", 2) is two
    assert table.find("hilo", 3) is None
    assert table.find("nonesuch") is None
    assert table.find("nonesuch", 1) is None
    assert [(game.NAME, game.VERSION) for game in table] == [
        ("hilo", 1),
        ("hilo", 2),
        ("hilo", 10),
        ("rfq", 1),
    ]


def test_two_games_of_one_name_and_version_are_refused() -> None:
    with pytest.raises(ValueError, match="two games are hilo, version 2"):
        Table([version(2), version(2)])


@pytest.mark.requirement("games.named")
def test_the_games_of_the_setting_are_those_that_are_played() -> None:
    assert list(load(Arena().games)) == [hilo, rfq]
    with pytest.raises(ValueError, match="two games are hilo, version 1"):
        load(["broker.core.games.hilo", "broker.core.games.hilo"])


@pytest.mark.requirement("games.named")
@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, "there is no module made"),
        ("import nonesuch_at_all", "made can't be imported: No module named 'nonesuch_at_all'"),
        ("raise RuntimeError('two\\nlines')", "made can't be imported: RuntimeError: two lines"),
        ("def", "made can't be imported: SyntaxError"),
        ("NAME = 'x'", "made is no game: VERSION"),
    ],
)
def test_a_module_that_is_no_game_is_named_with_the_reason_in_one_line(
    modules: Any, text: str | None, words: str
) -> None:
    if text is not None:
        modules("made", text)
    with pytest.raises(ValueError, match="made") as raised:
        load(["made"])
    assert str(raised.value).startswith(words)
    assert "\n" not in str(raised.value)


def test_a_missing_module_of_a_package_is_named() -> None:
    with pytest.raises(ValueError, match=r"there is no module broker\.core\.games\.poker"):
        load(["broker.core.games.poker"])
