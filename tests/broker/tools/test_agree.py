"""What a CALL must agree with: its form, its desks, the operators."""

from typing import Any

import pytest

from broker.tools.agree import call_form, desks_agree, disagree, suspended
from broker.wire.envelope import Envelope, bootstrap
from broker.wire.refusals import Refusal
from tests.support.broker import Bench

WIRE = "f" * 64


def call(**changes: Any) -> Envelope:
    conv = "a1b2c3d4e5f6a7b8"
    members: dict[str, Any] = {
        "conv": conv,
        "n": 0,
        "type": "CALL",
        "sender": "a" * 64,
        "to": "b" * 64,
        "ts": 1,
        "prev_sig": bootstrap(conv),  # type: ignore[arg-type]  # a conv as it stands in a vector
        "body": {"code_from": "ALFA", "code_to": "BRAV"},
        "canonical": b"{}",
    }
    return Envelope(**{**members, **changes})


@pytest.mark.requirement("order.params-agree")
@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({}, None),
        ({"body": {"code_from": "ALFA", "code_to": "BRAV", "wire": WIRE}}, None),
        ({"body": {"code_from": "ALFA"}}, "body.code_to"),
        ({"body": {"code_from": "alfa", "code_to": "BRAV"}}, "body.code_from"),
        ({"n": 1}, "n"),
        ({"type": "RFQ"}, "type"),
        ({"body": {"code_from": "ALFA", "code_to": "BRAV", "wire": None}}, "body.wire"),
    ],
)
def test_a_call_has_the_form_of_a_call_to_this_wire(changes: dict[str, Any], path: str | None) -> None:
    fault = call_form(call(**changes), (WIRE,))
    assert (fault and fault.detail["path"]) == path


@pytest.mark.requirement("order.call-desks")
async def test_the_first_desk_that_disagrees_is_named(bench: Bench) -> None:
    alfa, brav = await bench.open("ALFA"), await bench.open("BRAV")
    services = bench.broker._services
    assert await desks_agree(services, call(sender=alfa.pk, to=brav.pk)) is None
    for changes, code, path in (
        ({"body": {"code_from": "ZULU", "code_to": "BRAV"}}, "unknown_desk", None),
        ({"body": {"code_from": "ALFA", "code_to": "ZULU"}}, "unknown_desk", None),
        ({"sender": brav.pk}, "bad_envelope", "body.code_from"),
        ({"to": alfa.pk}, "bad_envelope", "to"),
    ):
        fault = await desks_agree(services, call(**{"sender": alfa.pk, "to": brav.pk, **changes}))
        assert isinstance(fault, Refusal)
        assert (fault.code, fault.detail.get("path")) == (code, path)


@pytest.mark.requirement("order.call-desks")
async def test_desks_that_are_live_answer_for_themselves_and_for_no_longer_than_they_hold_their_codes(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    alfa, brav = await bench.open("ALFA"), await bench.open("BRAV")
    services, asked = bench.broker._services, call(sender=alfa.pk, to=brav.pk)
    looked_up: list[str] = []
    get = services.store.get

    async def counted(kind: str, id: str) -> Any:
        looked_up.append(kind)
        return await get(kind, id)

    monkeypatch.setattr(services.store, "get", counted)
    assert await desks_agree(services, asked) is None
    assert looked_up == []
    for party, code in ((alfa, "ALFA"), (brav, "BRAV")):
        closed = party.statement("close_desk", bench.broker.pk, bench.ts, code=code)
        await bench.call("close_desk", **closed)
        looked_up.clear()
        fault = await desks_agree(services, asked)
        assert (fault and fault.detail) == {"code_asked": "ALFA"}
        assert looked_up


@pytest.mark.requirement("order.call-desks")
async def test_a_live_desk_whose_code_has_lapsed_answers_to_it_no_more(bench: Bench) -> None:
    alfa, brav = await bench.open("ALFA"), await bench.open("BRAV")
    services, asked = bench.broker._services, call(sender=alfa.pk, to=brav.pk)
    bench.clock.step(services.settings.desks.lapse_days * 86_400_000)
    fault = await desks_agree(services, asked)
    assert isinstance(fault, Refusal)
    assert (fault.code, fault.detail) == ("unknown_desk", {"code_asked": "ALFA"})


@pytest.mark.requirement("order.suspended")
async def test_a_suspended_key_may_send_an_end_alone(bench: Bench) -> None:
    alfa = await bench.open("ALFA")
    services = bench.broker._services
    services.suspended.add(alfa.pk)
    assert suspended(services, call(sender=alfa.pk)) is not None
    assert suspended(services, call(to=alfa.pk)) is not None
    assert suspended(services, call(n=2, type="RFQ", sender=alfa.pk)) is not None
    assert suspended(services, call(n=2, type="RFQ", to=alfa.pk)) is None
    assert suspended(services, call(n=2, type="END", sender=alfa.pk)) is None


def test_a_disagreement_names_its_member() -> None:
    assert disagree("n", "no").detail == {"path": "n"}
