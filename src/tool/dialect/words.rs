//! A schema's keywords in words, for models that get no such keyword. It knows no provider: which keywords a provider keeps
//! is asked.

use super::meet::type_words;
use crate::tool::schema::cut;
use serde_json::{Map, Value};

/// Most values of a list that are spelled out.
const MAX_LISTED: usize = 40;
/// Most characters of one value or pattern.
const MAX_VALUE: usize = 120;
/// Most characters of a described schema.
const MAX_DESCRIBED: usize = 400;

/// The description with these words behind it.
pub(super) fn append(description: &str, words: &[String]) -> String {
    let text = description.trim();
    if words.is_empty() {
        return text.to_owned();
    }
    let words = words.join("; ");
    if text.is_empty() {
        return words;
    }
    match text.strip_suffix('.').filter(|t| !t.ends_with('.')) {
        Some(before) => format!("{before} ({words})."),
        None => format!("{text} ({words})"),
    }
}

/// Every restriction in `map` that `is_kept` says nothing about, in words.
pub(super) fn restrictions(map: &Map<String, Value>, is_kept: &dyn Fn(&str) -> bool) -> Vec<String> {
    Words { map, is_kept, level: 0 }.all()
}

/// What a value is, as a noun: `text`, `list of whole numbers`, `text or true/false`.
pub(super) fn noun(schema: &Value) -> String {
    noun_at(schema, 0)
}

fn noun_at(schema: &Value, level: usize) -> String {
    let Some(map) = schema.as_object() else { return "anything".to_owned() };
    let mut kinds: Vec<String> = Vec::new();
    for word in map.get("type").map(type_words).unwrap_or_default() {
        let kind = match word {
            "string" => "text".to_owned(),
            "integer" => "whole number".to_owned(),
            "number" => "number".to_owned(),
            "boolean" => "true/false".to_owned(),
            "null" => "null".to_owned(),
            "array" => match map.get("items").filter(|i| i.is_object() && level < 3).map(|i| noun_at(i, level + 1)) {
                Some(of) if of != "anything" => format!("list of {}", many(&of)),
                _ => "list".to_owned(),
            },
            "object" => "object".to_owned(),
            other => other.to_owned(),
        };
        kinds.push(kind);
    }
    if kinds.is_empty() {
        for branch in ["anyOf", "oneOf"].iter().filter_map(|k| map.get(*k)?.as_array()).flatten() {
            let kind = noun_at(branch, level + 1);
            if !kinds.contains(&kind) {
                kinds.push(kind);
            }
        }
    }
    if kinds.is_empty() {
        let first = map.get("const").or_else(|| map.get("enum")?.as_array()?.first());
        kinds.push(
            match first {
                Some(Value::String(_)) => "text",
                Some(Value::Number(_)) => "number",
                Some(Value::Bool(_)) => "true/false",
                Some(Value::Null) => "null",
                Some(Value::Array(_)) => "list",
                Some(Value::Object(_)) => "object",
                None if map.contains_key("properties") => "object",
                None if map.contains_key("items") || map.contains_key("prefixItems") => "list",
                None => "anything",
            }
            .to_owned(),
        );
    }
    kinds.join(" or ")
}

fn many(noun: &str) -> String {
    match noun {
        "text" => "texts".to_owned(),
        "whole number" => "whole numbers".to_owned(),
        "number" => "numbers".to_owned(),
        "object" => "objects".to_owned(),
        "list" => "lists".to_owned(),
        other => other.to_owned(),
    }
}

/// A whole schema in one clause: its noun, its restrictions, its properties.
pub(super) fn describe(schema: &Value) -> String {
    cut(&describe_at(schema, 0), MAX_DESCRIBED)
}

fn describe_at(schema: &Value, level: usize) -> String {
    let map = match schema {
        Value::Object(map) => map,
        Value::Bool(false) => return "nothing".to_owned(),
        _ => return "anything".to_owned(),
    };
    let mut parts = Vec::new();
    let noun = noun(schema);
    let kept =
        |k: &str| matches!(k, "default" | "examples" | "deprecated" | "title") || (k == "required" && level == 0);
    let restrictions = Words { map, is_kept: &kept, level: level + 1 }.all();
    let properties = map.get("properties").and_then(Value::as_object).filter(|p| !p.is_empty() && level < 3);
    let required = map.get("required").and_then(Value::as_array);
    let is_required = |name: &str| required.is_some_and(|list| list.iter().any(|r| r == name));
    let is_spelled_out = map.contains_key("const") || map.contains_key("enum");
    if noun != "anything" && !is_spelled_out && !(noun == "object" && properties.is_some()) {
        parts.push(noun);
    }
    parts.extend(restrictions);
    if let Some(properties) = properties {
        let described = properties.iter().map(|(name, property)| match describe_at(property, level + 1).as_str() {
            "anything" => format!("`{name}`"),
            described if is_required(name) => format!("`{name}` {described}, required"),
            described => format!("`{name}` {described}"),
        });
        parts.push(described.collect::<Vec<_>>().join(" and "));
    }
    let needed = required.into_iter().flatten().filter_map(Value::as_str);
    let needed: Vec<&str> = needed.filter(|name| !properties.is_some_and(|p| p.contains_key(*name))).collect();
    if level == 0 && !needed.is_empty() {
        parts.push(format!("with {}", names(&needed, "and")));
    }
    if parts.is_empty() { "anything".to_owned() } else { parts.join(", ") }
}

struct Words<'a> {
    map: &'a Map<String, Value>,
    is_kept: &'a dyn Fn(&str) -> bool,
    level: usize,
}

impl Words<'_> {
    /// The keyword's value, where it has to be said.
    fn get(&self, keyword: &str) -> Option<&Value> {
        self.map.get(keyword).filter(|_| !(self.is_kept)(keyword))
    }

    fn all(&self) -> Vec<String> {
        let mut out = Vec::new();
        if let Some(values) = self.get("enum").and_then(Value::as_array) {
            out.push(format!("one of {}", listed(values)));
        }
        if let Some(value) = self.get("const") {
            out.push(format!("always {}", shown(value)));
        }
        out.extend(self.get("format").and_then(Value::as_str).map(format_words));
        out.extend(self.get("pattern").and_then(Value::as_str).map(|p| format!("matches `{}`", cut(p, MAX_VALUE))));
        match (
            self.get("contentEncoding").and_then(Value::as_str),
            self.get("contentMediaType").and_then(Value::as_str),
        ) {
            (Some(code), Some(kind)) => out.push(format!("{kind} in {code}")),
            (Some(word), None) | (None, Some(word)) => out.push(format!("in {word}")),
            (None, None) => {}
        }
        out.extend(self.count("minLength", "maxLength", "character", "characters"));
        out.extend(self.range());
        out.extend(self.get("multipleOf").map(|n| format!("a multiple of {n}")));
        out.extend(self.count("minItems", "maxItems", "item", "items"));
        if self.get("uniqueItems") == Some(&Value::Bool(true)) {
            out.push("no item twice".to_owned());
        }
        self.lists(&mut out);
        out.extend(self.count("minProperties", "maxProperties", "entry", "entries"));
        self.objects(&mut out);
        if self.level < 4 {
            self.logic(&mut out);
        }
        out.extend(self.get("default").filter(|d| !d.is_null()).map(|d| format!("{} where it is left out", shown(d))));
        if let Some(values) = self.get("examples").and_then(Value::as_array).filter(|v| !v.is_empty()) {
            out.push(format!("for example {}", listed(&values[..values.len().min(5)])));
        }
        if self.get("deprecated") == Some(&Value::Bool(true)) {
            out.push("deprecated, better left out".to_owned());
        }
        out
    }

    fn count(&self, least: &str, most: &str, one: &str, several: &str) -> Option<String> {
        let whole = |keyword: &str| self.get(keyword).and_then(Value::as_f64);
        let unit = |n: f64| if (n - 1.0).abs() < f64::EPSILON { one } else { several };
        match (whole(least).filter(|n| *n > 0.0), whole(most)) {
            (Some(a), Some(b)) if (a - b).abs() < f64::EPSILON => Some(format!("exactly {a} {}", unit(a))),
            (Some(a), Some(b)) => Some(format!("{a} to {b} {}", unit(b))),
            (Some(a), None) => Some(format!("at least {a} {}", unit(a))),
            (None, Some(b)) => Some(format!("at most {b} {}", unit(b))),
            (None, None) => None,
        }
    }

    fn range(&self) -> Option<String> {
        let low = (self.get("minimum"), self.get("exclusiveMinimum"));
        let high = (self.get("maximum"), self.get("exclusiveMaximum"));
        if let ((Some(a), None), (Some(b), None)) = (low, high) {
            return Some(if a == b { format!("exactly {a}") } else { format!("{a} to {b}") });
        }
        let sides = [
            low.0.map(|n| format!("at least {n}")),
            low.1.map(|n| format!("more than {n}")),
            high.0.map(|n| format!("at most {n}")),
            high.1.map(|n| format!("less than {n}")),
        ];
        let sides: Vec<String> = sides.into_iter().flatten().collect();
        (!sides.is_empty()).then(|| sides.join(" and "))
    }

    fn lists(&self, out: &mut Vec<String>) {
        if let Some(places) = self.get("prefixItems").and_then(Value::as_array).filter(|p| !p.is_empty()) {
            let places: Vec<String> = places.iter().map(|p| describe_at(p, self.level + 1)).collect();
            out.push(format!("in this order: {}", places.join(", then ")));
            if self.map.get("items") == Some(&Value::Bool(false)) {
                out.push("no item beyond these".to_owned());
            }
        }
        if let Some(wanted) = self.get("contains") {
            let least = self.map.get("minContains").and_then(Value::as_u64).unwrap_or(1);
            let most = self.map.get("maxContains").and_then(Value::as_u64);
            let how_many = match (least, most) {
                (1, None) => "at least one item that is".to_owned(),
                (least, None) => format!("at least {least} items that are"),
                (least, Some(most)) => format!("{least} to {most} items that are"),
            };
            out.push(format!("{how_many} {}", describe_at(wanted, self.level + 1)));
        }
    }

    fn objects(&self, out: &mut Vec<String>) {
        if let Some(names) = self.get("propertyNames") {
            out.push(format!("every name: {}", describe_at(names, self.level + 1)));
        }
        for (pattern, value) in self.get("patternProperties").and_then(Value::as_object).into_iter().flatten() {
            let value = describe_at(value, self.level + 1);
            out.push(format!("any name that matches `{}`: {value}", cut(pattern, MAX_VALUE)));
        }
        for keyword in ["additionalProperties", "unevaluatedProperties"] {
            if let Some(rest @ Value::Object(_)) = self.get(keyword) {
                out.push(format!("any other name: {}", describe_at(rest, self.level + 1)));
            }
        }
        for (name, others) in self.get("dependentRequired").and_then(Value::as_object).into_iter().flatten() {
            let others: Vec<&str> = others.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
            if !others.is_empty() {
                out.push(format!("with `{name}` also {}", names(&others, "and")));
            }
        }
        for (name, schema) in self.get("dependentSchemas").and_then(Value::as_object).into_iter().flatten() {
            out.push(format!("with `{name}`: {}", describe(schema)));
        }
    }

    fn logic(&self, out: &mut Vec<String>) {
        let several = |keyword: &str, between: &str| {
            let list = self.get(keyword)?.as_array().filter(|l| !l.is_empty())?;
            Some(list.iter().map(describe).collect::<Vec<_>>().join(between))
        };
        out.extend(several("allOf", "; and "));
        out.extend(several("anyOf", ", or ").map(|w| format!("either {w}")));
        out.extend(several("oneOf", ", or ").map(|w| format!("exactly one of: {w}")));
        if let Some(refused) = self.get("not") {
            out.push(match (refused.get("const"), refused.get("enum").and_then(Value::as_array)) {
                (Some(value), _) => format!("not {}", shown(value)),
                (None, Some(values)) => format!("none of {}", listed(values)),
                (None, None) => format!("not {}", describe(refused)),
            });
        }
        if let Some(condition) = self.get("if") {
            let condition = describe(condition);
            for (keyword, word) in [("then", "if"), ("else", "unless")] {
                if let Some(then) = self.get(keyword) {
                    out.push(format!("{word} {condition}: {}", describe(then)));
                }
            }
        }
    }
}

/// `a`, `b` and `c`.
fn names(names: &[&str], word: &str) -> String {
    let quoted: Vec<String> = names.iter().map(|n| format!("`{n}`")).collect();
    match quoted.as_slice() {
        [] => String::new(),
        [one] => one.clone(),
        [many @ .., last] => format!("{} {word} {last}", many.join(", ")),
    }
}

fn listed(values: &[Value]) -> String {
    let mut out: Vec<String> = values.iter().take(MAX_LISTED).map(shown).collect();
    if values.len() > MAX_LISTED {
        out.push(format!("and {} more", values.len() - MAX_LISTED));
    }
    out.join(", ")
}

/// A value as it is written; a plain word without quotes.
pub(super) fn shown(value: &Value) -> String {
    match value {
        Value::String(word) if is_plain(word) => word.clone(),
        other => cut(&other.to_string(), MAX_VALUE),
    }
}

fn is_plain(word: &str) -> bool {
    !word.is_empty()
        && word.len() <= MAX_VALUE
        && word.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | ':'))
        && !matches!(word, "true" | "false" | "null")
        && word.parse::<f64>().is_err()
}

fn format_words(format: &str) -> String {
    match format {
        "date-time" => "a date and time such as 2026-11-30T14:00:00Z".to_owned(),
        "date" => "a date such as 2026-11-30".to_owned(),
        "time" => "a time such as 14:00:00Z".to_owned(),
        "duration" => "a duration such as PT1H30M".to_owned(),
        "email" | "idn-email" => "an email address".to_owned(),
        "hostname" | "idn-hostname" => "a host name".to_owned(),
        "ipv4" => "an IPv4 address".to_owned(),
        "ipv6" => "an IPv6 address".to_owned(),
        "uri" | "iri" | "url" => "a URL".to_owned(),
        "uri-reference" | "iri-reference" => "a URL or a path".to_owned(),
        "uuid" => "a UUID".to_owned(),
        "regex" => "a regular expression".to_owned(),
        "byte" => "base64".to_owned(),
        other => format!("in the format {}", cut(other, 60)),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_restriction_has_its_words() {
        let rows = [
            (json!({ "minLength": 3 }), "at least 3 characters"),
            (json!({ "minLength": 1 }), "at least 1 character"),
            (json!({ "maxLength": 20 }), "at most 20 characters"),
            (json!({ "minLength": 3, "maxLength": 20 }), "3 to 20 characters"),
            (json!({ "minLength": 5, "maxLength": 5 }), "exactly 5 characters"),
            (json!({ "minLength": 0 }), ""),
            (json!({ "pattern": "^a+$" }), "matches `^a+$`"),
            (json!({ "format": "email" }), "an email address"),
            (json!({ "format": "uri" }), "a URL"),
            (json!({ "format": "colour" }), "in the format colour"),
            (json!({ "minimum": 2 }), "at least 2"),
            (json!({ "maximum": 10 }), "at most 10"),
            (json!({ "minimum": 2, "maximum": 10 }), "2 to 10"),
            (json!({ "minimum": 2, "maximum": 2 }), "exactly 2"),
            (json!({ "exclusiveMinimum": 0 }), "more than 0"),
            (json!({ "exclusiveMaximum": 1.5 }), "less than 1.5"),
            (json!({ "exclusiveMinimum": 0, "maximum": 1 }), "more than 0 and at most 1"),
            (json!({ "multipleOf": 5 }), "a multiple of 5"),
            (json!({ "enum": ["a", "b c", 3, null, "7"] }), "one of a, \"b c\", 3, null, \"7\""),
            (json!({ "const": "x" }), "always x"),
            (json!({ "const": { "a": 1 } }), "always {\"a\":1}"),
            (json!({ "minItems": 1 }), "at least 1 item"),
            (json!({ "maxItems": 3, "uniqueItems": true }), "at most 3 items; no item twice"),
            (json!({ "uniqueItems": false }), ""),
            (json!({ "contains": { "type": "string" } }), "at least one item that is text"),
            (json!({ "contains": { "minimum": 5 }, "minContains": 2 }), "at least 2 items that are at least 5"),
            (
                json!({ "prefixItems": [{ "type": "number" }, { "type": "string" }], "items": false }),
                "in this order: number, then text; no item beyond these",
            ),
            (json!({ "minProperties": 1, "maxProperties": 4 }), "1 to 4 entries"),
            (json!({ "propertyNames": { "pattern": "^x" } }), "every name: matches `^x`"),
            (json!({ "patternProperties": { "^x-": { "type": "string" } } }), "any name that matches `^x-`: text"),
            (
                json!({ "additionalProperties": { "type": "integer", "minimum": 0 } }),
                "any other name: whole number, at least 0",
            ),
            (json!({ "additionalProperties": false }), ""),
            (json!({ "dependentRequired": { "a": ["b", "c"] } }), "with `a` also `b` and `c`"),
            (json!({ "dependentSchemas": { "a": { "required": ["b"] } } }), "with `a`: with `b`"),
            (json!({ "not": { "const": "" } }), "not \"\""),
            (json!({ "anyOf": [{ "required": ["a"] }, { "required": ["b"] }] }), "either with `a`, or with `b`"),
            (json!({ "oneOf": [{ "type": "string" }, { "type": "null" }] }), "exactly one of: text, or null"),
            (json!({ "allOf": [{ "pattern": "a" }, { "pattern": "b" }] }), "matches `a`; and matches `b`"),
            (
                json!({ "if": { "properties": { "mode": { "const": "fast" } } }, "then": { "required": ["speed"] } }),
                "if `mode` always fast: with `speed`",
            ),
            (json!({ "default": 6 }), "6 where it is left out"),
            (json!({ "default": null }), ""),
            (json!({ "examples": ["Oslo", "Rome"] }), "for example Oslo, Rome"),
            (json!({ "deprecated": true }), "deprecated, better left out"),
            (json!({ "contentEncoding": "base64", "contentMediaType": "image/png" }), "image/png in base64"),
        ];
        for (schema, words) in rows {
            assert_eq!(restrictions(schema.as_object().unwrap(), &|_| false).join("; "), words, "{schema}");
        }
        let kept = restrictions(json!({ "minimum": 2, "maximum": 9 }).as_object().unwrap(), &|k| k == "minimum");
        assert_eq!(kept, ["at most 9"]);
    }

    #[test]
    fn a_schema_has_a_noun() {
        let rows = [
            (json!({}), "anything"),
            (json!(true), "anything"),
            (json!({ "type": "string" }), "text"),
            (json!({ "type": ["integer", "null"] }), "whole number or null"),
            (json!({ "type": "array" }), "list"),
            (json!({ "type": "array", "items": { "type": "integer" } }), "list of whole numbers"),
            (
                json!({ "type": "array", "items": { "type": "array", "items": { "type": "object" } } }),
                "list of list of objects",
            ),
            (json!({ "anyOf": [{ "type": "string" }, { "type": "boolean" }] }), "text or true/false"),
            (json!({ "enum": [1, 2] }), "number"),
            (json!({ "const": "x" }), "text"),
            (json!({ "properties": { "a": {} } }), "object"),
        ];
        for (schema, words) in rows {
            assert_eq!(noun(&schema), words, "{schema}");
        }
    }

    #[test]
    fn words_stand_behind_a_description() {
        let rows: [(&str, &[&str], &str); 6] = [
            ("Sides.", &["2 to 10"], "Sides (2 to 10)."),
            ("Sides", &["2 to 10", "6 where it is left out"], "Sides (2 to 10; 6 where it is left out)"),
            ("", &["2 to 10"], "2 to 10"),
            ("Sides. ", &[], "Sides."),
            ("And so on...", &["x"], "And so on... (x)"),
            ("Really?", &["x"], "Really? (x)"),
        ];
        for (description, words, text) in rows {
            let words: Vec<String> = words.iter().map(|w| (*w).to_owned()).collect();
            assert_eq!(append(description, &words), text);
        }
    }
}
