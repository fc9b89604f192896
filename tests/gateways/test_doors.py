"""The doors of a broker: where each listens, and what is known of it before it takes connections."""

from functools import partial

import msgspec
import pytest

from broker.clock import SystemClock
from gateways.configure import Configuration, ServeOptions
from gateways.doors import Door, Doors, ServeError, protected_resources
from tests.support.broker import Bench

ANY = ServeOptions(bind="127.0.0.1:0", dealing_bind="127.0.0.1:0", metrics_bind="127.0.0.1:0")


def doors_of(bench: Bench, options: ServeOptions = ANY) -> Doors:
    return Doors(Configuration(serve=options, settings=bench.broker.settings), bench.broker, SystemClock())


@pytest.mark.requirement("observe.local-alone")
async def test_figures_have_a_port_of_their_own_where_one_is_set_and_none_else(bench: Bench) -> None:
    door = await doors_of(bench).open_metrics()
    assert door is not None
    assert door.url.startswith("http://127.0.0.1:")
    await close(door)
    assert await doors_of(bench, msgspec.structs.replace(ANY, metrics_bind=None)).open_metrics() is None


async def test_an_address_in_use_is_one_clear_line(bench: Bench) -> None:
    door = await doors_of(bench).open_dealing()
    where = door.url.removeprefix("ws://")
    with pytest.raises(
        ServeError, match=f"cannot listen on {where}: .*; another program has it, --dealing-bind"
    ):
        await doors_of(bench, msgspec.structs.replace(ANY, dealing_bind=where)).open_dealing()
    with pytest.raises(ServeError, match=r"; --bind takes addresses of this machine"):
        await doors_of(bench, msgspec.structs.replace(ANY, bind="192.0.2.1:0")).open_public()
    assert bench.broker.dealing_url == door.url
    await close(door)


async def close(door: Door) -> None:
    """Give back what an opened door has bound."""
    assert isinstance(door.serve, partial)
    for listener in door.serve.args[1]:
        await listener.aclose()


@pytest.mark.requirement("oauth.settings")
def test_where_the_url_that_clients_use_is_not_known_nobody_signs_in(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bare = ServeOptions(bind="0.0.0.0:443", tls_cert="c", tls_key="k")
    assert protected_resources(bare, "https://0.0.0.0:443") is None
    assert "--public-url" in caplog.text
    known = msgspec.structs.replace(bare, public_url="https://turret.example")
    found = protected_resources(known, "https://turret.example")
    assert found is not None
    assert (found.issuer, found.origins) == ("https://turret.example", ("https://turret.example",))
    here = protected_resources(ServeOptions(), "http://127.0.0.1:8766")
    assert here is not None
    assert (here.issuer, here.origins) == (
        "http://127.0.0.1:8766",
        ("http://127.0.0.1:8766", "http://localhost:8766"),
    )
