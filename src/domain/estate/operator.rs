//! Operators between two values that are known; anything else gives unknown.

use super::value::Value;

/// Whole numbers only: what a fraction looks like as text is the tool's business.
pub(super) fn calculate(operator: &str, left: &Value, right: &Value) -> Option<Value> {
    let (left, right): (i64, i64) = (left.as_known()?.parse().ok()?, right.as_known()?.parse().ok()?);
    let result = match operator {
        "+" => left.checked_add(right),
        "-" => left.checked_sub(right),
        "*" => left.checked_mul(right),
        "/" if left.checked_rem(right)? == 0 => left.checked_div(right),
        "%" => left.checked_rem(right),
        _ => None,
    };
    Some(Value::Number(result?.to_string()))
}

/// Which number is greater.
pub(super) fn compare(operator: &str, left: &Value, right: &Value) -> Value {
    let number = |value: &Value| value.as_known().and_then(|text| text.parse::<f64>().ok());
    match (number(left), number(right), operator) {
        (Some(left), Some(right), ">") => Value::Bool(left > right),
        (Some(left), Some(right), "<") => Value::Bool(left < right),
        (Some(left), Some(right), ">=") => Value::Bool(left >= right),
        (Some(left), Some(right), "<=") => Value::Bool(left <= right),
        _ => Value::Unknown,
    }
}
