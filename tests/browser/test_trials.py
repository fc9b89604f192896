"""A finished trial as people look at it: its report, the operators' console, and the files of `turret grade`."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.browser.clients import Agent
from tests.browser.conftest import LOOKS, NARROW, WIDE, Look, Opened, serving
from tests.support.operators import TOKEN
from tests.support.trials import TRADES

QUOTES = """plan quote 2
on USDSEK
bound position 3000000, loss 250000, orders 4000, until 30000
when mid < avg(mid, 90): buy 40000 at mid for 20
when mid > avg(mid, 90): sell 40000 at mid for 20"""


@pytest.fixture(scope="module")
def ports(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """The URLs of a broker's public port and of its operators' port."""
    tmp_path = tmp_path_factory.mktemp("trials")
    token = tmp_path / "token"
    token.write_text(TOKEN)
    token.chmod(0o600)
    flags = ("--operator-bind", "127.0.0.1:0", "--operator-token-file", str(token))
    with serving(tmp_path, *flags) as ready:
        yield ready["http"], ready["operator"]


@pytest.fixture(scope="module")
def refs(ports: tuple[str, str]) -> list[str]:
    """The refs of two finished trials."""
    agent = Agent(ports[0], "Rehearsing desk")
    return [
        finish(agent, "mean-revert", TRADES.replace("{on}", "EURCHF")),
        finish(agent, "thin", QUOTES),
    ]


def finish(agent: Agent, entry: str, plan: str) -> str:
    """Rehearse a plan along the whole tape; the ref of what is published."""
    trial = agent.call("kestrel.session.open", entry=entry, seed=5, idempotency_key=f"open-{entry}")
    session_id = trial["session_id"]

    def on(tool: str, version: int, **params: object) -> dict[str, object]:
        key = f"{entry}-{tool}-{version}"
        given = {"session_id": session_id, "expected_version": version, "idempotency_key": key, **params}
        return agent.call(f"kestrel.session.{tool}", **given)

    on("start", trial["version"], plan=plan)
    on("advance", trial["version"] + 1, ticks=3_600)
    while True:
        shown = agent.call("kestrel.session.resume", session_id=session_id)
        if not shown.get("operation"):
            return str(on("finalize", shown["version"])["ref"])
        agent.call("kestrel.operation.resume", operation_id=shown["operation"]["operation_id"])


@pytest.mark.requirement("trial.report-door", "trial.picture")
@pytest.mark.parametrize("look", LOOKS, ids=str)
def test_a_report_is_read_and_its_picture_is_in_its_place(
    ports: tuple[str, str], refs: list[str], open_page: Opened, look: Look
) -> None:
    watched = open_page(look)
    page = watched.page
    for n, ref in enumerate(refs):
        page.goto(f"{ports[0]}/artifact/{ref}/report")
        picture = page.locator(".picture > svg.equity").first
        box, card = picture.bounding_box(), page.locator("section.card").bounding_box()
        assert box["width"] > look.width / 2
        assert card["x"] < box["x"]
        assert box["x"] + box["width"] <= card["x"] + card["width"]
        assert page.get_by_role("img", name="Profit and loss, tick by tick").count() == 1
        assert page.locator(".picture use").count() > 5
        line = page.locator(".picture path.curve")
        assert line.evaluate("each => getComputedStyle(each).strokeWidth") == "2px"
        words = page.locator(".picture text").all()
        assert all(each.bounding_box()["x"] >= card["x"] for each in words)
        watched.seen(f"report-{n}")
        heads = [each.bounding_box()["height"] for each in page.locator(".trial th[scope=row]").all()[:12]]
        assert max(heads) < 90, heads  # they are broken between words alone
    page.goto(f"{ports[0]}/artifact/{'0' * 64}/report")
    assert "No artifact has this ref" in page.inner_text("main")


@pytest.mark.requirement("trial.report-console")
@pytest.mark.parametrize("look", [WIDE, NARROW], ids=str)
def test_an_operator_looks_at_a_trial(
    ports: tuple[str, str], refs: list[str], open_page: Opened, look: Look
) -> None:
    watched = open_page(look)
    page = watched.page
    page.goto(f"{ports[1]}/sign-in")
    page.fill("[name=operator_token]", TOKEN)
    page.click("main button")
    page.click("nav >> text=Trials")
    page.fill("[name=ref]", "none")
    page.click("main button")
    assert "64 characters" in page.inner_text("main")
    watched.seen("console-trials")
    page.fill("[name=ref]", f"kestrel://artifact/{refs[0]}")
    page.click("main button")
    assert refs[0] in page.inner_text("main")
    assert page.locator(".picture > svg.equity").bounding_box()["height"] > 300
    watched.seen("console-trial")


@pytest.mark.requirement("trial.grade-command", "trial.picture")
@pytest.mark.parametrize("look", [WIDE, NARROW], ids=str)
def test_the_files_of_the_command_are_looked_at_without_a_broker(
    ports: tuple[str, str], refs: list[str], open_page: Opened, look: Look, tmp_path: Path
) -> None:
    watched = open_page(look)
    page = watched.page
    for name in ("trial.html", "trial.svg"):
        command = [sys.executable, "-m", "gateways.cli", "grade", refs[1], "--url", ports[0], "--plot", name]
        ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)
        assert ran.returncode == 0, ran.stderr
        page.goto((tmp_path / name).as_uri())
        assert page.locator("path.curve").count() > 0
        if name == "trial.html":
            watched.seen("file")
            assert page.evaluate("getComputedStyle(document.body).maxWidth") is not None
            assert (
                page.locator("svg.equity path.fall").first.evaluate("x => getComputedStyle(x).fillOpacity")
                == "0.16"
            )
    page.goto((tmp_path / "trial.svg").as_uri())
    ground = page.locator("rect.ground").evaluate("each => getComputedStyle(each).fill")
    assert ground == ("rgb(255, 255, 255)" if look.scheme == "light" else "rgb(20, 23, 28)")
