"""The embedded store: what waits in memory, what a crash leaves, what is in doubt, the write-ahead log."""

TAIL = "broker/store/sqlite_tail.py"
STAGE = "broker/store/sqlite_stage.py"
READER = "broker/store/sqlite_reader.py"
WRITER = "broker/store/sqlite_writer.py"
SWEEP = "broker/store/sqlite_sweep.py"
STORE = "broker/store/sqlite.py"

MUTANTS = (
    ("store.tail", READER, "while items and items[-1] > committed:", "while False:"),
    ("store.tail", READER, "while items and items[-1][0] > committed:", "while False:"),
    (
        "store.tail",
        READER,
        "found.items += run.items[found.last + 1 - run.first :]",
        "found.items += run.items",
    ),
    ("store.tail", READER, "            before = min(before, waiting.first)\n", ""),
    ("store.tail", TAIL, "if written is None or number > written", "if True"),
    (
        "store.tail",
        TAIL,
        "        if not self._pending:\n            self._indexed = self._target\n",
        "        if self._flushed:\n            self._indexed = self._target\n",
    ),
    ("store.numbers", STAGE, "if (all_indexed or rows.dropped) and", "if all_indexed and"),
    ("store.numbers", STAGE, "if (all_indexed or rows.dropped) and", "if rows.dropped and"),
    ("store.numbers", TAIL, "self.newest = max(self.newest, self._indexed)", "self.newest = 0"),
    ("store.numbers", TAIL, "self.newest = max(self.newest, self._indexed)", "self.newest = self._indexed"),
    ("store.bounded", TAIL, "(came or 0) * 3 // 2", "(came or 0) // 3"),
    (
        "store.durable",
        STAGE,
        "rows.texts += (text, log.id, append.n, at, places, sum_of(places, data), data)",
        'rows.texts += (text, log.id, append.n, at, b"[]", sum_of(b"[]", data), data)',
    ),
    ("store.in-doubt", WRITER, '("SQLITE_FULL", "SQLITE_BUSY", "SQLITE_READONLY")', '("SQLITE_",)'),
    ("store.sweep", SWEEP, "        if position > upto:\n            break\n", ""),
    ("store.checkpoint", STORE, "        self._checkpointer.busy = False\n", ""),
    (
        "store.checkpoint",
        STORE,
        "        if not self._pumping and not self._closed:\n",
        "        if False:\n",
    ),
)
