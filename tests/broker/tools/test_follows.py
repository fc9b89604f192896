"""Follow statements that are verified once: the same bytes alone, and nothing that may change is taken from memory."""

import json
from typing import Any

import pytest

from broker.tools.follows import Follows
from broker.wire.keys import SigningKey
from broker.wire.statement import Statement, build_statement, read_statement
from tests.support.broker import STRANGER, Bench, Party, code


def signed(key: SigningKey, until: int) -> tuple[bytes, str, Statement]:
    text, sig = build_statement("follow", key, "a" * 64, 1000, "0" * 32, until=until)
    statement = read_statement(text, do="follow")
    assert isinstance(statement, Statement)
    return text, sig, statement


def following(bench: Bench, party: Party, **members: Any) -> dict[str, Any]:
    return party.statement("follow", bench.broker.pk, bench.ts, **{"until": bench.ts + 3600, **members})


def verified(bench: Bench) -> int:
    """How many signatures the broker has verified."""
    return bench.broker._services.verifier.statistics().inline


@pytest.mark.requirement("statements.verified-once")
def test_only_the_very_same_text_and_sig_are_found() -> None:
    follows, key = Follows(), SigningKey.generate()
    text, sig, statement = signed(key, 2000)
    follows.remember(text, sig, statement)
    assert follows.find(text, sig) is statement
    other_text, other_sig, _ = signed(key, 2001)
    spaced = text.replace(b":", b": ", 1)
    for strange in ((other_text, sig), (text, other_sig), (spaced, sig), (text, sig + "0"), (text, sig[:-1])):
        assert follows.find(*strange) is None
    assert follows.find(text[1:], sig + text[:1].decode()) is None


@pytest.mark.requirement("statements.verified-once")
def test_the_one_that_was_asked_for_longest_ago_is_forgotten() -> None:
    follows, key = Follows(2), SigningKey.generate()
    first, second, third = (signed(key, 2000 + each) for each in range(3))
    follows.remember(*first)
    follows.remember(*second)
    assert follows.find(*first[:2]) is first[2]
    follows.remember(*third)
    assert len(follows) == 2
    assert follows.find(*second[:2]) is None
    assert follows.find(*first[:2]) is first[2]
    assert follows.find(*third[:2]) is third[2]


@pytest.mark.requirement("statements.verified-once")
async def test_who_polls_again_and_again_is_verified_once(bench: Bench) -> None:
    alfa = await bench.open("ALFA")
    follow = following(bench, alfa)
    before = verified(bench)
    for name in ("wait_for_events", "wait_for_events", "list_convs"):
        assert code(await bench.call(name, **follow)) == "accepted"
    assert verified(bench) == before + 1
    assert code(await bench.call("wait_for_events", **following(bench, alfa))) == "accepted"
    assert verified(bench) == before + 2, "another nonce is another statement"


@pytest.mark.requirement("statements.verified-once")
async def test_a_forged_or_altered_one_is_never_taken_for_one_that_was_verified(bench: Bench) -> None:
    alfa, brav = await bench.open("ALFA"), await bench.open("BRAV")
    good, others = following(bench, alfa), following(bench, brav)
    for each in (good, others):
        assert code(await bench.call("wait_for_events", **each)) == "accepted"
    longer = {**good["statement"], "until": bench.ts + 7200}
    for forged in (
        {**good, "statement": longer},
        {**good, "statement": {**good["statement"], "pk": brav.pk}},
        {**good, "sig": others["sig"]},
        {**good, "sig": "0" * 128},
    ):
        for _ in range(2):  # what was refused is not remembered either
            assert code(await bench.call("wait_for_events", **forged)) == "bad_statement"
    assert code(await bench.call("wait_for_events", **good)) == "accepted"


@pytest.mark.requirement("statements.verified-once")
async def test_its_time_and_its_desk_are_looked_at_each_time(bench: Bench) -> None:
    alfa, brav = await bench.open("ALFA"), await bench.open("BRAV")
    short, by_code = following(bench, alfa, until=bench.ts + 60), following(bench, brav, code="BRAV")
    for each in (short, by_code):
        assert code(await bench.call("wait_for_events", **each)) == "accepted"
    bench.clock.step(60_000)
    for name in (
        "wait_for_events",
        "list_convs",
    ):  # a stream looks at it a second time, what has none does not
        late = await bench.call(name, **short)
        assert (code(late), late.detail["path"]) == ("bad_statement", "until")
    taker = SigningKey.generate()
    params = brav.statement("move_desk", bench.broker.pk, bench.ts, code="BRAV", new_pk=taker.pk)
    text = json.dumps(params["statement"], separators=(",", ":"), sort_keys=True).encode()
    assert code(await bench.call("move_desk", **params, new_sig=taker.sign(text))) == "accepted"
    assert code(await bench.call("wait_for_events", **by_code)) == "not_a_party"


@pytest.mark.requirement("statements.verified-once")
async def test_an_address_that_guesses_is_stopped_with_a_known_statement_too(bench: Bench) -> None:
    alfa = await bench.open("ALFA")
    good = following(bench, alfa)
    assert code(await bench.call("wait_for_events", STRANGER, **good)) == "accepted"
    for _ in range(20):
        await bench.call("wait_for_events", STRANGER, **{**good, "sig": "0" * 128})
    assert code(await bench.call("wait_for_events", STRANGER, **good)) == "rate_limited"
