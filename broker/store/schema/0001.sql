-- Wide rows lie in order of arrival in rowid tables, small index rows beside them. Names are kept once, as integers.

CREATE TABLE log (
    id      INTEGER PRIMARY KEY,
    name    TEXT NOT NULL UNIQUE,
    dropped INTEGER NOT NULL DEFAULT 0    -- 1: takes no row ever again
);

CREATE TABLE entry (
    id   INTEGER PRIMARY KEY AUTOINCREMENT,    -- never given twice: an event may outlive the row it refers to
    log  INTEGER NOT NULL REFERENCES log,
    n    INTEGER NOT NULL,
    at   INTEGER NOT NULL,    -- wall milliseconds
    data BLOB NOT NULL
);
CREATE UNIQUE INDEX entry_place ON entry (log, n);

CREATE TABLE stream (
    id      INTEGER PRIMARY KEY,
    name    TEXT NOT NULL UNIQUE,
    epoch   TEXT NOT NULL,
    removed INTEGER NOT NULL DEFAULT 0    -- the highest position that a sweep has removed
);

CREATE TABLE event (
    stream   INTEGER NOT NULL REFERENCES stream,
    position INTEGER NOT NULL,
    kind     TEXT NOT NULL,
    own      INTEGER NOT NULL,
    at       INTEGER NOT NULL,    -- wall milliseconds, for retention
    entry    INTEGER,             -- whose text it is, or NULL: data
    data     BLOB,
    PRIMARY KEY (stream, position)
) WITHOUT ROWID;
-- Few rows, by which a sweep finds the streams that are long without looking at the others.
CREATE INDEX event_long ON event (stream) WHERE position % 256 = 0;

CREATE TABLE document (
    id      INTEGER PRIMARY KEY,
    kind    TEXT NOT NULL,
    name    TEXT NOT NULL,
    version INTEGER NOT NULL,
    data    BLOB NOT NULL
);
CREATE UNIQUE INDEX document_name ON document (kind, name);

CREATE TABLE facet (    -- a kind's index names
    id   INTEGER PRIMARY KEY,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    UNIQUE (kind, name)
);

CREATE TABLE mark (    -- a document's index rows
    id       INTEGER PRIMARY KEY AUTOINCREMENT,    -- the order in which they came
    document INTEGER NOT NULL REFERENCES document,
    facet    INTEGER NOT NULL REFERENCES facet,
    value    NOT NULL    -- TEXT or INTEGER, kept as it is
);
CREATE INDEX mark_value ON mark (facet, value, id);
CREATE INDEX mark_document ON mark (document);

CREATE TABLE remembered (
    id      INTEGER PRIMARY KEY,
    scope   TEXT NOT NULL,
    name    TEXT NOT NULL,
    digest  BLOB NOT NULL,
    outcome BLOB NOT NULL,
    until   INTEGER NOT NULL    -- wall milliseconds
);
CREATE UNIQUE INDEX remembered_name ON remembered (scope, name);
CREATE INDEX remembered_until ON remembered (until);
