"""What the rails let through, as a table and as a property of all bodies."""

from decimal import Decimal
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateways.agent.rails import Blocked, Rails, read_amount

PK, OTHER = "a1" * 32, "b2" * 32
CAPPED = Rails(caps={"qty": Decimal(5_000_000)})


@pytest.mark.requirement("agent.cap")
@pytest.mark.parametrize(
    "body",
    [
        {},
        {"px": "9000000"},
        {"qty": "5000000"},
        {"qty": "5000000.00"},
        {"qty": "-5000000"},
        {"qty": "5e6"},
        {"qty": 5000000},
        {"qty": 4999999.5},
        {"qty": "000005000000"},
        {"legs": [{"qty": "1"}, {"qty": "5000000"}]},
        {"quantity": "9000000"},
    ],
)
def test_amounts_up_to_the_cap_pass(body: dict[str, Any]) -> None:
    assert CAPPED.check_envelope("HIT", body) is None


@pytest.mark.requirement("agent.cap", "agent.guard-rail")
@pytest.mark.parametrize(
    "body",
    [
        {"qty": "5000001"},
        {"qty": "5000000.0000000000000000000000000001"},
        {"qty": "-5000001"},
        {"qty": "5.1e6"},
        {"qty": "1e999999"},
        {"qty": 5000001},
        {"qty": 1e22},
        {"QTY": "5000001"},
        {"Qty": 9e15},
        {"legs": [{"qty": "1"}, {"qty": "5000001"}]},
        {"a": {"b": [[{"qty": "5000001"}]]}},
        {"qty": {"qty": "1", "amount": "9"}},
    ],
)
def test_an_amount_beyond_the_cap_is_stopped_at_any_depth(body: dict[str, Any]) -> None:
    blocked = CAPPED.check_envelope("HIT", body)
    assert blocked is not None
    assert blocked.body()["code"] == "guard_rail"
    assert (blocked.rule, blocked.body()["member"], blocked.body()["cap"]) == ("cap", "qty", "5000000")


@pytest.mark.requirement("agent.cap")
@pytest.mark.parametrize(
    "value",
    ["5M", "5,000", "5_000", " 5", "5 ", "", "٥", "0x5", "NaN", "Infinity", "1e9999999", True, None, [], ["5"], {}],
)  # fmt: skip
def test_what_is_no_plain_number_is_stopped(value: Any) -> None:
    assert read_amount(value) is None
    blocked = CAPPED.check_envelope("RFQ", {"qty": value})
    assert blocked is not None
    assert "no plain number" in blocked.message


@pytest.mark.requirement("agent.cap")
def test_an_envelope_that_names_no_amount_is_judged_by_what_was_last_named() -> None:
    large, small = {"qty": "9000000"}, {"qty": "1"}
    for type in ("QUOTE", "HIT", "CONFIRM"):
        blocked = CAPPED.check_envelope(type, {"px": "1"}, [small, large, {"px": "2"}])
        assert blocked is not None
        assert blocked.rule == "cap"
        assert "last named" in blocked.message
    assert CAPPED.check_envelope("HIT", {"px": "1"}, [large, small]) is None
    assert CAPPED.check_envelope("HIT", {"qty": "5000000"}, [large]) is None
    assert CAPPED.check_envelope("HIT", {}, [{"qty": "a lot"}]) is not None
    assert CAPPED.check_envelope("PICKUP", {}, [large]) is None


@pytest.mark.requirement("agent.cap", "agent.types")
def test_hanging_up_passes_every_rail() -> None:
    rails = Rails(caps={"qty": Decimal(0)}, types=frozenset())
    assert rails.check_envelope("END", {"qty": "1", "reason": "no"}, [{"qty": "1"}]) is None


@pytest.mark.requirement("agent.types", "agent.guard-rail")
def test_only_the_types_that_are_set_may_be_said() -> None:
    rails = Rails(types=frozenset({"RFQ", "HIT"}))
    assert [type for type in ("RFQ", "HIT", "CALL", "PICKUP", "END") if rails.check_envelope(type, {})] == []
    blocked = rails.check_envelope("ACCEPT", {})
    assert blocked is not None
    assert (blocked.rule, blocked.body()["allowed"]) == ("type", ["HIT", "RFQ"])
    assert Rails().check_envelope("ANYTHING", {}) is None
    none = Rails(types=frozenset()).check_envelope("RFQ", {})
    assert none is not None
    assert "none" in none.way_out


@pytest.mark.requirement("agent.counterparties", "agent.guard-rail")
def test_a_counterparty_is_known_by_its_code_or_its_key() -> None:
    assert Rails().check_party(PK, "BRAV") is None
    rails = Rails(counterparties=frozenset({"BRAV", OTHER}))
    assert rails.check_party(PK, "BRAV") is None
    assert rails.check_party(OTHER, "ECHO") is None
    blocked = rails.check_party(PK, "ECHO")
    assert blocked is not None
    assert (blocked.rule, blocked.body()["pk"]) == ("counterparty", PK)
    assert Rails(counterparties=frozenset()).check_party(PK, "BRAV") is not None


@pytest.mark.requirement("agent.code", "agent.guard-rail")
def test_with_a_code_set_no_other_desk_may_be_opened() -> None:
    assert Rails().check_code("ALFA") is None
    assert Rails(code="ALFA").check_code("ALFA") is None
    blocked = Rails(code="ALFA").check_code("BRAV")
    assert blocked is not None
    assert (blocked.rule, blocked.body()["allowed"]) == ("code", "ALFA")


def test_the_settings_are_shown_as_json() -> None:
    rails = Rails(
        counterparties=frozenset({"BRAV"}),
        caps={"qty": Decimal("5e6")},
        ask_before=frozenset({"HIT"}),
        code="ALFA",
    )
    shown = msgspec.json.decode(msgspec.json.encode(rails.shown()))
    assert shown == {
        "counterparties": ["BRAV"],
        "types": None,
        "caps": {"qty": "5000000"},
        "ask_before": ["HIT"],
        "code": "ALFA",
    }


amounts = st.one_of(
    st.integers(-(2**53) + 1, 2**53 - 1),
    st.decimals(allow_nan=False, allow_infinity=False).map(str),
    st.floats(allow_nan=False, allow_infinity=False),
)
leaves = st.one_of(st.none(), st.booleans(), st.text(max_size=5), amounts)
names = st.sampled_from(["qty", "QTY", "px", "legs", "q"])
bodies = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3)
)


def named(value: Any) -> list[Any]:
    """Every value under qty, found in a way of its own: by walking the JSON text's pairs."""
    found: list[Any] = []

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        found.extend(each for name, each in items if name.lower() == "qty")
        return dict(items)

    import json

    json.loads(json.dumps(value), object_pairs_hook=pairs)
    return found


@pytest.mark.requirement("agent.cap")
@given(body=st.dictionaries(names, bodies, max_size=4), cap=st.integers(0, 10**9))
def test_a_body_passes_exactly_when_every_capped_member_is_a_number_within_the_cap(
    body: dict[str, Any], cap: int
) -> None:
    def within(value: Any) -> bool:
        amount = read_amount(value)
        return amount is not None and -cap <= amount <= cap

    blocked = Rails(caps={"qty": Decimal(cap)}).check_envelope("HIT", body)
    assert isinstance(blocked, Blocked) is not all(map(within, named(body)))


@given(value=amounts)
def test_an_amount_is_read_exactly(value: Any) -> None:
    read = read_amount(value)
    assert read is None or read == Decimal(repr(value) if isinstance(value, float) else value)
