"""`turret operator-token`: a token that a broker takes, in a file that nobody else reads."""

import stat

import pytest

from gateways.operator.token import find_token
from tests.gateways.commands.conftest import Turret


@pytest.mark.requirement("operator.admin")
def test_a_token_is_made_for_who_runs_it_alone_and_none_is_overwritten(turret: Turret) -> None:
    out = turret.directory / "operators.token"
    ran = turret.run("operator-token", "--out", str(out), "--json")
    assert (ran.code, ran.json) == (0, {"file": str(out)})
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    text = out.read_text().strip()
    token = find_token(str(out), {})
    assert token is not None
    assert token.matches(text)
    assert len(text.removeprefix("turret_operator_")) == 43, "256 bits"
    again = turret.run("operator-token", "--out", str(out))
    assert (again.code, again.err) == (
        2,
        f"turret: key_file: {out} exists: a token file is never overwritten\n",
    )
    assert out.read_text().strip() == text
    other = turret.run("operator-token", "--out", str(turret.directory / "b"))
    assert text not in other.out
    assert (turret.directory / "b").read_text().strip() != text
