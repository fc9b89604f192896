"""The page that tells what the judges said: docs/reference/conformance.md."""

from collections.abc import Iterable
from datetime import date

from tests.conformance.judges import NODE
from tests.conformance.verdict import Verdict

INTRODUCTION = """\
# Conformance

<!-- Printed by `make conformance`. Run it again, don't change this page. -->

What the official judges of the Model Context Protocol say of this broker. `make conformance` fetches them into a
folder of the user's cache (or where `TURRET_JUDGES` says), starts brokers on ports of their own, lets each judge run
whole, and fails when anything that is scored fails or warns.

The conformance suites talk to `turret serve` with a module of fixtures mounted beside the broker's own tools (the
suites call tools and prompts by names that no product has); dispatcher, doors and process are the ones that are
served. The Inspector and the clients talk to `turret serve` as it is. Each deal opens two desks, dials, picks up,
trades and hangs up over tools/call, is told of a change by subscription, has the client's user asked for a missing
argument, and reads the transcript back.

What breaks off is not replayed on a stream of its own (`server-sse-polling` finds JSON and judges nothing): every
event has a [cursor](wire.md#streams) that goes on on any door, and a request sent again gets the stored answer.
"""


def page(verdicts: Iterable[Verdict], day: date) -> str:
    """The whole page."""
    verdicts = list(verdicts)
    lines = [
        INTRODUCTION,
        f"Last run on {day.isoformat()}, with {NODE.replace('@', ' ')}.\n",
        "| judge | what was run | passed | checks | warnings |",
        "|---|---|---|---|---|",
    ]
    lines += [
        f"| {each.judge} | {each.what} | {each.passed} of {each.total} {each.unit} "
        f"| {each.checks or ''} | {each.warnings} |"
        for each in verdicts
    ]
    remarks = [(each, remark) for each in verdicts for remark in each.remarks]
    if remarks:
        lines += ["", "Beside these:\n"]
        lines += [f"- {each.judge}, {each.what}: {remark}." for each, remark in remarks]
    faults = [(each, fault) for each in verdicts for fault in each.faults]
    if faults:
        lines += ["", "Not passed:\n"]
        lines += [f"- {each.judge}, {each.what}: {fault.splitlines()[0]}" for each, fault in faults]
    return "\n".join(lines) + "\n"
