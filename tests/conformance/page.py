"""The page that tells what the judges said: docs/reference/conformance.md."""

from collections.abc import Iterable
from datetime import date
from typing import Final

from tests.conformance.judges import NODE
from tests.conformance.servers import ROOT
from tests.conformance.verdict import Verdict

PAGE: Final = ROOT / "docs" / "reference" / "conformance.md"

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

Signing in is judged on `turret serve` too: the suite's authorization scenarios against its own authorization server,
and both TypeScript clients with nothing but a face's URL; an owner signs up and consents on the pages, by a browser of
few wits. Tokens of an outside issuer are made by `oauth2-mock-server` and verified by its keys.

A2A is judged by its compatibility kit (TCK, over JSON-RPC) and by its official Python client: against an agent that
answers over MCP, which asks, works, rejects and completes as the kit's scenarios say. The kit can't sign in:
a proxy shows a token for it. Both are installed apart from the broker; the kit comes from its repository, or from where
`TURRET_A2A_TCK` says, and the run says so where it can't be had.

What breaks off is not replayed on a stream of its own (`server-sse-polling` finds JSON and judges nothing): every
event has a [cursor](wire.md#streams) that goes on on any door, and a request sent again gets the stored answer.
"""


WEBSOCKET = """\
## WebSocket

The Autobahn test suite plays the client against both ports (`make conformance-ws`; part of `make conformance` where a
`python2.7` is found, which the suite needs). Behind each port an echo stands in place of the dealers' session; codec,
reader, writer, limits and close are the ones that carry dealers, but that a message may have 16 MiB here. Compression
(cases 12 and 13) is not offered and not run.

The suite calls NON-STRICT what the standard leaves open: here text that is no UTF-8 is refused when its message is
whole and not in the middle of it, and of messages that come together with a violation the answers may be left out.
INFORMATIONAL cases are not scored.
"""
_HEADS = ("| judge | what was run | passed | checks | warnings |", "|---|---|---|---|---|")


def page(verdicts: Iterable[Verdict], day: date) -> str:
    """The whole page, but what `with_websocket` adds."""
    when = f"Last run on {day.isoformat()}, with {NODE.replace('@', ' ')}.\n"
    return "\n".join([INTRODUCTION, when, *_table(list(verdicts))]) + "\n"


def with_websocket(text: str, verdicts: Iterable[Verdict], day: date) -> str:
    """The page with what the WebSocket suite said at its end, in place of what stood there."""
    head = text.partition(f"\n{WEBSOCKET.splitlines()[0]}\n")[0]
    when = f"Last run on {day.isoformat()}.\n"
    return "\n".join([head.rstrip("\n") + "\n", WEBSOCKET, when, *_table(list(verdicts))]) + "\n"


def _table(verdicts: list[Verdict]) -> list[str]:
    lines = [*_HEADS]
    lines += [
        f"| {each.judge} | {each.what} | {_passed(each)} | {each.checks or ''} | {each.warnings} |"
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
    return lines


def _passed(verdict: Verdict) -> str:
    if verdict.skipped:
        return f"SKIPPED: {verdict.skipped}"
    return f"{verdict.passed} of {verdict.total} {verdict.unit}"
