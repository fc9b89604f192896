"""The gate: whose token passes at the doors beside MCP, and what the others are told."""

import pytest

from broker.app import Caller
from broker.wire.refusals import Refusal, refuse
from gateways.gate import LONGEST, refused
from tests.support.broker_fake import FakeBroker
from tests.support.tokens import ORIGIN, agent_of, gate_of

WAY = f'Bearer resource_metadata="{ORIGIN}/.well-known/oauth-protected-resource/mcp"'


def asking(**headers: str) -> dict[str, object]:
    return {"headers": [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]}


@pytest.mark.requirement("doors.audience")
@pytest.mark.parametrize("aud", [f"{ORIGIN}/mcp", f"{ORIGIN}/mcp/", ORIGIN, f"{ORIGIN}/"])
async def test_a_token_for_the_endpoint_or_the_origin_makes_the_caller_what_it_says(aud: str) -> None:
    gate, bearers = gate_of(FakeBroker())
    bearers.give("t", agent_of("ag_1", until=99), aud=aud)
    here = Caller(address="192.0.2.7", loopback=False)
    found = await gate.admit(here, "t")
    assert found == agent_of("ag_1", until=99, address="192.0.2.7", loopback=False)


@pytest.mark.requirement("doors.audience")
@pytest.mark.parametrize(
    "aud", [f"{ORIGIN}/mcp/network", f"{ORIGIN}/mcp/arena", "https://else.example/mcp", ""]
)
async def test_a_token_for_one_face_or_for_somebody_else_passes_no_other_door(aud: str) -> None:
    gate, bearers = gate_of(FakeBroker())
    bearers.give("t", agent_of(), aud=aud)
    found = await gate.admit(Caller(), "t")
    assert isinstance(found, Refusal)
    assert found.code == "unauthenticated"


@pytest.mark.requirement("doors.hostile-tokens")
@pytest.mark.parametrize(
    "token",
    [
        "",
        " ",
        "a b",
        "a\r\nset-cookie: x",
        "a,b",
        "a\0",
        "é",
        "=",
        "a" * (LONGEST + 1),
        "a" * LONGEST + "=",
        "a\n",
    ],
)
async def test_what_can_not_be_a_token_is_bad_and_asks_nobody(token: str) -> None:
    gate, bearers = gate_of(FakeBroker())
    found = await gate.admit(Caller(), token)
    assert isinstance(found, Refusal)
    assert (found.code, bearers.asked) == ("unauthenticated", [])
    assert len(token) < 3 or token not in found.message


@pytest.mark.requirement("doors.standing")
async def test_whose_subject_may_not_speak_now_does_not_pass() -> None:
    broker = FakeBroker()
    gate, bearers = gate_of(broker)
    bearers.give("t", agent_of("ag_1"))
    broker.lose("ag_1", refuse("suspended", "no"))
    found = await gate.admit(Caller(), "t")
    assert isinstance(found, Refusal)
    assert found.code == "suspended"


@pytest.mark.requirement("doors.challenge")
def test_each_refusal_for_want_of_a_token_names_the_way_to_one_first() -> None:
    gate, _ = gate_of(FakeBroker())
    host = {"host": "127.0.0.1:8766"}
    no = refuse("unauthenticated", "no", scope="message")
    ways = [
        value.decode() for name, value in refused(no, asking(**host), gate)[1] if name == b"www-authenticate"
    ]
    every = 'scope="profile contacts message channel task resource arena trial"'
    assert ways == [f"{WAY}, {every}", "Turret"], "all at once, so that nobody comes for one after the other"
    shown = asking(**host, authorization="bearer x")
    assert gate.challenge(no, shown) == f'{WAY}, error="invalid_token", {every}'
    poor = refuse("insufficient_scope", "no", scope="channel")
    assert gate.challenge(poor, shown) == f'{WAY}, error="insufficient_scope", scope="channel"'
    plain = gate.challenge(refuse("bad_statement", "no"), asking())
    assert plain is not None
    assert plain.startswith(f"{WAY}, scope=")
    for code in ("suspended", "not_found", "unavailable"):
        assert gate.challenge(refuse(code, "no"), shown) is None
    assert b"Bearer" not in b"".join(value for _, value in refused(no, shown, None)[1])
