-- Every text in order of arrival, in one table without an index; beside it runs: which texts are a log's rows or a
-- stream's events, up to 64 in one row. A row beyond meta's `indexed` may not be in its runs yet: it says itself where
-- it belongs.

CREATE TABLE text (
    id   INTEGER PRIMARY KEY,    -- rising, never given twice; above `indexed` none is removed
    log  INTEGER REFERENCES log, -- NULL: the text of one event alone
    n    INTEGER,
    at   INTEGER NOT NULL,       -- wall milliseconds
    told BLOB NOT NULL,          -- JSON [[stream, position, kind, own], …]: the events that it is the text of
    data BLOB NOT NULL
);

CREATE TABLE log_run (
    log   INTEGER NOT NULL REFERENCES log,
    last  INTEGER NOT NULL,      -- n of its last row
    texts TEXT NOT NULL,         -- JSON [id, …], one for each n up to `last`
    PRIMARY KEY (log, last)
) WITHOUT ROWID;

CREATE TABLE stream_run (
    stream INTEGER NOT NULL REFERENCES stream,
    last   INTEGER NOT NULL,     -- the position of its last event
    events TEXT NOT NULL,        -- JSON [[text, kind, own], …], one for each position up to `last`
    PRIMARY KEY (stream, last)
) WITHOUT ROWID;
-- Few rows, by which a sweep finds the streams that are long without looking at the others.
CREATE INDEX stream_long ON stream_run (stream) WHERE last >= 256 AND last % 256 < 64;

INSERT INTO meta (name, value) SELECT 'indexed', max(
    coalesce((SELECT max(id) FROM entry), 0), coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'entry'), 0)
);
UPDATE event SET entry = own.id
    FROM (
        SELECT stream, position,
               (SELECT value FROM meta WHERE name = 'indexed') + row_number() OVER (ORDER BY stream, position) AS id
        FROM event WHERE data IS NOT NULL
    ) AS own
    WHERE event.stream = own.stream AND event.position = own.position;
UPDATE meta SET value = value + (SELECT count(*) FROM event WHERE data IS NOT NULL) WHERE name = 'indexed';

INSERT INTO text (id, log, n, at, told, data) SELECT id, log, n, at, '[]', data FROM entry ORDER BY id;
INSERT INTO text (id, log, n, at, told, data)
    SELECT entry, NULL, NULL, at, '[]', data FROM event WHERE data IS NOT NULL ORDER BY entry;
INSERT INTO log_run (log, last, texts)
    SELECT log, max(n), json_group_array(id) FROM (SELECT log, n, id FROM entry ORDER BY log, n) GROUP BY log, n / 64;
INSERT INTO stream_run (stream, last, events)
    SELECT stream, max(position),
           json_group_array(json_array(coalesce(entry, 0), kind, json(iif(own, 'true', 'false'))))
    FROM (SELECT * FROM event ORDER BY stream, position) GROUP BY stream, position / 64;
UPDATE stream SET removed = max(
    removed, coalesce((SELECT min(position) - 1 FROM event WHERE event.stream = stream.id), 0)
);
DROP TABLE event;
DROP TABLE entry;
