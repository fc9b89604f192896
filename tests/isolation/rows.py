"""The table: every tool, what a call of it for a thing of Alice's is, and what each caller is told.

A new tool needs a row (test_table.py). Where a tool takes an id of another's thing, `foreign` names the params in whose
place an id that nothing has is put: the stranger's two answers are then the same (test_foreign.py).
"""

from collections.abc import Callable
from typing import Any, Final

import msgspec

from tests.isolation.world import NOBODY, World
from tests.support.arena import new_key
from tests.support.rehearsals import QUIET

Params = Callable[[World], dict[str, Any]]


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """What the callers of WHO are told of a tool: codes of refusals, or "accepted"."""

    params: Params = lambda _: {}
    stranger: str
    nobody: str = "unauthenticated"
    scopeless: str = "insufficient_scope"
    suspended: str = "suspended"
    expired: str = "unauthenticated"
    owner: str = "agent_required"
    foreign: Params | None = None
    """The same params with ids that nothing has."""


def gone(prefix: str) -> str:
    """An id that nothing has."""
    return prefix + NOBODY


def network(stranger: str, params: Params = lambda _: {}, foreign: Params | None = None) -> Row:
    """A tool for an agent's token."""
    return Row(stranger=stranger, params=params, foreign=foreign)


def wire(
    all: str, params: Params = lambda _: {}, *, stranger: str | None = None, scopeless: str | None = None
) -> Row:
    """A tool of the wire: the signature is the authority, and a token nothing, but that a bad one is refused. Where it
    wants somebody's identity, an owner's token is good and has no desk: no 401."""
    return Row(
        params=params,
        nobody=all,
        owner="agent_required" if all == "unauthenticated" else all,
        stranger=stranger or all,
        scopeless=scopeless or stranger or all,
    )


def channel(**more: Any) -> tuple[Params, Params]:
    """The params of a tool of a channel: Alice's private one, and one that is not."""
    return (
        lambda w: {"channel_id": w.channel, **{name: of(w) for name, of in more.items()}},
        lambda w: {"channel_id": gone("ch_"), **{name: of(w) for name, of in more.items()}},
    )


def resource(**more: Any) -> tuple[Params, Params]:
    """The params of a tool of a resource: Alice's private one, and one that is not."""
    return (
        lambda w: {"resource_id": w.resource, **{name: of(w) for name, of in more.items()}},
        lambda w: {"resource_id": gone("rs_"), **{name: of(w) for name, of in more.items()}},
    )


def task(**more: Any) -> tuple[Params, Params]:
    """The params of a tool of a task: one that Alice gave Bob, and one that is not."""
    return (
        lambda w: {"task_id": w.task, **{name: of(w) for name, of in more.items()}},
        lambda w: {"task_id": gone("tk_"), **{name: of(w) for name, of in more.items()}},
    )


def session(owner: str, keyed: bool = False, **more: Any) -> Row:
    """A tool of a session of the arena: one of Alice's, which her owner may use too, and one that is not."""

    def params(session_id: str) -> dict[str, Any]:
        return {"session_id": session_id, **more, **({"idempotency_key": new_key()} if keyed else {})}

    return Row(
        params=lambda w: params(w.session),
        stranger="NOT_FOUND",
        owner=owner,
        foreign=lambda _: params(gone("as_")),
    )


def trial(owner: str, keyed: bool = True, **more: Any) -> Row:
    """A tool of a trial, in the same way."""

    def params(session_id: str) -> dict[str, Any]:
        return {"session_id": session_id, **more, **({"idempotency_key": new_key()} if keyed else {})}

    return Row(
        params=lambda w: params(w.trial),
        stranger="NOT_FOUND",
        owner=owner,
        foreign=lambda _: params(gone("tr_")),
    )


def agent(who: str) -> Callable[[World], str]:
    """The id of one of the people."""
    return lambda w: str(w.people[who].agent)


def signed(do: str, **members: Any) -> Params:
    """A statement of Alice's that is good."""
    return lambda w: w.desks["alice"].statement(do, w.bench.broker.pk, w.bench.ts, **members)


ROWS: Final[dict[str, Row]] = {
    # Who is who
    "whoami": network("accepted"),
    "get_agent": Row(
        params=lambda w: {"agent_id": agent("alice")(w)}, stranger="accepted", owner="accepted"
    ),  # an agent's id is no secret
    "list_agents": network("accepted"),
    "search_directory": wire("accepted"),
    "update_my_profile": network("accepted", lambda _: {"description": "a stranger"}),
    "set_directory_visibility": network("accepted", lambda _: {"public": False}),
    "get_onboarding_status": network("accepted"),
    "renew_claim_code": network("not_found"),
    "list_my_public_keys": network("accepted"),
    "revoke_my_public_key": network(
        "not_found",
        lambda w: {"kid": f"kid-{w.desks['alice'].pk[:8]}"},
        lambda _: {"kid": "kid-00000000"},
    ),
    "report_agent": network(
        "accepted", lambda w: {"target_agent_id": agent("alice")(w), "category": "other", "details": "a test"}
    ),
    # Agreements
    "request_contact": network(
        "accepted", lambda w: {"target_agent_id": agent("alice")(w), "purpose": "to talk"}
    ),
    "list_contact_requests": network("accepted"),
    "respond_to_contact_request": network(
        "not_found",
        lambda w: {"request_id": w.request, "accept": True},
        lambda _: {"request_id": gone("cr_"), "accept": True},
    ),
    "cancel_contact_request": network(
        "not_found", lambda w: {"request_id": w.request}, lambda _: {"request_id": gone("cr_")}
    ),
    "list_agreements": network("accepted"),
    "revoke_agreement": network(
        "not_found", lambda w: {"agreement_id": w.agreement}, lambda _: {"agreement_id": gone("agr_")}
    ),
    "get_contact_policy": network("accepted"),
    "set_contact_policy": network("accepted", lambda _: {"policy": "deny"}),
    # Messages
    "send_direct_message": network(
        "agreement_required", lambda w: {"recipient_agent_id": agent("alice")(w), "body": "hello"}
    ),
    "get_inbox": network("accepted"),
    "mark_messages_read": network(
        "not_found", lambda w: {"message_ids": [w.message]}, lambda _: {"message_ids": [gone("msg_")]}
    ),
    # The webhook: everybody has its own
    "delete_webhook": network("not_found"),
    "rotate_webhook_secret": network("not_found"),
    "redeliver_webhook_events": network("not_found"),
    "test_webhook": network("not_found"),
    "set_webhook": network("accepted", lambda _: {"url": "https://hooks.example/"}),
    "get_webhook": network("accepted"),
    # Secrets: each owner's own
    "kestrel.secrets.set": network("accepted", lambda _: {"name": "TOKEN", "value": "v"}),
    "kestrel.secrets.unset": network("NOT_FOUND", lambda _: {"name": "ALICES"}),
    "kestrel.secrets.list": network("accepted"),
    # Channels
    "create_channel": network("already_exists", lambda _: {"name": "secret"}),  # names are given once
    "list_channels": network("accepted"),
    "join_channel": network("not_found", *channel()),
    "invite_agent_to_channel": network("not_found", *channel(invited_agent_id=agent("erin"))),
    "leave_channel": network("not_found", *channel()),
    "remove_channel_member": network("not_found", *channel(target_agent_id=agent("bob"))),
    "transfer_channel": network("not_found", *channel(new_owner_agent_id=agent("bob"))),
    "list_channel_members": network("not_found", *channel()),
    "send_channel_message": network("not_found", *channel(body=lambda _: "hello")),
    "get_channel_history": network("not_found", *channel()),
    # Resources
    "publish_resource": network("accepted", lambda _: {"title": "a stranger's", "content": "text"}),
    "update_resource": network("not_found", *resource(title=lambda _: "mine now")),
    "delete_resource": network("not_found", *resource()),
    "list_my_resources": network("accepted"),
    "search_resources": network("accepted", lambda _: {"q": "rates"}),
    "read_resource": network("not_found", *resource()),
    # Tasks
    "send_task": network("not_found", *task(target_agent_id=agent("bob"), text=lambda _: "hello")),
    "get_task": network("not_found", *task()),
    "list_tasks": network("accepted"),
    "cancel_task": network("not_found", *task()),
    "complete_task": network("not_found", *task(outcome=lambda _: "completed", text=lambda _: "hello")),
    "update_task": network("not_found", *task(status=lambda _: "working")),
    "set_task_push": network("not_found", *task(url=lambda _: "https://hooks.example/")),
    "list_task_pushes": network("not_found", *task()),
    "delete_task_push": network("not_found", *task(config_id=lambda _: "c1")),
    "set_a2a_endpoint": network("accepted", lambda _: {"url": "https://a2a.turret-agents.org/"}),
    "get_a2a_endpoint": network("accepted"),
    "delete_a2a_endpoint": network("accepted"),
    # The arena
    "describe_arena": Row(stranger="accepted", owner="accepted"),
    "get_game": Row(params=lambda _: {"game": "hilo"}, stranger="accepted", owner="accepted"),
    "open_session": Row(
        params=lambda w: {"agent_id": agent("alice")(w), "game": "hilo", "idempotency_key": new_key()},
        stranger="FORBIDDEN",  # an agent's id is no secret
        owner="accepted",
    ),
    "get_session": session("accepted"),
    "submit_action": session("ILLEGAL_ACTION", keyed=True, expected_version=0, action={"type": "sit"}),
    # Trials: the ref is the right
    "kestrel.grade": Row(params=lambda _: {"ref": "0" * 64}, stranger="NOT_FOUND", owner="NOT_FOUND"),
    "kestrel.validate": Row(params=lambda _: {"plan": "plan"}, stranger="accepted", owner="accepted"),
    "kestrel.session.open": Row(
        params=lambda w: {"agent_id": agent("alice")(w), "entry": "trend", "idempotency_key": new_key()},
        stranger="FORBIDDEN",
        owner="accepted",
    ),
    "kestrel.session.start": trial("CONFLICT", plan=QUIET, expected_version=99),
    "kestrel.session.advance": trial("CONFLICT", ticks=1, expected_version=99),
    "kestrel.session.revise": trial("CONFLICT", plan=QUIET, expected_version=99),
    "kestrel.session.submit": trial("CONFLICT", order={"side": "buy", "size": 1}, expected_version=99),
    "kestrel.session.resume": trial("accepted", keyed=False),
    "kestrel.session.finalize": trial("CONFLICT", expected_version=99),
    "kestrel.operation.resume": Row(
        params=lambda w: {"operation_id": w.operation},
        stranger="NOT_FOUND",
        owner="accepted",
        foreign=lambda _: {"operation_id": gone("op_")},
    ),
    # The wire: who signs is who acts
    "wire_info": wire("accepted"),
    "presence": wire("accepted"),
    "resolve_code": wire("accepted", lambda _: {"code": "ALIC"}),
    "canonicalize": wire("accepted", lambda w: {"envelope": w.line.next("SAY")["envelope"]}),
    "send_call": wire("accepted", lambda w: w.bench.calling(w.desks["alice"], w.desks["bob"])),
    "send_env": wire("accepted", lambda w: w.envelope()),
    "read_conv": Row(
        params=lambda w: {"conv": w.line.conv},
        nobody="unknown_conv",
        scopeless="unknown_conv",
        stranger="unknown_conv",
        owner="unknown_conv",
        foreign=lambda _: {"conv": "f" * 16},
    ),
    "receipt": Row(
        params=lambda w: {"conv": w.line.conv, "n": 0},
        nobody="unknown_conv",
        scopeless="unknown_conv",
        stranger="unknown_conv",
        owner="unknown_conv",
        foreign=lambda _: {"conv": "f" * 16, "n": 0},
    ),
    "list_convs": wire("unauthenticated", stranger="not_a_party"),
    "desk_rings": wire(
        "unauthenticated", lambda _: {"code": "ALIC"}, stranger="not_a_party"
    ),  # that the desk is there is no secret
    "wait_for_events": wire("unauthenticated", stranger="accepted", scopeless="insufficient_scope"),
    "open_desk": wire("desk_exists", signed("open_desk", code="ZULU")),
    "move_desk": wire("bad_request", lambda w: signed("move_desk", code="ALIC", new_pk=w.desks["bob"].pk)(w)),
    "cancel_move": wire("not_found", signed("cancel_move", code="ALIC")),
    "screen_desk": wire("accepted", signed("screen_desk", code="ALIC", allow=[], deny=[], mode="all")),
    "close_desk": wire("unknown_desk", signed("close_desk", code="ZULU")),
}
