"""The page gives a session's artifact the verdict of `turret arena verify`: on good ones, and on each damaged one."""

import base64
import json
from typing import Any, get_args

import msgspec
import pytest

from broker.core.arenaverify import What, verify
from tests.broker.core.test_arenaverify import DAMAGES, damaged, longer
from tests.browser import artifacts
from tests.browser.conftest import LOOKS, WIDE, Look, Opened, Watched
from tests.browser.test_verify import page_file

__all__ = ["page_file"]
JUDGE = """async cases => {
  const bytes = text => Uint8Array.from(atob(text), each => each.charCodeAt(0));
  const found = [];
  for (const [text, ref] of cases) found.push(await turret.verifySession(bytes(text), ref));
  return found;
}"""
MSGSPECS = frozenset({"event", "kind", "config", "action", "facts", "deal", "result"})
"""What does not hold where msgspec, or an exception, may say why."""


def judged(page: Any, cases: list[tuple[bytes, str | None]]) -> list[dict[str, Any]]:
    """The page's verdicts."""
    found: list[dict[str, Any]] = page.evaluate(
        JUDGE, [[base64.b64encode(text).decode(), ref] for text, ref in cases]
    )
    return found


def told(verdict: dict[str, Any]) -> dict[str, Any]:
    """A verdict as both must give it: the words too, where they are ours."""
    if (fault := verdict.get("fault")) is not None and fault["what"] in MSGSPECS:
        return {**verdict, "fault": {**fault, "message": ""}}
    return verdict


def expected(text: bytes, ref: str | None) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(msgspec.json.encode(verify(text, artifacts.TABLE, ref)))
    return found


@pytest.mark.requirement("artifact.page-verdict")
def test_every_session_gets_the_verdict_of_turret_arena_verify(page_file: str, open_page: Opened) -> None:
    page = open_page(WIDE).page
    page.goto(page_file)
    good = artifacts.good()
    cases: list[tuple[str, bytes, str | None]] = [(name, text, None) for name, text in good.items()]
    cases += [(f"{name}: {how}", each, None) for name, text in good.items() if len(text) < 30_000
              for how, each in artifacts.damaged(text)]  # fmt: skip
    cases += [(f"{name}: by chance", each, None) for n, (name, text) in enumerate(good.items())
              for each in artifacts.mutated(text, 40, n)]  # fmt: skip
    cases += [(name, damaged(text, damage), None) for name, (text, damage, _, _) in DAMAGES.items()]
    cases += [(f"{game.NAME}: {many} of one action", longer(game, many), None)
              for game, most in ((artifacts.hilo, 4), (artifacts.rfq, 50)) for many in (most, most + 1)]  # fmt: skip
    ref = expected(good["shoe"], None)["ref"]
    cases += [("its ref", good["shoe"], ref), ("another ref", good["stopped"], ref)]
    found = judged(page, [(text, ref) for _, text, ref in cases])
    for (name, text, ref), verdict in zip(cases, found, strict=True):
        assert told(verdict) == told(expected(text, ref)), (name, text)
    assert all(verdict["ok"] for verdict in found[: len(good)])
    kinds = {verdict["fault"]["what"] for verdict in found if not verdict["ok"]}
    assert kinds == set(get_args(What))
    assert sum(not verdict["ok"] for verdict in found) > 1_000


DRAW = """async words => {
  const draws = new turret.Draws(null, null);
  draws.word = async () => BigInt(words.shift());
  return [await draws.below(3), words.length];
}"""


@pytest.mark.requirement("artifact.page-verdict")
def test_a_word_of_the_last_span_that_is_not_whole_is_drawn_again(page_file: str, open_page: Opened) -> None:
    page = open_page(WIDE).page
    page.goto(page_file)
    assert page.evaluate(DRAW, [str(2**64 - 1), "5"]) == [2, 0]
    assert page.evaluate(DRAW, [str(2**64 - 2), "5"]) == [2, 1]


def choose(watched: Watched, text: bytes, name: str = "session.json") -> None:
    watched.page.set_input_files("#file", {"name": name, "mimeType": "application/json", "buffer": text})
    watched.page.wait_for_selector("#status.good, #status.bad, #status.open")


@pytest.mark.requirement("artifact.page-shows")
@pytest.mark.parametrize("look", LOOKS, ids=str)
def test_a_session_is_shown_with_what_was_checked_and_each_event(
    page_file: str, open_page: Opened, look: Look
) -> None:
    watched = open_page(look._replace(scripts=True))
    page = watched.page
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(page_file)
    good = artifacts.good()
    choose(watched, good["stopped"])
    assert page.inner_text("#status") == "Holds: hilo 1, 7 events after the opening"
    assert page.locator("#summary .steps .good").count() == 6
    assert page.locator("#events tbody tr").count() == 8
    assert "the player stopped" in page.inner_text("#summary")
    assert expected(good["stopped"], None)["ref"] in page.inner_text("#summary")
    assert "stake 25" in page.inner_text("#events tbody tr:nth-child(2)")
    assert page.is_hidden("#rows")
    assert json.loads(page.text_content("#json")) == expected(good["stopped"], None)
    watched.seen("session-holds")
    broken = dict(artifacts.damaged(good["stopped"]))["points for nothing"]
    choose(watched, broken, "broken.json")
    assert page.inner_text("#status") == "Breaks at event 2: points"
    assert page.locator("#events tbody tr").count() == 3
    assert "✗ points" in page.inner_text("#events tr.broken")
    steps = page.locator("#summary .steps")
    assert steps.locator(".bad").inner_text().startswith("✗ Events")
    assert (steps.locator(".good").count(), steps.locator(".open").count()) == (4, 1)
    watched.seen("session-breaks")
    choose(watched, good["tape"], "tape.json")
    assert page.inner_text("#status").startswith("Holds: rfq 1, ")
    watched.seen("tape-holds")
    assert [each for each in asked if not each.startswith(("file:", "data:"))] == []


@pytest.mark.requirement("artifact.page-shows")
def test_what_nobody_can_check_and_games_that_are_not_known_are_said_plainly(
    page_file: str, open_page: Opened
) -> None:
    watched = open_page(WIDE)
    page = watched.page
    page.goto(page_file)
    good = artifacts.good()
    choose(watched, good["kept and persistent"])
    assert page.inner_text("#status").startswith("Holds as far as it can be checked: hilo 1, ")
    assert "seed and salt are kept" in page.inner_text("#summary")
    assert "persistent account" in page.inner_text("#summary")
    assert page.locator("#summary .steps .open").count() == 2
    watched.seen("session-kept")
    choose(watched, dict(artifacts.damaged(good["stopped"]))["game"], "chess.json")
    assert page.inner_text("#status") == "Can’t be judged here: this page does not know the game chess 1"
    assert page.get_attribute("#status", "class") == "open"
    assert page.locator("#summary .steps .bad").count() == 0
    watched.seen("game-unknown")
    choose(watched, dict(artifacts.damaged(good["stopped"]))["kind"], "trial.json")
    assert page.inner_text("#status").startswith("Can’t be judged here: this page does not know artifacts of")
    assert "turret.trial" in page.inner_text("#status")
    assert page.locator("#summary .steps .bad").count() == 0
    watched.seen("kind-unknown")
    choose(watched, dict(artifacts.damaged(good["stopped"]))["more members"], "more.json")
    assert page.inner_text("#status") == "Breaks: kind"


@pytest.mark.requirement("artifact.page-shows", "verifypage.of-this-file")
def test_a_session_can_be_pasted_and_held_to_a_ref(page_file: str, open_page: Opened) -> None:
    watched = open_page(WIDE)
    page = watched.page
    page.goto(page_file)
    good = artifacts.good()
    page.locator("details.field summary").first.click()
    page.fill("#text", f"\n{good['stopped'].decode()}\n")
    page.click("#paste")
    page.wait_for_selector("#status.good")
    ref = expected(good["stopped"], None)["ref"]
    for text, words in (
        (f"kestrel://artifact/{ref}", "Holds: "),
        ("0" * 64, "Breaks: ref"),
        ("no", "Nothing is verified"),
    ):
        page.fill("#ref", text)
        page.keyboard.press("Tab")
        page.wait_for_function(
            "words => document.getElementById('status').textContent.startsWith(words)", arg=words
        )
        assert page.is_visible("#ref-error") is (text == "no")
    page.fill("#ref", "")
    page.keyboard.press("Tab")
    page.wait_for_selector("#status.good")
    choose(watched, b'{"events":[' + b" " * 2**24)
    assert page.inner_text("#status") == (
        "This file is too large for a browser. Run: turret arena verify FILE"
    )
    assert page.is_hidden("#report")
    page.fill("#text", good["stopped"].decode()[:-5])
    page.click("#paste")
    page.wait_for_selector("#status.bad")
    assert page.inner_text("#status") == "Breaks: form"
    assert page.is_hidden("#rows-title")


@pytest.mark.requirement("artifact.page-shows", "verifypage.hostile")
def test_what_a_session_holds_is_text_and_a_long_one_is_shown_in_parts(
    page_file: str, open_page: Opened
) -> None:
    watched = open_page(WIDE)
    page = watched.page
    page.goto(page_file)
    evil = "<img src=x onerror=alert(1)>\u202e"
    text = artifacts.play(artifacts.hilo, artifacts.guesser(1), actions=149, client_seed=evil, decks=4)
    choose(watched, text)
    assert page.inner_text("#status").startswith("Holds")
    assert page.locator("#events tbody tr").count() == 100
    page.click("#more")
    assert page.locator("#events tbody tr").count() == 151
    made = msgspec.json.decode(text)
    made["events"][0] |= {"game": evil, "agent_id": evil}
    choose(watched, artifacts.encode(made), "evil.json")
    made["events"][0] |= {"game": "hilo"}
    made["events"][1]["action"] = {"type": evil, evil: evil}
    made["events"][-1]["ended"]["over"] = evil
    choose(watched, artifacts.encode(made), "evil.json")
    assert "<img src=x" in page.inner_text("#report")
    assert "\u202e" not in page.inner_text("#report")
    assert page.evaluate("document.querySelectorAll('img, iframe, svg').length") == 0
