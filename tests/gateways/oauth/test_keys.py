"""The authorization server's keys: made once, private, rotated, and kept as long as their tokens are good."""

from pathlib import Path

import pytest

from gateways.oauth.keys import ACCESS_S, AGAIN_MS, FILE, MARGIN_MS, ROTATE_MS, SigningKeys, SignInKeyError

NOW = 1_782_345_678_000


@pytest.mark.requirement("signin.keys")
def test_keys_are_made_at_the_first_start_for_their_owner_alone_and_stay(tmp_path: Path) -> None:
    first = SigningKeys.open(tmp_path, NOW)
    assert (tmp_path / FILE).stat().st_mode & 0o777 == 0o600
    again = SigningKeys.open(tmp_path, NOW + 1)
    assert again.jwks(NOW) == first.jwks(NOW)
    assert len(first.jwks(NOW)["keys"]) == 1


@pytest.mark.requirement("signin.keys")
def test_the_public_set_has_nothing_private(tmp_path: Path) -> None:
    keys = SigningKeys.open(tmp_path, NOW)
    (row,) = keys.jwks(NOW)["keys"]
    assert set(row) == {"kty", "crv", "x", "kid", "alg", "use"}
    assert (row["kty"], row["crv"], row["alg"], row["use"]) == ("OKP", "Ed25519", "EdDSA", "sig")
    assert "d" not in repr(keys).lower().replace("signingkeys", "")


@pytest.mark.requirement("signin.rotation")
def test_an_old_key_stays_until_its_last_token_is_over(tmp_path: Path) -> None:
    keys = SigningKeys.open(tmp_path, NOW)
    old = keys.present(NOW + ROTATE_MS - 1).thumbprint()
    at = NOW + ROTATE_MS
    new = keys.present(at).thumbprint()
    assert new != old
    over = at + ACCESS_S * 1000 + MARGIN_MS
    for again in (keys, SigningKeys.open(tmp_path, at)):
        assert [row["kid"] for row in again.jwks(over)["keys"]] == [old, new]
        assert [row["kid"] for row in again.jwks(over + 1)["keys"]] == [new]
        assert [key.thumbprint() for key in again.verifying(over + 1)] == [new]
    keys.rotate(over + 1)
    assert old not in (tmp_path / FILE).read_text()


@pytest.mark.requirement("signin.rotation")
def test_where_a_new_key_can_not_be_written_the_old_one_signs_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    keys = SigningKeys.open(tmp_path, NOW)
    old = keys.present(NOW).thumbprint()
    tried = []

    def full(*args: object) -> None:
        tried.append(args)
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("gateways.oauth.keys.write_private", full)
        for _ in range(3):
            assert keys.present(NOW + ROTATE_MS).thumbprint() == old
    assert (len(tried), len(caplog.records)) == (1, 1)
    assert keys.present(NOW + ROTATE_MS + AGAIN_MS).thumbprint() != old


@pytest.mark.requirement("signin.keys")
@pytest.mark.parametrize(
    "text", ["", "nonsense", "{}", '[{"d":"AA","x":"AA","since":1}]', '[{"x":"AA","since":1}]']
)
def test_a_file_that_holds_no_keys_is_said_to_and_left_alone(tmp_path: Path, text: str) -> None:
    path = tmp_path / FILE
    path.write_text(text)
    path.chmod(0o600)
    with pytest.raises(SignInKeyError, match="move it away"):
        SigningKeys.open(tmp_path, NOW)
    assert path.read_text() == text


@pytest.mark.requirement("signin.keys")
def test_a_file_that_others_can_read_or_whose_halves_differ_is_refused(tmp_path: Path) -> None:
    SigningKeys.open(tmp_path, NOW)
    path = tmp_path / FILE
    path.chmod(0o640)
    with pytest.raises(SignInKeyError, match="chmod 600"):
        SigningKeys.open(tmp_path, NOW)
    path.chmod(0o600)
    (tmp_path / "other").mkdir()
    SigningKeys.open(tmp_path / "other", NOW)
    mine, theirs = path.read_text(), (tmp_path / "other" / FILE).read_text()
    swapped = mine.replace(mine.split('"x":"')[1][:43], theirs.split('"x":"')[1][:43])
    path.write_text(swapped)
    with pytest.raises(SignInKeyError):
        SigningKeys.open(tmp_path, NOW)


@pytest.mark.requirement("signin.keys")
def test_without_a_present_key_nothing_is_signed(tmp_path: Path) -> None:
    SigningKeys.open(tmp_path, NOW)
    path = tmp_path / FILE
    path.write_text(path.read_text().replace(f'"since":{NOW}', f'"since":{NOW},"until":{NOW}'))
    with pytest.raises(SignInKeyError, match="present"):
        SigningKeys.open(tmp_path, NOW)


def test_a_directory_that_takes_no_file_is_said_in_a_line(tmp_path: Path) -> None:
    with pytest.raises(SignInKeyError, match="No such file"):
        SigningKeys.open(tmp_path / "nowhere", NOW)
