"""The forms of the identifiers: nothing shorter, longer, in the other case or with a line end."""

import re
from typing import get_args

import pytest

from broker.wire.ids import AGENT, CODE, CONV, MAX_SAFE, NONCE, OWNER, PK, SIG, TYPE, CodeParam, PkParam, ulid


@pytest.mark.requirement("envelope.forms")
@pytest.mark.parametrize(("pattern", "length"), [(PK, 64), (SIG, 128), (CONV, 16), (NONCE, 32)])
def test_hex_is_lower_case_and_of_its_length(pattern: re.Pattern[str], length: int) -> None:
    good = "0123456789abcdef" * (length // 16)
    assert pattern.fullmatch(good)
    for bad in (
        good[1:],
        good + "0",
        good.upper(),
        "g" + good[1:],
        good[:-1] + "\n",
        good + "\n",
        "٠" * length,
        "",
    ):
        assert not pattern.fullmatch(bad)


@pytest.mark.requirement("desk.code-form")
def test_a_code_is_four_capital_letters() -> None:
    assert CODE.fullmatch("ALFA")
    assert not any(CODE.fullmatch(bad) for bad in ("ALF", "ALFAA", "alfa", "ALF1", "ÄLFA", "ALFA\n", ""))


def test_a_type_begins_with_a_letter() -> None:
    assert TYPE.fullmatch("A")
    assert TYPE.fullmatch("RFQ_2")
    assert not any(TYPE.fullmatch(bad) for bad in ("", "_A", "2A", "a", "A" * 33, "A-B"))


def test_the_patterns_that_tools_show_are_the_same_forms() -> None:
    for param, pattern in ((PkParam, PK), (CodeParam, CODE)):
        # `$` alone would take a line's end after it, as Python's `re` has it.
        assert get_args(param)[1].pattern == rf"^{pattern.pattern}$(?!\n)"
    assert MAX_SAFE == 9_007_199_254_740_991


@pytest.mark.requirement("network.ids")
def test_a_ulid_is_time_and_chance_in_order_of_time() -> None:
    # The example of the ULID specification's own layout: time in ten characters, chance in sixteen.
    made = ulid(1_469_918_176_385, b"\0" * 10)
    assert made == "01ARYZ6S41" + "0" * 16
    assert ulid((1 << 48) - 1, b"\xff" * 10) == "7" + "Z" * 25
    assert AGENT.fullmatch("ag_" + made)
    assert OWNER.fullmatch("ow_" + made)
    assert not any(
        AGENT.fullmatch(bad) for bad in ("ag_" + made.lower(), "ag_8" + made[1:], made, "ow_" + made)
    )
    assert ulid(1, b"\xff" * 10) < ulid(2, b"\0" * 10)
    for ms, entropy in ((-1, b"\0" * 10), (1 << 48, b"\0" * 10), (1, b"\0" * 9)):
        with pytest.raises(ValueError, match="48 bits"):
            ulid(ms, entropy)
