"""The endpoints as they stand on the public port: registration, content types, and what they answer to whom."""

import pytest

from gateways.caller import read_proxies
from gateways.oauth.assertion import TYPE
from gateways.oauth.server import REGISTER, TOKEN
from tests.support.authserver import SignIns, signing_in
from tests.support.broker import Bench
from tests.support.signin import REDIRECT


@pytest.mark.requirement("signin.registration")
async def test_a_registration_is_told_back_with_all_that_was_said(doors: SignIns) -> None:
    said = {
        "client_name": "An app",
        "redirect_uris": [REDIRECT],
        "client_uri": "https://app.example",
        "logo_uri": "https://app.example/logo.png",
        "contacts": ["a@app.example"],
        "software_id": "x",
        "application_type": "native",
        "scope": "message",
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "x-own": "passed over",
    }
    answer = await doors.ask("POST", REGISTER, json={**said, "token_endpoint_auth_method": "none"})
    assert (answer.status_code, answer.headers["cache-control"]) == (201, "no-store")
    told = answer.json()
    assert told.pop("client_id").startswith("cl_")
    assert told.pop("client_id_issued_at") == doors.bench.ts
    assert told.pop("token_endpoint_auth_method") == "none"
    del said["x-own"]
    assert told == said
    secret = (await doors.ask("POST", REGISTER, json={"redirect_uris": [REDIRECT]})).json()
    assert (secret["client_secret_expires_at"], len(secret["client_secret"])) == (0, 43)


@pytest.mark.requirement("signin.registration", "signin.forms")
async def test_what_is_no_registration_is_refused_in_oauths_words(doors: SignIns) -> None:
    json = {"content-type": "application/json"}
    for content, headers, told in (
        (b'{"redirect_uris":["http://app.example/"]}', json, "invalid_redirect_uri"),
        (b'{"redirect_uris":["https://a.example/"],"redirect_uris":[]}', json, "invalid_client_metadata"),
        (b"[]", json, "invalid_client_metadata"),
        (b"\xff", json, "invalid_client_metadata"),
        (b"[" * 10_000, json, "invalid_client_metadata"),
        (
            b'{"redirect_uris":["https://a.example/"]}',
            {"content-type": "text/plain"},
            "invalid_client_metadata",
        ),
        (b'{"redirect_uris":["https://a.example/"]}', {}, "invalid_client_metadata"),
    ):
        answer = await doors.ask("POST", REGISTER, content=content, headers=headers)
        assert (answer.status_code, answer.json()["error"]) == (400, told), content


@pytest.mark.requirement("signin.forms")
async def test_a_token_is_asked_for_by_one_form(doors: SignIns) -> None:
    form = {"content-type": "application/x-www-form-urlencoded"}
    for content, headers in (
        (b'{"grant_type":"client_credentials"}', {"content-type": "application/json"}),
        (b"grant_type=client_credentials", {"content-type": "text/plain"}),
        (b"grant_type=client_credentials", {}),
        (b"grant_type=a&grant_type=b", form),
        (b"grant_type=%FF", form),
        (b"", form),
    ):
        answer = await doors.ask("POST", TOKEN, content=content, headers=headers)
        assert (answer.status_code, answer.json()["error"]) == (400, "invalid_request"), content
    for method in ("GET", "PUT", "DELETE"):
        assert (await doors.ask(method, TOKEN)).status_code == 405
    assert (await doors.ask("POST", TOKEN, content=b"x" * 100_000, headers=form)).status_code == 413
    good = await doors.ask(
        "POST",
        TOKEN,
        content=b"grant_type=x",
        headers={"content-type": "application/x-www-form-urlencoded; charset=UTF-8"},
    )
    assert good.json()["error"] == "unsupported_grant_type"


@pytest.mark.requirement("signin.guesses", "signin.refused")
async def test_an_address_that_guesses_behind_a_proxy_is_told_to_wait_and_others_are_not(
    bench: Bench,
) -> None:
    async with signing_in(bench, proxies=read_proxies(["127.0.0.1"])) as doors:
        client_id = (await doors.register())["client_id"]
        form = {"grant_type": "authorization_code", "client_id": client_id, "code": "made up"}
        agent = {
            "grant_type": "client_credentials",
            "client_assertion_type": TYPE,
            "client_assertion": "e30.e30.AA",
        }
        guesser, other = {"x-forwarded-for": "203.0.113.9"}, {"x-forwarded-for": "203.0.113.10"}
        for n in range(bench.broker.settings.limits.guesses):
            answer = await doors.token(**(form if n % 2 else agent), headers=guesser)
            assert answer.status_code == (400 if n % 2 else 401)
        told = await doors.authorize(client_id)
        good = doors.redemption(client_id, told["code"])
        stopped = await doors.token(**good, headers=guesser)
        assert (stopped.status_code, stopped.json()["error"]) == (429, "temporarily_unavailable")
        assert 0 < int(stopped.headers["retry-after"]) <= 10
        assert (await doors.token(**good, headers=other)).status_code == 200
        bench.clock.step(60_000)
        counted = bench.broker._services.sign_in.take_refused()
        assert {(each.place, each.kind, each.count) for each in counted} == {
            ("203.0.113.9", "invalid_grant", 10),
            ("203.0.113.9", "invalid_client", 10),
        }


@pytest.mark.requirement("signin.registration")
async def test_an_address_behind_a_proxy_registers_twenty_clients(bench: Bench) -> None:
    async with signing_in(bench, proxies=read_proxies(["127.0.0.1"])) as doors:
        metadata = {"redirect_uris": [REDIRECT]}
        asked = {"json": metadata, "headers": {"x-forwarded-for": "203.0.113.9"}}
        statuses = [(await doors.ask("POST", REGISTER, **asked)).status_code for _ in range(21)]
        assert statuses == [201] * 20 + [429]
