"""Standing: what is told ends what is held; facts are read once."""

import pytest

from broker.actors.standing import Facts, Standing
from broker.tools.context import Caller
from broker.wire.ids import Pk
from broker.wire.refusals import Refusal

AGENT, OWNER, GRANT = "ag_1", "ow_1", "gr_1"
PK = Pk("ab" * 32)
GOOD = Facts(kids=frozenset({"k1"}), pks=frozenset({PK}))


def by_key(**members: object) -> Caller:
    return Caller(**{"principal": AGENT, "agent": AGENT, "kid": "k1", "issued": 100, **members})  # type: ignore[arg-type]  # a test's shorthand


@pytest.mark.requirement("network.standing")
@pytest.mark.parametrize(
    ("facts", "code"),
    [
        (GOOD, None),
        (Facts(gone=True), "unauthenticated"),
        (Facts(suspended=True, kids=GOOD.kids), "suspended"),
        (Facts(after=101, kids=GOOD.kids), "unauthenticated"),
        (Facts(after=100, kids=GOOD.kids), None),
        (Facts(kids=frozenset({"k2"})), "unauthenticated"),
    ],
)
async def test_a_token_is_judged_by_what_is_true_now(facts: Facts, code: str | None) -> None:
    standing = Standing()
    standing.told(AGENT, facts)
    refused = await standing.judge(by_key())
    assert (refused.code if refused else None) == code
    ended: list[Refusal] = []
    standing.told(AGENT, GOOD)
    with standing.hold(by_key(), ended.append):
        standing.told(AGENT, facts)
    assert [each.code for each in ended] == ([code] if code else [])


@pytest.mark.requirement("network.standing")
async def test_owner_grant_and_agent_all_count() -> None:
    standing = Standing()
    for each in (AGENT, OWNER, GRANT):
        standing.told(each, GOOD)
    caller = by_key(owner=OWNER, grant=GRANT)
    assert await standing.judge(caller) is None
    ended: list[Refusal] = []
    with standing.hold(caller, ended.append):
        standing.told(GRANT, Facts(gone=True))
        standing.told(OWNER, Facts(suspended=True))
    standing.told(AGENT, Facts(gone=True))  # not held any more
    assert [each.code for each in ended] == ["unauthenticated", "suspended"]


@pytest.mark.requirement("network.standing")
async def test_a_key_of_an_agent_holds_by_the_agents_right() -> None:
    standing = Standing()
    standing.told(AGENT, GOOD)
    ended: list[Refusal] = []
    with standing.hold(Caller(pk=PK, authenticated=True), ended.append):
        standing.told(AGENT, Facts())
    assert [each.code for each in ended] == ["unauthenticated"]
    assert standing.holder(PK) is None
    assert await standing.judge(Caller(pk=PK)) is None  # it is nobody's key now, and speaks for itself


@pytest.mark.requirement("network.standing")
async def test_what_is_held_by_a_key_ends_with_the_agent_whose_key_it_has_become() -> None:
    standing = Standing()
    ended: list[Refusal] = []
    with standing.hold(Caller(pk=PK, agent="ag_other", authenticated=True), ended.append):
        standing.told(AGENT, GOOD)
        assert ended == []
        standing.told(AGENT, Facts(suspended=True, pks=GOOD.pks))
    assert [each.code for each in ended] == ["suspended"]
    assert standing._held == {}
    both = Caller(pk=PK, agent="ag_other")
    standing.told("ag_other", Facts())
    refused = await standing.judge(both)
    assert refused is not None
    assert refused.code == "suspended", "the key's agent is looked at beside the token's"


@pytest.mark.requirement("network.standing")
async def test_a_right_that_was_lost_after_it_was_judged_ends_what_it_holds_at_once() -> None:
    standing = Standing()
    standing.told(AGENT, GOOD)
    assert await standing.judge(by_key()) is None
    standing.told(AGENT, Facts(suspended=True, kids=GOOD.kids, pks=GOOD.pks))
    ended: list[Refusal] = []
    with standing.hold(by_key(), ended.append):
        assert [each.code for each in ended] == ["suspended"]


@pytest.mark.requirement("network.standing")
async def test_facts_are_read_once_and_one_that_is_missing_is_gone() -> None:
    read: list[str] = []

    async def load(subject: str) -> Facts | None:
        read.append(subject)
        if subject == "ag_2":
            standing.told(
                subject, Facts(suspended=True, kids=GOOD.kids)
            )  # a commit, while the store was read
        return GOOD if subject != "ag_3" else None

    standing = Standing()
    standing.learn("ag_", load)
    with pytest.raises(ValueError, match="two ways"):
        standing.learn("ag_", load)
    assert await standing.judge(by_key()) is None
    assert await standing.judge(by_key()) is None
    assert read == [AGENT]
    stale = await standing.judge(by_key(agent="ag_2"))
    gone = await standing.judge(by_key(agent="ag_3"))
    assert stale is not None
    assert gone is not None
    assert (stale.code, gone.code) == ("suspended", "unauthenticated")


async def test_memory_is_bounded() -> None:
    standing = Standing(kept=2)
    for number in range(5):
        standing.told(f"gr_{number}", Facts(gone=True))
    assert await standing.judge(Caller(grant="gr_0")) is None  # forgotten, and nobody says how to read it
    assert await standing.judge(Caller(grant="gr_4")) is not None
