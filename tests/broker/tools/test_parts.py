"""The parts of a broker know from the start what its store says."""

from broker.store.memory import MemoryStore
from tests.support.agents import make_agent
from tests.support.broker import open_bench
from tests.support.registration import OPERATOR


async def test_who_is_suspended_and_whose_a_key_is_is_known_before_anybody_asks() -> None:
    store = MemoryStore()
    async with open_bench(store=store) as bench:
        alfa, bravo = await bench.open("ALFA"), await bench.open("BRAV")
        ann = await make_agent(bench, "Ann", key=bravo.key)
        await bench.call("suspend_desk", OPERATOR, code="ALFA")
        await bench.call("suspend_agent", OPERATOR, agent_id=ann.agent, reason="spam")
    async with open_bench(store=store) as bench:
        services = bench.broker._services
        assert services.suspended.is_desk(alfa.pk)
        assert not services.suspended.is_desk(bravo.pk)
        assert bravo.pk in services.suspended
        assert services.standing.holder(bravo.pk) == ann.agent
        assert services.house.alive("agent", str(ann.agent)) is None
