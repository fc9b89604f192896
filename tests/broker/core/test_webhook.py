"""A webhook's request: body, id, signatures."""

import json
from datetime import UTC, datetime

import pytest
from standardwebhooks import Webhook

from broker.core.push import Occurrence, PushRow
from broker.core.webhook import SECRET_BYTES, sign, webhook_form, write_secret

NOW = 1_782_345_678_900
ROW = PushRow(
    push_id="ag_A",
    form="webhook",
    agent_id="ag_A",
    stream="agent:ag_A",
    url="https://a.example/",
    position=0,
    created_at=0,
)
SECRET, OTHER = write_secret(bytes(range(SECRET_BYTES))), write_secret(b"\xff" * SECRET_BYTES)


@pytest.mark.requirement("webhook.event")
def test_the_signature_is_the_one_of_the_receivers_library() -> None:
    request = webhook_form(
        ROW, Occurrence("evt_1", "message", NOW, b'{"a":"\xc3\xa9"}'), (SECRET, OTHER), NOW
    )
    headers = dict(request.headers)
    assert headers["webhook-timestamp"] == str(NOW // 1000)
    one, two = headers["webhook-signature"].split(" ")
    then = datetime.fromtimestamp(NOW // 1000, UTC)
    assert one == Webhook(SECRET).sign("evt_1", then, request.body.decode())
    assert two == Webhook(OTHER).sign("evt_1", then, request.body.decode())


def test_the_signature_is_that_of_the_specifications_example() -> None:
    secret, body = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", b'{"test": 2432232314}'
    told = sign(secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, body)
    assert told == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


@pytest.mark.requirement("webhook.gap")
def test_the_body_is_the_event_as_the_stream_has_it() -> None:
    request = webhook_form(ROW, Occurrence("evt_1", "message", NOW, b'{"n":1}'), (SECRET,), NOW)
    assert json.loads(request.body) == {
        "type": "message",
        "timestamp": "2026-06-25T00:01:18.900Z",
        "data": {"n": 1},
    }
    behind = webhook_form(ROW, Occurrence("evt_1", "message", NOW, b"{}", "trimmed"), (SECRET,), NOW)
    assert json.loads(behind.body)["gap"] == "trimmed"
