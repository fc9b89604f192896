"""Who the operators' port lets in."""

import pytest

from broker.actors.attempts import OPERATORS
from broker.app import Caller
from broker.wire.refusals import Refusal
from gateways.operator.gate import BAD_TOKEN, NO_TOKEN, OperatorGate
from gateways.operator.token import OperatorToken
from tests.support.broker import STRANGER, Bench
from tests.support.operators import TOKEN


@pytest.fixture
def gate(bench: Bench) -> OperatorGate:
    return OperatorGate(bench.broker, OperatorToken(TOKEN))


def shown(*headers: str) -> dict[str, object]:
    """A request's scope with these Authorization headers."""
    raw = [(b"authorization", header.encode("latin-1")) for header in headers]
    return {"type": "http", "client": ("127.0.0.1", 5), "headers": raw}


def refused(found: Caller | Refusal) -> tuple[str, int]:
    assert isinstance(found, Refusal), "let in"
    return found.code, found.status


@pytest.mark.requirement("operator.gate")
@pytest.mark.parametrize("header", [f"Bearer {TOKEN}", f"bearer   {TOKEN} "])
async def test_the_token_makes_an_operator_of_who_shows_it(gate: OperatorGate, header: str) -> None:
    found = await gate.identify(shown(header))
    assert isinstance(found, Caller)
    assert (found.operator, found.address, found.loopback, found.principal) == (True, "127.0.0.1", True, None)


@pytest.mark.requirement("operator.gate")
@pytest.mark.parametrize(
    "header", ["", TOKEN, f"Basic {TOKEN}", f"Turret {TOKEN}", "Bearer", f"Bearer{TOKEN}"]
)
async def test_who_shows_no_token_is_told_which_one_it_takes(gate: OperatorGate, header: str) -> None:
    found = await gate.identify(shown(*([header] if header else [])))
    assert refused(found) == ("unauthenticated", 401)
    assert found in (NO_TOKEN, BAD_TOKEN)


@pytest.mark.requirement("operator.gate")
@pytest.mark.parametrize("token", [TOKEN[:-1], TOKEN + "x", TOKEN.lower(), "é" * 40, f"{TOKEN} {TOKEN}"])
async def test_a_token_that_is_nearly_right_is_wrong(gate: OperatorGate, token: str) -> None:
    assert await gate.identify(shown(f"Bearer {token}")) is BAD_TOKEN


@pytest.mark.requirement("operator.gate")
async def test_two_headers_are_none(gate: OperatorGate) -> None:
    found = await gate.identify(shown("Bearer x", f"Bearer {TOKEN}"))
    assert refused(found) == ("bad_request", 400)


@pytest.mark.requirement("operator.guesses")
@pytest.mark.parametrize("caller", [Caller(), STRANGER], ids=["loopback", "elsewhere"])
async def test_who_guesses_is_told_to_wait_and_the_right_token_is_let_in_all_the_same(
    bench: Bench, gate: OperatorGate, caller: Caller
) -> None:
    for _ in range(OPERATORS):
        assert await gate.admit(caller, "wrong") is BAD_TOKEN
    stopped = await gate.admit(caller, "wrong")
    assert refused(stopped) == ("rate_limited", 429)
    assert isinstance(stopped, Refusal)
    assert 0 < stopped.detail["retry_after_ms"] <= 60_000
    let_in = await gate.admit(caller, TOKEN)
    assert isinstance(let_in, Caller)
    assert let_in.operator
    other = STRANGER if caller.loopback else Caller()
    assert await gate.admit(other, "wrong") is BAD_TOKEN, "another address waits for nobody's guesses"


@pytest.mark.requirement("operator.guesses")
async def test_wrong_tokens_are_summed_for_the_audit_by_address(bench: Bench, gate: OperatorGate) -> None:
    for _ in range(OPERATORS + 3):
        await gate.admit(STRANGER, "wrong")
    await gate.admit(Caller(), "wrong")
    await gate.admit(Caller(), TOKEN)
    await gate.identify(shown())
    bench.clock.step(60_000)
    counted = {(each.place, each.kind, each.count) for each in bench.broker._services.sign_in.take_refused()}
    assert counted == {
        (STRANGER.address, "operator_token", OPERATORS + 3),
        ("loopback", "operator_token", 1),
    }


@pytest.mark.requirement("console.sign-in")
@pytest.mark.parametrize(
    ("url", "scheme", "host", "expected"),
    [
        ("https://ops.example", "http", "ops.example", True),
        ("https://ops.example:8443", "http", "OPS.example:8443", True),
        ("https://ops.example", "http", "127.0.0.1:8768", False),
        ("http://ops.example", "http", "ops.example", False),
        (None, "http", "127.0.0.1:8768", False),
        (None, "https", "127.0.0.1:8768", True),
    ],
)
async def test_who_comes_through_a_proxys_tls_came_by_tls(
    bench: Bench, url: str | None, scheme: str, host: str, expected: bool
) -> None:
    gate = OperatorGate(bench.broker, OperatorToken(TOKEN), url=url)
    assert gate.by_tls(scheme, host) is expected
