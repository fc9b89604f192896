"""Search, and the Resource Library."""

WORDS = "broker/store/words.py"
SEARCH = "broker/store/sqlite_search.py"
STAGE = "broker/store/sqlite_stage.py"
CORE = "broker/core/resource.py"
ACTOR = "broker/actors/library.py"
FORMS = "broker/tools/resource_forms.py"
TOOLS = "broker/tools/resources.py"

MUTANTS = (
    ("store.search-words", WORDS, "by_itself = category ==", "by_itself = False and category =="),
    ("store.search-words", WORDS, "found[-1:]", "found[:0]"),
    ("store.search", SEARCH, "rank + 1) * RANK - max(past, rank * RANK)", "rank + 1) * RANK"),
    ("store.search", SEARCH, "NOT {less}", "NOT {more}"),
    ("store.search-marks", SEARCH, "*(_mark(kind, name, value) for name, value in marks)", ""),
    ("store.search-damaged", SEARCH, "total not in (None, sum_of(data))", "False"),
    ("store.search", STAGE, "            (DELETE, lost),\n", ""),
    ("resource.edit", CORE, "version=row.version + 1,", "version=row.version,"),
    ("resource.limits", CORE, "library.count > quota.resources", "library.count > quota.resources + 1"),
    ("resource.limits", CORE, "row.size > before and library.bytes", "library.bytes"),
    ("resource.access", CORE, '(row.access == "agreement" and agreed)', '(row.access == "agreement")'),
    ("resource.private", CORE, '() if row.access == "private" else (("open", "1"),)', '(("open", "1"),)'),
    ("resource.whole", ACTOR, "        row = now\n    raise", "    raise"),
    ("resource.damaged", ACTOR, "core.sum_of(document.doc) == row.sha256", "True"),
    ("resource.removed", ACTOR, "if len(gone) == CHUNK else None", "if False else None"),
    (
        "resource.private",
        FORMS,
        'if row.access == "private" and row.publisher',
        'if row.access == "x" and row.publisher',
    ),
    ("resource.search-pages", TOOLS, "place = document.order\n", "place = document.order - 1\n"),
    ("resource.access", TOOLS, "if latest.version != row.version and not", "if False and not"),
)
