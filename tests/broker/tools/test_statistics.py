"""What a broker counts."""

from tests.support.broker import Bench


async def test_statistics_count_and_hold_no_ids(bench: Bench) -> None:
    line = await bench.connect(await bench.open("ALFA"), await bench.open("BRAV"))
    await bench.call("send_env", **line.next("RFQ"))
    await bench.call("send_env", **line.next("RFQ"))
    statistics = bench.broker.statistics()
    assert statistics.accepted == 3, "a replay is not accepted again"
    assert {kind: count for kind, count in statistics.actors.items() if count} == {
        "conversation": 1,
        "desk": 2,
    }
