"""An owner's pages of the agents' sessions in the arena, in front of verbs that the test answers for."""

import re
from typing import Any

import httpx
import msgspec
import pytest

from broker.wire.refusals import refuse
from gateways.metrics import Metrics
from gateways.pages.sessions import HTMX, INTERVAL_S, NO_MORE, RESTS_MS, number
from gateways.web import web_app
from gateways.wrappers import Origins
from tests.gateways.pages.conftest import AGENT_ID, OWNER_ID, Browser, Verbs
from tests.support.agents import make_agent
from tests.support.arena import open_session
from tests.support.broker import open_bench, tuned
from tests.support.html import Document
from tests.support.owners import CHEAP, PASSWORD

ID = "as_01JZ0000000000000000000000"
NOW = 1_782_345_678_000
HOSTILE = '<script>alert(1)</script>"><img src=x onerror=alert(2)>\u202e'
SESSION: dict[str, Any] = {
    "session_id": ID,
    "agent_id": AGENT_ID,
    "game": "hilo",
    "game_version": 1,
    "mode": "simulation",
    "status": "open",
    "version": 2,
    "observation": {"current": "TH", "seen": ["2C", "QS"], "left": 49},
    "legal_actions": [{"type": "call", "guess": "higher", "stake": {"min": 1, "max": 995}}, {"type": "stop"}],
    "account": {"kind": "simulation", "account_id": f"session:{ID}", "balance": 995},
    "net": -5,
    "config": {"reveal": "on_end"},
    "commit": "c0" * 32,
    "client_seed": HOSTILE,
    "games": 0,
    "opened_at": NOW,
    "changed_at": NOW,
}
OVER: dict[str, Any] = {
    **SESSION,
    "status": "over",
    "over": "stopped",
    "legal_actions": [],
    "seed": "5e" * 32,
    "salt": "5a" * 32,
    "artifact": {"ref": "ab" * 32, "uri": f"kestrel://artifact/{'ab' * 32}"},
}


def event(n: int, change: int, net: int, **members: Any) -> dict[str, Any]:
    acted = {
        "type": "acted",
        "action": {"type": "call", "stake": 5, "guess": "higher"},
        "facts": {"card": "QS"},
    }
    return {"n": n, "at": NOW, "change": change, "net": net, "event": {**acted, **members}}


ONE: dict[str, Any] = {
    "name": "Ann’s <b>desk</b>",
    "suspended": False,
    "session": SESSION,
    "mark": {"mark": "2.1", "now": NOW},
    "facts": {"card": "2C"},
    "points": 1_000,
    "nets": [0, 20, -5],
    "events": [event(2, -25, -5), event(1, 20, 20)],
    "attempts": [
        {
            "n": 0,
            "at": NOW,
            "tried": {
                "code": "ILLEGAL_ACTION",
                "message": HOSTILE,
                "expected_version": 1,
                "action": {"type": HOSTILE, HOSTILE: [HOSTILE]},
                "by": AGENT_ID,
            },
        }
    ],
    "kept": 1,
}
BRIEF: dict[str, Any] = {
    name: SESSION[name]
    for name in ("session_id", "game", "game_version", "mode", "status", "version", "account", "net")
} | {"opened_at": NOW, "changed_at": NOW}
ALL: dict[str, Any] = {
    "agent_id": AGENT_ID,
    "name": "Ann’s <b>desk</b>",
    "account": {"kind": "persistent", "account_id": f"agent:{AGENT_ID}", "balance": 12_345},
    "games": 2,
    "sessions": [BRIEF, {**BRIEF, "status": "over", "over": "bust", "mode": "persistent"}],
    "next": "agent-7",
}


def faults(document: Document) -> list[str]:
    """What is wrong with a page that may load our one script."""
    return [each for each in document.faults if each != "<script>"]


def live(document: Document) -> str:
    """Where a page asks again."""
    return document.one("live").attributes["hx-get"]


@pytest.mark.requirement("pages.arena-sessions")
async def test_the_sessions_of_an_agent_are_listed_with_its_account(owner: Browser, verbs: Verbs) -> None:
    verbs.answers["my_sessions"] = ALL
    document = Document((await owner.get(f"/owner/sessions?agent={AGENT_ID}")).text)
    assert document.faults == []
    assert verbs.asked == [("my_sessions", {"owner_id": OWNER_ID, "agent_id": AGENT_ID, "which": "all"})]
    for said in ("Ann’s <b>desk</b>", "12,345", "hilo 1", "open", "over", "simulation", "for its own points",
                 "-5", "too few points were left", "25 Jun 2026, 00:01 UTC"):  # fmt: skip
        assert said in document.text
    links = [each.attributes["href"] for each in document.all("a")]
    assert f"/owner/session?id={ID}" in links
    assert f"/owner/sessions?agent={AGENT_ID}&after=agent-7" in links
    await owner.get(f"/owner/sessions?agent={AGENT_ID}&which=open&after=open-7&owner_id=ow_x")
    asked = {"owner_id": OWNER_ID, "agent_id": AGENT_ID, "which": "open", "after": "open-7"}
    assert verbs.asked[-1] == ("my_sessions", asked)
    verbs.answers["my_sessions"] = {**ALL, "sessions": [], "next": None}
    assert "opened no session yet" in (await owner.get("/owner/sessions?agent=x&which=<b>")).text


@pytest.mark.requirement("pages.arena-session")
async def test_a_session_shows_what_its_agent_sees_and_did(owner: Browser, verbs: Verbs) -> None:
    verbs.answers["my_session"] = ONE
    document = Document((await owner.get(f"/owner/session?id={ID}")).text)
    assert faults(document) == []
    assert verbs.asked == [("my_session", {"owner_id": OWNER_ID, "session_id": ID})]
    for said in ("Open card", "10♥", "2♣, Q♠", "call: guess higher, stake 1 to 995", "card Q♠", "+20", "-25", "1,020",
                 "995", "opened", "ILLEGAL_ACTION", "c0" * 32, "Seed and salt are shown when"):  # fmt: skip
        assert said in document.text
    table = document.one("points-title").inside("section")
    assert [each.text for each in document.all("caption") if each.inside("section") is table] == [
        "Points of this session"
    ]
    assert "From 1,000 to 995 points; the least were 995, the most 1,020." in document.text


@pytest.mark.requirement("pages.arena-session")
async def test_history_leads_on_in_pages(owner: Browser, verbs: Verbs) -> None:
    attempts = [{**ONE["attempts"][0], "n": 9}]
    verbs.answers["my_session"] = {**ONE, "events": [event(40, 1, 1), event(21, 1, 1)], "attempts": attempts}
    page = await owner.get(f"/owner/session?id={ID}&before=41&rejected_before=10")
    document = Document(page.text)
    assert verbs.asked[-1][1] == {"owner_id": OWNER_ID, "session_id": ID, "before": 41, "rejected_before": 10}
    assert document.one("events-older").attributes["href"] == f"/owner/session?id={ID}&before=21#events-title"
    older = f"/owner/session?id={ID}&rejected_before=9#attempts-title"
    assert document.one("attempts-older").attributes["href"] == older
    assert document.one("events-last").attributes["href"] == f"/owner/session?id={ID}"
    assert "&before=41&rejected_before=10&" in live(document)
    await owner.get(f"/owner/session?id={ID}&before=<b>&rejected_before=-1")
    assert verbs.asked[-1][1] == {"owner_id": OWNER_ID, "session_id": ID}


@pytest.mark.requirement("pages.arena-text")
async def test_whatever_an_agent_sent_is_text(owner: Browser, verbs: Verbs) -> None:
    seen = {HOSTILE: {HOSTILE: [HOSTILE]}}
    hostile = {
        **ONE,
        "name": HOSTILE,
        "session": {**SESSION, "observation": seen, "legal_actions": [{"type": HOSTILE}]},
        "events": [event(1, 0, 0, action={"type": HOSTILE, "x": HOSTILE}, facts={HOSTILE: HOSTILE})],
        "facts": {HOSTILE: HOSTILE},
    }
    verbs.answers["my_session"] = hostile
    verbs.answers["my_session_mark"] = {"mark": "3.1", "now": NOW}
    whole = (await owner.get(f"/owner/session?id={ID}")).text
    part = (await owner.get(f"/owner/session/live?id={ID}&since={NOW}&mark=2.1")).text
    for text in (whole, part):
        assert len(re.findall("<script", text)) == (text is whole)
        assert "<img" not in text
        assert "\u202e" not in text
        assert "&lt;script&gt;alert(1)" in text
    assert faults(Document(whole)) == []
    assert HOSTILE.replace("\u202e", "\ufffd") in Document(whole).text


@pytest.mark.requirement("pages.arena-hidden")
async def test_what_was_revealed_is_shown_with_ways_to_check_it(owner: Browser, verbs: Verbs) -> None:
    ended = {"over": "stopped", "seed": "5e" * 32, "salt": "5a" * 32}
    last = event(3, 0, -5, action={"type": "stop"}, ended=ended)
    verbs.answers["my_session"] = {**ONE, "session": OVER, "events": [last, *ONE["events"]]}
    answer = await owner.get(f"/owner/session?id={ID}&done=stopped")
    document = Document(answer.text)
    assert document.faults == []
    assert "script-src" not in answer.headers["content-security-policy"]
    for said in ("5e" * 32, "5a" * 32, "it was stopped", "You stopped the session."):
        assert said in document.text
    links = [each.attributes["href"] for each in document.all("a")]
    assert f"/artifact/{'ab' * 32}" in links
    assert "/verify" in links
    assert document.all("button")[0].text == "Sign out"
    assert len(document.all("button")) == 1
    closed = {
        "n": 3,
        "at": NOW,
        "change": 0,
        "net": -5,
        "event": {"type": "closed", "ended": {"over": "expired"}},
    }
    verbs.answers["my_session"] = {**ONE, "session": {**OVER, "over": "expired"}, "events": [closed]}
    document = Document((await owner.get(f"/owner/session?id={ID}")).text)
    assert document.faults == []
    assert "The session ended: nobody acted in time" in document.text
    assert "action 1" in document.text  # its version is 2: the end is one
    expired = {**BRIEF, "status": "over", "over": "expired"}
    verbs.answers["my_sessions"] = {**ALL, "sessions": [expired]}
    assert "Actions1" in Document((await owner.get(f"/owner/sessions?agent={AGENT_ID}")).text).text
    never = {**OVER, "config": {"reveal": "never"}}
    del never["seed"], never["salt"]
    verbs.answers["my_session"] = {**ONE, "session": never}
    assert "Seed</dt>" not in (await owner.get(f"/owner/session?id={ID}")).text
    verbs.answers["my_session"] = {**ONE, "session": {**SESSION, "config": {"reveal": "never"}}}
    assert "are never shown" in (await owner.get(f"/owner/session?id={ID}")).text


@pytest.mark.requirement("pages.arena-live")
async def test_a_page_loads_our_own_script_alone_and_asks_again(owner: Browser, verbs: Verbs) -> None:
    verbs.answers["my_session"] = ONE
    answer = await owner.get(f"/owner/session?id={ID}")
    document = Document(answer.text)
    policy = answer.headers["content-security-policy"]
    assert "script-src 'self'; connect-src 'self'" in policy
    assert "unsafe" not in policy
    assert "default-src 'none'" in policy
    (script,) = document.all("script")
    assert script.text == ""
    loaded = await owner.client.get(script.attributes["src"])
    assert loaded.content == HTMX.read_bytes()
    assert (loaded.status_code, loaded.headers["content-type"]) == (200, "text/javascript; charset=utf-8")
    part = document.one("live").attributes
    assert part["hx-trigger"] == f"every {INTERVAL_S}s"
    assert part["hx-get"] == f"/owner/session/live?id={ID}&since={NOW}&mark=2.1"


@pytest.mark.requirement("pages.arena-live")
async def test_nothing_new_is_204_and_news_are_the_part_alone(owner: Browser, verbs: Verbs) -> None:
    verbs.answers["my_session"] = ONE
    verbs.answers["my_session_mark"] = {"mark": "2.1", "now": NOW + RESTS_MS}
    asked_at = live(Document((await owner.get(f"/owner/session?id={ID}")).text))
    verbs.asked.clear()
    answer = await owner.get(asked_at)
    assert (answer.status_code, answer.text) == (204, "")
    assert verbs.asked == [("my_session_mark", {"owner_id": OWNER_ID, "session_id": ID})]
    verbs.answers["my_session_mark"] = {"mark": "3.1", "now": NOW}
    verbs.answers["my_session"] = {**ONE, "mark": {"mark": "3.1", "now": NOW + 5}}
    answer = await owner.get(asked_at)
    assert answer.status_code == 200
    assert answer.text.startswith('<div id="live" hx-get=')
    assert f"since={NOW}&amp;mark=3.1" in answer.text  # as old as the page is
    verbs.answers["my_session"] = {**ONE, "session": OVER}
    answer = await owner.get(asked_at)
    assert answer.status_code == NO_MORE
    assert "hx-get" not in answer.text
    assert "it was stopped" in answer.text
    assert 'id="stop" hx-swap-oob="delete"' in answer.text


@pytest.mark.requirement("pages.arena-live")
async def test_a_page_asks_no_more_once_it_is_old_signed_out_or_about_nothing(
    owner: Browser, nobody: Browser, verbs: Verbs
) -> None:
    path = f"/owner/session/live?id={ID}&mark=2.1"
    verbs.answers["my_session_mark"] = {"mark": "2.1", "now": NOW + RESTS_MS + 1}
    for since in (NOW, "", "x", "-1", 10**30):
        answer = await owner.get(f"{path}&since={since}")
        assert answer.status_code == NO_MORE
        assert "does not renew itself any more" in answer.text
    verbs.answers["my_session_mark"] = refuse("NOT_FOUND", "there is no such session")
    assert (await owner.get(path)).status_code == NO_MORE
    verbs.answers["my_session_mark"] = refuse("unavailable", "x")
    assert (await owner.get(path)).status_code == 503  # which htmx passes over, to ask again
    verbs.answers["my_session_mark"] = {"mark": "3.1", "now": NOW}
    verbs.answers["my_session"] = refuse("unavailable", "x")
    assert (await owner.get(f"{path}&since={NOW}")).status_code == 503
    verbs.asked.clear()
    answer = await nobody.get(path + "&since=1")
    assert (answer.status_code, verbs.asked) == (NO_MORE, [])
    assert "You are signed out." in answer.text
    assert "set-cookie" not in answer.headers
    assert f'href="/owner/session?id={ID}"' in answer.text


@pytest.mark.requirement("pages.arena-stop")
async def test_a_form_stops_with_a_key_of_its_own(owner: Browser, verbs: Verbs) -> None:
    verbs.answers["my_session"] = ONE
    verbs.answers["stop_my_session"] = {"session_id": ID, "over": "stopped"}
    keys = []
    for _ in range(2):
        document = Document((await owner.get(f"/owner/session?id={ID}")).text)
        form = next(each for each in document.all("form") if each.attributes["action"] == "/owner/session")
        assert form.inside("div") is None  # not in what is renewed
        fields = {
            each.attributes["name"]: each.attributes["value"]
            for each in document.all("input")
            if each.inside("form") is form
        }
        keys.append(fields["key"])
        answer = await owner.post("/owner/session", id=fields["id"], key=fields["key"], owner_id="ow_x")
        assert (answer.status_code, answer.headers["location"]) == (
            303,
            f"/owner/session?id={ID}&done=stopped",
        )
        assert verbs.asked[-1] == (
            "stop_my_session",
            {"owner_id": OWNER_ID, "session_id": ID, "key": keys[-1]},
        )
    assert len(set(keys)) == 2


@pytest.mark.requirement("pages.arena-stop")
@pytest.mark.parametrize(
    ("refusal", "status"),
    [
        (refuse("SESSION_OVER", "x"), 303),
        (refuse("NOT_FOUND", "there is no such session"), 404),
        (refuse("CONFLICT", "it moved on"), 409),
        (refuse("suspended", "x"), 403),
        (refuse("unavailable", "x"), 503),
    ],
)
async def test_a_stop_that_is_refused_says_so(
    owner: Browser, verbs: Verbs, refusal: Any, status: int
) -> None:
    verbs.answers["stop_my_session"] = refusal
    await owner.get("/owner/claim")
    answer = await owner.post("/owner/session", id=ID, key="k")
    assert answer.status_code == status
    if status == 303:
        assert answer.headers["location"] == f"/owner/session?id={ID}&done=over"
    else:
        assert Document(answer.text).faults == []


@pytest.mark.requirement("pages.arena-stop")
async def test_nobody_stops_without_a_form_of_ours_or_for_a_suspended_agent(
    owner: Browser, nobody: Browser, verbs: Verbs
) -> None:
    await owner.get("/owner/claim")
    assert (await owner.post("/owner/session", _token="x", id=ID, key="k")).status_code == 403
    await nobody.get("/sign-in")
    answer = await nobody.post("/owner/session", id=ID, key="k")
    assert answer.headers["location"].startswith("/sign-in?next=%2Fowner%2Fsession")
    assert verbs.asked == []
    verbs.answers["my_session"] = {**ONE, "suspended": True}
    text = (await owner.get(f"/owner/session?id={ID}")).text
    assert "Stop the session" not in text
    assert "suspended by the operators" in text


@pytest.mark.requirement("pages.arena-foreign")
async def test_what_is_anothers_is_a_page_that_says_nothing(owner: Browser, verbs: Verbs) -> None:
    verbs.answers["my_session"] = refuse("NOT_FOUND", "there is no such session", path="session_id")
    verbs.answers["my_sessions"] = refuse("not_found", "there is no such agent")
    for path in (f"/owner/session?id={ID}", f"/owner/sessions?agent={AGENT_ID}"):
        answer = await owner.get(path)
        assert answer.status_code == 404
        assert "There is nothing like that here" in answer.text


async def test_a_number_of_the_address_is_one_or_nothing() -> None:
    from gateways.pages.browser import Form

    given = {"a": ["7"], "b": ["0"], "c": ["٣"], "d": ["9" * 16], "e": ["9" * 15]}
    assert [number(Form(given), name) for name in "abcdef"] == [7, None, None, None, 10**15 - 1, None]


@pytest.mark.requirement("pages.arena-foreign", "pages.arena-hidden", "pages.arena-stop")
async def test_over_a_real_broker_the_owner_sees_stops_and_checks_and_a_stranger_finds_nothing() -> None:
    async with open_bench(tuned(owners=msgspec.structs.asdict(CHEAP))) as bench:
        app = web_app(bench.broker, Metrics(bench.broker), origins=Origins())
        transport = httpx.ASGITransport(app=app, client=("203.0.113.7", 1234))  # type: ignore[arg-type]
        async with (
            httpx.AsyncClient(transport=transport, base_url="http://turret.test") as one,
            httpx.AsyncClient(transport=transport, base_url="http://turret.test") as other,
        ):
            ann, eve = Browser(one), Browser(other)
            for who, email in ((ann, "ann@x.example"), (eve, "eve@x.example")):
                await who.get("/sign-up")
                assert (await who.post("/sign-up", email=email, password=PASSWORD)).status_code == 303
            agent = await make_agent(bench, "Desk", owner_id=one.cookies["turret"].partition(".")[0])
            opened = await open_session(bench, agent)
            at = f"/owner/session?id={opened['session_id']}"
            page = await ann.get(at)
            document = Document(page.text)
            assert (page.status_code, faults(document)) == (200, [])
            assert opened["commit"] in page.text
            assert (await ann.get(live(document))).status_code == 204
            never = "as_" + "0" * 26
            texts = [await eve.get(f"/owner/session{part}?id={id}") for part in ("", "/live")
                     for id in (opened["session_id"], never)]  # fmt: skip
            assert [each.status_code for each in texts] == [404, 404, NO_MORE, NO_MORE]
            assert texts[0].text == texts[1].text
            assert texts[2].text.replace(opened["session_id"], never) == texts[3].text
            listed = await eve.get(f"/owner/sessions?agent={agent.agent}")
            assert listed.status_code == 404
            await eve.get("/owner/claim")
            answer = await eve.post("/owner/session", id=opened["session_id"], key="k")
            assert answer.status_code == 404
            await ann.get(at)
            answer = await ann.post("/owner/session", id=opened["session_id"], key="k")
            over = (await ann.get(answer.headers["location"])).text
            shown = msgspec.to_builtins(
                await bench.call("get_session", agent, session_id=opened["session_id"])
            )["session"]
            assert shown["over"] == "stopped"
            for secret in (shown["seed"], shown["salt"]):
                assert secret in over
                assert secret not in page.text
            ref = shown["artifact"]["ref"]
            assert f'href="/artifact/{ref}"' in over
            assert (await one.get(f"/artifact/{ref}")).status_code == 200
