-- A sum over a remembered answer too: it is given again as it stands.
ALTER TABLE remembered ADD COLUMN sum INTEGER;    -- over digest and outcome. NULL: the row is older than this.
