//! The chart in Mermaid's language, as forges draw it in Markdown: nodes have numbers, so that no name can break the drawing.

use std::collections::BTreeMap;

use super::dot::name;
use super::{Chart, ChartKind, plain};

/// A whole `flowchart`.
pub fn mermaid(chart: &Chart) -> String {
    let mut lines = vec!["flowchart LR".to_owned()];
    let mut ids: BTreeMap<String, String> = BTreeMap::new();
    for (at, root) in chart.roots.iter().enumerate() {
        let (name, id) = (name(&root.dir, &root.workspace), format!("r{at}"));
        lines.push(format!("  {id}[\"{}\"]", label(&name)));
        if root.kind == ChartKind::Probable {
            lines.push(format!("  style {id} stroke-dasharray: 4"));
        }
        ids.insert(name, id);
    }
    let id = |name: &String| ids.get(name).cloned().unwrap_or_else(|| "unknown".to_owned());
    for edge in &chart.edges {
        let arrow = if edge.certain { "-->" } else { "-.->" };
        lines.push(format!("  {} {arrow} {}", id(&edge.source), id(&edge.reader)));
    }
    let mut states: BTreeMap<&str, usize> = BTreeMap::new();
    for read in &chart.external {
        let next = states.len();
        let state = read.state.as_deref().unwrap_or("a state that is not known");
        let at = *states.entry(state).or_insert(next);
        if at == next {
            lines.push(format!("  x{at}[(\"{}\")]", label(state)));
        }
        lines.push(format!("  x{at} --> {}", id(&read.reader)));
    }
    // One line per pair is enough, however many blocks read.
    let mut seen = std::collections::BTreeSet::new();
    lines.retain(|line| seen.insert(line.clone()));
    lines.push(String::new());
    lines.join("\n")
}

fn label(text: &str) -> String {
    let mut out = String::new();
    for letter in plain(text).chars() {
        match letter {
            '"' => out.push_str("#quot;"),
            '#' | '<' | '>' | '&' | '`' | '\\' | ';' => {
                out.push('#');
                out.push_str(&u32::from(letter).to_string());
                out.push(';');
            }
            letter => out.push(letter),
        }
    }
    out
}
