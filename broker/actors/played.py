"""What all sessions of a broker count together, and all trials, for its figures: plain numbers, and nothing that a
session hides."""

from collections import Counter


class Played:
    """Since the start, but for `open`. `open`: sessions that are open, those that the start has found among them."""

    def __init__(self, open: int) -> None:
        self.open = open
        self.opened = 0
        self.accepted = 0
        """Actions."""
        self.rejected: Counter[str] = Counter()
        """Attempts to act, by the refusal's code."""
        self.over: Counter[str] = Counter()
        """Sessions that ended, by why."""

    def began(self) -> None:
        """A session was opened."""
        self.open += 1
        self.opened += 1

    def ended(self, over: str) -> None:
        """A session is over."""
        self.open -= 1
        self.over[over] += 1


class Rehearsed(Played):
    """The same of trials, where `accepted` counts calls, and what they have computed."""

    def __init__(self, open: int) -> None:
        super().__init__(open)
        self.ticks = 0
        """Those that were run."""
        self.plans: Counter[str] = Counter()
        """Plans that were read: valid, or invalid."""
