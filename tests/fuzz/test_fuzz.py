"""Every reader of what others send, fed with what nobody should send: `make fuzz` at length, a little in each run.

FUZZ_SECONDS: how long each target is fed with mutants of a random series (not given: a short series that is always the
same). What fails in a long run is put, made small, into tests/fuzz/corpus, and is tried from then on in every run.
"""

import os
import secrets
import time
from collections.abc import Iterable, Sequence
from itertools import islice

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.fuzz import targets_doors, targets_files, targets_pages, targets_plan, targets_signin, targets_wire
from tests.fuzz.harness import LARGEST, Target
from tests.fuzz.inputs import giants
from tests.fuzz.mutate import mutant, numbered, smaller

AREAS = (targets_wire, targets_doors, targets_files, targets_pages, targets_plan, targets_signin)
TARGETS = {each.name: each for area in AREAS for each in area.TARGETS}
SECONDS = float(os.environ.get("FUZZ_SECONDS") or 0)
ENDLESS = 10**9

hostile = pytest.mark.requirement(
    "canonical.hostile-bytes",
    "envelope.hostile-bytes",
    "statements.hostile-bytes",
    "streams.hostile",
    "ws.hostile",
    "http.hostile",
    "mcp.hostile",
    "store.hostile",
    "cli.hostile",
    "pages.hostile",
    "signin.hostile",
    "plan.hostile",
)


class Input(bytes):
    """Bytes that are shown in short: an input may have 64 KiB."""

    def __repr__(self) -> str:
        return f"{len(self)} bytes: {self[:200]!r}{'…' if len(self) > 200 else ''}"


def fails(target: Target, data: bytes) -> bool:
    try:
        target.check(data)
    except Exception:
        return True
    return False


def series(name: str) -> Iterable[str]:
    """The numbers of this run's mutants, until its time is over."""
    if not SECONDS:
        yield from numbered(name, 0, TARGETS[name].examples)
        return
    until = time.monotonic() + SECONDS
    for number in numbered(name, secrets.randbits(64), ENDLESS):
        if time.monotonic() > until:
            return
        yield number


def seeds_of(target: Target) -> Sequence[bytes]:
    return [*target.seeds, *(path.read_bytes() for path in target.corpus)]


@hostile
@pytest.mark.timeout(60 + 2 * SECONDS)
@pytest.mark.parametrize("name", TARGETS)
def test_any_mutant_gets_a_value_or_a_refusal_and_soon(name: str) -> None:
    target = TARGETS[name]
    seeds, tokens = seeds_of(target), target.tokens or [b"\x00"]
    count = 0
    for number in series(name):
        count += 1
        data = Input(mutant(number, seeds, tokens))
        try:
            target.check(data)
        except Exception as error:
            part = Input(smaller(data, lambda part: fails(target, part)))
            kept = f", kept as {target.keep(part)}" if SECONDS else ""
            error.add_note(f"mutant {number}: {data!r}\nsmaller: {part!r}{kept}")
            raise
    if SECONDS:
        print(f"{name}: {count} mutants")


@hostile
@pytest.mark.timeout(60 + 2 * SECONDS)
@pytest.mark.parametrize("name", TARGETS)
def test_texts_by_a_grammar_giants_and_any_bytes_too(name: str) -> None:
    target = TARGETS[name]
    ways = [giants([b"", *islice(target.seeds, 50)]), st.binary(max_size=200)]
    if target.grammar is not None:
        ways += [target.grammar, target.grammar]

    @settings(
        max_examples=max(15, int(SECONDS * 20)),
        deadline=None,
        derandomize=not SECONDS,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate, Phase.shrink],
    )
    @given(st.one_of(*ways).map(Input))
    def run(data: Input) -> None:
        target.check(data)

    run()


@pytest.mark.parametrize("name", TARGETS)
def test_what_failed_before_and_what_a_target_begins_with(name: str) -> None:
    target = TARGETS[name]
    for seed in seeds_of(target):
        assert len(seed) <= LARGEST
        target.check(seed)


def test_a_failing_input_is_made_small() -> None:
    assert smaller(b"x" * 500 + b"ab" + b"y" * 700, lambda data: b"ab" in data) == b"ab"
