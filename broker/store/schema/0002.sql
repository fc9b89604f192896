-- A stream's epoch comes from a secret of the store and from its name: a stream that nobody wrote to has no row.

CREATE TABLE meta (
    name  TEXT PRIMARY KEY,
    value BLOB NOT NULL
) WITHOUT ROWID;
INSERT INTO meta (name, value) VALUES ('secret', new_secret());

CREATE TABLE stream_with_rows (
    id      INTEGER PRIMARY KEY,
    name    TEXT NOT NULL UNIQUE,
    removed INTEGER NOT NULL DEFAULT 0    -- the highest position that a sweep has removed
);
INSERT INTO stream_with_rows (id, name, removed)
    SELECT id, name, removed FROM stream
    WHERE removed > 0 OR EXISTS (SELECT 1 FROM event WHERE event.stream = stream.id);
DROP TABLE stream;
ALTER TABLE stream_with_rows RENAME TO stream;
