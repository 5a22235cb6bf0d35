//! GitHub's GraphQL over the same world: reads a request, walks the graph, answers 200 with what went wrong beside what went well.
//! Introspection ends with the field names that clients look for before they ask.

use std::collections::BTreeMap;

use graphql_parser::query::{
    Definition, Document, Field, FragmentDefinition, OperationDefinition, Selection, SelectionSet, TypeCondition,
    Value as Written, VariableDefinition, parse_query,
};
use serde_json::{Map, Value, json};

use super::auth::Who;
use super::http::{Call, Reply};
use super::refusal::{Answer, Refusal};
use super::shape::Base;
use super::world::State;

mod actor;
mod checks;
mod graph;
mod mutation;
mod pull;
mod repo;

use graph::{Out, Thing};

/// Fields nested deeper than this are asked by nobody who means well.
const DEEPEST: usize = 40;

type Text = String;
type Arguments = Map<String, Value>;

/// Why a field has no value.
enum Fault {
    /// The type has no such field: the whole request is refused.
    Undefined,
    /// It could not be had.
    Refused(Refusal),
}

impl From<Refusal> for Fault {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

type Resolved = Result<Out, Fault>;

/// One request under way.
struct Run<'a> {
    state: &'a mut State,
    base: Base,
    who: Who,
    login: String,
    fragments: BTreeMap<&'a str, &'a FragmentDefinition<'a, Text>>,
    variables: Arguments,
    errors: Vec<Value>,
    undefined: Vec<Value>,
}

/// Answers `POST /graphql`.
pub fn serve(state: &mut State, call: &Call, who: &Who) -> Answer<Reply> {
    if matches!(who, Who::Anonymous) {
        return Err(Refusal::new(401, "This endpoint requires you to be authenticated."));
    }
    let login = who.login()?.to_owned();
    let body = call.json()?;
    let Some(query) = body["query"].as_str() else {
        return Err(Refusal::new(400, "A query attribute must be specified and must be a string."));
    };
    let document = match parse_query::<Text>(query) {
        Ok(document) => document,
        Err(error) => {
            let message: Vec<String> = error.to_string().split_whitespace().map(str::to_owned).collect();
            return Ok(Reply::json(
                200,
                &json!({"errors": [{"message": format!("Parse error: {}", message.join(" "))}]}),
            ));
        }
    };
    let Some((root, variables, selection)) = operation(&document, body["operationName"].as_str()) else {
        return Ok(Reply::json(200, &json!({"errors": [{"message": "No operation named in the request"}]})));
    };
    let fragments = document.definitions.iter().filter_map(|definition| match definition {
        Definition::Fragment(fragment) => Some((fragment.name.as_str(), fragment)),
        Definition::Operation(_) => None,
    });
    let mut run = Run {
        state,
        base: call.base.clone(),
        who: who.clone(),
        login,
        fragments: fragments.collect(),
        variables: given(variables, &body["variables"]),
        errors: Vec::new(),
        undefined: Vec::new(),
    };
    let data = run.object(&root, &[selection], &mut Vec::new());
    Ok(Reply::json(200, &run.answer(&data)))
}

type Operation<'a> = (Thing, &'a [VariableDefinition<'a, Text>], &'a SelectionSet<'a, Text>);

fn operation<'a>(document: &'a Document<'a, Text>, name: Option<&str>) -> Option<Operation<'a>> {
    let mut all = document.definitions.iter().filter_map(|definition| match definition {
        Definition::Operation(operation) => Some(operation),
        Definition::Fragment(_) => None,
    });
    let is_named = |own: &Option<String>| name.is_none_or(|name| name.is_empty() || own.as_deref() == Some(name));
    all.find_map(|operation| match operation {
        OperationDefinition::SelectionSet(selection) => Some((Thing::Query, &[][..], selection)),
        OperationDefinition::Query(query) if is_named(&query.name) => {
            Some((Thing::Query, query.variable_definitions.as_slice(), &query.selection_set))
        }
        OperationDefinition::Mutation(mutation) if is_named(&mutation.name) => {
            Some((Thing::Mutation, mutation.variable_definitions.as_slice(), &mutation.selection_set))
        }
        _ => None,
    })
}

/// The variables, those that were not given by their defaults.
fn given(definitions: &[VariableDefinition<'_, Text>], sent: &Value) -> Arguments {
    let mut all = sent.as_object().cloned().unwrap_or_default();
    for definition in definitions {
        if let (false, Some(default)) = (all.contains_key(&definition.name), &definition.default_value) {
            all.insert(definition.name.clone(), plain(default, &Map::new()));
        }
    }
    all
}

/// A value as it was written, with the variables put in.
fn plain(written: &Written<'_, Text>, variables: &Arguments) -> Value {
    match written {
        Written::Variable(name) => variables.get(name).cloned().unwrap_or_default(),
        Written::Int(number) => json!(number.as_i64()),
        Written::Float(number) => json!(number),
        Written::String(text) | Written::Enum(text) => json!(text),
        Written::Boolean(value) => json!(value),
        Written::Null => Value::Null,
        Written::List(items) => items.iter().map(|item| plain(item, variables)).collect(),
        Written::Object(fields) => {
            Value::Object(fields.iter().map(|(key, value)| (key.clone(), plain(value, variables))).collect())
        }
    }
}

type Collected<'a> = Vec<(&'a str, Vec<&'a Field<'a, Text>>)>;

impl<'a> Run<'a> {
    fn answer(self, data: &Value) -> Value {
        if !self.undefined.is_empty() {
            return json!({"errors": self.undefined});
        }
        if self.errors.is_empty() { json!({"data": data}) } else { json!({"data": data, "errors": self.errors}) }
    }

    /// The fields of one object, those of one name merged, fragments opened where the type fits.
    fn collect(&self, kind: &str, selection: &'a SelectionSet<'a, Text>, into: &mut Collected<'a>) {
        for item in &selection.items {
            match item {
                Selection::Field(field) if self.is_wanted(&field.directives) => {
                    let key = field.alias.as_deref().unwrap_or(&field.name);
                    match into.iter_mut().find(|(other, _)| *other == key) {
                        Some((_, fields)) => fields.push(field),
                        None => into.push((key, vec![field])),
                    }
                }
                Selection::InlineFragment(fragment)
                    if self.is_wanted(&fragment.directives)
                        && fragment.type_condition.as_ref().is_none_or(|condition| fits(kind, condition)) =>
                {
                    self.collect(kind, &fragment.selection_set, into);
                }
                Selection::FragmentSpread(spread) if self.is_wanted(&spread.directives) => {
                    let fragment = self.fragments.get(spread.fragment_name.as_str()).copied();
                    if let Some(fragment) = fragment.filter(|fragment| fits(kind, &fragment.type_condition)) {
                        self.collect(kind, &fragment.selection_set, into);
                    }
                }
                _ => {}
            }
        }
    }

    fn is_wanted(&self, directives: &[graphql_parser::query::Directive<'_, Text>]) -> bool {
        directives.iter().all(|directive| {
            let value = directive.arguments.iter().find(|(name, _)| name == "if");
            let value = value.and_then(|(_, value)| plain(value, &self.variables).as_bool());
            match directive.name.as_str() {
                "include" => value != Some(false),
                "skip" => value != Some(true),
                _ => true,
            }
        })
    }

    /// One object with what is asked of it.
    fn object(&mut self, thing: &Thing, selections: &[&'a SelectionSet<'a, Text>], path: &mut Vec<Value>) -> Value {
        let kind = thing.kind(self.state);
        let mut fields = Vec::new();
        for selection in selections {
            self.collect(&kind, selection, &mut fields);
        }
        let mut shown = Map::new();
        for (key, same) in fields {
            let Some(first) = same.first() else { continue };
            path.push(json!(key));
            let value = if first.name == "__typename" {
                json!(kind)
            } else if path.len() > DEEPEST {
                Value::Null
            } else {
                let arguments =
                    first.arguments.iter().map(|(name, value)| (name.clone(), plain(value, &self.variables)));
                let resolved = graph::resolve(self, thing, &first.name, &arguments.collect());
                let below: Vec<_> = same.iter().map(|field| &field.selection_set).collect();
                self.complete(resolved, (&kind, first), &below, path)
            };
            path.pop();
            shown.insert(key.to_owned(), value);
        }
        Value::Object(shown)
    }

    /// What is asked of a value that has parts.
    fn picked(&self, value: Value, below: &[&'a SelectionSet<'a, Text>]) -> Value {
        if below.iter().all(|selection| selection.items.is_empty()) {
            return value;
        }
        match value {
            Value::Array(items) => items.into_iter().map(|item| self.picked(item, below)).collect(),
            Value::Object(parts) => {
                let mut fields = Vec::new();
                for selection in below {
                    self.collect("", selection, &mut fields);
                }
                let mut shown = Map::new();
                for (key, same) in fields {
                    let part = same.first().and_then(|field| parts.get(&field.name)).cloned().unwrap_or_default();
                    let deeper: Vec<_> = same.iter().map(|field| &field.selection_set).collect();
                    shown.insert(key.to_owned(), self.picked(part, &deeper));
                }
                Value::Object(shown)
            }
            other => other,
        }
    }

    fn complete(
        &mut self,
        resolved: Resolved,
        (kind, field): (&str, &Field<'a, Text>),
        below: &[&'a SelectionSet<'a, Text>],
        path: &mut Vec<Value>,
    ) -> Value {
        let places = json!([{"line": field.position.line, "column": field.position.column}]);
        match resolved {
            Ok(Out::Leaf(value)) => self.picked(value, below),
            Ok(Out::One(thing)) => self.object(&thing, below, path),
            Ok(Out::Many(things)) => {
                let mut shown = Vec::with_capacity(things.len());
                for (at, thing) in things.iter().enumerate() {
                    path.push(json!(at));
                    shown.push(self.object(thing, below, path));
                    path.pop();
                }
                Value::Array(shown)
            }
            Err(Fault::Undefined) => {
                let names = path.iter().filter(|part| part.is_string()).cloned();
                let path: Vec<Value> = std::iter::once(json!("query")).chain(names).collect();
                let error = json!({
                    "path": path, "locations": places,
                    "extensions": {"code": "undefinedField", "typeName": kind, "fieldName": field.name},
                    "message": format!("Field '{}' doesn't exist on type '{kind}'", field.name),
                });
                if !self.undefined.contains(&error) {
                    self.undefined.push(error);
                }
                Value::Null
            }
            Err(Fault::Refused(refusal)) => {
                let word = match refusal.status {
                    404 => "NOT_FOUND",
                    401 | 403 => "FORBIDDEN",
                    _ => "UNPROCESSABLE",
                };
                let said = refusal.errors.first().map(|error| error.as_str().or(error["message"].as_str()));
                let said = said.flatten().unwrap_or(&refusal.message);
                self.errors.push(json!({"type": word, "path": path, "locations": places, "message": said}));
                Value::Null
            }
        }
    }
}

fn fits(kind: &str, condition: &TypeCondition<'_, Text>) -> bool {
    let TypeCondition::On(name) = condition;
    name == kind
        || match name.as_str() {
            "Node" => true,
            "Actor" => matches!(kind, "User" | "Bot" | "Organization"),
            "RepositoryOwner" | "ProfileOwner" => matches!(kind, "User" | "Organization"),
            "Comment" => matches!(kind, "IssueComment" | "PullRequest" | "PullRequestReview"),
            _ => false,
        }
}
