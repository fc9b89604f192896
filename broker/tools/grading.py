"""Grades of published trials, and what a report shows of one (docs/reference/trial.md, Grades).

1. The ref is the right to an artifact, and so to its grades; the tool wants a token besides, since it takes work.
2. What is graded was done again here, call by call. An artifact that is not what its calls come to is refused.
3. Nothing that an agent wrote stands in the answer: numbers, refs and words of ours.
"""

from functools import partial
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from broker.actors.grader import WAITING, Told, at_length, length_of
from broker.core.artifact import PREFIX, address
from broker.core.tapes.synthetic import KINDS
from broker.core.tapes.tape import Tape
from broker.core.trials.grade import Grades
from broker.core.trials.report import Report, report_of
from broker.core.trials.review import Fault, Graded, read_form
from broker.core.trials.run import Outcome, Why
from broker.core.trials.script import Artifact, Entry
from broker.tools import artifacts
from broker.tools.context import Context, Progress, Services
from broker.tools.registry import tool
from broker.wire.refusals import Refusal, refuse

RefParam = Annotated[
    str,
    Meta(
        pattern=rf"^(?:{PREFIX})?[0-9a-f]{{64}}$(?!\n)",
        description="the artifact's ref, 64 lowercase hex characters, or its address, kestrel://artifact/<ref>",
    ),
]


class Scored(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a finished trial was worth. Money in millionths of the quote currency, times in ticks, sizes in units."""

    ref: str
    uri: str
    report: str
    """Where it is drawn, for people: a path of the public port."""
    tape: str
    """The ref of the tape."""
    fills_model: str
    outcome: Outcome
    over: Why | None
    grades: Grades
    aside: Grades
    """Of one that did nothing on the same ticks."""
    naive: Grades
    """Of a maker that quoted both sides on the same ticks."""
    kind: str | None = None
    seed: int | None = None


@tool(
    face="trial",
    name="kestrel.grade",
    title="Grades of a finished trial",
    read_only=True,
    streams=True,
    scope="trial",
    agent=False,
)
async def grade(context: Context, ref: RefParam) -> Scored | Refusal:
    """What a finished trial was worth, by its artifact's ref, beside one that stood aside and a naive maker on the same
    ticks. The trial is run again and compared before: what is graded is true.

    The same ref has the same grades for ever. A long one takes seconds; with a progress token you are told how far it
    is. NOT_GRADABLE says by `reason` why something has no grades: it is no trial's (`kind`), its tape is gone (`tape`),
    or it is not what its calls come to.
    """
    name = ref.removeprefix(PREFIX)
    who = context.caller.agent or context.caller.principal or context.caller.address
    found = await _graded(context, name, who, told=_teller(context.progress))
    if isinstance(found, Refusal):
        return found
    artifact, graded = found
    entry, result = artifact.entry, artifact.result
    return Scored(
        ref=name,
        uri=address(name),
        report=f"/artifact/{name}/report",
        tape=entry.ref,
        fills_model=artifact.fills_model,
        outcome=result.outcome,
        over=result.over,
        grades=graded.grades,
        aside=graded.aside,
        naive=graded.naive,
        kind=entry.kind,
        seed=entry.seed,
    )


async def report(context: Context, ref: str) -> Report | Refusal:
    """What is shown of a finished trial to whoever has its ref; refused as the tool refuses. An address asks for one at
    a time, and who has no token leaves half of the places to who has. Cancelling stops the work."""
    found = await _graded(context, ref, f"report:{context.caller.address}", most=WAITING // 2)
    return found if isinstance(found, Refusal) else report_of(ref, *found)


async def _graded(
    context: Context, ref: str, who: str, *, told: Told | None = None, most: int = WAITING
) -> tuple[Artifact, Graded] | Refusal:
    content = await artifacts.artifact(context, ref)
    if isinstance(content, Refusal):
        return content
    artifact = await at_length(length_of(content), read_form, content)
    if isinstance(artifact, Fault):
        return not_gradable(artifact)
    services = context.services
    found = await services.grader.grade(
        who, ref, content, artifact, partial(tape_of, services), services.mill.turn, told=told, most=most
    )
    if isinstance(found, Fault):
        return not_gradable(found)
    return found if isinstance(found, Refusal) else (artifact, found)


async def tape_of(services: Services, entry: Entry) -> Tape | Fault:
    """The tape that an entry names; a Fault where it is not kept here any more. Raises Unavailable."""
    if entry.kind is None:
        gone = isinstance(await services.tapes.find(entry.ref, None), Refusal)
    else:
        gone = entry.kind not in KINDS
    if gone:
        return Fault("tape", "its tape is not kept here any more")
    return await services.tapes.tape(entry)


def not_gradable(fault: Fault) -> Refusal:
    """Why an artifact has no grades, as a refusal."""
    where: dict[str, Any] = {} if fault.n is None else {"n": fault.n}
    return refuse("NOT_GRADABLE", fault.message, path="ref", reason=fault.what, **where)


def _teller(progress: Progress | None) -> Told | None:
    if progress is None:
        return None

    async def tell(done: int, whole: int) -> None:
        await progress(msgspec.json.encode({"ticks": done, "of": whole}))

    return tell
