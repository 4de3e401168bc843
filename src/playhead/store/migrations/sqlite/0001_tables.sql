-- The tables of the index. docs/reference/index-tables.md explains every column; a test compares the two.

CREATE TABLE runs (
  id               TEXT PRIMARY KEY,
  name             TEXT,
  status           TEXT NOT NULL,
  started          TEXT,
  finished         TEXT,
  started_us       INTEGER,
  duration_us      INTEGER,
  events           INTEGER NOT NULL,
  model_calls      INTEGER NOT NULL,
  tool_calls       INTEGER NOT NULL,
  steps            INTEGER NOT NULL,
  artifacts        INTEGER NOT NULL,
  tokens_in        INTEGER NOT NULL,
  tokens_out       INTEGER NOT NULL,
  tokens_cached    INTEGER NOT NULL,
  tokens_reasoning INTEGER NOT NULL,
  cost             REAL,
  error            TEXT,
  origin           TEXT,
  replayable       INTEGER NOT NULL,
  reasons          TEXT NOT NULL,
  envelope_hash    TEXT,
  agent            TEXT,
  agent_version    TEXT,
  git_commit       TEXT,
  git_branch       TEXT,
  git_dirty        INTEGER,
  git_root         TEXT,
  git_remote       TEXT,
  ci_provider      TEXT,
  ci_run_id        TEXT,
  external_id      TEXT,
  tags             TEXT NOT NULL,
  gaps             INTEGER NOT NULL,
  lost             INTEGER NOT NULL,
  bad_lines        INTEGER NOT NULL,
  head_seq         INTEGER,
  head_hash        TEXT,
  bytes            INTEGER NOT NULL
) WITHOUT ROWID;

-- Each ends in the id, which sorts by time: the newest match is one step from the end of its range.
CREATE INDEX runs_by_envelope ON runs (envelope_hash, replayable, id);
CREATE INDEX runs_by_name ON runs (name, id);
CREATE INDEX runs_original ON runs (id) WHERE origin IS NULL;
CREATE INDEX runs_original_by_name ON runs (name, id) WHERE origin IS NULL;
CREATE INDEX runs_by_status ON runs (status, id);
CREATE INDEX runs_by_external_id ON runs (external_id, id) WHERE external_id IS NOT NULL;

CREATE TABLE events (
  run        TEXT NOT NULL,
  seq        INTEGER NOT NULL,
  time       TEXT NOT NULL,
  elapsed_us INTEGER NOT NULL,
  kind       TEXT NOT NULL,
  span       TEXT,
  parent     TEXT,
  lane       TEXT,
  key        TEXT,
  offset     INTEGER NOT NULL,
  length     INTEGER NOT NULL,
  PRIMARY KEY (run, seq)
) WITHOUT ROWID;

CREATE TABLE calls (
  run              TEXT NOT NULL,
  span             TEXT NOT NULL,
  seq              INTEGER NOT NULL,
  end_seq          INTEGER,
  parent           TEXT,
  kind             TEXT NOT NULL,
  name             TEXT,
  provider         TEXT,
  model            TEXT,
  tokens_in        INTEGER,
  tokens_out       INTEGER,
  tokens_cached    INTEGER,
  tokens_reasoning INTEGER,
  cost             REAL,
  elapsed_us       INTEGER NOT NULL,
  latency_us       INTEGER,
  status           TEXT,
  code             INTEGER,
  error            TEXT,
  key              TEXT,
  effects          TEXT,
  PRIMARY KEY (run, span, seq)
) WITHOUT ROWID;

CREATE TABLE steps (
  run         TEXT NOT NULL,
  span        TEXT NOT NULL,
  seq         INTEGER NOT NULL,
  end_seq     INTEGER,
  parent      TEXT,
  name        TEXT,
  attempt     INTEGER NOT NULL,
  elapsed_us  INTEGER NOT NULL,
  duration_us INTEGER,
  status      TEXT,
  error       TEXT,
  PRIMARY KEY (run, span, seq)
) WITHOUT ROWID;

CREATE TABLE policy_checks (
  run        TEXT NOT NULL,
  seq        INTEGER NOT NULL,
  capability TEXT,
  resource   TEXT,
  decision   TEXT,
  rule       TEXT,
  reason     TEXT,
  mode       TEXT,
  PRIMARY KEY (run, seq)
) WITHOUT ROWID;

CREATE TABLE artifacts (
  run    TEXT NOT NULL,
  seq    INTEGER NOT NULL,
  name   TEXT,
  role   TEXT,
  media  TEXT,
  digest TEXT,
  size   INTEGER,
  PRIMARY KEY (run, seq)
) WITHOUT ROWID;

CREATE TABLE effects (
  run    TEXT NOT NULL,
  seq    INTEGER NOT NULL,
  item   INTEGER NOT NULL,
  what   TEXT,
  target TEXT,
  detail TEXT,
  PRIMARY KEY (run, seq, item)
) WITHOUT ROWID;

CREATE INDEX effects_by_target ON effects (target);

CREATE TABLE reads (
  run    TEXT NOT NULL,
  seq    INTEGER NOT NULL,
  item   INTEGER NOT NULL,
  source TEXT,
  via    TEXT,
  module TEXT,
  target TEXT,
  times  INTEGER NOT NULL,
  detail TEXT,
  PRIMARY KEY (run, seq, item)
) WITHOUT ROWID;

CREATE INDEX reads_by_target ON reads (target) WHERE target IS NOT NULL;

CREATE TABLE commits (
  run       TEXT NOT NULL,
  seq       INTEGER NOT NULL,
  sha       TEXT,
  subject   TEXT,
  author    TEXT,
  authored  TEXT,
  committed TEXT,
  time_us   INTEGER,
  link      TEXT,
  PRIMARY KEY (run, seq)
) WITHOUT ROWID;

CREATE INDEX commits_by_sha ON commits (sha);

CREATE TABLE ci_results (
  run         TEXT NOT NULL,
  seq         INTEGER NOT NULL,
  source      TEXT,
  provider    TEXT,
  ci_run_id   TEXT,
  attempt     TEXT,
  job         TEXT,
  step        TEXT,
  test        TEXT,
  result      TEXT,
  sha         TEXT,
  started     TEXT,
  finished    TEXT,
  time_us     INTEGER,
  duration_us INTEGER,
  counts      TEXT,
  error       TEXT,
  PRIMARY KEY (run, seq)
) WITHOUT ROWID;

CREATE INDEX ci_results_by_time ON ci_results (time_us);

-- How far each run was read, and what its next lines build on.
CREATE TABLE progress (
  run              TEXT PRIMARY KEY,
  tail             TEXT NOT NULL,
  held             INTEGER NOT NULL,
  first_elapsed_us INTEGER,
  last_elapsed_us  INTEGER,
  ended            TEXT,
  ended_elapsed_us INTEGER,
  envelope_ok      INTEGER,
  invalidated      INTEGER NOT NULL
) WITHOUT ROWID;

CREATE INDEX progress_held ON progress (run) WHERE held = 1;

-- How far the journal was read, and whether all runs were read once.
CREATE TABLE state (
  name  TEXT PRIMARY KEY,
  value TEXT NOT NULL
) WITHOUT ROWID;

-- The last line that was seen of a run, where the run no longer holds it.
CREATE TABLE remembered (
  run  TEXT PRIMARY KEY,
  seq  INTEGER NOT NULL,
  hash TEXT NOT NULL
) WITHOUT ROWID;
