//! Tidegate on one's own machine, without a server: `graph`, `explain` and `plan` over a working directory. `graph` and `explain` run
//! nothing of the repository; nothing here ever writes into it.

use std::path::{Path, PathBuf};

use crate::domain::chart::{self, Chart};

mod parse;
pub mod plan;
mod tree;
mod walk;
mod worktree;

pub use tree::Ground;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum LocalError {
    /// The directory cannot be read.
    #[error("`{0}` cannot be read: {1}. Name a directory that exists and that you may read.")]
    Unreadable(PathBuf, std::io::Error),
    /// The path lies elsewhere.
    #[error("`{0}` lies outside `{1}`. Name a path within it, or go to the repository that holds it.")]
    Outside(PathBuf, PathBuf),
    /// `plan` needs git.
    #[error("{0}")]
    Git(String),
    /// The configuration is wrong.
    #[error("`.tidegate.yaml` cannot be used: {0}")]
    Config(String),
    /// Something on this machine.
    #[error("{0}: {1}")]
    Io(&'static str, std::io::Error),
}

/// `1 changed file`.
fn files(count: usize) -> String {
    if count == 1 { "1 changed file".to_owned() } else { format!("{count} changed files") }
}

/// How a graph is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// For people.
    #[default]
    Text,
    /// For programs.
    Json,
    /// For Graphviz.
    Dot,
    /// For Markdown.
    Mermaid,
}

/// The graph of `dir`: by default of the repository around `here`.
pub fn graph(here: &Path, dir: Option<&Path>, format: Format) -> Result<String, LocalError> {
    let ground = match dir {
        Some(dir) => Ground::of(&here.join(dir))?,
        None => Ground::around(here)?,
    };
    let estate = ground.survey();
    let chart = Chart::of(&estate, &ground.config, &ground.holes);
    Ok(match format {
        Format::Text => chart::text(&chart),
        Format::Json => chart::json(&chart),
        Format::Dot => chart::dot(&chart),
        Format::Mermaid => chart::mermaid(&chart),
    })
}

/// What a change of `path` would reach, and why.
pub fn explain(here: &Path, path: &Path) -> Result<String, LocalError> {
    let ground = Ground::around(here)?;
    let inside = ground.inside(here, path)?;
    Ok(chart::explain(&ground.survey(), &ground.config, &ground.listing, &inside))
}
