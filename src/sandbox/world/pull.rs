//! A pull as the sandbox forge keeps it, with what was said and reported on it. Values only: `act` changes them, `shape` shows them.

/// A reaction under a comment.
#[derive(Clone, Debug)]
pub struct Reaction {
    /// Its id.
    pub id: u64,
    /// Who.
    pub login: String,
    /// `eyes`, `+1`, …
    pub content: String,
    /// When.
    pub at: String,
}

/// A comment on a pull.
#[derive(Clone, Debug)]
pub struct Comment {
    /// Its id.
    pub id: u64,
    /// The pull's number.
    pub number: u64,
    /// Who wrote it.
    pub author: String,
    /// The text.
    pub body: String,
    /// When it was written.
    pub created_at: String,
    /// When it was changed last.
    pub updated_at: String,
    /// Its reactions.
    pub reactions: Vec<Reaction>,
    /// Why it is folded away, when it is.
    pub minimized: Option<String>,
}

/// A review.
#[derive(Clone, Debug)]
pub struct Review {
    /// Its id.
    pub id: u64,
    /// Who.
    pub author: String,
    /// `APPROVED`, `CHANGES_REQUESTED`, `COMMENTED`, `DISMISSED` or `PENDING`.
    pub state: String,
    /// What was said.
    pub body: String,
    /// The head that was reviewed.
    pub sha: String,
    /// When.
    pub at: String,
}

/// A line of the conversation that nobody wrote: a push, a merge.
#[derive(Clone, Debug)]
pub struct Happening {
    /// The last id given before it: its place in the conversation.
    pub after: u64,
    /// When.
    pub at: String,
    /// Who.
    pub login: String,
    /// What, after the login: "pushed `abc1234`".
    pub text: String,
}

/// How a pull was merged.
#[derive(Clone, Debug)]
pub struct MergeRecord {
    /// The commit on the base branch.
    pub sha: String,
    /// By whom.
    pub by: String,
    /// When.
    pub at: String,
}

/// Whether a pull is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PullState {
    /// Open for review.
    Open,
    /// Open, as a draft.
    Draft,
    /// Closed or merged.
    Closed,
}

/// A pull.
#[derive(Clone, Debug)]
pub struct Pull {
    /// Its id as a pull.
    pub id: u64,
    /// Its id as an issue.
    pub issue_id: u64,
    /// Its number.
    pub number: u64,
    /// The title.
    pub title: String,
    /// The description.
    pub body: Option<String>,
    /// Who opened it.
    pub author: String,
    /// The branch it goes to.
    pub base: String,
    /// That branch's tip when the head last moved: it goes stale as GitHub's does.
    pub base_sha: String,
    /// The branch it comes from.
    pub head: String,
    /// The tip of the head.
    pub head_sha: String,
    /// Whether it is open.
    pub state: PullState,
    /// Set when merged.
    pub merged: Option<MergeRecord>,
    /// When it was opened.
    pub created_at: String,
    /// When it last changed.
    pub updated_at: String,
    /// When it was closed.
    pub closed_at: Option<String>,
    /// Its labels.
    pub labels: Vec<String>,
    /// Its reviews, oldest first.
    pub reviews: Vec<Review>,
    /// What happened to it, oldest first.
    pub happenings: Vec<Happening>,
    /// For which base and head the answer is known or being computed, and the answer.
    pub mergeable: Option<(String, String, bool)>,
    /// The commit that was made to try it; the last one stays until there is another.
    pub test_merge: Option<String>,
}

impl Pull {
    /// Open or draft.
    pub fn is_open(&self) -> bool {
        self.state != PullState::Closed
    }
}

/// A check run.
#[derive(Clone, Debug)]
pub struct CheckRun {
    /// Its id.
    pub id: u64,
    /// The suite it belongs to.
    pub suite: u64,
    /// Its name.
    pub name: String,
    /// The commit.
    pub sha: String,
    /// `queued`, `in_progress`, `completed`.
    pub status: String,
    /// Set when completed.
    pub conclusion: Option<String>,
    /// The link behind it.
    pub details_url: Option<String>,
    /// The App's own id for it.
    pub external_id: Option<String>,
    /// When it began.
    pub started_at: Option<String>,
    /// When it ended.
    pub completed_at: Option<String>,
    /// Title, summary and text.
    pub output: [Option<String>; 3],
    /// Annotations, as they were sent.
    pub annotations: Vec<serde_json::Value>,
}

/// A commit status.
#[derive(Clone, Debug)]
pub struct Status {
    /// Its id.
    pub id: u64,
    /// The commit.
    pub sha: String,
    /// `error`, `failure`, `pending` or `success`.
    pub state: String,
    /// Its name.
    pub context: String,
    /// A line of text.
    pub description: Option<String>,
    /// The link behind it.
    pub target_url: Option<String>,
    /// Who set it.
    pub creator: String,
    /// When.
    pub at: String,
}

/// Where the head of a pull lives, when not in the repository itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// In a repository with this id and owner.
    Fork(u64, String),
    /// In a fork that was deleted.
    Gone,
}
