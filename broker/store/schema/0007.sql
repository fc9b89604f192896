-- Index rows that lists go by and that documents of older stores have not: of desks, of calls in progress, of reports.
-- Until its next write such a document would be in no list. And agents that went before they left their channels by
-- that: they leave at the next start (broker/actors/leaving.py).

INSERT OR IGNORE INTO document (kind, name, version, data)
    SELECT DISTINCT 'leaving', substr(name, instr(name, ':') + 1), 1, CAST('{"due":0}' AS BLOB)
    FROM document AS member
    WHERE kind = 'member' AND NOT EXISTS (
        SELECT 1 FROM document WHERE kind = 'agent' AND name = substr(member.name, instr(member.name, ':') + 1)
    );
CREATE TEMP TABLE found_by AS
    SELECT id AS document, kind, 'all' AS name, '1' AS value FROM document WHERE kind IN ('desk', 'report')
    UNION ALL
    SELECT id, kind, 'due', 0 FROM document WHERE kind = 'leaving'
    UNION ALL
    SELECT DISTINCT mark.document, 'conv', 'live', '1'
        FROM facet JOIN mark ON mark.facet = facet.id WHERE facet.kind = 'conv' AND facet.name IN ('open', 'ringing')
    UNION ALL
    SELECT mark.document, 'report', 'open-of', substr(mark.value, instr(mark.value, '>') + 1)
        FROM facet JOIN mark ON mark.facet = facet.id WHERE facet.kind = 'report' AND facet.name = 'open-pair';
INSERT OR IGNORE INTO facet (kind, name) SELECT DISTINCT kind, name FROM found_by;
INSERT INTO mark (document, facet, value)
    SELECT found_by.document, facet.id, found_by.value
    FROM found_by JOIN facet ON facet.kind = found_by.kind AND facet.name = found_by.name
    WHERE NOT EXISTS (SELECT 1 FROM mark WHERE mark.document = found_by.document AND mark.facet = facet.id)
    ORDER BY found_by.document;
DROP TABLE found_by;
