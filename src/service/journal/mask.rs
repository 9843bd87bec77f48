//! Which arguments are secrets: those that the tool's schema marks, and those whose names say so. It takes them out and gives
//! their values, so that they can be taken out of everything else too.

use crate::service::secret::HIDDEN;
use serde_json::{Map, Value};
use zeroize::Zeroizing;

/// Most schemas that are looked at for one value, and how deep references lead: both can be endless.
const MAX_SCHEMAS: usize = 64;
const MAX_DEPTH: usize = 16;

/// What a name ends with that holds a secret, in lower case and without `_` and `-`.
const SECRET: [&str; 14] = [
    "password",
    "passwd",
    "passphrase",
    "passcode",
    "pwd",
    "secret",
    "apikey",
    "privatekey",
    "secretkey",
    "accesskey",
    "token",
    "authorization",
    "cookie",
    "credentials",
];
/// Names that end so and hold none: places in lists, and things that are counted.
const HARMLESS: [&str; 10] = [
    "pagetoken",
    "nexttoken",
    "continuationtoken",
    "synctoken",
    "maxtoken",
    "mintoken",
    "stoptoken",
    "starttoken",
    "endtoken",
    "resumetoken",
];

/// Takes the secrets out of `arguments` and gives their values; none where nothing was changed.
pub(super) fn hide(arguments: &mut Map<String, Value>, schema: &Value) -> Vec<Zeroizing<String>> {
    let mut hidden = Vec::new();
    object(arguments, &expanded(&[schema], schema), schema, &mut hidden);
    hidden
}

/// Whether a text that is no object of arguments may hold a secret: one that looks like an argument with such a name, or
/// anything, where the tool takes secrets.
pub(super) fn may_hold(text: &str, schema: &Value) -> bool {
    let folded = fold(text);
    SECRET.iter().any(|word| folded.contains(word)) || marks_any(schema, 0)
}

fn object(map: &mut Map<String, Value>, schemas: &[&Value], root: &Value, hidden: &mut Vec<Zeroizing<String>>) {
    for (key, value) in map {
        let own = expanded(&of_property(schemas, key), root);
        let is_marked = own.iter().any(|schema| is_secret(schema));
        if is_marked {
            take(value, hidden);
        } else if names_a_secret(key) {
            take_texts(value, hidden);
        } else {
            inside(value, &own, root, hidden);
        }
    }
}

fn inside(value: &mut Value, schemas: &[&Value], root: &Value, hidden: &mut Vec<Zeroizing<String>>) {
    match value {
        Value::Object(map) => object(map, schemas, root, hidden),
        Value::Array(items) => {
            let own = expanded(&of_items(schemas), root);
            let is_marked = own.iter().any(|schema| is_secret(schema));
            for item in items {
                if is_marked { take(item, hidden) } else { inside(item, &own, root, hidden) }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Takes out every text and number of a value.
fn take(value: &mut Value, hidden: &mut Vec<Zeroizing<String>>) {
    match value {
        Value::Number(number) => {
            hidden.push(Zeroizing::new(number.to_string()));
            *value = HIDDEN.into();
        }
        Value::Array(items) => items.iter_mut().for_each(|item| take(item, hidden)),
        Value::Object(map) => map.values_mut().for_each(|item| take(item, hidden)),
        Value::Null | Value::Bool(_) | Value::String(_) => take_texts(value, hidden),
    }
}

/// Takes out every text of a value: a number with such a name counts something, a switch shows or hides it.
fn take_texts(value: &mut Value, hidden: &mut Vec<Zeroizing<String>>) {
    match value {
        Value::String(text) if !text.is_empty() => hidden.push(Zeroizing::new(std::mem::replace(text, HIDDEN.into()))),
        Value::Array(items) => items.iter_mut().for_each(|item| take_texts(item, hidden)),
        Value::Object(map) => map.values_mut().for_each(|item| take_texts(item, hidden)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Whether a schema says that its value is not to be shown.
fn is_secret(schema: &Value) -> bool {
    schema.get("writeOnly").and_then(Value::as_bool) == Some(true)
        || schema.get("format").and_then(Value::as_str) == Some("password")
}

/// Whether a schema marks anything, however deep.
fn marks_any(schema: &Value, depth: usize) -> bool {
    depth < MAX_DEPTH
        && match schema {
            Value::Object(map) => is_secret(schema) || map.values().any(|inner| marks_any(inner, depth + 1)),
            Value::Array(items) => items.iter().any(|inner| marks_any(inner, depth + 1)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
        }
}

/// Whether a name is one that secrets have.
fn names_a_secret(name: &str) -> bool {
    let folded = fold(name);
    let ends_so = |words: &[&str]| words.iter().any(|word| folded.ends_with(word));
    ends_so(&SECRET) && !ends_so(&HARMLESS)
}

fn fold(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// What the schemas of an object say of one of its properties.
fn of_property<'a>(schemas: &[&'a Value], key: &str) -> Vec<&'a Value> {
    let mut out = Vec::new();
    for schema in schemas {
        match schema.get("properties").and_then(|properties| properties.get(key)) {
            Some(own) => out.push(own),
            None => {
                // Which pattern fits is not looked at: one that is a secret is enough.
                out.extend(
                    schema.get("patternProperties").and_then(Value::as_object).into_iter().flat_map(Map::values),
                );
                out.extend(schema.get("additionalProperties"));
            }
        }
    }
    out
}

/// What the schemas of a list say of its items.
fn of_items<'a>(schemas: &[&'a Value]) -> Vec<&'a Value> {
    let mut out = Vec::new();
    for schema in schemas {
        out.extend(schema.get("prefixItems").and_then(Value::as_array).into_iter().flatten());
        match schema.get("items") {
            Some(Value::Array(items)) => out.extend(items),
            Some(items) => out.push(items),
            None => {}
        }
    }
    out
}

/// The schemas, and those that they are made of.
fn expanded<'a>(schemas: &[&'a Value], root: &'a Value) -> Vec<&'a Value> {
    let mut out = schemas.to_vec();
    let mut at = 0;
    while at < out.len() && out.len() < MAX_SCHEMAS {
        let schema = out[at];
        let mut add = |inner: &'a Value| {
            if !out.iter().any(|known| std::ptr::eq(*known, inner)) {
                out.push(inner);
            }
        };
        for word in ["allOf", "anyOf", "oneOf"] {
            schema.get(word).and_then(Value::as_array).into_iter().flatten().for_each(&mut add);
        }
        for word in ["then", "else"] {
            schema.get(word).into_iter().for_each(&mut add);
        }
        let target = schema.get("$ref").and_then(Value::as_str).and_then(|place| place.strip_prefix('#'));
        target.and_then(|pointer| root.pointer(pointer)).into_iter().for_each(&mut add);
        at += 1;
    }
    out
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use serde_json::json;

    fn masked(arguments: Value, schema: &Value) -> (Value, Vec<String>) {
        let Value::Object(mut map) = arguments else { panic!("arguments are an object") };
        let hidden = hide(&mut map, schema).into_iter().map(|value| value.to_string()).collect();
        (Value::Object(map), hidden)
    }

    #[test]
    fn arguments_that_the_schema_marks_are_taken_out_wherever_they_stand() {
        let pin = json!({ "type": "integer", "writeOnly": true });
        let word = json!({ "type": "string", "format": "password" });
        let of = |inner: Value| json!({ "type": "object", "properties": { "a": inner } });
        let rows = [
            (of(word.clone()), json!({ "a": "x1" }), json!({ "a": "***" }), vec!["x1"]),
            (of(pin.clone()), json!({ "a": 4711 }), json!({ "a": "***" }), vec!["4711"]),
            (of(word.clone()), json!({ "a": "" }), json!({ "a": "" }), vec![]),
            (of(word.clone()), json!({ "a": null }), json!({ "a": null }), vec![]),
            (of(word.clone()), json!({ "b": "x1" }), json!({ "b": "x1" }), vec![]),
            (
                of(of(word.clone())),
                json!({ "a": { "a": "x", "b": "y" } }),
                json!({ "a": { "a": "***", "b": "y" } }),
                vec!["x"],
            ),
            (of(json!({ "items": word })), json!({ "a": ["x", "y"] }), json!({ "a": ["***", "***"] }), vec!["x", "y"]),
            (
                of(json!({ "items": of(pin.clone()) })),
                json!({ "a": [{ "a": 1 }] }),
                json!({ "a": [{ "a": "***" }] }),
                vec!["1"],
            ),
            (
                of(json!({ "prefixItems": [{}, word] })),
                json!({ "a": ["x", "y"] }),
                json!({ "a": ["***", "***"] }),
                vec!["x", "y"],
            ),
            (of(json!({ "anyOf": [{ "type": "null" }, word] })), json!({ "a": "x" }), json!({ "a": "***" }), vec!["x"]),
            (of(json!({ "allOf": [{ "oneOf": [word] }] })), json!({ "a": "x" }), json!({ "a": "***" }), vec!["x"]),
            (
                of(json!({ "writeOnly": true })),
                json!({ "a": { "b": ["x", 2, true] } }),
                json!({ "a": { "b": ["***", "***", true] } }),
                vec!["x", "2"],
            ),
            (json!({ "additionalProperties": word }), json!({ "a": "x" }), json!({ "a": "***" }), vec!["x"]),
            (json!({ "patternProperties": { "^a": word } }), json!({ "a": "x" }), json!({ "a": "***" }), vec!["x"]),
            (
                json!({ "$defs": { "w": word }, "properties": { "a": { "$ref": "#/$defs/w" } } }),
                json!({ "a": "x" }),
                json!({ "a": "***" }),
                vec!["x"],
            ),
            (
                json!({ "properties": { "a": { "$ref": "#" }, "b": word } }),
                json!({ "a": { "a": { "b": "x" } } }),
                json!({ "a": { "a": { "b": "***" } } }),
                vec!["x"],
            ),
            (
                json!({ "allOf": [{ "$ref": "#" }], "properties": { "a": {} } }),
                json!({ "a": "x" }),
                json!({ "a": "x" }),
                vec![],
            ),
            (
                json!({ "if": { "properties": { "b": {} } }, "then": of(word.clone()) }),
                json!({ "a": "x" }),
                json!({ "a": "***" }),
                vec!["x"],
            ),
            (json!(true), json!({ "a": "x" }), json!({ "a": "x" }), vec![]),
            (json!({ "properties": { "a": true } }), json!({ "a": "x" }), json!({ "a": "x" }), vec![]),
        ];
        for (schema, given, expected, values) in rows {
            assert_eq!(
                masked(given.clone(), &schema),
                (expected, values.into_iter().map(str::to_owned).collect()),
                "{schema} {given}"
            );
        }
    }

    #[test]
    fn a_name_that_says_so_makes_a_text_a_secret() {
        let secret = [
            "password",
            "PASSWORD",
            "db_password",
            "userPasswd",
            "pwd",
            "secret",
            "client_secret",
            "clientSecret",
            "api_key",
            "apiKey",
            "x-api-key",
            "X-Api-Key",
            "token",
            "access_token",
            "refreshToken",
            "bearer_token",
            "Authorization",
            "proxy-authorization",
            "cookie",
            "Set-Cookie",
            "private_key",
            "secret_key",
            "aws_access_key",
            "credentials",
            "passphrase",
            "passcode",
            "csrf_token",
        ];
        let plain = [
            "name",
            "key",
            "keyword",
            "passenger",
            "tokens",
            "max_tokens",
            "page_token",
            "next_page_token",
            "nextToken",
            "continuation_token",
            "sync_token",
            "secretary",
            "cookies_per_person",
            "tokenizer",
            "password_length",
            "forgot_password_url",
            "author",
            "bypass",
            "compass",
            "max_token",
            "",
        ];
        for name in secret {
            let (value, hidden) = masked(json!({ name: "hunter2" }), &json!({}));
            assert_eq!((&value[name], hidden.len()), (&json!("***"), 1), "{name}");
            let (value, _) = masked(json!({ "headers": { name: ["hunter2", 5, true] } }), &json!({}));
            assert_eq!(value["headers"][name], json!(["***", 5, true]), "{name}");
            for other in [json!(5), json!(true), json!(null), json!("")] {
                assert_eq!(masked(json!({ name: other }), &json!({})).0[name], other, "{name}");
            }
        }
        for name in plain {
            assert_eq!(masked(json!({ name: "hunter2" }), &json!({})).0[name], json!("hunter2"), "{name}");
        }
    }

    #[test]
    fn what_is_no_object_of_arguments_is_looked_at_as_a_whole() {
        let marked = json!({ "properties": { "a": { "items": { "format": "password" } } } });
        for (text, schema, expected) in [
            ("{\"pass-word\": \"hunt", &json!({}), true),
            ("{\"password\": \"hunt", &json!({}), true),
            ("{\"a\": \"hunt", &json!({}), false),
            ("{\"a\": \"hunt", &marked, true),
            ("[1, 2]", &json!(true), false),
        ] {
            assert_eq!(may_hold(text, schema), expected, "{text} {schema}");
        }
    }
}
