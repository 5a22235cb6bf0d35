//! Commits as git tells them. Never guesses a forge user from them.

use super::Git;
use crate::sandbox::refusal::{Answer, Refusal};

/// One commit.
#[derive(Clone, Debug)]
pub struct Commit {
    /// Its id.
    pub sha: String,
    /// Its tree.
    pub tree: String,
    /// Its parents.
    pub parents: Vec<String>,
    /// Name, address and time (UTC) of the author.
    pub author: [String; 3],
    /// Name, address and time (UTC) of the committer.
    pub committer: [String; 3],
    /// The whole message.
    pub message: String,
}

const FORMAT: &str = "--format=%H%x1f%T%x1f%P%x1f%an%x1f%ae%x1f%ad%x1f%cn%x1f%ce%x1f%cd%x1f%B%x1e";

impl Git {
    /// The commits of `to` that `from` does not have, oldest first.
    pub fn between(&self, from: &str, to: &str) -> Answer<Vec<Commit>> {
        self.log(&["--reverse", "--topo-order", &format!("{from}..{to}")])
    }

    /// The newest commits of a branch.
    pub fn history(&self, tip: &str, most: usize) -> Answer<Vec<Commit>> {
        self.log(&[&format!("-{most}"), tip])
    }

    /// One commit.
    pub fn show(&self, sha: &str) -> Answer<Commit> {
        self.log(&["-1", sha])?.into_iter().next().ok_or_else(Refusal::not_found)
    }

    fn log(&self, range: &[&str]) -> Answer<Vec<Commit>> {
        let mut args = vec!["log", FORMAT, "--date=format-local:%Y-%m-%dT%H:%M:%SZ"];
        args.extend(range);
        args.push("--");
        let text = String::from_utf8_lossy(&self.run(&args, b"")?).into_owned();
        Ok(text.split('\u{1e}').filter_map(read).collect())
    }
}

fn read(record: &str) -> Option<Commit> {
    let f: Vec<&str> = record.trim_start_matches('\n').split('\u{1f}').collect();
    let [sha, tree, parents, an, ae, ad, cn, ce, cd, message] = f.as_slice() else { return None };
    let own = |words: [&&str; 3]| words.map(|word| (*word).to_owned());
    Some(Commit {
        sha: (*sha).to_owned(),
        tree: (*tree).to_owned(),
        parents: parents.split_whitespace().map(str::to_owned).collect(),
        author: own([an, ae, ad]),
        committer: own([cn, ce, cd]),
        message: message.trim_end().to_owned(),
    })
}
