//! JSON Schemas of tools: checked once at load, explained where they are wrong, compiled where a call needs them.
//! It fetches nothing: a reference that leaves the schema is refused.

use super::keywords::{Holds, holds};
use jsonschema::error::ValidationErrorKind;
use jsonschema::{PatternOptions, ValidationError, Validator};
use serde_json::{Map, Value};
use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::LazyLock;

/// Deepest nesting of a schema; compiling is recursive.
const MAX_DEPTH: usize = 48;
/// Most values in a schema, counted everywhere.
const MAX_NODES: usize = 20_000;
/// Objects nested deeper than this get a warning: weak models do not fill them.
const DEEP_PARAMETERS: usize = 3;
/// Steps that a pattern with look-around may take; plain patterns run in linear time.
const BACKTRACK_LIMIT: usize = 100_000;
/// Size of one compiled pattern, in bytes.
const PATTERN_SIZE: usize = 1 << 20;
/// What the providers refuse at the top of a tool's parameters.
const NOT_AT_TOP: [&str; 10] = ["anyOf", "oneOf", "allOf", "not", "if", "then", "else", "enum", "const", "$ref"];
const TYPES: [&str; 7] = ["string", "integer", "number", "boolean", "array", "object", "null"];

/// Checks the parameters of a tool and returns them as they are kept: as the author wrote them, with `type: "object"`
/// added where it was left out. Doubts that do not stop the tool go to `warnings`.
///
/// # Errors
/// What is wrong and where, in one sentence.
pub fn check_parameters(schema: &Value, warnings: &mut Vec<String>) -> Result<Value, String> {
    let Value::Object(map) = schema else {
        let hint = if matches!(schema, Value::Array(list) if list.is_empty()) {
            "; an empty map is written `#{}`"
        } else {
            ""
        };
        return Err(format!("`parameters` is {}; it must be an object schema{hint}", describe(schema)));
    };
    limits(schema, "parameters")?;
    match map.get("type") {
        None | Some(Value::Null) => {}
        Some(Value::String(word)) if word == "object" => {}
        Some(other) => {
            return Err(format!(
                "`parameters.type` is {}; the top level of a tool's parameters must be \"object\"",
                describe(other)
            ));
        }
    }
    if let Some(keyword) = NOT_AT_TOP.into_iter().find(|k| map.contains_key(*k)) {
        return Err(format!(
            "`parameters.{keyword}`: `{keyword}` at the top level is refused by model providers; move it into a property, or describe the arguments as plain properties"
        ));
    }
    let mut schema = schema.clone();
    if let Some(map) = schema.as_object_mut()
        && map.get("type").is_none_or(Value::is_null)
    {
        map.insert("type".to_owned(), Value::String("object".to_owned()));
        warnings.push("`parameters` has no `type`; \"object\" was added".to_owned());
    }
    let validator = compile_at(&schema, "parameters")?;
    lint(&schema, &validator, warnings);
    Ok(schema)
}

/// Checks the schema of a structured result.
///
/// # Errors
/// What is wrong and where, in one sentence.
pub fn check_output(schema: &Value) -> Result<(), String> {
    let Value::Object(map) = schema else {
        return Err(format!("it is {}; it must be an object schema", describe(schema)));
    };
    limits(schema, "output_schema")?;
    if map.get("type").is_none_or(|t| t != "object") {
        return Err("`output_schema.type` must be \"object\"".to_owned());
    }
    compile_at(schema, "output_schema").map(drop)
}

/// Compiles a schema that was checked before.
///
/// # Errors
/// What is wrong and where, for a schema that was not checked.
pub fn compile(schema: &Value) -> Result<Validator, String> {
    limits(schema, "schema")?;
    compile_at(schema, "schema")
}

fn compile_at(schema: &Value, root: &str) -> Result<Validator, String> {
    static OPTIONS: LazyLock<jsonschema::ValidationOptions<'static>> = LazyLock::new(|| {
        jsonschema::options().offline().with_pattern_options(
            PatternOptions::fancy_regex().backtrack_limit(BACKTRACK_LIMIT).size_limit(PATTERN_SIZE),
        )
    });
    references(schema, root)?;
    // Strangers write schemas: a panic of the compiler is their tool's end, not the host's.
    match catch_unwind(AssertUnwindSafe(|| OPTIONS.build(schema).map_err(|e| explain(schema, &e, root)))) {
        Ok(result) => result,
        Err(_) => Err(format!("`{root}` cannot be compiled")),
    }
}

fn limits(schema: &Value, root: &str) -> Result<(), String> {
    fn walk(value: &Value, depth: usize, nodes: &mut usize) -> bool {
        *nodes += 1;
        if depth > MAX_DEPTH || *nodes > MAX_NODES {
            return false;
        }
        match value {
            Value::Array(list) => list.iter().all(|v| walk(v, depth + 1, nodes)),
            Value::Object(map) => map.values().all(|v| walk(v, depth + 1, nodes)),
            _ => true,
        }
    }
    let mut nodes = 0;
    if walk(schema, 0, &mut nodes) {
        Ok(())
    } else if nodes > MAX_NODES {
        Err(format!("`{root}` holds more than {MAX_NODES} values"))
    } else {
        Err(format!("`{root}` is nested more than {MAX_DEPTH} levels deep"))
    }
}

/// Refuses what would make the compiler look outside the schema.
fn references(schema: &Value, root: &str) -> Result<(), String> {
    let mut wrong = None;
    each_schema(schema, &mut Path::root(root), &mut |map, path| {
        if wrong.is_some() {
            return;
        }
        for keyword in ["$ref", "$dynamicRef", "$recursiveRef"] {
            if let Some(Value::String(target)) = map.get(keyword)
                && !target.starts_with('#')
            {
                wrong = Some(format!(
                    "`{}` points to {}; only references inside the schema, such as \"#/$defs/name\", are followed",
                    path.with(keyword),
                    quote(target)
                ));
            }
        }
        if let Some(Value::String(dialect)) = map.get("$schema")
            && !(dialect.contains("//json-schema.org/draft") && KNOWN_DRAFTS.iter().any(|d| dialect.contains(d)))
        {
            wrong =
                Some(format!("`{}` names an unknown dialect, {}; leave it out", path.with("$schema"), quote(dialect)));
        }
    });
    wrong.map_or(Ok(()), Err)
}

const KNOWN_DRAFTS: [&str; 5] = ["draft-04", "draft-06", "draft-07", "draft/2019-09", "draft/2020-12"];

/// Doubts about a schema that is valid.
fn lint(schema: &Value, validator: &Validator, warnings: &mut Vec<String>) {
    let mut deepest = 0;
    let mut defaults = false;
    each_schema(schema, &mut Path::root("parameters"), &mut |map, path| {
        if map.contains_key("properties") {
            deepest = deepest.max(path.objects);
        }
        defaults |= map.contains_key("default");
        if let (Some(Value::Array(required)), Some(Value::Object(properties))) =
            (map.get("required"), map.get("properties"))
        {
            for name in required.iter().filter_map(Value::as_str).filter(|n| !properties.contains_key(*n)) {
                warnings.push(format!("`{}` lists {}, which is no property", path.with("required"), quote(name)));
            }
        }
    });
    if deepest >= DEEP_PARAMETERS {
        warnings.push(format!(
            "`parameters` nest objects {} levels deep; small models fill flat parameters more reliably",
            deepest + 1
        ));
    }
    if defaults {
        lint_defaults(schema, validator, warnings);
    }
}

/// A default that does not fit its own property would fail every call that leaves it out.
fn lint_defaults(schema: &Value, validator: &Validator, warnings: &mut Vec<String>) {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return };
    let filled: Map<String, Value> = properties
        .iter()
        .filter_map(|(name, property)| property.get("default").map(|d| (name.clone(), d.clone())))
        .collect();
    if filled.is_empty() {
        return;
    }
    for error in validator.iter_errors(&Value::Object(filled)) {
        if let Some(place) = error.instance_path().as_str().strip_prefix('/') {
            warnings.push(format!("the default of `{}` does not fit: {error}", place.replace('/', ".")));
        }
    }
}

/// A place in a schema, as `parameters.properties.count`.
struct Path {
    text: String,
    objects: usize,
}

impl Path {
    fn root(name: &str) -> Path {
        Path { text: name.to_owned(), objects: 0 }
    }

    fn with(&self, key: &str) -> String {
        let mut text = self.text.clone();
        push_key(&mut text, key);
        text
    }
}

fn push_key(text: &mut String, key: &str) {
    if !key.is_empty() && key.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '$')) {
        text.push('.');
        text.push_str(key);
    } else {
        let _ = write!(text, "[{}]", quote(key));
    }
}

/// Calls `visit` for every object schema, not for data such as `default` or `enum`.
fn each_schema(schema: &Value, path: &mut Path, visit: &mut impl FnMut(&Map<String, Value>, &Path)) {
    let Value::Object(map) = schema else { return };
    visit(map, path);
    for (keyword, value) in map {
        let start = path.text.len();
        match (holds(keyword, value), value) {
            (Holds::Named, Value::Object(children)) => {
                push_key(&mut path.text, keyword);
                let middle = path.text.len();
                path.objects += 1;
                for (name, child) in children {
                    push_key(&mut path.text, name);
                    each_schema(child, path, visit);
                    path.text.truncate(middle);
                }
                path.objects -= 1;
            }
            (Holds::List, Value::Array(children)) => {
                push_key(&mut path.text, keyword);
                let middle = path.text.len();
                for (index, child) in children.iter().enumerate() {
                    let _ = write!(path.text, "[{index}]");
                    each_schema(child, path, visit);
                    path.text.truncate(middle);
                }
            }
            (Holds::One, child) => {
                push_key(&mut path.text, keyword);
                each_schema(child, path, visit);
            }
            _ => {}
        }
        path.text.truncate(start);
    }
}

/// Turns the compiler's complaint into one that says what to write; the well-known slips get their own words.
fn explain(schema: &Value, error: &ValidationError<'_>, root: &str) -> String {
    let mut slip = None;
    each_schema(schema, &mut Path::root(root), &mut |map, path| {
        if slip.is_none() {
            slip = known_slip(map, path);
        }
    });
    if let Some(slip) = slip {
        return slip;
    }
    let place = dotted(root, error.instance_path().as_str());
    let text = match error.kind() {
        ValidationErrorKind::AnyOf { .. } | ValidationErrorKind::OneOfNotValid { .. } => {
            format!("{} is not allowed here", describe(error.instance()))
        }
        ValidationErrorKind::Format { format } if format == "regex" => {
            format!("{} is not a regular expression", describe(error.instance()))
        }
        ValidationErrorKind::Referencing(e) => format!("a reference leads nowhere: {e}"),
        _ => cut(&error.to_string(), 200),
    };
    format!("`{place}`: {text}")
}

fn known_slip(map: &Map<String, Value>, path: &Path) -> Option<String> {
    match map.get("properties") {
        None | Some(Value::Object(_)) => {}
        Some(other) => {
            return Some(format!("`{}` is {}; it must map names to schemas", path.with("properties"), describe(other)));
        }
    }
    if let Some(Value::Object(properties)) = map.get("properties") {
        if let Some(list @ Value::Array(_)) = properties.get("required") {
            return Some(format!(
                "`{}.required` is {}: `required` is nested inside `properties`; put it beside `properties`",
                path.with("properties"),
                describe(list)
            ));
        }
        for (name, property) in properties {
            let place = || {
                let mut text = path.with("properties");
                push_key(&mut text, name);
                text
            };
            match property {
                Value::Object(property) => {
                    if let Some(flag @ Value::Bool(_)) = property.get("required") {
                        return Some(format!(
                            "`{}.required` is {flag}; list {} in `{}` instead",
                            place(),
                            quote(name),
                            path.with("required")
                        ));
                    }
                }
                Value::Bool(_) => {}
                other => {
                    return Some(format!(
                        "`{}` is {}; a property is a schema such as #{{ type: \"string\" }}",
                        place(),
                        describe(other)
                    ));
                }
            }
        }
    }
    if let Some(kind) = map.get("type") {
        let words: Vec<&Value> = kind.as_array().map_or_else(|| vec![kind], |list| list.iter().collect());
        for word in words {
            let known = word.as_str().is_some_and(|w| TYPES.contains(&w));
            if !known {
                let hint = match word.as_str().map(str::to_ascii_lowercase).as_deref() {
                    Some("str" | "text") => "; write \"string\"",
                    Some("int" | "i64" | "long") => "; write \"integer\"",
                    Some("float" | "double" | "decimal") => "; write \"number\"",
                    Some("bool") => "; write \"boolean\"",
                    Some("list" | "tuple") => "; write \"array\"",
                    Some("map" | "dict") => "; write \"object\"",
                    _ => "",
                };
                return Some(format!(
                    "`{}` is {}; a type is one of string, integer, number, boolean, array, object, null{hint}",
                    path.with("type"),
                    describe(word)
                ));
            }
        }
    }
    match map.get("required") {
        None => None,
        Some(Value::Array(names)) => {
            let odd = names.iter().find(|n| !n.is_string())?;
            Some(format!("`{}` holds {}; it lists property names", path.with("required"), describe(odd)))
        }
        Some(other) => {
            Some(format!("`{}` is {}; it is a list of property names", path.with("required"), describe(other)))
        }
    }
}

/// `/properties/a~1b/0` as `root.properties["a/b"][0]`.
#[must_use]
pub fn dotted(root: &str, pointer: &str) -> String {
    let mut text = root.to_owned();
    for segment in pointer.split('/').skip(1) {
        let key = segment.replace("~1", "/").replace("~0", "~");
        if !key.is_empty() && key.bytes().all(|b| b.is_ascii_digit()) {
            let _ = write!(text, "[{key}]");
        } else {
            push_key(&mut text, &key);
        }
    }
    text.strip_prefix('.').map_or(text.clone(), str::to_owned)
}

/// A value in words, short enough for a message: `the text "abc"`, `the number 5`, `a list of 3`.
#[must_use]
pub fn describe(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(b) => b.to_string(),
        Value::Number(n) => format!("the number {n}"),
        Value::String(s) => format!("the text {}", quote(s)),
        Value::Array(list) if list.is_empty() => "an empty list".to_owned(),
        Value::Array(list) => format!("a list of {}", list.len()),
        Value::Object(map) if map.is_empty() => "an empty object".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}

fn quote(text: &str) -> String {
    Value::String(cut(text, 80)).to_string()
}

/// The first `max` characters, with an ellipsis where something was cut.
pub(super) fn cut(text: &str, max: usize) -> String {
    match text.char_indices().nth(max) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use serde_json::json;

    fn nested(levels: usize) -> Value {
        (0..levels)
            .fold(json!({ "type": "string" }), |inner, _| json!({ "type": "object", "properties": { "x": inner } }))
    }

    #[test]
    fn a_bad_schema_is_refused_with_what_and_where() {
        let rows: Vec<(Value, &str, &str)> = vec![
            (json!("x"), "`parameters` is the text \"x\"", "object schema"),
            (json!([]), "an empty list", "`#{}`"),
            (json!([1]), "a list of 1", "object schema"),
            (json!({ "type": "string" }), "`parameters.type` is the text \"string\"", "must be \"object\""),
            (json!({ "type": ["object", "null"] }), "`parameters.type`", "must be \"object\""),
            (json!({ "anyOf": [{ "type": "object" }] }), "`parameters.anyOf`", "top level"),
            (json!({ "type": "object", "oneOf": [] }), "`parameters.oneOf`", "top level"),
            (json!({ "type": "object", "allOf": [] }), "`parameters.allOf`", "top level"),
            (json!({ "type": "object", "not": {} }), "`parameters.not`", "top level"),
            (json!({ "type": "object", "if": {} }), "`parameters.if`", "top level"),
            (json!({ "type": "object", "enum": [] }), "`parameters.enum`", "top level"),
            (json!({ "type": "object", "$ref": "#/$defs/a" }), "`parameters.$ref`", "top level"),
            (
                json!({ "type": "object", "properties": { "a": { "type": "string" }, "required": ["a"] } }),
                "`parameters.properties.required` is a list of 1",
                "nested inside `properties`; put it beside",
            ),
            (
                json!({ "type": "object", "properties": { "o": { "type": "object", "properties": { "required": ["a"] } } } }),
                "`parameters.properties.o.properties.required`",
                "nested inside `properties`",
            ),
            (
                json!({ "type": "object", "properties": [] }),
                "`parameters.properties` is an empty list",
                "names to schemas",
            ),
            (
                json!({ "type": "object", "properties": { "a": "string" } }),
                "`parameters.properties.a` is the text \"string\"",
                "a property is a schema",
            ),
            (
                json!({ "type": "object", "properties": { "a": { "type": "int" } } }),
                "`parameters.properties.a.type`",
                "write \"integer\"",
            ),
            (
                json!({ "type": "object", "properties": { "a": { "type": "String" } } }),
                "`parameters.properties.a.type`",
                "one of string",
            ),
            (
                json!({ "type": "object", "properties": { "a": { "type": ["string", "bool"] } } }),
                "`parameters.properties.a.type`",
                "write \"boolean\"",
            ),
            (
                json!({ "type": "object", "properties": { "a b": { "type": 5 } } }),
                "`parameters.properties[\"a b\"].type` is the number 5",
                "one of string",
            ),
            (
                json!({ "type": "object", "properties": { "a": { "type": "string", "required": true } } }),
                "`parameters.properties.a.required` is true",
                "in `parameters.required`",
            ),
            (
                json!({ "type": "object", "required": "a" }),
                "`parameters.required` is the text",
                "list of property names",
            ),
            (
                json!({ "type": "object", "required": [1] }),
                "`parameters.required` holds the number 1",
                "property names",
            ),
            (
                json!({ "type": "object", "properties": { "a": { "minimum": "2" } } }),
                "`parameters.properties.a.minimum`",
                "number",
            ),
            (
                json!({ "type": "object", "properties": { "a": { "minLength": -1 } } }),
                "`parameters.properties.a.minLength`",
                "-1",
            ),
            (
                json!({ "type": "object", "properties": { "a": { "enum": "x" } } }),
                "`parameters.properties.a.enum`",
                "array",
            ),
            (
                json!({ "type": "object", "properties": { "a": { "pattern": "(" } } }),
                "`parameters.properties.a.pattern`",
                "regular expression",
            ),
            (
                json!({ "type": "object", "properties": { "a": { "items": { "type": "list" } } } }),
                "`parameters.properties.a.items.type`",
                "\"array\"",
            ),
            (
                json!({ "type": "object", "properties": { "a": { "$ref": "https://example.org/s.json" } } }),
                "`parameters.properties.a.$ref`",
                "inside the schema",
            ),
            (
                json!({ "type": "object", "properties": { "a": { "$ref": "other.json" } } }),
                "`parameters.properties.a.$ref`",
                "inside the schema",
            ),
            (
                json!({ "type": "object", "properties": { "a": { "$ref": "file:///etc/passwd" } } }),
                "`parameters.properties.a.$ref`",
                "inside the schema",
            ),
            (
                json!({ "type": "object", "properties": { "a": { "anyOf": [{}, { "$ref": "x" }] } } }),
                "`parameters.properties.a.anyOf[1].$ref`",
                "inside the schema",
            ),
            (
                json!({ "type": "object", "properties": { "a": { "$ref": "#/$defs/none" } } }),
                "reference leads nowhere",
                "none",
            ),
            (
                json!({ "type": "object", "$schema": "https://example.org/meta" }),
                "`parameters.$schema`",
                "leave it out",
            ),
            (nested(60), "`parameters` is nested more than", "levels deep"),
            (
                json!({ "type": "object", "properties": { "a": { "enum": vec![1; 30_000] } } }),
                "`parameters` holds more than",
                "values",
            ),
        ];
        for (schema, what, wanted) in rows {
            let shown = cut(&schema.to_string(), 200);
            let reason = check_parameters(&schema, &mut Vec::new()).unwrap_err();
            assert!(reason.contains(what) && reason.contains(wanted), "{shown}: {reason}");
        }
    }

    #[test]
    fn a_good_schema_is_kept_as_the_author_wrote_it() {
        let rows = [
            json!({ "type": "object" }),
            json!({ "type": "object", "properties": {}, "additionalProperties": true }),
            json!({ "type": "object", "properties": { "required": { "type": "boolean" } } }),
            json!({ "type": "object", "properties": { "a": true, "b": false } }),
            json!({ "type": "object", "properties": { "a": { "anyOf": [{ "type": "integer" }, { "type": "null" }] } } }),
            json!({ "type": "object", "properties": { "a": { "$ref": "#/$defs/p" } }, "$defs": { "p": { "type": "string" } }, "x-own": [1] }),
            json!({ "type": "object", "properties": { "a": { "$ref": "#" } } }),
            json!({ "type": "object", "properties": { "a": { "default": { "$ref": "https://example.org" }, "enum": [{ "$ref": "x" }] } } }),
            json!({ "type": "object", "$schema": "http://json-schema.org/draft-07/schema#", "properties": {} }),
            json!({ "type": "object", "$schema": "https://json-schema.org/draft/2020-12/schema", "properties": {} }),
            json!({ "type": "object", "properties": { "n": { "type": "integer", "big": true } } }),
            json!({ "type": "object", "properties": { "n": { "type": "string", "pattern": "^(?!x)", "format": "date" } } }),
        ];
        for schema in rows {
            assert_eq!(check_parameters(&schema, &mut Vec::new()), Ok(schema.clone()), "{schema}");
        }
    }

    #[test]
    fn doubts_are_told_and_the_tool_stays() {
        let rows = [
            (json!({ "properties": {} }), "no `type`"),
            (json!({ "type": "object", "properties": {}, "required": ["x"] }), "`parameters.required` lists \"x\""),
            (
                json!({ "type": "object", "properties": { "a": { "type": "integer", "default": "six" } } }),
                "default of `a` does not fit",
            ),
            (nested(4), "4 levels deep"),
        ];
        for (schema, word) in rows {
            let mut warnings = Vec::new();
            let kept = check_parameters(&schema, &mut warnings).unwrap();
            assert_eq!(kept["type"], "object");
            assert!(warnings.iter().any(|w| w.contains(word)), "{schema}: {warnings:?}");
        }
        let mut none = Vec::new();
        check_parameters(&nested(3), &mut none).unwrap();
        assert_eq!(none, Vec::<String>::new());
    }

    #[test]
    fn places_are_written_as_in_a_script() {
        let rows = [
            ("", "root"),
            ("/a", "root.a"),
            ("/a/0/b", "root.a[0].b"),
            ("/a~1b", "root[\"a/b\"]"),
            ("/a b/$ref", "root[\"a b\"].$ref"),
        ];
        for (pointer, text) in rows {
            assert_eq!(dotted("root", pointer), text);
        }
        assert_eq!(dotted("", "/a/0"), "a[0]");
    }
}
