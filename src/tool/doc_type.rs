//! The small type language of documented functions: `integer 2..10`, `string[]`, `"sum"|"list"`, and defaults for them.
//! A type in braces goes in, a JSON Schema comes out.

use super::schema::cut;
use crate::base::json;
use serde_json::{Map, Value, json};

/// What can be written between the braces, for messages.
pub(super) const FORMS: &str = "string, integer, number, boolean, array, object, a range such as integer 2..10 or string 1..80, a list such as string[], or words such as \"sum\"|\"list\"";

/// The schema of a type such as `integer 2..10`.
pub(super) fn parse(text: &str) -> Result<Value, String> {
    let text = text.trim();
    if let Some(item) = text.strip_suffix("[]") {
        let item = parse(item)?;
        return Ok(json!({ "type": "array", "items": item }));
    }
    if text.starts_with('"') {
        return words(text);
    }
    let (word, rest) = match text.find(|c: char| c.is_whitespace() || c == '.') {
        Some(end) => (&text[..end], text[end..].trim()),
        None => (text, ""),
    };
    let range = (!rest.is_empty()).then_some(rest);
    match (word, range) {
        ("string" | "integer" | "number" | "boolean" | "array" | "object", None) => Ok(json!({ "type": word })),
        ("integer", Some(range)) => bounded("integer", "minimum", "maximum", range, |n| whole(n).map(Value::from)),
        ("number", Some(range)) => bounded("number", "minimum", "maximum", range, number),
        ("string", Some(range)) => {
            bounded("string", "minLength", "maxLength", range, |n| whole(n).filter(|n| *n >= 0).map(Value::from))
        }
        ("boolean" | "array" | "object", Some(range)) => {
            Err(format!("`{word}` takes no range, but `{}` follows", cut(range, 40)))
        }
        ("", _) => Err("the type is empty".to_owned()),
        _ if text.contains('|') => {
            Err(format!("the words of `{}` must stand in double quotes: \"a\"|\"b\"", cut(text, 60)))
        }
        _ => Err(format!("the type `{}` is unknown{}", cut(word, 40), meant(word))),
    }
}

fn meant(word: &str) -> &'static str {
    match word.to_ascii_lowercase().as_str() {
        "str" | "text" | "string" => "; write string",
        "int" | "i64" | "long" | "integer" => "; write integer",
        "float" | "double" | "decimal" | "f64" | "num" | "number" => "; write number",
        "bool" | "boolean" => "; write boolean",
        "list" | "array" | "vec" => "; write array, or a list such as string[]",
        "map" | "dict" | "object" | "obj" => "; write object",
        _ => "",
    }
}

fn words(text: &str) -> Result<Value, String> {
    let mut list: Vec<Value> = Vec::new();
    let mut rest = text;
    loop {
        let (word, after) = json_prefix(rest)?;
        if !word.is_string() {
            return Err(format!("`{}` stands among words in double quotes", cut(&word.to_string(), 40)));
        }
        if list.contains(&word) {
            return Err(format!("the word {} stands twice", cut(&word.to_string(), 40)));
        }
        list.push(word);
        let after = after.trim_start();
        if after.is_empty() {
            return Ok(json!({ "type": "string", "enum": list }));
        }
        rest = after
            .strip_prefix('|')
            .map(str::trim_start)
            .ok_or_else(|| format!("expected `|` between words, got `{}`", cut(after, 40)))?;
    }
}

fn bounded(
    kind: &str,
    least: &str,
    most: &str,
    range: &str,
    read: impl Fn(&str) -> Option<Value>,
) -> Result<Value, String> {
    let wrong =
        || format!("`{}` is no range for {kind}; write {kind} 2..10, {kind} 2.. or {kind} ..10", cut(range, 40));
    let (from, to) = range.split_once("..").ok_or_else(wrong)?;
    let bound = |text: &str| match text.trim() {
        "" => Ok(None),
        text => read(text).map(Some).ok_or_else(wrong),
    };
    let (from, to) = (bound(from)?, bound(to)?);
    let mut schema = Map::new();
    schema.insert("type".to_owned(), kind.into());
    match (&from, &to) {
        (None, None) => return Err(wrong()),
        (Some(a), Some(b)) if above(a, b) => return Err(format!("the range {a}..{b} is empty: {a} is more than {b}")),
        _ => {}
    }
    if let Some(from) = from {
        schema.insert(least.to_owned(), from);
    }
    if let Some(to) = to {
        schema.insert(most.to_owned(), to);
    }
    Ok(Value::Object(schema))
}

fn above(a: &Value, b: &Value) -> bool {
    match (a.as_i64(), b.as_i64()) {
        (Some(a), Some(b)) => a > b,
        _ => a.as_f64() > b.as_f64(),
    }
}

fn whole(text: &str) -> Option<i64> {
    text.replace('_', "").parse().ok()
}

fn number(text: &str) -> Option<Value> {
    if let Some(n) = whole(text) {
        return Some(n.into());
    }
    // Words such as `inf` parse as floats too.
    let digits = text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | '.'));
    let float = text.parse::<f64>().ok().filter(|f| digits && f.is_finite())?;
    serde_json::Number::from_f64(float).map(Value::Number)
}

/// Reads one JSON value at the start of `text` and returns what follows it.
pub(super) fn json_prefix(text: &str) -> Result<(Value, &str), String> {
    let end = json_end(text).ok_or_else(|| format!("`{}` does not end", cut(text, 60)))?;
    let value =
        json::parse(&text[..end]).map_err(|e| format!("`{}` is not JSON: {}", cut(&text[..end], 60), e.message))?;
    Ok((value, &text[end..]))
}

/// Where the JSON value at the start of `text` ends: the matching bracket or quote, or white space after a bare word.
fn json_end(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    let mut quoted = false;
    let mut escaped = false;
    let bare = !text.starts_with(['"', '[', '{']);
    for (at, c) in text.char_indices() {
        if bare {
            if c.is_whitespace() {
                return Some(at);
            }
            continue;
        }
        if quoted {
            match c {
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                '"' => quoted = false,
                _ => {}
            }
        } else {
            match c {
                '"' => quoted = true,
                '[' | '{' => depth += 1,
                ']' | '}' => depth = depth.saturating_sub(1),
                _ => {}
            }
        }
        if !quoted && depth == 0 {
            return Some(at + c.len_utf8());
        }
    }
    bare.then_some(text.len())
}

/// Reads a default for `schema` at the start of `text`; returns it and what follows.
pub(super) fn default<'a>(schema: &Value, text: &'a str) -> Result<(Value, &'a str), String> {
    let kind = schema.get("type").and_then(Value::as_str).unwrap_or_default();
    if text.starts_with(['"', '[', '{']) {
        let (value, rest) = json_prefix(text)?;
        fits(schema, &value)?;
        return Ok((value, rest));
    }
    let dash = [" - ", " – ", " — "].into_iter().filter_map(|dash| text.find(dash)).min();
    let end = dash.unwrap_or(text.len());
    let (word, rest) = (text[..end].trim(), &text[end..]);
    let value = match kind {
        _ if word.is_empty() && kind != "string" => return Err("nothing stands after `=`".to_owned()),
        "string" => Value::String(word.to_owned()),
        "integer" => whole(word).map(Value::from).ok_or_else(|| {
            let digits = !word.is_empty()
                && word.trim_start_matches(['-', '+']).bytes().all(|b| b.is_ascii_digit() || b == b'_');
            if digits {
                format!("`{}` does not fit into 64 bits", cut(word, 40))
            } else {
                format!("`{}` is no integer", cut(word, 40))
            }
        })?,
        "number" => number(word).ok_or_else(|| format!("`{}` is no number", cut(word, 40)))?,
        "boolean" => match word {
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            _ => return Err(format!("`{}` is neither true nor false", cut(word, 40))),
        },
        "array" => return Err(format!("`{}` is no list; write it as JSON, such as [1, 2]", cut(word, 40))),
        _ => return Err(format!("`{}` is no object; write it as JSON, such as {{\"a\": 1}}", cut(word, 40))),
    };
    fits(schema, &value)?;
    Ok((value, rest))
}

/// Whether a default keeps to type, range and words. The schemas are this file's own, so these checks are all there is.
fn fits(schema: &Value, value: &Value) -> Result<(), String> {
    let shown = || cut(&value.to_string(), 60);
    let kind = schema.get("type").and_then(Value::as_str).unwrap_or_default();
    let right = match kind {
        "string" => value.is_string(),
        "integer" => value.is_i64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        _ => value.is_object(),
    };
    if !right {
        return Err(format!("{} is not of the type {kind}", shown()));
    }
    if let Some(Value::Array(words)) = schema.get("enum")
        && !words.contains(value)
    {
        let words: Vec<String> = words.iter().map(Value::to_string).collect();
        return Err(format!("{} is none of {}", shown(), words.join("|")));
    }
    let measure = match value {
        Value::String(text) => Value::from(text.chars().count()),
        other => other.clone(),
    };
    let (least, most) = if kind == "string" { ("minLength", "maxLength") } else { ("minimum", "maximum") };
    let low = schema.get(least).is_some_and(|least| above(least, &measure));
    let high = schema.get(most).is_some_and(|most| above(&measure, most));
    if low || high {
        let bound = |key: &str| schema.get(key).map(Value::to_string).unwrap_or_default();
        return Err(format!("{} is outside {}..{}", shown(), bound(least), bound(most)));
    }
    if let (Some(items), Some(list)) = (schema.get("items"), value.as_array()) {
        for item in list {
            fits(items, item)?;
        }
    }
    Ok(())
}

/// The schema of `@returns {…}`: a type, a shape such as `{city: string, degrees?: number}`, or a JSON Schema.
/// Returns it with what follows the braces; only an object can be a structured result.
pub(super) fn returns(text: &str) -> Result<(Option<Value>, &str), String> {
    if !text.starts_with('{') {
        return Err("expected a type in braces".to_owned());
    }
    let end = json_end(text).ok_or_else(|| "the brace is not closed".to_owned())?;
    let (braced, rest) = (&text[..end], &text[end..]);
    if let Ok(schema) = json::parse(braced) {
        super::schema::check_output(&schema)?;
        return Ok((Some(schema), rest));
    }
    let inner = braced[1..end - 1].trim();
    if inner == "object" {
        return Ok((Some(json!({ "type": "object" })), rest));
    }
    if inner.contains(':') {
        return shape(inner).map(|schema| (Some(schema), rest));
    }
    parse(inner).map(|_| (None, rest))
}

fn shape(text: &str) -> Result<Value, String> {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for field in split_fields(text) {
        let (name, kind) =
            field.split_once(':').ok_or_else(|| format!("expected `name: type`, got `{}`", cut(field.trim(), 40)))?;
        let name = name.trim();
        let (name, optional) = name.strip_suffix('?').map_or((name, false), |n| (n, true));
        if !is_identifier(name) {
            return Err(format!("`{}` is no name", cut(name, 40)));
        }
        let kind = kind.trim();
        let schema = match kind.strip_prefix('{').and_then(|k| k.strip_suffix('}')) {
            Some(inner) => shape(inner)?,
            None => parse(kind)?,
        };
        if properties.insert(name.to_owned(), schema).is_some() {
            return Err(format!("`{name}` stands twice"));
        }
        if !optional {
            required.push(Value::from(name));
        }
    }
    let mut schema = json!({ "type": "object", "properties": properties });
    if !required.is_empty() {
        schema["required"] = Value::Array(required);
    }
    Ok(schema)
}

/// Splits at commas outside quotes and braces.
fn split_fields(text: &str) -> Vec<&str> {
    let (mut fields, mut start, mut depth, mut quoted) = (Vec::new(), 0, 0_usize, false);
    for (at, c) in text.char_indices() {
        match c {
            '"' => quoted = !quoted,
            '{' if !quoted => depth += 1,
            '}' if !quoted => depth = depth.saturating_sub(1),
            ',' if !quoted && depth == 0 => {
                fields.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    if !text[start..].trim().is_empty() {
        fields.push(&text[start..]);
    }
    fields
}

/// Whether `name` could name a parameter.
pub(super) fn is_identifier(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn types_become_schemas() {
        let rows = [
            ("string", json!({ "type": "string" })),
            (" integer ", json!({ "type": "integer" })),
            ("number", json!({ "type": "number" })),
            ("boolean", json!({ "type": "boolean" })),
            ("array", json!({ "type": "array" })),
            ("object", json!({ "type": "object" })),
            ("string[]", json!({ "type": "array", "items": { "type": "string" } })),
            ("integer[][]", json!({ "type": "array", "items": { "type": "array", "items": { "type": "integer" } } })),
            ("integer 2..10", json!({ "type": "integer", "minimum": 2, "maximum": 10 })),
            ("integer -5..5", json!({ "type": "integer", "minimum": -5, "maximum": 5 })),
            ("integer 2..", json!({ "type": "integer", "minimum": 2 })),
            ("integer ..10", json!({ "type": "integer", "maximum": 10 })),
            ("integer 1..1_000", json!({ "type": "integer", "minimum": 1, "maximum": 1000 })),
            ("number 0.5..2", json!({ "type": "number", "minimum": 0.5, "maximum": 2 })),
            ("string 1..80", json!({ "type": "string", "minLength": 1, "maxLength": 80 })),
            ("integer 1..6[]", json!({ "type": "array", "items": { "type": "integer", "minimum": 1, "maximum": 6 } })),
            ("\"sum\"|\"list\"", json!({ "type": "string", "enum": ["sum", "list"] })),
            ("\"a b\" | \"c|d\"", json!({ "type": "string", "enum": ["a b", "c|d"] })),
            ("\"only\"", json!({ "type": "string", "enum": ["only"] })),
            ("\"a\"|\"b\"[]", json!({ "type": "array", "items": { "type": "string", "enum": ["a", "b"] } })),
        ];
        for (text, schema) in rows {
            assert_eq!(parse(text), Ok(schema), "{text}");
        }
    }

    #[test]
    fn wrong_types_say_what_to_write() {
        let rows = [
            ("", "empty"),
            ("[]", "empty"),
            ("int", "write integer"),
            ("str", "write string"),
            ("bool", "write boolean"),
            ("float", "write number"),
            ("list", "string[]"),
            ("String", "write string"),
            ("strin", "unknown"),
            ("integer 5", "no range"),
            ("integer a..b", "no range"),
            ("integer ..", "no range"),
            ("integer 1.5..2", "no range"),
            ("integer 10..2", "10 is more than 2"),
            ("string -1..5", "no range"),
            ("integer 1..99999999999999999999", "no range"),
            ("boolean 1..2", "takes no range"),
            ("sum|list", "double quotes"),
            ("\"a\"|b", "not JSON"),
            ("\"a\"|\"a\"", "twice"),
            ("\"a\" \"b\"", "expected `|`"),
            ("\"a", "does not end"),
            ("\"a\"|5", "among words"),
        ];
        for (text, word) in rows {
            let reason = parse(text).unwrap_err();
            assert!(reason.contains(word), "{text}: {reason}");
        }
    }

    #[test]
    fn defaults_fit_their_type_range_and_words_or_are_refused() {
        let rows = [
            ("integer 2..1000", "6 - x", Ok((json!(6), " - x"))),
            ("integer", "-6", Ok((json!(-6), ""))),
            ("integer", "9223372036854775807", Ok((json!(i64::MAX), ""))),
            ("integer", "9223372036854775808", Err("64 bits")),
            ("integer", "99999999999999999999999", Err("64 bits")),
            ("integer", "2.5", Err("no integer")),
            ("integer", "six", Err("no integer")),
            ("integer 2..10", "1", Err("outside 2..10")),
            ("integer 2..", "1", Err("outside 2..")),
            ("number", "2.5 - x", Ok((json!(2.5), " - x"))),
            ("number 0..1", "1.5", Err("outside 0..1")),
            ("number", "inf", Err("no number")),
            ("boolean", "true", Ok((json!(true), ""))),
            ("boolean", "yes", Err("neither")),
            ("string", "Hello there - x", Ok((json!("Hello there"), " - x"))),
            ("string", "\"a - b\" - x", Ok((json!("a - b"), " - x"))),
            ("string", "", Ok((json!(""), ""))),
            ("string 3..", "ab", Err("outside 3..")),
            ("string", "5", Ok((json!("5"), ""))),
            ("\"a\"|\"b\"", "a", Ok((json!("a"), ""))),
            ("\"a\"|\"b\"", "\"b\"", Ok((json!("b"), ""))),
            ("\"a\"|\"b\"", "c", Err("none of \"a\"|\"b\"")),
            ("integer[]", "[1, 2] - x", Ok((json!([1, 2]), " - x"))),
            ("integer[]", "[1, \"x\"]", Err("type integer")),
            ("integer[]", "1", Err("as JSON")),
            ("object", "{\"a\": 1}", Ok((json!({ "a": 1 }), ""))),
            ("object", "[]", Err("type object")),
            ("integer", "", Err("nothing")),
            ("integer", "\"6\"", Err("type integer")),
            ("string", "\"open", Err("does not end")),
        ];
        for (kind, text, expected) in rows {
            let schema = parse(kind).unwrap();
            match (default(&schema, text), expected) {
                (Ok(made), Ok(expected)) => assert_eq!(made, expected, "{kind} {text}"),
                (Err(reason), Err(word)) => assert!(reason.contains(word), "{kind} {text}: {reason}"),
                (made, expected) => panic!("{kind} {text}: {made:?}, not {expected:?}"),
            }
        }
    }

    #[test]
    fn a_result_is_described_by_a_type_a_shape_or_a_schema() {
        let shape = json!({ "type": "object", "properties": { "city": { "type": "string" }, "at": { "type": "object",
            "properties": { "lat": { "type": "number" } }, "required": ["lat"] }, "tags": { "type": "array", "items": { "type": "string" } } },
            "required": ["city", "at"] });
        let rows = [
            ("{string} text", Ok(None)),
            ("{object}", Ok(Some(json!({ "type": "object" })))),
            ("{city: string, at: {lat: number}, tags?: string[]} x", Ok(Some(shape))),
            ("{\"type\": \"object\"} x", Ok(Some(json!({ "type": "object" })))),
            ("{\"type\": \"string\"}", Err("must be \"object\"")),
            ("{city: strin}", Err("unknown")),
            ("{city: string, city: string}", Err("twice")),
            ("{strin}", Err("unknown")),
            ("string", Err("braces")),
            ("{string", Err("not closed")),
        ];
        for (text, expected) in rows {
            match (returns(text), expected) {
                (Ok((schema, _)), Ok(expected)) => assert_eq!(schema, expected, "{text}"),
                (Err(reason), Err(word)) => assert!(reason.contains(word), "{text}: {reason}"),
                (made, expected) => panic!("{text}: {made:?}, not {expected:?}"),
            }
        }
    }
}
