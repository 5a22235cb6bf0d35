//! What changed between two commits, file by file. Never compares base tip with head: callers give the merge base.

use super::Git;
use crate::sandbox::refusal::Answer;

/// One changed file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changed {
    /// The new path, or the old one of a removed file.
    pub path: String,
    /// The old path of a renamed file.
    pub previous: Option<String>,
    /// GitHub's word: `added`, `removed`, `modified`, `renamed`.
    pub status: &'static str,
    /// The blob after the change, or before it when removed.
    pub sha: String,
    /// Lines added.
    pub additions: u64,
    /// Lines deleted.
    pub deletions: u64,
    /// The hunks; binary files have none.
    pub patch: Option<String>,
}

impl Git {
    /// The unified diff as text.
    pub fn diff_text(&self, from: &str, to: &str) -> Answer<String> {
        Ok(String::from_utf8_lossy(&self.run(&["diff", "-M", "--no-color", "--full-index", from, to], b"")?)
            .into_owned())
    }

    /// The commits between as mails, GitHub's `patch` media type.
    pub fn patch_text(&self, from: &str, to: &str) -> Answer<String> {
        let range = format!("{from}..{to}");
        Ok(String::from_utf8_lossy(&self.run(&["format-patch", "--stdout", &range], b"")?).into_owned())
    }

    /// The changed files in git's order.
    pub fn changed(&self, from: &str, to: &str) -> Answer<Vec<Changed>> {
        let raw = self.run(&["diff", "-M", "-z", "--raw", "--numstat", "--abbrev=40", from, to], b"")?;
        let mut files = read_raw(&String::from_utf8_lossy(&raw));
        let text = self.diff_text(from, to)?;
        for (file, part) in files.iter_mut().zip(split_files(&text)) {
            file.patch = part
                .find("\n@@")
                .and_then(|at| part.get(at + 1..))
                .map(|hunks| hunks.trim_end_matches('\n').to_owned());
        }
        Ok(files)
    }
}

fn split_files(text: &str) -> Vec<&str> {
    let mut starts: Vec<usize> = text.match_indices("\ndiff --git ").map(|(at, _)| at + 1).collect();
    if text.starts_with("diff --git ") {
        starts.insert(0, 0);
    }
    let ends = starts.iter().skip(1).copied().chain([text.len()]);
    starts.iter().zip(ends).filter_map(|(start, end)| text.get(*start..end)).collect()
}

fn read_raw(text: &str) -> Vec<Changed> {
    let mut files: Vec<Changed> = Vec::new();
    let mut parts = text.split('\0').filter(|part| !part.is_empty());
    let mut counted = 0;
    while let Some(part) = parts.next() {
        if let Some(meta) = part.strip_prefix(':') {
            let words: Vec<&str> = meta.split(' ').collect();
            let [_, _, old, new, letter] = words.as_slice() else { continue };
            let Some(first) = parts.next() else { break };
            let (status, previous, path) = match letter.chars().next() {
                Some('A') => ("added", None, first),
                Some('D') => ("removed", None, first),
                Some('R') => ("renamed", Some(first.to_owned()), parts.next().unwrap_or(first)),
                _ => ("modified", None, first),
            };
            let sha = if status == "removed" { old } else { new };
            files.push(Changed {
                path: path.to_owned(),
                previous,
                status,
                sha: (*sha).to_owned(),
                additions: 0,
                deletions: 0,
                patch: None,
            });
            continue;
        }
        let mut columns = part.splitn(3, '\t');
        let (added, deleted) = (columns.next().unwrap_or(""), columns.next().unwrap_or(""));
        if columns.next() == Some("") {
            // A renamed file's two names follow as parts of their own.
            parts.next();
            parts.next();
        }
        if let Some(file) = files.get_mut(counted) {
            file.additions = added.parse().unwrap_or(0);
            file.deletions = deleted.parse().unwrap_or(0);
        }
        counted += 1;
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_changes_renames_and_counts() {
        let zero = "0".repeat(40);
        let one = "1".repeat(40);
        let text = format!(
            ":100644 000000 {one} {zero} D\0gone\0:100644 100644 {one} {one} R090\0a b\0c d\0\
             0\t3\tgone\0{}\0a b\0c d\0",
            "1\t2\t"
        );
        let files = read_raw(&text);
        let seen: Vec<_> = files
            .iter()
            .map(|f| (f.path.as_str(), f.previous.as_deref(), f.status, f.additions, f.deletions))
            .collect();
        assert_eq!(seen, [("gone", None, "removed", 0, 3), ("c d", Some("a b"), "renamed", 1, 2)]);
        assert_eq!(files[0].sha, one);
    }
}
