"""Desks, calls and conversations: what is shown is what the broker's own verifier says."""

import json

import pytest

from broker.wire.chain import verify_transcript
from gateways.console.calls import values_of
from tests.gateways.console.conftest import document
from tests.gateways.pages.conftest import Browser
from tests.support.broker import Bench, code, open_bench, tuned
from tests.support.vectors import export_lines


@pytest.mark.requirement("console.conversation")
async def test_a_conversation_is_shown_with_each_step_verified_and_its_export_verifies(
    bench: Bench, operator: Browser
) -> None:
    alfa, brav = await bench.open("ALFA"), await bench.open("BRAV")
    line = await bench.connect(alfa, brav)
    await line.send("RFQ", {"text": "<b>bold</b> \u202e"})
    shown = (await operator.get(f"/conversations/{line.conv}")).text
    found = document(shown)
    assert "Holds: 3 envelopes, each step verified here and now" in shown
    assert len([each for each in found.all("span") if each.attributes.get("class") == "mark"]) == 18
    assert "<b>bold" not in shown
    assert "\u202e" not in shown
    export = await operator.get(f"/conversations/{line.conv}/export")
    verdict = verify_transcript(export.content.splitlines())
    assert (verdict.ok, verdict.rows, verdict.conv) == (True, 3, line.conv)
    assert (await operator.get("/conversations/ffffffffffffffff")).status_code == 404
    assert (await operator.get(f"/conversations?conv={line.conv}")).headers["location"].endswith(line.conv)
    assert (await operator.get("/conversations?conv=xyz")).status_code == 400


@pytest.mark.requirement("console.conversation")
def test_the_step_that_does_not_hold_is_named_and_nothing_after_it_is_judged() -> None:
    lines = export_lines("deal")
    lines[2] = lines[2].replace(b'"side":"two-way"', b'"side":"one-way"')
    first = json.loads(lines[0])["envelope"]
    parties = {
        "caller": {"pk": first["from"], "code": "ALFA"},
        "called": {"pk": first["to"], "code": "BRAV"},
    }
    verdict = verify_transcript(lines)
    values = values_of({"parties": parties}, lines, verdict, 0, False)
    assert [row["state"] for row in values["rows"]] == ["holds", "holds", "broken", *["unread"] * 5]
    assert verdict.broken is not None
    assert verdict.broken.code == "bad_signature"
    assert [row["n"] for row in values_of({"parties": parties}, lines, verdict, 6, False)["rows"]] == [6, 7]


@pytest.mark.requirement("console.calls")
async def test_calls_in_progress_are_listed_and_one_is_ended(bench: Bench, operator: Browser) -> None:
    assert "Nobody is on a call" in (await operator.get("/calls")).text
    line = await bench.connect(await bench.open("ALFA"), await bench.open("BRAV"))
    shown = (await operator.get("/calls")).text
    document(shown)
    assert line.conv in shown
    for page in (shown, (await operator.get(f"/conversations/{line.conv}")).text):
        details = [each for each in document(page).all("details") if "End it for both" in each.text]
        assert len(details) == 1, "one press ends no call: an END can't be taken back"
    ended = await operator.post("/calls/end", conv=line.conv, note="it was forgotten")
    assert ended.headers["location"] == f"/conversations/{line.conv}"
    assert code(await line.send("RFQ")) == "conv_ended"
    after = (await operator.get(f"/conversations/{line.conv}")).text
    assert "by the wire" in after
    assert "it was forgotten" in after


@pytest.mark.requirement("console.calls")
async def test_a_desk_is_suspended_and_released(bench: Bench, operator: Browser) -> None:
    alfa, brav = await bench.open("ALFA"), await bench.open("BRAV")
    shown = (await operator.get("/desks")).text
    document(shown)
    assert "ALFA" in shown
    found = (await operator.get("/desks?begins=al")).text
    assert ("ALFA" in found, "BRAV" in found) == (True, False)
    assert (await operator.get("/desks?begins=1")).status_code == 400
    assert (await operator.post("/desks", code="ALFA", do="suspend")).status_code == 303
    assert code(await bench.call("send_call", **bench.calling(brav, alfa))) == "suspended"
    assert "BRAV" not in (await operator.get("/desks?only=suspended")).text
    await operator.post("/desks", code="ALFA", do="release")
    assert code(await bench.call("send_call", **bench.calling(brav, alfa))) == "accepted"
    assert (await operator.get("/desks")).status_code == 200
    assert (await operator.post("/desks", code="NONE", do="suspend")).status_code == 404


@pytest.mark.requirement("console.conversation")
async def test_operators_read_also_where_transcripts_are_the_parties() -> None:
    from tests.support.operators import OPERATOR

    async with open_bench(tuned(transcripts="parties")) as bench:
        line = await bench.connect(await bench.open("ALFA"), await bench.open("BRAV"))
        assert code(await bench.call("read_conv", conv=line.conv)) == "unknown_conv"
        assert len((await bench.call("read_conv", OPERATOR, conv=line.conv))["rows"]) == 2
