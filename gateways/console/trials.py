"""A finished trial, by the ref of its artifact: what it made, drawn and graded.

An operator sees no more of it than whoever has the ref does, at /artifact/<ref>/report of the public port.
"""

import re
from typing import Final

from broker.wire.refusals import Refusal
from gateways.console.site import Console, Shown, Visit, away
from gateways.pages.shell import Moved, Page
from gateways.pages.trialreport import body

_REF: Final = re.compile(r"(?:kestrel://artifact/)?([0-9a-f]{64})")
FORM: Final = "A ref has 64 characters of 0 to 9 and a to f, alone or behind kestrel://artifact/."


def register(console: Console) -> None:
    """Add the pages."""

    async def ask(visit: Visit) -> Shown:
        given = visit.query.one("ref").strip()
        if (found := _REF.fullmatch(given)) is not None:
            return Moved(f"/trials/{found[1]}")
        errors = {"ref": FORM} if given else {}
        return Page("trials.html", {"ref": given, "errors": errors}, 400 if errors else 200)

    async def show(visit: Visit) -> Shown:
        ref = visit.query.one("ref")
        assert visit.session is not None  # the page is for who is signed in
        report = await console.broker.report(visit.session.operator, ref)
        if isinstance(report, Refusal):
            return away(report, "/trials")
        return Page("trial.html", {"ref": ref, "body": body(report)})

    console.get("/trials", ask)
    console.get("/trials/<ref>", show)
