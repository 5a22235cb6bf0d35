//! Every SQL text of the store, the same for both engines, in one list so that a test can prepare
//! them all. It runs none of them, and no text is put together from values.

/// Declares the texts once as constants and once as a list.
macro_rules! statements {
    ($($(#[$doc:meta])* $name:ident = $text:expr;)*) => {
        $($(#[$doc])* pub(super) const $name: &str = $text;)*

        /// All of them, for [`super::SqlStore::check_statements`].
        pub(super) const ALL: &[&str] = &[$($name),*];
    };
}

statements! {
    /// Hands out `$1` places in line; the answer is the last of them.
    TAKE_PLACES = "UPDATE counters SET value = value + $1 WHERE name = 'line' RETURNING value";
    PING = "SELECT value FROM counters WHERE name = 'line'";

    ADD_DELIVERY = "INSERT INTO deliveries (forge, id, name, ignored, received) VALUES ($1, $2, $3, $4, $5) \
        ON CONFLICT (forge, id) DO NOTHING";

    ADD_EVENT = "INSERT INTO events (id, pull, format, event, queued, not_before, attempts, state) \
        VALUES ($1, $2, $3, $4, $5, 0, 0, 'open')";
    DUE_EVENTS = "SELECT e.id, e.pull, e.format, e.event, e.attempts FROM events e \
        WHERE e.state = 'open' AND e.not_before <= $1 AND NOT EXISTS \
        (SELECT 1 FROM events o WHERE o.state = 'open' AND o.pull = e.pull AND o.id < e.id) ORDER BY e.id";
    END_EVENT = "UPDATE events SET state = $2, last_error = $3 WHERE id = $1 AND state = 'open'";
    RETRY_EVENT = "UPDATE events SET attempts = attempts + 1, not_before = $2, last_error = $3 \
        WHERE id = $1 AND state = 'open'";

    EFFECT_OF_SLOT = "SELECT id, act, state, not_before, last_error FROM effects WHERE pull = $1 AND slot = $2";
    ADD_EFFECT = "INSERT INTO effects (id, place, pull, slot, lane, format, act, not_before, generation, attempts, \
        state, changed) VALUES ($1, $1, $2, $3, $4, $5, $6, $7, 1, 0, 'open', $8)";
    /// New content for a slot not yet done: it keeps its place, and its attempts, because a create that
    /// nobody knows the end of is still one to look for.
    REPLACE_EFFECT = "UPDATE effects SET lane = $2, format = $3, act = $4, not_before = $5, changed = $6, \
        generation = generation + 1, state = 'open' WHERE id = $1";
    /// New content for a slot that was done: at the end of the line.
    REOPEN_EFFECT = "UPDATE effects SET lane = $2, format = $3, act = $4, not_before = $5, changed = $6, place = $7, \
        generation = generation + 1, state = 'open', last_error = NULL WHERE id = $1";
    DUE_EFFECTS = "SELECT e.id, e.pull, p.name, e.slot, e.format, e.act, e.not_before, e.generation, e.receipt, \
        e.attempts FROM effects e JOIN pulls p ON p.pull = e.pull \
        WHERE e.state = 'open' AND e.not_before <= $1 AND NOT EXISTS \
        (SELECT 1 FROM effects o WHERE o.state = 'open' AND o.pull = e.pull AND o.lane = e.lane AND o.place < e.place) \
        ORDER BY e.place";
    BEGIN_EFFECT = "UPDATE effects SET attempts = attempts + 1 WHERE id = $1 AND generation = $2 AND state = 'open'";
    /// What was done leaves its receipt even when newer content waits already.
    FINISH_EFFECT = "UPDATE effects SET receipt = COALESCE($3, receipt), attempts = 0, last_error = NULL, changed = $4, \
        state = CASE WHEN generation = $2 THEN 'done' ELSE state END WHERE id = $1";
    RETRY_EFFECT = "UPDATE effects SET not_before = $3, last_error = $4, changed = $5 \
        WHERE id = $1 AND generation = $2 AND state = 'open'";
    GIVE_UP_EFFECT = "UPDATE effects SET state = 'gave_up', last_error = $3, changed = $4 \
        WHERE id = $1 AND generation = $2 AND state = 'open'";

    NEXT_DUE = "SELECT MIN(w.not_before) AS due FROM (\
        SELECT not_before FROM events WHERE state = 'open' AND not_before > $1 UNION ALL \
        SELECT not_before FROM effects WHERE state = 'open' AND not_before > $1) AS w";

    LOAD_PULL = "SELECT version, format, document FROM pulls WHERE pull = $1";
    ADD_PULL = "INSERT INTO pulls (pull, name, version, format, document, created, changed, is_open, repo) \
        VALUES ($1, $2, 1, $3, $4, $5, $5, $6, $7) ON CONFLICT (pull) DO NOTHING";
    SAVE_PULL = "UPDATE pulls SET name = $3, version = version + 1, format = $4, document = $5, changed = $6, \
        is_open = $7, repo = $8 WHERE pull = $1 AND version = $2";
    OPEN_PULLS = "SELECT format, document FROM pulls WHERE repo = $1 AND is_open = 1 ORDER BY created DESC, pull DESC";
    CLEAR_INTERESTS = "DELETE FROM interests WHERE pull = $1";
    ADD_INTEREST = "INSERT INTO interests (pull, state, root, role, format, document) VALUES ($1, $2, $3, $4, $5, $6)";
    BRANCHES_READ = "SELECT repo, name, branch, tip, looked FROM branches_read ORDER BY repo";
    PUT_BRANCH_READ = "INSERT INTO branches_read (repo, name, branch, tip, looked) VALUES ($1, $2, $3, $4, $5) \
        ON CONFLICT (repo) DO UPDATE SET name = excluded.name, branch = excluded.branch, tip = excluded.tip, \
        looked = CASE WHEN branches_read.looked = $6 THEN excluded.looked ELSE branches_read.looked END";
    READS_MOVED = "INSERT INTO branches_read (repo, name, looked) VALUES ($1, $2, 0) \
        ON CONFLICT (repo) DO UPDATE SET name = excluded.name, \
        looked = CASE WHEN branches_read.branch IS NOT NULL AND branches_read.branch <> $3 THEN branches_read.looked \
        WHEN $3 = '' THEN branches_read.looked WHEN branches_read.looked > 0 THEN 0 ELSE branches_read.looked - 1 END";
    FORGET_BRANCH_READ = "DELETE FROM branches_read WHERE repo = $1";
    CLEAR_READS = "DELETE FROM outside_reads WHERE repo = $1";
    ADD_READ = "INSERT INTO outside_reads (repo, place, state, format, document) VALUES ($1, $2, $3, $4, $5)";
    PULLS = "SELECT format, document FROM pulls ORDER BY created DESC, pull DESC";
    LOAD_LOCKS = "SELECT version, format, document FROM repo_locks WHERE repo = $1";
    ADD_LOCKS = "INSERT INTO repo_locks (repo, version, format, document) VALUES ($1, 1, $2, $3) \
        ON CONFLICT (repo) DO NOTHING";
    SAVE_LOCKS = "UPDATE repo_locks SET version = version + 1, format = $3, document = $4 \
        WHERE repo = $1 AND version = $2";
    ADD_LEDGER = "INSERT INTO ledger (id, pull, written, line) VALUES ($1, $2, $3, $4)";
    LEDGER = "SELECT written, line FROM ledger WHERE pull = $1 ORDER BY id";

    ADD_JOB = "INSERT INTO jobs (id, pull, format, spec, state, heartbeat) VALUES ($1, $2, $3, $4, 'waiting', $5) \
        ON CONFLICT (id) DO NOTHING";
    JOB = "SELECT j.pull, p.name, j.format, j.spec, j.state, j.claimed_by, j.heartbeat \
        FROM jobs j JOIN pulls p ON p.pull = j.pull WHERE j.id = $1";
    OPEN_JOBS = "SELECT j.pull, p.name, j.format, j.spec, j.state, j.claimed_by, j.heartbeat \
        FROM jobs j JOIN pulls p ON p.pull = j.pull WHERE j.state <> 'ended' ORDER BY j.id";
    COUNT_OPEN_JOBS = "SELECT COUNT(*) AS jobs FROM jobs WHERE state <> 'ended'";
    CLAIM_JOB = "UPDATE jobs SET state = 'running', claimed_by = $2, heartbeat = $3 WHERE id = $1 \
        AND (state = 'waiting' OR (state = 'running' AND claimed_by = $2))";
    TOUCH_JOB = "UPDATE jobs SET heartbeat = $2 WHERE id = $1 AND state <> 'ended' AND heartbeat < $2";
    END_JOB = "UPDATE jobs SET state = 'ended', heartbeat = $2 WHERE id = $1 AND state <> 'ended'";
    LOG = "SELECT seq, step, line FROM job_log WHERE job = $1 AND seq > $2 ORDER BY seq";
    PUT_BLOB = "INSERT INTO job_blobs (job, kind, bytes) VALUES ($1, $2, $3) \
        ON CONFLICT (job, kind) DO UPDATE SET bytes = excluded.bytes";
    BLOB = "SELECT bytes FROM job_blobs WHERE job = $1 AND kind = $2";

    KEPT = "SELECT sealed FROM kept WHERE name = $1";
    KEEP = "INSERT INTO kept (name, sealed, written) VALUES ($1, $2, $3) \
        ON CONFLICT (name) DO UPDATE SET sealed = excluded.sealed, written = excluded.written";
    KEEP_FIRST = "INSERT INTO kept (name, sealed, written) VALUES ($1, $2, $3) ON CONFLICT (name) DO NOTHING";
    FORGET = "DELETE FROM kept WHERE name = $1";
    LAST_DELIVERY = "SELECT name, received FROM deliveries WHERE forge = $1 ORDER BY received DESC LIMIT 1";

    SWEEP_EVENTS = "DELETE FROM events WHERE state <> 'open' AND queued < $1";
    /// A slot with a receipt stays: without it the next content would be a second comment or check.
    SWEEP_EFFECTS = "DELETE FROM effects WHERE state <> 'open' AND receipt IS NULL AND changed < $1";
    SWEEP_DELIVERIES = "DELETE FROM deliveries WHERE received < $1";
}

/// One insert of `rows` log lines; its only variable part is how many placeholders it has.
pub(super) fn append_log(rows: usize) -> String {
    let tuples: Vec<String> =
        (0..rows).map(|row| format!("($1, ${}, ${}, ${})", row * 3 + 2, row * 3 + 3, row * 3 + 4)).collect();
    format!("INSERT INTO job_log (job, seq, step, line) VALUES {} ON CONFLICT (job, seq) DO NOTHING", tuples.join(", "))
}

/// What open pulls other than `$1` have to do with any of so many states.
pub(super) fn interested(states: usize) -> String {
    format!(
        "SELECT pull, format, document FROM interests WHERE pull <> $1 AND state IN ({}) ORDER BY pull, state, root, role",
        places(2, states)
    )
}

/// Reads of any of so many states by other repositories than `$1`.
pub(super) fn foreign_reads(states: usize) -> String {
    format!(
        "SELECT r.repo, b.name, r.format, r.document FROM outside_reads r JOIN branches_read b ON b.repo = r.repo \
        WHERE r.repo <> $1 AND r.state IN ({}) ORDER BY r.repo, r.place",
        places(2, states)
    )
}

fn places(from: usize, count: usize) -> String {
    (from..from + count).map(|place| format!("${place}")).collect::<Vec<_>>().join(", ")
}
