//! Which tool plans a root, and in which version: settings first, then what the repository says where tools look for it. It
//! looks at texts alone; what is installed is the job's matter.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::config::{RootSettings, ToolKind};
use super::estate::Estate;
use super::event::Inspection;
use super::hcl;
use super::tree::{EntryKind, Listing};

mod version;

pub use version::{Constraint, Version};

/// The files that people's own version managers read.
const FILES: [(&str, Option<ToolKind>); 3] = [
    (".terraform-version", Some(ToolKind::Terraform)),
    (".opentofu-version", Some(ToolKind::Tofu)),
    (".tool-versions", None),
];

/// Who asks for a version, so that an error can say where to change it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AskedBy {
    /// `version:` in the settings.
    #[default]
    Settings,
    /// A version file of this path.
    File(String),
    /// `required_version` of the root's `.tf` files, which speaks to Terraform.
    RequiredVersion,
    /// The saved plan, which only the version that made it applies.
    Plan,
}

/// The tool of a root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolChoice {
    /// Which; `None` leaves it to what is installed, Terraform first.
    pub kind: Option<ToolKind>,
    /// An exact version or a constraint; `None` takes any.
    pub version: Option<String>,
    /// Who asks for that version.
    pub asked_by: AskedBy,
}

/// What a root says of its tool.
#[derive(Clone, Copy, Debug)]
pub struct Said<'a> {
    /// Its directory.
    pub dir: &'a str,
    /// Its settings.
    pub settings: &'a RootSettings,
    /// Whether `.tofu` files lie in its directory.
    pub syntax: Syntax,
    /// `required_version` of its `.tf` files.
    pub required_version: Option<&'a str>,
}

/// Which tools can read a root's directory as it is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Syntax {
    /// `.tf` alone: either.
    Both,
    /// It has `.tofu` files, which Terraform does not see.
    TofuAlone,
}

/// Whether a path is a version file of one of the tools alone. A `.tool-versions` speaks of much else: its change is heard when
/// a root is planned, but plans none.
pub fn is_version_file(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    FILES.iter().any(|(file, of)| of.is_some() && *file == name)
}

/// Chooses. `files` are the version files of the repository: path and text.
pub fn choose(said: &Said<'_>, files: &BTreeMap<String, String>) -> ToolChoice {
    let nearest = |kind| ancestors(said.dir).find_map(|dir| wish(dir, kind, files));
    let kind = said.settings.tool.or_else(|| match said.syntax {
        Syntax::TofuAlone => Some(ToolKind::Tofu),
        Syntax::Both => ancestors(said.dir).find_map(|dir| kind_of(dir, files)),
    });
    if let Some(version) = &said.settings.version {
        return ToolChoice { kind, version: Some(version.clone()), asked_by: AskedBy::Settings };
    }
    if let Some((version, path)) = kind.and_then(nearest) {
        return ToolChoice { kind, version: Some(version), asked_by: AskedBy::File(path) };
    }
    // OpenTofu itself passes over a `required_version` that stands in a `.tf` file.
    let required = said.required_version.filter(|_| kind != Some(ToolKind::Tofu));
    let asked_by = if required.is_some() { AskedBy::RequiredVersion } else { AskedBy::Settings };
    ToolChoice { kind, version: required.map(str::to_owned), asked_by }
}

/// The version files above the reached roots: what [`settle`] needs to read.
pub fn files_of(inspection: &Inspection, listing: &Listing) -> Vec<String> {
    let dirs = inspection.roots.iter().flat_map(|root| ancestors(root.root.dir()));
    let mut paths: Vec<String> = dirs.flat_map(|dir| FILES.map(|(name, _)| join(dir, name))).collect();
    paths.sort();
    paths.dedup();
    let is_file = |path: &String| listing.entries.get(path).is_some_and(|entry| entry.kind != EntryKind::Submodule);
    paths.retain(is_file);
    paths
}

/// Puts the choice into the settings of every reached root.
pub fn settle(inspection: &mut Inspection, estate: &Estate, listing: &Listing, files: &BTreeMap<String, String>) {
    for inspected in &mut inspection.roots {
        let dir = inspected.root.dir();
        let choice = choose(
            &Said {
                dir,
                settings: &inspected.settings,
                syntax: syntax_of(dir, listing),
                required_version: estate.root(&inspected.root).and_then(|root| root.required_version.as_deref()),
            },
            files,
        );
        inspected.settings.tool = choice.kind;
        inspected.settings.version = choice.version;
        inspected.settings.asked_by = choice.asked_by;
    }
}

/// Whether configuration lies in the directory that OpenTofu alone reads.
fn syntax_of(dir: &str, listing: &Listing) -> Syntax {
    let prefix = if dir == "." { String::new() } else { format!("{dir}/") };
    let below = listing.entries.range(prefix.clone()..).map(|(path, _)| path.as_str());
    let mut names = below.map_while(|path| path.strip_prefix(prefix.as_str())).filter(|name| !name.contains('/'));
    if names.any(|name| hcl::is_configuration(name) && hcl::is_tofu(name)) { Syntax::TofuAlone } else { Syntax::Both }
}

/// The directory and those above it, up to the top as `.`.
fn ancestors(dir: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(dir), |dir| match *dir {
        "." => None,
        dir => Some(dir.rsplit_once('/').map_or(".", |(above, _)| above)),
    })
}

fn join(dir: &str, name: &str) -> String {
    if dir == "." { name.to_owned() } else { format!("{dir}/{name}") }
}

/// The tool that a directory's version files mean, when they mean one.
fn kind_of(dir: &str, files: &BTreeMap<String, String>) -> Option<ToolKind> {
    let terraform = speaks_of(dir, ToolKind::Terraform, files);
    let tofu = speaks_of(dir, ToolKind::Tofu, files);
    match (terraform, tofu) {
        // Files for both: Terraform first, as everywhere where nothing decides.
        (true, _) => Some(ToolKind::Terraform),
        (false, true) => Some(ToolKind::Tofu),
        (false, false) => None,
    }
}

fn speaks_of(dir: &str, kind: ToolKind, files: &BTreeMap<String, String>) -> bool {
    FILES.iter().any(|(name, of)| {
        let Some(text) = files.get(&join(dir, name)) else { return false };
        match of {
            Some(of) => *of == kind,
            None => tool_line(text, kind).is_some(),
        }
    })
}

/// The version that a directory's files ask of a tool, and the file.
fn wish(dir: &str, kind: ToolKind, files: &BTreeMap<String, String>) -> Option<(String, String)> {
    FILES.iter().filter(|(_, of)| of.is_none_or(|of| of == kind)).find_map(|(name, of)| {
        let path = join(dir, name);
        let text = files.get(&path)?;
        let version = if of.is_some() { first_word(text) } else { tool_line(text, kind) }?;
        is_wish(version).then(|| (version.to_owned(), path))
    })
}

/// The first line that says something.
fn first_word(text: &str) -> Option<&str> {
    text.trim_start_matches('\u{feff}').lines().map(uncommented).find(|line| !line.is_empty())
}

/// `terraform 1.5.7` of a `.tool-versions`; of several versions the first counts.
fn tool_line(text: &str, kind: ToolKind) -> Option<&str> {
    let name = match kind {
        ToolKind::Terraform => "terraform",
        ToolKind::Tofu => "opentofu",
    };
    text.trim_start_matches('\u{feff}').lines().find_map(|line| {
        let mut words = uncommented(line).split_whitespace();
        (words.next() == Some(name)).then(|| words.next()).flatten()
    })
}

fn uncommented(line: &str) -> &str {
    line.split_once('#').map_or(line, |(before, _)| before).trim()
}

/// `latest`, `min-required` and their like leave the version open; anything else is a wish, also a wrong one, which the job
/// then refuses by name.
fn is_wish(version: &str) -> bool {
    let open = ["latest", "min-required", "system"];
    !open.iter().any(|word| version == *word || version.starts_with(&format!("{word}:")))
        && version != "latest-allowed"
        && version != "latest-stable"
}

#[cfg(test)]
mod tests;
