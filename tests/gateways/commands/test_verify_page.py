"""`turret verify-page`: the page, byte for byte, without any broker."""

import pytest

from gateways.verifying.page import verify_page
from tests.gateways.commands.conftest import Turret


@pytest.mark.requirement("verifypage.alone")
def test_the_page_is_printed_as_it_is_served(turret: Turret) -> None:
    ran = turret.run("verify-page")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == verify_page().html.decode()
