"""Secrets in remembered answers."""

from broker.app import open_broker
from broker.clock import VirtualClock
from broker.config import Settings
from broker.store.memory import MemoryStore
from broker.tools.sealing import opened, seal
from broker.wire.keyring import Keyring, WireKey
from broker.wire.keys import SigningKey
from broker.wire.refusals import refuse
from tests.support.broker import START_MS, open_bench


async def test_what_is_sealed_is_opened_with_the_same_wires_key_alone() -> None:
    wire = SigningKey.generate()
    async with open_bench(key=wire) as bench:
        services = bench.broker._services
        sealed = seal(services, "ABCD")
        assert "ABCD" not in sealed
        assert seal(services, "ABCD") != sealed
        assert list(opened(services, {"a": 1, "code": sealed, "b": 2}, ("code", "other")).items()) == [
            ("a", 1),
            ("code", "ABCD"),
            ("b", 2),
        ]
        assert opened(services, refusal := refuse("not_found", "x"), ("code",)) is refusal
        assert opened(services, {"code": "no hex"}, ("code",)) == {}
    async with open_bench(key=wire) as bench:
        assert opened(bench.broker._services, {"code": sealed}, ("code",)) == {"code": "ABCD"}
    after = Keyring((WireKey(wire, START_MS, START_MS + 1), WireKey(SigningKey.generate(), START_MS + 1)))
    async with open_broker(Settings(), MemoryStore(), VirtualClock(START_MS), after) as broker:
        assert opened(broker._services, {"code": sealed}, ("code",)) == {"code": "ABCD"}
    async with open_bench() as bench:
        assert opened(bench.broker._services, {"code": sealed, "a": 1}, ("code",)) == {"a": 1}
