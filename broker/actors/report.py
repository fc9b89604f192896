"""A report of one agent about another, for the operators (network.md, Reports).

1. It is filed once and resolved once; what was decided stays.
2. Who reported hears of it in its inbox, in the commit that decides. Who was reported hears of a warning alone, and
   never from whom it came nor what was said.
3. What an outcome says of the agent is looked at: `suspended` and `deleted` are said of one that is.
"""

from typing import Any, Final, Literal

import msgspec
from msgspec.structs import replace

from broker.actors.agentdocs import read_agent
from broker.actors.notices import write_notice
from broker.actors.once import Once
from broker.actors.record import Index, RecordActor, Told
from broker.store.port import Put
from broker.wire.refusals import Refusal, refuse

Category = Literal["spam", "abuse", "impersonation", "fraud", "security", "other"]
Status = Literal["open", "resolved"]
Outcome = Literal["dismissed", "warned", "suspended", "deleted", "other"]
NO_REPORT: Final = refuse(
    "not_found", "there is no such report; list_reports shows all there are", path="report_id"
)
_SAID: Final[dict[Outcome, str]] = {
    "dismissed": "nothing was found that calls for a measure",
    "warned": "the agent was warned",
    "suspended": "the agent is suspended",
    "deleted": "the agent is gone",
    "other": "it was dealt with",
}
"""What an outcome is, in the words of the inbox."""


class ReportRow(msgspec.Struct, frozen=True, omit_defaults=True):
    """A report as stored (kind "report", id = report_id). Times are wall milliseconds."""

    report_id: str
    reporter: str
    target: str
    category: Category
    details: str
    at: int
    status: Status = "open"
    outcome: Outcome | None = None
    note: str = ""
    """The operators' words for who reported."""
    resolved_at: int | None = None


class File(msgspec.Struct, frozen=True):
    """A new report. Answer: {report_id, status, at}."""

    row: ReportRow
    once: Once | None = None


class Resolve(msgspec.Struct, frozen=True):
    """Operators have decided. Answer: {report_id, status, outcome, resolved_at}; not_found, already_exists (another
    decision), bad_request (the agent is not as the outcome says). `message_ids`: for the two inboxes."""

    outcome: Outcome
    note: str
    message_ids: tuple[str, str]
    once: Once | None = None


class ReportActor(RecordActor[ReportRow]):
    """One report."""

    kind = "report"
    type = ReportRow

    def index_of(self, row: ReportRow) -> Index:
        index: list[tuple[str, str | int]] = [("all", "1"), ("status", row.status), ("target", row.target)]
        if row.status == "open":
            index += [
                ("open-by", row.reporter),
                ("open-pair", f"{row.reporter}>{row.target}"),
                ("open-of", row.target),
            ]
        return tuple(index)

    async def do(self, command: Any) -> Any:
        match command:
            case File(row, once):
                if self.row is not None:
                    return refuse("already_exists", "there is a report of this id")
                answer = {"report_id": row.report_id, "status": row.status, "at": row.at}
                return await self.write(row, answer, once=once)
            case Resolve():
                return await self._resolve(command)
        raise TypeError(type(command))

    async def _resolve(self, command: Resolve) -> Any:
        row, outcome = self.row, command.outcome
        if row is None:
            return NO_REPORT
        if row.status == "resolved":
            if (row.outcome, row.note) == (outcome, command.note):
                return await self.write(row, _resolved(row), once=command.once)
            said = f"this report was resolved before, as {row.outcome}; what was decided stays"
            return refuse("already_exists", said, outcome=row.outcome)
        now = self.clock.now_ms()
        unlike = await self._unlike(row.target, outcome, now)
        if unlike is not None:
            return unlike
        resolved = replace(row, status="resolved", outcome=outcome, note=command.note, resolved_at=now)
        puts, events = await self._told(resolved, command.message_ids, now)
        return await self.write(resolved, _resolved(resolved), once=command.once, puts=puts, events=events)

    async def _unlike(self, target: str, outcome: Outcome, now: int) -> Refusal | None:
        """Why this can't be said of the agent."""
        agent = await read_agent(self.store, target, now)
        if outcome == "suspended" and agent is not None and agent.suspended is None:
            return refuse("bad_request", "the agent is not suspended; suspend_agent first", path="outcome")
        if outcome == "deleted" and agent is not None:
            said = "the agent is there; delete_unclaimed_agent or delete_test_agent first, or suspend_agent"
            return refuse("bad_request", said, path="outcome")
        if outcome == "warned" and agent is None:
            return refuse("bad_request", "the agent is gone: nobody is warned", path="outcome")
        return None

    async def _told(self, row: ReportRow, ids: tuple[str, str], now: int) -> tuple[list[Put], list[Told]]:
        """What both hear of it."""
        assert row.outcome is not None
        said = (
            f"Your report {row.report_id} about agent {row.target} ({row.category}) was looked at: "
            f"{_SAID[row.outcome]}."
        )
        members = {"report_id": row.report_id, "outcome": row.outcome}
        if row.note:
            said, members = f"{said}\n\n{row.note}", {**members, "note": row.note}
        notices = [
            await write_notice(self.store, row.reporter, ids[0], said, "report_resolved", members, now)
        ]
        if row.outcome == "warned":
            warning = (
                f"The operators looked at a report about you ({row.category}) and warn you: what goes on like "
                "this may end in a suspension."
            )
            category = {"category": row.category}
            notices.append(
                await write_notice(self.store, row.target, ids[1], warning, "warned", category, now)
            )
        puts = [put for each in notices for put in each.puts]
        return puts, [event for each in notices for event in each.events]


def _resolved(row: ReportRow) -> dict[str, Any]:
    return {
        "report_id": row.report_id,
        "status": row.status,
        "outcome": row.outcome,
        "resolved_at": row.resolved_at,
    }
