"""Every reader of what others send, fed with what nobody should send: `make fuzz` at length, a little in each run.

FUZZ_EXAMPLES: inputs for each target (none given: a short run that is the same each time). What fails in a long run
is put, shrunk, into tests/fuzz/corpus, and is tried from then on in every run.
"""

import os

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.fuzz import targets_doors, targets_files, targets_wire
from tests.fuzz.harness import LARGEST, Target
from tests.fuzz.inputs import giants, mutated

TARGETS = {
    each.name: each for each in (*targets_wire.TARGETS, *targets_doors.TARGETS, *targets_files.TARGETS)
}
EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES") or 0)


class Input(bytes):
    """Bytes that are shown in short: an input may have 64 KiB."""

    def __repr__(self) -> str:
        return f"{len(self)} bytes: {self[:200]!r}{'…' if len(self) > 200 else ''}"


def feed(target: Target) -> st.SearchStrategy[Input]:
    """Mutants of its seeds and of its corpus, giants, texts by its grammar, and any bytes."""
    seeds = [*target.seeds, *(path.read_bytes() for path in target.corpus)]
    tokens = target.tokens or [b"\x00"]
    ways = [mutated(seeds, tokens), mutated(seeds, tokens), giants([b"", *seeds]), st.binary(max_size=200)]
    return st.one_of(*ways, *([] if target.grammar is None else [target.grammar])).map(Input)


@pytest.mark.requirement(
    "canonical.hostile-bytes",
    "envelope.hostile-bytes",
    "statements.hostile-bytes",
    "streams.hostile",
    "ws.hostile",
    "http.hostile",
    "mcp.hostile",
    "store.hostile",
    "cli.hostile",
)
@pytest.mark.timeout(0 if EXAMPLES else 60)
@pytest.mark.parametrize("name", TARGETS)
def test_any_input_gets_a_value_or_a_refusal_and_soon(name: str) -> None:
    target = TARGETS[name]
    failing: list[bytes] = []

    @settings(
        max_examples=EXAMPLES or target.examples,
        deadline=None,
        derandomize=not EXAMPLES,
        database=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )
    @given(feed(target))
    def run(data: Input) -> None:
        try:
            target.check(data)
        except BaseException:
            failing.append(data)
            raise

    try:
        run()
    except BaseException as error:
        if EXAMPLES and failing:
            error.add_note(f"kept as {target.keep(failing[-1])}")
        raise


@pytest.mark.parametrize("name", TARGETS)
def test_what_failed_before_and_what_a_target_begins_with(name: str) -> None:
    target = TARGETS[name]
    for path in target.corpus:
        target.check(path.read_bytes())
    for seed in target.seeds:
        assert len(seed) <= LARGEST
        target.check(seed)
