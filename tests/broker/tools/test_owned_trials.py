"""What an owner sees of the agents' trials."""

from typing import Any

import msgspec
import pytest
import trio

from broker.store.stored import stored
from broker.tools import owned_trials
from broker.tools.owned_trials import PAGE
from tests.support.agents import make_agent
from tests.support.broker import code, open_bench, tuned
from tests.support.owners import CHEAP, new_owner, signin
from tests.support.rehearsals import DOWN, do, opened, started


class Turns(trio.abc.Instrument):
    """Counts the loop's turns."""

    count = 0

    def before_io_wait(self, timeout: float) -> None:
        self.count += 1


@pytest.mark.requirement("pages.trials")
async def test_an_owner_sees_the_trials_the_latest_first_in_pages() -> None:
    owners = msgspec.structs.asdict(CHEAP)
    async with open_bench(tuned(trials={"open_sessions": 100}, owners=owners)) as bench:
        ann, eve = await new_owner(bench), await new_owner(bench)
        agent = await make_agent(bench, "Desk", owner_id=ann)
        first = await started(bench, agent, DOWN, seed=3)
        first = await do(bench, agent, first, "advance", ticks=9)
        done = await do(bench, agent, first, "finalize")
        ids = [first["session_id"], *[(await opened(bench, agent))["session_id"] for _ in range(PAGE)]]
        asked: dict[str, Any] = {"owner_id": ann, "agent_id": agent.agent}
        shown = await signin(bench, "my_trials", **asked)
        rest = await signin(bench, "my_trials", **asked, after=shown["next"])
        assert [each["session_id"] for each in shown["trials"] + rest["trials"]] == ids[::-1]
        assert (shown["name"], len(shown["trials"]), rest["next"]) == ("Desk", PAGE, None)
        [over] = rest["trials"]
        told = ("status", "over", "ref", "plan", "kind", "seed", "ran", "ticks", "outcome", "position", "pnl")
        assert {name: over[name] for name in told} == {
            "status": "over", "over": "finalized", "ref": done["ref"], "plan": "quiet 1", "kind": "trend", "seed": 3,
            "ran": 6, "ticks": 3600, "outcome": "STAND_DOWN", "position": 0, "pnl": 0,
        }  # fmt: skip
        assert (shown["trials"][0]["plan"], shown["trials"][0]["status"]) == (None, "open")
        opens = await signin(bench, "my_trials", **asked, which="open")
        assert ([each["session_id"] for each in opens["trials"]], opens["next"]) == (ids[:0:-1], None)
        assert code(await signin(bench, "my_trials", owner_id=eve, agent_id=agent.agent)) == "not_found"


@pytest.mark.requirement("pages.trials")
async def test_a_page_of_trials_is_read_one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    turns = Turns()
    read_in: list[int] = []

    def noted(*given: Any) -> Any:
        read_in.append(turns.count)
        return stored(*given)

    monkeypatch.setattr(owned_trials, "stored", noted)
    async with open_bench(tuned(owners=msgspec.structs.asdict(CHEAP))) as bench:
        ann = await new_owner(bench)
        agent = await make_agent(bench, "Desk", owner_id=ann)
        for _ in range(3):
            await opened(bench, agent)
        trio.lowlevel.add_instrument(turns)
        await signin(bench, "my_trials", owner_id=ann, agent_id=agent.agent)
        trio.lowlevel.remove_instrument(turns)
    assert len(read_in) == len(set(read_in)) == 3, "each lets the others on"
