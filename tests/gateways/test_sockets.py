"""What is open, by door, and what waits to be sent."""

import pytest

from gateways.outbox import Outbox
from gateways.sockets import Sockets


@pytest.mark.requirement("observe.connections")
def test_connections_are_counted_by_door_while_they_last() -> None:
    sockets, outbox = Sockets(), Outbox(1000)
    assert sockets.by_door() == {"http": 0, "ws": 0, "dealing": 0, "operators": 0}
    with sockets.held("http"), sockets.held("ws", outbox):
        outbox.put(b"12345")
        assert sockets.by_door() == {"http": 1, "ws": 1, "dealing": 0, "operators": 0}
        assert sockets.waiting_bytes() == outbox.size > 5
    assert sockets.by_door() == {"http": 0, "ws": 0, "dealing": 0, "operators": 0}
    assert sockets.waiting_bytes() == 0


@pytest.mark.requirement("observe.connections")
def test_a_connection_that_ends_by_a_fault_counts_no_more() -> None:
    sockets = Sockets()
    with pytest.raises(ZeroDivisionError), sockets.held("dealing"):
        raise ZeroDivisionError
    assert sockets.by_door()["dealing"] == 0
