"""Client assertions: an agent's own key, for us, now, and once."""

import base64
import secrets
from typing import Any

import msgspec
import pytest
from joserfc.jwk import OKPKey

from broker.actors.agentdocs import facts_of
from broker.app import Caller
from broker.core.agent import AgentRow, Key
from broker.store.port import Put, Unit
from broker.wire.keys import SigningKey
from gateways.oauth import jose
from gateways.oauth.assertion import LONGEST_S, SKEW_S, TYPE, is_good
from tests.support.agents import make_agent
from tests.support.authserver import SignIns, claims_of
from tests.support.operators import OPERATOR
from tests.support.signin import new_owner

ISSUER = "https://turret.example"
AGENT = "ag_01ARZ3NDEKTSV4RRFFQ69G5FAV"
NOW = 1_782_345_678
CLAIMS = {"iss": AGENT, "sub": AGENT, "aud": ISSUER, "exp": NOW + 60, "jti": "j"}


def private(key: SigningKey) -> OKPKey:
    """An Ed25519 key of the wire as a JWK that signs."""
    made = jose.public_key(key.pk).as_dict(private=False)
    return OKPKey.import_key(
        {**made, "d": base64.urlsafe_b64encode(bytes.fromhex(key.seed)).rstrip(b"=").decode()}
    )


class Signer:
    """An agent with a key, and the forms that it sends."""

    def __init__(self, doors: SignIns, agent: str, key: SigningKey) -> None:
        self.doors = doors
        self.agent = agent
        self.jwk = private(key)

    def form(
        self, header: dict[str, Any] | None = None, key: OKPKey | None = None, **claims: Any
    ) -> dict[str, str]:
        whole = {
            "iss": self.agent,
            "sub": self.agent,
            "aud": self.doors.url,
            "exp": self.doors.bench.ts + 60,
            "jti": secrets.token_hex(8),
            **claims,
        }
        given = {name: value for name, value in whole.items() if value is not None}
        assertion = jose.signed({"alg": "EdDSA", **(header or {})}, given, key or self.jwk)
        return {
            "grant_type": "client_credentials",
            "client_assertion_type": TYPE,
            "client_assertion": assertion,
        }


async def keyed(doors: SignIns, name: str, **members: Any) -> Signer:
    key = SigningKey.generate()
    row = Key(jose.public_key(key.pk).thumbprint(), key.pk, 1)
    caller = await make_agent(doors.bench, name, keys=(row,), **members)
    assert caller.agent is not None
    return Signer(doors, caller.agent, key)


@pytest.mark.requirement("signin.agent-key")
@pytest.mark.parametrize("algorithm", ["EdDSA", "Ed25519"])
async def test_an_agent_gets_a_token_by_its_own_key(doors: SignIns, algorithm: str) -> None:
    owner = await new_owner(doors.bench)
    signer = await keyed(doors, "keyed", owner_id=owner)
    answer = await doors.token(**signer.form({"alg": algorithm}))
    assert answer.status_code == 200, answer.text
    claims = claims_of(answer.json()["access_token"])
    kid = signer.jwk.thumbprint()
    assert (claims["sub"], claims["owner"], claims["akid"]) == (signer.agent, owner, kid)
    assert claims["client_id"] == signer.agent
    found = await doors.identify(answer.json()["access_token"])
    assert isinstance(found, Caller)
    assert (found.agent, found.kid, found.owner) == (signer.agent, kid, owner)
    for more in ({"aud": f"{doors.url}/oauth/token"}, {"aud": [doors.url]}):
        assert (
            await doors.token(**signer.form({"kid": kid}, **more), client_id=signer.agent)
        ).status_code == 200


@pytest.mark.requirement("signin.agent-key")
async def test_nobody_elses_assertion_is_good_and_all_failures_look_alike(doors: SignIns) -> None:
    signer, other = await keyed(doors, "one"), await keyed(doors, "other")
    used = signer.form()
    assert (await doors.token(**used)).status_code == 200
    stranger = "ag_01ARZ3NDEKTSV4RRFFQ69G5FAV"
    public = signer.jwk.as_dict(private=False)
    failures = [
        signer.form(key=other.jwk),
        signer.form({"kid": other.jwk.thumbprint()}),
        signer.form({"jwk": other.jwk.as_dict(private=False)}, key=other.jwk),
        signer.form(iss=stranger, sub=stranger),
        signer.form(sub=other.agent),
        signer.form(iss=other.agent),
        signer.form(aud="https://elsewhere.example"),
        signer.form(aud=[doors.url, "https://elsewhere.example"]),
        signer.form(exp=doors.bench.ts - 1),
        signer.form(exp=doors.bench.ts + 3600),
        signer.form(jti=None),
        signer.form(iss=public["x"]),
        {**signer.form(), "client_assertion": "nonsense"},
        {**signer.form(), "client_assertion": signer.form()["client_assertion"][:-8] + "AAAAAAAA"},
    ]
    held = await keyed(doors, "held")
    suspended = await doors.bench.call("suspend_agent", OPERATOR, agent_id=held.agent, reason="spam")
    assert suspended["suspended"]
    answers = [await doors.token(**form) for form in (*failures, held.form())]
    assert {(each.status_code, each.text) for each in answers} == {(401, answers[0].text)}
    assert "suspended" in answers[0].json()["error_description"], "who is suspended can guess it"
    assert answers[0].json()["error"] == "invalid_client"
    for form in (
        used,
        {**signer.form(), "client_assertion_type": "saml"},
        {**signer.form(), "client_id": other.agent},
    ):
        answer = await doors.token(**form)
        assert (answer.status_code, answer.json()["error"]) == (401, "invalid_client")


@pytest.mark.requirement("signin.agent-key", "signin.standing")
async def test_a_key_that_is_revoked_signs_in_no_more_and_its_tokens_are_over(doors: SignIns) -> None:
    signer = await keyed(doors, "keyed")
    token = (await doors.token(**signer.form())).json()["access_token"]
    assert isinstance(await doors.identify(token), Caller)
    services = doors.bench.broker._services
    document = await services.store.get("agent", signer.agent)
    assert document is not None
    row = msgspec.structs.replace(msgspec.json.decode(document.doc, type=AgentRow), keys=())
    await services.store.commit(
        Unit(puts=(Put("agent", signer.agent, document.version, msgspec.json.encode(row)),))
    )
    services.standing.told(signer.agent, facts_of(row))
    assert not isinstance(await doors.identify(token), Caller)
    assert (await doors.token(**signer.form())).status_code == 401


@pytest.mark.requirement("signin.agent-key")
@pytest.mark.parametrize(
    ("changes", "good"),
    [
        ({}, True),
        ({"aud": f"{ISSUER}/oauth/token"}, True),
        ({"aud": [ISSUER, f"{ISSUER}/oauth/token"]}, True),
        ({"aud": [ISSUER, "https://elsewhere.example"]}, False),
        ({"aud": f"{ISSUER}/"}, False),
        ({"aud": []}, False),
        ({"aud": None}, False),
        ({"exp": NOW}, False),
        ({"exp": NOW + LONGEST_S + SKEW_S}, True),
        ({"exp": NOW + LONGEST_S + SKEW_S + 1}, False),
        ({"exp": str(NOW + 60)}, False),
        ({"exp": True}, False),
        ({"exp": None}, False),
        ({"nbf": NOW + SKEW_S}, True),
        ({"nbf": NOW + SKEW_S + 1}, False),
        ({"nbf": "now"}, False),
        ({"iat": NOW - 10_000}, True),
        ({"iat": NOW + SKEW_S + 1}, False),
        ({"jti": ""}, False),
        ({"jti": 7}, False),
        ({"jti": "x" * 129}, False),
        ({"sub": "ag_01ARZ3NDEKTSV4RRFFQ69G5FAW"}, False),
        ({"iss": None}, False),
    ],
)
def test_each_claim_is_looked_at(changes: dict[str, Any], good: bool) -> None:
    claims = {name: value for name, value in {**CLAIMS, **changes}.items() if value is not None}
    assert is_good(claims, AGENT, ISSUER, NOW) is good
