"""What all sessions of a broker count together, for its figures: plain numbers, and nothing that a session hides."""

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
