"""The consent: what an owner is asked, decides, and takes back."""

from typing import Any

import pytest
import trio

from broker.actors.signin import ASKS
from broker.core.grant import ASK_MS
from broker.store.port import Unavailable
from broker.wire.refusals import Refusal
from tests.support.agents import make_agent
from tests.support.broker import STRANGER, Bench, code
from tests.support.signin import (
    CHALLENGE,
    ISSUER,
    REDIRECT,
    RESOURCE,
    STATE,
    answer_in,
    begin,
    consent,
    new_owner,
    register,
    signin,
)


def error(answer: Any) -> str:
    """OAuth's code in a refusal."""
    assert isinstance(answer, Refusal), answer
    return str(answer.detail["error"])


@pytest.mark.requirement("signin.consent")
async def test_an_owner_is_shown_what_a_client_asks_for(bench: Bench) -> None:
    client = await register(bench, client_uri="https://app.example/about")
    begun = await begin(bench, client["client_id"], scopes=["channel", "message", "offline_access"])
    shown = await signin(bench, "authorization_request", ask=begun["ask"])
    assert shown == {
        "client_id": client["client_id"],
        "client_name": "An app",
        "client_uri": "https://app.example/about",
        "redirect_host": "127.0.0.1",
        "loopback_only": True,
        "scopes": ["message", "channel"],
        "resource": RESOURCE,
    }


@pytest.mark.requirement("signin.consent")
async def test_the_answer_goes_to_the_redirect_with_state_and_issuer(bench: Bench) -> None:
    owner, client = await new_owner(bench), await register(bench)
    for allow in (True, False):
        begun = await begin(bench, client["client_id"])
        decided = await signin(
            bench, "decide_authorization", ask=begun["ask"], owner_id=owner, subject=owner, allow=allow
        )
        assert decided["redirect"].startswith(f"{REDIRECT}?")
        told = answer_in(decided["redirect"])
        assert (told["state"], told["iss"]) == (STATE, ISSUER)
        assert ("code" in told, told.get("error")) == ((True, None) if allow else (False, "access_denied"))
        again = await signin(bench, "decide_authorization", ask=begun["ask"], owner_id=owner, allow=True)
        assert (
            code(again) == code(await signin(bench, "authorization_request", ask=begun["ask"])) == "not_found"
        )


@pytest.mark.requirement("signin.consent")
async def test_a_request_is_over_after_ten_minutes(bench: Bench) -> None:
    begun = await begin(bench, (await register(bench))["client_id"])
    bench.clock.step(ASK_MS - 60_000)
    assert code(await signin(bench, "authorization_request", ask=begun["ask"])) == "accepted"
    bench.clock.step(60_000)
    for verb, params in (
        ("authorization_request", {}),
        ("decide_authorization", {"owner_id": "x", "allow": True}),
    ):
        assert code(await signin(bench, verb, ask=begun["ask"], **params)) == "not_found"


@pytest.mark.requirement("signin.redirect")
@pytest.mark.parametrize(
    ("registered", "asked", "good"),
    [
        (["https://app.example/back"], "https://app.example/back", True),
        (["https://app.example/back"], None, True),
        (["https://app.example/back"], "https://app.example/back/", False),
        (["https://app.example/back"], "https://app.example/back?x=1", False),
        (["https://app.example/back"], "https://APP.example/back", False),
        (["https://app.example/back"], "https://app.example:444/back", False),
        (["https://app.example/back", "https://app.example/other"], None, False),
        (["http://127.0.0.1/back"], "http://127.0.0.1:51004/back", True),
        (["http://127.0.0.1:1/back"], "http://127.0.0.1:51004/back", True),
        (["http://[::1]/back"], "http://[::1]:5/back", True),
        (["http://127.0.0.1/back"], "http://localhost:51004/back", False),
        (["http://127.0.0.1/back"], "http://127.0.0.1:51004/other", False),
        (["http://127.0.0.1/back"], "http://127.0.0.1:51004@evil.example/back", False),
        (["http://127.0.0.1/back"], "http://127.0.0.1:0/back", False),
        (["http://127.0.0.1/back"], "http://127.0.0.1.evil.example/back", False),
    ],
)
async def test_a_redirect_is_one_that_the_client_registered(
    bench: Bench, registered: list[str], asked: str | None, good: bool
) -> None:
    client = await register(bench, redirect_uris=registered)
    answer = await begin(bench, client["client_id"], redirect_uri=asked)
    if good:
        assert "ask" in answer
    else:
        assert error(answer) == "invalid_request"
        assert "redirect" not in answer.detail


@pytest.mark.requirement("signin.redirect")
async def test_an_unknown_client_is_never_sent_anywhere(bench: Bench) -> None:
    for client_id in ("cl_01ARZ3NDEKTSV4RRFFQ69G5FAV", "nobody", "https://app.example/client", "http://x/y"):
        assert error(await begin(bench, client_id)) == "invalid_client"


@pytest.mark.requirement("signin.redirect")
async def test_what_else_is_wrong_is_told_to_the_client(bench: Bench) -> None:
    client_id = (await register(bench))["client_id"]
    for changes, told in (
        ({"wrong": {"error": "invalid_target", "error_description": "x"}}, "invalid_target"),
        ({"challenge": None}, "invalid_request"),
        ({"challenge": CHALLENGE[1:]}, "invalid_request"),
        ({"resource": None}, "invalid_request"),
        ({"scopes": ["operator", "offline_access"]}, "invalid_scope"),
        ({"scopes": None}, "invalid_scope"),
    ):
        answer = answer_in((await begin(bench, client_id, **changes))["redirect"])
        assert (answer["error"], answer["state"], answer["iss"]) == (told, STATE, ISSUER)


@pytest.mark.requirement("signin.consent")
async def test_a_redirect_with_a_query_keeps_it(bench: Bench) -> None:
    uri = "https://app.example/back?app=1"
    client_id = (await register(bench, redirect_uris=[uri]))["client_id"]
    begun = await begin(bench, client_id, redirect_uri=uri)
    decided = await signin(bench, "decide_authorization", ask=begun["ask"], owner_id="ow_x", allow=False)
    assert decided["redirect"].startswith(f"{uri}&error=access_denied&state=a+state&iss=https%3A")


@pytest.mark.requirement("signin.subject")
async def test_an_owner_consents_for_itself_and_its_own_agents_alone(bench: Bench) -> None:
    owner, other = await new_owner(bench), await new_owner(bench)
    mine = (await make_agent(bench, "mine", owner_id=owner)).agent
    theirs = (await make_agent(bench, "theirs", owner_id=other)).agent
    nobodys = (await make_agent(bench, "nobody's")).agent
    client_id = (await register(bench))["client_id"]
    refusals = []
    for subject in (theirs, nobodys, "ag_01ARZ3NDEKTSV4RRFFQ69G5FAV", other):
        begun = await begin(bench, client_id)
        refusals.append(
            await signin(
                bench, "decide_authorization", ask=begun["ask"], owner_id=owner, subject=subject, allow=True
            )
        )
    assert {code(each) for each in refusals} == {"not_found"}
    assert len({each.message for each in refusals}) == 1
    for subject in (mine, owner, None):
        assert (await consent(bench, owner, subject)).code


@pytest.mark.requirement("signin.consent")
async def test_an_owner_may_give_less_than_was_asked_and_never_more(bench: Bench) -> None:
    owner, client_id = await new_owner(bench), (await register(bench))["client_id"]
    for scopes, good in ((["message"], True), (["message", "contacts"], False), ([], False), (None, True)):
        begun = await begin(bench, client_id)
        answer = await signin(
            bench, "decide_authorization", ask=begun["ask"], owner_id=owner, allow=True, scopes=scopes
        )
        assert code(answer) == ("accepted" if good else "bad_request")


@pytest.mark.requirement("signin.revoke")
async def test_an_owner_sees_and_ends_its_own_grants_alone(bench: Bench) -> None:
    owner, other = await new_owner(bench), await new_owner(bench)
    signed = await consent(bench, owner)
    assert await signin(bench, "list_grants", owner_id=owner) == {"grants": []}
    redeemed = await signin(bench, "redeem_code", **signed.redemption())
    (listed,) = (await signin(bench, "list_grants", owner_id=owner))["grants"]
    assert (listed["grant_id"], listed["subject"], listed["client_name"]) == (
        redeemed["grant"],
        owner,
        "An app",
    )
    assert await signin(bench, "list_grants", owner_id=other) == {"grants": []}
    foreign = await signin(bench, "revoke_grant", owner_id=other, grant_id=listed["grant_id"])
    missing = await signin(bench, "revoke_grant", owner_id=owner, grant_id="gr_01ARZ3NDEKTSV4RRFFQ69G5FAV")
    assert foreign == missing
    assert await signin(bench, "revoke_grant", owner_id=owner, grant_id=listed["grant_id"]) == {}
    assert await signin(bench, "list_grants", owner_id=owner) == {"grants": []}


@pytest.mark.requirement("signin.bounds")
async def test_an_address_has_few_requests_waiting_and_loopback_is_not_counted(bench: Bench) -> None:
    client_id = (await register(bench))["client_id"]
    for _ in range(ASKS):
        assert "ask" in await begin(bench, client_id, STRANGER)
    told = answer_in((await begin(bench, client_id, STRANGER))["redirect"])
    assert told["error"] == "temporarily_unavailable"
    assert "ask" in await begin(bench, client_id)


@pytest.mark.requirement("signin.registration")
@pytest.mark.parametrize(
    ("metadata", "told"),
    [
        ({"redirect_uris": []}, "invalid_redirect_uri"),
        ({"redirect_uris": ["http://app.example/back"]}, "invalid_redirect_uri"),
        ({"redirect_uris": ["https://app.example/back#part"]}, "invalid_redirect_uri"),
        ({"redirect_uris": ["https://user@app.example/back"]}, "invalid_redirect_uri"),
        ({"redirect_uris": ["https://*.example/back"]}, "invalid_redirect_uri"),
        ({"redirect_uris": ["javascript:alert(1)"]}, "invalid_redirect_uri"),
        ({"redirect_uris": ["com.example.app:/back"]}, "invalid_redirect_uri"),
        ({"redirect_uris": ["https:///back"]}, "invalid_redirect_uri"),
        ({"redirect_uris": ["https://app.example/b ack"]}, "invalid_redirect_uri"),
        ({"redirect_uris": ["https://app.example/\u00e9"]}, "invalid_redirect_uri"),
        ({"redirect_uris": [f"https://app.example/{n}" for n in range(11)]}, "invalid_redirect_uri"),
        ({"redirect_uris": ["https://app.example/" + "x" * 2048]}, "invalid_redirect_uri"),
        ({"redirect_uris": "https://app.example/back"}, "invalid_client_metadata"),
        ({"client_name": "App\u202eppA"}, "invalid_client_metadata"),
        ({"client_name": "a" * 101}, "invalid_client_metadata"),
        ({"client_name": 7}, "invalid_client_metadata"),
        ({"client_uri": "javascript:alert(1)"}, "invalid_client_metadata"),
        ({"token_endpoint_auth_method": "tls_client_auth"}, "invalid_client_metadata"),
        ({"grant_types": ["implicit"]}, "invalid_client_metadata"),
        ({"response_types": ["token"]}, "invalid_client_metadata"),
    ],
)
async def test_bad_metadata_is_refused_with_oauths_code(
    bench: Bench, metadata: dict[str, Any], told: str
) -> None:
    assert error(await register(bench, **metadata)) == told


@pytest.mark.requirement("signin.registration")
async def test_a_client_gets_a_secret_where_it_asks_for_one_or_says_nothing(bench: Bench) -> None:
    for method, secret in (("none", False), ("client_secret_post", True), (None, True)):
        given = {} if method is None else {"token_endpoint_auth_method": method}
        answer = await signin(bench, "register_client", metadata={"redirect_uris": [REDIRECT], **given})
        assert ("client_secret" in answer) is secret
        assert answer["token_endpoint_auth_method"] == (method or "client_secret_basic")
        assert answer["client_name"] == "127.0.0.1"


@pytest.mark.requirement("signin.registration")
async def test_an_address_registers_twenty_clients_an_hour(bench: Bench) -> None:
    for _ in range(20):
        assert code(await register(bench, STRANGER)) == "accepted"
    assert code(await register(bench, STRANGER)) == "rate_limited"
    assert code(await register(bench)) == "accepted"


@pytest.mark.requirement("signin.documents")
async def test_a_client_whose_id_is_a_url_is_what_its_document_says(bench: Bench) -> None:
    name = "https://app.example/client.json"
    document = {"client_id": name, "client_name": "App", "redirect_uris": ["https://app.example/back"]}
    good = await begin(bench, name, redirect_uri="https://app.example/back", document=document)
    assert (await signin(bench, "authorization_request", ask=good["ask"]))["client_id"] == name
    for changes, told in (
        ({"client_id": f"{name}/"}, "invalid_client_metadata"),
        ({"client_name": None}, "invalid_client_metadata"),
        ({"redirect_uris": []}, "invalid_redirect_uri"),
        ({"token_endpoint_auth_method": "client_secret_basic"}, "invalid_client_metadata"),
    ):
        other = {key: value for key, value in {**document, **changes}.items() if value is not None}
        assert (
            error(await begin(bench, name, redirect_uri="https://app.example/back", document=other)) == told
        )
    for bad in (
        "https://app.example",
        "https://app.example/",
        "https://app.example/a/../b",
        "https://u@x.example/c",
    ):
        assert error(await begin(bench, bad, document={**document, "client_id": bad})) == "invalid_client"


@pytest.mark.requirement("signin.bounds")
async def test_beyond_the_bound_an_owners_stalest_consent_ends(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("broker.tools.signin.GRANTS", 2)
    owner, grants = await new_owner(bench), []
    for _ in range(4):
        signed = await consent(bench, owner)
        grants.append((await signin(bench, "redeem_code", **signed.redemption()))["grant"])
        bench.clock.step(1000)
    listed = (await signin(bench, "list_grants", owner_id=owner))["grants"]
    assert [each["grant_id"] for each in listed] == [grants[3], grants[2]]


@pytest.mark.requirement("signin.consent")
async def test_a_decision_that_was_not_written_can_be_made_again(bench: Bench) -> None:
    owner, client_id = await new_owner(bench), (await register(bench))["client_id"]
    begun = await begin(bench, client_id)
    decide = {"ask": begun["ask"], "owner_id": owner, "allow": True}
    bench.store.gate.fail_next(Unavailable())  # type: ignore[attr-defined]
    assert code(await signin(bench, "decide_authorization", **decide)) == "unavailable"
    assert "code" in answer_in((await signin(bench, "decide_authorization", **decide))["redirect"])


@pytest.mark.requirement("signin.consent")
async def test_of_two_tabs_one_decides(bench: Bench) -> None:
    owner, client_id = await new_owner(bench), (await register(bench))["client_id"]
    begun, answers = await begin(bench, client_id), []

    async def decide() -> None:
        answers.append(
            await signin(bench, "decide_authorization", ask=begun["ask"], owner_id=owner, allow=True)
        )

    async with trio.open_nursery() as nursery:
        for _ in range(5):
            nursery.start_soon(decide)
    assert sorted(map(code, answers)) == ["accepted", *["not_found"] * 4]
