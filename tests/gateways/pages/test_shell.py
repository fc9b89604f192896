"""A page's frame: its headers, and that what people wrote is text whatever it is."""

import json
import tomllib
from typing import Any

import pytest
from quart import Response

from gateways.pages.shell import HEADERS, STYLE, TEMPLATES, Moved, Page, Shell, iso, show_day, show_text
from tests.sizes import ROOT
from tests.support.html import Document
from tests.support.vectors import VECTORS

COMMON = {"owner": "ann@x.example", "token": "t", "path": "/owner", "next": ""}
NAUGHTY: list[str] = json.loads((VECTORS / "naughty/blns.json").read_text())


async def shown(page: Page | Moved, **common: Any) -> tuple[Response, str]:
    response = Shell().respond(page, {**COMMON, **common})
    return response, (await response.get_data()).decode()


@pytest.mark.requirement("pages.headers")
async def test_every_page_has_the_headers_that_keep_others_out() -> None:
    for page in (Page("message.html", {"title": "T", "text": "t", "back": ""}, 404), Moved("/owner")):
        response, _ = await shown(page)
        assert {name: response.headers[name] for name in HEADERS} == HEADERS
    policy = HEADERS["content-security-policy"].split("; ")
    assert policy == [
        "default-src 'none'",
        "style-src 'self'",
        "form-action 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
    ]
    assert HEADERS["cache-control"] == "no-store"
    assert HEADERS["x-content-type-options"] == "nosniff"


@pytest.mark.requirement("pages.text")
async def test_naughty_strings_are_text() -> None:
    """All of the list on one page: in a heading, a paragraph, an attribute, and the links' query."""
    assert len(NAUGHTY) == 515
    agent = {"presence": "online", "capabilities": NAUGHTY[:3], "agent_id": "ag_1"}
    agents = [{**agent, "name": f"x{each}", "description": each} for each in NAUGHTY]
    values = {"agents": agents, "query": "".join(NAUGHTY), "capability": "c", "after": "\"'><b>"}
    _, text = await shown(Page("directory.html", values), owner="<b>\"'&")
    document = Document(text)
    assert document.faults == []
    names = [each.text for each in document.all("h3")]
    assert names == [show_text(f"x{each}") for each in NAUGHTY]
    assert document.one("q").attributes["value"] == show_text("".join(NAUGHTY))
    assert document.all("bdi")[0].text == "<b>\"'&"


@pytest.mark.requirement("pages.text")
async def test_letters_that_turn_others_round_or_that_no_html_has_are_shown_as_such() -> None:
    text = "a\0b\x1bc\x85d\u202ee\u2066f\u2028g\ufffeh"
    _, page = await shown(
        Page("message.html", {"title": text, "text": "\u0645\u0631\u062d\u0628\u0627\ttab\nline", "back": ""})
    )
    document = Document(page)
    assert document.faults == []
    assert document.all("h1")[0].text == "a\ufffdb\ufffdc\ufffdd\ufffde\ufffdf\ufffdg\ufffdh"
    assert "\u0645\u0631\u062d\u0628\u0627\ttab\nline" in document.text


async def test_what_a_template_is_not_told_is_a_fault() -> None:
    with pytest.raises(Exception, match="undefined"):
        await shown(Page("message.html", {"title": "T", "text": "t"}))


async def test_the_style_is_ours_and_named_by_what_is_in_it() -> None:
    shell = Shell()
    response = shell.respond_style()
    assert response.headers["content-type"] == "text/css; charset=utf-8"
    assert "immutable" in response.headers["cache-control"]
    assert b"url(" not in shell.style
    assert b"@import" not in shell.style
    _, text = await shown(Page("message.html", {"title": "T", "text": "t", "back": ""}))
    (link,) = Document(text).all("link")
    assert link.attributes["href"].startswith(f"{STYLE}?")


def test_a_template_loads_nothing_and_runs_nothing() -> None:
    for path in TEMPLATES.glob("*.html"):
        text = path.read_text()
        if path.name == "session.html":  # the page that renews itself
            text = text.replace('<script src="{{ script }}" defer></script>', "", 1)
        assert "|safe" not in text.replace(" ", ""), path
        assert "<script" not in text, path
        assert "style=" not in text, path
        assert "http://" not in text, path
        assert "autoescape" not in text, path


def test_the_files_are_packed() -> None:
    packed = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]
    kinds = {path.suffix for path in TEMPLATES.iterdir()}
    assert {f"pages/templates/*{kind}" for kind in kinds} <= set(packed["gateways"])


def test_a_moment_is_read_by_people_and_by_programs() -> None:
    assert show_day(1_782_345_678_000) == "25 Jun 2026, 00:01 UTC"
    assert iso(1_782_345_678_000) == "2026-06-25T00:01Z"
