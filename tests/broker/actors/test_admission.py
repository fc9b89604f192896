"""New work that has waited too long is refused at once; a burst is none, and neither is a silence."""

from typing import Any

import msgspec
import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from broker.actors.admission import Admission
from broker.wire.envelope import build
from broker.wire.refusals import Refusal
from tests.support.broker import ANYONE, PATIENT_S, Bench, Line, code, open_bench
from tests.support.ws import Client, open_port, request

LATE_S = 0.04
BURST_S = LATE_S * 2 - 0.0001


def asked(admission: Admission, waited: float) -> bool:
    """Whether something is taken that could have been read `waited` seconds ago."""
    admission.since = trio.current_time() - waited
    taken = admission.refuse(0.0) is None
    admission.since = None
    return taken


@pytest.mark.requirement("faults.overload")
async def test_a_burst_is_taken_and_what_goes_on_is_held_to_the_time(mock_clock: MockClock) -> None:
    admission = Admission(LATE_S)
    for _ in range(8):  # 80 ms of lateness
        assert asked(admission, BURST_S)
        assert not asked(admission, BURST_S + 0.001)
        mock_clock.jump(0.01)
    mock_clock.jump(0.001)
    assert not asked(admission, LATE_S + 0.001)
    assert asked(admission, LATE_S - 0.001)
    assert admission.refused == 9


@pytest.mark.requirement("faults.overload-ends")
async def test_one_that_was_in_time_ends_no_overload_but_twice_the_time_does(mock_clock: MockClock) -> None:
    admission = Admission(LATE_S)
    for _ in range(10):
        asked(admission, LATE_S)
        mock_clock.jump(0.01)
    assert asked(admission, 0.0)
    assert not asked(admission, LATE_S + 0.001)
    mock_clock.jump(0.081)
    assert asked(admission, 0.0)
    assert asked(admission, BURST_S)


async def test_rare_stalls_are_no_overload(mock_clock: MockClock) -> None:
    admission = Admission(LATE_S)
    for _ in range(100):
        assert asked(admission, BURST_S)
        mock_clock.jump(0.1)


async def test_who_does_not_know_goes_by_the_turn_and_by_the_line(mock_clock: MockClock) -> None:
    admission = Admission(LATE_S)
    trio.lowlevel.add_instrument(admission)
    try:
        await wait_all_tasks_blocked()
        assert admission.refuse(0.0) is None
        mock_clock.jump(0.081)  # a long turn
        refused = admission.refuse(0.0)
        assert isinstance(refused, Refusal)
        assert (refused.code, refused.retryable, refused.detail) == (
            "overloaded",
            True,
            {"retry_after_ms": 250},
        )
        await trio.lowlevel.checkpoint()
        assert admission.refuse(0.0) is None
        assert admission.refuse(0.081) is not None
    finally:
        trio.lowlevel.remove_instrument(admission)


async def test_the_brokers_own_is_told_of_each_turn(bench: Bench, mock_clock: MockClock) -> None:
    line = await bench.connect(await bench.open("ALFA"), await bench.open("BRAV"))
    mock_clock.jump(3600)
    await trio.lowlevel.checkpoint()
    assert code(await line.send("RFQ")) == "accepted"


async def late(bench: Bench, name: str, **params: Any) -> Any:
    """Call a tool with what has waited for hours."""
    admission = bench.broker.admission
    real = admission.refuse

    def refuse(line_s: float) -> Refusal | None:
        return real(line_s + 3 * PATIENT_S)

    admission.refuse = refuse  # type: ignore[method-assign]
    try:
        return await bench.call(name, ANYONE, **params)
    finally:
        admission.refuse = real  # type: ignore[method-assign]


@pytest.mark.requirement("faults.overload", "faults.overload-again")
async def test_new_envelopes_are_refused_and_the_same_bytes_are_taken_later(bench: Bench) -> None:
    alfa, brav = await bench.open("ALFA"), await bench.open("BRAV")
    calling = bench.calling(alfa, brav)
    assert code(await late(bench, "send_call", **calling)) == "overloaded"
    first = await bench.call("send_call", **calling)
    line = Line(bench, calling["envelope"]["conv"], alfa, brav, calling["sig"])
    for kind in ("PICKUP", "RFQ", "QUOTE"):
        params = line.next(kind)
        assert code(await late(bench, "send_env", **params)) == "overloaded"
        assert code(await bench.call("send_env", **params)) == "accepted"
        line.n, line.sig = params["n"], params["sig"]
    assert (await late(bench, "send_call", **calling)) == {**first, "replayed": True}
    assert (await late(bench, "send_env", **params))["replayed"]
    assert code(await late(bench, "send_env", **line.next("END"))) == "accepted"


@pytest.mark.requirement("faults.overload")
async def test_the_form_is_judged_first_and_nothing_is_told_of_what_follows(bench: Bench) -> None:
    line = await bench.connect(await bench.open("ALFA"), await bench.open("BRAV"))
    params = line.next("RFQ")
    assert code(await late(bench, "send_env", **{**params, "n": 0})) == "bad_envelope"
    assert code(await late(bench, "send_env", **{**params, "from_pk": line.called.pk})) == "bad_envelope"
    forged = {**params, "sig": "0" * 128}
    assert code(await late(bench, "send_env", **forged)) == "overloaded"
    far = line.next("RFQ", n=99)
    assert code(await late(bench, "send_env", **far)) == "overloaded"
    assert code(await bench.call("send_env", **far)) == "conflict"


@pytest.mark.requirement("faults.overload")
async def test_the_way_without_waiting_refuses_and_takes_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_bench() as bench, open_port(bench.broker, sockets=True) as port:
        line = await bench.connect(await bench.open("ALFA"), await bench.open("BRAV"))
        client: Client = await port.dial()
        admission = bench.broker.admission
        real = admission.refuse
        seen: list[float | None] = []

        def refuse(line_s: float) -> Refusal | None:
            seen.append(admission.since)
            return real(line_s + 3 * PATIENT_S)

        monkeypatch.setattr(admission, "refuse", refuse)
        params = line.next("RFQ")
        await client.send(quick(1, params))
        answer = await client.receive()
        assert answer["error"]["data"]["code"] == "overloaded"
        assert len(seen) == 1
        assert seen[0] is not None, "the port knows since when it could read"
        assert 0 <= trio.current_time() - seen[0] < 5
        await client.send(quick(2, line.next("END")))
        assert "result" in await client.receive()
        assert len(seen) == 1
        await client.send(request(3, "ping"))
        assert "result" in await client.receive()
        assert admission.since is None


def quick(id: int, params: dict[str, Any]) -> bytes:
    """A send_env as it is usually written: canonical, without white space."""
    members = {("sender" if name == "from" else name): value for name, value in params["envelope"].items()}
    given = {**params, "envelope": msgspec.Raw(build(**members))}
    return msgspec.json.encode({"jsonrpc": "2.0", "id": id, "method": "send_env", "params": given})


def test_it_may_be_made_before_there_is_a_loop() -> None:
    assert Admission(0.1).refused == 0
