"""A wrong id is told by its param, with the list that has the right ones (network.md, Operator tools)."""

from typing import Any, Final

import msgspec
import pytest

from broker.app import AREAS
from broker.tools.registry import collect
from broker.wire.keys import SigningKey
from broker.wire.refusals import Refusal
from tests.support.agents import make_agent
from tests.support.broker import Bench, Party
from tests.support.registration import OPERATOR, jwk
from tests.support.signin import new_owner

assert AREAS
ULID: Final = "01KVY19F5JERCW57K0QBWQ1Y7N"
MISSING: Final = {
    "agent_id": f"ag_{ULID}",
    "from_agent_id": f"ag_{ULID}",
    "to_agent_id": f"ag_{ULID}",
    "owner_agent_id": f"ag_{ULID}",
    "new_owner_agent_id": f"ag_{ULID}",
    "owner_id": f"ow_{ULID}",
    "report_id": f"rp_{ULID}",
    "channel_id": f"ch_{ULID}",
    "kid": "kid-none",
    "code": "NONE",
    "conv": "f" * 16,
}
"""An id of each kind that nothing has. (`target_agent_id` of list_reports may name one that is gone.)"""
KEY: Final = SigningKey.generate()


def given(bench: Bench, agent_id: str, town: str) -> dict[str, Any]:
    """A good value of each param that is required."""
    proof = Party("", KEY).statement("bind_key", bench.broker.pk, bench.ts, agent_id=agent_id)
    return {
        "agent_id": agent_id,
        "from_agent_id": agent_id,
        "owner_agent_id": agent_id,
        "new_owner_agent_id": agent_id,
        "channel_id": town,
        "public_key": jwk(KEY),
        "proof": proof,
        "name": "another",
        "kid": MISSING["kid"],
        "reason": "spam",
        "outcome": "other",
        "network": "libera",
        "nick": "ann",
        "email": "ann@x.example",
    }


CASES: Final = [
    (name, param)
    for name, tool in sorted(collect("operator").items())
    for param in tool.params
    if param in MISSING
]


@pytest.mark.requirement("moderation.wrong-ids")
@pytest.mark.parametrize(("name", "param"), CASES)
async def test_a_wrong_id_is_named_with_where_the_right_ones_are(bench: Bench, name: str, param: str) -> None:
    ann, bob = await make_agent(bench, "Ann"), await make_agent(bench, "Bob")
    town = (await bench.call("create_channel", ann, name="town"))["channel_id"]
    good = {
        **given(bench, str(ann.agent), town),
        "to_agent_id": bob.agent,
        "owner_id": await new_owner(bench),
    }
    params = {
        each: good[each]
        for each, made in collect("operator")[name].params.items()
        if made.required and each in good
    }
    params[param] = MISSING[param]
    if name == "add_agent_public_key":
        party = Party("", KEY)
        params["proof"] = party.statement("bind_key", bench.broker.pk, bench.ts, agent_id=MISSING[param])
    answer = await bench.call(name, OPERATOR, **params)
    assert isinstance(answer, Refusal), msgspec.to_builtins(answer)
    assert answer.code in ("not_found", "unknown_desk", "unknown_conv")
    assert answer.detail["path"] == param
    assert "list_" in answer.message


def test_there_are_cases_for_most_tools() -> None:
    assert len({name for name, _ in CASES}) > 18
