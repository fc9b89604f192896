"""The mutants fit the source, and each rule of the wire's core has one. None is run here: `make soak` does."""

from tests.mutants import ROOT, misfit, planted, requirement_tests
from tests.requirements import load

CORE = (
    "keys",
    "desk",
    "presence",
    "envelope",
    "canonical",
    "chain",
    "call",
    "order",
    "limits",
    "retries",
    "statements",
)
"""Sections whose every requirement has a mutant."""

WITHOUT = {
    "canonical.hostile-bytes": "a property: any bytes give a value or a refusal; no one line holds it up",
    "canonical.jsontestsuite": "318 files; canonical.not-json and its neighbours break one by one",
    "canonical.not-json-over-http": "the same suite at a door",
    "canonical.frame-members": "the gateways' own reading of a frame, not the core's",
    "envelope.hostile-bytes": "a property, as canonical.hostile-bytes",
    "statements.hostile-bytes": "a property, as canonical.hostile-bytes",
    "limits.no-deadlock": "an actor asks no actor, which house.ask asserts; the test plays the crossing",
    "retries.crash": "the crash rounds of `make soak` kill the whole process",
    "presence.sse-ends-with-its-stream": "a gateway's: it closes its reader",
}
"""Requirements of these sections that have none, and why."""


def test_each_mutant_fits_the_source_and_its_requirement_has_a_test() -> None:
    known, named = load(), requirement_tests(ROOT)
    faults = []
    for mutant in planted():
        fault = misfit(mutant)
        if fault is None and mutant.old == mutant.new:
            fault = "it changes nothing"
        if fault is None and mutant.requirement not in known:
            fault = "no such requirement"
        if fault is None and not named.get(mutant.requirement):
            fault = "no test names it"
        if fault is not None:
            faults.append(f"{mutant}: {fault}")
    assert faults == []


def test_each_requirement_of_the_core_has_a_mutant() -> None:
    core = {name for name in load() if name.split(".")[0] in CORE}
    assert sorted(core - {each.requirement for each in planted()} - set(WITHOUT)) == []


def test_what_is_excused_is_there_and_has_no_mutant() -> None:
    assert set(WITHOUT) <= set(load())
    assert not set(WITHOUT) & {each.requirement for each in planted()}
