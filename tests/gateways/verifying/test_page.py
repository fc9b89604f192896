"""One file that needs nothing else: its hashes are right, and nothing in it asks anybody or writes markup."""

import base64
import hashlib
import re

import pytest

from gateways.verifying.page import SCRIPTS, verify_page
from tests.support.html import Document

TEXT = verify_page().html.decode()


def between(tag: str) -> str:
    found = re.findall(rf"<{tag}>(.*?)</{tag}>", TEXT, re.DOTALL)
    assert len(found) == 1
    return str(found[0])


@pytest.mark.requirement("verifypage.alone")
@pytest.mark.parametrize(("tag", "directive"), [("script", "script-src"), ("style", "style-src")])
def test_what_stands_in_the_page_runs_by_its_hash_and_nothing_else_does(tag: str, directive: str) -> None:
    digest = base64.b64encode(hashlib.sha256(between(tag).encode()).digest()).decode()
    policy = verify_page().policy
    assert f"{directive} 'sha256-{digest}';" in policy
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    assert f'content="{policy.removesuffix("; frame-ancestors " + chr(39) + "none" + chr(39))}"' in TEXT


@pytest.mark.requirement("verifypage.alone")
def test_the_page_names_no_other_place() -> None:
    assert re.findall(r"(?:https?:)?//[a-z]", TEXT.replace("// ", "").replace("kestrel://", "")) == []
    assert re.findall(r"(?:src|href|action)=\"(?!#main|data:,)", TEXT) == []
    assert re.findall(r"\b(?:fetch|XMLHttpRequest|WebSocket|EventSource|sendBeacon|import)\s*\(", TEXT) == []


@pytest.mark.requirement("verifypage.alone", "verifypage.hostile")
def test_its_scripts_write_no_markup_and_run_no_text() -> None:
    script = between("script")
    found = re.findall(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function", script
    )
    assert found == []
    assert "{script}" not in TEXT
    assert script.count("function readEnvelope") == script.count("class Walk") == 1
    assert script.count("class SessionCheck") == script.count("const RFQ = ") == 1
    assert len(SCRIPTS) == 11


def test_the_page_is_sound_html_with_its_one_script_and_its_one_style() -> None:
    faults = Document(TEXT).faults
    assert [each for each in faults if "<style>" not in each and "<script>" not in each] == []
    assert len(faults) == 2
