"""The games that are played here, by name and version."""

from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module

from broker.core.games.game import Game, as_game


class Table:
    """The games, each under its name, of each its versions. Raises ValueError for two of one name and version."""

    def __init__(self, games: Iterable[Game]) -> None:
        self._games: dict[str, dict[int, Game]] = {}
        for game in games:
            versions = self._games.setdefault(game.NAME, {})
            if game.VERSION in versions:
                raise ValueError(f"two games are {game.NAME}, version {game.VERSION}")
            versions[game.VERSION] = game

    def find(self, name: str, version: int | None = None) -> Game | None:
        """A game; without a version its newest one. None where it is not played here."""
        versions: Mapping[int, Game] = self._games.get(name, {})
        return versions.get(max(versions, default=0) if version is None else version)

    def __iter__(self) -> Iterator[Game]:
        return (
            versions[number] for _, versions in sorted(self._games.items()) for number in sorted(versions)
        )


def load(modules: Iterable[str]) -> Table:
    """The table of these modules (the setting `arena.games`). Raises ValueError, in one line that names the module: it
    can't be imported, is no game, or is of the name and version of another."""
    return Table(_imported(name) for name in modules)


def _imported(name: str) -> Game:
    try:
        module = import_module(name)
    except ModuleNotFoundError as missing:
        if missing.name is not None and f"{name}.".startswith(f"{missing.name}."):
            raise ValueError(f"there is no module {name} (is its folder in PYTHONPATH?)") from None
        raise ValueError(f"{name} can't be imported: {missing}") from missing
    except Exception as error:  # it is the operator's own code: whatever it raises, the start says where
        said = " ".join(str(error).split())
        raise ValueError(f"{name} can't be imported: {type(error).__name__}: {said}") from error
    try:
        return as_game(module)
    except ValueError as error:
        raise ValueError(f"{name} is no game: {error}") from None
