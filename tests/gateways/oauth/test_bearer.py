"""Tokens at our doors: whose they are, for which resource, and whether they still hold."""

from typing import Any

import pytest
import trio

from broker.actors.standing import Facts
from broker.app import Caller
from broker.wire.refusals import Refusal, refuse
from gateways.oauth.bearer import Bearers
from gateways.oauth.keys import ACCESS_S, SigningKeys
from gateways.oauth.outside import Grant, read_grant
from tests.support.agents import make_agent
from tests.support.authserver import SignIns
from tests.support.broker import Bench, code
from tests.support.signin import new_owner, signin

HERE = frozenset({"https://turret.example/mcp"})
AGENT, OWNER = "ag_01ARZ3NDEKTSV4RRFFQ69G5FAV", "ow_01ARZ3NDEKTSV4RRFFQ69G5FAV"


@pytest.mark.requirement("signin.bearer")
async def test_a_token_is_good_for_its_own_resource_and_the_endpoints_for_all(doors: SignIns) -> None:
    whole = (await doors.sign_in())["access_token"]
    arena = (await doors.sign_in(resource=f"{doors.url}/mcp/arena", scope="arena"))["access_token"]
    for face in ("", "network", "arena", "wire"):
        assert code(await doors.identify(whole, face)) == "accepted"
        expect = "accepted" if face == "arena" else "unauthenticated"
        assert code(await doors.identify(arena, face)) == expect


@pytest.mark.requirement("signin.bearer", "oauth.scope")
async def test_a_token_lacks_what_its_owner_did_not_give(doors: SignIns) -> None:
    token = (await doors.sign_in())["access_token"]
    assert code(await doors.identify(token, "", "contacts", "message")) == "accepted"
    lacking = await doors.identify(token, "", "contacts", "arena")
    assert isinstance(lacking, Refusal)
    assert (lacking.code, lacking.detail["scope"]) == ("insufficient_scope", "contacts arena")


@pytest.mark.requirement("signin.bearer")
async def test_nothing_else_is_a_token_and_each_try_is_counted(doors: SignIns) -> None:
    good = await doors.sign_in()
    foreign = SigningKeys.open(None, doors.bench.clock.now_ms())
    doors.server.keys, ours = foreign, doors.server.keys
    theirs = (await doors.sign_in())["access_token"]
    doors.server.keys = ours
    wrong = ("", "x", "a.b.c", good["refresh_token"], theirs, good["access_token"] + "x", "x" * 9000)
    for token in wrong:
        assert code(await doors.identify(token)) == "unauthenticated"
    doors.bench.clock.step(ACCESS_S * 1000)
    assert code(await doors.identify(good["access_token"])) == "unauthenticated"
    doors.bench.clock.step(60_000)
    counted = doors.bench.broker._services.sign_in.take_refused()
    assert sum(each.count for each in counted if each.kind == "invalid_token") == len(wrong) + 1


@pytest.mark.requirement("signin.bearer", "signin.standing")
async def test_what_ends_a_right_ends_its_tokens_and_a_release_gives_them_back(doors: SignIns) -> None:
    agent = (await make_agent(doors.bench, "mine", owner_id=doors.owner)).agent
    assert agent is not None
    signed = await doors.sign_in(agent)
    standing = doors.bench.broker._services.standing
    standing.told(agent, Facts(suspended=True))
    assert code(await doors.identify(signed["access_token"])) == "suspended"
    standing.told(agent, Facts())
    assert code(await doors.identify(signed["access_token"])) == "accepted"
    standing.told(agent, Facts(after=doors.bench.ts + 1))
    assert code(await doors.identify(signed["access_token"])) == "unauthenticated"


@pytest.mark.requirement("signin.revoke")
async def test_a_revoked_grant_ends_what_its_tokens_hold_within_a_second(doors: SignIns) -> None:
    signed = await doors.sign_in()
    caller = await doors.identify(signed["access_token"])
    assert isinstance(caller, Caller)
    ended = trio.Event()
    with doors.bench.broker.hold(caller, lambda _: ended.set()):
        (grant,) = (await signin(doors.bench, "list_grants", owner_id=doors.owner))["grants"]
        await signin(doors.bench, "revoke_grant", owner_id=doors.owner, grant_id=grant["grant_id"])
        with trio.fail_after(1):
            await ended.wait()
    assert code(await doors.identify(signed["access_token"])) == "unauthenticated"


class Outside:
    """Stands in for an outside issuer's judge."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    async def verify(self, token: str, audiences: Any) -> Any:
        return self.answer


def granted(subject: str, **changes: Any) -> Grant:
    members: dict[str, Any] = {
        "issuer": "https://id.example",
        "subject": subject,
        "client": "app",
        "scopes": frozenset({"message"}),
        "audiences": HERE,
        "issued": 7,
        "until": 4e9,
    }
    return Grant(**{**members, **changes})


@pytest.mark.requirement("oauth.outside")
async def test_an_outside_subject_of_our_form_is_that_agent_or_owner(bench: Bench) -> None:
    owner = await new_owner(bench)
    agent = (await make_agent(bench, "mine")).agent
    assert agent is not None
    for subject, expect in (
        (agent, {"principal": agent, "agent": agent, "owner": None}),
        (owner, {"principal": owner, "agent": None, "owner": owner}),
        ("user-7", {"principal": "https://id.example user-7", "agent": None, "owner": None}),
        (f"{agent}x", {"principal": f"https://id.example {agent}x", "agent": None, "owner": None}),
    ):
        found = await Bearers(bench.broker, Outside(granted(subject))).identify(Caller(), "t", HERE)
        assert isinstance(found, Caller)
        assert {name: getattr(found, name) for name in expect} == expect
        assert (found.client, found.issued, found.until, found.grant) == ("app", 7, 4_000_000_000, None)


@pytest.mark.requirement("oauth.outside")
async def test_a_client_that_chose_an_agents_id_for_its_own_is_no_agent(bench: Bench) -> None:
    agent = (await make_agent(bench, "mine")).agent
    answer = {"active": True, "client_id": agent, "exp": 4e9, "aud": "a"}
    grant = read_grant(answer, "https://id.example", 0)
    assert grant is not None
    found = await Bearers(bench.broker, Outside(grant)).identify(Caller(), "t", HERE)
    assert isinstance(found, Caller)
    assert (found.agent, found.principal) == (None, f"https://id.example {agent}")


@pytest.mark.requirement("oauth.outside", "signin.bearer")
async def test_an_outside_token_is_looked_at_like_our_own(bench: Bench) -> None:
    async def ask(answer: Any, *scopes: str) -> str:
        return code(await Bearers(bench.broker, Outside(answer)).identify(Caller(), "t", HERE, scopes))

    assert await ask(granted(AGENT)) == "unauthenticated", "there is no such agent"
    assert await ask(granted(OWNER)) == "unauthenticated"
    assert await ask(granted("user-7"), "message") == "accepted"
    assert await ask(granted("user-7"), "arena") == "insufficient_scope"
    assert await ask(refuse("unavailable", "x")) == "unavailable"
    assert await ask(refuse("unauthenticated", "x")) == "unauthenticated"
