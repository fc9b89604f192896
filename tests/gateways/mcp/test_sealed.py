"""State that a client carries comes back as it was, or not at all."""

import base64

import pytest

from gateways.mcp.sealed import STATE_S, Seal

KEY = b"k" * 32


class Hands:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.at = 1000.0

    def __call__(self) -> float:
        return self.at


@pytest.mark.requirement("mcp.request-state")
@pytest.mark.parametrize("state", ["", "nonce", 'ü "quoted" \n'])
def test_state_comes_back_to_its_owner_for_its_request(state: str) -> None:
    seal = Seal(now=Hands())
    assert seal.open(seal.close(state, "pk", "digest"), "pk", "digest") == state


@pytest.mark.requirement("mcp.request-state")
@pytest.mark.parametrize(("owner", "request_"), [("other", "digest"), ("", "digest"), ("pk", "other")])
def test_state_of_another_owner_or_request_is_not_taken(owner: str, request_: str) -> None:
    seal = Seal(now=Hands())
    assert seal.open(seal.close("state", "pk", "digest"), owner, request_) is None


@pytest.mark.requirement("mcp.request-state")
def test_state_is_taken_for_a_quarter_of_an_hour() -> None:
    now = Hands()
    seal = Seal(now=now)
    text = seal.close("state", "pk", "digest")
    now.at += STATE_S
    assert seal.open(text, "pk", "digest") == "state"
    now.at += 1
    assert seal.open(text, "pk", "digest") is None


@pytest.mark.requirement("mcp.request-state")
def test_a_changed_text_is_not_taken() -> None:
    seal = Seal(KEY, now=Hands())
    text = seal.close("state", "pk", "digest")
    data = base64.urlsafe_b64decode(text)
    for at in range(len(data)):
        changed = data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]
        assert seal.open(base64.urlsafe_b64encode(changed).decode(), "pk", "digest") is None
    for other in ("", text[:-1], text + "-TAMPERED", text + "=", " " + text, "ü", "=" * 8, text.rstrip("=")):
        if other != text:
            assert seal.open(other, "pk", "digest") is None


def test_another_process_takes_none_of_it() -> None:
    text = Seal(now=Hands()).close("state", "pk", "digest")
    assert Seal(now=Hands()).open(text, "pk", "digest") is None
    kept = Seal(KEY, now=Hands()).close("state", "pk", "digest")
    assert Seal(KEY, now=Hands()).open(kept, "pk", "digest") == "state"


def test_other_letters_for_the_same_bytes_are_not_taken() -> None:
    seal = Seal(KEY, now=Hands())
    text = next(
        each for state in "abc" if (each := seal.close("x" * ord(state), "pk", "digest")).endswith("=")
    )
    at = text.index("=") - 1
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    twin = text[:at] + letters[letters.index(text[at]) ^ 1] + text[at + 1 :]
    assert base64.urlsafe_b64decode(twin) == base64.urlsafe_b64decode(text)
    assert seal.open(twin, "pk", "digest") is None
