"""A report's actor."""

from broker.actors.report import File, ReportRow
from tests.support.broker import Bench, code

ROW = ReportRow("rp_1", "ag_1", "ag_2", "spam", "ads", 7)


async def test_a_report_is_filed_once_and_found_by_its_status_and_its_target(bench: Bench) -> None:
    house = bench.broker._services.house
    assert await house.ask("report", "rp_1", File(ROW)) == {"report_id": "rp_1", "status": "open", "at": 7}
    assert code(await house.ask("report", "rp_1", File(ROW))) == "already_exists"
    for name, value in (
        ("status", "open"),
        ("target", "ag_2"),
        ("open-by", "ag_1"),
        ("open-pair", "ag_1>ag_2"),
    ):
        assert [each.id for each in await bench.store.find("report", name, value)] == ["rp_1"]
