"""Where what becomes of a task is pushed to (network.md, A2A)."""

import json
from typing import Any

import pytest

from broker.app import Caller
from tests.support.agents import make_agent
from tests.support.broker import Bench, code
from tests.support.pairs import agree

URL = "https://hooks.a2a-agents.org/x"


@pytest.fixture
async def given(bench: Bench) -> tuple[Caller, Caller, str]:
    ann, bob = await make_agent(bench, "Ann"), await make_agent(bench, "Bob")
    await agree(bench, ann, bob, scopes=["task"])
    made = await bench.call("send_task", ann, target_agent_id=bob.agent, text="x")
    return ann, bob, made["task"]["task_id"]


@pytest.mark.requirement("network.a2a.push")
async def test_what_the_receiver_knows_us_by_is_kept_sealed(
    bench: Bench, given: tuple[Caller, Caller, str]
) -> None:
    ann, _, task_id = given
    made = await bench.call(
        "set_task_push", ann, task_id=task_id, url=URL, config_id="c1", token="t0ken", scheme="Bearer",
        credentials="s3cret",
    )  # fmt: skip
    assert made == {
        "task_id": task_id, "config_id": "c1", "url": URL, "scheme": "Bearer", "state": "active",
    }  # fmt: skip
    document = await bench.store.get("push", f"{task_id}.c1")
    assert document is not None
    assert b"t0ken" not in document.doc
    assert b"s3cret" not in document.doc
    assert json.loads(document.doc)["position"] == 1  # what was before is not sent
    assert (await bench.call("list_task_pushes", ann, task_id=task_id))["pushes"] == [made]


@pytest.mark.requirement("network.a2a.push")
async def test_a_task_has_five_pushes_and_the_same_one_again_is_no_other(
    bench: Bench, given: tuple[Caller, Caller, str]
) -> None:
    ann, _, task_id = given
    codes = [
        code(await bench.call("set_task_push", ann, task_id=task_id, url=f"{URL}{n}", config_id=f"c{n}"))
        for n in range(6)
    ]
    assert codes == ["accepted"] * 5 + ["quota_exceeded"]
    moved = await bench.call("set_task_push", ann, task_id=task_id, url=f"{URL}9", config_id="c0")
    assert moved["url"] == f"{URL}9"
    for _ in range(2):
        gone = await bench.call("delete_task_push", ann, task_id=task_id, config_id="c0")
        assert gone == {"task_id": task_id, "config_id": "c0", "deleted": True}
    assert code(await bench.call("set_task_push", ann, task_id=task_id, url=URL)) == "accepted"


@pytest.mark.requirement("network.a2a.push")
async def test_a_task_s_pushes_begin_ten_times_a_minute(
    bench: Bench, given: tuple[Caller, Caller, str]
) -> None:
    """Each is an attempt at once, at an address that others own."""
    ann, _, task_id = given
    params = {"task_id": task_id, "url": URL, "config_id": "c1"}
    codes = [code(await bench.call("set_task_push", ann, **params)) for _ in range(12)]
    assert codes == ["accepted"] * 10 + ["rate_limited"] * 2


@pytest.mark.requirement("network.a2a.push")
@pytest.mark.parametrize(
    "params",
    [
        {"url": "http://x.org/"},
        {"url": "https://x.org:22/"},
        {"url": URL, "credentials": "c"},
        {"url": URL, "scheme": "Bearer\r\nx: y"},
        {"url": URL, "scheme": "Bearer", "credentials": "a\r\nx: y"},
        {"url": URL, "token": "a\nb"},
        {"url": URL, "config_id": "a.b"},
    ],
)
async def test_what_could_not_be_sent_is_refused(
    bench: Bench, given: tuple[Caller, Caller, str], params: dict[str, Any]
) -> None:
    ann, _, task_id = given
    assert code(await bench.call("set_task_push", ann, task_id=task_id, **params)) == "bad_request"
    assert (await bench.call("list_task_pushes", ann, task_id=task_id))["pushes"] == []


@pytest.mark.requirement("network.a2a.foreign", "network.a2a.push")
async def test_pushes_are_for_who_gave_the_task_and_has_an_owner(
    bench: Bench, given: tuple[Caller, Caller, str]
) -> None:
    ann, bob, task_id = given
    await bench.call("set_task_push", ann, task_id=task_id, url=URL, config_id="c1")
    for name, params in (
        ("set_task_push", {"url": URL}),
        ("list_task_pushes", {}),
        ("delete_task_push", {"config_id": "c1"}),
    ):
        foreign = await bench.call(name, bob, task_id=task_id, **params)
        assert foreign == await bench.call(name, bob, task_id="tk_none", **params)
        assert code(foreign) == "not_found"
    ends = bench.clock.now_ms() + 10_000
    young = await make_agent(bench, "Young", tier="unclaimed", expires_at=ends)
    await agree(bench, young, bob, scopes=["task"])
    made = await bench.call("send_task", young, target_agent_id=bob.agent, text="x")
    refused = await bench.call("set_task_push", young, task_id=made["task"]["task_id"], url=URL)
    assert (code(refused), refused.detail["reason"]) == ("quota_exceeded", "webhook")
