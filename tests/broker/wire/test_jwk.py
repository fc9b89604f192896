"""Keys as JWK, and their thumbprints."""

import json

import msgspec
import pytest
from joserfc.jwk import OKPKey

from broker.wire.jwk import Jwk, jwk_of, read_jwk, thumbprint
from broker.wire.keys import SigningKey
from broker.wire.refusals import Refusal
from tests.support.vectors import VECTORS

RFC8037_X = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"


@pytest.mark.requirement("identity.kid")
def test_the_kid_is_the_thumbprint_of_rfc_8037_appendix_a3() -> None:
    pk = read_jwk(Jwk("OKP", "Ed25519", RFC8037_X), "k")
    assert isinstance(pk, str)
    assert pk == "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"
    assert thumbprint(pk) == "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k"
    assert thumbprint(pk) == OKPKey.import_key(msgspec.to_builtins(jwk_of(pk))).thumbprint()


def test_a_key_survives_the_round_trip_and_other_members_are_passed_over() -> None:
    pk = SigningKey.generate().pk
    text = msgspec.json.encode({**msgspec.to_builtins(jwk_of(pk)), "kid": "mine", "use": "sig"})
    assert read_jwk(msgspec.json.decode(text, type=Jwk), "k") == pk


@pytest.mark.requirement("identity.kid")
def test_a_private_key_is_refused_and_its_owner_warned() -> None:
    refused = read_jwk(Jwk("OKP", "Ed25519", RFC8037_X, d="secret"), "public_jwk")
    assert isinstance(refused, Refusal)
    assert (refused.detail["path"], "new one" in refused.message) == ("public_jwk.d", True)


@pytest.mark.requirement("identity.kid")
def test_keys_of_small_order_and_other_spellings_are_no_keys() -> None:
    cases = json.loads((VECTORS / "ed25519/speccheck/cases.json").read_text())
    weak = {case["pub_key"] for case in cases[:2]}
    for pk in [*weak, "00" * 32, "01" + "00" * 31, "ff" * 32]:
        refused = read_jwk(jwk_of(pk), "k")
        assert isinstance(refused, Refusal)
        assert refused.detail["path"] == "k.x"
    spelled = RFC8037_X[:-1] + "p"  # the same 32 bytes: the last character has bits to spare
    assert isinstance(read_jwk(Jwk("OKP", "Ed25519", spelled), "k"), Refusal)


@pytest.mark.parametrize("x", ["", "A" * 42, "A" * 44, "A" * 42 + "=", "A" * 42 + "\n", "A" * 42 + "+"])
def test_what_has_not_the_form_is_not_decoded(x: str) -> None:
    text = msgspec.json.encode({"kty": "OKP", "crv": "Ed25519", "x": x})
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(text, type=Jwk)
