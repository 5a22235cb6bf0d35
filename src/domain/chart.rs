//! An estate drawn for people and programs: the value behind `tidegate graph`, and its forms. It reads nothing and runs nothing;
//! names of a stranger's repository are escaped in every form.

use serde::Serialize;

use super::config::{FILE, RepoConfig};
use super::estate::{Estate, Hole, RootKind};
use super::ids::RootKey;

mod dot;
mod explain;
mod json;
mod mermaid;
mod text;

pub use dot::dot;
pub use explain::explain;
pub use json::json;
pub use mermaid::mermaid;
pub use text::text;

/// The version of the JSON form.
pub const VERSION: u32 = 1;

/// Roots, edges and waves of an estate, every list sorted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Chart {
    /// [`VERSION`].
    pub version: u32,
    /// Every root, certain and probable.
    pub roots: Vec<ChartRoot>,
    /// Reader to source.
    pub edges: Vec<ChartEdge>,
    /// Reads of a state that no root here owns.
    pub external: Vec<ChartRead>,
    /// Layers of all roots that are planned, first to apply first.
    pub waves: Vec<Vec<String>>,
    /// Namings of backend files that probable edges rest on.
    pub conventions: Vec<ChartConvention>,
    /// States that several roots write.
    pub shared_states: Vec<SharedState>,
    /// What could not be read or evaluated.
    pub holes: Vec<ChartHole>,
}

/// A root.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ChartRoot {
    /// Its directory.
    pub dir: String,
    /// Its workspace.
    pub workspace: String,
    /// `s3`, `local`, `cloud`, …; `none` for a probable root.
    pub backend: String,
    /// Planned, or only listed.
    pub kind: ChartKind,
    /// The state it owns, when the code says it.
    pub state: Option<String>,
    /// `terragrunt` for a unit of Terragrunt, which is drawn and not planned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

/// Whether a root is planned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ChartKind {
    /// Planned.
    Certain,
    /// Only listed.
    Probable,
}

/// A read of another root's state.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct ChartEdge {
    /// Who reads: `dir`, or `dir:workspace`.
    pub reader: String,
    /// Whose state.
    pub source: String,
    /// The block that reads.
    pub block: String,
    /// Written out on both sides, or by what is known.
    pub certain: bool,
    /// The outputs that it uses; `null` when the whole object is used.
    pub outputs: Option<Vec<String>>,
    /// The state that both sides mean, when the owner's is known.
    pub state: Option<String>,
}

/// A read of a state that no root here owns.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct ChartRead {
    /// Who reads.
    pub reader: String,
    /// The block that reads.
    pub block: String,
    /// The state, when the code says it.
    pub state: Option<String>,
}

/// A naming of backend files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ChartConvention {
    /// Seen from a root's directory.
    pub pattern: String,
    /// How many roots follow it.
    pub roots: usize,
    /// One of the files.
    pub example: String,
}

/// A state with several owners.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SharedState {
    /// The state.
    pub state: String,
    /// Who writes it.
    pub roots: Vec<String>,
}

/// Something that could not be read or evaluated.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct ChartHole {
    /// Where.
    pub file: String,
    /// 1-based; 0 for the whole file.
    pub line: usize,
    /// What and why.
    pub what: String,
}

impl Chart {
    /// Draws an estate. `more` are holes that were found while the tree was read.
    pub fn of(estate: &Estate, config: &RepoConfig, more: &[Hole]) -> Self {
        let holes = estate.holes.iter().chain(more);
        let mut holes: Vec<ChartHole> =
            holes.map(|hole| ChartHole { file: hole.path.clone(), line: hole.line, what: hole.what.clone() }).collect();
        holes.extend(estate.strangers(config).into_iter().map(|stranger| {
            let near = stranger.near.map(|near| format!(" Did you mean `{near}`?")).unwrap_or_default();
            let what = format!("`{}` names `{}`, which is no root here.{near}", stranger.setting, stranger.name);
            ChartHole { file: FILE.to_owned(), line: 0, what }
        }));
        let waves = waves(estate, config, &mut holes);
        holes.sort();
        holes.dedup();
        let mut edges: Vec<ChartEdge> = estate.edges.iter().map(|edge| chart_edge(estate, edge)).collect();
        edges.sort();
        edges.dedup();
        let mut external: Vec<ChartRead> = estate
            .external
            .iter()
            .map(|read| ChartRead {
                reader: read.reader.to_string(),
                block: read.block.clone(),
                state: read.state.as_ref().map(ToString::to_string),
            })
            .collect();
        external.sort();
        external.dedup();
        let shared = estate.shared_states.iter().map(|(state, roots)| SharedState {
            state: state.to_string(),
            roots: roots.iter().map(RootKey::to_string).collect(),
        });
        let conventions = estate.conventions.iter().map(|said| ChartConvention {
            pattern: said.pattern.clone(),
            roots: said.roots,
            example: said.example.clone(),
        });
        Self {
            version: VERSION,
            conventions: conventions.collect(),
            roots: estate.roots.iter().map(chart_root).collect(),
            edges,
            external,
            waves,
            shared_states: shared.collect(),
            holes,
        }
    }
}

fn chart_root(root: &super::estate::Root) -> ChartRoot {
    ChartRoot {
        dir: root.key.dir().to_owned(),
        workspace: root.key.workspace().to_owned(),
        backend: root.backend.clone(),
        kind: match root.kind {
            RootKind::Certain | RootKind::Unit => ChartKind::Certain,
            RootKind::Probable => ChartKind::Probable,
        },
        state: root.state_known.then(|| root.state.to_string()),
        by: (root.kind == RootKind::Unit).then(|| "terragrunt".to_owned()),
    }
}

fn chart_edge(estate: &Estate, edge: &super::estate::Edge) -> ChartEdge {
    let source = estate.root(&edge.source).filter(|root| root.state_known);
    ChartEdge {
        reader: edge.reader.to_string(),
        source: edge.source.to_string(),
        block: edge.block.clone(),
        certain: edge.certain,
        outputs: edge.outputs.clone(),
        state: source.map(|root| root.state.to_string()),
    }
}

/// The layers of everything that is planned. A cycle by `waves.after` is a hole, and the order then that of the reads alone.
fn waves(estate: &Estate, config: &RepoConfig, holes: &mut Vec<ChartHole>) -> Vec<Vec<String>> {
    let certain = estate.roots.iter().filter(|root| root.kind != RootKind::Probable);
    let keys = certain.map(|root| root.key.clone()).collect();
    let layers = estate.layers(&keys, config).or_else(|cycle| {
        let path: Vec<String> = cycle.iter().map(|root| format!("`{root}`")).collect();
        let what = format!(
            "`waves.after` puts these roots after one another: {}. The waves here leave it aside; take one of them out.",
            path.join(" → ")
        );
        holes.push(ChartHole { file: FILE.to_owned(), line: 0, what });
        let reads_only = RepoConfig { waves: super::config::Waves::default(), ..config.clone() };
        estate.layers(&keys, &reads_only)
    });
    let layers = layers.unwrap_or_default();
    layers.iter().map(|layer| layer.iter().map(RootKey::to_string).collect()).collect()
}

/// One line of text for a terminal: control characters, and those that turn text around, are written out.
fn plain(text: &str) -> String {
    let turns =
        |letter: char| matches!(letter, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    text.chars()
        .flat_map(|letter| {
            let shown: Box<dyn Iterator<Item = char>> = if letter.is_control() || turns(letter) {
                Box::new(letter.escape_unicode())
            } else {
                Box::new(std::iter::once(letter))
            };
            shown
        })
        .collect()
}

/// `1 root`, `2 roots`.
fn counted(count: usize, one: &str) -> String {
    if count == 1 { format!("1 {one}") } else { format!("{count} {one}s") }
}

#[cfg(test)]
mod tests;
