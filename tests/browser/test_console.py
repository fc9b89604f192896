"""The operators' console in a browser: signed in, the tape moves, a report is resolved, an agent suspended, the audit
verified, signed out."""

import itertools
import json
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from broker.wire.envelope import bootstrap
from broker.wire.ids import ConvId
from tests.browser.clients import Agent
from tests.browser.conftest import NARROW, WIDE, Look, Opened, Watched, serving
from tests.support.broker import Party
from tests.support.operators import TOKEN
from tests.support.vectors import VECTORS

CODES = itertools.product("Q", *["ABCDEFGH"] * 3)
"""Each is taken once: these tests have one broker."""
HOSTILE = '<img src="//evil.example/x" onerror="alert(1)"> مرحبا \u202eevil'


@pytest.fixture(scope="module")
def console(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """The URLs of a broker's public port and of its operators' port: one broker for all of these."""
    tmp_path = tmp_path_factory.mktemp("console")
    token = tmp_path / "token"
    token.write_text(TOKEN)
    token.chmod(0o600)
    flags = ("--operator-bind", "127.0.0.1:0", "--operator-token-file", str(token))
    with serving(tmp_path, *flags) as ready:
        yield ready["http"], ready["operator"]


class Wire:
    """Two desks that call each other over plain HTTP."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.pk = httpx.get(f"{url}/.well-known/turret.json").json()["wire"]
        self.codes = ["".join(next(CODES)) for _ in range(2)]
        self.parties = [self._opened(code) for code in self.codes]

    def call(self, tool: str, **params: Any) -> Any:
        answer = httpx.post(f"{self.url}/v1/{tool}", json=params)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def _opened(self, code: str) -> Party:
        party = Party(code)
        statement = party.statement("open_desk", self.pk, int(time.time()), code=code)
        self.call("open_desk", **statement)
        return party

    def talk(self, bodies: list[tuple[str, dict[str, Any]]]) -> str:
        """A call with a pick-up and then these envelopes; its conversation."""
        conv = f"{time.time_ns():x}"[-16:].rjust(16, "0")
        caller, called = self.parties
        prev = bootstrap(ConvId(conv))
        codes = {"code_from": caller.code, "code_to": called.code, "wire": self.pk}
        for n, (type, body) in enumerate([("CALL", codes), ("PICKUP", {}), *bodies]):
            sender, to = (called, caller) if n % 2 else (caller, called)
            params = sender.envelope(conv, n, type, to.pk, int(time.time()), prev, body)
            if n == 0:
                del params["conv"], params["n"]
                self.call("send_call", to_code=called.code, **params)
            else:
                self.call("send_env", **params)
            prev = params["sig"]
        return conv


def sign_in(watched: Watched, url: str) -> None:
    page = watched.page
    page.goto(url)
    assert page.url == f"{url}/sign-in"
    page.fill("#operator_token", "not the token at all")
    page.click("main button")
    assert "not the operators’ token" in page.inner_text("#summary")
    watched.seen("sign-in-wrong")
    page.fill("#operator_token", TOKEN)
    page.click("main button")
    assert page.inner_text("h1") == "Now"


@pytest.mark.requirement("console.tape", "console.sign-in", "console.conversation")
@pytest.mark.parametrize("look", [WIDE, NARROW], ids=str)
def test_an_operator_sees_a_call_as_it_is_made_and_each_step_of_it_verified(
    console: tuple[str, str], open_page: Opened, look: Look
) -> None:
    public, url = console
    watched = open_page(look._replace(scripts=True))
    page = watched.page
    sign_in(watched, url)
    page.wait_for_function("document.getElementById('live-state').textContent === 'Live'")
    wire = Wire(public)
    began = time.monotonic()
    conv = wire.talk([("RFQ", {"text": HOSTILE, "qty": "5000000"}), ("QUOTE", {"bid": "1.0841"})])
    sent = time.monotonic()
    page.wait_for_selector(f".tape a[href='/conversations/{conv}'] >> nth=3")
    assert time.monotonic() - sent < 1.0, "the tape shows what was accepted within a second"
    assert sent - began < 5
    rows = page.locator(".tape tbody tr")
    assert rows.first.inner_text().split()[1:4] == [*reversed(wire.codes), "QUOTE"]
    page.wait_for_function("parseInt(document.querySelector('.tiles li:nth-child(2) b').textContent) >= 4")
    watched.seen("now")
    page.click("#pause")
    shown = rows.count()
    wire.talk([])
    page.wait_for_timeout(700)
    assert rows.count() == shown == 4
    page.click("#pause")
    page.goto(f"{url}/calls")
    assert page.locator("table tbody tr", has_text=wire.codes[0]).count() == 2
    watched.seen("calls")
    page.click(f"a[href='/conversations/{conv}']")
    assert page.inner_text(".verdict") == "Holds: 4 envelopes, each step verified here and now"
    assert page.locator(".envelope .steps .mark").count() == 24
    assert "<img" in page.inner_text(".envelope:nth-child(3) pre")
    assert "\u202e" not in page.inner_text("main")
    assert page.locator("img").count() == 0
    watched.seen("conversation")
    page.click("text=End this call")
    page.fill("#note", "it was forgotten")
    page.click("text=End it for both")
    assert "ended: operator, by the wire" in page.inner_text("main dl").replace("\n", " ")
    page.goto(f"{url}/desks")
    watched.seen("desks")
    httpx.post(f"{public}/v1/resolve_code", json={"code": "ZZZZ"})
    page.goto(f"{url}/health")
    assert "unknown_desk" in page.inner_text("main")
    watched.seen("health")


@pytest.mark.requirement("console.reports", "console.agents", "console.audit", "console.sign-in")
@pytest.mark.parametrize("look", [WIDE, NARROW], ids=str)
def test_an_operator_resolves_a_report_suspends_an_agent_verifies_the_audit_and_signs_out(
    console: tuple[str, str], open_page: Opened, look: Look
) -> None:
    public, url = console
    watched = open_page(look)
    page = watched.page
    name = f"Basel options {look.width}"
    alfa, brav = Agent(public, f"Quote desk {look.width}"), Agent(public, name)
    alfa.call("report_agent", target_agent_id=brav.agent_id, category="spam", details=HOSTILE)
    sign_in(watched, url)
    page.click("nav >> text=Reports")
    assert "<img" in page.inner_text(".said")
    page.click("summary")
    page.select_option("select", "warned")
    page.fill("textarea", "We told it.")
    watched.seen("report")
    page.click("text=Resolve >> nth=-1")
    assert page.inner_text("[role=status]") == "The report is resolved, and who reported is told."
    page.click("text=resolved >> nth=0")
    page.goto(f"{url}/reports?status=resolved")
    assert "warned" in page.inner_text(".card dl")
    page.goto(f"{url}/agents")
    watched.seen("agents")
    page.click(f"text={name}")
    page.fill("#reason", "spam")
    watched.seen("agent")
    page.click("text=Suspend this agent")
    assert "suspended" in page.inner_text("[role=status]")
    page.click("text=End the suspension")
    assert page.inner_text("[role=status]") == "The agent is no longer suspended."
    page.goto(f"{url}/audit")
    assert page.locator("table tbody tr").count() >= 3
    watched.seen("audit")
    page.click("text=Verify the whole log now")
    assert page.inner_text(".verdict").startswith("The log holds:")
    watched.seen("verified")
    page.goto(f"{url}/owners")
    watched.seen("owners")
    page.click("text=Sign out")
    assert page.url == f"{url}/sign-in"
    page.goto(f"{url}/agents")
    assert page.url == f"{url}/sign-in"


@pytest.mark.requirement("verifypage.shows", "verifypage.alone")
def test_the_public_port_has_the_page_that_verifies_what_the_console_exports(
    console: tuple[str, str], open_page: Opened
) -> None:
    public, url = console
    watched = open_page(WIDE)
    page = watched.page
    conv = Wire(public).talk([("RFQ", {"qty": "5000000"}), ("END", {"reason": "lunch"})])
    sign_in(watched, url)
    export = page.request.get(f"{url}/conversations/{conv}/export").body()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"{public}/verify")
    file = {"name": "deal.jsonl", "mimeType": "application/jsonl", "buffer": export}
    page.set_input_files("#file", file)
    page.wait_for_selector("#status.good")
    assert page.inner_text("#status") == f"Holds: 4 envelopes of conversation {conv}"
    assert [each for each in asked if each != f"{public}/verify" and not each.startswith("data:")] == []


@pytest.mark.requirement("console.live-ends")
def test_a_live_page_ends_with_its_session_and_comes_back_after_a_cut(
    console: tuple[str, str], open_page: Opened
) -> None:
    url = console[1]
    watched = open_page(WIDE)
    page = watched.page
    page.goto(url)
    for key in ("Tab", "Tab"):  # by the keyboard alone: past the way to the content, into the field
        page.keyboard.press(key)
    page.keyboard.type(TOKEN)
    page.keyboard.press("Enter")
    page.wait_for_function("document.getElementById('live-state').textContent === 'Live'")
    page.focus("#pause")
    page.keyboard.press("Enter")
    assert page.inner_text("#live-state") == "Paused"
    page.keyboard.press("Space")
    assert page.inner_text("#live-state") == "Live"
    other = page.context.new_page()
    other.goto(f"{url}/health")
    other.click("text=Sign out")
    page.wait_for_selector("text=You are signed out", timeout=1500)
    assert page.inner_text("#live-state") == "Ended"


@pytest.mark.requirement("console.text")
def test_naughty_names_and_details_are_text(console: tuple[str, str], open_page: Opened) -> None:
    public, url = console
    watched = open_page(WIDE)
    page = watched.page
    naughty = [each for each in json.loads((VECTORS / "naughty/blns.json").read_text()) if each]
    alfa, brav = Agent(public, "Hedge desk"), Agent(public, "Bern options")
    details = "\n".join(each for each in naughty if "<" in each)[:1900]
    alfa.call("report_agent", target_agent_id=brav.agent_id, category="other", details=details)
    wire = Wire(public)
    parts = [naughty[at : at + 60] for at in range(0, len(naughty), 60)]
    conv = wire.talk([("CHAT", {"text": part}) for part in parts])
    sign_in(watched, url)
    for path in ("/reports", f"/conversations/{conv}", "/agents", "/audit"):
        page.goto(f"{url}{path}")
        assert page.locator("main img, main script, main iframe, main svg, main object").count() == 0
        assert page.evaluate("document.scripts.length") == 3
    page.goto(f"{url}/conversations/{conv}")
    assert page.inner_text(".verdict").startswith("Holds")
    assert "<script>alert(" in page.inner_text("main")
