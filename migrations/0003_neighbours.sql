-- Which pulls are open, by repository. A key is `forge:id#number`.
ALTER TABLE pulls ADD COLUMN repo TEXT NOT NULL DEFAULT '';
ALTER TABLE pulls ADD COLUMN is_open BIGINT NOT NULL DEFAULT 1;
UPDATE pulls SET repo = rtrim(rtrim(pull, '0123456789'), '#');
CREATE INDEX pulls_open ON pulls (repo) WHERE is_open = 1;

-- What an open pull has to do with a state: it plans changes of it, or reads it.
CREATE TABLE interests (
    pull TEXT NOT NULL,
    state TEXT NOT NULL,
    root TEXT NOT NULL,
    role TEXT NOT NULL,
    format BIGINT NOT NULL,
    document TEXT NOT NULL,
    PRIMARY KEY (pull, state, root, role)
);
CREATE INDEX interests_in_state ON interests (state);

-- From which commit the reads of a repository are known.
CREATE TABLE branches_read (
    repo TEXT NOT NULL PRIMARY KEY,
    name TEXT NOT NULL,
    branch TEXT,
    tip TEXT,
    looked BIGINT NOT NULL
);

-- Reads of states that no root of the reader's repository owns.
CREATE TABLE outside_reads (
    repo TEXT NOT NULL,
    place BIGINT NOT NULL,
    state TEXT NOT NULL,
    format BIGINT NOT NULL,
    document TEXT NOT NULL,
    PRIMARY KEY (repo, place)
);
CREATE INDEX outside_reads_of ON outside_reads (state);
