"""`turret plan check`: either form in, the text and the cost out, or what is wrong."""

from pathlib import Path

import pytest

from tests.gateways.commands.conftest import Turret
from tests.support.plans import FADE


@pytest.mark.requirement("plan.command")
def test_a_plan_is_printed_in_its_canonical_text(turret: Turret, tmp_path: Path) -> None:
    file = tmp_path / "fade.plan"
    file.write_text("# mine\n" + FADE.replace(" and ", "\n  and "))
    ran = turret.run("plan", "check", str(file))
    assert (ran.code, ran.out) == (0, FADE)
    assert ran.err == (
        "fade 1: at most 23 steps a tick, looks back 0 ticks; bound to a position of 3000000, "
        "a loss of 2500, 40 orders, tick 3600\n"
    )


@pytest.mark.requirement("plan.command")
def test_the_tree_comes_out_and_goes_in_again(turret: Turret, tmp_path: Path) -> None:
    file, other = tmp_path / "fade.plan", tmp_path / "fade.json"
    file.write_text(FADE)
    ran = turret.run("plan", "check", str(file), "--json")
    assert {name: ran.json[name] for name in ("text", "cost", "reach")} == {
        "text": FADE,
        "cost": 23,
        "reach": 0,
    }
    assert ran.json["bound"] == {"position": 3000000, "loss": 2500000000, "orders": 40, "until": 3600}
    other.write_text(turret.run("plan", "check", str(file), "--tree").out)
    assert other.read_text().startswith('{"name":"fade"'), "the tree, and nothing else"
    assert turret.run("plan", "check", str(other)).out == FADE


@pytest.mark.requirement("plan.command")
def test_what_is_wrong_is_told_with_its_place_and_exit_1(turret: Turret, tmp_path: Path) -> None:
    file = tmp_path / "fade.plan"
    file.write_text(FADE.replace("mid - 1", "mdi - 1").replace(", orders 40", ""))
    ran = turret.run("plan", "check", str(file))
    assert ran.code == 1
    assert ran.err == f"turret: no_plan: {file} is no plan: 2 things are wrong with it\n"
    said = "the bound orders is missing; expected orders NUMBER; write ', orders 1'"
    assert ran.out.splitlines()[0] == f"{file}:3:46: {said}"
    assert ran.out.splitlines()[1].endswith("write 'mid'")
    ran = turret.run("plan", "check", str(file), "--json")
    assert [each["code"] for each in ran.json["diagnostics"]] == ["bound", "name"]
    assert ran.json["diagnostics"][1]["repair"] == "mid"


@pytest.mark.requirement("plan.command")
def test_what_is_wrong_in_a_tree_is_told_at_places_of_its_text(turret: Turret, tmp_path: Path) -> None:
    text, file = tmp_path / "fade.plan", tmp_path / "fade.json"
    text.write_text(FADE)
    file.write_text(turret.run("plan", "check", str(text), "--tree").out.replace("1000000", "9000000"))
    assert turret.run("plan", "check", str(file)).out.startswith(f"{file}, as text:4:40: an order of 9000000")
    file.write_text("{}")
    assert turret.run("plan", "check", str(file)).out.startswith(f"{file}:1:1: ")


@pytest.mark.requirement("plan.command", "plan.hostile")
def test_what_is_no_text_is_told_too(turret: Turret, tmp_path: Path) -> None:
    file = tmp_path / "bytes"
    for data in (bytes(range(256)) * 10, b"{" * 200_000, b"x" * 10_000_000, b""):
        file.write_bytes(data)
        ran = turret.run("plan", "check", str(file))
        assert (ran.code, ran.err[:17]) == (1, "turret: no_plan: ")
    assert turret.run("plan", "check", str(tmp_path / "none")).code == 2
