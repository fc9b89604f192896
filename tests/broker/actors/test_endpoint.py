"""The actor of an agent's own endpoint."""

from broker.actors.endpoint import SetEndpoint, read_endpoint
from tests.support.broker import Bench


async def test_an_endpoint_is_set_changed_and_taken_away(bench: Bench) -> None:
    house, store = bench.broker._services.house, bench.store
    assert await read_endpoint(store, "ag_1") is None
    made = await house.ask("endpoint", "ag_1", SetEndpoint("https://a.org/"))
    assert made["url"] == "https://a.org/"
    assert await house.ask("endpoint", "ag_1", SetEndpoint("https://a.org/")) == made
    other = await house.ask("endpoint", "ag_1", SetEndpoint("https://b.org/"))
    found = await read_endpoint(store, "ag_1")
    assert found is not None
    assert (found.url, found.set_at) == (other["url"], other["set_at"])
    assert await house.ask("endpoint", "ag_1", SetEndpoint(None)) == {"url": None, "set_at": None}
    assert await read_endpoint(store, "ag_1") is None
