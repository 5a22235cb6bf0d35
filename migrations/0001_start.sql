-- The same text runs on SQLite and PostgreSQL: only TEXT, BIGINT and BYTEA. Times are milliseconds since 1970.
-- Documents are JSON with the version of their format beside them.

-- Places in line are handed out by one row that stays locked until commit, so that they are seen in the
-- order in which they were committed; a database sequence would let a later number appear first.
CREATE TABLE counters (
    name TEXT NOT NULL PRIMARY KEY,
    value BIGINT NOT NULL
);
INSERT INTO counters (name, value) VALUES ('line', 0);

CREATE TABLE deliveries (
    forge TEXT NOT NULL,
    id TEXT NOT NULL,
    name TEXT NOT NULL,
    ignored TEXT,
    received BIGINT NOT NULL,
    PRIMARY KEY (forge, id)
);

CREATE TABLE events (
    id BIGINT NOT NULL PRIMARY KEY,
    pull TEXT NOT NULL,
    format BIGINT NOT NULL,
    event TEXT NOT NULL,
    queued BIGINT NOT NULL,
    not_before BIGINT NOT NULL,
    attempts BIGINT NOT NULL,
    state TEXT NOT NULL,
    last_error TEXT
);
CREATE INDEX events_open ON events (pull, id) WHERE state = 'open';

CREATE TABLE pulls (
    pull TEXT NOT NULL PRIMARY KEY,
    name TEXT NOT NULL,
    version BIGINT NOT NULL,
    format BIGINT NOT NULL,
    document TEXT NOT NULL,
    created BIGINT NOT NULL,
    changed BIGINT NOT NULL
);

CREATE TABLE repo_locks (
    repo TEXT NOT NULL PRIMARY KEY,
    version BIGINT NOT NULL,
    format BIGINT NOT NULL,
    document TEXT NOT NULL
);

CREATE TABLE effects (
    id BIGINT NOT NULL PRIMARY KEY,
    place BIGINT NOT NULL,
    pull TEXT NOT NULL,
    slot TEXT NOT NULL,
    lane TEXT NOT NULL,
    format BIGINT NOT NULL,
    act TEXT NOT NULL,
    not_before BIGINT NOT NULL,
    generation BIGINT NOT NULL,
    attempts BIGINT NOT NULL,
    state TEXT NOT NULL,
    receipt TEXT,
    last_error TEXT,
    changed BIGINT NOT NULL,
    UNIQUE (pull, slot)
);
CREATE INDEX effects_open ON effects (pull, lane, place) WHERE state = 'open';

CREATE TABLE jobs (
    id TEXT NOT NULL PRIMARY KEY,
    pull TEXT NOT NULL,
    format BIGINT NOT NULL,
    spec TEXT NOT NULL,
    state TEXT NOT NULL,
    claimed_by TEXT,
    heartbeat BIGINT NOT NULL
);
CREATE INDEX jobs_open ON jobs (id) WHERE state <> 'ended';

CREATE TABLE job_log (
    job TEXT NOT NULL,
    seq BIGINT NOT NULL,
    step TEXT NOT NULL,
    line TEXT NOT NULL,
    PRIMARY KEY (job, seq)
);

CREATE TABLE job_blobs (
    job TEXT NOT NULL,
    kind TEXT NOT NULL,
    bytes BYTEA NOT NULL,
    PRIMARY KEY (job, kind)
);

CREATE TABLE ledger (
    id BIGINT NOT NULL PRIMARY KEY,
    pull TEXT NOT NULL,
    written BIGINT NOT NULL,
    line TEXT NOT NULL
);
CREATE INDEX ledger_of_pull ON ledger (pull, id);
