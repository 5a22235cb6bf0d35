//! An expression as a value of our own: small, serialisable, independent of the parser's tree. It is never evaluated here.

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use hcl_edit::expr::{Expression, ObjectKey, TraversalOperator};
use hcl_edit::template::{Directive, Element, Strip, Template};

/// A reference by its names, `["data", "terraform_remote_state", "net", "outputs", "vpc_id"]`; an unknown key or a splat is `*`.
pub type Reference = Vec<String>;

/// An expression.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Expr {
    /// A constant.
    Literal(Json),
    /// Parts of a string, joined.
    Template(Vec<Expr>),
    /// A name: `var`, `local`, a variable of a `for`.
    Name(String),
    /// Something with steps behind it.
    Traversal(Box<Expr>, Vec<Step>),
    /// A function call.
    Call(Call),
    /// An object.
    Object(Vec<(Expr, Expr)>),
    /// A list.
    List(Vec<Expr>),
    /// Condition, then, else.
    If(Box<(Expr, Expr, Expr)>),
    /// A `for` expression.
    For(Box<ForExpr>),
    /// An operator between two.
    Binary(String, Box<(Expr, Expr)>),
    /// An operator before one.
    Unary(String, Box<Expr>),
    /// What is not evaluated; its parts still refer to things.
    Unsupported(Vec<Expr>),
}

/// A step of a traversal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// `.name`
    Attr(String),
    /// `[key]`
    Index(Expr),
    /// `.*` or `[*]`
    Splat,
}

/// A function call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Call {
    /// The function, namespaces in front.
    pub name: String,
    /// Its arguments.
    pub args: Vec<Expr>,
    /// The last argument is spread (`...`).
    pub spread: bool,
}

/// A `for` expression.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ForExpr {
    /// The key's name.
    pub key_name: Option<String>,
    /// The value's name.
    pub value_name: String,
    /// What it runs over.
    pub over: Expr,
    /// The key of an object; `None` makes a list.
    pub key: Option<Expr>,
    /// The value.
    pub value: Expr,
    /// The condition.
    pub when: Option<Expr>,
    /// Values with one key are grouped (`...`).
    pub grouped: bool,
}

impl Expr {
    /// The text of a constant string.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Expr::Literal(Json::String(text)) => Some(text),
            _ => None,
        }
    }

    /// The path of a plain reference whose every step is known or `*`.
    pub fn as_reference(&self) -> Option<Reference> {
        match self {
            Expr::Name(name) => Some(vec![name.clone()]),
            Expr::Traversal(base, steps) => {
                let Expr::Name(name) = base.as_ref() else { return None };
                Some(std::iter::once(name.clone()).chain(steps.iter().map(Step::key)).collect())
            }
            _ => None,
        }
    }

    /// All references in it, those within unknown keys included.
    pub fn references(&self) -> Vec<Reference> {
        let mut found = Vec::new();
        self.visit(&mut |expr| {
            if let Some(path) = expr.as_reference() {
                found.push(path);
            }
        });
        found.sort();
        found.dedup();
        found
    }

    /// The same expression with each of its parts changed, the innermost first.
    pub fn map(self, change: &mut impl FnMut(Expr) -> Expr) -> Expr {
        let mut all = |parts: Vec<Expr>| -> Vec<Expr> { parts.into_iter().map(|part| part.map(change)).collect() };
        let mapped = match self {
            Expr::Literal(_) | Expr::Name(_) => self,
            Expr::Template(parts) => Expr::Template(all(parts)),
            Expr::List(parts) => Expr::List(all(parts)),
            Expr::Unsupported(parts) => Expr::Unsupported(all(parts)),
            Expr::Call(call) => Expr::Call(Call { args: all(call.args), ..call }),
            Expr::Traversal(base, steps) => {
                let mut step = |step| if let Step::Index(key) = step { Step::Index(key.map(change)) } else { step };
                let steps = steps.into_iter().map(&mut step).collect();
                // The name at the head is no expression of its own.
                let base = if matches!(*base, Expr::Name(_)) { base } else { Box::new(base.map(change)) };
                Expr::Traversal(base, steps)
            }
            Expr::Object(entries) => {
                let mut entry = |(key, value): (Expr, Expr)| (key.map(change), value.map(change));
                Expr::Object(entries.into_iter().map(&mut entry).collect())
            }
            Expr::If(parts) => Expr::If(Box::new((parts.0.map(change), parts.1.map(change), parts.2.map(change)))),
            Expr::Binary(operator, sides) => {
                Expr::Binary(operator, Box::new((sides.0.map(change), sides.1.map(change))))
            }
            Expr::Unary(operator, inner) => Expr::Unary(operator, Box::new(inner.map(change))),
            Expr::For(each) => Expr::For(Box::new(ForExpr {
                over: each.over.map(change),
                key: each.key.map(|key| key.map(change)),
                value: each.value.map(change),
                when: each.when.map(|when| when.map(change)),
                ..*each
            })),
        };
        change(mapped)
    }

    /// Calls `see` on every expression; the name at the head of a reference is not seen apart from it.
    pub fn visit<'a>(&'a self, see: &mut impl FnMut(&'a Expr)) {
        see(self);
        match self {
            Expr::Literal(_) | Expr::Name(_) => {}
            Expr::Template(parts) | Expr::List(parts) | Expr::Unsupported(parts) => {
                parts.iter().for_each(|part| part.visit(see));
            }
            Expr::Traversal(base, steps) => {
                if !matches!(base.as_ref(), Expr::Name(_)) {
                    base.visit(see);
                }
                for step in steps {
                    if let Step::Index(key) = step {
                        key.visit(see);
                    }
                }
            }
            Expr::Call(call) => call.args.iter().for_each(|arg| arg.visit(see)),
            Expr::Object(entries) => entries.iter().for_each(|(key, value)| {
                key.visit(see);
                value.visit(see);
            }),
            Expr::If(parts) => {
                parts.0.visit(see);
                parts.1.visit(see);
                parts.2.visit(see);
            }
            Expr::For(each) => {
                each.over.visit(see);
                each.value.visit(see);
                each.key.iter().chain(&each.when).for_each(|part| part.visit(see));
            }
            Expr::Binary(_, sides) => {
                sides.0.visit(see);
                sides.1.visit(see);
            }
            Expr::Unary(_, inner) => inner.visit(see),
        }
    }
}

impl Step {
    fn key(&self) -> String {
        match self {
            Step::Attr(name) => name.clone(),
            Step::Index(Expr::Literal(Json::String(key))) => key.clone(),
            Step::Index(Expr::Literal(Json::Number(key))) => key.to_string(),
            Step::Index(_) | Step::Splat => "*".to_owned(),
        }
    }
}

/// Takes over the parser's expression.
pub(super) fn from_hcl(expr: &Expression) -> Expr {
    match expr {
        Expression::Null(_) => Expr::Literal(Json::Null),
        Expression::Bool(value) => Expr::Literal(Json::Bool(*value.value())),
        Expression::Number(number) => {
            let text = number.value().to_string();
            serde_json::from_str(&text).map_or_else(|_| Expr::Unsupported(Vec::new()), Expr::Literal)
        }
        Expression::String(text) => Expr::Literal(Json::String(text.value().clone())),
        Expression::Array(items) => Expr::List(items.iter().map(from_hcl).collect()),
        Expression::Object(object) => {
            Expr::Object(object.iter().map(|(key, value)| (object_key(key), from_hcl(value.expr()))).collect())
        }
        Expression::StringTemplate(template) => from_elements(template.iter()),
        // The parser has taken the indentation away and kept the last line break, as the tools do.
        Expression::HeredocTemplate(heredoc) => from_template(&heredoc.template),
        Expression::Parenthesis(inner) => from_hcl(inner.inner()),
        Expression::Variable(name) => Expr::Name(name.as_str().to_owned()),
        Expression::Conditional(parts) => {
            Expr::If(Box::new((from_hcl(&parts.cond_expr), from_hcl(&parts.true_expr), from_hcl(&parts.false_expr))))
        }
        Expression::FuncCall(call) => {
            let mut name: Vec<&str> = call.name.namespace.iter().map(|part| part.as_str()).collect();
            name.push(call.name.name.as_str());
            Expr::Call(Call {
                name: name.join("::"),
                args: call.args.iter().map(from_hcl).collect(),
                spread: call.args.expand_final(),
            })
        }
        Expression::Traversal(traversal) => Expr::Traversal(
            Box::new(from_hcl(&traversal.expr)),
            traversal.operators.iter().map(|operator| step(operator.value())).collect(),
        ),
        Expression::UnaryOp(op) => Expr::Unary(op.operator.value().to_string(), Box::new(from_hcl(&op.expr))),
        Expression::BinaryOp(op) => {
            Expr::Binary(op.operator.value().to_string(), Box::new((from_hcl(&op.lhs_expr), from_hcl(&op.rhs_expr))))
        }
        Expression::ForExpr(each) => Expr::For(Box::new(ForExpr {
            key_name: each.intro.key_var.as_ref().map(|name| name.as_str().to_owned()),
            value_name: each.intro.value_var.as_str().to_owned(),
            over: from_hcl(&each.intro.collection_expr),
            key: each.key_expr.as_ref().map(from_hcl),
            value: from_hcl(&each.value_expr),
            when: each.cond.as_ref().map(|cond| from_hcl(&cond.expr)),
            grouped: each.grouping,
        })),
    }
}

fn object_key(key: &ObjectKey) -> Expr {
    match key {
        ObjectKey::Ident(name) | ObjectKey::Expression(Expression::Variable(name)) => {
            Expr::Literal(Json::String(name.as_str().to_owned()))
        }
        ObjectKey::Expression(expr) => from_hcl(expr),
    }
}

fn step(operator: &TraversalOperator) -> Step {
    match operator {
        TraversalOperator::AttrSplat(_) | TraversalOperator::FullSplat(_) => Step::Splat,
        TraversalOperator::GetAttr(name) => Step::Attr(name.as_str().to_owned()),
        TraversalOperator::Index(key) => Step::Index(from_hcl(key)),
        TraversalOperator::LegacyIndex(key) => Step::Index(Expr::Literal(Json::from(*key.value()))),
    }
}

/// Takes over a template; one that only holds an interpolation is that expression.
pub(super) fn from_template(template: &Template) -> Expr {
    from_elements(template.iter())
}

fn from_elements<'a>(elements: impl Iterator<Item = &'a Element>) -> Expr {
    let mut parts = Vec::new();
    let mut trims = false;
    for element in elements {
        match element {
            Element::Literal(text) => parts.push(Expr::Literal(Json::String(text.value().clone()))),
            Element::Interpolation(inner) => {
                trims |= inner.strip != Strip::None;
                parts.push(from_hcl(&inner.expr));
            }
            Element::Directive(directive) => match directive.as_ref() {
                Directive::If(choice) => {
                    trims |= choice.if_expr.strip != Strip::None || choice.endif_expr.strip != Strip::None;
                    let otherwise = choice.else_expr.as_ref().map_or_else(
                        || Expr::Literal(Json::String(String::new())),
                        |otherwise| text_of(from_template(&otherwise.template)),
                    );
                    let then = text_of(from_template(&choice.if_expr.template));
                    parts.push(Expr::If(Box::new((from_hcl(&choice.if_expr.cond_expr), then, otherwise))));
                }
                Directive::For(each) => parts.push(Expr::Unsupported(vec![
                    from_hcl(&each.for_expr.collection_expr),
                    from_template(&each.for_expr.template),
                ])),
            },
        }
    }
    match parts.as_slice() {
        _ if trims => Expr::Unsupported(parts),
        [Expr::Literal(_)] => parts.remove(0),
        [only] if !matches!(only, Expr::If(_)) => parts.remove(0),
        _ => Expr::Template(parts),
    }
}

fn text_of(expr: Expr) -> Expr {
    match expr {
        Expr::Template(_) | Expr::Literal(Json::String(_)) => expr,
        other => Expr::Template(vec![other]),
    }
}
