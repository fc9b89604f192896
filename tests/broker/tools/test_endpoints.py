"""An agent's own A2A endpoint over the tools (network.md, A2A)."""

import pytest

from broker.app import Caller
from tests.support.agents import make_agent
from tests.support.broker import Bench, code


@pytest.fixture
async def ann(bench: Bench) -> Caller:
    return await make_agent(bench, "Ann")


@pytest.mark.requirement("network.a2a.direct")
async def test_an_endpoint_is_published_and_taken_back(bench: Bench, ann: Caller) -> None:
    nothing = {"url": None, "set_at": None}
    assert await bench.call("get_a2a_endpoint", ann) == nothing
    made = await bench.call("set_a2a_endpoint", ann, url="https://Agents.A2A-Agents.org/a2a?x=1")
    assert made["url"] == "https://Agents.A2A-Agents.org/a2a?x=1"
    assert await bench.call("get_a2a_endpoint", ann) == made
    assert await bench.call("delete_a2a_endpoint", ann) == nothing
    assert await bench.call("delete_a2a_endpoint", ann) == nothing


@pytest.mark.requirement("network.a2a.direct")
@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "gopher://x.org/",
        "http://x.org/",
        "https://user:pass@x.org/",
        "https://x.org:22/",
        "https://x.org:443:443/",
        "https://localhost/",
        "https://printer/",
        "https://printer.local/",
        "https://db.internal/",
        "https://127.0.0.1/",
        "https://93.184.216.34/",
        "https://2130706433/",
        "https://0x7f.1/",
        "https://0177.0.0.1/",
        "https://[::1]/",
        "https://[::ffff:127.0.0.1]/",
        "https://x.org/#frag",
        "https://x..org/",
        "https://-x.org/",
        "https://x.org\\@evil.org/",
        "https:///a2a",
        "x",
        "",
    ],
)
async def test_what_is_no_public_https_url_is_refused(bench: Bench, ann: Caller, url: str) -> None:
    refused = await bench.call("set_a2a_endpoint", ann, url=url)
    assert (code(refused), refused.detail["path"]) == ("bad_request", "url")
    assert (await bench.call("get_a2a_endpoint", ann))["url"] is None


@pytest.mark.requirement("network.a2a.card")
async def test_the_card_of_a_hidden_agent_is_made_for_agents_alone(bench: Bench, ann: Caller) -> None:
    bob = await make_agent(bench, "Bob", public=True)

    async def shown(caller: Caller, agent: Caller) -> str:
        params = b'{"agent_id":"%s"}' % str(agent.agent).encode()
        return code(await bench.broker.signin(caller, "agent_card", params))

    assert await shown(Caller(), bob) == "accepted"
    assert await shown(Caller(), ann) == "not_found"
    assert await shown(bob, ann) == "accepted"
    await bench.call("suspend_agent", Caller(operator=True), agent_id=ann.agent, reason="x")
    assert await shown(bob, ann) == "not_found"
