"""The catalog of tapes (docs/reference/trial.md, Catalog)."""

REQUIREMENTS = {
    "catalog.whole": "parts are the tape of their ref, or none; what no import lets pass is named",
    "catalog.entry": "the catalog has the tapes that are made by rule and those that were imported, by index and ref, "
    "and shows no tick",
    "catalog.import": "an imported tape is seen when all of it is there, and not before; what is none is refused",
    "catalog.broken-import": "a broken import goes on where it was; what nobody goes on with, and what is no tape, "
    "does not stay",
    "catalog.remove": "a removed tape is gone, and comes back under its own index",
    "catalog.bound": "so many tapes are kept, and so many ticks in memory, and no more",
    "catalog.verified": "a tape that is not what its ref says is unavailable",
    "catalog.scope": "the catalog is for a token with the scope trial, and tapes are brought by operators alone",
    "catalog.audited": "the audit is told who imported and removed which tape, and none of its quotes",
    "catalog.resources": "kestrel://catalog, kestrel://catalog/<index> and kestrel://catalog-pricing are read over MCP",
    "catalog.command": "turret tape makes, checks, imports, lists and removes; the first wrong line of a file is "
    "named, and nothing is sent",
    "catalog.check": "turret check knows tapes: their parts, hashes, documents and indices",
    "catalog.killed": "whatever kills the broker in an import, all of the tape is there or nothing of it is seen",
}
