"""What tokens are given for: codes, refresh tokens, agents' proofs, and how each ends."""

from typing import Any

import msgspec
import pytest

from broker.actors.grant import LAPSE_MS
from broker.actors.standing import Facts
from broker.app import Caller
from broker.core.agent import AgentRow, Key, Suspension
from broker.core.grant import CODE_MS, IDLE_MS
from broker.core.secret import digest
from broker.store.port import Put, Unit
from broker.wire.refusals import Refusal
from tests.support.agents import make_agent
from tests.support.broker import STRANGER, Bench, code
from tests.support.signin import RESOURCE, SignedIn, consent, new_owner, register, signin

ANOTHER = "https://elsewhere.example/mcp"


def error(answer: Any) -> str:
    """OAuth's code in a refusal; accepted where it is none."""
    return str(answer.detail["error"]) if isinstance(answer, Refusal) else "accepted"


async def redeem(bench: Bench, signed: SignedIn, caller: Caller = Caller(), **changes: Any) -> Any:  # noqa: B008
    return await signin(bench, "redeem_code", caller, **signed.redemption(**changes))


async def refresh(bench: Bench, signed: SignedIn, token: str, **changes: Any) -> Any:
    return await signin(
        bench, "refresh_grant", **{"client_id": signed.client_id, "refresh_token": token, **changes}
    )


async def over(bench: Bench, grant: str) -> bool:
    """Whether what came of a grant is refused now."""
    return await bench.broker.judge(Caller(grant=grant)) is not None


@pytest.mark.requirement("signin.code")
async def test_a_code_is_redeemed_for_what_was_consented_to(bench: Bench) -> None:
    owner = await new_owner(bench)
    agent = (await make_agent(bench, "mine", owner_id=owner)).agent
    answer = await redeem(bench, await consent(bench, owner, agent))
    assert answer.pop("refresh_token").startswith(answer["grant"] + ".")
    assert answer.pop("grant").startswith("gr_")
    assert answer == {
        "subject": agent,
        "owner": owner,
        "scopes": ["message", "channel"],
        "resource": RESOURCE,
    }


@pytest.mark.requirement("signin.code")
@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"verifier": "w" * 43}, "invalid_grant"),
        ({"verifier": None}, "invalid_grant"),
        ({"verifier": "v" * 42}, "invalid_grant"),
        ({"redirect_uri": "http://127.0.0.1:3001/back"}, "invalid_grant"),
        ({"redirect_uri": None}, "invalid_grant"),
        ({"resource": ANOTHER}, "invalid_target"),
        ({"client_id": "https://app.example/client"}, "invalid_grant"),
        ({"client_id": "cl_01ARZ3NDEKTSV4RRFFQ69G5FAV"}, "invalid_client"),
        ({"client_secret": "made up"}, "invalid_client"),
        ({"code": "gr_01ARZ3NDEKTSV4RRFFQ69G5FAV." + "c" * 43}, "invalid_grant"),
        ({"code": "nonsense"}, "invalid_grant"),
        ({"code": ""}, "invalid_grant"),
    ],
)
async def test_a_code_is_good_for_its_client_redirect_verifier_and_resource_alone(
    bench: Bench, changes: dict[str, Any], told: str
) -> None:
    signed = await consent(bench, await new_owner(bench))
    assert error(await redeem(bench, signed, **changes)) == told
    assert error(await redeem(bench, signed)) == "accepted", "what is refused changes nothing"


@pytest.mark.requirement("signin.code")
async def test_a_code_with_another_secret_is_refused_and_ends_nothing(bench: Bench) -> None:
    signed = await consent(bench, await new_owner(bench))
    answer = await redeem(bench, signed)
    guessed = signed.code.split(".")[0] + "." + "g" * 43
    assert error(await redeem(bench, signed, code=guessed)) == "invalid_grant"
    assert not await over(bench, answer["grant"])


@pytest.mark.requirement("signin.code")
async def test_a_code_is_over_after_a_minute(bench: Bench) -> None:
    signed = await consent(bench, await new_owner(bench))
    bench.clock.step(CODE_MS)
    assert error(await redeem(bench, signed)) == "invalid_grant"


@pytest.mark.requirement("signin.stolen")
async def test_a_code_that_comes_a_second_time_ends_all_that_came_of_it(bench: Bench) -> None:
    signed = await consent(bench, await new_owner(bench))
    answer = await redeem(bench, signed)
    assert not await over(bench, answer["grant"])
    assert error(await redeem(bench, signed)) == "invalid_grant"
    assert await over(bench, answer["grant"])
    assert error(await refresh(bench, signed, answer["refresh_token"])) == "invalid_grant"


@pytest.mark.requirement("signin.refresh")
async def test_a_refresh_token_serves_once_and_brings_the_next(bench: Bench) -> None:
    signed = await consent(bench, await new_owner(bench))
    first = await redeem(bench, signed)
    second = await refresh(bench, signed, first["refresh_token"])
    third = await refresh(bench, signed, second["refresh_token"])
    assert third["grant"] == first["grant"]
    assert len({each["refresh_token"] for each in (first, second, third)}) == 3


@pytest.mark.requirement("signin.stolen")
async def test_an_old_refresh_token_that_comes_again_ends_the_grant(bench: Bench) -> None:
    signed = await consent(bench, await new_owner(bench))
    first = await redeem(bench, signed)
    second = await refresh(bench, signed, first["refresh_token"])
    assert error(await refresh(bench, signed, first["refresh_token"])) == "invalid_grant"
    assert error(await refresh(bench, signed, second["refresh_token"])) == "invalid_grant"
    assert await over(bench, first["grant"])


@pytest.mark.requirement("signin.refresh")
async def test_who_knows_a_grants_id_alone_can_do_nothing_to_it(bench: Bench) -> None:
    signed = await consent(bench, await new_owner(bench))
    first = await redeem(bench, signed)
    made_up = f"{first['grant']}.{'f' * 22}.{'s' * 43}"
    assert error(await refresh(bench, signed, made_up)) == "invalid_grant"
    other = await register(bench)
    stolen = await refresh(bench, signed, first["refresh_token"], client_id=other["client_id"])
    assert error(stolen) == "invalid_grant"
    for params in (
        {"grant_id": first["grant"], "client_id": other["client_id"]},
        {"refresh_token": made_up, "client_id": signed.client_id},
    ):
        assert await signin(bench, "end_grant", **params) == {}
    assert error(await refresh(bench, signed, first["refresh_token"])) == "accepted"


@pytest.mark.requirement("signin.refresh")
async def test_a_refresh_may_ask_for_less_and_never_for_more(bench: Bench) -> None:
    signed = await consent(bench, await new_owner(bench))
    token = (await redeem(bench, signed))["refresh_token"]
    assert error(await refresh(bench, signed, token, scopes=["contacts"])) == "invalid_scope"
    assert error(await refresh(bench, signed, token, resource=ANOTHER)) == "invalid_target"
    less = await refresh(bench, signed, token, scopes=["message"])
    assert less["scopes"] == ["message"]
    assert (await refresh(bench, signed, less["refresh_token"]))["scopes"] == ["message", "channel"]


@pytest.mark.requirement("signin.refresh")
async def test_a_grant_that_nobody_uses_is_over_after_thirty_days(bench: Bench) -> None:
    signed = await consent(bench, await new_owner(bench))
    token = (await redeem(bench, signed))["refresh_token"]
    bench.clock.step(IDLE_MS - 60_000)
    token = (await refresh(bench, signed, token))["refresh_token"]
    bench.clock.step(IDLE_MS)
    assert error(await refresh(bench, signed, token)) == "invalid_grant"


@pytest.mark.requirement("signin.refresh")
async def test_a_client_whose_tokens_are_refreshed_stays(bench: Bench) -> None:
    signed = await consent(bench, await new_owner(bench))
    answer = await redeem(bench, signed)
    for _ in range(LAPSE_MS // IDLE_MS + 1):
        bench.clock.step(IDLE_MS - 60_000)
        await register(bench)  # who comes has what is over swept
        answer = await refresh(bench, signed, answer["refresh_token"])
        assert not isinstance(answer, Refusal), answer


@pytest.mark.requirement("signin.standing")
async def test_a_subject_that_may_not_speak_gets_no_token_and_keeps_its_grant(bench: Bench) -> None:
    owner = await new_owner(bench)
    agent = (await make_agent(bench, "mine", owner_id=owner)).agent
    assert agent is not None
    signed = await consent(bench, owner, agent)
    token = (await redeem(bench, signed))["refresh_token"]
    standing = bench.broker._services.standing
    standing.told(agent, Facts(suspended=True))
    assert error(await refresh(bench, signed, token)) == "invalid_grant"
    standing.told(agent, Facts())
    assert error(await refresh(bench, signed, token)) == "accepted"


@pytest.mark.requirement("signin.client-secret")
async def test_a_client_with_a_secret_proves_itself_by_it(bench: Bench) -> None:
    client = await register(bench, token_endpoint_auth_method="client_secret_basic")
    signed = await consent(bench, await new_owner(bench), client_id=client["client_id"])
    for secret in (None, "", "wrong", client["client_secret"] + "x"):
        assert error(await redeem(bench, signed, client_secret=secret)) == "invalid_client"
        proved = await signin(bench, "prove_client", client_id=client["client_id"], client_secret=secret)
        assert error(proved) == "invalid_client"
    assert error(await redeem(bench, signed, client_secret=client["client_secret"])) == "accepted"


@pytest.mark.requirement("signin.guesses")
async def test_an_address_that_guesses_is_stopped_for_a_while(bench: Bench) -> None:
    signed = await consent(bench, await new_owner(bench))
    for _ in range(bench.broker.settings.limits.guesses):
        assert error(await redeem(bench, signed, STRANGER, code="nonsense")) == "invalid_grant"
    for verb, params in (
        ("redeem_code", signed.redemption()),
        ("agent_keys", {"agent_id": "x"}),
        ("take_credential", {"agent_id": "x", "secret": "y"}),
        ("prove_client", {"client_id": signed.client_id}),
    ):
        assert code(await signin(bench, verb, STRANGER, **params)) == "rate_limited"
    assert error(await redeem(bench, signed)) == "accepted", "others go on"


@pytest.mark.requirement("signin.agent-key")
async def test_an_agents_keys_are_told_and_a_strangers_are_none(bench: Bench) -> None:
    key = Key("kid", "ab" * 32, 1)
    agent = (await make_agent(bench, "keyed", keys=(key,))).agent
    assert await signin(bench, "agent_keys", agent_id=agent) == {"keys": [{"kid": "kid", "pk": "ab" * 32}]}
    for stranger in ("ag_01ARZ3NDEKTSV4RRFFQ69G5FAV", "x", ""):
        assert await signin(bench, "agent_keys", agent_id=stranger) == {"keys": []}


@pytest.mark.requirement("signin.agent-key")
async def test_an_assertion_serves_once_and_by_a_live_key(bench: Bench) -> None:
    owner = await new_owner(bench)
    keys = (Key("kid", "ab" * 32, 1),)
    agent = (await make_agent(bench, "keyed", keys=keys, owner_id=owner)).agent
    params = {"agent_id": agent, "kid": "kid", "jti": "one", "until": bench.ts + 60}
    granted = {"subject": agent, "owner": owner, "kid": "kid"}
    assert await signin(bench, "take_assertion", **params) == granted
    assert error(await signin(bench, "take_assertion", **params)) == "invalid_client"
    assert await signin(bench, "take_assertion", **{**params, "jti": "two"}) == granted
    assert (
        error(await signin(bench, "take_assertion", **{**params, "jti": "3", "kid": "gone"}))
        == "invalid_client"
    )
    other = {**params, "agent_id": "ag_01ARZ3NDEKTSV4RRFFQ69G5FAV"}
    assert error(await signin(bench, "take_assertion", **other)) == "invalid_client"


@pytest.mark.requirement("signin.agent-secret")
async def test_an_agent_shows_the_credential_that_an_operator_made_for_it(bench: Bench) -> None:
    agent = (await make_agent(bench, "static", secret_hash=digest("s3cret"))).agent
    bare = (await make_agent(bench, "bare")).agent
    assert await signin(bench, "take_credential", agent_id=agent, secret="s3cret") == {"subject": agent}
    for name, secret in ((agent, "wrong"), (agent, ""), (bare, ""), (bare, "s3cret"), ("x", "s3cret")):
        assert error(await signin(bench, "take_credential", agent_id=name, secret=secret)) == "invalid_client"
    held = await make_agent(bench, "held", secret_hash=digest("s3cret"), suspended=Suspension(1, "a reason"))
    assert (
        error(await signin(bench, "take_credential", agent_id=held.agent, secret="s3cret"))
        == "invalid_client"
    )


@pytest.mark.requirement("signin.revoke")
async def test_a_client_gives_back_what_it_was_given(bench: Bench) -> None:
    for by_token in (True, False):
        signed = await consent(bench, await new_owner(bench))
        answer = await redeem(bench, signed)
        shown = {"refresh_token": answer["refresh_token"]} if by_token else {"grant_id": answer["grant"]}
        assert await signin(bench, "end_grant", client_id=signed.client_id, **shown) == {}
        assert await over(bench, answer["grant"])
        assert await signin(bench, "end_grant", client_id=signed.client_id, **shown) == {}


@pytest.mark.requirement("signin.refused")
async def test_refused_sign_ins_are_counted(bench: Bench) -> None:
    signed = await consent(bench, await new_owner(bench))
    await redeem(bench, signed, STRANGER, code="nonsense")
    await signin(bench, "failed_proof", STRANGER, kind="invalid_token")
    bench.clock.step(60_000)
    counted = bench.broker._services.sign_in.take_refused()
    assert {(each.place, each.kind, each.count) for each in counted} == {
        (STRANGER.address, "invalid_grant", 1),
        (STRANGER.address, "invalid_token", 1),
    }


@pytest.mark.requirement("signin.standing", "signin.subject")
async def test_an_agent_that_was_given_to_another_owner_is_no_more_spoken_for(bench: Bench) -> None:
    owner = await new_owner(bench)
    caller = await make_agent(bench, "mine", owner_id=owner)
    assert caller.agent is not None
    kept, waiting = await consent(bench, owner, caller.agent), await consent(bench, owner, caller.agent)
    token = (await redeem(bench, kept))["refresh_token"]
    document = await bench.store.get("agent", caller.agent)
    assert document is not None
    row = msgspec.json.decode(document.doc, type=AgentRow)
    given = msgspec.json.encode(msgspec.structs.replace(row, owner_id=await new_owner(bench)))
    await bench.store.commit(Unit(puts=(Put("agent", caller.agent, document.version, given),)))
    assert error(await redeem(bench, waiting)) == "invalid_grant"
    assert error(await refresh(bench, kept, token)) == "invalid_grant"
