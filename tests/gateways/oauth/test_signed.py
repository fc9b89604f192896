"""Signed tokens of an outside issuer: judged by its keys, which it may rotate, and by nothing else."""

from typing import Any

import pytest
from joserfc import jwt
from joserfc.jwk import ECKey, KeySet, OctKey, OKPKey, RSAKey

from broker.clock import VirtualClock
from broker.wire.refusals import Refusal
from gateways.oauth.outside import Grant, Tokens, open_tokens
from gateways.oauth.signed import AGAIN_S, BELIEVED_S
from tests.support.broker import START_MS
from tests.support.issuer import Issuer, issuing

HERE = "https://turret.example/mcp"
NOW = START_MS // 1000


class Hands(VirtualClock):
    """A clock whose monotonic time the test moves, over real sockets."""

    past = 0.0

    def now_ms(self) -> int:
        return START_MS

    def monotonic(self) -> float:
        return self.past


class Theirs:
    """An issuer with a key, and the tokens that it makes."""

    def __init__(self, stub: Issuer, tokens: Tokens) -> None:
        self.stub = stub
        self.tokens = tokens
        self.rotate(RSAKey.generate_key(2048))

    def rotate(self, key: Any) -> None:
        self.key = key
        key.ensure_kid()
        self.stub.keys = KeySet([key]).as_dict(private=False)

    def make(self, algorithm: str = "RS256", key: Any = None, header: Any = None, **claims: Any) -> str:
        whole = {
            "iss": self.stub.url,
            "sub": "user-7",
            "aud": HERE,
            "exp": NOW + 60,
            "scope": "message",
            **claims,
        }
        given = {name: value for name, value in whole.items() if value is not None}
        head = {"alg": algorithm, "kid": self.key.kid, **(header or {})}
        return jwt.encode(
            {k: v for k, v in head.items() if v is not None}, given, key or self.key, algorithms=[algorithm]
        )

    async def ask(self, token: str) -> Grant | Refusal:
        return await self.tokens.verify(token, {HERE})

    async def code(self, token: str) -> str:
        found = await self.ask(token)
        return found.code if isinstance(found, Refusal) else "good"


@pytest.fixture
def clock() -> Hands:
    return Hands(START_MS)


@pytest.mark.requirement("oauth.signed")
async def test_a_token_is_judged_by_the_key_that_the_issuers_document_leads_to(clock: Hands) -> None:
    async with issuing() as stub, open_tokens(stub.url, None, "", clock) as tokens:
        theirs = Theirs(stub, tokens)
        found = await theirs.ask(theirs.make(client_id="app", iat=NOW - 1))
        assert isinstance(found, Grant)
        assert (found.issuer, found.subject, found.client, found.issued) == (
            stub.url,
            "user-7",
            "app",
            NOW - 1,
        )
        assert (found.scopes, found.until) == ({"message"}, NOW + 60)
        for algorithm, key in (
            ("ES256", ECKey.generate_key("P-256")),
            ("Ed25519", OKPKey.generate_key("Ed25519")),
        ):
            theirs.rotate(key)
            clock.past += BELIEVED_S + 1
            assert await theirs.code(theirs.make(algorithm, scope=None, scp=["a", "b"], azp="app")) == "good"
        assert stub.asked == [], "nothing is asked about a token"


@pytest.mark.requirement("oauth.signed", "oauth.bad-token")
async def test_no_other_token_is_good(clock: Hands) -> None:
    async with issuing() as stub, open_tokens(stub.url, None, "", clock) as tokens:
        theirs = Theirs(stub, tokens)
        other = RSAKey.generate_key(2048)
        secret = OctKey.import_key(theirs.key.as_dict(private=False)["n"])
        for token in (
            theirs.make(iss="https://elsewhere.example"),
            theirs.make(iss=f"{stub.url}/"),
            theirs.make(aud="https://elsewhere.example/mcp"),
            theirs.make(aud=None),
            theirs.make(exp=NOW),
            theirs.make(exp=None),
            theirs.make(iss=None),
            theirs.make(nbf=NOW + 1),
            theirs.make(cnf={"jkt": "x"}),
            theirs.make(sub=None),
            theirs.make(key=other),
            theirs.make("HS256", key=secret),
            theirs.make(header={"typ": "secevent+jwt"}),
            theirs.make(header={"kid": "made-up"}),
            "opaque",
            "a.b.c",
        ):
            assert await theirs.code(token) == "unauthenticated", token
        assert await theirs.code(theirs.make(header={"typ": "at+jwt"})) == "good"
        assert await theirs.code(theirs.make(header={"kid": None})) == "good"


@pytest.mark.requirement("oauth.signed")
async def test_a_rotation_is_seen_and_made_up_ids_cost_the_issuer_nothing(clock: Hands) -> None:
    async with issuing() as stub, open_tokens(stub.url, None, "", clock) as tokens:
        theirs = Theirs(stub, tokens)
        old = theirs.make()
        assert await theirs.code(old) == "good"
        assert stub.key_reads == 1
        for n in range(20):
            assert await theirs.code(theirs.make(header={"kid": f"made-up-{n}"})) == "unauthenticated"
        assert stub.key_reads == 1
        theirs.rotate(RSAKey.generate_key(2048))
        clock.past += AGAIN_S + 1
        assert await theirs.code(theirs.make()) == "good"
        assert stub.key_reads == 2
        clock.past += 60
        assert await theirs.code(old) == "unauthenticated", "its key is gone"


@pytest.mark.requirement("oauth.issuer-away")
async def test_an_issuer_whose_keys_can_not_be_had_is_unavailable_and_never_a_pass(clock: Hands) -> None:
    async with issuing() as stub, open_tokens(stub.url, None, "", clock) as tokens:
        theirs = Theirs(stub, tokens)
        token = theirs.make()
        stub.fails = 500
        assert await theirs.code(token) == "unavailable"
        stub.fails = None
        stub.changes = {"jwks_uri": None}
        assert await theirs.code(token) == "unavailable"
        stub.changes, stub.keys = {}, {"keys": "nonsense"}
        assert await theirs.code(token) == "unauthenticated"
