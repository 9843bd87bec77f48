//! Whether OpenAI's strict mode could hold for a tool: it takes only schemas that leave nothing open. It changes nothing.

use super::meet::type_words;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

/// Most reasons that are told.
const MAX_REASONS: usize = 20;
/// OpenAI's limits for one schema.
const MAX_LEVELS: usize = 10;
const MAX_PROPERTIES: usize = 5_000;
const MAX_VALUES: usize = 1_000;
const MAX_CHARACTERS: usize = 120_000;

/// Whether `strict: true` may be set on a function tool as it is sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Strict {
    /// It may.
    pub holds: bool,
    /// What stands in the way, with its place; at most 20.
    pub obstacles: Vec<String>,
}

/// Judges parameters in OpenAI's subset.
pub(super) fn judge(parameters: &Value) -> Strict {
    let mut work = Judge { obstacles: Vec::new(), properties: 0, values: 0, characters: 0, is_deep: false };
    work.schema(parameters, "the arguments", 1);
    let limits = [
        (work.is_deep, format!("it nests more than {MAX_LEVELS} levels deep")),
        (work.properties > MAX_PROPERTIES, format!("it has more than {MAX_PROPERTIES} properties")),
        (work.values > MAX_VALUES, format!("its enums have more than {MAX_VALUES} values")),
        (work.characters > MAX_CHARACTERS, format!("its names and values have more than {MAX_CHARACTERS} characters")),
    ];
    work.obstacles.extend(limits.into_iter().filter(|(is_over, _)| *is_over).map(|(_, words)| words));
    work.obstacles.truncate(MAX_REASONS);
    Strict { holds: work.obstacles.is_empty(), obstacles: work.obstacles }
}

struct Judge {
    obstacles: Vec<String>,
    properties: usize,
    values: usize,
    characters: usize,
    is_deep: bool,
}

impl Judge {
    fn refuse(&mut self, words: String) {
        if self.obstacles.len() < MAX_REASONS {
            self.obstacles.push(words);
        }
    }

    fn schema(&mut self, schema: &Value, place: &str, level: usize) {
        let Some(map) = schema.as_object() else { return };
        let types = map.get("type").map(type_words).unwrap_or_default();
        if !["type", "anyOf", "enum", "const"].iter().any(|k| map.contains_key(*k)) {
            self.refuse(format!("{place} may be anything"));
        }
        if map.contains_key("default") {
            self.refuse(format!("{place} has a default"));
        }
        for value in map.get("enum").and_then(Value::as_array).into_iter().flatten().chain(map.get("const")) {
            self.values += 1;
            self.characters += value.as_str().map_or(0, str::len);
        }
        if types.contains(&"object") {
            self.object(map, place, level);
        }
        if types.contains(&"array") {
            match map.get("items") {
                Some(items) => self.schema(items, &format!("an item of {place}"), level + 1),
                None => self.refuse(format!("{place} may hold anything")),
            }
        }
        for branch in map.get("anyOf").and_then(Value::as_array).into_iter().flatten() {
            self.schema(branch, place, level);
        }
    }

    fn object(&mut self, map: &Map<String, Value>, place: &str, level: usize) {
        self.is_deep |= level > MAX_LEVELS;
        match map.get("additionalProperties") {
            Some(Value::Bool(false)) => {}
            Some(Value::Object(_)) => self.refuse(format!("{place} may have entries of any name")),
            _ => {
                self.refuse(format!("{place} may have properties that are not named: no `additionalProperties: false`"))
            }
        }
        let required = map.get("required").and_then(Value::as_array);
        for (name, property) in map.get("properties").and_then(Value::as_object).into_iter().flatten() {
            self.properties += 1;
            self.characters += name.len();
            let inner = if level == 1 { format!("`{name}`") } else { format!("`{name}` in {place}") };
            if !required.is_some_and(|list| list.iter().any(|r| r == name.as_str())) {
                self.refuse(format!("{inner} may be left out"));
            }
            self.schema(property, &inner, level + 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn strict_mode_holds_only_where_nothing_is_open() {
        let closed = |properties: Value, required: Value| json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false });
        let rows = [
            (closed(json!({}), json!([])), None),
            (closed(json!({ "a": { "type": "string" } }), json!(["a"])), None),
            (closed(json!({ "a": { "type": ["string", "null"] } }), json!(["a"])), None),
            (closed(json!({ "a": { "type": "array", "items": { "type": "string" } } }), json!(["a"])), None),
            (closed(json!({ "a": { "anyOf": [{ "type": "string" }, { "type": "null" }] } }), json!(["a"])), None),
            (closed(json!({ "a": closed(json!({ "b": { "enum": ["x"] } }), json!(["b"])) }), json!(["a"])), None),
            (closed(json!({ "a": { "type": "string" } }), json!([])), Some("`a` may be left out")),
            (closed(json!({ "a": {} }), json!(["a"])), Some("`a` may be anything")),
            (closed(json!({ "a": { "type": "integer", "default": 1 } }), json!(["a"])), Some("`a` has a default")),
            (closed(json!({ "a": { "type": "array" } }), json!(["a"])), Some("`a` may hold anything")),
            (
                closed(
                    json!({ "a": { "type": "object", "additionalProperties": { "type": "string" } } }),
                    json!(["a"]),
                ),
                Some("`a` may have entries of any name"),
            ),
            (
                json!({ "type": "object", "properties": {} }),
                Some("the arguments may have properties that are not named"),
            ),
            (
                closed(json!({ "a": closed(json!({ "b": { "type": "string" } }), json!([])) }), json!(["a"])),
                Some("`b` in `a` may be left out"),
            ),
            (
                closed(
                    json!({ "a": { "type": "string", "enum": (0..1001).map(|n| n.to_string()).collect::<Vec<_>>() } }),
                    json!(["a"]),
                ),
                Some("more than 1000 values"),
            ),
        ];
        for (schema, obstacle) in rows {
            let strict = judge(&schema);
            assert_eq!(strict.holds, obstacle.is_none(), "{schema}: {strict:?}");
            if let Some(obstacle) = obstacle {
                assert!(strict.obstacles.iter().any(|o| o.contains(obstacle)), "{schema}: {strict:?}");
            }
        }
        let deep = (0..12).fold(json!({ "type": "string" }), |inner, _| closed(json!({ "x": inner }), json!(["x"])));
        assert!(judge(&deep).obstacles.iter().any(|o| o.contains("levels deep")));
    }
}
