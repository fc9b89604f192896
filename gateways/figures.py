"""Every figure that `GET /metrics` can show, declared once: what is printed, documented and looked for in dashboards.

1. Names go by Prometheus' conventions: base units (seconds, bytes), `_total` on what only grows and nowhere else.
2. A label is a tool's name, a refusal's code, a kind or a door: a fixed set that the code names. Ids, keys, codes of
   desks and addresses are never labels.

Source: Prometheus, Metric and label naming; OpenMetrics 1.0.
"""

from typing import Final, Literal

import msgspec


class Figure(msgspec.Struct, frozen=True):
    """One family of samples."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    help: str
    """What it answers: one sentence."""
    labels: tuple[str, ...] = ()
    of: str = ""
    """The member of the broker's statistics that holds it, with a dot for one inside of it; "": a door gives it."""


_OUTCOME: Final = (
    "ok, duplicate (an envelope sent again), a refusal's code, cancelled (the client left), fault"
)

FIGURES: Final = (
    Figure("turret_build_info", "gauge", "Always 1; the label is the version.", ("version",)),
    Figure("turret_ready", "gauge", "1 while the broker takes new work, as /readyz says it."),
    Figure("turret_loop_lag_seconds", "histogram", "How late the loop wakes a sleeper."),
    Figure(
        "turret_envelopes_total",
        "counter",
        "Envelopes of send_call and send_env by what became of them: accepted, duplicate, a refusal's code, cancelled, "
        "fault.",
        ("outcome",),
    ),
    Figure(
        "turret_envelopes_committed_total",
        "counter",
        "Envelopes accepted in all, the broker's own (END) among them.",
        of="accepted",
    ),
    Figure(
        "turret_acknowledgement_seconds",
        "histogram",
        "From when an accepted envelope's frame could be read, or its turn in its conversation came, to the commit "
        "that is acknowledged.",
    ),
    Figure(
        "turret_late_refusals_total",
        "counter",
        "Envelopes refused as overloaded because they had waited too long to be read.",
        of="late",
    ),
    Figure(
        "turret_tool_calls_total", "counter", f"Calls of tools by outcome: {_OUTCOME}.", ("tool", "outcome")
    ),
    Figure(
        "turret_tool_call_seconds",
        "histogram",
        "How long a call of a tool took, waiting included.",
        ("tool",),
    ),
    Figure(
        "turret_sign_ins_total",
        "counter",
        "Steps of sign-ins (pages, token endpoint, revocation) by outcome.",
        ("step", "outcome"),
    ),
    Figure(
        "turret_connections",
        "gauge",
        "Open connections by door: http (all of the public port, WebSockets too), ws, dealing, operators.",
        ("door",),
    ),
    Figure("turret_mcp_sessions", "gauge", "MCP sessions of the handshake era that stand."),
    Figure("turret_outbox_bytes", "gauge", "Bytes that wait to be sent on WebSockets."),
    Figure(
        "turret_readers", "gauge", "Open readers of streams by what they read.", ("kind",), "readers_by_kind"
    ),
    Figure(
        "turret_reader_pending_bytes",
        "gauge",
        "Bytes of events that wait in memory for readers.",
        of="pending_bytes",
    ),
    Figure(
        "turret_slow_readers_total",
        "counter",
        "Readers that were cut because they fell behind.",
        of="slow_readers",
    ),
    Figure(
        "turret_stream_resumes_total",
        "counter",
        "Readers that began: recovered true where nothing was lost, else false and the reason (trimmed, epoch_changed, "
        "unknown, future).",
        ("recovered", "reason"),
        "resumed",
    ),
    Figure("turret_desks_online", "gauge", "Desks that count as online.", of="desks_online"),
    Figure(
        "turret_signatures_total",
        "counter",
        "Signatures by who verified them: inline or helper.",
        ("by",),
        "verified",
    ),
    Figure(
        "turret_signatures_delayed_total",
        "counter",
        "Signatures that had to stand in line, beyond a turn's budget.",
        of="signatures_delayed",
    ),
    Figure(
        "turret_signatures_waiting", "gauge", "Signatures that stand in line now.", of="signatures_waiting"
    ),
    Figure("turret_verify_helpers", "gauge", "Helper processes that verify now.", of="verify_helpers"),
    Figure(
        "turret_verify_helper_failures_total",
        "counter",
        "Helpers that had to be replaced.",
        of="helper_failures",
    ),
    Figure(
        "turret_audit_intact",
        "gauge",
        "1 where the last verify_audit_log found the audit log whole, 0 where it did not; absent until one was asked.",
    ),
    Figure("turret_webhooks", "gauge", "Webhooks that are not disabled.", of="pushes.pushes"),
    Figure(
        "turret_webhooks_waiting",
        "gauge",
        "Webhooks that have something to send, now or at the next attempt.",
        of="pushes.waiting",
    ),
    Figure(
        "turret_webhook_deliveries_total",
        "counter",
        "Events that a webhook has taken.",
        of="pushes.delivered",
    ),
    Figure(
        "turret_webhook_failures_total",
        "counter",
        "Attempts to deliver to a webhook that came to nothing.",
        of="pushes.failed",
    ),
    Figure(
        "turret_webhooks_disabled_total",
        "counter",
        "Webhooks that were disabled because they took nothing.",
        of="pushes.disabled",
    ),
    Figure("turret_arena_sessions", "gauge", "Sessions of the arena that are open.", of="sessions_open"),
    Figure(
        "turret_arena_sessions_opened_total",
        "counter",
        "Sessions of the arena that were opened.",
        of="sessions_opened",
    ),
    Figure(
        "turret_arena_sessions_over_total",
        "counter",
        "Sessions of the arena that ended, by why: stopped, expired, actions (as many as a session may have), or what "
        "the game says.",
        ("over",),
        "sessions_over",
    ),
    Figure("turret_arena_actions_total", "counter", "Actions that sessions took.", of="actions"),
    Figure(
        "turret_arena_rejected_total",
        "counter",
        "Attempts to act that a session rejected, by the refusal's code.",
        ("reason",),
        "actions_rejected",
    ),
    Figure("turret_trial_sessions", "gauge", "Trials that are open.", of="trials.open"),
    Figure("turret_trial_sessions_opened_total", "counter", "Trials that were opened.", of="trials.opened"),
    Figure(
        "turret_trial_sessions_over_total",
        "counter",
        "Trials that ended, by why: finalized, expired.",
        ("over",),
        "trials.over",
    ),
    Figure("turret_trial_calls_total", "counter", "Calls that trials took.", of="trials.calls"),
    Figure(
        "turret_trial_rejected_total",
        "counter",
        "Calls that a trial rejected, by the refusal's code.",
        ("reason",),
        "trials.rejected",
    ),
    Figure(
        "turret_trial_plans_total",
        "counter",
        "Plans that were read, to validate, start or revise, by outcome: valid, invalid.",
        ("outcome",),
        "trials.plans",
    ),
    Figure("turret_trial_ticks_total", "counter", "Ticks that trials ran.", of="trials.ticks"),
    Figure(
        "turret_trial_operations", "gauge", "Advances that take long, under way now.", of="trials.operations"
    ),
    Figure(
        "turret_trial_turns_total",
        "counter",
        "Turns of some milliseconds in which the loop computed for agents: ticks, plans, grades, tapes.",
        of="trials.turns",
    ),
    Figure("turret_trial_turns_waiting", "gauge", "Who waits for a turn now.", of="trials.waiting"),
    Figure("turret_actors", "gauge", "Actors in memory by kind.", ("kind",), "actors"),
    Figure(
        "turret_actor_crashes_total", "counter", "Actors that ended by an unexpected fault.", of="crashes"
    ),
    Figure(
        "turret_mailbox_refusals_total",
        "counter",
        "Requests refused as overloaded because an actor's mailbox was full.",
        of="turned_away",
    ),
    Figure("turret_store_commit_seconds", "histogram", "How long a commit took.", of="store.commits"),
    Figure("turret_store_commit_units", "histogram", "Units that one commit held.", of="store.units"),
    Figure(
        "turret_store_checkpoint_seconds",
        "histogram",
        "How long it took to move the write-ahead log into the file.",
        of="store.checkpoints",
    ),
    Figure("turret_store_file_bytes", "gauge", "Size of the store's file.", of="store.file_bytes"),
    Figure("turret_store_wal_bytes", "gauge", "Size of the write-ahead log.", of="store.log_bytes"),
    Figure("turret_store_free_bytes", "gauge", "Bytes free on the store's disk.", of="free_bytes"),
)

BY_NAME: Final = {figure.name: figure for figure in FIGURES}

PROCESS: Final = (
    Figure("process_cpu_seconds_total", "counter", "CPU time of the broker's process."),
    Figure("process_resident_memory_bytes", "gauge", "Memory that it holds."),
    Figure("process_virtual_memory_bytes", "gauge", "Memory that it has mapped."),
    Figure("process_start_time_seconds", "gauge", "When it began, Unix time."),
    Figure("process_open_fds", "gauge", "File descriptors that it holds."),
    Figure("process_max_fds", "gauge", "File descriptors that it may hold."),
)
"""The client library's own, under Prometheus' usual names; on Linux."""
