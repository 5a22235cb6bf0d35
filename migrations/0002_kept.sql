-- What the installation keeps for itself beside pulls: sealed texts by name, such as the App that was made in the browser.
CREATE TABLE kept (
    name TEXT NOT NULL PRIMARY KEY,
    sealed BYTEA NOT NULL,
    written BIGINT NOT NULL
);
