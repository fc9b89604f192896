-- A sum over what a row says (broker/store/sums.py), so that a bit that the disk has turned over is found when the row
-- is read. NULL: the row is older than this.
ALTER TABLE text ADD COLUMN sum INTEGER;        -- over told and data
ALTER TABLE document ADD COLUMN sum INTEGER;    -- over data
-- Whether texts may be missing: those of dropped logs are.
CREATE INDEX log_dropped ON log (id) WHERE dropped = 1;
