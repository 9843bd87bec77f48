//! A schema with fewer ways to say a thing: no booleans for schemas, no `allOf` that one schema can say, alternatives as a
//! type, an enum or `anyOf`. It knows no reference and no provider.

use super::inline::ANNOTATIONS;
use super::meet::{meet, type_words};
use super::words;
use crate::tool::keywords::{Holds, holds};
use serde_json::{Map, Value, json};

/// Most values that alternatives may come to when what stands beside them is written into each.
const MAX_SPREAD: usize = 600;

/// Whether `anyOf` may stand beside other keywords.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Beside {
    /// It may.
    Allowed,
    /// Alternatives stand alone: what was beside them goes into each, or they become words.
    Refused,
}

/// Simplifies a schema without references.
pub(super) fn simplify(schema: Value, beside: Beside) -> Value {
    match schema {
        Value::Object(map) => Value::Object(object(map, beside)),
        Value::Bool(false) => json!({ "not": {} }),
        _ => json!({}),
    }
}

fn object(map: Map<String, Value>, beside: Beside) -> Map<String, Value> {
    let mut made = Map::new();
    for (keyword, value) in map {
        let value = match (keyword.as_str(), holds(&keyword, &value), value) {
            ("properties", _, Value::Object(children)) => {
                let kept = children.into_iter().filter(|(_, child)| *child != Value::Bool(false));
                Value::Object(kept.map(|(name, child)| (name, simplify(child, beside))).collect())
            }
            (_, Holds::Named, Value::Object(children)) => {
                Value::Object(children.into_iter().map(|(name, child)| (name, simplify(child, beside))).collect())
            }
            (_, Holds::List, Value::Array(children)) => {
                children.into_iter().map(|child| simplify(child, beside)).collect()
            }
            ("items" | "unevaluatedItems", _, Value::Bool(true)) => continue,
            ("items" | "additionalProperties" | "unevaluatedProperties" | "unevaluatedItems", _, Value::Bool(word)) => {
                Value::Bool(word)
            }
            (_, Holds::One, child) => simplify(child, beside),
            (_, _, value) => value,
        };
        made.insert(keyword, value);
    }
    all_of(&mut made);
    any_of(&mut made);
    if beside == Beside::Refused {
        spread(&mut made);
    }
    made
}

/// Writes what has to hold as well into the schema itself; what does not fit there stays.
fn all_of(map: &mut Map<String, Value>) {
    let Some(Value::Array(parts)) = map.shift_remove("allOf") else { return };
    let mut left = Vec::new();
    for part in parts {
        let met = part.as_object().and_then(|part| meet(map, part));
        match met {
            Some(met) => *map = met,
            None => left.push(part),
        }
    }
    if let Some(Value::Array(inner)) = map.shift_remove("allOf") {
        left.extend(inner);
    }
    if !left.is_empty() {
        map.insert("allOf".to_owned(), Value::Array(left));
    }
}

/// Makes alternatives a type, an enum or one `anyOf`.
fn any_of(map: &mut Map<String, Value>) {
    if !map.contains_key("anyOf")
        && let Some(one) = map.shift_remove("oneOf")
    {
        map.insert("anyOf".to_owned(), one);
    }
    let Some(Value::Array(branches)) = map.get("anyOf") else { return };
    let mut flat: Vec<Value> = Vec::new();
    for branch in branches {
        let inner = branch.as_object().filter(|b| b.len() == 1).and_then(|b| b.get("anyOf")).and_then(Value::as_array);
        for branch in inner.unwrap_or(&vec![branch.clone()]) {
            if !flat.contains(branch) {
                flat.push(branch.clone());
            }
        }
    }
    if flat.is_empty() || flat.iter().any(|b| b.as_object().is_some_and(Map::is_empty)) {
        map.shift_remove("anyOf");
        return;
    }
    let is_nullable = flat.iter().any(is_null);
    flat.retain(|branch| !is_null(branch));
    let single = match flat.as_slice() {
        [] => Some(json!({ "type": "null" })),
        [one] => Some(one.clone()),
        several => types_only(several).or_else(|| values_only(several)),
    };
    let written = single.and_then(|single| {
        let single = if is_nullable { nullable(single)? } else { single };
        let mut rest = map.clone();
        rest.shift_remove("anyOf");
        // The schema's own description comes before the alternative's.
        meet(&rest, single.as_object()?)
    });
    match written {
        Some(written) => *map = written,
        None => {
            if is_nullable {
                flat.push(json!({ "type": "null" }));
            }
            map.insert("anyOf".to_owned(), Value::Array(flat));
        }
    }
}

fn is_null(schema: &Value) -> bool {
    let Some(map) = schema.as_object() else { return false };
    let says_null = |(k, v): (&String, &Value)| match k.as_str() {
        "type" => v == "null",
        "const" => v.is_null(),
        "enum" => v.as_array().is_some_and(|l| l.len() == 1 && l[0].is_null()),
        _ => false,
    };
    !map.is_empty()
        && map.iter().filter(|(k, _)| !ANNOTATIONS.contains(&k.as_str())).all(says_null)
        && map.keys().any(|k| matches!(k.as_str(), "type" | "const" | "enum"))
}

/// The schema with null allowed, where its keywords say nothing against it.
fn nullable(schema: Value) -> Option<Value> {
    let Value::Object(mut map) = schema else { return None };
    if map.contains_key("const") || ["anyOf", "oneOf", "allOf", "not", "if"].iter().any(|k| map.contains_key(*k)) {
        return None;
    }
    let mut types: Vec<Value> = type_words(map.get("type")?).into_iter().map(Value::from).collect();
    if !types.iter().any(|t| t == "null") {
        types.push("null".into());
    }
    map.insert("type".to_owned(), Value::Array(types));
    if let Some(Value::Array(values)) = map.get_mut("enum")
        && !values.contains(&Value::Null)
    {
        values.push(Value::Null);
    }
    Some(Value::Object(map))
}

/// `string or number`, where the alternatives say no more than that.
fn types_only(branches: &[Value]) -> Option<Value> {
    let mut words: Vec<&str> = Vec::new();
    for branch in branches {
        let map = branch.as_object().filter(|m| m.len() == 1)?;
        for word in type_words(map.get("type")?) {
            if !words.contains(&word) {
                words.push(word);
            }
        }
    }
    Some(json!({ "type": words }))
}

/// One enum, where every alternative is a value; what is said about each goes into the description.
fn values_only(branches: &[Value]) -> Option<Value> {
    let mut values = Vec::new();
    let mut types: Vec<&str> = Vec::new();
    let mut said = Vec::new();
    for branch in branches {
        let map = branch.as_object()?;
        if map.keys().any(|k| !matches!(k.as_str(), "const" | "enum" | "type" | "description" | "title")) {
            return None;
        }
        let own = match (map.get("const"), map.get("enum")) {
            (Some(value), None) => vec![value.clone()],
            (None, Some(Value::Array(list))) => list.clone(),
            _ => return None,
        };
        types.extend(map.get("type").map(type_words).unwrap_or_default());
        let about = map.get("description").or_else(|| map.get("title")).and_then(Value::as_str);
        if let (Some(about), [value]) = (about, own.as_slice()) {
            said.push(format!("{}: {}", words::shown(value), about.trim().trim_end_matches('.')));
        }
        for value in own {
            if !values.contains(&value) {
                values.push(value);
            }
        }
    }
    types.sort_unstable();
    types.dedup();
    let mut made = json!({ "enum": values });
    match types.as_slice() {
        [] => {}
        [one] => made["type"] = (*one).into(),
        several => made["type"] = several.iter().copied().collect(),
    }
    if !said.is_empty() {
        made["description"] = format!("{}.", said.join("; ")).into();
    }
    Some(made)
}

/// Makes `anyOf` stand alone but for annotations.
fn spread(map: &mut Map<String, Value>) {
    let Some(Value::Array(branches)) = map.get("anyOf") else { return };
    let is_annotation = |k: &str| ANNOTATIONS.contains(&k);
    if map.keys().all(|k| k == "anyOf" || is_annotation(k)) && !branches.iter().all(only_restricts) {
        return;
    }
    let beside: Map<String, Value> =
        map.iter().filter(|(k, _)| *k != "anyOf" && !is_annotation(k)).map(|(k, v)| (k.clone(), v.clone())).collect();
    let size = count(&Value::Object(beside.clone())) * branches.len() + branches.iter().map(count).sum::<usize>();
    let spread: Option<Vec<Value>> = if size > MAX_SPREAD || branches.iter().all(only_restricts) {
        None
    } else {
        branches.iter().map(|b| meet(&beside, b.as_object()?).map(Value::Object)).collect()
    };
    match spread {
        Some(branches) => {
            map.retain(|k, _| is_annotation(k));
            map.insert("anyOf".to_owned(), Value::Array(branches));
        }
        None => {
            let said = words::restrictions(map, &|k| k != "anyOf");
            let own = map.get("description").and_then(Value::as_str).unwrap_or_default();
            let text = words::append(own, &said);
            map.shift_remove("anyOf");
            map.insert("description".to_owned(), text.into());
        }
    }
}

/// An alternative that only restricts what stands beside it, such as `required` alone.
fn only_restricts(schema: &Value) -> bool {
    let shapes = ["type", "properties", "items", "prefixItems", "enum", "const", "anyOf", "additionalProperties"];
    schema.as_object().is_some_and(|map| !shapes.iter().any(|k| map.contains_key(*k)))
}

fn count(value: &Value) -> usize {
    1 + match value {
        Value::Array(list) => list.iter().map(count).sum::<usize>(),
        Value::Object(map) => map.values().map(count).sum::<usize>(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_way_to_say_a_thing_is_left() {
        let rows = [
            (json!(true), json!({})),
            (json!(false), json!({ "not": {} })),
            (json!({ "properties": { "a": true, "b": false } }), json!({ "properties": { "a": {} } })),
            (json!({ "items": true, "type": "array" }), json!({ "type": "array" })),
            (json!({ "additionalProperties": false }), json!({ "additionalProperties": false })),
            (
                json!({ "allOf": [{ "type": "string" }, { "minLength": 2 }] }),
                json!({ "type": "string", "minLength": 2 }),
            ),
            (json!({ "minLength": 1, "allOf": [{ "minLength": 2 }] }), json!({ "minLength": 2 })),
            (
                json!({ "pattern": "a", "allOf": [{ "pattern": "b" }, { "minLength": 2 }] }),
                json!({ "pattern": "a", "minLength": 2, "allOf": [{ "pattern": "b" }] }),
            ),
            (json!({ "oneOf": [{ "type": "string" }, { "type": "number" }] }), json!({ "type": ["string", "number"] })),
            (json!({ "anyOf": [{ "type": "string" }, { "type": "null" }] }), json!({ "type": ["string", "null"] })),
            (
                json!({ "anyOf": [{ "type": "string", "minLength": 1 }, { "const": null }] }),
                json!({ "type": ["string", "null"], "minLength": 1 }),
            ),
            (
                json!({ "anyOf": [{ "type": "string", "enum": ["a"] }, { "type": "null" }], "description": "D." }),
                json!({ "description": "D.", "type": ["string", "null"], "enum": ["a", null] }),
            ),
            (json!({ "anyOf": [{ "type": "string" }] }), json!({ "type": "string" })),
            (json!({ "anyOf": [{ "type": "string" }, {}] }), json!({})),
            (
                json!({ "anyOf": [{ "type": "string", "minLength": 1 }, { "type": "string", "minLength": 1 }] }),
                json!({ "type": "string", "minLength": 1 }),
            ),
            (
                json!({ "oneOf": [{ "const": "a", "description": "First." }, { "const": "b", "title": "Second" }, { "const": "c" }] }),
                json!({ "enum": ["a", "b", "c"], "description": "a: First; b: Second." }),
            ),
            (
                json!({ "anyOf": [{ "anyOf": [{ "type": "string", "maxLength": 1 }, { "type": "array" }] }, { "type": "object" }] }),
                json!({ "anyOf": [{ "type": "string", "maxLength": 1 }, { "type": "array" }, { "type": "object" }] }),
            ),
            (
                json!({ "type": "object", "anyOf": [{ "required": ["a"] }, { "required": ["b"] }] }),
                json!({ "type": "object", "anyOf": [{ "required": ["a"] }, { "required": ["b"] }] }),
            ),
        ];
        for (schema, simple) in rows {
            assert_eq!(simplify(schema.clone(), Beside::Allowed), simple, "{schema}");
        }
    }

    #[test]
    fn alternatives_that_have_to_stand_alone_take_along_what_was_beside_them() {
        let rows = [
            (
                json!({ "type": "object", "description": "D.", "properties": { "a": {} },
                    "anyOf": [{ "properties": { "b": {} } }, { "properties": { "c": {} } }] }),
                json!({ "description": "D.", "anyOf": [
                    { "type": "object", "properties": { "a": {}, "b": {} } }, { "type": "object", "properties": { "a": {}, "c": {} } }] }),
            ),
            (
                json!({ "type": "object", "description": "D.", "properties": { "a": {}, "b": {} }, "anyOf": [{ "required": ["a"] }, { "required": ["b"] }] }),
                json!({ "type": "object", "description": "D (either with `a`, or with `b`).", "properties": { "a": {}, "b": {} } }),
            ),
            (
                json!({ "pattern": "x", "anyOf": [{ "type": "string", "pattern": "y" }, { "type": "integer" }] }),
                json!({ "pattern": "x", "description": "either text, matches `y`, or whole number" }),
            ),
            (
                json!({ "anyOf": [{ "type": "string", "minLength": 1 }, { "type": "integer" }] }),
                json!({ "anyOf": [{ "type": "string", "minLength": 1 }, { "type": "integer" }] }),
            ),
        ];
        for (schema, simple) in rows {
            assert_eq!(simplify(schema.clone(), Beside::Refused), simple, "{schema}");
        }
    }

    #[test]
    fn alternatives_within_alternatives_do_not_explode() {
        let mut schema = json!({ "type": "object", "properties": { "z": { "type": "string" } } });
        for _ in 0..20 {
            schema = json!({ "type": "object", "properties": { "x": schema },
                "anyOf": [{ "properties": { "a": { "type": "string" } } }, { "properties": { "b": { "type": "string" } } }] });
        }
        assert!(simplify(schema, Beside::Refused).to_string().len() < 200_000);
    }
}
