"""The loop guard."""

LOOPS = "broker/core/loops.py"
RECEIPTS = "broker/actors/receipts.py"

MUTANTS = (
    ("loop.hops", LOOPS, "its.hops + hops, answered.sender)", "its.hops, answered.sender)"),
    ("loop.hops", LOOPS, "HOUR_MS: Final = 3_600_000", "HOUR_MS: Final = 7_200_000"),
    ("loop.at-once", LOOPS, "AT_ONCE_S: Final = 2.0", "AT_ONCE_S: Final = 2.5"),
    (
        "loop.at-once",
        LOOPS,
        "return to in (receipt.sender, receipt.trace.via)",
        "return to == receipt.sender",
    ),
    (
        "loop.at-once",
        RECEIPTS,
        "        kept.append(Receipt(sender, now.mono, trace))",
        "        pass",
    ),
    ("loop.stopped", RECEIPTS, "now.mono - stop.at <= SOON_S", "False"),
    ("loop.stopped", RECEIPTS, "        chain.passed(place or by, (sender, *agents))", "        pass"),
    ("loop.stopped", LOOPS, "trace.hops + 1 >= limit or ", "trace.hops + 1 > limit or "),
    ("loop.stopped", LOOPS, "2 if _was_one_before(answered, to, now) else 1", "1"),
    ("loop.stopped", LOOPS, "self._counts.get(place, 0) + 1 >= limit", "False"),
    ("loop.stopped", LOOPS, "or self._total + 1 >= most", ""),
    ("loop.relay", LOOPS, "if each.trace.hops == 0 and sender not in each.answered:", "if False:"),
    ("loop.relay", LOOPS, "answered.answered |= {sender}", "pass"),
    ("loop.told", LOOPS, "        self._told.add(place)", "        pass"),
)
