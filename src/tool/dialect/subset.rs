//! JSON Schema without the keywords that a provider does not know: OpenAI's function tools and llama.cpp. What it drops is
//! said in the description.

use super::meet::type_words;
use super::words;
use serde_json::{Map, Value};

/// Most repetitions that a grammar of llama.cpp may count.
const MAX_REPEATED: u64 = 2000;

/// Whose JSON Schema it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Subset {
    /// What OpenAI documents for schemas; it shows the model no other keyword.
    OpenAi,
    /// What llama.cpp turns into a grammar.
    Llama,
}

/// A simplified schema in this subset.
pub(super) fn fold(schema: &Value, subset: Subset) -> Value {
    match schema {
        Value::Object(map) => Value::Object(object(map, subset)),
        other => other.clone(),
    }
}

fn object(map: &Map<String, Value>, subset: Subset) -> Map<String, Value> {
    let said = words::restrictions(map, &|keyword| {
        map.get(keyword).is_some_and(|value| is_known(keyword, value, map, subset))
    });
    let own = map.get("description").or_else(|| map.get("title")).and_then(Value::as_str).unwrap_or_default();
    let text = words::append(own, &said);
    let mut made = Map::new();
    for (keyword, value) in map.iter().filter(|(k, v)| is_known(k, v, map, subset)) {
        let value = match (keyword.as_str(), value) {
            ("description", _) => Value::String(text.clone()),
            ("properties", Value::Object(children)) => {
                Value::Object(children.iter().map(|(name, child)| (name.clone(), fold(child, subset))).collect())
            }
            ("anyOf", Value::Array(children)) => children.iter().map(|child| fold(child, subset)).collect(),
            ("items" | "additionalProperties", child) => fold(child, subset),
            (_, value) => value.clone(),
        };
        made.insert(keyword.clone(), value);
    }
    if !text.is_empty() {
        made.entry("description").or_insert(Value::String(text));
    }
    // A list by place is a list of anything that stands in one of the places.
    if !made.contains_key("items")
        && let Some(Value::Array(places)) = map.get("prefixItems")
        && let Some(item) = one_of_places(places)
    {
        made.insert("items".to_owned(), fold(&item, subset));
    }
    made
}

/// What any item of a list by place is.
pub(super) fn one_of_places(places: &[Value]) -> Option<Value> {
    let mut kinds: Vec<&Value> = Vec::new();
    for place in places {
        if !kinds.contains(&place) {
            kinds.push(place);
        }
    }
    match kinds.as_slice() {
        [] => None,
        [one] => Some((*one).clone()),
        several => Some(serde_json::json!({ "anyOf": several })),
    }
}

fn is_known(keyword: &str, value: &Value, map: &Map<String, Value>, subset: Subset) -> bool {
    let few = || value.as_u64().is_some_and(|n| n <= MAX_REPEATED);
    let is_llama = subset == Subset::Llama;
    match keyword {
        "type" | "description" | "properties" | "required" | "additionalProperties" | "enum" | "const" | "default" => {
            true
        }
        // `false` only has a meaning behind places.
        "items" => value.is_object(),
        "anyOf" => true,
        "minItems" | "maxItems" => !is_llama || few(),
        "minLength" | "maxLength" => is_llama && few(),
        "pattern" => !is_llama || value.as_str().is_some_and(is_for_grammars),
        "format" => value.as_str().is_some_and(|format| match subset {
            Subset::OpenAi => {
                ["date-time", "date", "time", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"].contains(&format)
            }
            Subset::Llama => ["date-time", "date", "time", "uuid"].contains(&format),
        }),
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => {
            !is_llama || map.get("type").map(type_words).is_some_and(|t| t == ["integer"]) && value.is_i64()
        }
        "multipleOf" => !is_llama,
        _ => false,
    }
}

/// Whether llama.cpp reads a pattern: from `^` to `$`, without look-around, boundaries, classes by name or back-references.
fn is_for_grammars(pattern: &str) -> bool {
    let ends = pattern.len() >= 2 && pattern.starts_with('^') && pattern.ends_with('$') && !pattern.ends_with("\\$");
    let mut chars = pattern.chars().peekable();
    let mut before = None;
    while let Some(c) = chars.next() {
        let next = chars.peek().copied();
        let is_read = match c {
            '\\' => next.is_some_and(|n| n.is_ascii_punctuation() || matches!(n, 'd' | 'w' | 's' | 'n' | 'r' | 't')),
            '(' => next != Some('?'),
            '$' => next.is_none(),
            '?' | '+' => !matches!(before, Some('?' | '*' | '+' | '}')),
            _ => true,
        };
        if !is_read {
            return false;
        }
        if c == '\\' {
            chars.next();
        }
        before = Some(c);
    }
    ends
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_a_subset_does_not_know_is_said() {
        let rows = [
            // What both know.
            (json!({ "type": "integer", "minimum": 2, "maximum": 9 }), None, None),
            (json!({ "type": "string", "enum": ["a", "b"], "description": "D." }), None, None),
            (json!({ "type": ["string", "null"], "format": "uuid" }), None, None),
            (json!({ "type": "array", "items": { "type": "string" }, "minItems": 1 }), None, None),
            (json!({ "type": "object", "properties": {}, "additionalProperties": { "type": "string" } }), None, None),
            (json!({ "anyOf": [{ "type": "string" }, { "type": "object", "properties": {} }] }), None, None),
            (json!({ "type": "string", "pattern": "^[a-z]+$", "default": "x" }), None, None),
            // What only one knows.
            (
                json!({ "type": "string", "minLength": 2 }),
                Some(json!({ "type": "string", "description": "at least 2 characters" })),
                None,
            ),
            (
                json!({ "type": "number", "minimum": 0.5, "description": "Share." }),
                None,
                Some(json!({ "type": "number", "description": "Share (at least 0.5)." })),
            ),
            (
                json!({ "type": "string", "format": "email" }),
                None,
                Some(json!({ "type": "string", "description": "an email address" })),
            ),
            (
                json!({ "type": "string", "pattern": "\\bx" }),
                None,
                Some(json!({ "type": "string", "description": "matches `\\bx`" })),
            ),
            (
                json!({ "type": "integer", "multipleOf": 5 }),
                None,
                Some(json!({ "type": "integer", "description": "a multiple of 5" })),
            ),
            (
                json!({ "type": "array", "maxItems": 100_000 }),
                None,
                Some(json!({ "type": "array", "description": "at most 100000 items" })),
            ),
            (
                json!({ "type": "string", "maxLength": 5000 }),
                Some(json!({ "type": "string", "description": "at most 5000 characters" })),
                Some(json!({ "type": "string", "description": "at most 5000 characters" })),
            ),
        ];
        for (schema, openai, llama) in rows {
            assert_eq!(fold(&schema, Subset::OpenAi), openai.unwrap_or_else(|| schema.clone()), "openai {schema}");
            assert_eq!(fold(&schema, Subset::Llama), llama.unwrap_or_else(|| schema.clone()), "llama {schema}");
        }
        let neither = [
            (json!({ "type": "string", "format": "uri" }), json!({ "type": "string", "description": "a URL" })),
            (
                json!({ "type": "array", "items": { "type": "string" }, "uniqueItems": true, "description": "Words." }),
                json!({ "type": "array", "items": { "type": "string" }, "description": "Words (no item twice)." }),
            ),
            (
                json!({ "type": "object", "properties": { "a": { "not": { "const": 0 } } }, "minProperties": 1 }),
                json!({ "type": "object", "properties": { "a": { "description": "not 0" } }, "description": "at least 1 entry" }),
            ),
            (
                json!({ "type": "array", "prefixItems": [{ "type": "number" }, { "type": "string" }], "items": false }),
                json!({ "type": "array", "description": "in this order: number, then text; no item beyond these",
                    "items": { "anyOf": [{ "type": "number" }, { "type": "string" }] } }),
            ),
            (json!({ "title": "Query", "type": "string" }), json!({ "type": "string", "description": "Query" })),
            (
                json!({ "title": "Query", "type": "string", "description": "What.", "examples": ["x"], "readOnly": true }),
                json!({ "type": "string", "description": "What (for example x)." }),
            ),
        ];
        for (schema, folded) in neither {
            for subset in [Subset::OpenAi, Subset::Llama] {
                assert_eq!(fold(&schema, subset), folded, "{subset:?} {schema}");
            }
        }
    }

    #[test]
    fn a_grammar_takes_plain_patterns_only() {
        let rows = [
            ("^a$", true),
            ("^[a-z0-9_-]{1,64}$", true),
            ("^(red|green)$", true),
            ("^\\d{4}-\\d{2}$", true),
            ("^a\\.b$", true),
            ("", false),
            ("a", false),
            ("^a", false),
            ("a$", false),
            ("^a\\$", false),
            ("^(?=x).*$", false),
            ("^(?:a|b)$", false),
            ("^\\bword$", false),
            ("^\\p{L}+$", false),
            ("^(a)\\1$", false),
            ("^a+?$", false),
            ("^(a$|b)$", false),
        ];
        for (pattern, fine) in rows {
            assert_eq!(is_for_grammars(pattern), fine, "{pattern}");
        }
    }
}
