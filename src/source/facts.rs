//! From a listing to an estate: facts of each file parsed once in the life of its blob. It reads
//! blobs through the mirror and understands none of them itself.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use moka::sync::Cache;

use super::mirror::Mirror;
use super::objects;
use crate::domain::config::RepoConfig;
use crate::domain::estate::{Estate, read_by_links, survey};
use crate::domain::hcl::{self, FileFacts};
use crate::domain::tree::{EntryKind, Listing};
use crate::ports::source::SourceError;

/// From so many files on, threads share the parsing.
const MANY: usize = 200;

/// Deeply nested expressions need more than a thread's usual stack.
const STACK: usize = 16 << 20;

/// Facts by blob id.
#[derive(Clone, Debug)]
pub(super) struct Facts {
    cache: Cache<String, Arc<FileFacts>>,
}

impl Facts {
    /// An empty memory of so many files.
    pub(super) fn new(files: u64) -> Self {
        Self { cache: Cache::new(files) }
    }

    /// The estate of a listing.
    pub(super) async fn estate(
        &self,
        mirror: &Mirror,
        listing: Arc<Listing>,
        config: &RepoConfig,
    ) -> Result<Estate, SourceError> {
        let mut known = BTreeMap::new();
        let mut unknown = BTreeMap::new();
        let mut links = BTreeSet::new();
        for (path, entry) in &listing.entries {
            match entry.kind {
                EntryKind::Link => {
                    links.insert(entry.blob.clone());
                }
                EntryKind::File if hcl::is_wanted(path) => match self.cache.get(&entry.blob) {
                    Some(facts) => {
                        known.insert(entry.blob.clone(), facts);
                    }
                    None => {
                        unknown.entry(entry.blob.clone()).or_insert_with(|| path.clone());
                    }
                },
                EntryKind::File | EntryKind::Submodule => {}
            }
        }
        let ids: Vec<String> = unknown.keys().chain(&links).cloned().collect();
        let mut blobs = objects::blobs(mirror, &ids).await?;
        let targets: BTreeMap<String, String> = links
            .into_iter()
            .filter_map(|id| blobs.get(&id).map(|bytes| (id, String::from_utf8_lossy(bytes).into_owned())))
            .collect();
        let mut files: Vec<File> = unknown
            .into_iter()
            .filter_map(|(blob, path)| blobs.remove(&blob).map(|bytes| File { blob, path, bytes }))
            .collect();
        files.extend(self.behind_links(mirror, &listing, &targets, &mut known).await?);
        let config = config.clone();
        let cache = self.cache.clone();
        let made = tokio::task::spawn_blocking(move || {
            for (blob, facts) in parse_all(&files)? {
                cache.insert(blob.clone(), facts.clone());
                known.insert(blob, facts);
            }
            Ok(survey(&listing, &known, &targets, &config))
        });
        made.await.map_err(|error| SourceError::Broken(format!("reading the tree: {error}")))?
    }
}

impl Facts {
    /// Files whose own name says nothing, and to which a link with a telling name leads.
    async fn behind_links(
        &self,
        mirror: &Mirror,
        listing: &Listing,
        targets: &BTreeMap<String, String>,
        known: &mut BTreeMap<String, Arc<FileFacts>>,
    ) -> Result<Vec<File>, SourceError> {
        let mut names = BTreeMap::new();
        for (path, link) in read_by_links(listing, targets) {
            let Some(entry) = listing.entries.get(&path) else { continue };
            match self.cache.get(&entry.blob) {
                Some(facts) => drop(known.insert(entry.blob.clone(), facts)),
                None => drop(names.insert(entry.blob.clone(), link)),
            }
        }
        let ids: Vec<String> = names.keys().cloned().collect();
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let mut blobs = objects::blobs(mirror, &ids).await?;
        let file = |(blob, path)| blobs.remove(&blob).map(|bytes| File { blob, path, bytes });
        Ok(names.into_iter().filter_map(file).collect())
    }
}

/// A file to parse.
struct File {
    blob: String,
    path: String,
    bytes: Vec<u8>,
}

/// A file's blob and what it declares.
type Parsed = (String, Arc<FileFacts>);

fn parse_all(files: &[File]) -> Result<Vec<Parsed>, SourceError> {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let threads = if files.len() > MANY { cores } else { 1 };
    let share = files.len().div_ceil(threads).max(1);
    std::thread::scope(|scope| {
        let mut parts = Vec::with_capacity(threads);
        for part in files.chunks(share) {
            let work = move || part.iter().map(parse).collect::<Result<Vec<Parsed>, SourceError>>();
            let thread = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, work);
            parts.push(thread.map_err(|error| SourceError::Unavailable(format!("no thread to parse in: {error}")))?);
        }
        let mut all = Vec::with_capacity(files.len());
        for part in parts {
            all.extend(part.join().map_err(|_| SourceError::Broken("a parser ended early".to_owned()))??);
        }
        Ok(all)
    })
}

/// A parser that panics names its file and ends the survey: a root left out in silence would be worse.
fn parse(file: &File) -> Result<Parsed, SourceError> {
    let read = || Arc::new(hcl::parse(&file.path, &file.bytes));
    let facts = std::panic::catch_unwind(std::panic::AssertUnwindSafe(read))
        .map_err(|_| SourceError::Broken(format!("`{}` cannot be parsed", file.path)))?;
    Ok((file.blob.clone(), facts))
}
