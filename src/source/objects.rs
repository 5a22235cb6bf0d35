//! Reading the object store: listings, merges and blobs of a mirror. It caches nothing and writes
//! nothing but the tree of a merge.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;

use super::git::last_words;
use super::mirror::{Mirror, check_id};
use crate::domain::ids::Sha;
use crate::domain::tree::{Entry, EntryKind, Listing};
use crate::ports::source::{Merged, SourceError};

/// How many links a path may lead through.
const LINKS: usize = 8;

/// The merge of two commits, without a working tree.
pub(super) async fn merge(mirror: &Mirror, base: &Sha, head: &Sha) -> Result<Merged, SourceError> {
    check_id(base)?;
    check_id(head)?;
    let args = ["merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", base.as_str(), head.as_str()];
    let ran = mirror.git(&args).run().await?;
    let mut words = ran.out.split(|byte| *byte == 0).filter(|word| !word.is_empty());
    let tree = words.next().map(|id| String::from_utf8_lossy(id).trim().to_owned());
    match (ran.status.code(), tree) {
        (Some(0), Some(tree)) => Ok(Merged::Tree(Sha::new(tree))),
        (Some(1), Some(_)) => {
            let mut paths: Vec<String> = words.map(|path| String::from_utf8_lossy(path).into_owned()).collect();
            paths.sort();
            paths.dedup();
            Ok(Merged::Conflict(paths))
        }
        _ => Err(SourceError::Broken(last_words(&ran.err))),
    }
}

/// Whether `head` contains `base`.
pub(super) async fn contains(mirror: &Mirror, base: &Sha, head: &Sha) -> Result<bool, SourceError> {
    check_id(base)?;
    check_id(head)?;
    let ran = mirror.git(&["merge-base", "--is-ancestor", base.as_str(), head.as_str()]).run().await?;
    match ran.status.code() {
        Some(0) => Ok(true),
        Some(1) => Ok(false),
        _ => Err(SourceError::Broken(last_words(&ran.err))),
    }
}

/// All paths of a commit or tree.
pub(super) async fn listing(mirror: &Mirror, treeish: &Sha) -> Result<Listing, SourceError> {
    check_id(treeish)?;
    let out = mirror.git(&["ls-tree", "-r", "-z", "-l", "--full-tree", treeish.as_str()]).output().await?;
    let mut entries = BTreeMap::new();
    for line in out.split(|byte| *byte == 0).filter(|line| !line.is_empty()) {
        let (path, entry) = entry(line)
            .ok_or_else(|| SourceError::Broken(format!("a line of ls-tree: {}", String::from_utf8_lossy(line))))?;
        entries.insert(path, entry);
    }
    Ok(Listing { entries })
}

/// `<mode> <type> <id> <size>\t<path>`, the size padded.
fn entry(line: &[u8]) -> Option<(String, Entry)> {
    let tab = line.iter().position(|byte| *byte == b'\t')?;
    let facts = std::str::from_utf8(&line[..tab]).ok()?;
    let mut words = facts.split_ascii_whitespace();
    let (mode, _, blob, size) = (words.next()?, words.next()?, words.next()?, words.next()?);
    let kind = match mode {
        "120000" => EntryKind::Link,
        "160000" => EntryKind::Submodule,
        _ => EntryKind::File,
    };
    let path = String::from_utf8_lossy(&line[tab + 1..]).into_owned();
    Some((path, Entry { kind, blob: blob.to_owned(), size: size.parse().unwrap_or(0) }))
}

/// Contents of blobs, by id, in one run of git.
pub(super) async fn blobs(mirror: &Mirror, ids: &[String]) -> Result<BTreeMap<String, Vec<u8>>, SourceError> {
    if ids.is_empty() {
        return Ok(BTreeMap::new());
    }
    let input: String = ids.iter().map(|id| format!("{id}\n")).collect();
    let git = mirror.git(&["cat-file", "--batch", "--buffer"]).input(input.into_bytes());
    let out = git.limit(Duration::from_secs(300)).output().await?;
    let mut rest = out.as_slice();
    let mut found = BTreeMap::new();
    while !rest.is_empty() {
        let (id, bytes, after) =
            blob(rest).ok_or_else(|| SourceError::Broken("git gave no blob for an id of its own tree".to_owned()))?;
        found.insert(id, bytes.to_vec());
        rest = after;
    }
    Ok(found)
}

/// `<id> blob <size>\n<bytes>\n`
fn blob(text: &[u8]) -> Option<(String, &[u8], &[u8])> {
    let end = text.iter().position(|byte| *byte == b'\n')?;
    let mut words = std::str::from_utf8(&text[..end]).ok()?.split(' ');
    let (id, _, size) = (words.next()?, words.next().filter(|kind| *kind == "blob")?, words.next()?);
    let (body, after) = text[end + 1..].split_at_checked(size.parse().ok()?)?;
    Some((id.to_owned(), body, after.strip_prefix(b"\n")?))
}

/// A file's bytes; links are followed inside the tree, as a checkout would.
pub(super) async fn file(mirror: &Mirror, listing: &Listing, path: &str) -> Result<Option<Vec<u8>>, SourceError> {
    Ok(files(mirror, listing, &[path.to_owned()]).await?.remove(path))
}

/// The same for several files, without those that are not there: one run of git for all, and one more for each step of links.
pub(super) async fn files(
    mirror: &Mirror,
    listing: &Listing,
    paths: &[String],
) -> Result<BTreeMap<String, Vec<u8>>, SourceError> {
    let mut found = BTreeMap::new();
    // What was asked for, and where its links have led.
    let mut open: Vec<(&String, String)> = paths.iter().map(|path| (path, path.clone())).collect();
    for _ in 0..LINKS {
        let there = |(asked, at): (_, String)| {
            let entry = listing.entries.get(&at).filter(|entry| entry.kind != EntryKind::Submodule)?;
            Some((asked, at, entry))
        };
        let entries: Vec<(&String, String, &Entry)> = open.drain(..).filter_map(there).collect();
        let mut ids: Vec<String> = entries.iter().map(|(_, _, entry)| entry.blob.clone()).collect();
        ids.sort();
        ids.dedup();
        let blobs = blobs(mirror, &ids).await?;
        for (asked, at, entry) in entries {
            let bytes = blobs.get(&entry.blob).map(Vec::as_slice).unwrap_or_default();
            if entry.kind == EntryKind::File {
                found.insert(asked.clone(), bytes.to_vec());
            } else if let Some(target) = beside(&at, &String::from_utf8_lossy(bytes)) {
                open.push((asked, target));
            }
        }
        if open.is_empty() {
            break;
        }
    }
    Ok(found)
}

/// Where a link at `path` points, unless that is outside the tree.
fn beside(path: &str, target: &str) -> Option<String> {
    if target.starts_with('/') {
        return None;
    }
    let mut parts: Vec<&str> = path.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

/// A tar of the tree.
pub(super) async fn archive(mirror: &Mirror, treeish: &Sha) -> Result<Bytes, SourceError> {
    check_id(treeish)?;
    let git = mirror.git(&["archive", "--format=tar", treeish.as_str()]);
    Ok(git.limit(Duration::from_secs(300)).output().await?.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_tree_are_read_with_any_path() {
        let id = "a".repeat(40);
        for (line, kind, size, path) in [
            (format!("100644 blob {id}      12\ta b\n.tf"), EntryKind::File, 12, "a b\n.tf"),
            (format!("120000 blob {id}       3\tlink"), EntryKind::Link, 3, "link"),
            (format!("160000 commit {id}       -\tsub"), EntryKind::Submodule, 0, "sub"),
        ] {
            let (found, entry) = entry(line.as_bytes()).expect("a line");
            assert_eq!((found.as_str(), entry.kind, entry.size), (path, kind, size));
        }
        assert!(entry(b"nonsense").is_none());
    }

    #[test]
    fn links_lead_nowhere_outside_the_tree() {
        for (path, target, to) in [
            ("a/b.tf", "../c.tf", Some("c.tf")),
            ("a/b.tf", "./c//d.tf", Some("a/c/d.tf")),
            ("b.tf", "../c.tf", None),
            ("b.tf", "/etc/passwd", None),
        ] {
            assert_eq!(beside(path, target).as_deref(), to, "{path} -> {target}");
        }
    }

    #[test]
    fn blobs_may_hold_what_looks_like_a_header() {
        let text = b"aa blob 9\nbb blob 1\ncc blob 0\n\n";
        let (id, body, rest) = blob(text).expect("the first");
        assert_eq!((id.as_str(), body), ("aa", b"bb blob 1".as_slice()));
        let (id, body, rest) = blob(rest).expect("the second");
        assert_eq!((id.as_str(), body, rest), ("cc", b"".as_slice(), b"".as_slice()));
        assert!(blob(b"dd missing\n").is_none());
        assert!(blob(b"dd blob 99\nshort\n").is_none());
    }
}
