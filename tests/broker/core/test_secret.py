"""What is kept of secrets."""

from broker.core.secret import digest


def test_a_secret_is_kept_as_its_sha256() -> None:
    """The example of FIPS 180-4."""
    assert digest("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
