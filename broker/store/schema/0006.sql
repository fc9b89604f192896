-- What documents are found by in a search (port.py, law 8): words of ours (broker/store/words.py), which the tokenizer
-- takes as they are, and the document's index rows, each as one word of the last column. The rowid is the document's.
CREATE VIRTUAL TABLE search USING fts5 (
    first, second, third, marks,
    tokenize = 'ascii', detail = column, columnsize = 0, prefix = '1 2 3'
);
ALTER TABLE document ADD COLUMN searched INTEGER NOT NULL DEFAULT 0;    -- 1: it has a row there
