//! The schema of a Gemini function declaration: one type each, `nullable`, enums of texts, few formats. What it has no field
//! for is said in the description.

use super::meet::type_words;
use super::subset::one_of_places;
use super::words;
use serde_json::{Map, Value, json};

/// Most characters of a property's name.
const MAX_NAME: usize = 64;

/// What an argument may be of which nothing is known; the properties of an object would have to be named.
const ANYTHING: [&str; 3] = ["STRING", "NUMBER", "BOOLEAN"];

/// A schema in Gemini's form, with what the provider may still refuse.
pub(super) struct Declared {
    /// The schema.
    pub(super) schema: Value,
    /// Doubts, each with its place.
    pub(super) notes: Vec<String>,
}

/// Puts a simplified schema into Gemini's form.
pub(super) fn declare(schema: &Value) -> Declared {
    let mut work = Work { notes: Vec::new() };
    let schema = Value::Object(work.schema(schema, "the arguments"));
    Declared { schema, notes: work.notes }
}

struct Work {
    notes: Vec<String>,
}

/// Fields that stand in the schema as they are, by type.
fn is_field(kind: &str, keyword: &str) -> bool {
    match keyword {
        "type" | "description" | "title" => true,
        "minLength" | "maxLength" | "pattern" => kind == "string",
        "minimum" | "maximum" => matches!(kind, "number" | "integer"),
        "items" | "minItems" | "maxItems" => kind == "array",
        "properties" | "required" | "minProperties" | "maxProperties" => kind == "object",
        _ => false,
    }
}

impl Work {
    fn note(&mut self, words: String) {
        if self.notes.len() < 20 && !self.notes.contains(&words) {
            self.notes.push(words);
        }
    }

    fn schema(&mut self, schema: &Value, place: &str) -> Map<String, Value> {
        let empty = Map::new();
        let map = schema.as_object().unwrap_or(&empty);
        let own = map.get("description").or_else(|| map.get("title")).and_then(Value::as_str).unwrap_or_default();
        if let Some(Value::Array(branches)) = map.get("anyOf") {
            let said = words::restrictions(map, &|k| k == "anyOf" || is_field("", k));
            let text = words::append(own, &said);
            let (nulls, others): (Vec<&Value>, Vec<&Value>) =
                branches.iter().partition(|b| b.get("type").is_some_and(|t| t == "null"));
            let made: Vec<Map<String, Value>> = others.into_iter().map(|branch| self.schema(branch, place)).collect();
            if made.is_empty() {
                // Nothing but null, beside what may contradict it.
                return either(ANYTHING.map(of_type).into(), &text, true);
            }
            return either(made, &text, !nulls.is_empty());
        }
        let (kinds, is_nullable) = kinds(map);
        let mut made: Vec<Map<String, Value>> = Vec::new();
        for kind in &kinds {
            made.extend(self.of_kind(map, kind, place, kinds.len() > 1));
        }
        if made.is_empty() {
            let said = words::restrictions(map, &|k| is_field("", k));
            let text = words::append(own, &said);
            let text = if is_nullable { words::append(&text, &["null".to_owned()]) } else { text };
            return either(ANYTHING.map(of_type).into(), &text, is_nullable);
        }
        if made.len() == 1 {
            let mut one = made.remove(0);
            if is_nullable {
                one.insert("nullable".to_owned(), true.into());
            }
            return one;
        }
        either(made, own, is_nullable)
    }

    /// The schema where a value is of this kind; `None` where its enum has no such value.
    fn of_kind(
        &mut self,
        map: &Map<String, Value>,
        kind: &str,
        place: &str,
        is_one_of_several: bool,
    ) -> Option<Map<String, Value>> {
        let mut made = Map::new();
        made.insert("type".to_owned(), kind.to_uppercase().into());
        let mut map = map.clone();
        if is_one_of_several {
            // It is said once, for all of them.
            map.shift_remove("description");
            map.shift_remove("title");
            map.shift_remove("default");
            map.retain(|k, _| belongs(kind, k));
        }
        self.values(&mut map, &mut made, kind)?;
        let format = map.get("format").and_then(Value::as_str);
        let is_format = |f: &str| match kind {
            "string" => f == "date-time",
            "number" => matches!(f, "float" | "double"),
            "integer" => matches!(f, "int32" | "int64"),
            _ => false,
        };
        if let Some(format) = format.filter(|f| is_format(f) && !made.contains_key("enum")) {
            made.insert("format".to_owned(), format.into());
        }
        let is_said = |k: &str| (k == "format" && made.contains_key("format")) || is_field(kind, k);
        let said = words::restrictions(&map, &is_said);
        let own = map.get("description").or_else(|| map.get("title")).and_then(Value::as_str).unwrap_or_default();
        let text = words::append(own, &said);
        if !text.is_empty() {
            made.insert("description".to_owned(), text.into());
        }
        for (keyword, value) in map.iter().filter(|(k, _)| is_field(kind, k)) {
            match (keyword.as_str(), value) {
                ("type" | "description" | "title", _) => {}
                ("properties", Value::Object(children)) => {
                    let mut properties = Map::new();
                    for (name, child) in children {
                        if !is_name(name) {
                            self.note(format!(
                                "the argument `{name}` has a name that may be refused: letters, digits and `_`, at most {MAX_NAME}"
                            ));
                        }
                        properties.insert(name.clone(), Value::Object(self.schema(child, &format!("`{name}`"))));
                    }
                    made.insert(keyword.clone(), Value::Object(properties));
                }
                ("required", Value::Array(names)) => {
                    let is_there = |name: &&Value| {
                        name.as_str().is_some_and(|n| map.get("properties").is_some_and(|p| p.get(n).is_some()))
                    };
                    let names: Vec<Value> = names.iter().filter(is_there).cloned().collect();
                    if !names.is_empty() {
                        made.insert(keyword.clone(), Value::Array(names));
                    }
                }
                ("items", Value::Object(_)) => {
                    made.insert(keyword.clone(), Value::Object(self.schema(value, &format!("an item of {place}"))));
                }
                ("items", _) => {}
                (_, value) => {
                    made.insert(keyword.clone(), value.clone());
                }
            }
        }
        if kind == "array" && !made.contains_key("items") {
            let places = map.get("prefixItems").and_then(Value::as_array);
            let item = places.and_then(|p| one_of_places(p)).unwrap_or_else(|| json!({}));
            made.insert("items".to_owned(), Value::Object(self.schema(&item, &format!("an item of {place}"))));
        }
        if kind == "object" && made.get("properties").is_none_or(|p| p.as_object().is_some_and(Map::is_empty)) {
            made.shift_remove("properties");
            self.note(format!("{place}: an object without named properties is refused by some models"));
        }
        Some(made)
    }

    /// `enum` and `const`: a list of texts is a field, anything else is said.
    fn values(&mut self, map: &mut Map<String, Value>, made: &mut Map<String, Value>, kind: &str) -> Option<()> {
        let values: Vec<Value> = match (map.get("const"), map.get("enum")) {
            (Some(value), _) => vec![value.clone()],
            (None, Some(Value::Array(list))) => list.iter().filter(|v| !v.is_null()).cloned().collect(),
            _ => return Some(()),
        };
        let ours: Vec<Value> = values.into_iter().filter(|v| is_kind(v, kind)).collect();
        if ours.is_empty() {
            return None;
        }
        map.shift_remove("const");
        map.shift_remove("enum");
        // An empty text is refused as a value.
        if kind == "string" && ours.iter().all(|v| v.as_str().is_some_and(|s| !s.is_empty())) {
            made.insert("format".to_owned(), "enum".into());
            made.insert("enum".to_owned(), Value::Array(ours));
            // A format beside it would be a second one.
            map.shift_remove("format");
        } else if let [one] = ours.as_slice() {
            map.insert("const".to_owned(), one.clone());
        } else {
            map.insert("enum".to_owned(), Value::Array(ours));
        }
        Some(())
    }
}

fn of_type(kind: &str) -> Map<String, Value> {
    let mut made = Map::new();
    made.insert("type".to_owned(), kind.into());
    made
}

/// Alternatives as Gemini takes them: nothing may stand beside `anyOf`, so the first carries what is said of all.
fn either(alternatives: Vec<Map<String, Value>>, text: &str, is_nullable: bool) -> Map<String, Value> {
    // Alternatives within alternatives are alternatives.
    let mut branches: Vec<Map<String, Value>> = Vec::new();
    for alternative in alternatives {
        match alternative.get("anyOf").and_then(Value::as_array) {
            Some(inner) => branches.extend(inner.iter().filter_map(|b| b.as_object().cloned())),
            None => branches.push(alternative),
        }
    }
    if let Some(first) = branches.first_mut() {
        let own = first.get("description").and_then(Value::as_str).unwrap_or_default();
        let both =
            if own.is_empty() || text.is_empty() { format!("{text}{own}") } else { format!("{text} Here: {own}") };
        if !both.is_empty() {
            first.insert("description".to_owned(), both.into());
        }
        if is_nullable {
            first.insert("nullable".to_owned(), true.into());
        }
    }
    match branches.len() {
        1 => branches.remove(0),
        _ => {
            let mut made = Map::new();
            made.insert("anyOf".to_owned(), branches.into_iter().map(Value::Object).collect());
            made
        }
    }
}

/// The types a value may have, without null; guessed where none is declared.
fn kinds(map: &Map<String, Value>) -> (Vec<String>, bool) {
    let declared = map.get("type").map(type_words).unwrap_or_default();
    let values = map.get("enum").and_then(Value::as_array);
    let is_nullable = declared.contains(&"null") || values.is_some_and(|v| v.iter().any(Value::is_null));
    let mut kinds: Vec<String> = declared.into_iter().filter(|k| *k != "null").map(str::to_owned).collect();
    if kinds.is_empty() {
        let given: Vec<&Value> = map.get("const").into_iter().chain(values.into_iter().flatten()).collect();
        for kind in ["string", "integer", "number", "boolean", "array", "object"] {
            let is_covered = kind == "number" && given.iter().all(|v| !v.is_number() || v.is_i64());
            if !is_covered && given.iter().any(|v| is_kind(v, kind)) {
                kinds.push(kind.to_owned());
            }
        }
        // A number with a fraction makes all of them numbers.
        if kinds.iter().any(|k| k == "number") {
            kinds.retain(|k| k != "integer");
        }
    }
    if kinds.is_empty() {
        let guesses = [
            ("object", &["properties", "required", "additionalProperties", "patternProperties", "propertyNames"][..]),
            ("array", &["items", "prefixItems", "minItems", "maxItems", "uniqueItems", "contains"]),
            ("string", &["pattern", "minLength", "maxLength", "format", "contentEncoding"]),
            ("number", &["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"]),
        ];
        let found = guesses.into_iter().filter(|(_, keywords)| keywords.iter().any(|k| map.contains_key(*k)));
        kinds.extend(found.map(|(kind, _)| kind.to_owned()).take(1));
    }
    (kinds, is_nullable)
}

fn is_kind(value: &Value, kind: &str) -> bool {
    match kind {
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => false,
    }
}

/// Whether a keyword says something about values of this kind.
fn belongs(kind: &str, keyword: &str) -> bool {
    match keyword {
        "minLength" | "maxLength" | "pattern" | "format" | "contentEncoding" | "contentMediaType" => kind == "string",
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf" => {
            matches!(kind, "number" | "integer")
        }
        "items" | "prefixItems" | "minItems" | "maxItems" | "uniqueItems" | "contains" | "minContains"
        | "maxContains" => kind == "array",
        "properties"
        | "required"
        | "minProperties"
        | "maxProperties"
        | "additionalProperties"
        | "patternProperties"
        | "propertyNames"
        | "dependentRequired"
        | "dependentSchemas" => kind == "object",
        _ => true,
    }
}

fn is_name(name: &str) -> bool {
    name.len() <= MAX_NAME
        && name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_takes_geminis_form() {
        let rows = [
            (json!({ "type": "string", "description": "D." }), json!({ "type": "STRING", "description": "D." })),
            (json!({ "type": ["string", "null"] }), json!({ "type": "STRING", "nullable": true })),
            (
                json!({ "type": "string", "minLength": 1, "maxLength": 9, "pattern": "^a" }),
                json!({ "type": "STRING", "minLength": 1, "maxLength": 9, "pattern": "^a" }),
            ),
            (
                json!({ "type": "integer", "minimum": 2, "maximum": 9 }),
                json!({ "type": "INTEGER", "minimum": 2, "maximum": 9 }),
            ),
            (
                json!({ "type": "number", "exclusiveMinimum": 0, "multipleOf": 0.5 }),
                json!({ "type": "NUMBER", "description": "more than 0; a multiple of 0.5" }),
            ),
            // Formats.
            (json!({ "type": "string", "format": "date-time" }), json!({ "type": "STRING", "format": "date-time" })),
            (json!({ "type": "string", "format": "uri" }), json!({ "type": "STRING", "description": "a URL" })),
            (json!({ "type": "integer", "format": "int32" }), json!({ "type": "INTEGER", "format": "int32" })),
            (
                json!({ "type": "number", "format": "int32" }),
                json!({ "type": "NUMBER", "description": "in the format int32" }),
            ),
            // Values.
            (
                json!({ "type": "string", "enum": ["a", "b"] }),
                json!({ "type": "STRING", "format": "enum", "enum": ["a", "b"] }),
            ),
            (
                json!({ "enum": ["a", null] }),
                json!({ "type": "STRING", "format": "enum", "enum": ["a"], "nullable": true }),
            ),
            (json!({ "type": "integer", "enum": [1, 2] }), json!({ "type": "INTEGER", "description": "one of 1, 2" })),
            (json!({ "enum": [1, 2.5] }), json!({ "type": "NUMBER", "description": "one of 1, 2.5" })),
            (json!({ "enum": [true] }), json!({ "type": "BOOLEAN", "description": "always true" })),
            (json!({ "const": "x" }), json!({ "type": "STRING", "format": "enum", "enum": ["x"] })),
            (json!({ "const": 5 }), json!({ "type": "INTEGER", "description": "always 5" })),
            (json!({ "enum": ["a", ""] }), json!({ "type": "STRING", "description": "one of a, \"\"" })),
            (
                json!({ "enum": ["auto", 1, 2], "description": "How many." }),
                json!({ "anyOf": [{ "type": "STRING", "format": "enum", "enum": ["auto"], "description": "How many." },
                    { "type": "INTEGER", "description": "one of 1, 2" }] }),
            ),
            // Alternatives.
            (
                json!({ "type": ["string", "integer", "null"], "minLength": 1, "minimum": 0, "description": "D." }),
                json!({ "anyOf": [{ "type": "STRING", "minLength": 1, "description": "D.", "nullable": true },
                    { "type": "INTEGER", "minimum": 0 }] }),
            ),
            (
                json!({ "anyOf": [{ "type": "string", "description": "A name." }, { "type": "array", "items": { "type": "string" } }, { "type": "null" }], "description": "Who." }),
                json!({ "anyOf": [{ "type": "STRING", "description": "Who. Here: A name.", "nullable": true },
                    { "type": "ARRAY", "items": { "type": "STRING" } }] }),
            ),
            (json!({}), json!({ "anyOf": [{ "type": "STRING" }, { "type": "NUMBER" }, { "type": "BOOLEAN" }] })),
            // Lists.
            (
                json!({ "type": "array", "items": { "type": "string" }, "minItems": 1, "uniqueItems": true }),
                json!({ "type": "ARRAY", "description": "no item twice", "items": { "type": "STRING" }, "minItems": 1 }),
            ),
            (
                json!({ "type": "array", "prefixItems": [{ "type": "number" }, { "type": "number" }] }),
                json!({ "type": "ARRAY", "description": "in this order: number, then number", "items": { "type": "NUMBER" } }),
            ),
            (
                json!({ "type": "array" }),
                json!({ "type": "ARRAY", "items": { "anyOf": [{ "type": "STRING" }, { "type": "NUMBER" }, { "type": "BOOLEAN" }] } }),
            ),
            // Objects.
            (
                json!({ "type": "object", "properties": { "a": { "type": "string" } }, "required": ["a", "z"], "additionalProperties": false }),
                json!({ "type": "OBJECT", "properties": { "a": { "type": "STRING" } }, "required": ["a"] }),
            ),
            (
                json!({ "properties": { "a": { "type": "string", "default": "x" } } }),
                json!({ "type": "OBJECT", "properties": { "a": { "type": "STRING", "description": "x where it is left out" } } }),
            ),
            (
                json!({ "type": "object", "additionalProperties": { "type": "string" } }),
                json!({ "type": "OBJECT", "description": "any other name: text" }),
            ),
        ];
        for (schema, declared) in rows {
            assert_eq!(declare(&schema).schema, declared, "{schema}");
        }
    }

    #[test]
    fn what_may_still_be_refused_is_told() {
        let schema = json!({ "type": "object", "properties": { "a b": { "type": "string" }, "fine_1": { "type": "object" }, "x-y": {} } });
        let notes = declare(&schema).notes;
        assert!(notes.iter().any(|n| n.contains("`a b`")) && notes.iter().any(|n| n.contains("`x-y`")), "{notes:?}");
        assert!(notes.iter().any(|n| n.contains("`fine_1`: an object without")) && notes.len() == 3, "{notes:?}");
    }
}
