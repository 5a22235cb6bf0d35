//! What a tree holds before anybody asks for roots: its modules by directory, its value files, its links. It evaluates nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::Hole;
use super::evaluate::{Here, Tree};
use super::module::{File, Module};
use super::path::{self, Links};
use crate::domain::config::{RepoConfig, ToolKind};
use crate::domain::hcl::{self, Expr, FileFacts, ModuleCall};
use crate::domain::tree::{EntryKind, Listing};

/// Modules, value files and links of a tree; what the walks over an estate need beside its lists.
#[derive(Clone, Debug, Default)]
pub struct Ground {
    pub(super) modules: Arc<BTreeMap<String, Module>>,
    pub(super) values: Arc<BTreeMap<String, Vec<File>>>,
    pub(super) links: Arc<Links>,
    /// Files that Terragrunt may read, by path.
    pub(super) terragrunt: Arc<BTreeMap<String, Arc<FileFacts>>>,
}

/// Files that are read only because a link with the name of a configuration or value file leads to them: each with that link.
pub fn read_by_links(listing: &Listing, blobs: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let named = listing.entries.iter().filter(|(path, entry)| entry.kind == EntryKind::Link && hcl::is_wanted(path));
    let named: Vec<&String> = named.map(|(path, _)| path).collect();
    if named.is_empty() {
        return BTreeMap::new();
    }
    let links = Links::new(listing, blobs);
    let target = |link: &String| Some((links.resolve(link)?, link.clone()));
    let is_left_out = |path: &str| {
        !hcl::is_wanted(path) && listing.entries.get(path).is_some_and(|entry| entry.kind == EntryKind::File)
    };
    named.into_iter().filter_map(target).filter(|(path, _)| is_left_out(path)).collect()
}

/// A source as text; OpenTofu allows variables and locals in it.
fn source_text(module: &Module, source: &Expr) -> Option<String> {
    let constant = source.as_text().map(str::to_owned);
    constant
        .or_else(|| Tree::new(module, BTreeMap::new(), "default", &|_, _| None).eval(source, Here::of(0)).as_known())
}

impl Ground {
    pub(super) fn new(
        listing: &Listing,
        facts: &BTreeMap<String, Arc<FileFacts>>,
        blobs: &BTreeMap<String, String>,
        config: &RepoConfig,
        holes: &mut Vec<Hole>,
    ) -> Self {
        let links = Links::new(listing, blobs);
        let mut files: BTreeMap<String, Vec<File>> = BTreeMap::new();
        let mut values: BTreeMap<String, Vec<File>> = BTreeMap::new();
        let mut terragrunt: BTreeMap<String, Arc<FileFacts>> = BTreeMap::new();
        for (path, entry) in &listing.entries {
            let configuration = hcl::is_configuration(path);
            let dir = path::parent(path);
            let other_tool = hcl::is_tofu(path) && config.for_root(dir).tool == Some(ToolKind::Terraform);
            if entry.kind == EntryKind::Submodule || other_tool || !hcl::is_wanted(path) {
                continue;
            }
            let real = if entry.kind == EntryKind::Link { links.resolve(path) } else { Some(path.clone()) };
            let target = real.as_deref().and_then(|real| listing.entries.get(real));
            // A directory behind a link with such a name is no file.
            if target.is_none() && real.as_deref().is_some_and(|real| listing.has_dir(real)) {
                continue;
            }
            let found = target.and_then(|target| facts.get(&target.blob));
            let file = found.cloned().unwrap_or_else(|| {
                let what = if target.is_none() {
                    "The link leads to nothing, so the tools cannot read it."
                } else {
                    "The file was not read, so what it declares is unknown."
                };
                holes.push(Hole { path: path.clone(), line: 0, what: what.to_owned() });
                let hole = hcl::FileHole { line: 0, what: what.to_owned() };
                Arc::new(FileFacts { holes: vec![hole], ..FileFacts::default() })
            });
            let old_unit = path.ends_with(super::terragrunt::OLD_FILE) && !file.units.is_empty();
            if hcl::is_terragrunt(path) || old_unit {
                terragrunt.insert(path.clone(), Arc::clone(&file));
            }
            if !configuration && !hcl::is_values(path) {
                continue;
            }
            let kind = if configuration { &mut files } else { &mut values };
            kind.entry(dir.to_owned()).or_default().push((path.clone(), file));
        }
        let modules = files.iter().map(|(dir, files)| {
            let mut module = Module::new(dir, files);
            module.only_targets = files.iter().all(|(path, _)| links.is_target(path));
            (dir.clone(), module)
        });
        Self {
            modules: Arc::new(modules.collect()),
            values: Arc::new(values),
            links: Arc::new(links),
            terragrunt: Arc::new(terragrunt),
        }
    }

    /// The module that a call's source names, when it is local and there.
    pub(super) fn called(&self, dir: &str, source: &str) -> Option<&Module> {
        self.modules.get(&self.source_dir(dir, source)?)
    }

    /// The module that a call names, as far as its own directory's defaults and locals say it.
    pub(super) fn child(&self, module: &Module, call: &ModuleCall) -> Option<&Module> {
        self.called(&module.dir, &source_text(module, call.source.as_ref()?)?)
    }

    fn source_dir(&self, dir: &str, source: &str) -> Option<String> {
        let local = source.starts_with("./") || source.starts_with("../") || source == "." || source == "..";
        if local { self.links.resolve(&path::join(dir, source)) } else { None }
    }

    /// Directories of the local modules called from a directory, through any depth, without itself.
    pub(super) fn closure(&self, dir: &str) -> BTreeSet<String> {
        let mut seen = BTreeSet::new();
        let mut open = vec![dir.to_owned()];
        while let Some(at) = open.pop() {
            let Some(module) = self.modules.get(&at) else { continue };
            for call in module.calls.values() {
                let source = call.source.as_ref().and_then(|source| source_text(module, source));
                if let Some(child) = source.and_then(|source| self.source_dir(&at, &source))
                    && child != dir
                    && seen.insert(child.clone())
                {
                    open.push(child);
                }
            }
        }
        seen
    }

    /// The value files of a directory.
    pub(super) fn values_in(&self, dir: &str) -> &[File] {
        self.values.get(dir).map(Vec::as_slice).unwrap_or_default()
    }

    /// What a value file sets, links followed.
    pub(super) fn values_at(&self, path: &str) -> Option<&File> {
        let find = |path: &str| self.values.get(path::parent(path))?.iter().find(|(known, _)| known == path);
        find(path).or_else(|| find(&self.links.resolve(path)?))
    }
}
