//! References to a state read in HCL's native syntax, found by the parser and replaced by their bytes: what the parser would print
//! differs from what people wrote, so nothing is printed.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use hcl_edit::Span;
use hcl_edit::expr::{Expression, Traversal, TraversalOperator};
use hcl_edit::structure::{Attribute, Block};
use hcl_edit::template::ForTemplateExpr;
use hcl_edit::visit::{self, Visit};

/// One reference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Hit {
    /// The three names.
    pub(super) span: Range<usize>,
    /// The block's name.
    pub(super) block: String,
}

/// The text with its references replaced; `None` when there is none.
pub(super) fn rewrite(text: &str, blocks: &BTreeSet<&str>) -> Result<Option<String>, String> {
    // What names no such block has nothing to replace, however odd the rest of it is.
    if !text.contains("terraform_remote_state") {
        return Ok(None);
    }
    let body = text.strip_prefix('\u{feff}').unwrap_or(text);
    let shift = text.len() - body.len();
    let parsed = hcl_edit::parser::parse_body(body).map_err(|error| message(&error))?;
    let mut finder = Finder::new(blocks);
    finder.visit_body(&parsed);
    let mut hits = finder.hits();
    hits.iter_mut().for_each(|hit| hit.span = hit.span.start + shift..hit.span.end + shift);
    Ok((!hits.is_empty()).then(|| super::splice(text, &hits)))
}

/// The references in one template; spans are within it.
pub(super) fn of_template(template: &str, blocks: &BTreeSet<&str>) -> Result<Vec<Hit>, String> {
    let parsed = hcl_edit::parser::parse_template(template).map_err(|error| message(&error))?;
    let mut finder = Finder::new(blocks);
    finder.visit_template(&parsed);
    Ok(finder.hits())
}

fn message(error: &hcl_edit::parser::Error) -> String {
    let line = error.location().line();
    format!("line {line}: {}", error.message().lines().map(str::trim).collect::<Vec<_>>().join(" "))
}

struct Finder<'a> {
    blocks: &'a BTreeSet<&'a str>,
    found: BTreeMap<usize, Hit>,
    /// How many blocks are around.
    depth: usize,
}

impl<'a> Finder<'a> {
    fn new(blocks: &'a BTreeSet<&'a str>) -> Self {
        Self { blocks, found: BTreeMap::new(), depth: 0 }
    }

    fn hits(self) -> Vec<Hit> {
        self.found.into_values().collect()
    }

    fn hit(&self, traversal: &Traversal) -> Option<Hit> {
        let Expression::Variable(head) = &traversal.expr else { return None };
        let [kind, name, rest @ ..] = traversal.operators.as_slice() else { return None };
        let (TraversalOperator::GetAttr(kind), TraversalOperator::GetAttr(block)) = (&**kind, &**name) else {
            return None;
        };
        let reads = head.as_str() == "data" && kind.as_str() == "terraform_remote_state";
        if !reads || !self.blocks.contains(block.as_str()) {
            return None;
        }
        // Its other attributes, `config` say, are no planned values: they stay with the block.
        let is_of_outputs = match rest.first().map(|step| &**step) {
            None | Some(TraversalOperator::AttrSplat(_) | TraversalOperator::FullSplat(_)) => true,
            Some(TraversalOperator::GetAttr(step)) => step.as_str() == "outputs",
            Some(TraversalOperator::Index(Expression::String(step))) => step.as_str() == "outputs",
            Some(_) => false,
        };
        let span = traversal.expr.span()?.start..name.span()?.end;
        is_of_outputs.then(|| Hit { span, block: block.as_str().to_owned() })
    }
}

impl Visit for Finder<'_> {
    fn visit_block(&mut self, node: &Block) {
        self.depth += 1;
        visit::visit_block(self, node);
        self.depth -= 1;
    }

    fn visit_attr(&mut self, node: &Attribute) {
        // `depends_on` names blocks, and a local is none. Deeper in, an argument of that name is a value like any other.
        if self.depth > 1 || node.key.as_str() != "depends_on" {
            visit::visit_attr(self, node);
        }
    }

    fn visit_traversal(&mut self, node: &Traversal) {
        if let Some(hit) = self.hit(node) {
            self.found.insert(hit.span.start, hit);
        }
        visit::visit_traversal(self, node);
    }

    /// The library's own walk leaves out what a `%{ for }` runs over.
    fn visit_for_template_expr(&mut self, node: &ForTemplateExpr) {
        self.visit_expr(&node.collection_expr);
        visit::visit_for_template_expr(self, node);
    }
}
