//! Commits laid anew on another tip, as GitHub's rebase merge does it. Never touches a branch.

use super::{Git, Signature, command, feed};
use crate::sandbox::refusal::{Answer, Refusal};

impl Git {
    /// The commits of `head` that `tip` does not have, each made anew on `tip`; `None` when one of them does not apply.
    pub fn rebased(&self, tip: &str, head: &str, by: &Signature) -> Answer<Option<String>> {
        let mut onto = tip.to_owned();
        for commit in self.between(tip, head)? {
            // A merge of the base adds nothing of its own.
            let [parent] = commit.parents.as_slice() else { continue };
            let Some(tree) = self.applied(&onto, parent, &commit.sha)? else { return Ok(None) };
            let mut git = command(&["commit-tree", &tree, "-p", &onto]);
            let [name, email, date] = &commit.author;
            git.current_dir(self.dir())
                .env("GIT_AUTHOR_NAME", name)
                .env("GIT_AUTHOR_EMAIL", email)
                .env("GIT_AUTHOR_DATE", date)
                .env("GIT_COMMITTER_NAME", &by.name)
                .env("GIT_COMMITTER_EMAIL", &by.email)
                .env("GIT_COMMITTER_DATE", format!("{} +0000", by.seconds));
            let made = feed(git, commit.message.as_bytes()).map_err(super::broken)?;
            if !made.status.success() {
                return Err(Refusal::new(500, String::from_utf8_lossy(&made.stderr)));
            }
            onto = String::from_utf8_lossy(&made.stdout).trim().to_owned();
        }
        Ok(Some(onto))
    }

    /// The tree of `onto` with what `commit` changed.
    fn applied(&self, onto: &str, parent: &str, commit: &str) -> Answer<Option<String>> {
        let folder = tempfile::tempdir().map_err(super::broken)?;
        let index = folder.path().join("index");
        let run = |args: &[&str], stdin: &[u8]| {
            let mut git = command(args);
            git.current_dir(self.dir()).env("GIT_INDEX_FILE", &index);
            feed(git, stdin).map_err(super::broken)
        };
        run(&["read-tree", onto], b"")?;
        let change = self.run(&["diff", "--binary", "--full-index", parent, commit], b"")?;
        if !change.is_empty() && !run(&["apply", "--cached", "--whitespace=nowarn", "-"], &change)?.status.success() {
            return Ok(None);
        }
        let tree = run(&["write-tree"], b"")?;
        Ok(tree.status.success().then(|| String::from_utf8_lossy(&tree.stdout).trim().to_owned()))
    }
}
