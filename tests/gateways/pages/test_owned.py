"""What an owner sees of agents, claims, requests and apps."""

from typing import Any

import pytest

from broker.wire.refusals import refuse
from gateways.pages.owned import limit_words
from tests.gateways.pages.conftest import AGENT_ID, OWNER_ID, Browser, Verbs
from tests.support.html import Document

FREE = {"agreements": None, "messages_a_day": None, "own_channels": None, "webhook": True}
AGENT: dict[str, Any] = {
    "agent_id": AGENT_ID,
    "name": "Ann’s <b>desk</b>",
    "description": "It trades.\n<i>A lot.</i>",
    "tier": "claimed",
    "policy": "owner-decides",
    "public": True,
    "presence": "away",
    "last_seen": 1_782_345_678_000,
    "keys": [{"kid": "kid-1", "pk": "0f" * 32, "added_at": 1_782_345_678_000}],
    "limits": FREE,
    "suspended": False,
}
REQUEST: dict[str, Any] = {
    "request_id": "cr_1",
    "from_name": "Bob",
    "from_agent": "ag_2",
    "to_name": "Ann’s desk",
    "to_agent": AGENT_ID,
    "purpose": "quotes <script>alert(1)</script>",
    "scopes": ["message", "channel", "unheard-of"],
    "ttl_days": 30,
    "asked_at": 1_782_345_678_000,
    "expires_at": 1_782_345_678_000,
}
GRANT: dict[str, Any] = {
    "grant_id": "gr_1",
    "client_id": "cl_1",
    "client_name": "An <b>app</b>",
    "redirect_host": "app.example",
    "subject": AGENT_ID,
    "scopes": ["message"],
    "resource": "https://turret.test/mcp",
    "made_at": 1_782_345_678_000,
    "used_at": 1_782_345_678_000,
}


@pytest.mark.requirement("pages.agents")
async def test_an_owner_sees_the_agents_and_all_that_is_said_of_them(owner: Browser, verbs: Verbs) -> None:
    other = {**AGENT, "suspended": True, "keys": [], "last_seen": None, "policy": "new", "description": ""}
    verbs.answers["my_agents"] = {"agents": [AGENT, other]}
    document = Document((await owner.get("/owner")).text)
    assert document.faults == []
    assert verbs.asked == [("my_agents", {"owner_id": OWNER_ID})]
    assert [each.text for each in document.all("h2")] == ["Ann’s <b>desk</b>"] * 2
    for words in ("It trades.\n<i>A lot.</i>", "away", "claimed", AGENT_ID, "25 Jun 2026, 00:01 UTC", "kid-1",
                  "you decide on them", "not yet", "suspended by the operators"):  # fmt: skip
        assert words in document.text


@pytest.mark.requirement("pages.claim")
@pytest.mark.parametrize("typed", [" a code ", "claim code: a code\n"])
async def test_a_code_makes_an_agent_the_owners(owner: Browser, verbs: Verbs, typed: str) -> None:
    verbs.answers["claim_agent"] = {"agent_id": AGENT_ID}
    await owner.get("/owner/claim")
    answer = await owner.post("/owner/claim", code=typed, owner_id="ow_other")
    assert (answer.status_code, answer.headers["location"]) == (303, "/owner?done=claimed")
    assert verbs.asked == [("claim_agent", {"owner_id": OWNER_ID, "code": "a code"})]
    assert "The agent is yours now." in (await owner.get("/owner?done=claimed")).text
    assert "<b>" not in (await owner.get("/owner?done=<b>")).text


@pytest.mark.requirement("pages.claim")
@pytest.mark.parametrize(
    ("refusal", "status", "words"),
    [
        (refuse("not_found", "x"), 400, "leads to no agent"),
        (refuse("bad_request", "x", path="code"), 400, "leads to no agent"),
        (refuse("rate_limited", "x", retry_after_ms=2000), 429, "Wait 2 seconds"),
    ],
)
async def test_a_code_that_is_none_is_said_at_its_field(
    owner: Browser, verbs: Verbs, refusal: object, status: int, words: str
) -> None:
    verbs.answers["claim_agent"] = refusal
    await owner.get("/owner/claim")
    answer = await owner.post("/owner/claim", code="<b>wrong")
    document = Document(answer.text)
    assert (answer.status_code, document.faults) == (status, [])
    field = document.one("code").attributes
    assert (field["value"], field["aria-invalid"]) == ("<b>wrong", "true")
    assert words in document.one("code-error").text


async def test_no_code_asks_nobody(owner: Browser, verbs: Verbs) -> None:
    await owner.get("/owner/claim")
    assert (await owner.post("/owner/claim", code=" ")).status_code == 400
    assert verbs.asked == []
    verbs.answers["claim_agent"] = refuse("unavailable", "x")
    await owner.get("/owner/claim")
    assert (await owner.post("/owner/claim", code="x")).status_code == 503


@pytest.mark.requirement("pages.requests")
async def test_an_owner_sees_who_asks_for_what_and_may_give_less(owner: Browser, verbs: Verbs) -> None:
    verbs.answers["waiting_requests"] = {"requests": [REQUEST, {**REQUEST, "request_id": "cr_2"}]}
    verbs.answers["decide_request"] = {}
    document = Document((await owner.get("/owner/requests")).text)
    assert document.faults == []
    for words in (
        "Bob",
        "quotes <script>alert(1)</script>",
        "read and write in channels",
        "unheard-of",
        "At most 30",
    ):
        assert words in document.text
    answer = await owner.post(
        "/owner/requests",
        request_id="cr_1",
        scope=["message"],
        ttl_days=" 7",
        decision="accept",
        owner_id="ow_x",
    )
    assert (answer.status_code, answer.headers["location"]) == (303, "/owner/requests?done=accepted")
    asked = {"owner_id": OWNER_ID, "request_id": "cr_1", "accept": True, "scopes": ["message"], "ttl_days": 7}
    assert verbs.asked[-1] == ("decide_request", asked)


@pytest.mark.requirement("pages.requests")
async def test_declining_needs_nothing_else(owner: Browser, verbs: Verbs) -> None:
    verbs.answers["decide_request"] = {}
    await owner.get("/owner/claim")
    answer = await owner.post("/owner/requests", request_id="cr_1", decision="decline", ttl_days="x")
    assert answer.headers["location"] == "/owner/requests?done=declined"
    asked = {"owner_id": OWNER_ID, "request_id": "cr_1", "accept": False}
    assert verbs.asked == [("decide_request", asked)]


@pytest.mark.requirement("pages.requests")
@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"ttl_days": "7"}, "Tick at least one"),
        ({"scope": ["message"], "ttl_days": ""}, "whole number"),
        ({"scope": ["message"], "ttl_days": "1.5"}, "whole number"),
        ({"scope": ["message"], "ttl_days": "9" * 20}, "whole number"),
        ({"scope": ["message"], "ttl_days": "99"}, "At most what was asked."),
    ],
)
async def test_a_decision_that_can_not_be_is_said_at_its_request(
    owner: Browser, verbs: Verbs, fields: dict[str, Any], words: str
) -> None:
    verbs.answers["waiting_requests"] = {"requests": [{**REQUEST, "request_id": "cr_2"}, REQUEST]}
    verbs.answers["decide_request"] = refuse("bad_request", "at most what was asked", path="ttl_days")
    await owner.get("/owner/requests")
    answer = await owner.post("/owner/requests", request_id="cr_1", decision="accept", **fields)
    document = Document(answer.text)
    assert (answer.status_code, document.faults) == (400, [])
    assert words in document.one("error-2").text


@pytest.mark.requirement("pages.requests")
async def test_what_the_owner_took_away_stays_away_when_the_form_comes_again(
    owner: Browser, verbs: Verbs
) -> None:
    asked = {**REQUEST, "scopes": ["message", "channel"]}
    verbs.answers["waiting_requests"] = {"requests": [{**asked, "request_id": "cr_2"}, asked]}
    verbs.answers["decide_request"] = refuse("bad_request", "at most what was asked", path="ttl_days")
    for days, shown in (("99", "99"), ("x", "30")):
        await owner.get("/owner/requests")
        answer = await owner.post(
            "/owner/requests", request_id="cr_1", decision="accept", scope=["message"], ttl_days=days
        )
        document = Document(answer.text)
        boxes = ("scope-1-1", "scope-1-2", "scope-2-1", "scope-2-2")
        ticked = [box for box in boxes if "checked" in document.one(box).attributes]
        assert ticked == ["scope-1-1", "scope-1-2", "scope-2-1"], "the other request is as it was"
        assert document.one("ttl-2").attributes["value"] == shown


@pytest.mark.requirement("pages.not-mine")
@pytest.mark.parametrize(
    ("path", "verb", "fields"),
    [
        ("/owner/requests", "decide_request", {"request_id": "cr_9", "decision": "decline"}),
        ("/owner/grants", "revoke_grant", {"grant_id": "gr_9"}),
        ("/consent", "decide_authorization", {"ask": "x", "decision": "deny"}),
    ],
)
async def test_what_is_not_this_owners_is_missing(
    owner: Browser, verbs: Verbs, path: str, verb: str, fields: dict[str, Any]
) -> None:
    verbs.answers[verb] = refuse("not_found", "there is no such thing")
    await owner.get("/owner/claim")
    answer = await owner.post(path, **fields)
    assert answer.status_code == 404
    assert Document(answer.text).faults == []
    assert verbs.asked[-1][1]["owner_id"] == OWNER_ID


@pytest.mark.requirement("pages.grants")
async def test_an_owner_sees_which_apps_act_and_signs_one_out(owner: Browser, verbs: Verbs) -> None:
    verbs.answers["my_agents"] = {"agents": [AGENT]}
    verbs.answers["list_grants"] = {"grants": [GRANT, {**GRANT, "grant_id": "gr_2", "subject": OWNER_ID}]}
    verbs.answers["revoke_grant"] = {}
    document = Document((await owner.get("/owner/grants")).text)
    assert document.faults == []
    for words in (
        "An <b>app</b>",
        "Ann’s <b>desk</b>",
        "you, the owner",
        "app.example",
        "send and read direct",
    ):
        assert words in document.text
    answer = await owner.post("/owner/grants", grant_id="gr_1")
    assert answer.headers["location"] == "/owner/grants?done=revoked"
    assert verbs.asked[-1] == ("revoke_grant", {"owner_id": OWNER_ID, "grant_id": "gr_1"})


@pytest.mark.parametrize(
    ("path", "verb"),
    [
        ("/owner", "my_agents"),
        ("/owner/requests", "waiting_requests"),
        ("/owner/grants", "list_grants"),
        ("/owner/grants", "my_agents"),
        ("/directory", "search_directory"),
    ],
)
async def test_a_list_that_can_not_be_had_is_told(owner: Browser, verbs: Verbs, path: str, verb: str) -> None:
    verbs.answers[verb] = refuse("unavailable", "the store gives nothing now")
    answer = await owner.get(path)
    assert (answer.status_code, Document(answer.text).faults) == (503, [])
    assert "the store" not in answer.text


def test_limits_are_told_in_words() -> None:
    assert limit_words(FREE) == "none beyond what holds for all"
    assert limit_words({"agreements": 1, "messages_a_day": 20, "own_channels": 0, "webhook": False}) == (
        "1 agreement, 20 direct messages a day, no channel of its own, no webhook"
    )


AGREEMENT: dict[str, Any] = {
    "agreement_id": "agr_1",
    "counterpart": {"agent_id": "ag_2", "name": "Bob <b>"},
    "scopes": ["message", "unheard-of"],
    "direction": "both",
    "made_by": "operator",
    "status": "silent",
    "made_at": 1_782_345_678_000,
    "expires_at": None,
    "irc_accounts": [],
}


@pytest.mark.requirement("moderation.care")
async def test_an_owner_sees_what_its_agent_agreed_on_and_its_keys(owner: Browser, verbs: Verbs) -> None:
    verbs.answers["my_agent"] = {"agent": AGENT, "agreements": [AGREEMENT]}
    document = Document((await owner.get(f"/owner/agent?id={AGENT_ID}")).text)
    assert document.faults == []
    assert verbs.asked == [("my_agent", {"owner_id": OWNER_ID, "agent_id": AGENT_ID})]
    for words in ("Bob <b>", "unheard-of", "made by the operators", "not there now", "kid-1", "last one"):
        assert words in document.text
    (checked,) = [each for each in document.all("input") if "checked" in each.attributes]
    assert checked.attributes["value"] == "owner-decides"
    verbs.answers["my_agent"] = refuse("not_found", "x")
    assert (await owner.get("/owner/agent?id=x")).status_code == 404


@pytest.mark.requirement("moderation.care")
@pytest.mark.parametrize(
    ("state", "words"),
    [
        ({"state": "active"}, "active"),
        ({"state": "failing", "failing_since": 1_782_345_678_000}, "3 wait"),
        ({"state": "disabled", "disabled_at": 1_782_345_678_000}, "the agent was told"),
    ],
)
async def test_an_owner_sees_where_its_agents_events_are_sent(
    owner: Browser, verbs: Verbs, state: dict[str, Any], words: str
) -> None:
    url = 'https://hooks.example/?"><b>x'
    hook = {"url": url, "created_at": 1_782_345_678_000, "waiting": 3, **state}
    verbs.answers["my_agent"] = {"agent": AGENT, "agreements": [], "webhook": hook}
    document = Document((await owner.get(f"/owner/agent?id={AGENT_ID}")).text)
    assert document.faults == []
    assert words in document.text
    assert url in document.text
    (field,) = [each for each in document.all("input") if each.attributes.get("name") == "url"]
    assert field.attributes["value"] == url


@pytest.mark.requirement("moderation.care", "pages.csrf")
@pytest.mark.parametrize(
    ("do", "verb", "given"),
    [
        ("policy", "choose_policy", {"policy": "deny"}),
        ("key", "revoke_agent_key", {"kid": "kid-1"}),
        ("agreement", "end_agreement", {"agreement_id": "agr_1"}),
        ("webhook", "end_webhook", {"url": "https://hooks.example/"}),
    ],
)
async def test_what_an_owner_does_for_its_agent_is_asked_in_its_own_name(
    owner: Browser, verbs: Verbs, do: str, verb: str, given: dict[str, str]
) -> None:
    verbs.answers["my_agent"] = {"agent": AGENT, "agreements": [AGREEMENT]}
    verbs.answers[verb] = {}
    fields = {"id": AGENT_ID, "do": do, "owner_id": "ow_other", **given}
    await owner.get(f"/owner/agent?id={AGENT_ID}")
    verbs.asked.clear()
    assert (await owner.post("/owner/agent", _token="made up", **fields)).status_code == 403
    assert verbs.asked == []
    await owner.get(f"/owner/agent?id={AGENT_ID}")
    verbs.asked.clear()
    answer = await owner.post("/owner/agent", **fields)
    assert (answer.status_code, answer.headers["location"]) == (303, f"/owner/agent?id={AGENT_ID}&done={do}")
    assert verbs.asked == [(verb, {"owner_id": OWNER_ID, "agent_id": AGENT_ID, **given})]
    shown = await owner.get(answer.headers["location"])
    assert 'role="status"' in shown.text
    verbs.answers[verb] = refuse("not_found", "x")
    assert (await owner.post("/owner/agent", **fields)).status_code == 404


async def test_what_is_none_of_it_asks_nobody(owner: Browser, verbs: Verbs) -> None:
    verbs.answers["my_agent"] = {"agent": AGENT, "agreements": []}
    await owner.get(f"/owner/agent?id={AGENT_ID}")
    verbs.asked.clear()
    answer = await owner.post("/owner/agent", id=AGENT_ID, do="delete")
    assert (answer.headers["location"], verbs.asked) == ("/owner", [])
