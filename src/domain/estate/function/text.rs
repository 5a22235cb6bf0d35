//! Functions over texts. What a function needs whole and is known only in part gives unknown.

use regex::{Captures, Regex, RegexBuilder};

use super::super::value::{GAP, Value};

/// Calls one of them; `None` when the name, or the number of arguments, is none of theirs.
pub(super) fn call(name: &str, args: &[Value]) -> Option<Value> {
    Some(match (name, args) {
        ("lower", [text]) => partly(text, str::to_lowercase),
        ("upper", [text]) => partly(text, str::to_uppercase),
        ("title", [text]) => known(text, title),
        ("trimspace", [text]) => known(text, |text| text.trim().to_owned()),
        ("chomp", [text]) => known(text, |text| text.trim_end_matches(['\r', '\n']).to_owned()),
        ("strrev", [text]) => known(text, |text| text.chars().rev().collect()),
        ("trim", [text, cut]) => both(text, cut, |text, cut| text.trim_matches(|at| cut.contains(at)).to_owned()),
        ("trimprefix", [text, cut]) => both(text, cut, |text, cut| text.strip_prefix(cut).unwrap_or(text).to_owned()),
        ("trimsuffix", [text, cut]) => both(text, cut, |text, cut| text.strip_suffix(cut).unwrap_or(text).to_owned()),
        ("startswith", [text, part]) => asked(text, part, |text, part| text.starts_with(part)),
        ("endswith", [text, part]) => asked(text, part, |text, part| text.ends_with(part)),
        ("strcontains", [text, part]) => asked(text, part, |text, part| text.contains(part)),
        ("substr", [text, from, count]) => substr(text, from, count).unwrap_or(Value::Unknown),
        ("replace", [text, from, to]) => replace(text, from, to).unwrap_or(Value::Unknown),
        ("split", [separator, text]) => split(separator, text),
        ("regex", [pattern, text]) => match (compiled(pattern), text.as_known()) {
            (Some(pattern), Some(text)) => {
                pattern.captures(&text).map_or(Value::Missing, |found| groups(&pattern, &found))
            }
            _ => Value::Unknown,
        },
        ("regexall", [pattern, text]) => match (compiled(pattern), text.as_known()) {
            (Some(pattern), Some(text)) => {
                Value::List(pattern.captures_iter(&text).map(|found| groups(&pattern, &found)).collect())
            }
            _ => Value::Unknown,
        },
        ("basename", [path]) => path.as_partial().map_or(Value::Unknown, |path| basename(&path)),
        ("dirname", [path]) => path.as_partial().map_or(Value::Unknown, |path| dirname(&path)),
        _ => return None,
    })
}

fn known(value: &Value, change: impl Fn(&str) -> String) -> Value {
    value.as_known().map_or(Value::Unknown, |text| Value::Text(change(&text)))
}

/// For changes that leave a gap where it is.
fn partly(text: &Value, change: impl Fn(&str) -> String) -> Value {
    text.as_partial().map_or(Value::Unknown, |text| Value::Text(change(&text)))
}

fn both(text: &Value, other: &Value, change: impl Fn(&str, &str) -> String) -> Value {
    match (text.as_known(), other.as_known()) {
        (Some(text), Some(other)) => Value::Text(change(&text, &other)),
        _ => Value::Unknown,
    }
}

fn asked(text: &Value, part: &Value, ask: impl Fn(&str, &str) -> bool) -> Value {
    match (text.as_known(), part.as_known()) {
        (Some(text), Some(part)) => Value::Bool(ask(&text, &part)),
        _ => Value::Unknown,
    }
}

fn title(text: &str) -> String {
    let mut begins = true;
    let mut out = String::new();
    for letter in text.chars() {
        if begins {
            out.extend(letter.to_uppercase());
        } else {
            out.push(letter);
        }
        begins = !letter.is_alphanumeric();
    }
    out
}

fn substr(text: &Value, from: &Value, count: &Value) -> Option<Value> {
    let letters: Vec<char> = text.as_known()?.chars().collect();
    let (from, count): (i64, i64) = (from.as_known()?.parse().ok()?, count.as_known()?.parse().ok()?);
    let length = i64::try_from(letters.len()).ok()?;
    let begin = if from < 0 { (length + from).max(0) } else { from.min(length) };
    let end = if count < 0 { length } else { begin.saturating_add(count).min(length) };
    Some(Value::Text(letters[usize::try_from(begin).ok()?..usize::try_from(end).ok()?].iter().collect()))
}

fn replace(text: &Value, from: &Value, to: &Value) -> Option<Value> {
    let (text, from, to) = (text.as_known()?, from.as_known()?, to.as_known()?);
    let inner = from.strip_prefix('/').and_then(|from| from.strip_suffix('/')).filter(|inner| !inner.is_empty());
    Some(Value::Text(match inner {
        Some(pattern) => expression(pattern)?.replace_all(&text, to.as_str()).into_owned(),
        None => text.replace(&from, &to),
    }))
}

fn split(separator: &Value, text: &Value) -> Value {
    match (separator.as_known(), text.as_known()) {
        (Some(separator), Some(text)) if !separator.is_empty() => {
            Value::List(text.split(&*separator).map(Value::text).collect())
        }
        _ => Value::Unknown,
    }
}

fn compiled(pattern: &Value) -> Option<Regex> {
    expression(&pattern.as_known()?)
}

/// The tools' regular expressions and ours differ only where neither backtracks; a stranger's pattern may not grow large.
fn expression(pattern: &str) -> Option<Regex> {
    RegexBuilder::new(pattern).size_limit(1 << 18).build().ok()
}

/// The whole match, a list of its groups, or an object of its named groups.
fn groups(pattern: &Regex, found: &Captures<'_>) -> Value {
    let text = |at: usize| found.get(at).map_or(Value::Null, |part| Value::text(part.as_str()));
    if pattern.captures_len() == 1 {
        return text(0);
    }
    let names: Vec<(usize, &str)> =
        pattern.capture_names().enumerate().filter_map(|(at, name)| Some((at, name?))).collect();
    if names.is_empty() {
        return Value::List((1..pattern.captures_len()).map(text).collect());
    }
    Value::Object(names.into_iter().map(|(at, name)| (name.to_owned(), text(at))).collect())
}

/// The last part is known as soon as it holds no gap, whatever stands before it.
fn basename(path: &str) -> Value {
    let name = path.trim_end_matches('/').rsplit('/').next().unwrap_or("");
    if name.contains(GAP) { Value::Unknown } else { Value::text(name) }
}

fn dirname(path: &str) -> Value {
    let path = path.trim_end_matches('/');
    match path.rsplit_once('/') {
        Some((dir, last)) if !last.contains(GAP) => Value::text(dir),
        None if !path.contains(GAP) => Value::text("."),
        _ => Value::Unknown,
    }
}
