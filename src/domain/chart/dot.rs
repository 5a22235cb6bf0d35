//! The chart in Graphviz's language: arrows from source to reader, as applies go; probable edges are dashed.

use super::{Chart, ChartKind, plain};

/// A whole `digraph`.
pub fn dot(chart: &Chart) -> String {
    let mut lines = vec!["digraph estate {".to_owned(), "  rankdir=LR;".to_owned(), "  node [shape=box];".to_owned()];
    for root in &chart.roots {
        let style = if root.kind == ChartKind::Probable { " [style=dashed]" } else { "" };
        lines.push(format!("  {}{style};", quoted(&name(&root.dir, &root.workspace))));
    }
    let mut external: Vec<String> = Vec::new();
    for edge in &chart.edges {
        let style = if edge.certain { "" } else { ", style=dashed" };
        lines.push(format!(
            "  {} -> {} [label={}{style}];",
            quoted(&edge.source),
            quoted(&edge.reader),
            quoted(&edge.block)
        ));
    }
    for read in &chart.external {
        let state = quoted(read.state.as_deref().unwrap_or("a state that is not known"));
        external.push(format!("  {state} [shape=cylinder];"));
        external.push(format!("  {state} -> {} [label={}];", quoted(&read.reader), quoted(&read.block)));
    }
    external.sort();
    external.dedup();
    lines.extend(external);
    lines.push("}\n".to_owned());
    lines.join("\n")
}

/// The name under which edges know a root.
pub(super) fn name(dir: &str, workspace: &str) -> String {
    if workspace == "default" { dir.to_owned() } else { format!("{dir}:{workspace}") }
}

fn quoted(text: &str) -> String {
    // A backslash would begin an escape of the label.
    format!("\"{}\"", plain(text).replace('\\', "\\\\").replace('"', "\\\""))
}
