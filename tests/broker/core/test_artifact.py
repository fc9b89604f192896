"""Artifacts are named by the hash of their bytes."""

import hashlib

from broker.core.artifact import address, ref_of


def test_an_artifact_is_named_by_the_hash_of_its_bytes() -> None:
    assert ref_of(b"{}") == hashlib.sha256(b"{}").hexdigest()
    assert ref_of(b"{}") != ref_of(b"{} ")


def test_an_artifact_has_an_address() -> None:
    assert address("ab" * 32) == "kestrel://artifact/" + "ab" * 32
