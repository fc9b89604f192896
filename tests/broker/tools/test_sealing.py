"""Secrets in remembered answers."""

from broker.tools.sealing import opened, seal
from broker.wire.keys import SigningKey
from broker.wire.refusals import refuse
from tests.support.broker import open_bench


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
    async with open_bench() as bench:
        assert opened(bench.broker._services, {"code": sealed, "a": 1}, ("code",)) == {"a": 1}
