//! A tool as text, for models that get no definitions: its name, its description, a line for each argument. It says what
//! there is; how a call is to be written is said elsewhere, once for all tools.

use super::words;
use serde_json::{Map, Value};
use std::fmt::Write as _;

/// Deepest level of properties that get lines of their own.
const MAX_LEVELS: usize = 6;

/// The text of a tool with simplified parameters.
pub(super) fn text(name: &str, description: &str, parameters: &Value) -> String {
    let mut out = format!("{name}: {}\n", description.trim());
    let properties = parameters.get("properties").and_then(Value::as_object);
    if properties.is_none_or(Map::is_empty) {
        out.push_str("No arguments.");
        return out;
    }
    out.push_str("Arguments:\n");
    lines(&mut out, parameters, 0);
    out.truncate(out.trim_end().len());
    out
}

fn lines(out: &mut String, schema: &Value, level: usize) {
    let required = schema.get("required").and_then(Value::as_array);
    for (name, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        let is_required = required.is_some_and(|list| list.iter().any(|r| r == name.as_str()));
        let need = if is_required { "required" } else { "optional" };
        let indent = "  ".repeat(level);
        let _ = write!(out, "{indent}- {name} ({}, {need})", words::noun(property));
        let inner = inner(property).filter(|_| level < MAX_LEVELS);
        let said = said(property, inner.is_some());
        let _ = if said.is_empty() { writeln!(out) } else { writeln!(out, ": {}", indented(&said, &indent)) };
        if let Some(inner) = inner {
            lines(out, inner, level + 1);
        }
    }
}

/// What has properties to be told: the schema itself, or that of a list's items.
fn inner(schema: &Value) -> Option<&Value> {
    let has_properties =
        |s: &Value| s.get("properties").and_then(Value::as_object).is_some_and(|properties| !properties.is_empty());
    if has_properties(schema) {
        return Some(schema);
    }
    schema.get("items").and_then(|items| if has_properties(items) { Some(items) } else { inner(items) })
}

/// Description and restrictions of a schema, and of a list's items.
fn said(schema: &Value, has_lines: bool) -> String {
    let Some(map) = schema.as_object() else { return String::new() };
    let own = map.get("description").or_else(|| map.get("title")).and_then(Value::as_str).unwrap_or_default();
    let mut words = words::restrictions(map, &|_| false);
    if let Some(items) = map.get("items").and_then(Value::as_object) {
        let own = items.get("description").and_then(Value::as_str).unwrap_or_default();
        let each = words::append(own, &words::restrictions(items, &|_| false));
        if !each.is_empty() {
            words.push(format!("each: {}", each.trim_end_matches('.')));
        }
    }
    let text = words::append(own, &words);
    if text.is_empty() || !has_lines || text.ends_with([':', '.']) { text } else { format!("{text}.") }
}

/// A text of several lines stays under its bullet.
fn indented(text: &str, indent: &str) -> String {
    text.lines().map(str::trim_end).collect::<Vec<_>>().join(&format!("\n{indent}  "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_tool_reads_as_a_few_lines() {
        let parameters = json!({ "type": "object", "required": ["sides"], "properties": {
            "sides": { "type": "integer", "minimum": 2, "maximum": 1000, "description": "Sides on each die." },
            "note": { "type": "string" },
            "mode": { "type": "string", "enum": ["fair", "loaded"], "default": "fair", "description": "How" },
            "tags": { "type": "array", "items": { "type": "string", "minLength": 1 }, "description": "Words\nabout it." },
            "table": { "type": "object", "description": "Where", "required": ["room"], "properties": {
                "room": { "type": "string" }, "seats": { "type": "array", "items": { "type": "object", "properties": { "n": { "type": "integer" } } } } } },
        } });
        let text = text("roll", "Roll dice.", &parameters);
        assert_eq!(
            text,
            "roll: Roll dice.\nArguments:\n\
             - sides (whole number, required): Sides on each die (2 to 1000).\n\
             - note (text, optional)\n\
             - mode (text, optional): How (one of fair, loaded; fair where it is left out)\n\
             - tags (list of texts, optional): Words\n  about it (each: at least 1 character).\n\
             - table (object, optional): Where.\n  - room (text, required)\n  - seats (list of objects, optional)\n    - n (whole number, optional)"
        );
        assert_eq!(
            super::text("now", "Tell the time. ", &json!({ "type": "object" })),
            "now: Tell the time.\nNo arguments."
        );
    }
}
