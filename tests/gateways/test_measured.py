"""Every call is counted and timed, by tool and outcome."""

import json
from types import SimpleNamespace

import pytest
import trio

from broker.app import Caller
from broker.wire.refusals import Refusal, refuse
from gateways.measured import measured
from gateways.metrics import Metrics
from gateways.quick import Started, quick_reader
from tests.gateways.test_metrics import samples
from tests.support.broker import Bench
from tests.support.broker_fake import FakeBroker, FakeTool


@pytest.mark.requirement("http.metrics")
async def test_calls_are_counted_by_tool_and_outcome() -> None:
    broker = FakeBroker()
    metrics = Metrics(broker)  # type: ignore[arg-type]
    door = measured(broker, metrics)  # type: ignore[arg-type]
    assert await door.call(Caller(), "echo", b'{"a":1}') == {"echo": {"a": 1}}
    broker.answers["echo"] = refuse("conflict", "taken")
    await door.call(Caller(), "echo", b"{}")
    await door.call(Caller(), "echo", b"{}")
    broker.answers["echo"] = RuntimeError()
    with pytest.raises(RuntimeError):
        await door.call(Caller(), "echo", b"{}")
    found = samples(metrics)
    assert found["turret_tool_calls_total", "echo", "ok"] == 1
    assert found["turret_tool_calls_total", "echo", "conflict"] == 2
    assert found["turret_tool_calls_total", "echo", "fault"] == 1
    assert found["turret_tool_call_seconds_count", "echo"] == 4


async def test_a_call_that_is_given_up_counts_as_such(autojump_clock: trio.testing.MockClock) -> None:
    broker = FakeBroker()

    async def wait(*_: object) -> None:
        await trio.sleep_forever()

    broker.answers["echo"] = wait
    metrics = Metrics(broker)  # type: ignore[arg-type]
    with trio.move_on_after(2):
        await measured(broker, metrics).call(Caller(), "echo", b"{}")  # type: ignore[arg-type]
    found = samples(metrics)
    assert found["turret_tool_calls_total", "echo", "cancelled"] == 1
    assert found["turret_tool_call_seconds_sum", "echo"] == 2


@pytest.mark.requirement("http.metrics")
async def test_names_that_clients_choose_are_no_labels() -> None:
    broker = FakeBroker()
    metrics = Metrics(broker)  # type: ignore[arg-type]
    with pytest.raises(LookupError):
        await measured(broker, metrics).call(Caller(), "a1b2c3d4e5f6a7b8", b"{}")  # type: ignore[arg-type]
    assert b"a1b2c3d4e5f6a7b8" not in metrics.text()


async def test_the_measured_broker_is_the_broker_in_all_else() -> None:
    broker = FakeBroker()
    door = measured(broker, Metrics(broker))  # type: ignore[arg-type]
    assert door.settings is broker.settings
    assert door.wire_info() == broker.wire_info()


@pytest.mark.requirement("observe.envelopes")
async def test_envelopes_are_counted_by_what_became_of_them(bench: Bench) -> None:
    metrics = Metrics(bench.broker)
    door = measured(bench.broker, metrics)
    alfa, brav = await bench.open("ALFA"), await bench.open("BRAV")
    line = await bench.dial(alfa, brav)
    bench.broker = door
    pickup = line.next("PICKUP")
    await bench.call("send_env", **pickup)
    await bench.call("send_env", **pickup)
    await bench.call("send_env", **{**pickup, "sig": "0" * 128})
    found = samples(metrics)
    assert found["turret_envelopes_total", "accepted"] == 1
    assert found["turret_envelopes_total", "duplicate"] == 1
    assert found["turret_envelopes_total", "bad_signature"] == 1
    assert found["turret_acknowledgement_seconds_count",] == 1
    assert found["turret_tool_calls_total", "send_env", "duplicate"] == 1


@pytest.mark.requirement("observe.envelopes")
async def test_an_acknowledgement_is_timed_from_when_its_frame_could_be_read(bench: Bench) -> None:
    metrics = Metrics(bench.broker)
    door = measured(bench.broker, metrics)
    alfa, brav = await bench.open("ALFA"), await bench.open("BRAV")
    line = await bench.dial(alfa, brav)
    assert not isinstance(await line.send("PICKUP"), Refusal)
    params = json.dumps(line.next("RFQ", {"px": "1"}), separators=(",", ":"))
    frame = b'{"jsonrpc":"2.0","id":1,"method":"send_env","params":%b}' % params.encode()
    started = quick_reader(bench.broker).read(frame)
    assert isinstance(started, Started)
    answers: list[object] = []
    bench.broker.admission.since = trio.current_time() - 0.25
    assert door.begin(Caller(), started.tool, started.arguments, answers.append)
    bench.broker.admission.since = None
    with trio.fail_after(5):
        while not answers:
            await trio.lowlevel.checkpoint()
    found = samples(metrics)
    assert found["turret_acknowledgement_seconds_count",] == 1
    assert found["turret_acknowledgement_seconds_sum",] >= 0.25


@pytest.mark.requirement("observe.sign-ins")
async def test_steps_of_sign_ins_are_counted_by_outcome(bench: Bench) -> None:
    metrics = Metrics(bench.broker)
    door = measured(bench.broker, metrics)
    answer = await door.signin(
        Caller(), "sign_in", b'{"email":"a@b.example","password":"wrong horse battery"}'
    )
    assert isinstance(answer, Refusal)
    assert samples(metrics)["turret_sign_ins_total", "sign_in", answer.code] == 1


@pytest.mark.requirement("observe.operators")
async def test_operators_calls_are_counted_too(bench: Bench) -> None:
    metrics = Metrics(bench.broker)
    door = measured(bench.broker, metrics)
    await door.call(Caller(operator=True), "list_suspended_agents", b"{}")
    assert samples(metrics)["turret_tool_calls_total", "list_suspended_agents", "ok"] == 1


@pytest.mark.requirement("observe.operators")
async def test_what_the_last_verification_of_the_audit_found_is_a_figure() -> None:
    broker = FakeBroker()
    broker.tools["verify_audit_log"] = FakeTool(name="verify_audit_log", face="operator")
    metrics = Metrics(broker)  # type: ignore[arg-type]
    door = measured(broker, metrics)  # type: ignore[arg-type]
    assert ("turret_audit_intact",) not in samples(metrics)
    for ok in (True, False):
        broker.answers["verify_audit_log"] = SimpleNamespace(ok=ok)
        await door.call(Caller(operator=True), "verify_audit_log", b"{}")
        assert samples(metrics)["turret_audit_intact",] == int(ok)
    broker.answers["verify_audit_log"] = refuse("unavailable", "not now")
    await door.call(Caller(operator=True), "verify_audit_log", b"{}")
    assert samples(metrics)["turret_audit_intact",] == 0
