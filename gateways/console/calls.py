"""What is on the wire: desks, calls in progress, and one conversation with each step of its verification."""

import json
import re
from typing import Any, Final

import msgspec
import trio
from quart import Response

from broker.wire.chain import Verdict, verify_transcript
from broker.wire.refusals import Refusal
from gateways.console.site import Console, Shown, Visit, away
from gateways.pages.shell import Moved, Page

MOST: Final = 5000
"""Envelopes that one page verifies; a longer conversation is verified from its export."""
SHOWN: Final = 100
"""Envelopes on a page."""
_CONV: Final = re.compile(r"[0-9a-f]{16}")
DONE: Final = {"suspended": "The desk is suspended.", "released": "The desk is released."}


def register(console: Console) -> None:
    """Add the pages."""
    _add_desks(console)
    _add_calls(console)
    _add_conversation(console)


def _add_desks(console: Console) -> None:
    async def show(visit: Visit) -> Shown:
        only, begins = visit.query.one("only"), visit.query.one("begins").strip().upper()
        answer = await console.ask(
            visit.session,
            "list_desks",
            prefix=begins or None,
            online_only=only == "online" or None,
            suspended=only == "suspended" or None,
            after=visit.query.one("after") or None,
        )
        if isinstance(answer, Refusal):
            return away(answer, "/desks")
        values = {"desks": answer["desks"], "next": answer.get("next", ""), "only": only, "begins": begins}
        return Page("desks.html", {**values, "done": DONE.get(visit.query.one("done"), "")})

    async def change(visit: Visit) -> Shown:
        suspend = visit.form.one("do") == "suspend"
        answer = await console.ask(
            visit.session, "suspend_desk" if suspend else "release_desk", code=visit.form.one("code")
        )
        done = "suspended" if suspend else "released"
        return away(answer, "/desks") if isinstance(answer, Refusal) else Moved(f"/desks?done={done}")

    console.get("/desks", show)
    console.post("/desks", change)


def _add_calls(console: Console) -> None:
    async def show(visit: Visit) -> Shown:
        answer = await console.ask(visit.session, "list_calls", after=visit.query.one("after") or None)
        if isinstance(answer, Refusal):
            return away(answer)
        return Page("calls.html", {"calls": answer["calls"], "next": answer.get("next", "")})

    async def end(visit: Visit) -> Shown:
        conv = visit.form.one("conv")
        answer = await console.ask(visit.session, "end_call", conv=conv, note=visit.form.one("note").strip())
        if isinstance(answer, Refusal):
            return away(answer, "/calls")
        return Moved(f"/conversations/{conv}")

    console.get("/calls", show)
    console.post("/calls/end", end)


def _add_conversation(console: Console) -> None:
    async def ask(visit: Visit) -> Shown:
        conv = visit.query.one("conv").strip()
        if _CONV.fullmatch(conv):
            return Moved(f"/conversations/{conv}")
        errors = {"conv": "A conversation’s id has 16 characters of 0 to 9 and a to f."} if conv else {}
        return Page("conversations.html", {"conv": conv, "errors": errors}, 400 if errors else 200)

    async def show(visit: Visit) -> Shown:
        found = await read(console, visit, visit.query.one("conv"))
        if isinstance(found, Refusal):
            return away(found, "/conversations")
        head, lines = found
        wires = [each["pk"] for each in console.broker.wire_info()["wire_keys"]]
        verdict = await trio.to_thread.run_sync(verify_transcript, lines, wires)
        start = visit.query.one("from")
        first = int(start) if start.isascii() and start.isdigit() and len(start) < 6 else 0
        return Page("conversation.html", values_of(head, lines, verdict, first, len(lines) >= MOST))

    async def export(visit: Visit) -> Shown:
        found = await read(console, visit, visit.query.one("conv"))
        if isinstance(found, Refusal):
            return away(found, "/conversations")
        response = Response(b"".join(line + b"\n" for line in found[1]), 200)
        name = f'attachment; filename="{visit.query.one("conv")}.jsonl"'
        response.headers.update(
            {"content-type": "application/jsonl", "content-disposition": name, "cache-control": "no-store"}
        )
        return response

    console.get("/conversations", ask)
    console.get("/conversations/<conv>", show)
    console.get("/conversations/<conv>/export", export)


async def read(console: Console, visit: Visit, conv: str) -> tuple[dict[str, Any], list[bytes]] | Refusal:
    """What read_conv says of a conversation, and its lines as they are exported, MOST of them at most."""
    lines: list[bytes] = []
    after = -1
    while True:
        page = await console.ask(visit.session, "read_conv", conv=conv, after=after, limit=500)
        if isinstance(page, Refusal):
            return page
        for row in page["rows"]:
            names = ("n", "sig", "envelope", "chain", "accepted_at")
            lines.append(msgspec.json.encode({name: row[name] for name in names}))
        if page.get("next") is None or len(lines) >= MOST:
            return page, lines
        after = page["next"]


def values_of(
    head: dict[str, Any], lines: list[bytes], verdict: Verdict, first: int, cut: bool
) -> dict[str, Any]:
    """What the page says: the verdict, and the envelopes from `first` on with what became of each."""
    codes = {party["pk"]: party["code"] for party in head["parties"].values()}
    rows = []
    for index in range(first, min(first + SHOWN, len(lines))):
        row = msgspec.json.decode(lines[index])
        said = row["envelope"]
        body = json.dumps(said["body"], indent=2, ensure_ascii=False, sort_keys=True) if said["body"] else ""
        state = "holds" if index < verdict.rows else "broken" if index == verdict.rows else "unread"
        rows.append({**row, "by": codes.get(said["from"], "the wire"), "body": body, "state": state})
    return {
        "head": head,
        "verdict": verdict,
        "rows": rows,
        "before": max(first - SHOWN, 0) if first else None,
        "next": first + SHOWN if first + SHOWN < len(lines) else None,
        "cut": cut,
        "warnings": {each.n: each.message for each in verdict.warnings},
    }
