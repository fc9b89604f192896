"""What a judge said, in a form that they all share."""

import msgspec


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """One run of one judge. Any entry in `faults` fails the whole."""

    judge: str
    what: str
    passed: int
    total: int
    unit: str = "scenarios"
    checks: int = 0
    warnings: int = 0
    remarks: tuple[str, ...] = ()
    """What was run and is not scored, and what could not be tried."""
    faults: tuple[str, ...] = ()
    skipped: str = ""
    """Why the judge did not run at all."""

    @property
    def good(self) -> bool:
        """Nothing that is scored failed, and nothing warned; or the judge can't be run here."""
        return not self.faults and (self.passed == self.total > 0 or self.skipped != "")

    def tell(self) -> None:
        """Print it, faults and all."""
        mark = "SKIPPED" if self.skipped else "ok  " if self.good else "FAIL"
        figures = self.skipped or f"{self.passed}/{self.total}"
        print(f"{mark} {figures} {self.judge}: {self.what}", flush=True)
        for fault in self.faults:
            print(f"     {fault}", flush=True)
