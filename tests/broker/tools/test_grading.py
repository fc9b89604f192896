"""kestrel.grade: grades by ref, what is refused, and what a report shows."""

from typing import Any

import msgspec
import pytest

from broker.app import Caller, Report
from broker.core.trials.review import Graded, read_trial, review
from broker.core.trials.script import Advance, Artifact, Entry, Start
from broker.wire.refusals import Refusal
from tests.support import artifacts
from tests.support.agents import make_agent
from tests.support.broker import ANYONE, STRANGER, Bench, code
from tests.support.imports import bring, foreign
from tests.support.operators import OPERATOR
from tests.support.trials import changed, market, plan, publish, trial

TAPE, ENTRY = market()
CONTENT = trial(TAPE, ENTRY)


async def grade(bench: Bench, who: Caller, ref: str) -> Any:
    return await bench.call("kestrel.grade", who, ref=ref)


@pytest.mark.requirement("trial.grade-tool")
async def test_a_published_trial_is_graded_beside_two_others(bench: Bench) -> None:
    ref, ann = await publish(bench, CONTENT), await make_agent(bench, "Ann")
    artifact = read_trial(CONTENT)
    assert isinstance(artifact, Artifact)
    found = review(CONTENT, artifact, TAPE)
    assert isinstance(found, Graded)
    answer = await grade(bench, ann, ref)
    for name in ("grades", "aside", "naive"):
        assert answer[name] == msgspec.json.decode(msgspec.json.encode(getattr(found, name)))
    assert (answer["outcome"], answer["over"]) == ("DONE", "tape")
    assert (answer["tape"], answer["kind"], answer["seed"]) == (ENTRY.ref, "mean-revert", 5)
    assert answer["fills_model"] == "fills/1"
    assert (answer["ref"], answer["uri"]) == (ref, f"kestrel://artifact/{ref}")
    assert answer["report"] == f"/artifact/{ref}/report"
    assert await grade(bench, ann, answer["uri"]) == answer


@pytest.mark.requirement("trial.grade-tool")
async def test_nothing_that_an_agent_wrote_is_in_the_answer(bench: Bench) -> None:
    answer = await grade(bench, await make_agent(bench, "Ann"), await publish(bench, CONTENT))
    text = msgspec.json.encode(answer)
    assert b"fade" not in text
    assert b"EURCHF" not in text


@pytest.mark.requirement("trial.grade-tool")
@pytest.mark.parametrize("ref", ["0" * 64, "kestrel://artifact/" + "0" * 64])
async def test_what_is_not_there_is_not_found(bench: Bench, ref: str) -> None:
    refused = await grade(bench, await make_agent(bench, "Ann"), ref)
    assert (refused.code, refused.status) == ("NOT_FOUND", 404)


@pytest.mark.requirement("trial.grade-tool")
@pytest.mark.parametrize("ref", ["", "0" * 63, "0" * 65, "0" * 64 + "\n", "A" * 64, "turret://" + "0" * 64])
async def test_what_is_no_ref_is_a_bad_request(bench: Bench, ref: str) -> None:
    assert code(await grade(bench, await make_agent(bench, "Ann"), ref)) == "bad_request"


@pytest.mark.requirement("trial.grade-kind", "trial.grade-replay", "trial.grade-tape")
async def test_what_has_no_grades_says_why(bench: Bench) -> None:
    ann = await make_agent(bench, "Eve")
    arena, _ = await artifacts.publish_one(bench)
    imported = trial(TAPE, Entry(ENTRY.ref, ENTRY.about, ENTRY.ticks))
    for ref, reason, n in (
        (arena, "kind", None),
        (await publish(bench, imported), "tape", None),
        (await publish(bench, changed(CONTENT, "entry", "kind", to="none")), "tape", None),
        (await publish(bench, changed(CONTENT, "fills", 2, "fee", to=7)), "fills", 2),
        (await publish(bench, changed(CONTENT, "result", "pnl", to=7)), "result", None),
    ):
        refused = await grade(bench, ann, ref)
        assert isinstance(refused, Refusal)
        assert (refused.code, refused.status, refused.retryable) == ("NOT_GRADABLE", 422, False)
        assert (refused.detail["reason"], refused.detail.get("n")) == (reason, n)
        assert code(await bench.broker.report(ANYONE, ref)) == "NOT_GRADABLE"


@pytest.mark.requirement("trial.grade-tape")
async def test_an_imported_tape_is_graded_on_as_long_as_it_is_kept(bench: Bench) -> None:
    ann, tape = await make_agent(bench, "Ann"), foreign()
    await bring(bench, tape)
    calls = (Start(plan(on=tape.about.instrument)), Advance(len(tape)))
    ref = await publish(bench, trial(tape, Entry(tape.ref(), tape.about, len(tape)), *calls))
    answer = await grade(bench, ann, ref)
    assert (answer["tape"], answer["grades"]["ticks"]) == (tape.ref(), len(tape))
    assert "kind" not in answer
    other = await publish(
        bench, trial(tape, Entry(tape.ref(), tape.about, len(tape)), *calls[:1], Advance(3))
    )
    assert not isinstance(await bench.call("remove_tape", OPERATOR, ref=tape.ref()), Refusal)
    assert (await grade(bench, ann, other)).detail["reason"] == "tape"


@pytest.mark.requirement("trial.grade-tool")
async def test_what_is_damaged_is_not_graded(bench: Bench) -> None:
    ref, _ = await artifacts.publish_one(bench)
    await artifacts.damage(bench, ref)
    assert code(await grade(bench, await make_agent(bench, "Eve"), ref)) == "unavailable"


@pytest.mark.requirement("trial.grade-tool")
async def test_progress_is_told_where_it_is_wanted(bench: Bench) -> None:
    ref, ann, told = await publish(bench, CONTENT), await make_agent(bench, "Ann"), list[Any]()

    async def tell(event: bytes) -> None:
        told.append(msgspec.json.decode(event))

    params = msgspec.json.encode({"ref": ref})
    await bench.broker.call(ann, "kestrel.grade", params, progress=tell)
    assert 1_000 < told[-1]["ticks"] <= told[-1]["of"] == 1_200
    done = [each["ticks"] for each in told]
    assert done == sorted(set(done))
    assert done[0] < done[-1], "it is told while it is done"
    assert bench.broker.tools["kestrel.grade"].streams


@pytest.mark.requirement("trial.report")
async def test_a_report_needs_the_ref_alone(bench: Bench) -> None:
    ref = await publish(bench, CONTENT)
    for who in (ANYONE, STRANGER, await make_agent(bench, "Bob")):
        shown = await bench.broker.report(who, ref)
        assert isinstance(shown, Report)
        assert shown.ref == ref
        assert shown.plans[0][1].startswith("plan fade 1\n")
    assert code(await bench.broker.report(STRANGER, "0" * 64)) == "NOT_FOUND"


@pytest.mark.requirement("trial.report")
async def test_an_address_that_guesses_waits(bench: Bench) -> None:
    answers = [code(await bench.broker.report(STRANGER, f"{n:064x}")) for n in range(21)]
    assert answers == ["NOT_FOUND"] * 20 + ["rate_limited"]
