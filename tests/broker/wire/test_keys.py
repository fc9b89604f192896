"""Ed25519 by libsodium's strict profile: the vectors of others, and hostile input."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.wire.ids import PK, SIG
from broker.wire.keys import SigningKey, is_acceptable_pk, verify
from tests.support.vectors import KEYS, VALID, VECTORS

ED25519 = VECTORS / "ed25519"
WYCHEPROOF = [
    (group["publicKey"]["pk"], case)
    for group in json.loads((ED25519 / "wycheproof/testvectors_v1/ed25519_test.json").read_text())[
        "testGroups"
    ]
    for case in group["tests"]
]
SPECCHECK: list[dict[str, str]] = json.loads((ED25519 / "speccheck/cases.json").read_text())

LOW = "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc"
HIGH = "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03"
SMALL_ORDER = [
    "01" + "00" * 31, "01" + "00" * 30 + "80", "00" * 32, "00" * 31 + "80", "ec" + "ff" * 30 + "7f",
    "ec" + "ff" * 31,
    LOW + "05", LOW + "85", HIGH + "7a", HIGH + "fa",
    "ed" + "ff" * 30 + "7f", "ed" + "ff" * 31, "ee" + "ff" * 30 + "7f", "ee" + "ff" * 31,
]  # fmt: skip
"""All points of small order, in canonical and other encodings."""


@pytest.mark.requirement("keys.rfc8032")
@pytest.mark.parametrize(
    ("seed", "pk", "message", "sig"),
    [
        (
            "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
            "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
            "",
            "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe2465"
            "5141438e7a100b",
        ),
        (
            "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
            "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
            "72",
            "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb0"
            "0d291612bb0c00",
        ),
    ],
    ids=["test 1", "test 2"],
)
def test_a_vector_of_rfc_8032_signs_and_verifies(seed: str, pk: str, message: str, sig: str) -> None:
    key = SigningKey.from_seed(seed)
    assert (key.pk, key.seed) == (pk, seed)
    assert key.sign(bytes.fromhex(message)) == sig
    assert verify(pk, bytes.fromhex(message), sig)
    assert not verify(pk, bytes.fromhex(message) + b" ", sig)


@pytest.mark.requirement("keys.strict")
@pytest.mark.parametrize(("pk", "case"), WYCHEPROOF, ids=[str(case["tcId"]) for _, case in WYCHEPROOF])
def test_a_case_of_wycheproof_is_judged_as_it_says(pk: str, case: dict[str, Any]) -> None:
    assert verify(pk, bytes.fromhex(case["msg"]), case["sig"]) is (case["result"] == "valid")


@pytest.mark.requirement("keys.strict")
@pytest.mark.parametrize("index", range(12))
def test_of_the_edge_cases_only_the_one_without_small_order_and_with_reduced_s_is_accepted(
    index: int,
) -> None:
    case = SPECCHECK[index]
    assert verify(case["pub_key"], bytes.fromhex(case["message"]), case["signature"]) is (index == 3)


@pytest.mark.requirement("keys.strict")
def test_s_beyond_the_groups_order_is_refused() -> None:
    key, message = KEYS["alpha"], b"deal"
    sig = key.sign(message)
    order = 2**252 + 27742317777372353535851937790883648493
    s = int.from_bytes(bytes.fromhex(sig[64:]), "little") + order
    assert not verify(key.pk, message, sig[:64] + s.to_bytes(32, "little").hex())


@pytest.mark.requirement("keys.acceptable")
@pytest.mark.parametrize("pk", [*SMALL_ORDER, "02" + "00" * 31, "ff" * 32, "f0" + "ff" * 30 + "7f"])
def test_a_key_of_small_order_or_in_another_encoding_can_become_no_desks(pk: str) -> None:
    assert not is_acceptable_pk(pk)


@pytest.mark.requirement("keys.acceptable")
def test_an_honest_key_can_become_a_desks() -> None:
    assert all(is_acceptable_pk(each.pk) for each in KEYS.values())
    assert is_acceptable_pk(SigningKey.generate().pk)
    assert not is_acceptable_pk(KEYS["alpha"].pk.upper())
    assert not is_acceptable_pk(KEYS["alpha"].pk[:-1])
    assert not is_acceptable_pk(SPECCHECK[3]["pub_key"])


@pytest.mark.requirement("keys.hex-lower")
def test_only_lower_case_hex_of_the_right_length_verifies() -> None:
    key, message = KEYS["alpha"], b"deal"
    sig = key.sign(message)
    assert verify(key.pk, message, sig)
    for pk, other in (
        (key.pk.upper(), sig), (key.pk, sig.upper()), (key.pk, sig + "00"), (key.pk, sig[:-2]),
        (key.pk + "\n", sig),
        (key.pk, sig[:-1] + "\n"), ("", ""), (" " + key.pk[1:], sig), (key.pk, "é" * 128), (key.pk,
        "٠" * 128),
    ):  # fmt: skip
        assert not verify(pk, message, other)
    assert PK.fullmatch(key.pk)
    assert not PK.fullmatch(key.pk.upper())
    assert SIG.fullmatch(sig)
    assert not SIG.fullmatch(sig.upper())


@given(st.binary(max_size=40), st.binary(min_size=32, max_size=32), st.binary(min_size=64, max_size=64))
def test_random_keys_and_signatures_are_false_and_nothing_else(message: bytes, pk: bytes, sig: bytes) -> None:
    assert verify(pk.hex(), message, sig.hex()) is False
    is_acceptable_pk(pk.hex())


@given(st.text(max_size=130), st.text(max_size=70))
def test_texts_that_are_no_keys_are_false_and_nothing_else(sig: str, pk: str) -> None:
    assert verify(pk, b"", sig) is False
    assert is_acceptable_pk(pk) is False


@given(st.binary(max_size=100), st.integers(0, 511))
def test_a_signature_with_one_bit_changed_is_refused(message: bytes, bit: int) -> None:
    key = KEYS["bravo"]
    sig = bytearray.fromhex(key.sign(message))
    assert verify(key.pk, message, sig.hex())
    sig[bit // 8] ^= 1 << bit % 8
    assert not verify(key.pk, message, sig.hex())


@pytest.mark.requirement("keys.strict")
@pytest.mark.parametrize("name", VALID)
def test_the_wires_own_vectors_verify(name: str) -> None:
    for row in VALID[name]["rows"]:
        assert verify(row["envelope"]["from"], row["canonical"].encode(), row["sig"])


@pytest.mark.requirement("keys.seed-unseen")
def test_a_key_shows_its_pk_and_never_its_seed() -> None:
    key = SigningKey.generate()
    assert key.pk in repr(key)
    assert key.seed not in repr(key)
    assert key.seed not in str(key)
    assert SigningKey.generate().pk != key.pk


@pytest.mark.parametrize("seed", ["", "00" * 31, "00" * 33, "zz" * 32, "AA" * 32, "00" * 31 + "0\n"])
def test_a_text_that_is_no_seed_makes_no_key(seed: str) -> None:
    with pytest.raises(ValueError, match="seed"):
        SigningKey.from_seed(seed)
    with pytest.raises(ValueError, match="seed"):
        SigningKey(b"short")
