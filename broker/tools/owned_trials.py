"""An owner's agents in trials, for the owner's pages: which there are, and what came of them (trial.md, Sessions).

1. `owner_id` is what the browser's session says, as in broker.tools.owned; another owner's agent is missing.
2. Nothing is run for it: what is shown stands in the trial's document.
"""

from typing import Annotated, Final, Literal

import msgspec
import trio
from msgspec import Meta

from broker.actors.agentdocs import NO_AGENT
from broker.core.trials.run import Outcome, outcome_of
from broker.core.trials.session import Over, TrialRow
from broker.store.stored import stored
from broker.tools.agents import find
from broker.tools.context import Context
from broker.tools.paging import read_page
from broker.tools.registry import tool
from broker.wire.refusals import Refusal

Text = Annotated[str, Meta(max_length=1024)]
Which = Literal["all", "open"]
PAGE: Final = 20
"""Trials on one page."""
_INDEX: Final[dict[Which, str]] = {"all": "agent", "open": "open"}


class TrialBrief(msgspec.Struct, frozen=True):
    """A trial in a list: times in Unix milliseconds, profit and loss in millionths of the quote currency."""

    session_id: str
    status: Literal["open", "over"]
    instrument: str
    kind: str | None
    """Of a tape that is made by rule; None: it was imported."""
    seed: int | None
    ticks: int
    ran: int
    """Ticks that were run."""
    plan: str | None
    """Name and version of the last one; None: none was brought."""
    outcome: Outcome
    position: int
    pnl: int
    opened_at: int
    changed_at: int
    over: Over | None
    ref: str | None
    """Of its artifact, once it is over."""


class OwnedTrials(msgspec.Struct, frozen=True):
    """An agent's trials, the latest first."""

    agent_id: str
    name: str
    trials: list[TrialBrief]
    next: str | None
    """Where the next page begins; None: that was all."""


@tool(face="signin", title="Trials of my agent", read_only=True)
async def my_trials(
    context: Context, owner_id: Text, agent_id: Text, which: Which = "all", after: Text | None = None
) -> OwnedTrials | Refusal:
    """An agent's trials, PAGE of them. not_found: the agent is none of this owner's."""
    services = context.services
    agent = await find(services, agent_id, owner_id)
    if agent is None:
        return NO_AGENT
    page = await read_page(services.store, "trial", _INDEX[which], agent_id, after, PAGE)
    if isinstance(page, Refusal):
        return page
    trials: list[TrialBrief] = []
    for each in page.documents:
        trials.append(_brief(stored(TrialRow, each.doc, "trial", each.id)))
        await trio.lowlevel.checkpoint()  # one with ten thousand orders that rest takes a millisecond or two
    return OwnedTrials(agent_id, agent.name, trials, page.next)


def _brief(row: TrialRow) -> TrialBrief:
    entry, place = row.entry, row.place
    return TrialBrief(
        session_id=row.session_id,
        status="open" if row.over is None else "over",
        instrument=entry.about.instrument,
        kind=entry.kind,
        seed=entry.seed,
        ticks=entry.ticks,
        ran=place.tick,
        plan=None if row.plan is None else f"{row.plan.name} {row.plan.version}",
        outcome=outcome_of(place),
        position=place.account.position,
        pnl=row.pnl,
        opened_at=row.opened_at,
        changed_at=row.changed_at,
        over=row.over,
        ref=row.ref,
    )
