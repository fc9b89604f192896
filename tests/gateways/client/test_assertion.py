"""A client assertion against another implementation of JOSE."""

import pytest
from joserfc.errors import BadSignatureError

from broker.wire.jwk import thumbprint
from broker.wire.keys import SigningKey
from gateways.client.assertion import LIFE_S, client_assertion
from tests.gateways.client.fake_issuer import read_signed

KEY = SigningKey.from_seed("a1" * 32)
AGENT = "ag_01JZ6M5VQW8T3N4R2P7X9Y0ABC"
AUDIENCE = "https://wire.example/oauth/token"
NOW = 1_782_345_678


@pytest.mark.requirement("client.agent-assertion")
def test_another_implementation_verifies_it_by_the_public_key() -> None:
    read = read_signed(client_assertion(KEY, AGENT, AUDIENCE, NOW), KEY.pk)
    claims = dict(read.claims)
    assert read.header == {"alg": "EdDSA", "kid": thumbprint(KEY.pk), "typ": "JWT"}
    assert len(claims.pop("jti")) >= 22
    assert claims == {"iss": AGENT, "sub": AGENT, "aud": AUDIENCE, "iat": NOW, "exp": NOW + LIFE_S}
    assert LIFE_S <= 60


@pytest.mark.requirement("client.agent-assertion")
def test_no_two_are_alike_and_none_verifies_by_another_key() -> None:
    one, other = (client_assertion(KEY, AGENT, AUDIENCE, NOW) for _ in range(2))
    assert one.split(".")[1] != other.split(".")[1]
    with pytest.raises(BadSignatureError):
        read_signed(one, SigningKey.generate().pk)
