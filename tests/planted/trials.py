"""Sessions of trials, and their operations."""

ACCOUNT = "broker/core/trials/account.py"
ACTOR = "broker/actors/trial.py"
CHECK = "broker/actors/check_trials.py"
CORE = "broker/core/trials/session.py"
RUN = "broker/core/trials/run.py"
GRADE = "broker/core/trials/grade.py"
MILL = "broker/actors/mill.py"
SCRIPT = "broker/core/trials/script.py"
SESSION = "broker/actors/session.py"
SLICES = "broker/core/trials/slices.py"
TOOLS = "broker/tools/trials.py"
TRAINEE = "broker/actors/trainee.py"
VIEWS = "broker/core/trials/views.py"

MUTANTS = (
    ("trial.session-log", CORE, "kept.calls[-1] = Advance(kept.operation.ran)", "pass"),
    ("trial.session-versions", CORE, "if expected != row.version:", "if expected > row.version:"),
    (
        "trial.session-exclusive",
        CORE,
        "    if running(row) and not (ending and expected == row.version):\n        assert row",
        "    if False:\n        assert row",
    ),
    ("trial.session-stopped", CORE, "not (ending and expected == row.version)", "True"),
    ("trial.session-doors", TOOLS, 'name="kestrel.session.resume"', 'name="kestrel.session_resume"'),
    ("trial.event", ACTOR, "(self._told(after, now),) if last else ()", "()"),
    ("trial.event", ACTOR, "row.operation if running(row) else None", "None"),
    ("trial.figures", ACTOR, "self._rehearsed.ticks += ran", "pass"),
    ("trial.figures", MILL, "self.turns += 1", "pass"),
    ("trial.session-bounded", CORE, "if row.version >= MAX_CALLS:", "if False:"),
    ("trial.session-bounded", CORE, "if row.size + size > MAX_CALL_BYTES:", "if row.size > MAX_CALL_BYTES:"),
    ("trial.session-slices", CORE, "return [(tick, curve[tick - first])", "return [(tick, curve[0])"),
    ("trial.session-slices", SLICES, "most - len(fills))", "most)"),
    (
        "trial.session-resumed",
        VIEWS,
        "over=row.place.over,\n        ended",
        "over=None,\n        ended",
    ),
    ("trial.session-resumed", VIEWS, "position=account.position,", "position=0,"),
    ("trial.session-resumed", ACTOR, "first = operation.fills_from\n", "first = 0\n"),
    ("trial.session-resumed", TOOLS, "form.at, form.tif)", "form.at)"),
    ("trial.session-resumed", TOOLS, "form.size, form.at, form", "form.size, None, form"),
    ("trial.session-seen", VIEWS, "range(max(0, place.tick - RECENT), place.tick)", "range(place.tick + 1)"),
    ("trial.session-seen", VIEWS, "size=None if now is None else now.size,", "size=tape.bids[place.tick],"),
    ("trial.session-once", ACTOR, "trial, self._trial = self._trial, None", "trial = self._trial"),
    ("trial.session-killed", ACTOR, "del self._curve[:]", "pass"),
    ("trial.session-operation", ACTOR, "ran=operation.ran + ran, fills=filled", "ran=ran, fills=filled"),
    ("trial.bounds", RUN, "account.working = []\n                self._held.clear()", "account.working = []"),
    ("trial.bounds", RUN, "close(account)\n                self._held.clear()", "close(account)"),
    ("trial.bounds", RUN, "self._held[side] = held + account.working[-1].left", "pass"),
    ("trial.bounds", RUN, "        self._held.clear()\n        fills", "        fills"),
    ("trial.session-idle", SESSION, "return await self.close(row)", "return None"),
    ("trial.session-rejected", SESSION, "if self._rejected >= REJECTED_KEPT:", "if False:"),
    ("trial.session-limits", TRAINEE, "if row.day != today:", "if False:"),
    ("trial.session-fair", MILL, "del self._lines[name]\n        one =", "one ="),
    ("trial.session-fair", MILL, "self._free_at = trio.current_time() + REST_S", "pass"),
    ("trial.bounds", SCRIPT, "fit(self.place.account, bounds_of(plan))", "pass"),
    ("trial.bounds", SCRIPT, "return said if held > most else None", "return None"),
    ("trial.bounds", ACCOUNT, "        room[order.side] -= left", "        pass"),
    ("trial.bounds", RUN, "max(0, self._bounds.orders - account.sent)", "self._bounds.orders - account.sent"),
    ("trial.session-money", ACCOUNT, "return MAX_PNL if made > 0 else -MAX_PNL", "return made"),
    ("trial.session-money", ACCOUNT, "= MAX_SAFE // 2", "= MAX_SAFE"),
    ("trial.session-money", ACCOUNT, "if about.fee > 0 else UNBOUNDED", "if False else UNBOUNDED"),
    ("trial.session-money", ACCOUNT, "min(price, MAX_SAFE)", "price"),
    ("trial.session-money", RUN, "elif made >= MAX_PNL:", "elif False:"),
    (
        "trial.session-money",
        GRADE,
        "min(MAX_SAFE, sum(fill.size for fill in fills))",
        "sum(fill.size for fill in fills)",
    ),
    ("trial.session-money", GRADE, "size = min(MAX_SAFE, isqrt(", "size = max(0, isqrt("),
    ("trial.session-fair", MILL, "if event.is_set():", "if False:"),
    ("trial.session-fair", MILL, 'if answer.code == "overloaded":', "if False:"),
    ("trial.session-killed", MILL, "if len(found) == limit:", "if False:"),
    ("trial.session-killed", MILL, "        await self._find()\n", ""),
    ("trial.session-waits", TOOLS, "if waited.cancelled_caught:", "if False:"),
    ("trial.session-own", TOOLS, 'return NO_OPERATION if row.code == "NOT_FOUND" else row', "return row"),
    (
        "trial.session-tape",
        CORE,
        'if not there or running(row):\n        return ["finalize"]',
        'if running(row):\n        return ["finalize"]',
    ),
    ("trial.session-check", CHECK, "if ran.fills != kept.fills:", "if False:"),
    ("trial.session-check", CHECK, "place=ran.trial.place, pnl", "pnl"),
)
