"""The numbers of the law's page are those of the code."""

from pathlib import Path
from typing import Final

import pytest

from broker.actors import trial
from broker.core.arena import REJECTED_KEPT
from broker.core.tapes.catalog import FIRST, IMPORTED, PART
from broker.core.tapes.tape import MAX_TICKS
from broker.core.trials import report, session, views
from broker.core.trials.account import MAX_PNL, MODEL
from broker.core.trials.grade import NAIVE_PART
from broker.tools import trials

PAGE: Final = " ".join((Path(__file__).parents[2] / "docs/reference/trial.md").read_text().split())
SAID: Final = (
    f"A tape has at most {MAX_TICKS:,} ticks",
    f"which operators import, those from {FIRST}",
    f"in parts of at most {PART:,}",
    f"keeps at most {IMPORTED} imported tapes",
    f"Fill model v1, named `{MODEL}`",
    f"at most {session.MAX_CALLS:,} calls, of {session.MAX_CALL_BYTES // 1024} KiB",
    f"and {session.MAX_FILLS:,} fills",
    f"the last {views.RECENT} ticks",
    f"the first {views.SHOWN} orders",
    f"in its answer, the first {trial.FILLS}",
    f"the first {REJECTED_KEPT:,}; of a plan its name",
    f"at most {report.SLOTS} purchases and {report.SLOTS} sales are marked, and {report.FILLS} are listed",
    f"`wait_ms` at most ({trials.WAIT_MS // 1000} s)",
    f"(`bad_request`, with the first {trials.DIAGNOSTICS})",
)


@pytest.mark.requirement("trial.page-numbers")
@pytest.mark.parametrize("words", SAID)
def test_the_page_says_the_number_of_the_code(words: str) -> None:
    assert words in PAGE


@pytest.mark.requirement("trial.page-numbers")
def test_what_is_said_in_powers_and_words_is_so_too() -> None:
    assert "beyond ±(2⁵²−1) millionths" in PAGE
    assert MAX_PNL == 2**52 - 1
    assert "quotes a tenth of the position bound" in PAGE
    assert NAIVE_PART == 10
