"""The loop's budget and the order of answers; helper processes that are trusted too far, or get too much."""

VERIFIER = "broker/actors/verifier.py"
HELPERS = "broker/actors/helpers.py"
BATCHES = "broker/actors/batches.py"
HELPER = "broker/actors/helper.py"

MUTANTS = (
    ("keys.budget", VERIFIER, "self._work_through_line, bool(self._line))", "self._work_through_line, True)"),
    (
        "keys.budget",
        VERIFIER,
        "                self._left = self._per_tick\n",
        "                self._left = self._per_tick + 1\n",
    ),
    ("keys.budget", VERIFIER, "                self._left -= 1\n", "                pass\n"),
    ("keys.order", VERIFIER, "        if not waiting.first:\n            return\n", ""),
    ("keys.order", VERIFIER, "                waiting.first = False\n", "                pass\n"),
    ("keys.order", VERIFIER, "            if following.answer is None:\n                return\n", ""),
    (
        "keys.helpers-strict",
        HELPER,
        "records[sig:message].decode())",
        "records[sig:message].decode().lower())",
    ),
    (
        "keys.helpers-strict",
        BATCHES,
        "formed = len(each.pk) == PK and len(each.sig) == SIG",
        "formed = len(each.pk) + len(each.sig) == PK + SIG",
    ),
    ("keys.helpers-held", BATCHES, "if number != due or count", "if count"),
    ("keys.helpers-held", BATCHES, "if verdicts.translate(None, VERDICTS):", "if False:"),
    ("keys.helpers-held", BATCHES, " or (self.ready and not batch)", ""),
    ("keys.helpers-held", BATCHES, "            if len(received) < end:\n                return True\n", ""),
    ("keys.helpers-replaced", HELPERS, "self._returned(helper.give_back())", "helper.give_back()"),
    (
        "keys.helpers-replaced",
        BATCHES,
        "        if not self._batches:\n            self._patience.deadline = trio.current_time() + PATIENCE_S\n",
        "",
    ),
    ("keys.helpers-replaced", HELPERS, "            pause = min(pause * 2, PAUSE_MAX_S)\n", ""),
    ("keys.helpers-apart", HELPERS, "env={**kept,", "env={**os.environ,"),
    ("keys.helpers-apart", HELPERS, "start_new_session=True", "start_new_session=False"),
    ("keys.helpers-apart", HELPER, "        signal.signal(each, signal.SIG_IGN)\n", "        pass\n"),
)
