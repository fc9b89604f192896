"""The pages for operators: every name that a dashboard, a rule or a page mentions is one that the broker shows."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from broker.wire.refusals import CODES
from gateways.figures import FIGURES, PROCESS
from tests.sizes import ROOT

DOCS = ROOT / "docs"
RULES = DOCS / "prometheus" / "alerts.yml"
DASHBOARD = DOCS / "grafana" / "turret.json"


def shown() -> dict[str, set[str]]:
    """Every series by its name, with its labels."""
    found = {}
    for figure in (*FIGURES, *PROCESS):
        names = [figure.name]
        if figure.kind == "histogram":
            names = [f"{figure.name}_{part}" for part in ("bucket", "sum", "count")]
        for name in names:
            found[name] = {*figure.labels, "le"} if name.endswith("_bucket") else set(figure.labels)
    return found


def asked(expression: str) -> set[str]:
    """The series that an expression names."""
    return set(re.findall(r"\b((?:turret|process)_[a-z_]+)\b", expression))


def rules() -> list[dict[str, Any]]:
    return [rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]


@pytest.mark.requirement("observe.pages")
def test_every_alert_asks_for_what_there_is_and_says_what_it_means() -> None:
    names = [rule["alert"] for rule in rules()]
    assert len(names) == len(set(names)) > 10
    for rule in rules():
        assert asked(rule["expr"]) <= shown().keys(), rule["alert"]
        assert asked(rule["expr"]) or rule["expr"].startswith("up{"), rule["alert"]
        assert rule["labels"]["severity"] in ("page", "warn")
        assert rule["annotations"]["summary"].endswith(".")


@pytest.mark.requirement("observe.pages")
def test_every_panel_asks_for_what_there_is_and_every_figure_is_on_a_panel_or_in_a_rule() -> None:
    dashboard = json.loads(DASHBOARD.read_text())
    expressions = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    for expression in expressions:
        names = asked(expression)
        assert names, expression
        assert names <= shown().keys(), expression
        for label in re.findall(r"by \(([a-z, ]+)\)", expression):
            known = set().union(*(shown()[name] for name in names))
            assert set(label.split(", ")) <= known, expression
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])
    looked_at = set().union(*map(asked, expressions), *(asked(rule["expr"]) for rule in rules()))
    without = {"turret_build_info", "turret_envelopes_committed_total", "turret_tool_call_seconds"}
    without |= {"turret_verify_helpers", "turret_verify_helper_failures_total"}
    for figure in FIGURES:
        assert figure.name in without or any(name.startswith(figure.name) for name in looked_at), figure.name


@pytest.mark.requirement("observe.pages")
def test_outcomes_that_rules_and_panels_name_exist() -> None:
    known = {*CODES, "accepted", "duplicate", "ok", "fault", "cancelled"}
    for text in (RULES.read_text(), DASHBOARD.read_text()):
        found = re.findall(r'outcome(?:=~|!~|=|!=)\\?"([a-z_|]+)\\?"', text)
        assert found
        assert set("|".join(found).split("|")) <= known


@pytest.mark.requirement("observe.pages")
@pytest.mark.parametrize("page", [DOCS / "how-to" / "observe.md"], ids=lambda page: page.name)
def test_figures_that_a_page_names_exist(page: Path) -> None:
    every = shown().keys() | {figure.name for figure in FIGURES}
    assert asked(page.read_text()) <= every


@pytest.mark.requirement("observe.pages")
def test_what_to_scrape_is_where_the_broker_shows_it_by_default() -> None:
    from gateways.configure import ServeOptions

    (job,) = yaml.safe_load((DOCS / "prometheus" / "scrape.yml").read_text())["scrape_configs"]
    assert job["static_configs"] == [{"targets": [ServeOptions().bind]}]
    assert "metrics_path" not in job
