"""Which wire answers where: read from a file that a person may edit."""

import stat
from pathlib import Path
from typing import Any

import httpx
import pytest

from broker.wire.ids import Pk
from gateways.client.errors import Disconnected, WireFault
from gateways.client.pins import Pins, address, known_wires_path, pinned_wire

ONE, TWO = Pk("11" * 32), Pk("22" * 32)


@pytest.fixture
def pins(tmp_path: Path) -> Pins:
    return Pins(tmp_path / "deep" / "known_wires")


@pytest.mark.parametrize(
    ("url", "filed"),
    [
        ("ws://host", "host:80"),
        ("wss://Host/ws", "host:443"),
        ("http://127.0.0.1:8766/mcp", "127.0.0.1:8766"),
        ("https://[::1]:9/", "[::1]:9"),
    ],
)
def test_a_pin_is_filed_under_host_and_port(url: str, filed: str) -> None:
    assert address(url) == filed


@pytest.mark.requirement("client.pin")
def test_what_was_pinned_is_found_by_any_door_of_the_address(pins: Pins) -> None:
    pins.add("http://host:1/mcp", ONE)
    pins.add("http://host:1", ONE)
    assert pins.get("ws://host:1/ws") == ONE
    assert pins.get("ws://host:2/ws") is None


@pytest.mark.requirement("client.pin-changed")
def test_another_key_is_a_fault_and_the_pin_stays(pins: Pins) -> None:
    pins.add("http://host:1", ONE)
    with pytest.raises(WireFault, match="remove the line"):
        pins.add("ws://host:1", TWO)
    assert pins.get("http://host:1") == ONE


def test_the_file_is_the_owners_and_lines_that_are_no_pins_are_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "known_wires"
    Pins(path).add("http://host:1", ONE)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.write_text("# my wires\nhost:2 short\n" + path.read_text())
    assert Pins(path).get("http://host:1") == ONE
    assert Pins(path).get("http://host:2") is None


def test_the_persons_own_file_follows_the_desktop_convention(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", "config")
    assert known_wires_path() == Path("config/turret/known_wires")
    monkeypatch.delenv("XDG_CONFIG_HOME")
    assert known_wires_path() == Path.home() / ".config/turret/known_wires"


def answering(status: int, body: Any) -> httpx.AsyncClient:
    def handle(request: httpx.Request) -> httpx.Response:
        assert str(request.url) == "https://host:7/.well-known/turret.json"
        return (
            httpx.Response(status, json=body)
            if not isinstance(body, bytes)
            else httpx.Response(status, content=body)
        )

    return httpx.AsyncClient(transport=httpx.MockTransport(handle))


@pytest.mark.requirement("client.pin")
async def test_a_wire_is_pinned_by_what_its_own_address_publishes(pins: Pins) -> None:
    async with answering(200, {"wire": ONE, "dealing": "wss://host:8"}) as client:
        assert await pinned_wire("wss://host:7/ws", pins, client) == ONE
    assert pins.get("wss://host:8") == ONE
    async with answering(500, {}) as client:  # not asked again
        assert await pinned_wire("https://host:7", pins, client) == ONE


@pytest.mark.parametrize("dealing", ["wss://other:8", "nonsense", "//", 7])
async def test_a_host_pins_nothing_for_another(pins: Pins, dealing: object) -> None:
    async with answering(200, {"wire": ONE, "dealing": dealing}) as client:
        await pinned_wire("https://host:7", pins, client)
    assert pins.get("wss://other:8") is None


@pytest.mark.parametrize("body", [b"[1]", b"<html>", {"wire": "short"}, {}, {"wire": 7}])
async def test_nonsense_is_pinned_by_nobody(pins: Pins, body: Any) -> None:
    async with answering(200, body) as client:
        with pytest.raises(WireFault):
            await pinned_wire("https://host:7", pins, client)
    assert pins.get("https://host:7") is None


async def test_an_address_that_publishes_nothing_says_what_to_do(pins: Pins) -> None:
    async with answering(404, {}) as client:
        with pytest.raises(Disconnected, match=r"\(HTTP 404\): is that a broker\?$"):
            await pinned_wire("https://host:7", pins, client)
        with pytest.raises(Disconnected, match="give the wire's pk, or connect to its http"):
            await pinned_wire("wss://host:7", pins, client)

    def broken(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused")

    async with httpx.AsyncClient(transport=httpx.MockTransport(broken)) as client:
        with pytest.raises(Disconnected, match="refused"):
            await pinned_wire("https://host:7", pins, client)
