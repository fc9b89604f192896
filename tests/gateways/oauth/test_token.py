"""The token, revocation and introspection endpoints, as their clients see them."""

import base64
from typing import Any

import pytest

from broker.app import Caller
from broker.core.secret import digest
from broker.wire.refusals import Refusal
from gateways.oauth.keys import ACCESS_S
from gateways.oauth.server import INTROSPECT, REVOKE
from tests.support.agents import make_agent
from tests.support.authserver import SignIns, claims_of
from tests.support.signin import signin


def basic(name: str, secret: str) -> dict[str, str]:
    return {"authorization": "Basic " + base64.b64encode(f"{name}:{secret}".encode()).decode()}


def errors(answer: Any) -> tuple[int, str]:
    """Status and code; that nothing of it is cached, and nothing more is said."""
    assert answer.headers["cache-control"] == "no-store"
    assert set(answer.json()) <= {"error", "error_description"}
    return answer.status_code, answer.json()["error"]


WRONG: list[tuple[dict[str, Any], tuple[int, str]]] = [
    ({"code_verifier": "w" * 43}, (400, "invalid_grant")),
    ({"code_verifier": None}, (400, "invalid_grant")),
    ({"redirect_uri": "http://127.0.0.1:3001/back"}, (400, "invalid_grant")),
    ({"resource": "https://elsewhere.example/mcp"}, (400, "invalid_target")),
    ({"code": None}, (400, "invalid_request")),
    ({"code": "x" * 5000}, (400, "invalid_request")),
    ({"client_id": None}, (401, "invalid_client")),
    ({"client_id": "cl_01ARZ3NDEKTSV4RRFFQ69G5FAV"}, (401, "invalid_client")),
    ({"grant_type": None}, (400, "invalid_request")),
    ({"grant_type": "password"}, (400, "unsupported_grant_type")),
    ({"grant_type": "client_credentials"}, (400, "unauthorized_client")),
    ({"client_secret": "made up"}, (401, "invalid_client")),
    ({"client_assertion": "a.b.c"}, (401, "invalid_client")),
    ({"headers": {"authorization": "Bearer x"}}, (401, "invalid_client")),
    ({"headers": {"authorization": "Basic x"}}, (401, "invalid_client")),
    ({"headers": basic("another", "x")}, (401, "invalid_client")),
    ({"headers": basic("x", "y"), "client_secret": "z"}, (400, "invalid_request")),
    ({"client_secret": "a", "client_assertion": "b"}, (400, "invalid_request")),
]
"""What is changed in a good redemption, and what is answered."""


@pytest.mark.requirement("signin.flow", "signin.tokens")
async def test_a_code_becomes_a_token_that_opens_the_resource(doors: SignIns) -> None:
    agent = (await make_agent(doors.bench, "mine", owner_id=doors.owner)).agent
    client_id = (await doors.register())["client_id"]
    told = await doors.authorize(client_id, agent)
    answer = await doors.token(**doors.redemption(client_id, told["code"]))
    assert (answer.status_code, answer.headers["cache-control"]) == (200, "no-store")
    given = answer.json()
    assert (given["token_type"], given["expires_in"], given["scope"]) == (
        "Bearer",
        ACCESS_S,
        "message channel",
    )
    claims = claims_of(given["access_token"])
    assert (claims["sub"], claims["owner"], claims["client_id"]) == (agent, doors.owner, client_id)
    assert (claims["iss"], claims["aud"]) == (doors.url, f"{doors.url}/mcp")
    found = await doors.identify(given["access_token"])
    assert isinstance(found, Caller)
    assert (found.agent, found.client) == (agent, client_id)


@pytest.mark.requirement("signin.code")
async def test_what_is_wrong_with_a_redemption_is_said_in_oauths_words(doors: SignIns) -> None:
    client_id = (await doors.register())["client_id"]
    code = (await doors.authorize(client_id))["code"]
    for changes, expect in WRONG:
        answer = await doors.token(**doors.redemption(client_id, code, **changes))
        assert errors(answer) == expect, changes
        assert ("www-authenticate" in answer.headers) is (expect[0] == 401)
        assert code not in answer.text
    assert (await doors.token(**doors.redemption(client_id, code))).status_code == 200


@pytest.mark.requirement("signin.stolen")
async def test_a_replayed_code_ends_the_tokens_of_the_first(doors: SignIns) -> None:
    client_id = (await doors.register())["client_id"]
    form = doors.redemption(client_id, (await doors.authorize(client_id))["code"])
    token = (await doors.token(**form)).json()["access_token"]
    assert isinstance(await doors.identify(token), Caller)
    assert errors(await doors.token(**form)) == (400, "invalid_grant")
    assert isinstance(await doors.identify(token), Refusal)


@pytest.mark.requirement("signin.refresh", "signin.stolen")
async def test_refreshing_rotates_and_a_reused_token_ends_it_all(doors: SignIns) -> None:
    first = await doors.sign_in()
    form = {"grant_type": "refresh_token", "client_id": first["client_id"]}
    answer = await doors.token(**form, refresh_token=first["refresh_token"], scope="message")
    second = answer.json()
    assert (answer.status_code, second["scope"]) == (200, "message")
    assert claims_of(second["access_token"])["scope"] == "message"
    assert second["refresh_token"] != first["refresh_token"]
    assert isinstance(await doors.identify(second["access_token"]), Caller)
    assert errors(await doors.token(**form, refresh_token=first["refresh_token"])) == (400, "invalid_grant")
    assert errors(await doors.token(**form, refresh_token=second["refresh_token"])) == (400, "invalid_grant")
    for each in (first, second):
        assert isinstance(await doors.identify(each["access_token"]), Refusal)


@pytest.mark.requirement("signin.client-secret")
@pytest.mark.parametrize("method", ["client_secret_basic", "client_secret_post"])
async def test_a_client_with_a_secret_shows_it_in_either_way(doors: SignIns, method: str) -> None:
    client = await doors.register(token_endpoint_auth_method=method)
    name, secret = client["client_id"], client["client_secret"]
    for by_header in (True, False):
        code = (await doors.authorize(name))["code"]
        form = doors.redemption(name, code)
        assert errors(await doors.token(**form)) == (401, "invalid_client")
        shown = (
            {"headers": basic(name, secret), "client_id": None} if by_header else {"client_secret": secret}
        )
        assert (await doors.token(**{**form, **shown})).status_code == 200


@pytest.mark.requirement("signin.revoke")
@pytest.mark.parametrize("kind", ["refresh_token", "access_token"])
async def test_a_revoked_token_ends_its_grant_at_once(doors: SignIns, kind: str) -> None:
    signed, other = await doors.sign_in(), await doors.sign_in()
    form = {"token": signed[kind], "client_id": signed["client_id"]}
    foreign = await doors.ask("POST", REVOKE, data={**form, "client_id": other["client_id"]})
    assert (foreign.status_code, foreign.json()) == (200, {})
    assert isinstance(await doors.identify(signed["access_token"]), Caller)
    for _ in range(2):
        answer = await doors.ask("POST", REVOKE, data=form)
        assert (answer.status_code, answer.json()) == (200, {})
    assert isinstance(await doors.identify(signed["access_token"]), Refusal)
    assert isinstance(await doors.identify(other["access_token"]), Caller)


@pytest.mark.requirement("signin.revoke")
async def test_what_is_no_token_is_revoked_already_and_a_stranger_revokes_nothing(doors: SignIns) -> None:
    client_id = (await doors.register())["client_id"]
    answer = await doors.ask("POST", REVOKE, data={"client_id": client_id, "token": "nonsense"})
    assert (answer.status_code, answer.json()) == (200, {})
    assert errors(await doors.ask("POST", REVOKE, data={"client_id": client_id})) == (400, "invalid_request")
    for name in ("cl_01ARZ3NDEKTSV4RRFFQ69G5FAV", "ag_01ARZ3NDEKTSV4RRFFQ69G5FAV"):
        answer = await doors.ask("POST", REVOKE, data={"client_id": name, "token": "x"})
        assert errors(answer) == (401, "invalid_client")


@pytest.mark.requirement("signin.agent-secret")
async def test_an_agent_with_a_credential_gets_tokens_by_it(doors: SignIns) -> None:
    agent = (await make_agent(doors.bench, "static", secret_hash=digest("s3cret"))).agent
    assert agent is not None
    form = {"grant_type": "client_credentials"}
    answer = await doors.token(**form, headers=basic(agent, "s3cret"))
    assert answer.status_code == 200
    given = answer.json()
    assert "refresh_token" not in given
    assert given["scope"] == "profile contacts message channel task resource arena trial"
    found = await doors.identify(given["access_token"])
    assert isinstance(found, Caller)
    assert (found.agent, found.owner, found.grant, found.kid) == (agent, None, None, None)
    for changes, expect in (
        ({"headers": basic(agent, "wrong")}, (401, "invalid_client")),
        ({"client_id": agent}, (401, "invalid_client")),
        ({"client_id": agent, "client_secret": "s3cret", "scope": "operator"}, (400, "invalid_scope")),
        (
            {"client_id": agent, "client_secret": "s3cret", "resource": "https://x.example/"},
            (400, "invalid_target"),
        ),
        (
            {"client_id": agent, "client_secret": "s3cret", "grant_type": "refresh_token"},
            (400, "unauthorized_client"),
        ),
    ):
        assert errors(await doors.token(**{**form, **changes})) == expect
    asked = {"scope": "arena x", "resource": f"{doors.url}/mcp/arena"}
    narrow = await doors.token(**form, client_id=agent, client_secret="s3cret", **asked)
    claims = claims_of(narrow.json()["access_token"])
    assert (claims["scope"], claims["aud"]) == ("arena", f"{doors.url}/mcp/arena")
    own = await doors.ask(
        "POST", REVOKE, data={"token": given["access_token"]}, headers=basic(agent, "s3cret")
    )
    assert errors(own) == (400, "unsupported_token_type")


@pytest.mark.requirement("signin.standing")
async def test_a_token_that_is_got_right_after_a_credential_was_renewed_is_good(doors: SignIns) -> None:
    """Those made before are over up to the end of that second."""
    ends = doors.bench.ts + 60
    members: dict[str, Any] = {"secret_hash": digest("s3cret"), "tokens_after": ends, "owner_id": doors.owner}
    agent = (await make_agent(doors.bench, "static", **members)).agent
    assert agent is not None
    own = await doors.token(grant_type="client_credentials", headers=basic(agent, "s3cret"))
    signed = await doors.sign_in(agent)
    form = {"grant_type": "refresh_token", "client_id": signed["client_id"]}
    again = (await doors.token(**form, refresh_token=signed["refresh_token"])).json()
    for token in (own.json()["access_token"], signed["access_token"], again["access_token"]):
        assert claims_of(token)["iat"] == ends
        assert isinstance(await doors.identify(token), Caller)


@pytest.mark.requirement("signin.introspection")
async def test_who_has_proved_itself_is_told_what_a_token_says_while_it_is_good(doors: SignIns) -> None:
    agent = (await make_agent(doors.bench, "static", secret_hash=digest("s3cret"))).agent
    assert agent is not None
    signed = await doors.sign_in()
    form = {"token": signed["access_token"]}
    told = (await doors.ask("POST", INTROSPECT, data=form, headers=basic(agent, "s3cret"))).json()
    assert told == {"active": True, "token_type": "Bearer", **claims_of(signed["access_token"])}
    for asking, expect in (
        ({"data": form}, (401, "invalid_client")),
        ({"data": form, "headers": basic(agent, "wrong")}, (401, "invalid_client")),
        ({"data": {**form, "client_id": signed["client_id"]}}, (401, "invalid_client")),
        ({"headers": basic(agent, "s3cret"), "data": {"x": "y"}}, (400, "invalid_request")),
    ):
        assert errors(await doors.ask("POST", INTROSPECT, **asking)) == expect
    for token in (signed["refresh_token"], "nonsense"):
        answer = await doors.ask("POST", INTROSPECT, data={"token": token}, headers=basic(agent, "s3cret"))
        assert answer.json() == {"active": False}
    (grant,) = (await signin(doors.bench, "list_grants", owner_id=doors.owner))["grants"]
    await signin(doors.bench, "revoke_grant", owner_id=doors.owner, grant_id=grant["grant_id"])
    answer = await doors.ask("POST", INTROSPECT, data=form, headers=basic(agent, "s3cret"))
    assert answer.json() == {"active": False}


@pytest.mark.requirement("signin.secrecy")
async def test_no_secret_stands_in_a_log_an_error_or_a_url_of_ours(
    doors: SignIns, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(0):
        client = await doors.register(token_endpoint_auth_method="client_secret_post")
        name, secret = client["client_id"], client["client_secret"]
        told = await doors.authorize(name)
        form = doors.redemption(name, told["code"], client_secret=secret)
        given = (await doors.token(**form)).json()
        again = await doors.token(**form)
        lost = await doors.token(
            grant_type="refresh_token",
            client_id=name,
            client_secret=secret,
            refresh_token=given["refresh_token"],
        )
        await doors.post("/mcp", {}, given["access_token"])
    verifier = doors.redemption("", "")["code_verifier"]
    secrets = [secret, told["code"], given["refresh_token"], given["access_token"], verifier]
    ours = [each for each in caplog.records if not each.name.startswith(("httpx", "httpcore"))]
    texts = [again.text, lost.text, *(each.getMessage() for each in ours)]
    assert not [secret for secret in secrets for text in texts if secret in text]
