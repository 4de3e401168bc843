-- What the server keeps that is no projection of runs. Nothing here can be built again.

CREATE TABLE keys (
  id         TEXT PRIMARY KEY,
  project    TEXT NOT NULL,
  scopes     TEXT NOT NULL,
  name       TEXT,
  secret     TEXT NOT NULL, -- its SHA-256
  created_us INTEGER NOT NULL,
  expires_us INTEGER,
  used_us    INTEGER,
  revoked_us INTEGER
) WITHOUT ROWID;

CREATE TABLE sessions (
  token      TEXT PRIMARY KEY, -- its SHA-256
  key        TEXT NOT NULL REFERENCES keys (id),
  created_us INTEGER NOT NULL,
  expires_us INTEGER NOT NULL
) WITHOUT ROWID;

CREATE INDEX sessions_by_end ON sessions (expires_us);

-- Without rowids: by one, REPLACE could take the place of a row whose key is another, and no trigger would see it.

CREATE TABLE cassettes (
  id          TEXT PRIMARY KEY,
  project     TEXT NOT NULL,
  name        TEXT,
  run         TEXT NOT NULL,
  external_id TEXT,
  run_name    TEXT,
  head_seq    INTEGER NOT NULL,
  head_hash   TEXT NOT NULL,
  runs        INTEGER NOT NULL,
  events      INTEGER NOT NULL,
  form        TEXT NOT NULL,
  bytes       INTEGER NOT NULL,
  digest      TEXT NOT NULL,
  parts       INTEGER NOT NULL,
  created_us  INTEGER NOT NULL,
  by          TEXT
) WITHOUT ROWID;

CREATE INDEX cassettes_of_project ON cassettes (project, id);

CREATE TABLE cassette_parts (
  cassette TEXT NOT NULL,
  number   INTEGER NOT NULL,
  content  BLOB NOT NULL,
  PRIMARY KEY (cassette, number)
) WITHOUT ROWID;

-- A cassette is complete when its row is there, which comes after its parts. From then on nothing of it changes,
-- whoever asks: REPLACE removes rows without any trigger for DELETE, so what would be replaced is refused before.

CREATE TRIGGER cassettes_are_whole BEFORE INSERT ON cassettes
WHEN NEW.parts <> (SELECT count(*) FROM cassette_parts WHERE cassette = NEW.id)
  OR NEW.bytes <> (SELECT coalesce(sum(length(content)), 0) FROM cassette_parts WHERE cassette = NEW.id)
BEGIN SELECT RAISE(ABORT, 'a cassette is kept whole or not at all'); END;

CREATE TRIGGER cassettes_are_not_replaced BEFORE INSERT ON cassettes
WHEN EXISTS (SELECT 1 FROM cassettes WHERE id = NEW.id)
BEGIN SELECT RAISE(ABORT, 'a cassette is immutable'); END;

CREATE TRIGGER cassettes_are_not_updated BEFORE UPDATE ON cassettes
BEGIN SELECT RAISE(ABORT, 'a cassette is immutable'); END;

CREATE TRIGGER cassettes_are_not_deleted BEFORE DELETE ON cassettes
BEGIN SELECT RAISE(ABORT, 'a cassette is immutable'); END;

CREATE TRIGGER cassette_parts_are_not_added BEFORE INSERT ON cassette_parts
WHEN EXISTS (SELECT 1 FROM cassettes WHERE id = NEW.cassette)
BEGIN SELECT RAISE(ABORT, 'a cassette is immutable'); END;

CREATE TRIGGER cassette_parts_are_not_updated BEFORE UPDATE ON cassette_parts
BEGIN SELECT RAISE(ABORT, 'a cassette is immutable'); END;

CREATE TRIGGER cassette_parts_are_not_deleted BEFORE DELETE ON cassette_parts
BEGIN SELECT RAISE(ABORT, 'a cassette is immutable'); END;

CREATE TABLE jobs (
  id          TEXT PRIMARY KEY,
  project     TEXT NOT NULL,
  kind        TEXT NOT NULL,
  args        TEXT NOT NULL,
  target_run  TEXT,
  status      TEXT NOT NULL,
  attempts    INTEGER NOT NULL,
  worker      TEXT,
  lease_us    INTEGER,
  created_us  INTEGER NOT NULL,
  started_us  INTEGER,
  finished_us INTEGER,
  done        INTEGER,
  total       INTEGER,
  result      TEXT,
  error       TEXT
) WITHOUT ROWID;

CREATE INDEX jobs_of_project ON jobs (project, id);
CREATE INDEX jobs_by_status ON jobs (project, status, id);
CREATE INDEX jobs_open ON jobs (id) WHERE status IN ('queued', 'running');

-- A run is made by one job. One that failed or was cancelled gives its id free.
CREATE UNIQUE INDEX jobs_by_target ON jobs (project, target_run)
WHERE target_run IS NOT NULL AND status IN ('queued', 'running', 'completed');
