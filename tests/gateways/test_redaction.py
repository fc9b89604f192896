"""What never stands in a log, by its name and by its form."""

import pytest

from gateways.redaction import NAMES, SHOWN, is_secret, redact, redact_text

SECRET = "c0rrect.h0rse-battery_staple"
SIG = "ab" * 64


@pytest.mark.requirement("observe.no-secrets")
@pytest.mark.parametrize("name", sorted(NAMES))
@pytest.mark.parametrize(
    "form",
    [
        "{name}={value}",
        "{name}: {value}",
        '{{"{name}":"{value}"}}',
        '{{"{name}" : "{value}"}}',
        "{{'{name}': '{value}'}}",
        "{{'{name}': b'{value}'}}",
        '\\"{name}\\":\\"{value}\\"',
        "?{name}={value}&more=1",
        "[(b'{name}', b'{value}')]",
        "{upper}: {value}",
        "{dashed}={value}",
    ],
)
def test_a_named_secret_is_taken_out_of_a_text(name: str, form: str) -> None:
    text = form.format(name=name, upper=name.upper(), dashed=name.replace("_", "-"), value=SECRET)
    shown = redact_text(f"before {text} after")
    assert SECRET not in shown, shown
    assert shown.startswith("before ")
    assert SHOWN in shown


@pytest.mark.requirement("observe.no-secrets")
@pytest.mark.parametrize(
    "text",
    [
        f"Authorization: Bearer {SECRET}",
        f"[(b'authorization', b'Bearer {SECRET}')]",
        f"it said Bearer {SECRET} and left",
        f"it said Turret {'eyJ' * 9}.{SIG}",
        f"a signature {SIG}.",
        "a token eyJhbGciOiJFZERTQSJ9.eyJzdWIiOiJ4In0.c2lnbmF0dXJl",
        "a hook whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        "an operator turret_operator_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        "an agent's ts_" + "c0rrect-h0rse_battery" * 2 + "x",
        "a code gr_01M8Q9NHEQTV0BFZST30KEF8DY.6zvmDGxOwcum9kbWFklDMVbvLdzqXJh6B9FHgs0BrVM",
        "a session ow_01M8Q9QK50HXSPTG6F1EFJV802.7gEsXMnA4jwQEy8WwD6zs_CTTCntQbQoK0E-LVxGyNc",
        f'"statement":{{"do":"follow","nonce":"{SECRET}"}}',
        f'"password":"{SECRET} with a blank and \\" a mark"',
    ],
)
def test_a_secret_is_known_by_its_form_too(text: str) -> None:
    shown = redact_text(text)
    for secret in (
        SECRET,
        SIG,
        "c2lnbmF0dXJl",
        "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        "with a blank",
        "a mark",
        "h0rse_b",
        "6zvm",
        "7gEs",
    ):
        assert secret not in shown, shown


@pytest.mark.requirement("observe.no-secrets")
def test_members_are_taken_out_at_every_depth_and_what_is_too_deep_is_not_shown() -> None:
    value = {
        "a": [{"Set-Cookie": SECRET, "n": 7, "ok": True, "none": None}],
        "raw": b"token=" + SECRET.encode(),
    }
    assert redact(value) == {
        "a": [{"Set-Cookie": SHOWN, "n": 7, "ok": True, "none": None}],
        "raw": f"token={SHOWN}",
    }
    assert redact({"new_password": SECRET, "X-A2A-Notification-Token": SECRET, "tokens": 3}) == {
        "new_password": SHOWN,
        "X-A2A-Notification-Token": SHOWN,
        "tokens": 3,
    }
    deep: object = SECRET
    for _ in range(20):
        deep = [deep]
    assert SECRET not in repr(redact(deep))


def test_what_is_no_secret_stays() -> None:
    for text in (
        "a commit was refused: the disk quota is used up",
        "127.0.0.1 forwards for others, and behind_proxy does not name it",
        "incident 0011223344556677-0a1b2c3d in POST /v1/echo",
        f"the wire's key {'0f' * 32}",
        "tokenizer=x authors: y",
    ):
        assert redact_text(text) == text
    assert not is_secret("code")
    assert is_secret("Proxy-Authorization")


def test_a_long_text_takes_no_long_time() -> None:
    for text in ("token=" * 20_000, 'token="' + "\\" * 100_000, "sig" * 50_000, "{" * 100_000, "a" * 100_000):
        redact_text(text)
