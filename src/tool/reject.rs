//! The words for arguments that do not fit: path, expected, got, and a call that would work.
//! It decides nothing; the validator did.

use super::plan::{Misfit, push_segment};
use super::schema::{cut, dotted};
use super::{names, spec::Spec};
use crate::base::error::Error;
use jsonschema::error::ValidationErrorKind;
use jsonschema::{ValidationError, Validator};
use serde_json::{Map, Value};
use std::fmt::Write as _;

/// Most bad arguments that one message lists.
const MOST: usize = 12;
/// Characters of a value that a message repeats.
const GOT: usize = 80;
/// Characters of the example call.
const EXAMPLE: usize = 400;

/// One error for everything that is wrong with the arguments of a call.
pub(super) fn error(spec: &Spec, validator: &Validator, arguments: &Value, misfits: Vec<Misfit>) -> Error {
    let mut faults: Vec<Misfit> = misfits;
    for error in validator.iter_errors(arguments) {
        read(&spec.parameters, &error, &mut faults);
    }
    let mut unique: Vec<Misfit> = Vec::new();
    for fault in faults {
        if !unique.iter().any(|f| f.pointer == fault.pointer) {
            unique.push(fault);
        }
    }
    let example = example(spec, validator, &unique);
    let mut message = match unique.len() {
        0 | 1 => format!("an argument of `{}` does not fit", spec.name),
        n => format!("{n} arguments of `{}` do not fit", spec.name),
    };
    for fault in unique.iter().take(MOST) {
        let place = dotted("", &fault.pointer);
        let place = if place.is_empty() { "arguments" } else { &place };
        let _ = write!(message, "\n- {place}: expected {}, got {}", fault.expected, fault.got);
    }
    if unique.len() > MOST {
        let _ = write!(message, "\n- and {} more", unique.len() - MOST);
    }
    if let Some(example) = example {
        let _ = write!(message, "\nexample: {example}");
    }
    Error::invalid(message).hint("call the tool again with corrected arguments")
}

/// Adds what one of the validator's errors says.
fn read(schema: &Value, error: &ValidationError<'_>, faults: &mut Vec<Misfit>) {
    let pointer = error.instance_path().as_str();
    let keyword = error.schema_path().as_str();
    let parent = keyword.rsplit_once('/').map_or("", |(parent, _)| parent);
    let owner = schema.pointer(parent).unwrap_or(schema);
    let below = |name: &str| {
        let mut pointer = pointer.to_owned();
        push_segment(&mut pointer, name);
        pointer
    };
    match error.kind() {
        ValidationErrorKind::Required { property } => {
            let name = property.as_str().unwrap_or_default();
            let expected = owner
                .get("properties")
                .and_then(|p| p.get(name))
                .map_or_else(|| "a value".to_owned(), |p| expected(schema, p));
            faults.push(Misfit { pointer: below(name), expected, got: "nothing; it is required".to_owned() });
        }
        ValidationErrorKind::AdditionalProperties { unexpected }
        | ValidationErrorKind::UnevaluatedProperties { unexpected } => {
            let known: Vec<&str> = owner
                .get("properties")
                .and_then(Value::as_object)
                .map(|p| p.keys().map(String::as_str).collect())
                .unwrap_or_default();
            for name in unexpected {
                let expected = match names::did_you_mean(name, known.iter().copied(), 1).first() {
                    _ if known.is_empty() => "no arguments".to_owned(),
                    Some(close) => format!("`{close}`"),
                    None => format!("only {}", list(known.iter().copied())),
                };
                faults.push(Misfit { pointer: below(name), expected, got: "an unknown name".to_owned() });
            }
        }
        ValidationErrorKind::FalseSchema => {
            let got = cut(&error.instance().to_string(), GOT);
            faults.push(Misfit { pointer: pointer.to_owned(), expected: "nothing here".to_owned(), got });
        }
        _ => {
            let got = cut(&error.instance().to_string(), GOT);
            faults.push(Misfit { pointer: pointer.to_owned(), expected: expected(schema, owner), got });
        }
    }
}

fn list<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let all: Vec<String> = names.map(|n| format!("`{n}`")).collect();
    if all.len() > 12 { format!("{} and {} more", all[..12].join(", "), all.len() - 12) } else { all.join(", ") }
}

/// What a property's schema asks for, in a few words: `an integer from 2 to 1000`.
pub(super) fn expected(root: &Value, schema: &Value) -> String {
    expected_at(root, schema, 0)
}

fn expected_at(root: &Value, schema: &Value, depth: usize) -> String {
    if depth > 3 {
        return "a value that fits the schema".to_owned();
    }
    if let Some(target) =
        schema.get("$ref").and_then(Value::as_str).and_then(|r| r.strip_prefix('#')).and_then(|p| root.pointer(p))
    {
        return expected_at(root, target, depth + 1);
    }
    if schema == &Value::Bool(false) {
        return "nothing here".to_owned();
    }
    if let Some(constant) = schema.get("const") {
        return cut(&constant.to_string(), GOT);
    }
    if let Some(Value::Array(words)) = schema.get("enum") {
        let shown: Vec<String> = words.iter().take(12).map(|w| cut(&w.to_string(), 40)).collect();
        let more = if words.len() > 12 { format!(" or {} more", words.len() - 12) } else { String::new() };
        return format!("one of {}{more}", shown.join(", "));
    }
    for keyword in ["anyOf", "oneOf"] {
        if let Some(Value::Array(forms)) = schema.get(keyword) {
            let shown: Vec<String> = forms.iter().take(4).map(|f| expected_at(root, f, depth + 1)).collect();
            return shown.join(", or ");
        }
    }
    let words: Vec<&str> = match schema.get("type") {
        Some(Value::String(word)) => vec![word],
        Some(Value::Array(words)) => words.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    if words.is_empty() {
        return "a value that fits the schema".to_owned();
    }
    let shown: Vec<String> = words.iter().map(|word| one_type(root, schema, word, depth)).collect();
    shown.join(" or ")
}

fn one_type(root: &Value, schema: &Value, word: &str, depth: usize) -> String {
    let range = |from: &str, to: &str| bounds(schema.get(from), schema.get(to));
    match word {
        "string" => {
            let mut text = match bounds(schema.get("minLength"), schema.get("maxLength")) {
                Some(length) => format!("a text of {} characters", length.trim_start_matches("from ")),
                None => "a text".to_owned(),
            };
            if let Some(pattern) = schema.get("pattern").and_then(Value::as_str) {
                let _ = write!(text, " that matches /{}/", cut(pattern, GOT));
            }
            if let Some(format) = schema.get("format").and_then(Value::as_str) {
                let _ = write!(text, " in the format {}", cut(format, 40));
            }
            text
        }
        "integer" | "number" => {
            let mut text = if word == "integer" { "an integer".to_owned() } else { "a number".to_owned() };
            if let Some(range) = range("minimum", "maximum") {
                let _ = write!(text, " {range}");
            }
            if let Some(least) = schema.get("exclusiveMinimum").filter(|v| v.is_number()) {
                let _ = write!(text, " above {least}");
            }
            if let Some(most) = schema.get("exclusiveMaximum").filter(|v| v.is_number()) {
                let _ = write!(text, " below {most}");
            }
            if let Some(step) = schema.get("multipleOf") {
                let _ = write!(text, " that is a multiple of {step}");
            }
            text
        }
        "boolean" => "true or false".to_owned(),
        "null" => "null".to_owned(),
        "array" => {
            let mut text = match schema.get("items") {
                Some(items @ Value::Object(_)) => format!("a list, each item {}", expected_at(root, items, depth + 1)),
                _ => "a list".to_owned(),
            };
            if let Some(count) = range("minItems", "maxItems") {
                let _ = write!(text, ", with {} items", count.trim_start_matches("from "));
            }
            text
        }
        "object" => {
            let required = schema.get("required").and_then(Value::as_array);
            match required.filter(|r| !r.is_empty()) {
                Some(required) => format!("an object with {}", list(required.iter().filter_map(Value::as_str))),
                None => "an object".to_owned(),
            }
        }
        other => format!("{other:?}"),
    }
}

fn bounds(least: Option<&Value>, most: Option<&Value>) -> Option<String> {
    match (least, most) {
        (Some(a), Some(b)) if a == b => Some(format!("exactly {a}")),
        (Some(a), Some(b)) => Some(format!("from {a} to {b}")),
        (Some(a), None) => Some(format!("at least {a}")),
        (None, Some(b)) => Some(format!("at most {b}")),
        (None, None) => None,
    }
}

/// A call that fits: the author's first example, else one made from the schema; `None` where none can be made that fits.
fn example(spec: &Spec, validator: &Validator, faults: &[Misfit]) -> Option<String> {
    let written = spec.examples.first().map(|e| e.arguments.clone());
    let wanted: Vec<&str> = faults.iter().filter_map(|f| f.pointer.split('/').nth(1)).collect();
    let made = || sample(&spec.parameters, &spec.parameters, Some(&wanted), 0);
    let call = written.filter(|a| validator.is_valid(a)).or_else(made).filter(|a| validator.is_valid(a))?;
    let text = call.to_string();
    (text.len() <= EXAMPLE).then_some(text)
}

/// A value for a schema. Objects get their required properties and, at the top, those that were given wrongly.
fn sample(root: &Value, schema: &Value, wanted: Option<&[&str]>, depth: usize) -> Option<Value> {
    if depth > 6 {
        return None;
    }
    if let Some(target) = schema.get("$ref").and_then(Value::as_str) {
        return sample(root, root.pointer(target.strip_prefix('#')?)?, None, depth + 1);
    }
    let given = schema.get("const").or_else(|| schema.get("default"));
    let given = given
        .or_else(|| schema.get("examples").and_then(|e| e.get(0)))
        .or_else(|| schema.get("enum").and_then(|e| e.get(0)));
    if let Some(value) = given {
        return Some(value.clone());
    }
    for keyword in ["anyOf", "oneOf"] {
        if let Some(form) = schema.get(keyword).and_then(|f| f.get(0)) {
            return sample(root, form, None, depth + 1);
        }
    }
    let word = match schema.get("type") {
        Some(Value::Array(words)) => words.iter().filter_map(Value::as_str).find(|w| *w != "null")?,
        Some(Value::String(word)) => word,
        _ => return Some(Value::String("…".to_owned())),
    };
    Some(match word {
        "string" => sample_text(schema),
        "integer" => sample_number(schema, true),
        "number" => sample_number(schema, false),
        "boolean" => Value::Bool(true),
        "null" => Value::Null,
        "array" => {
            let count = schema.get("minItems").and_then(Value::as_u64).unwrap_or(1).clamp(1, 8);
            let item = match schema.get("items") {
                Some(items) => sample(root, items, None, depth + 1)?,
                None => Value::String("…".to_owned()),
            };
            Value::Array((0..count).map(|_| item.clone()).collect())
        }
        "object" => {
            let required = schema.get("required").and_then(Value::as_array);
            let mut map = Map::new();
            for (name, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
                let needed = required.is_some_and(|r| r.iter().any(|n| n == name.as_str()))
                    || wanted.is_some_and(|w| w.contains(&name.as_str()));
                if needed {
                    map.insert(name.clone(), sample(root, property, None, depth + 1)?);
                }
            }
            Value::Object(map)
        }
        _ => return None,
    })
}

fn sample_text(schema: &Value) -> Value {
    let text = match schema.get("format").and_then(Value::as_str) {
        Some("date") => "2026-03-14",
        Some("date-time") => "2026-03-14T09:30:00Z",
        Some("time") => "09:30:00Z",
        Some("email") => "name@example.org",
        Some("uri" | "url") => "https://example.org/",
        Some("uuid") => "6f1c2c9e-0b2a-4a57-9a51-0c8a3e0d7b11",
        _ => "text",
    };
    let least = schema.get("minLength").and_then(Value::as_u64).and_then(|n| usize::try_from(n).ok()).unwrap_or(0);
    let most =
        schema.get("maxLength").and_then(Value::as_u64).and_then(|n| usize::try_from(n).ok()).unwrap_or(usize::MAX);
    let mut text: String = text.chars().take(most).collect();
    while text.len() < least.min(EXAMPLE) {
        text.push('x');
    }
    Value::String(text)
}

fn sample_number(schema: &Value, integer: bool) -> Value {
    let bound = |key: &str| schema.get(key).filter(|v| v.is_number());
    if let Some(step) = bound("multipleOf") {
        return step.clone();
    }
    if let Some(least) = bound("minimum") {
        return least.clone();
    }
    if let Some(least) = bound("exclusiveMinimum").and_then(Value::as_i64) {
        return least.saturating_add(1).into();
    }
    if let Some(most) = bound("maximum").or_else(|| bound("exclusiveMaximum")).filter(|m| m.as_f64() < Some(2.0)) {
        return most.as_i64().map_or_else(|| most.clone(), |m| m.saturating_sub(1).into());
    }
    if integer { 1.into() } else { 1.5.into() }
}
