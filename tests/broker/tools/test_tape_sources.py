"""Operators have a tape fetched, with headers that name their secrets."""

from typing import Any

import msgspec
import pytest

from broker.app import Missed
from broker.wire.refusals import Refusal
from tests.support.agents import make_agent
from tests.support.broker import Bench, code, open_bench, tuned
from tests.support.imports import FACTS, URL, Files, csv
from tests.support.operators import OPERATOR

VALUE = "a+planted=secret"
ASKED = {**FACTS, "headers": {"Authorization": "Bearer ${FEED}", "X-Plain": "$${FEED}"}}


async def fetch(bench: Bench, **params: Any) -> Any:
    return await bench.call("fetch_tape", OPERATOR, **{**ASKED, **params})


@pytest.mark.requirement("tape.source-secrets")
async def test_headers_are_filled_with_the_operators_secrets_and_nobody_elses(bench: Bench) -> None:
    files, ann = Files(bench, csv()), await make_agent(bench, "Ann")
    await bench.call("kestrel.secrets.set", ann, name="FEED", value="anns")
    refused = await fetch(bench)
    assert (code(refused), refused.detail["reason"], refused.detail["secret"], files.asked) == (
        "bad_request",
        "secret_unset",
        "FEED",
        [],
    )
    await bench.call("set_secret", OPERATOR, name="FEED", value=VALUE)
    assert code(await fetch(bench)) == "accepted"
    assert files.asked == [(URL, {"authorization": f"Bearer {VALUE}", "x-plain": "${FEED}"})]
    assert [each["name"] for each in (await bench.call("kestrel.secrets.list", ann))["secrets"]] == ["FEED"]
    await bench.call("unset_secret", OPERATOR, name="FEED")
    assert (await bench.call("list_secrets", OPERATOR))["secrets"] == []
    assert len((await bench.call("kestrel.secrets.list", ann))["secrets"]) == 1


@pytest.mark.requirement("tape.source-hidden")
async def test_no_answer_note_or_digest_holds_a_value_whatever_the_source_says(bench: Bench) -> None:
    secret = {"name": "FEED", "value": VALUE, "idempotency_key": "k"}
    told = [await bench.call("set_secret", OPERATOR, **secret)]
    files = Files(bench, b"")
    for body in (
        VALUE.encode(),
        f"time,bid,ask,{VALUE}\n".encode(),
        *(
            csv(3, line.format(VALUE))
            for line in ("{},1,2\n", "1772443803000,{},2\n", "1772443803000,1,{}\n", '"{}')
        ),
        csv(),
    ):
        files.answer = body
        told.append(await fetch(bench, idempotency_key=f"k{len(told)}"))
    assert [code(each) for each in told] == ["accepted", *["bad_request"] * 6, "accepted"]
    await bench.call("verify_audit_log", OPERATOR)
    events = await bench.call("list_audit_events", OPERATOR)
    assert {each["kind"] for each in events["events"]} == {"set_secret", "fetch_tape"}
    shown = [each.body() if isinstance(each, Refusal) else each for each in told]
    text = msgspec.json.encode([shown, events, await bench.call("list_secrets", OPERATOR)])
    for word in (VALUE, "planted", URL, "authorization", "Bearer"):
        assert word.encode() not in text, word
    noted = next(each for each in events["events"] if each["kind"] == "fetch_tape")
    assert noted["subject"] == told[-1]["ref"]
    assert noted["detail"] == {name: FACTS[name] for name in ("instrument", "tick", "title", "licence")}


@pytest.mark.requirement("tape.source-public")
@pytest.mark.parametrize(
    "url",
    [
        "http://feed.example/x.csv",
        "https://u:p@feed.example/x.csv",
        "https://feed.example:8443/x.csv",
        "https://feed.example/x y",
        "https://feed.example/${FEED}",
        "ftp://feed.example/x",
        "file:///etc/passwd",
        "http://127.0.0.1/x",
    ],
)
async def test_another_url_than_https_is_refused_before_anything_is_asked(bench: Bench, url: str) -> None:
    files = Files(bench, csv())
    refused = await fetch(bench, url=url, headers=None)
    assert (code(refused), refused.detail["path"], files.asked) == ("bad_request", "url", [])


@pytest.mark.requirement("tape.source-refused")
@pytest.mark.parametrize(
    "wrong",
    [
        {"tick": "1e-5"},
        {"tick": "0"},
        {"fee": "-1"},
        {"instrument": "EUR USD"},
        {"headers": {"Host": "x"}},
        {"headers": {"X-A": "${feed}"}},
        {"headers": {"X-A": "a\nb"}},
        {"title": ""},
    ],
)
async def test_what_can_not_be_asked_is_refused_before(bench: Bench, wrong: dict[str, Any]) -> None:
    files = Files(bench, csv())
    refused = await fetch(bench, **{"headers": None, **wrong})
    assert (code(refused), files.asked) == ("bad_request", [])


@pytest.mark.requirement("tape.source-refused")
async def test_without_room_on_the_disk_nothing_is_asked() -> None:
    async with open_bench(tuned(store={"min_free_bytes": 2**62})) as bench:
        files = Files(bench, csv())
        assert (code(await fetch(bench, headers=None)), files.asked) == ("unavailable", [])


@pytest.mark.requirement("tape.source-refused", "tape.source-import")
async def test_a_key_is_for_one_end_and_what_may_pass_is_none(bench: Bench) -> None:
    files = Files(bench, Missed("too_slow"))
    refused = await fetch(bench, headers=None, idempotency_key="k")
    assert (code(refused), refused.detail["reason"]) == ("unavailable", "too_slow")
    files.answer = csv()
    entry = await fetch(bench, headers=None, idempotency_key="k")
    files.answer = csv(50)
    assert await fetch(bench, headers=None, idempotency_key="k") == entry
    assert len(files.asked) == 2, "what is remembered asks nobody"
    files.answer = Missed("status", 401)
    for _ in range(2):
        refused = await fetch(bench, headers=None, idempotency_key="other")
        assert (refused.detail["reason"], refused.detail["http_status"]) == ("status", 401)
    assert len(files.asked) == 3
