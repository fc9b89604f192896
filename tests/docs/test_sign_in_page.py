"""The page on signing in: its settings load, and its request is the one that gets a token."""

import shlex
import tomllib
from pathlib import Path

import pytest

from gateways.configure import load
from gateways.oauth import assertion, forms
from gateways.oauth import server as endpoints
from tests.docs.pages import HOW_TO, blocks

PAGE = "sign-in.md"


@pytest.mark.parametrize("text", blocks(PAGE, "toml"))
def test_each_block_of_settings_loads(text: str, tmp_path: Path) -> None:
    file = tmp_path / "turret.toml"
    file.write_text(text)
    assert load(file, {}).serve.issuer == tomllib.loads(text)["serve"]["issuer"]


def test_the_command_is_one_that_is_taken() -> None:
    (text,) = blocks(PAGE, "sh")
    words = shlex.split(text.replace("\\\n", " "))
    assert words[:2] == ["turret", "serve"]
    flags = {
        name.removeprefix("--").replace("-", "_"): value
        for name, value in zip(words[2::2], words[3::2], strict=True)
    }
    settings = load(None, {}, flags)
    assert (settings.serve.public_url, settings.settings.transcripts) == ("https://turret.example", "parties")


def test_the_request_has_the_parameters_that_the_endpoint_reads() -> None:
    text = (HOW_TO / PAGE).read_text()
    block = text.split("```\nPOST ")[1].split("```")[0]
    path, kind, *lines = (line for line in block.splitlines() if line)
    assert path == endpoints.TOKEN
    assert kind == f"Content-Type: {forms.FORM}"
    form = forms.read_form("".join(lines).replace("<JWT>", "x"))
    assert isinstance(form, dict)
    assert form["client_assertion_type"] == assertion.TYPE
    assert set(form) == {"grant_type", "resource", "client_assertion_type", "client_assertion"}


def test_every_endpoint_that_it_names_is_there() -> None:
    text = (HOW_TO / PAGE).read_text()
    for path in (endpoints.AUTHORIZE, endpoints.TOKEN, endpoints.REGISTER, endpoints.REVOKE, endpoints.INTROSPECT,
                 endpoints.JWKS, endpoints.DOCUMENT):  # fmt: skip
        assert f"`{path}`" in text, path
