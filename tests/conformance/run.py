"""`make conformance`: every official judge against this broker; writes docs/reference/conformance.md.

Exits 1 when anything that is scored failed or warned, 2 when the judges can't be had.
"""

import sys
from collections.abc import Iterator
from datetime import date
from pathlib import Path

from tests.conformance import a2a_judges, clients, signin, suites, websocket
from tests.conformance.judges import Judges, Missing
from tests.conformance.page import PAGE, page
from tests.conformance.servers import serving
from tests.conformance.verdict import Verdict


def judged(judges: Judges) -> Iterator[Verdict]:
    """All judges, one after the other, each as it is done."""
    with serving("tests.conformance.server") as fixtures:
        url = f"{fixtures['http']}/mcp"
        yield suites.requirements(judges, url, "2026-07-28")
        yield suites.requirements(judges, url, "2025-11-25")
        yield suites.earlier(judges, url, "2025-06-18")
        yield suites.earlier(judges, url, "2025-03-26")
        yield suites.everything(judges, url)
    with serving("gateways.cli") as broker:
        yield clients.inspector(judges, broker["http"])
        yield from clients.typescript(judges, broker["http"], broker["pk"])
        yield clients.python(broker["http"], broker["pk"])
    yield from signin.verdicts(judges)
    yield from a2a_judges.verdicts()


def main(target: Path = PAGE) -> int:
    """Run them, tell of each, write the page."""
    try:
        judges = Judges.installed()
    except Missing as error:
        print(f"turret: {error}", file=sys.stderr)
        return 2
    verdicts = []
    for verdict in judged(judges):
        verdicts.append(verdict)
        verdict.tell()
    target.write_text(page(verdicts, date.today()))
    return max(int(not all(verdict.good for verdict in verdicts)), websocket.main(target))


if __name__ == "__main__":
    sys.exit(main())
