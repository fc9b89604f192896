"""The keys that may not deal now, by their desk or by their agent (network.md, Identity; wire.md, Keys).

1. It is a set: every envelope asks it, so the two causes are put together when one of them changes.
2. Neither cause lifts the other: a released desk of a suspended agent stays suspended, and the reverse.
"""

from collections.abc import Iterable


class Suspended(set[str]):
    """Keys, 64 hex characters each. Changed by `desk` and `agent` alone."""

    def __init__(self, desks: Iterable[str] = ()) -> None:
        self._desks = set(desks)
        self._agents: dict[str, frozenset[str]] = {}
        super().__init__(self._desks)

    def desk(self, pk: str, on: bool) -> None:
        """The desk of a key is suspended, or released."""
        (self._desks.add if on else self._desks.discard)(pk)
        self._put_together()

    def is_desk(self, pk: str) -> bool:
        """Whether the desk of this key itself is suspended."""
        return pk in self._desks

    def agent(self, agent_id: str, pks: frozenset[str]) -> None:
        """An agent is suspended, with these keys; without any, it is not, or not any more."""
        if pks:
            self._agents[agent_id] = pks
        elif self._agents.pop(agent_id, None) is None:
            return
        self._put_together()

    def _put_together(self) -> None:
        now = self._desks.union(*self._agents.values())
        self.intersection_update(now)
        self.update(now)
