"""What may become of a task, as a table (network.md, A2A)."""

from typing import Any, get_args

import pytest
from msgspec.structs import replace

from broker.core import task as core
from broker.core.loops import Trace
from broker.core.task import Change, TaskRow, decide, judge_metadata, judge_parts, summary, view
from broker.wire.refusals import Refusal
from broker.wire.task import OPEN, Artifact, Part, Result, Said, State, Status
from tests.support.broker import code

KEEP = 1000
STATES: tuple[State, ...] = get_args(State)


def row(state: State = "submitted", **members: Any) -> TaskRow:
    made = TaskRow("tk_1", "cx_1", "ag_1", "ag_2", state, 5, 5, 5 + KEEP, Trace("tk_1", 5), told=1)
    return replace(made, **members)


def said(text: str = "hello", by: Any = "requester") -> Said:
    return Said("m", by, (Part(text=text),), 7)


def nested(depth: int) -> Any:
    """So many arrays in each other."""
    made: Any = []
    for _ in range(depth - 1):
        made = [made]
    return made


COMMANDS: dict[str, Any] = {
    "add": core.Add(said()),
    "working": core.Report("working", None),
    "ask": core.Report("input-required", said("which?", "target")),
    "completed": core.Finish("completed", None, Artifact("art_1", (Part(text="done"),))),
    "failed": core.Finish("failed", said("no", "target"), None),
    "rejected": core.Finish("rejected", said("no", "target"), None),
    "cancel": core.Cancel(),
    "lapse": core.Lapse(),
}
BECOMES: dict[str, State] = {
    "working": "working",
    "ask": "input-required",
    "completed": "completed",
    "failed": "failed",
    "rejected": "rejected",
    "cancel": "canceled",
    "lapse": "failed",
}


@pytest.mark.requirement("network.a2a.states")
@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("state", STATES)
def test_what_is_final_changes_no_more_and_what_is_open_becomes_what_is_said(state: State, name: str) -> None:
    before = row(state)
    change = decide(before, COMMANDS[name], 50, KEEP)
    if state not in OPEN:
        assert isinstance(change, Refusal)
        assert (change.code, change.detail["state"]) == ("bad_request", state)
        return
    assert isinstance(change, Change)
    after = change.row
    assert after.state == BECOMES.get(name, "working" if state == "input-required" else state)
    assert (after.revision, after.updated_at, after.due) == (2, 50, 50 + KEEP)
    assert after.told == 1 + len(change.events)
    assert isinstance(change.events[-1], Status)
    assert change.events[-1].state == after.state
    assert before == row(state)


@pytest.mark.requirement("network.a2a.states")
def test_a_task_that_is_not_there_begins_once() -> None:
    assert code(decide(None, COMMANDS["add"], 50, KEEP)) == "not_found"
    begun = decide(None, core.Begin(row(told=0, due=0), said()), 50, KEEP)
    assert isinstance(begun, Change)
    assert (begun.row.told, begun.row.due, begun.what) == (1, 50 + KEEP, "submitted")
    assert code(decide(begun.row, core.Begin(row(), said()), 50, KEEP)) == "already_exists"


@pytest.mark.requirement("network.a2a.answer")
def test_the_result_comes_before_the_end() -> None:
    change = decide(row(), COMMANDS["completed"], 50, KEEP)
    assert isinstance(change, Change)
    assert [type(each) for each in change.events] == [Result, Status]
    assert change.row.artifacts[0].parts == (Part(text="done"),)
    assert change.parts == (Part(text="done"),)


@pytest.mark.requirement("network.a2a.states")
def test_time_goes_back_for_no_task() -> None:
    change = decide(row(updated_at=90), COMMANDS["working"], 50, KEEP)
    assert isinstance(change, Change)
    assert change.row.updated_at == 90
    assert isinstance(change.events[0], Status)
    assert change.events[0].at == 90


@pytest.mark.requirement("network.a2a.loop")
def test_a_question_is_one_hop_further_and_a_result_is_none() -> None:
    asked, done = decide(row(), COMMANDS["ask"], 50, KEEP), decide(row(), COMMANDS["completed"], 50, KEEP)
    assert isinstance(asked, Change)
    assert isinstance(done, Change)
    assert asked.row.trace == Trace("tk_1", 5, 1, "ag_1")
    assert done.row.trace == Trace("tk_1", 5)


@pytest.mark.requirement("network.a2a.limits")
@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ([], "bad_request"),
        ([Part()], "bad_request"),
        ([Part(text="a", data=1)], "bad_request"),
        ([Part(raw="a b")], "bad_request"),
        ([Part(text="x" * core.MESSAGE_BYTES)], "accepted"),
        ([Part(text="x" * (core.MESSAGE_BYTES + 1))], "too_large"),
        ([Part(data="x" * core.MESSAGE_BYTES)], "too_large"),
        ([Part(text="x")] * (core.PARTS + 1), "too_large"),
        ([Part(data=None), Part(raw="aGk="), Part(raw="_-+/"), Part(url="https://x")], "accepted"),
        ([Part(text="x"), Part(data=nested(31))], "accepted"),
        ([Part(text="x"), Part(data=nested(32))], "bad_request"),
        ([Part(text="x", metadata={"a": nested(31)})], "bad_request"),
        ([Part(data=nested(5_000))], "bad_request"),
    ],
)
def test_parts_are_one_thing_each_and_not_too_much(parts: list[Part], expected: str) -> None:
    assert code(judge_parts(parts)) == expected


@pytest.mark.requirement("network.a2a.limits")
@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        (None, "accepted"),
        ({"a": nested(31)}, "accepted"),
        ({"a": nested(32)}, "bad_request"),
        ({"a": nested(5_000)}, "bad_request"),
        ({"a": "x" * core.METADATA_BYTES}, "too_large"),
    ],
)
def test_metadata_is_not_too_much_and_not_too_deep(metadata: dict[str, Any] | None, expected: str) -> None:
    assert code(judge_metadata(metadata)) == expected


@pytest.mark.requirement("network.a2a.limits")
def test_a_task_is_full_one_day() -> None:
    full = row(size=core.TASK_BYTES - 20)
    for name in ("add", "ask", "completed", "failed"):
        assert code(decide(full, COMMANDS[name], 50, KEEP)) == "too_large"
    assert code(decide(full, COMMANDS["cancel"], 50, KEEP)) == "accepted"


def test_a_view_has_the_last_messages() -> None:
    three = row(history=(said("1"), said("2"), said("3")))
    assert [each.parts[0].text for each in view(three, 2).history] == ["2", "3"]
    assert view(three, 0).history == ()
    assert view(three, 9).history == view(three).history == three.history
    assert summary(three).events == 1
