"""Many bots of one agent at a served broker, each on a socket of its own."""

from collections import Counter
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import msgspec
import pytest
import trio

from broker.wire.keys import SigningKey
from gateways.client.agent import Agent, open_agent
from gateways.client.errors import Refused
from gateways.keyfile import save_key
from tests.support.arena import call
from tests.support.process import served

BOTS = 20
IDENTICAL = 50


@pytest.mark.requirement("arena.parallel", "arena.alike")
async def test_bots_on_sockets_have_one_outcome_of_a_key_and_one_of_a_version(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        broker = await stack.enter_async_context(served(tmp_path / "data"))
        key = tmp_path / "alfa.key"
        save_key(key, SigningKey.generate())
        first = await stack.enter_async_context(open_agent(broker.http, key))
        await first.register("alfa")
        bots = [await stack.enter_async_context(open_agent(broker.http, key)) for _ in range(BOTS)]
        made = await first.call("open_session", game="hilo", mode="persistent")
        session_id = made["session_id"]

        async def submit(bot: Agent, stake: int, version: int, **more: Any) -> bytes:
            params = {"session_id": session_id, "expected_version": version, "action": call("same", stake)}
            try:
                return msgspec.json.encode(await bot.call("submit_action", **params, **more))
            except Refused as no:
                return no.code.encode()

        same = await gather(
            [(bots[n % BOTS], 5, 0, {"idempotency_key": "k"}) for n in range(IDENTICAL)], submit
        )
        assert len(set(same)) == 1
        changed = msgspec.json.decode(same[0])["change"]
        raced = await gather([(bot, stake, 1, {}) for stake, bot in enumerate(bots, 1)], submit)
        [won] = [msgspec.json.decode(answer) for answer in raced if answer.startswith(b"{")]
        assert Counter(answer for answer in raced if not answer.startswith(b"{")) == {b"CONFLICT": BOTS - 1}
        seen = await first.call("get_session", session_id=session_id, rejected_after=-1)
        assert (seen["session"]["version"], len(seen["rejected"])) == (2, BOTS - 1)
        assert seen["session"]["account"]["balance"] == 10_000 + changed + won["change"]


async def gather(asks: list[tuple[Agent, int, int, dict[str, Any]]], submit: Any) -> list[bytes]:
    """All of these at once; their answers."""
    answers: list[bytes] = []

    async def one(bot: Agent, stake: int, version: int, more: dict[str, Any]) -> None:
        answers.append(await submit(bot, stake, version, **more))

    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            for ask in asks:
                nursery.start_soon(one, *ask)
    return answers
