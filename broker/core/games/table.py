"""The games that are played here, by name and version."""

from collections.abc import Iterable, Iterator, Mapping

from broker.core.games.game import Game


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
