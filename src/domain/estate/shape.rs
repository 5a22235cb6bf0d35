//! The type of a variable as far as it changes what is in the variable: optional attributes have defaults, and attributes that it does
//! not name are dropped. It refuses nothing, which is the tool's business.

use super::value::Value;
use crate::domain::hcl::{Call, Expr};

/// The value as the tool would hand it on; `eval` gives the defaults.
pub(super) fn filled(value: Value, shape: &Expr, eval: &dyn Fn(&Expr) -> Value) -> Value {
    let Expr::Call(Call { name, args, .. }) = shape else { return value };
    match (name.as_str(), args.as_slice(), value) {
        ("object", [Expr::Object(attributes), ..], Value::Object(mut given)) => {
            let mut object = std::collections::BTreeMap::new();
            for (key, shape) in attributes {
                let Some(key) = key.as_text() else { return Value::Unknown };
                let value = attribute(given.remove(key), shape, eval);
                object.extend(value.map(|value| (key.to_owned(), value)));
            }
            Value::Object(object)
        }
        ("map" | "list" | "set", [shape, ..], Value::Object(entries)) => {
            Value::Object(entries.into_iter().map(|(key, value)| (key, filled(value, shape, eval))).collect())
        }
        ("list" | "set", [shape, ..], Value::List(items)) => {
            Value::List(items.into_iter().map(|item| filled(item, shape, eval)).collect())
        }
        (_, _, value) => value,
    }
}

fn attribute(given: Option<Value>, shape: &Expr, eval: &dyn Fn(&Expr) -> Value) -> Option<Value> {
    match shape {
        Expr::Call(Call { name, args, .. }) if name == "optional" => {
            let value = match given {
                None | Some(Value::Null) => args.get(1).map_or(Value::Null, eval),
                Some(value) => value,
            };
            Some(args.first().map_or(value.clone(), |shape| filled(value, shape, eval)))
        }
        shape => given.map(|value| filled(value, shape, eval)),
    }
}
