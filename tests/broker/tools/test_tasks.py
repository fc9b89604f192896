"""Tasks over the tools: who may give, see, answer and take back what (network.md, A2A)."""

from typing import Any

import pytest
import trio
import trio.testing

from broker.actors.task import lane_name
from broker.app import Caller
from broker.core.task import CHANGES, MESSAGE_BYTES
from broker.wire.refusals import Refusal
from tests.support.agents import make_agent
from tests.support.broker import Bench, code, open_bench, tuned
from tests.support.pairs import agree, told, whats


async def pair(bench: Bench, **params: Any) -> tuple[Caller, Caller]:
    """Two that have agreed."""
    one, other = await make_agent(bench, "Ann"), await make_agent(bench, "Bob")
    await agree(bench, one, other, **{"scopes": ["task"], **params})
    return one, other


async def give(bench: Bench, one: Caller, other: Caller, text: str = "do it", **params: Any) -> Any:
    return await bench.call("send_task", one, target_agent_id=other.agent, text=text, **params)


async def given(bench: Bench, one: Caller, other: Caller, text: str = "do it") -> str:
    """A task's id."""
    return str((await give(bench, one, other, text))["task"]["task_id"])


@pytest.mark.requirement("network.a2a.answer")
async def test_a_task_waits_for_its_target_and_is_answered_once(bench: Bench) -> None:
    ann, bob = await pair(bench)
    made = await give(bench, ann, bob)
    now = pytest.approx(bench.clock.now_ms(), abs=1000)
    assert made["task"] == {
        "task_id": made["task"]["task_id"],
        "context_id": made["task"]["context_id"],
        "requester_agent_id": ann.agent,
        "requester_name": "Ann",
        "target_agent_id": bob.agent,
        "state": "submitted",
        "created_at": now,
        "updated_at": now,
        "hops": 0,
        "events": 1,
    }
    assert [each["parts"] for each in made["history"]] == [[{"text": "do it"}]]
    task_id = made["task"]["task_id"]
    (mine,) = (await bench.call("list_tasks", bob, status="submitted"))["tasks"]
    assert mine == {"task": made["task"]}
    done = await bench.call("complete_task", bob, task_id=task_id, outcome="completed", text="done")
    assert done["task"]["state"] == "completed"
    assert [each["parts"] for each in done["artifacts"]] == [[{"text": "done"}]]
    assert await bench.call("get_task", ann, task_id=task_id) == done
    again = await bench.call("complete_task", bob, task_id=task_id, outcome="failed", text="no")
    assert (again.code, again.detail["state"]) == ("bad_request", "completed")
    for caller in (ann, bob):
        events = await told(bench, caller, "task")
        assert [(each["what"], each["by"], each["parts"]) for each in events] == [
            ("submitted", ann.agent, [{"text": "do it"}]),
            ("completed", bob.agent, [{"text": "done"}]),
        ]


@pytest.mark.requirement("network.a2a.answer")
@pytest.mark.parametrize("outcome", ["failed", "rejected"])
async def test_a_task_that_comes_to_nothing_says_why(bench: Bench, outcome: str) -> None:
    ann, bob = await pair(bench)
    task_id = await given(bench, ann, bob)
    done = await bench.call("complete_task", bob, task_id=task_id, outcome=outcome, text="too hard")
    assert done["task"]["state"] == outcome
    assert done["said"]["parts"] == [{"text": "too hard"}]
    assert "artifacts" not in done
    assert done["history"][-1] == done["said"]


@pytest.mark.requirement("network.a2a.input")
async def test_the_target_asks_and_the_requester_adds(bench: Bench) -> None:
    ann, bob = await pair(bench)
    task_id = await given(bench, ann, bob)
    asked = await bench.call("update_task", bob, task_id=task_id, status="input-required", text="which?")
    assert (asked["task"]["state"], asked["said"]["parts"]) == ("input-required", [{"text": "which?"}])
    context_id = asked["task"]["context_id"]
    wrong = await give(bench, ann, bob, "this", task_id=task_id, context_id="another")
    assert (code(wrong), wrong.detail["path"]) == ("bad_request", "context_id")
    added = await give(bench, ann, bob, "this", task_id=task_id, context_id=context_id)
    assert added["task"]["state"] == "working"
    assert [each["by"] for each in added["history"]] == ["requester", "target", "requester"]
    assert "said" not in added
    assert await whats(bench, bob, "task") == ["submitted", "input-required", "message"]
    short = await bench.call("get_task", ann, task_id=task_id, history=1)
    assert [each["parts"] for each in short["history"]] == [[{"text": "this"}]]
    assert "history" not in await bench.call("get_task", ann, task_id=task_id, history=0)


@pytest.mark.requirement("network.a2a.agreed")
async def test_without_an_agreement_for_tasks_nobody_gives_or_answers_one(bench: Bench) -> None:
    ann, bob = await make_agent(bench, "Ann"), await make_agent(bench, "Bob")
    unknown = "ag_" + "0" * 26
    refused = await give(bench, ann, bob)
    nobody = await bench.call("send_task", ann, target_agent_id=unknown, text="do it")
    assert refused == nobody
    assert (refused.code, refused.detail["scope"]) == ("agreement_required", "task")
    talking = await agree(bench, ann, bob, scopes=["message"])
    assert code(await give(bench, ann, bob)) == "agreement_required"
    await bench.call("revoke_agreement", ann, agreement_id=talking)
    agreement = await agree(bench, ann, bob, scopes=["task"])
    task_id, other = await given(bench, ann, bob), await given(bench, ann, bob)
    await bench.call("revoke_agreement", bob, agreement_id=agreement)
    for name, caller, params in (
        ("complete_task", bob, {"outcome": "completed", "text": "done"}),
        ("update_task", bob, {"status": "working"}),
        ("send_task", ann, {"text": "more", "target_agent_id": bob.agent}),
    ):
        assert code(await bench.call(name, caller, task_id=task_id, **params)) == "agreement_required"
    assert (await bench.call("get_task", bob, task_id=other))["task"]["state"] == "submitted"
    assert (await bench.call("cancel_task", ann, task_id=other))["task"]["state"] == "canceled"


@pytest.mark.requirement("network.a2a.agreed")
async def test_who_is_suspended_is_given_nothing_and_gets_no_answer(bench: Bench) -> None:
    ann, bob = await pair(bench)
    task_id = await given(bench, ann, bob)
    operator = Caller(operator=True)
    await bench.call("suspend_agent", operator, agent_id=bob.agent, reason="x")
    assert code(await give(bench, ann, bob)) == "agreement_required"
    await bench.call("unsuspend_agent", operator, agent_id=bob.agent)
    await bench.call("suspend_agent", operator, agent_id=ann.agent, reason="x")
    answer = await bench.call("complete_task", bob, task_id=task_id, outcome="completed", text="done")
    assert code(answer) == "agreement_required"


@pytest.mark.requirement("network.a2a.foreign")
async def test_to_a_stranger_a_task_looks_missing_to_every_tool(bench: Bench) -> None:
    ann, bob = await pair(bench)
    eve = await make_agent(bench, "Eve")
    await agree(bench, eve, bob, scopes=["task"])
    task_id = await given(bench, ann, bob)
    for name, params in (
        ("get_task", {}),
        ("cancel_task", {}),
        ("complete_task", {"outcome": "completed", "text": "x"}),
        ("update_task", {"status": "working"}),
        ("send_task", {"target_agent_id": bob.agent, "text": "x"}),
    ):
        foreign = await bench.call(name, eve, task_id=task_id, **params)
        assert foreign == await bench.call(name, eve, task_id="tk_" + "0" * 26, **params)
        assert code(foreign) == "not_found"
    # Nor is it one of another agent's, even to who gave it.
    await agree(bench, ann, eve, scopes=["task"])
    elsewhere = await bench.call("send_task", ann, task_id=task_id, target_agent_id=eve.agent, text="x")
    assert code(elsewhere) == "not_found"
    assert (await bench.call("list_tasks", eve, role="requester"))["tasks"] == []
    mine = await bench.call("list_tasks", eve, role="requester", counterpart_agent_id=bob.agent)
    assert (mine["tasks"], mine["total"]) == ([], 0)


@pytest.mark.requirement("network.a2a.foreign")
async def test_each_of_the_two_does_what_is_its_own(bench: Bench) -> None:
    ann, bob = await pair(bench)
    task_id = await given(bench, ann, bob)
    for name, caller, params in (
        ("complete_task", ann, {"outcome": "completed", "text": "x"}),
        ("update_task", ann, {"status": "working"}),
        ("cancel_task", bob, {}),
    ):
        assert code(await bench.call(name, caller, task_id=task_id, **params)) == "not_a_party"
    # What Ann gave Bob is not something that Bob may add to as if it were given to Ann.
    added = await bench.call("send_task", bob, target_agent_id=ann.agent, task_id=task_id, text="x")
    assert code(added) == "not_found"


@pytest.mark.requirement("network.a2a.lists")
async def test_lists_have_the_last_changed_first_and_their_filters(bench: Bench, autojump_clock: Any) -> None:
    ann, bob = await pair(bench)
    ids = [await given(bench, ann, bob, str(n)) for n in range(4)]
    await bench.call("update_task", bob, task_id=ids[1], status="working")
    await trio.sleep(1)
    await bench.call("complete_task", bob, task_id=ids[0], outcome="completed", text="done")

    async def listed(caller: Caller, **params: Any) -> list[str]:
        found: list[str] = []
        after: dict[str, Any] = {}
        while True:
            page = await bench.call("list_tasks", caller, limit=2, **after, **params)
            found += [each["task"]["task_id"] for each in page["tasks"]]
            if "next" not in page:
                return found
            after = {"after": page["next"]}

    newest_first = [ids[0], ids[1], ids[3], ids[2]]
    assert await listed(bob) == newest_first
    assert await listed(ann) == []
    assert await listed(ann, role="requester") == newest_first
    assert await listed(ann, role="requester", status="submitted") == [ids[3], ids[2]]
    lane = {"role": "requester", "counterpart_agent_id": bob.agent}
    assert await listed(ann, **lane) == newest_first
    assert await listed(ann, **lane, status="working") == [ids[1]]
    assert await listed(ann, **lane, changed_after=bench.clock.now_ms() - 500) == [ids[0]]
    one = await bench.call("get_task", ann, task_id=ids[2])
    assert await listed(ann, **lane, context_id=one["task"]["context_id"]) == [ids[2]]
    page = await bench.call("list_tasks", ann, **lane, limit=1, full=True)
    assert page["total"] == 4
    assert page["tasks"] == [await bench.call("get_task", ann, task_id=ids[0])]
    alone = await bench.call("list_tasks", ann, context_id="cx_1")
    assert alone.detail["path"] == "counterpart_agent_id"
    assert code(await bench.call("list_tasks", ann, **lane, after="lane-x")) == "bad_request"


@pytest.mark.requirement("network.a2a.limits")
async def test_what_is_too_much_or_nothing_is_refused(bench: Bench) -> None:
    ann, bob = await pair(bench)
    large = await give(bench, ann, bob, "x" * (MESSAGE_BYTES + 1))
    assert (code(large), large.detail["limit"]) == ("too_large", MESSAGE_BYTES)
    assert code(await give(bench, ann, bob, "ü" * (MESSAGE_BYTES // 2))) == "accepted"
    for parts in ([], [{}], [{"text": "x", "url": "https://x"}], [{"raw": "%%"}]):
        answer = await bench.call("send_task", ann, target_agent_id=bob.agent, parts=parts)
        assert code(answer) == "bad_request"
    many = await bench.call("send_task", ann, target_agent_id=bob.agent, parts=[{"text": "x"}] * 33)
    assert code(many) == "bad_request"
    wide = await give(bench, ann, bob, metadata={"x": "y" * 4096})
    assert (code(wide), wide.detail["path"]) == ("too_large", "metadata")
    task_id = await given(bench, ann, bob)
    answers = [await give(bench, ann, bob, "x" * 16_000, task_id=task_id) for _ in range(5)]
    assert [code(each) for each in answers] == ["accepted"] * 4 + ["too_large"]
    done = await bench.call("complete_task", bob, task_id=task_id, outcome="completed", text="x" * 2_000)
    assert code(done) == "too_large"
    done = await bench.call("complete_task", bob, task_id=task_id, outcome="completed", text="x" * 200)
    assert code(done) == "accepted"


@pytest.mark.requirement("network.a2a.limits")
async def test_parts_of_every_kind_are_kept_as_they_came(bench: Bench) -> None:
    ann, bob = await pair(bench)
    parts = [
        {"data": {"a": [1, None, 2.5]}, "metadata": {"k": "v"}},
        {"data": None},
        {"raw": "aGk=", "filename": "hi.txt", "media_type": "text/plain"},
        {"url": "https://files.test/x"},
    ]
    made = await bench.call(
        "send_task",
        ann,
        target_agent_id=bob.agent,
        text="see",
        parts=parts,
        message_id="m-1",
        metadata={"z": 1},
    )
    (said,) = made["history"]
    assert said["parts"] == [{"text": "see"}, *parts]
    assert (said["message_id"], said["metadata"]) == ("m-1", {"z": 1})
    task_id = made["task"]["task_id"]
    done = await bench.call(
        "complete_task", bob, task_id=task_id, outcome="completed", text="", parts=parts[:1]
    )
    assert done["artifacts"][0]["parts"] == parts[:1]


@pytest.mark.requirement("network.a2a.limits")
async def test_open_tasks_of_a_pair_are_bounded_and_old_finished_ones_make_room() -> None:
    async with open_bench(tuned(network={"tasks_open": 2, "tasks_kept": 2})) as bench:
        ann, bob = await pair(bench)
        first, _ = await given(bench, ann, bob), await given(bench, ann, bob)
        full = await give(bench, ann, bob)
        assert (code(full), full.detail["reason"]) == ("quota_exceeded", "tasks")
        assert code(await give(bench, bob, ann)) == "accepted"  # the other way is another matter
        ids = [first]
        for _ in range(4):
            await bench.call("cancel_task", ann, task_id=ids[-1])
            ids.append(await given(bench, ann, bob))
            await trio.testing.wait_all_tasks_blocked()
        kept = await bench.store.find("taskmark", "done", lane_name(str(ann.agent), str(bob.agent)))
        assert len(kept) == 2
        assert code(await bench.call("get_task", ann, task_id=first)) == "not_found"
        assert (await bench.call("get_task", ann, task_id=ids[3]))["task"]["state"] == "canceled"


@pytest.mark.requirement("network.a2a.limits")
async def test_of_tasks_that_are_given_at_once_no_more_than_the_bound_begin() -> None:
    async with open_bench(tuned(network={"tasks_open": 2})) as bench:
        ann, bob = await pair(bench)
        codes: list[str] = []

        async def send() -> None:
            codes.append(code(await give(bench, ann, bob)))

        async with trio.open_nursery() as nursery:
            for _ in range(6):
                nursery.start_soon(send)
        assert sorted(codes) == ["accepted"] * 2 + ["quota_exceeded"] * 4


@pytest.mark.requirement("network.a2a.limits")
async def test_what_is_nested_so_deep_that_nobody_could_read_it_is_not_written(bench: Bench) -> None:
    """A row that can't be read would take the lists of its target with it."""
    ann, bob = await pair(bench)
    for depth in (33, 900, 985, 5_000):
        deep = b'{"target_agent_id":"%b","parts":[{"data":%b}]}' % (
            str(bob.agent).encode(),
            b"[" * depth + b"]" * depth,
        )
        answer = await bench.broker.call(ann, "send_task", deep)
        assert (code(answer), answer.detail["path"][:5]) == ("bad_request", "parts")
    task_id = await given(bench, ann, bob)
    assert [each["task"]["task_id"] for each in (await bench.call("list_tasks", bob))["tasks"]] == [task_id]


@pytest.mark.requirement("network.a2a.limits")
async def test_a_task_changes_so_many_times_and_can_still_be_ended(bench: Bench, monkeypatch: Any) -> None:
    monkeypatch.setattr("broker.core.task.CHANGES", 3)
    assert CHANGES > 3
    ann, bob = await pair(bench)
    task_id = await given(bench, ann, bob)
    answers = [await bench.call("update_task", bob, task_id=task_id, status="working") for _ in range(3)]
    assert [code(each) for each in answers] == ["accepted", "accepted", "quota_exceeded"]
    done = await bench.call("complete_task", bob, task_id=task_id, outcome="completed", text="done")
    assert code(done) == "accepted"


@pytest.mark.requirement("network.a2a.kept")
async def test_a_task_that_nobody_answers_fails_and_is_forgotten(autojump_clock: Any) -> None:
    async with open_bench(tuned(network={"task_days": 0.001})) as bench:
        ann, bob = await pair(bench)
        task_id = await given(bench, ann, bob)
        await trio.sleep(80)
        assert (await bench.call("get_task", ann, task_id=task_id))["task"]["state"] == "submitted"
        await trio.sleep(10)
        failed = await bench.call("get_task", ann, task_id=task_id)
        assert failed["task"]["state"] == "failed"
        assert (await told(bench, ann, "task"))[-1]["by"] == "network"
        await trio.sleep(90)
        assert code(await bench.call("get_task", ann, task_id=task_id)) == "not_found"
        assert (await bench.call("list_tasks", bob))["tasks"] == []
        assert await bench.store.find("taskmark", "in", str(bob.agent)) == []


@pytest.mark.requirement("network.a2a.loop")
async def test_agents_that_give_each_other_tasks_by_themselves_are_stopped(bench: Bench) -> None:
    ann, bob = await pair(bench)
    sides = [(ann, bob), (bob, ann)]
    answers = [await give(bench, *sides[n % 2]) for n in range(50)]
    assert [code(each) for each in answers] == ["accepted"] * 49 + ["quota_exceeded"]
    assert answers[-1].detail["reason"] == "loop"
    for caller in (ann, bob):
        assert [each["what"] for each in await told(bench, caller, "notice")] == ["loop"]


@pytest.mark.requirement("network.a2a.loop")
async def test_questions_and_answers_without_end_are_stopped_and_results_are_none() -> None:
    async with open_bench(tuned(network={"loop_messages": 6})) as bench:
        ann, bob = await pair(bench)
        for _ in range(8):  # one after the other: each is a topic of Ann's own
            task_id = (await give(bench, ann, bob))["task"]["task_id"]
            done = await bench.call("complete_task", bob, task_id=task_id, outcome="completed", text="x")
            assert (code(done), done["task"]["hops"]) == ("accepted", 0)
        task_id = (await give(bench, ann, bob))["task"]["task_id"]
        hops = []
        while True:
            asked = await bench.call("update_task", bob, task_id=task_id, status="input-required", text="?")
            assert code(asked) == "accepted"
            answer = await give(bench, ann, bob, "so", task_id=task_id)
            if code(answer) != "accepted":
                break
            hops.append(answer["task"]["hops"])
        assert isinstance(answer, Refusal)
        assert (answer.detail["reason"], hops) == ("loop", [2, 4])
