"""Which error of A2A a refusal is (A2A specification 1.0, 5.4 and 9.5)."""

import json

import pytest

from broker.wire.refusals import CODES, refuse
from gateways.a2a import errors


@pytest.mark.requirement("network.a2a.errors")
@pytest.mark.parametrize("code", CODES)
def test_every_refusal_is_an_error_with_typed_data(code: str) -> None:
    fault = errors.of_refusal(refuse(code, "no", limit=3, domain="x"))
    shown = json.loads(fault.reply(1))["error"]
    assert shown["code"] in (-32000, -32001, -32602)
    assert all(each["@type"].startswith("type.googleapis.com/google.rpc.") for each in shown["data"])
    assert shown["message"]


@pytest.mark.requirement("network.a2a.errors")
def test_members_of_a_refusal_are_told_as_texts_whatever_they_are_called() -> None:
    fault = errors.of_refusal(refuse("quota_exceeded", "no", reason="loop", hops=7))
    assert fault.data[0]["metadata"] == {"reason": "loop", "hops": "7"}
    assert (fault.data[0]["reason"], fault.data[0]["domain"]) == ("QUOTA_EXCEEDED", "turret")


@pytest.mark.requirement("network.a2a.errors")
def test_what_is_over_is_not_cancelable_or_not_supported() -> None:
    over = refuse("bad_request", "over", state="failed")
    assert errors.of_refusal(over).code == -32004
    assert errors.of_refusal(over, canceling=True).code == -32002


def test_a_place_is_named_as_the_client_named_it() -> None:
    fault = errors.of_refusal(refuse("bad_request", "no", path="context_id"))
    assert fault.data[0]["fieldViolations"] == [{"field": "message.contextId", "description": "no"}]
