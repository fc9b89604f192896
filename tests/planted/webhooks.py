"""Webhooks."""

CORE = "broker/core/push.py"
FORM = "broker/core/webhook.py"
ACTOR = "broker/actors/push.py"
WORKER = "broker/actors/pusher.py"
TOOLS = "broker/tools/webhooks.py"
OUT = "gateways/outbound.py"
COURIER = "gateways/courier.py"

MUTANTS = (
    ("webhook.given-up", CORE, "if outcome.status == 410:", "if outcome.status == 404:"),
    ("webhook.given-up", CORE, "next_at = min(next_at, end)", "pass"),
    ("webhook.given-up", CORE, "if now >= end and tries >= LEAST:", "if now >= end:"),
    ("webhook.given-up", ACTOR, "puts, events = await self._notice(came, came.disabled)", "pass"),
    ("webhook.retry-after", CORE, "min(retry_after_s or 0.0, LONGEST_S)", "(retry_after_s or 0.0)"),
    ("webhook.retry-after", COURIER, "if status in (429, 503) else None", "if status >= 400 else None"),
    ("webhook.rotation", CORE, "for each in row.secrets[:1])", "for each in row.secrets)"),
    ("webhook.rotation", CORE, "if each.until is None or now < each.until)", ")"),
    ("webhook.replaced", ACTOR, "if row is None or not same_turn(row, came):", "if row is None:"),
    ("webhook.event", FORM, '" ".join(sign(', '",".join(sign('),
    (
        "webhook.order",
        WORKER,
        "                if row.failing or row.disabled:\n                    break",
        "                pass",
    ),
    ("webhook.restart", WORKER, "if row.failing is not None or newest > row.position:", "if row.failing:"),
    (
        "webhook.gap",
        "broker/actors/backlog.py",
        'place, gap = head.oldest - 1, gap or "trimmed"',
        "place = head.oldest - 1",
    ),
    ("webhook.standing", WORKER, "with self._standing.hold(who, lambda _: live.break_off()):", "if True:"),
    ("webhook.parallel", WORKER, "trio.CapacityLimiter(AT_ONCE)", "trio.CapacityLimiter(1000)"),
    ("webhook.parallel", WORKER, "trio.CapacityLimiter(SHARE)", "trio.CapacityLimiter(1000)"),
    ("webhook.parallel", WORKER, "        await self._paced(row.agent_id)\n", ""),
    ("webhook.tools", TOOLS, "if not allowance(agent).webhook:", "if False:"),
    ("webhook.public", OUT, "not all(self._may_ask(", "not any(self._may_ask("),
    ("webhook.receiver", OUT, "with trio.move_on_at(ends), suppress(", "with suppress("),
    ("webhook.lookups", COURIER, "trio.CapacityLimiter(at_once)", "trio.CapacityLimiter(40)"),
)
