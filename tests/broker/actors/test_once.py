"""What is remembered of a request is read back as it was."""

import msgspec
import pytest

from broker.actors.once import Once, read_outcome
from broker.store.port import Remembered
from broker.wire.refusals import refuse

ONCE = Once("key:ag_1:tool", "k", b"digest", 7)


class Answer(msgspec.Struct, frozen=True):
    zulu: int
    alfa: str


@pytest.mark.requirement("idempotency.same")
def test_an_answer_is_encoded_to_the_same_bytes_again() -> None:
    answer = Answer(1, "é\u2028")
    op = ONCE.remember(answer)
    assert (op.scope, op.key, op.digest, op.until) == ("key:ag_1:tool", "k", b"digest", 7)
    read = read_outcome(Remembered(op.digest, op.outcome, op.until))
    assert msgspec.json.encode(read) == msgspec.json.encode(answer)


@pytest.mark.requirement("idempotency.kept")
def test_a_refusal_is_read_back_as_one() -> None:
    refusal = refuse("not_found", "there is no such thing", path="x")
    op = ONCE.remember(refusal)
    assert read_outcome(Remembered(op.digest, op.outcome, op.until)) == refusal
