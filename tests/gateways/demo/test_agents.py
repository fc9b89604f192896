"""The demo's agents at the real broker, in memory: what they show, and how it ends."""

from pathlib import Path

import pytest
from trio.testing import MockClock

from broker.wire.keys import SigningKey
from gateways.client.clockwork import WireClock
from gateways.demo import agents
from gateways.demo.agents import ANSWER, PURPOSE, QUESTION, meet
from tests.gateways.client.real_network import ORIGIN, real_network


@pytest.mark.requirement("client.agent-demo")
async def test_two_strangers_meet_agree_talk_and_part(
    autojump_clock: MockClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with real_network(tmp_path, monkeypatch) as net:

        def opened(url: str, key: SigningKey, *, wire: str) -> object:
            assert (url, wire) == (ORIGIN, net.bench.broker.pk)
            return net.agent(key, clock=WireClock(net.bench.clock.now_ms))

        monkeypatch.setattr(agents, "open_agent", opened)
        told: list[str] = []
        keys = SigningKey.generate(), SigningKey.generate()
        assert await meet(ORIGIN, net.bench.broker.pk, keys, told.append) == "agreement_required"
    assert [line.split("  ag_")[0].strip() for line in told[:2]] == ["alfa", "brav"]
    assert told[2:] == [
        f"alfa asks brav for messages: {PURPOSE} → accepted",
        f"alfa → brav    {QUESTION}",
        f"brav → alfa    {ANSWER}",
    ]
