"""The names, as Prometheus' linter would have them, and our own rules."""

import re

import pytest

from gateways.figures import FIGURES, PROCESS

UNITS = ("_seconds", "_bytes")
NO_UNITS = (
    "_ms",
    "_us",
    "_milliseconds",
    "_microseconds",
    "_kib",
    "_mib",
    "_kilobytes",
    "_minutes",
    "_percent",
)


@pytest.mark.requirement("observe.names")
@pytest.mark.parametrize("figure", [*FIGURES, *PROCESS], ids=lambda figure: figure.name)
def test_a_name_goes_by_the_conventions(figure) -> None:  # type: ignore[no-untyped-def]
    name = figure.name
    assert re.fullmatch("[a-z][a-z0-9]*(_[a-z0-9]+)*", name)
    assert name.startswith(("turret_", "process_"))
    assert (figure.kind == "counter") == name.endswith("_total")
    assert not re.search("_(count|sum|bucket|info|created)$", name) or name == "turret_build_info"
    assert not any(unit in name for unit in NO_UNITS)
    bare = name.removesuffix("_total")
    for unit in UNITS:
        assert unit not in bare or bare.endswith(unit), f"{name}: the unit stands last"
    assert figure.kind not in bare, "a name does not say what kind it is"
    if figure.kind == "histogram":
        assert bare.endswith((*UNITS, "_units"))


@pytest.mark.requirement("observe.names")
@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.name)
def test_a_figure_says_in_a_sentence_what_it_answers(figure) -> None:  # type: ignore[no-untyped-def]
    assert re.fullmatch(r"[A-Z0-9].{10,200}\.", figure.help)
    assert "\n" not in figure.help
    for label in figure.labels:
        assert re.fullmatch("[a-z]+", label)
        assert label not in (
            "le",
            "quantile",
            "conv",
            "pk",
            "code",
            "agent",
            "address",
            "id",
            "instance",
            "job",
        )


def test_no_name_stands_twice() -> None:
    names = [figure.name for figure in (*FIGURES, *PROCESS)]
    assert len(names) == len(set(names))
