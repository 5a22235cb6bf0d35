//! Static evaluation over the module tree of one root in one workspace: literals, locals, variables, arguments, templates and some
//! functions. Whatever else stands there is unknown, never guessed.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use super::function;
use super::module::Module;
use super::operator::{calculate, compare};
use super::path;
use super::shape;
use super::value::{GAP, Value};
use crate::domain::hcl::{Call, Expr, ForExpr, ModuleCall, Step};

/// More module instances than this are not told apart in one root.
const MOST_SCOPES: usize = 2_000;

/// Parts of values that one root may make before everything else in it counts as unknown.
const BUDGET: usize = 5_000_000;

/// Names behind names that are followed.
const DEEPEST: usize = 100;

/// Scope, kind and name to the value; nothing while it is being worked out.
type Memo = HashMap<(usize, char, String), Option<Rc<Value>>>;

/// Key, each and index of a block's instance.
type Instance = (Value, Option<(Value, Value)>, Value);

/// The module tree of a root, with what is known of its variables.
pub(super) struct Tree<'a> {
    pub scopes: Vec<Scope<'a>>,
    workspace: &'a str,
    memo: RefCell<Memo>,
    /// What may still be spent. The code is a stranger's: it must not cost more than a root is worth.
    budget: Cell<usize>,
    depth: Cell<usize>,
}

/// One instance of a module.
pub(super) struct Scope<'a> {
    pub module: &'a Module,
    /// `module.app.`, without instance keys; empty for the root.
    pub prefix: String,
    parent: Option<(usize, &'a ModuleCall)>,
    each: Option<(Value, Value)>,
    index: Value,
    path: String,
    children: BTreeMap<&'a str, Vec<(Value, usize)>>,
    set: BTreeMap<String, Value>,
}

/// Where an expression stands.
#[derive(Clone, Copy)]
pub(super) struct Here<'e> {
    pub scope: usize,
    pub each: Option<&'e (Value, Value)>,
    pub index: Option<&'e Value>,
    pub bound: Option<&'e Bound<'e>>,
}

/// A variable of a `for`.
pub(super) struct Bound<'e> {
    name: &'e str,
    value: &'e Value,
    next: Option<&'e Bound<'e>>,
}

impl Here<'_> {
    pub fn of(scope: usize) -> Self {
        Here { scope, each: None, index: None, bound: None }
    }
}

impl<'a> Tree<'a> {
    /// `set` holds what var files set at the root; `find` gives the directory of a call's source.
    pub fn new(
        root: &'a Module,
        set: BTreeMap<String, Value>,
        workspace: &'a str,
        find: &dyn Fn(&str, &str) -> Option<&'a Module>,
    ) -> Self {
        let first = Scope {
            module: root,
            prefix: String::new(),
            parent: None,
            each: None,
            index: Value::Unknown,
            path: ".".to_owned(),
            children: BTreeMap::new(),
            set,
        };
        let mut tree = Self {
            scopes: vec![first],
            workspace,
            memo: RefCell::default(),
            budget: Cell::new(BUDGET),
            depth: Cell::new(0),
        };
        let mut next = 0;
        while next < tree.scopes.len() {
            tree.grow(next, find);
            next += 1;
        }
        // What was worked out before the tree stood may have missed a module's output.
        tree.memo.borrow_mut().clear();
        tree
    }

    fn grow(&mut self, at: usize, find: &dyn Fn(&str, &str) -> Option<&'a Module>) {
        let module = self.scopes[at].module;
        for (name, call) in &module.calls {
            let source = call.source.as_ref().and_then(|source| self.eval(source, Here::of(at)).as_known());
            let Some(child) = source.and_then(|source| find(&module.dir, &source)) else { continue };
            if self.scopes.len() >= MOST_SCOPES || self.is_inside(at, &child.dir) {
                continue;
            }
            let mut instances = Vec::new();
            for (key, each, index) in self.instances(call.count.as_ref(), call.for_each.as_ref(), Here::of(at)) {
                instances.push((key, self.scopes.len()));
                self.scopes.push(Scope {
                    module: child,
                    prefix: format!("{}module.{name}.", self.scopes[at].prefix),
                    parent: Some((at, call)),
                    each,
                    index,
                    path: path::relative(&self.scopes[0].module.dir, &child.dir),
                    children: BTreeMap::new(),
                    set: BTreeMap::new(),
                });
            }
            self.scopes[at].children.insert(name, instances);
        }
    }

    fn is_inside(&self, mut at: usize, dir: &str) -> bool {
        loop {
            if self.scopes[at].module.dir == dir {
                return true;
            }
            match self.scopes[at].parent {
                Some((parent, _)) => at = parent,
                None => return false,
            }
        }
    }

    /// The instances of a block: key, each, index. None when it is switched off, one of unknown key when its keys are unknown.
    pub fn instances(&self, count: Option<&Expr>, for_each: Option<&Expr>, here: Here<'_>) -> Vec<Instance> {
        if let Some(expr) = for_each {
            return match self.eval(expr, here).entries() {
                Some(entries) => entries.into_iter().map(|each| (each.0.clone(), Some(each), Value::Unknown)).collect(),
                None => vec![(Value::Unknown, Some((Value::Unknown, Value::Unknown)), Value::Unknown)],
            };
        }
        let Some(count) = count else { return vec![(Value::Null, None, Value::Unknown)] };
        match self.eval(count, here).as_known().and_then(|count| count.parse::<usize>().ok()) {
            Some(count) if count <= 50 => {
                (0..count).map(|at| Value::Number(at.to_string())).map(|at| (at.clone(), None, at)).collect()
            }
            _ => vec![(Value::Unknown, None, Value::Unknown)],
        }
    }

    /// What the expression is, as far as it is known.
    pub fn eval(&self, expr: &Expr, here: Here<'_>) -> Value {
        if !self.spend(1) {
            return Value::Unknown;
        }
        let value = self.of_kind(expr, here);
        if self.spend(value.size()) { value } else { Value::Unknown }
    }

    fn spend(&self, parts: usize) -> bool {
        let left = self.budget.get();
        self.budget.set(left.saturating_sub(parts));
        left > parts
    }

    fn of_kind(&self, expr: &Expr, here: Here<'_>) -> Value {
        match expr {
            Expr::Literal(json) => Value::from_json(json),
            Expr::Template(parts) => self.template(parts, here),
            Expr::Name(name) => bound(here, name).cloned().unwrap_or(Value::Unknown),
            Expr::Traversal(base, steps) => self.traverse(base, steps, here),
            Expr::Call(call) => self.call(call, here),
            Expr::Object(entries) => self.object(entries, here),
            Expr::List(items) => Value::List(items.iter().map(|item| self.eval(item, here)).collect()),
            Expr::If(parts) => match self.eval(&parts.0, here).as_bool() {
                Some(true) => self.eval(&parts.1, here),
                Some(false) => self.eval(&parts.2, here),
                None => {
                    let (then, otherwise) = (self.eval(&parts.1, here), self.eval(&parts.2, here));
                    if then == otherwise && then.is_known() { then } else { Value::Unknown }
                }
            },
            Expr::For(each) => self.each(each, here).unwrap_or(Value::Unknown),
            Expr::Binary(operator, sides) => self.binary(operator, sides, here),
            Expr::Unary(operator, inner) => {
                let value = self.eval(inner, here);
                match (operator.as_str(), value.as_bool(), &value) {
                    ("!", Some(value), _) => Value::Bool(!value),
                    ("-", _, Value::Number(number)) if !number.starts_with('-') => Value::Number(format!("-{number}")),
                    _ => Value::Unknown,
                }
            }
            Expr::Unsupported(_) => Value::Unknown,
        }
    }

    fn template(&self, parts: &[Expr], here: Here<'_>) -> Value {
        let parts: Vec<String> =
            parts.iter().map(|part| self.eval(part, here).as_partial().unwrap_or_else(|| GAP.to_string())).collect();
        Value::Text(parts.concat())
    }

    fn object(&self, entries: &[(Expr, Expr)], here: Here<'_>) -> Value {
        let mut object = BTreeMap::new();
        for (key, value) in entries {
            let Some(key) = self.eval(key, here).as_known() else { return Value::Unknown };
            object.insert(key, self.eval(value, here));
        }
        Value::Object(object)
    }

    fn binary(&self, operator: &str, sides: &(Expr, Expr), here: Here<'_>) -> Value {
        let (left, right) = (self.eval(&sides.0, here), self.eval(&sides.1, here));
        let known = left.is_known() && right.is_known();
        let same = left == right || (left.as_known().is_some() && left.as_known() == right.as_known());
        match (operator, left.as_bool(), right.as_bool()) {
            ("==", ..) if known => Value::Bool(same),
            ("!=", ..) if known => Value::Bool(!same),
            ("&&", Some(false), _) | ("&&", _, Some(false)) | ("||", Some(false), Some(false)) => Value::Bool(false),
            ("||", Some(true), _) | ("||", _, Some(true)) | ("&&", Some(true), Some(true)) => Value::Bool(true),
            (">" | "<" | ">=" | "<=", ..) => compare(operator, &left, &right),
            ("+" | "-" | "*" | "/" | "%", ..) => calculate(operator, &left, &right).unwrap_or(Value::Unknown),
            _ => Value::Unknown,
        }
    }

    fn each(&self, each: &ForExpr, here: Here<'_>) -> Option<Value> {
        let mut list = Vec::new();
        let mut object = BTreeMap::new();
        for (key, value) in self.eval(&each.over, here).entries()? {
            let outer = Bound { name: each.key_name.as_deref().unwrap_or(""), value: &key, next: here.bound };
            let inner = Bound { name: &each.value_name, value: &value, next: Some(&outer) };
            let here = Here { bound: Some(&inner), ..here };
            if let Some(when) = &each.when
                && !self.eval(when, here).as_bool()?
            {
                continue;
            }
            match &each.key {
                Some(key) if !each.grouped => {
                    object.insert(self.eval(key, here).as_known()?, self.eval(&each.value, here));
                }
                Some(_) => return None,
                None => list.push(self.eval(&each.value, here)),
            }
        }
        Some(if each.key.is_some() { Value::Object(object) } else { Value::List(list) })
    }

    fn call(&self, call: &Call, here: Here<'_>) -> Value {
        if call.spread {
            return match call.args.split_last().map(|(last, first)| (self.eval(last, here), first)) {
                Some((Value::List(rest), first)) => {
                    let args: Vec<Value> = first.iter().map(|arg| self.eval(arg, here)).chain(rest).collect();
                    function::call(&call.name, &args)
                }
                _ => Value::Unknown,
            };
        }
        let args = call.args.iter().map(|arg| self.eval(arg, here));
        match (call.name.as_str(), call.args.as_slice()) {
            ("try", _) => return args.into_iter().find(|arg| *arg != Value::Missing).unwrap_or(Value::Missing),
            ("can", [arg]) => {
                return match self.eval(arg, here) {
                    Value::Unknown => Value::Unknown,
                    found => Value::Bool(found != Value::Missing),
                };
            }
            // As if it were said of the directory that the tool runs in.
            ("abspath", [arg]) => {
                let Some(path) = self.eval(arg, here).as_known().filter(|path| !path.starts_with('/')) else {
                    return self.eval(arg, here);
                };
                return Value::Text(format!("{GAP}/{}", path::join(&self.scopes[0].module.dir, &path)));
            }
            _ => {}
        }
        function::call(&call.name, &args.collect::<Vec<_>>())
    }

    fn traverse(&self, base: &Expr, steps: &[Step], here: Here<'_>) -> Value {
        let Expr::Name(name) = base else { return self.walk(self.eval(base, here), steps, here) };
        if let Some(value) = bound(here, name) {
            return self.walk(value.clone(), steps, here);
        }
        let scope = &self.scopes[here.scope];
        let Some(Step::Attr(first)) = steps.first() else { return Value::Unknown };
        let start = match (name.as_str(), first.as_str()) {
            ("var" | "local", name) => {
                self.named(here.scope, if base == &Expr::Name("var".into()) { 'v' } else { 'l' }, name)
            }
            ("path", "module") => Value::text(&scope.path),
            ("path", "root") => Value::text("."),
            // Where the root lies on the machine is unknown; where within the repository is not.
            ("path", "cwd") => Value::Text(format!("{GAP}/{}", self.scopes[0].module.dir)),
            ("terraform", "workspace") => Value::text(self.workspace),
            ("each", part) => {
                here.each.map_or(Value::Unknown, |each| if part == "key" { each.0.clone() } else { each.1.clone() })
            }
            ("count", "index") => here.index.cloned().unwrap_or(Value::Unknown),
            ("module", call) => return self.output(here, call, &steps[1..]),
            _ => Value::Unknown,
        };
        self.walk(start, &steps[1..], here)
    }

    fn walk(&self, mut value: Value, steps: &[Step], here: Here<'_>) -> Value {
        for (at, step) in steps.iter().enumerate() {
            value = match step {
                Step::Attr(name) => value.get(name),
                Step::Index(key) => match self.eval(key, here).as_known() {
                    Some(key) => value.get(&key),
                    None => Value::Unknown,
                },
                Step::Splat => return self.splat(value, &steps[at + 1..], here),
            };
        }
        value
    }

    fn splat(&self, value: Value, rest: &[Step], here: Here<'_>) -> Value {
        match value {
            // Whether a key behind it is of each item or of the list depends on how the splat is written.
            _ if rest.iter().any(|step| !matches!(step, Step::Attr(_))) => Value::Unknown,
            Value::List(items) => Value::List(items.into_iter().map(|item| self.walk(item, rest, here)).collect()),
            Value::Null => Value::List(Vec::new()),
            // A set is kept as an object, so an object may be either.
            _ => Value::Unknown,
        }
    }

    fn output(&self, here: Here<'_>, call: &str, steps: &[Step]) -> Value {
        let Some(instances) = self.scopes[here.scope].children.get(call) else { return Value::Unknown };
        let (instance, rest) = match (instances.as_slice(), steps) {
            ([(Value::Null, only)], rest) => (*only, rest),
            (instances, [Step::Index(key), rest @ ..]) => {
                let key = self.eval(key, here).as_known();
                match instances.iter().find(|(found, _)| key.is_some() && found.as_known() == key) {
                    Some((_, scope)) => (*scope, rest),
                    None => return Value::Unknown,
                }
            }
            _ => return Value::Unknown,
        };
        match rest {
            [Step::Attr(name), rest @ ..] => self.walk(self.named(instance, 'o', name), rest, here),
            _ => Value::Unknown,
        }
    }

    /// A variable, local or output, worked out once; a cycle is unknown.
    fn named(&self, scope: usize, kind: char, name: &str) -> Value {
        let key = (scope, kind, name.to_owned());
        if let Some(known) = self.memo.borrow().get(&key) {
            return known.as_deref().cloned().unwrap_or(Value::Unknown);
        }
        self.memo.borrow_mut().insert(key.clone(), None);
        if self.depth.get() >= DEEPEST {
            return Value::Unknown;
        }
        self.depth.set(self.depth.get() + 1);
        let value = match kind {
            'v' => {
                let shape = self.scopes[scope].module.variables.get(name).and_then(|variable| variable.shape.as_ref());
                let value = self.variable(scope, name);
                shape.map_or(value.clone(), |shape| {
                    shape::filled(value, shape, &|expr| self.eval(expr, Here::of(scope)))
                })
            }
            'l' => self.scopes[scope]
                .module
                .locals
                .get(name)
                .map_or(Value::Unknown, |expr| self.eval(expr, Here::of(scope))),
            _ => {
                let output = self.scopes[scope].module.outputs.get(name).and_then(|output| output.value.as_ref());
                output.map_or(Value::Unknown, |expr| self.eval(expr, Here::of(scope)))
            }
        };
        self.depth.set(self.depth.get() - 1);
        self.memo.borrow_mut().insert(key, Some(Rc::new(value.clone())));
        value
    }

    fn variable(&self, scope: usize, name: &str) -> Value {
        let here = &self.scopes[scope];
        if let Some(value) = here.set.get(name) {
            return value.clone();
        }
        if let Some((parent, call)) = here.parent
            && let Some((_, expr)) = call.args.iter().find(|(arg, _)| arg == name)
        {
            // `each` and `count` in an argument are those of the call.
            return self.eval(expr, Here { each: here.each.as_ref(), index: Some(&here.index), ..Here::of(parent) });
        }
        let default = here.module.variables.get(name).and_then(|variable| variable.default.as_ref());
        default.map_or(Value::Unknown, |expr| self.eval(expr, Here::of(scope)))
    }
}

fn bound<'e>(here: Here<'e>, name: &str) -> Option<&'e Value> {
    let mut next = here.bound;
    while let Some(bound) = next {
        if bound.name == name {
            return Some(bound.value);
        }
        next = bound.next;
    }
    None
}
