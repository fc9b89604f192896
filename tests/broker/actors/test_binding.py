"""An IRC account's actor."""

import pytest
import trio

from broker.actors.binding import MOST, Bind, Unbind, read_accounts
from broker.core.irc import account_key
from tests.support.agents import make_agent
from tests.support.broker import Bench, code
from tests.support.registration import OPERATOR


@pytest.mark.requirement("moderation.irc")
async def test_of_two_who_bind_an_account_at_once_one_has_it(bench: Bench) -> None:
    house = bench.broker._services.house
    agents = [str((await make_agent(bench, name)).agent) for name in ("Ann", "Bob")]
    codes: list[str] = []

    async def bind(agent_id: str, nick: str) -> None:
        answer = await house.ask("irc", account_key("libera", nick), Bind("libera", nick, agent_id))
        codes.append(code(answer))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(bind, agents[0], "Nick[")
        nursery.start_soon(bind, agents[1], "nICK{")
    assert sorted(codes) == ["accepted", "already_exists"]
    found = [await read_accounts(bench.store, each) for each in agents]
    assert sorted(map(len, found)) == [0, 1]
    holder = agents[0] if found[0] else agents[1]
    other = agents[1] if found[0] else agents[0]
    assert code(await house.ask("irc", account_key("libera", "nick{"), Unbind(other))) == "not_found"
    assert code(await house.ask("irc", account_key("libera", "nick{"), Unbind(holder))) == "accepted"
    assert await read_accounts(bench.store, holder) == ()


@pytest.mark.requirement("moderation.irc")
async def test_an_agent_has_so_many_accounts_and_keeps_what_it_has(bench: Bench) -> None:
    house, ann = bench.broker._services.house, str((await make_agent(bench, "Ann")).agent)

    async def bind(number: int, nick: str | None = None) -> str:
        key = account_key("libera", f"n{number}")
        return code(await house.ask("irc", key, Bind("libera", nick or f"n{number}", ann)))

    assert [await bind(each) for each in range(MOST + 1)] == ["accepted"] * MOST + ["quota_exceeded"]
    assert await bind(0, "N0") == "accepted"  # the same account, written in another way
    assert (await read_accounts(bench.store, ann))[0].nick == "N0"


@pytest.mark.requirement("moderation.irc")
async def test_accounts_that_were_bound_at_once_are_all_free_when_their_agent_goes(bench: Bench) -> None:
    ann = str((await make_agent(bench, "Ann", test=True)).agent)

    async def bind(number: int) -> None:
        await bench.call("bind_irc_account", OPERATOR, agent_id=ann, network="libera", nick=f"n{number}")

    async with trio.open_nursery() as nursery:
        for number in range(MOST + 5):
            nursery.start_soon(bind, number)
    await bench.call("delete_test_agent", OPERATOR, agent_id=ann)
    assert (await bench.call("list_irc_bindings", OPERATOR))["bindings"] == []
