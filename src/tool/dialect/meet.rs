//! What satisfies two schemas at once, as one schema, where one can be written. It knows no provider and no reference.

use serde_json::{Map, Value};

/// Both schemas in one; `None` where they contradict each other or one schema cannot say it.
pub(super) fn meet(a: &Map<String, Value>, b: &Map<String, Value>) -> Option<Map<String, Value>> {
    let mut both = a.clone();
    for (keyword, theirs) in b {
        let Some(ours) = both.get(keyword) else {
            both.insert(keyword.clone(), theirs.clone());
            continue;
        };
        if ours == theirs {
            continue;
        }
        let met = match keyword.as_str() {
            "description" => match (ours.as_str(), theirs.as_str()) {
                (Some(ours), Some(theirs)) => Value::String(format!("{} {theirs}", ours.trim_end())),
                _ => ours.clone(),
            },
            "title" | "default" | "examples" | "deprecated" | "readOnly" | "writeOnly" => ours.clone(),
            "type" => types(ours, theirs)?,
            "properties" => {
                let (ours, theirs) = (ours.as_object()?, theirs.as_object()?);
                let mut all = ours.clone();
                for (name, schema) in theirs {
                    let met = match ours.get(name) {
                        Some(own) => schemas(own, schema)?,
                        None => schema.clone(),
                    };
                    all.insert(name.clone(), met);
                }
                Value::Object(all)
            }
            "required" | "allOf" => {
                let mut all = ours.as_array()?.clone();
                all.extend(
                    theirs.as_array()?.iter().filter(|t| !ours.as_array().is_some_and(|o| o.contains(t))).cloned(),
                );
                Value::Array(all)
            }
            "enum" => {
                let theirs = theirs.as_array()?;
                let left: Vec<Value> = ours.as_array()?.iter().filter(|v| theirs.contains(v)).cloned().collect();
                if left.is_empty() {
                    return None;
                }
                Value::Array(left)
            }
            "minimum" | "exclusiveMinimum" | "minLength" | "minItems" | "minProperties" => {
                if ours.as_f64()? >= theirs.as_f64()? { ours.clone() } else { theirs.clone() }
            }
            "maximum" | "exclusiveMaximum" | "maxLength" | "maxItems" | "maxProperties" => {
                if ours.as_f64()? <= theirs.as_f64()? { ours.clone() } else { theirs.clone() }
            }
            "uniqueItems" => Value::Bool(true),
            "items" | "additionalProperties" | "unevaluatedProperties" => schemas(ours, theirs)?,
            _ => return None,
        };
        both.insert(keyword.clone(), met);
    }
    Some(both)
}

fn schemas(a: &Value, b: &Value) -> Option<Value> {
    match (a, b) {
        (Value::Bool(true), other) | (other, Value::Bool(true)) => Some(other.clone()),
        (Value::Bool(false), _) | (_, Value::Bool(false)) => Some(Value::Bool(false)),
        (Value::Object(a), Value::Object(b)) => meet(a, b).map(Value::Object),
        _ => None,
    }
}

/// The types that both name; every integer is a number.
fn types(a: &Value, b: &Value) -> Option<Value> {
    let (a, b) = (type_words(a), type_words(b));
    let mut left: Vec<&str> = Vec::new();
    for word in &a {
        let kept = match *word {
            "number" if !b.contains(&"number") && b.contains(&"integer") => Some("integer"),
            "integer" if b.contains(&"number") => Some("integer"),
            word if b.contains(&word) => Some(word),
            _ => None,
        };
        left.extend(kept.filter(|k| !left.contains(k)));
    }
    match left.as_slice() {
        [] => None,
        [one] => Some(Value::from(*one)),
        many => Some(many.iter().copied().collect()),
    }
}

/// The words of a `type`.
pub(super) fn type_words(value: &Value) -> Vec<&str> {
    match value {
        Value::String(word) => vec![word],
        Value::Array(words) => words.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn two_schemas_become_one_or_none() {
        let rows = [
            (json!({}), json!({ "type": "string" }), Some(json!({ "type": "string" }))),
            (json!({ "type": "number" }), json!({ "type": "integer" }), Some(json!({ "type": "integer" }))),
            (json!({ "type": ["string", "null"] }), json!({ "type": "string" }), Some(json!({ "type": "string" }))),
            (json!({ "type": ["a", "b", "c"] }), json!({ "type": ["c", "a"] }), Some(json!({ "type": ["a", "c"] }))),
            (json!({ "type": "string" }), json!({ "type": "integer" }), None),
            (
                json!({ "minimum": 1 }),
                json!({ "minimum": 3, "maximum": 9 }),
                Some(json!({ "minimum": 3, "maximum": 9 })),
            ),
            (json!({ "maxLength": 4 }), json!({ "maxLength": 9 }), Some(json!({ "maxLength": 4 }))),
            (json!({ "enum": [1, 2, 3] }), json!({ "enum": [3, 2] }), Some(json!({ "enum": [2, 3] }))),
            (json!({ "enum": [1] }), json!({ "enum": [2] }), None),
            (json!({ "const": 1 }), json!({ "const": 2 }), None),
            (json!({ "pattern": "a" }), json!({ "pattern": "b" }), None),
            (json!({ "required": ["a"] }), json!({ "required": ["b", "a"] }), Some(json!({ "required": ["a", "b"] }))),
            (
                json!({ "properties": { "a": { "type": "number" }, "b": {} } }),
                json!({ "properties": { "a": { "type": "integer" }, "c": {} } }),
                Some(json!({ "properties": { "a": { "type": "integer" }, "b": {}, "c": {} } })),
            ),
            (
                json!({ "additionalProperties": true }),
                json!({ "additionalProperties": false }),
                Some(json!({ "additionalProperties": false })),
            ),
            (
                json!({ "items": { "minLength": 1 } }),
                json!({ "items": { "minLength": 2 } }),
                Some(json!({ "items": { "minLength": 2 } })),
            ),
            (json!({ "description": "A." }), json!({ "description": "B." }), Some(json!({ "description": "A. B." }))),
        ];
        for (a, b, both) in rows {
            let met = meet(a.as_object().unwrap(), b.as_object().unwrap()).map(Value::Object);
            assert_eq!(met, both, "{a} {b}");
        }
    }
}
