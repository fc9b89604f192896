"""Tokens judged by a stub issuer on a real socket."""

from typing import Any

import pytest
import trio

from broker.clock import Clock, SystemClock, VirtualClock
from broker.wire.refusals import Refusal
from gateways.oauth.outside import Grant, Tokens, open_tokens, read_grant
from tests.support.issuer import CLIENT, SECRET, Issuer, issuing
from tests.support.network import refused_port

HERE = ("https://turret.example/mcp", "https://turret.example/mcp/arena")
ISSUER = "https://id.example"
NOW = 1_782_345_678.0
GOOD = {"active": True, "aud": HERE[0], "client_id": "app", "sub": "agent-1", "exp": NOW + 10}


def code(found: Grant | Refusal) -> str:
    return found.code if isinstance(found, Refusal) else "good"


def judge(issuer: Issuer, clock: Clock | None = None, **options: Any) -> Any:
    return open_tokens(issuer.url, CLIENT, SECRET, clock or SystemClock(), **options)


async def ask(tokens: Tokens, token: str) -> str:
    with trio.fail_after(5):
        return code(await tokens.verify(token, HERE))


@pytest.mark.requirement("oauth.introspection")
@pytest.mark.parametrize("path", ["", "/realms/desk"])
async def test_a_good_token_gives_its_principal_and_is_asked_about_once(path: str) -> None:
    async with issuing(path) as issuer, judge(issuer) as tokens:
        issuer.give("good", HERE[0], scope="arena trial")
        found = await tokens.verify("good", HERE)
        assert isinstance(found, Grant)
        assert (found.issuer, found.client, found.subject) == (issuer.url, "app", "agent-1")
        assert found.scopes == {"arena", "trial"}
        assert await tokens.verify("good", HERE) == found
        assert (issuer.asked, issuer.documents) == (["good"], 1)


@pytest.mark.requirement("oauth.bad-token")
async def test_an_unknown_an_expired_and_a_token_for_others_are_refused() -> None:
    async with issuing() as issuer, judge(issuer) as tokens:
        issuer.give("old", HERE[0], exp=1_000_000_000)
        issuer.give("theirs", "https://elsewhere.example/mcp")
        issuer.give("ours", [HERE[1], "https://elsewhere.example/mcp"])
        for token in ("unknown", "old", "theirs"):
            assert await ask(tokens, token) == "unauthenticated", token
        assert await ask(tokens, "ours") == "good"


@pytest.mark.parametrize("token", ["", " ", "a b", "a,b", "=", "ä", "a\n", "x" * 5000])
async def test_what_can_be_no_token_never_reaches_the_issuer(token: str) -> None:
    async with issuing() as issuer, judge(issuer) as tokens:
        assert await ask(tokens, token) == "unauthenticated"
        assert issuer.asked == []


@pytest.mark.requirement("oauth.issuer-away")
async def test_an_issuer_that_is_away_or_answers_nonsense_is_unavailable_and_never_a_pass() -> None:
    clock = SystemClock()
    async with open_tokens(f"http://127.0.0.1:{refused_port()}", CLIENT, SECRET, clock) as tokens:
        assert await ask(tokens, "t") == "unavailable"
    async with issuing() as issuer:
        issuer.give("t", HERE[0])
        for changes in (
            {"issuer": "https://id.example"},
            {"introspection_endpoint": None},
            {"introspection_endpoint": "https://id.example/introspect"},
            {"introspection_endpoint": f"{issuer.url}/nowhere"},
            {"introspection_endpoint": "http://[::1/"},
        ):
            issuer.changes = changes
            async with judge(issuer) as tokens:
                assert await ask(tokens, "t") == "unavailable", changes
        issuer.changes = {}
        async with open_tokens(issuer.url, CLIENT, "another", clock) as tokens:
            assert await ask(tokens, "t") == "unavailable"
        async with judge(issuer) as tokens:
            for status in (500, 302, 201, 401):
                issuer.fails = status
                assert await ask(tokens, "t") == "unavailable", status
            issuer.fails = None
            assert await ask(tokens, "t") == "good", "it is asked again when it is back"


@pytest.mark.requirement("oauth.issuer-away")
async def test_an_issuer_that_is_silent_is_given_up_in_time() -> None:
    async with issuing() as issuer, judge(issuer, patience_s=0.1) as tokens:
        issuer.silent = True
        start = trio.current_time()
        assert await ask(tokens, "t") == "unavailable"
        assert trio.current_time() - start < 2


@pytest.mark.requirement("oauth.cache")
async def test_an_answer_is_kept_for_a_while_and_not_beyond_the_tokens_end() -> None:
    clock = Hands()
    async with issuing() as issuer, judge(issuer, clock) as tokens:
        issuer.give("long", HERE[0], exp=clock.wall + 1000)
        issuer.give("short", HERE[0], exp=clock.wall + 20)
        assert [await ask(tokens, each) for each in ("long", "short")] == ["good", "good"]
        clock.pass_time(19)
        assert [await ask(tokens, each) for each in ("long", "short")] == ["good", "good"]
        assert issuer.asked == ["long", "short"]
        clock.pass_time(2)
        assert await ask(tokens, "short") == "unauthenticated"
        issuer.tokens["long"] = {"active": False}
        assert await ask(tokens, "long") == "good", "it was revoked less than a minute ago"
        clock.pass_time(40)
        assert await ask(tokens, "long") == "unauthenticated"


@pytest.mark.requirement("oauth.cache")
async def test_the_cache_has_a_bound_and_keeps_those_that_came_last() -> None:
    async with issuing() as issuer, judge(issuer, kept=2) as tokens:
        for name in ("a", "b", "c", "c", "b", "a"):
            issuer.give(name, HERE[0])
            assert await ask(tokens, name) == "good"
        assert issuer.asked == ["a", "b", "c", "a"]


@pytest.mark.requirement("oauth.secrecy")
async def test_no_token_and_no_secret_is_logged_and_an_absence_is_told_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(0):
        async with issuing() as issuer, judge(issuer) as tokens:
            issuer.give("t0psecret-good", HERE[0])
            await ask(tokens, "t0psecret-good")
            await ask(tokens, "t0psecret-bad")
            issuer.fails = 500
            await ask(tokens, "t0psecret-x")
            await ask(tokens, "t0psecret-y")
            found = await tokens.verify("t0psecret-z", HERE)
            assert isinstance(found, Refusal)
            assert "t0psecret" not in str(found.body())
    assert "t0psecret" not in caplog.text
    assert SECRET not in caplog.text
    assert len([each for each in caplog.records if each.name == "gateways.oauth.outside"]) == 1


@pytest.mark.parametrize(
    "changes",
    [
        {"active": False},
        {"active": "true"},
        {"active": 1},
        {"active": None},
        {"exp": NOW},
        {"exp": str(NOW + 10)},
        {"exp": True},
        {"nbf": NOW + 1},
        {"nbf": "now"},
        {"iss": "https://other.example"},
        {"iss": None},
        {"token_type": "DPoP"},
        {"token_type": 1},
        {"cnf": {"jkt": "x"}},
        {"sub": 7},
        {"client_id": ["app"]},
        {"sub": "", "client_id": ""},
    ],
    ids=str,
)
@pytest.mark.requirement("oauth.bad-token")
def test_each_claim_that_is_wrong_makes_a_token_none(changes: dict[str, Any]) -> None:
    assert read_grant(GOOD, ISSUER, NOW) is not None
    assert read_grant({**GOOD, **changes}, ISSUER, NOW) is None


def test_claims_that_may_be_absent_or_of_several_forms() -> None:
    bare = read_grant({"active": True, "client_id": "app"}, ISSUER, NOW)
    assert bare == Grant(
        issuer=ISSUER,
        subject="app",
        itself=True,
        client="app",
        scopes=frozenset(),
        audiences=frozenset(),
        issued=0,
        until=None,
    )
    many = read_grant(
        {**GOOD, "aud": ["a", 7], "resource": "b", "token_type": "bearer", "scope": 7}, ISSUER, NOW
    )
    assert many is not None
    assert (many.audiences, many.scopes) == ({"a", "b"}, frozenset())


class Hands(VirtualClock):
    """A clock that the test moves, over real sockets."""

    def __init__(self) -> None:
        super().__init__(0)
        self.wall, self.past = 1_782_345_678.0, 0.0

    def pass_time(self, seconds: float) -> None:
        self.past += seconds

    def now_ms(self) -> int:
        return round((self.wall + self.past) * 1000)

    def monotonic(self) -> float:
        return self.past
