//! A directory as the domain sees a tree: its listing, the facts of its files, the targets of its links and its configuration. What
//! cannot be read becomes a hole; it never fails because of a file.

use std::collections::BTreeMap;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use super::{LocalError, parse, walk};
use crate::domain::config::{self, RepoConfig};
use crate::domain::estate::{Estate, Hole, read_by_links, survey};
use crate::domain::hcl::{self, FileFacts};
use crate::domain::tree::{Entry, EntryKind, Listing};

/// A larger file is no configuration that a person wrote.
const LARGEST: u64 = 4 << 20;

/// What a directory holds.
pub struct Ground {
    /// The directory, links resolved.
    pub top: PathBuf,
    /// Its paths; a blob's id is its path, because nothing is compared by content here.
    pub listing: Listing,
    /// Its `.tidegate.yaml`, or the defaults.
    pub config: RepoConfig,
    /// What could not be read.
    pub holes: Vec<Hole>,
    facts: BTreeMap<String, Arc<FileFacts>>,
    links: BTreeMap<String, String>,
}

impl Ground {
    /// The repository around a directory; outside of one the directory itself.
    pub fn around(dir: &Path) -> Result<Self, LocalError> {
        Self::of(&walk::top(dir).unwrap_or_else(|| dir.to_owned()))
    }

    /// Exactly this directory.
    pub fn of(dir: &Path) -> Result<Self, LocalError> {
        let unreadable = |error| LocalError::Unreadable(dir.to_owned(), error);
        let top = dir.canonicalize().map_err(unreadable)?;
        std::fs::read_dir(&top).map_err(unreadable)?;
        let mut ground = Self {
            listing: Listing::default(),
            config: RepoConfig::default(),
            holes: Vec::new(),
            facts: BTreeMap::new(),
            links: BTreeMap::new(),
            top,
        };
        let found = walk::paths(&ground.top);
        for dir in found.unreadable {
            ground.hole(&dir, "The directory cannot be read, and what it holds is unknown.");
        }
        let mut wanted = BTreeMap::new();
        for path in found.paths {
            ground.take(&path, &mut wanted);
        }
        ground.facts.extend(parse::all(&wanted));
        for (path, link) in read_by_links(&ground.listing, &ground.links) {
            let facts = match content(&ground.top.join(&path), 0) {
                Ok(bytes) => parse::all(&BTreeMap::from([(link.clone(), bytes)])).remove(&link).unwrap_or_default(),
                Err(what) => Arc::new(parse::hole(&what)),
            };
            ground.facts.insert(path, facts);
        }
        ground.read_config();
        Ok(ground)
    }

    /// The estate.
    pub fn survey(&self) -> Estate {
        let work = || survey(&self.listing, &self.facts, &self.links, &self.config);
        parse::deep(work).unwrap_or_else(|| {
            let what =
                "The tree could not be understood as a whole. This is a fault of tidegate; please tell its makers.";
            let hole = Hole { path: ".".to_owned(), line: 0, what: what.to_owned() };
            Estate { holes: vec![hole], ..Estate::default() }
        })
    }

    /// A path that somebody typed at `here`, from the top.
    pub fn inside(&self, here: &Path, typed: &Path) -> Result<String, LocalError> {
        let here = here.canonicalize().map_err(|error| LocalError::Unreadable(here.to_owned(), error))?;
        let mut path = PathBuf::new();
        for part in here.join(typed).components() {
            match part {
                Component::ParentDir => drop(path.pop()),
                Component::CurDir => {}
                part => path.push(part),
            }
        }
        let inside = path.strip_prefix(&self.top).map_err(|_| LocalError::Outside(path.clone(), self.top.clone()))?;
        let inside = inside.to_string_lossy().into_owned();
        Ok(if inside.is_empty() { ".".to_owned() } else { inside })
    }

    fn hole(&mut self, path: &Path, what: &str) {
        let path = if path.as_os_str().is_empty() { ".".to_owned() } else { path.to_string_lossy().into_owned() };
        self.holes.push(Hole { path, line: 0, what: what.to_owned() });
    }

    /// Takes one path into the listing, and its content when it matters.
    fn take(&mut self, path: &Path, wanted: &mut BTreeMap<String, Vec<u8>>) {
        let full = self.top.join(path);
        // In the index and not on the disk: deleted.
        let Ok(meta) = full.symlink_metadata() else { return };
        let name = path.to_string_lossy().into_owned();
        if path.to_str().is_none() {
            self.hole(path, "The name is no UTF-8; it is listed with marks in place of what cannot be shown.");
        }
        let kind = if meta.is_symlink() {
            match std::fs::read_link(&full) {
                Ok(target) => {
                    let target = String::from_utf8_lossy(target.as_os_str().as_bytes()).into_owned();
                    self.links.insert(name.clone(), target);
                }
                Err(_) => self.hole(path, "The link cannot be read, and where it leads is unknown."),
            }
            EntryKind::Link
        } else if meta.is_dir() {
            EntryKind::Submodule
        } else if meta.is_file() {
            if hcl::is_wanted(&name) {
                match content(&full, meta.len()) {
                    Ok(bytes) => drop(wanted.insert(name.clone(), bytes)),
                    Err(what) => drop(self.facts.insert(name.clone(), Arc::new(parse::hole(&what)))),
                }
            }
            EntryKind::File
        } else {
            self.hole(path, "It is neither file nor link nor directory, and is left out.");
            return;
        };
        self.listing.entries.insert(name.clone(), Entry { kind, blob: name, size: meta.len() });
    }

    fn read_config(&mut self) {
        if self.listing.entries.get(config::FILE).is_none_or(|entry| entry.kind != EntryKind::File) {
            return;
        }
        let path = self.top.join(config::FILE);
        let text =
            content(&path, 0).and_then(|bytes| String::from_utf8(bytes).map_err(|_| "It is no UTF-8.".to_owned()));
        match text.map(|text| config::parse(&text)) {
            Ok(Ok(config)) => self.config = config,
            Ok(Err(problems)) => self.holes.extend(problems.into_iter().map(|problem| Hole {
                path: config::FILE.to_owned(),
                line: problem.line,
                what: format!("{} The defaults are used.", problem.what),
            })),
            Err(what) => self.hole(Path::new(config::FILE), &format!("{what} The defaults are used.")),
        }
    }
}

/// The bytes of a file, or why there are none.
fn content(path: &Path, size: u64) -> Result<Vec<u8>, String> {
    let large = || "The file is larger than 4 MB; it was not read, and what it declares is unknown.".to_owned();
    if size > LARGEST {
        return Err(large());
    }
    let mut bytes = Vec::new();
    let read = std::fs::File::open(path).and_then(|file| file.take(LARGEST + 1).read_to_end(&mut bytes));
    match read {
        Err(error) => Err(format!("The file cannot be read ({error}), and what it declares is unknown.")),
        Ok(_) if bytes.len() as u64 > LARGEST => Err(large()),
        Ok(_) => Ok(bytes),
    }
}
