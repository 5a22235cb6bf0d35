//! Finds the values that a plan's JSON marks as sensitive. It keeps none of them.

use serde_json::Value;

/// Calls `found` with each string under a true mark anywhere in the plan.
pub(super) fn each_marked(plan: &Value, found: &mut dyn FnMut(&str)) {
    for list in ["resource_changes", "resource_drift"] {
        for resource in items(&plan[list]) {
            each_side(&resource["change"], found);
        }
    }
    for (_, change) in entries(&plan["output_changes"]) {
        each_side(change, found);
    }
    // `values` at the top is what `show -json` says of a state.
    for values in [&plan["planned_values"], &plan["prior_state"]["values"], &plan["values"]] {
        for (_, output) in entries(&values["outputs"]) {
            under(&output["value"], &output["sensitive"], found);
        }
        of_module(&values["root_module"], found);
    }
    of_variables(plan, found);
    of_calls(&plan["configuration"]["root_module"], found);
}

fn each_side(change: &Value, found: &mut dyn FnMut(&str)) {
    // A mark that comes or goes with this change makes the other side's value a secret as well.
    for side in ["before", "after"] {
        under(&change[side], &change["before_sensitive"], found);
        under(&change[side], &change["after_sensitive"], found);
    }
}

fn of_module(module: &Value, found: &mut dyn FnMut(&str)) {
    for resource in items(&module["resources"]) {
        under(&resource["values"], &resource["sensitive_values"], found);
    }
    for child in items(&module["child_modules"]) {
        of_module(child, found);
    }
}

fn of_variables(plan: &Value, found: &mut dyn FnMut(&str)) {
    for (name, variable) in entries(&plan["configuration"]["root_module"]["variables"]) {
        under(&plan["variables"][name]["value"], &variable["sensitive"], found);
        under(&variable["default"], &variable["sensitive"], found);
    }
}

/// Constant arguments of a module whose variable is sensitive stand in clear in the configuration.
fn of_calls(module: &Value, found: &mut dyn FnMut(&str)) {
    for (_, call) in entries(&module["module_calls"]) {
        for (name, variable) in entries(&call["module"]["variables"]) {
            under(&call["expressions"][name]["constant_value"], &variable["sensitive"], found);
            under(&variable["default"], &variable["sensitive"], found);
        }
        of_calls(&call["module"], found);
    }
}

/// Marks mirror the value: `true` for all of it, or the same shape with marks inside.
fn under(value: &Value, mark: &Value, found: &mut dyn FnMut(&str)) {
    match mark {
        Value::Bool(true) => each_text(value, found),
        Value::Object(marks) => marks.iter().for_each(|(key, mark)| under(&value[key], mark, found)),
        Value::Array(marks) => marks.iter().zip(items(value)).for_each(|(mark, item)| under(item, mark, found)),
        _ => {}
    }
}

/// Calls `found` with each output that the plan reads from another state, where `is_secret` says so of its name: what is
/// read there bears no mark.
pub(super) fn each_read(plan: &Value, is_secret: &dyn Fn(&str) -> bool, found: &mut dyn FnMut(&str)) {
    for values in [&plan["planned_values"], &plan["prior_state"]["values"], &plan["values"]] {
        read_in(&values["root_module"], is_secret, found);
    }
}

fn read_in(module: &Value, is_secret: &dyn Fn(&str) -> bool, found: &mut dyn FnMut(&str)) {
    let reads = items(&module["resources"]).iter().filter(|resource| resource["type"] == "terraform_remote_state");
    for (name, value) in reads.flat_map(|resource| entries(&resource["values"]["outputs"])) {
        if is_secret(name) {
            each_text(value, found);
        }
    }
    for child in items(&module["child_modules"]) {
        read_in(child, is_secret, found);
    }
}

/// Calls `found` with each string in a value, and with its numbers as text.
pub(super) fn each_text(value: &Value, found: &mut dyn FnMut(&str)) {
    match value {
        Value::String(text) => found(text),
        Value::Number(number) => found(&number.to_string()),
        Value::Array(list) => list.iter().for_each(|item| each_text(item, found)),
        Value::Object(map) => map.values().for_each(|item| each_text(item, found)),
        _ => {}
    }
}

fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn entries(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}
