"""Headers that an agent adds to what its webhook is sent."""

import pytest

from broker.core.push import Occurrence
from broker.core.pushheaders import MOST, MOST_NAMED, read_headers
from broker.core.webhook import webhook_form
from broker.wire.refusals import Refusal
from tests.broker.core.test_webhook import ROW

HOST_AND_FRAMING = (
    "Host", "connection", "Keep-Alive", "TE", "Trailer", "Transfer-Encoding", "Upgrade", "Proxy-Authorization",
    "Content-Length", "content-type", "Content-Encoding", "Expect", "User-Agent", "Cookie", "Via", "Date",
)  # fmt: skip
SIGNATURE = ("webhook-id", "Webhook-Timestamp", "WEBHOOK-SIGNATURE", "webhook-anything")
SAID_BY_OTHERS = ("Forwarded", "X-Forwarded-For", "X-Real-IP", "traceparent", "Sec-Fetch-Site")


@pytest.mark.requirement("webhook.headers")
@pytest.mark.parametrize("name", [*HOST_AND_FRAMING, *SIGNATURE, *SAID_BY_OTHERS])
def test_what_is_not_for_an_agent_to_set(name: str) -> None:
    refused = read_headers({name: "x"})
    assert isinstance(refused, Refusal)
    assert (refused.code, refused.detail) == ("bad_request", {"path": "headers", "header": name.lower()})


@pytest.mark.requirement("webhook.headers")
def test_all_that_the_form_sends_itself_is_refused() -> None:
    request = webhook_form(ROW, Occurrence("evt_1", "notice", 0, b"{}"), (), 0)
    for name, _ in request.headers:
        assert isinstance(read_headers({name: "x"}), Refusal), name


@pytest.mark.requirement("webhook.headers")
def test_names_are_kept_small_and_templates_as_they_are() -> None:
    given = {"Authorization": "Bearer ${A}", "X-Api-Key": "$${B} ${C}"}
    assert read_headers(given) == (("authorization", "Bearer ${A}"), ("x-api-key", "$${B} ${C}"))
    assert read_headers({}) == ()


@pytest.mark.requirement("webhook.headers")
@pytest.mark.parametrize(
    "headers",
    [
        {"X-A": "1", "x-a": "2"},
        {f"X-{number}": "x" for number in range(MOST + 1)},
        {"X-A": "${a}"},
        {"X-A": "${A"},
        {"X-A": "${A}" * (MOST_NAMED + 1)},
    ],
)
def test_these_are_refused(headers: dict[str, str]) -> None:
    refused = read_headers(headers)
    assert isinstance(refused, Refusal)
    assert refused.detail["path"] == "headers"
