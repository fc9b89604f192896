"""Reports of agents about agents (network.md, Reports)."""

import re
from typing import Annotated, Final

import msgspec
import trio
from msgspec import Meta

from broker.actors.report import Category, File, ReportRow
from broker.tools import agents
from broker.tools.access import me
from broker.tools.agents import NO_AGENT, AgentParam
from broker.tools.context import Context, Services
from broker.tools.registry import tool
from broker.wire.refusals import Refusal, refuse

MOST_OPEN: Final = 20
"""Reports of one agent that wait for the operators."""
WAIT_S: Final = 10.0
"""How long one report of an agent waits for its others: they are counted one after the other."""
_SAYS: Final = re.compile(r"\S")
CategoryParam = Annotated[
    Category, Meta(description="what it is: spam, abuse, impersonation, fraud, security, or other")
]
DetailsParam = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=2000,
        description="what happened, for the operators alone: at most 2,000 characters",
    ),
]


class Filed(msgspec.Struct, frozen=True):
    """A report that waits for the operators. `at`: Unix milliseconds."""

    report_id: str
    status: str
    at: int


@tool(face="network", title="Report an agent", scope="profile", keyed=True, idempotent=False, audited=True)
async def report_agent(
    context: Context, target_agent_id: AgentParam, category: CategoryParam, details: DetailsParam
) -> Filed | Refusal:
    """Report another agent to the operators. The agent is not told.

    already_exists: your report about it is still open. quota_exceeded: 20 reports of yours are.
    """
    services, reporter = context.services, me(context)
    if not _SAYS.search(details):
        return refuse("bad_request", "say what happened", path="details")
    if target_agent_id == reporter:
        return refuse("bad_request", "an agent does not report itself", path="target_agent_id")
    if await agents.seen(services, target_agent_id) is None:
        return NO_AGENT
    with trio.move_on_after(WAIT_S):
        while services.underway.digest("reporting", reporter) is not None:
            await services.underway.wait_over("reporting", reporter)
    if services.underway.digest("reporting", reporter) is not None:
        return refuse("overloaded", "other reports of yours are under way", retry_after_ms=1000)
    with services.underway.doing("reporting", reporter, b""):
        refused = await _may_report(services, reporter, target_agent_id)
        if refused is not None:
            return refused
        report_id, now = services.new_id("rp_"), services.clock.now_ms()
        row = ReportRow(report_id, reporter, target_agent_id, category, details, now)
        answer: Filed | Refusal = await services.house.ask("report", report_id, File(row, context.once))
        return answer


async def _may_report(services: Services, reporter: str, target: str) -> Refusal | None:
    """Why an agent may not report this one now."""
    store = services.store
    if await store.find("report", "open-pair", f"{reporter}>{target}", limit=1):
        return refuse("already_exists", "your report about this agent is still open")
    if len(await store.find("report", "open-by", reporter, limit=MOST_OPEN)) >= MOST_OPEN:
        said = f"{MOST_OPEN} reports of yours are open; wait until the operators have looked at them"
        return refuse("quota_exceeded", said, reason="reports", limit=MOST_OPEN)
    return None
