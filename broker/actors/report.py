"""A report of one agent about another, for the operators (network.md, Reports). Stored; who looks at it comes later."""

from typing import Any, Literal

import msgspec

from broker.actors.once import Once
from broker.actors.record import Index, RecordActor
from broker.wire.refusals import refuse

Category = Literal["spam", "abuse", "impersonation", "fraud", "security", "other"]


class ReportRow(msgspec.Struct, frozen=True, omit_defaults=True):
    """A report as stored (kind "report", id = report_id). Times are wall milliseconds."""

    report_id: str
    reporter: str
    target: str
    category: Category
    details: str
    at: int
    status: Literal["open", "resolved"] = "open"


class File(msgspec.Struct, frozen=True):
    """A new report. Answer: {report_id, status, at}."""

    row: ReportRow
    once: Once | None = None


class ReportActor(RecordActor[ReportRow]):
    """One report."""

    kind = "report"
    type = ReportRow

    def index_of(self, row: ReportRow) -> Index:
        index: list[tuple[str, str | int]] = [("status", row.status), ("target", row.target)]
        if row.status == "open":
            index += [("open-by", row.reporter), ("open-pair", f"{row.reporter}>{row.target}")]
        return tuple(index)

    async def do(self, command: Any) -> Any:
        match command:
            case File(row, once):
                if self.row is not None:
                    return refuse("already_exists", "there is a report of this id")
                answer = {"report_id": row.report_id, "status": row.status, "at": row.at}
                return await self.write(row, answer, once=once)
        raise TypeError(type(command))
