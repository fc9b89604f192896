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

    @property
    def good(self) -> bool:
        """Nothing that is scored failed, and nothing warned."""
        return not self.faults and self.passed == self.total > 0
