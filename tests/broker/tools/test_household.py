"""The house knows every kind of actor that something asks for or that a timer wakes."""

from broker.actors.timers import KINDS
from tests.support.broker import Bench


async def test_the_house_makes_conversations_and_desks_and_whatever_falls_due(bench: Bench) -> None:
    kinds = set(bench.broker.statistics().actors)
    assert {"conversation", "desk", *KINDS.values()} <= kinds


async def test_each_kind_can_be_made(bench: Bench) -> None:
    house = bench.broker._services.house
    for kind in bench.broker.statistics().actors:
        assert house.actor(kind, "x").key == "x"
