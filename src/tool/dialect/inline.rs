//! A schema without references and in today's keywords: what it points to stands where it is used, what points to itself
//! is cut with a word. It knows no provider.

use super::meet;
use super::words;
use crate::tool::keywords::{Holds, holds};
use crate::tool::schema::cut;
use serde_json::{Map, Value, json};
use std::collections::HashMap;

/// Most values that are written out; a reference beyond it is cut.
const MAX_VALUES: usize = 20_000;
/// Deepest level that is written out.
const MAX_LEVELS: usize = 64;

/// What names parts of a schema and says nothing about values.
const NAMING: [&str; 9] = [
    "$schema",
    "$id",
    "$anchor",
    "$dynamicAnchor",
    "$recursiveAnchor",
    "$vocabulary",
    "$comment",
    "$defs",
    "definitions",
];
const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];
/// What describes and restricts nothing.
pub(super) const ANNOTATIONS: [&str; 7] =
    ["description", "title", "default", "examples", "deprecated", "readOnly", "writeOnly"];

/// A schema written out.
pub(super) struct Inlined {
    /// Without references.
    pub(super) schema: Value,
    /// What was cut, each as a person reads it.
    pub(super) cuts: Vec<String>,
}

/// Writes a schema out.
pub(super) fn inline(schema: &Value) -> Inlined {
    let dialect = schema.get("$schema").and_then(Value::as_str).unwrap_or_default();
    let mut anchors = HashMap::new();
    find_anchors(schema, &mut anchors);
    let mut work = Inliner {
        root: schema,
        anchors,
        open: vec![std::ptr::from_ref(schema)],
        left: MAX_VALUES,
        siblings_count: !["draft-04", "draft-06", "draft-07"].iter().any(|d| dialect.contains(d)),
        has_plain_id: dialect.contains("draft-04"),
        cuts: Vec::new(),
        times: 0,
    };
    let made = match schema {
        // The root is open already; what points at it is a circle.
        Value::Object(map) => work.any(map, schema, 0),
        other => other.clone(),
    };
    Inlined { schema: made, cuts: work.cuts }
}

struct Inliner<'a> {
    root: &'a Value,
    anchors: HashMap<&'a str, &'a Value>,
    /// The targets that are being written out, outermost first.
    open: Vec<*const Value>,
    left: usize,
    /// Before 2019-09 nothing beside a reference counted.
    siblings_count: bool,
    has_plain_id: bool,
    cuts: Vec<String>,
    /// How often something was cut so far.
    times: usize,
}

impl<'a> Inliner<'a> {
    fn schema(&mut self, schema: &'a Value, base: &'a Value, level: usize) -> Value {
        match schema {
            Value::Object(map) => {
                let base = if is_resource(schema) { schema } else { base };
                self.any(map, base, level)
            }
            other => other.clone(),
        }
    }

    fn any(&mut self, map: &'a Map<String, Value>, base: &'a Value, level: usize) -> Value {
        self.left = self.left.saturating_sub(1);
        if level > MAX_LEVELS {
            return self.cut(map.get("type"), "too deep to be written out here");
        }
        let reference = REFERENCES.iter().find_map(|k| map.get(*k).and_then(Value::as_str).map(|target| (*k, target)));
        let Some((keyword, target)) = reference else { return self.plain(map, base, level) };
        let made = self.target(target, base, level);
        let beside: Map<String, Value> = map
            .iter()
            .filter(|(k, _)| *k != keyword && !NAMING.contains(&k.as_str()))
            .filter(|(k, _)| self.siblings_count || ANNOTATIONS.contains(&k.as_str()))
            .map(|(k, v)| (k.clone(), v.clone()))
            .collect();
        if beside.is_empty() {
            return made.value;
        }
        let beside = match map.iter().any(|(k, _)| beside.contains_key(k) && !ANNOTATIONS.contains(&k.as_str())) {
            // Written out from the original, whose addresses tell circles.
            true => match self.plain(map, base, level) {
                Value::Object(mut written) => {
                    written.retain(|k, _| beside.contains_key(k));
                    written
                }
                _ => beside,
            },
            false => beside,
        };
        overlay(made, beside)
    }

    fn target(&mut self, target: &str, base: &'a Value, level: usize) -> Target {
        let name = name_of(target);
        let Some((found, base)) = self.resolve(target, base) else {
            return Target { value: self.cut(None, &format!("{name}, which is not defined")), is_cut: true };
        };
        let address = std::ptr::from_ref(found);
        if self.open.contains(&address) {
            return Target { value: self.cut(found.get("type"), &format!("{name} again, as above")), is_cut: true };
        }
        if self.left == 0 {
            let words = format!("{name}, too large to be written out here");
            return Target { value: self.cut(found.get("type"), &words), is_cut: true };
        }
        self.open.push(address);
        let value = self.schema(found, base, level + 1);
        self.open.pop();
        Target { value, is_cut: false }
    }

    fn cut(&mut self, kind: Option<&Value>, words: &str) -> Value {
        self.times += 1;
        let words = words.to_owned();
        if !self.cuts.contains(&words) && self.cuts.len() < 20 {
            self.cuts.push(words.clone());
        }
        let mut made = Map::new();
        if let Some(kind) = kind {
            made.insert("type".to_owned(), kind.clone());
        }
        made.insert("description".to_owned(), words.into());
        Value::Object(made)
    }

    fn plain(&mut self, map: &'a Map<String, Value>, base: &'a Value, level: usize) -> Value {
        let mut made = Map::new();
        let mut open = None;
        for (keyword, value) in map {
            if NAMING.contains(&keyword.as_str())
                || REFERENCES.contains(&keyword.as_str())
                || (self.has_plain_id && keyword == "id")
            {
                continue;
            }
            let times = self.times;
            let written = match (holds(keyword, value), value) {
                (Holds::Named, Value::Object(children)) => {
                    let children =
                        children.iter().map(|(name, child)| (name.clone(), self.schema(child, base, level + 1)));
                    Value::Object(children.collect())
                }
                (Holds::List, Value::Array(children)) => {
                    children.iter().map(|child| self.schema(child, base, level + 1)).collect()
                }
                (Holds::One, child) => self.schema(child, base, level + 1),
                _ => value.clone(),
            };
            // What was cut takes more than before: where that would refuse more, the rule is left open.
            match keyword.as_str() {
                "oneOf" if self.times > times => open = Some(written),
                "not" | "if" if self.times > times => {}
                _ => {
                    made.insert(keyword.clone(), written);
                }
            }
        }
        match open {
            Some(any) if made.contains_key("anyOf") => {
                let any = json!({ "anyOf": any });
                match made.get_mut("allOf") {
                    Some(Value::Array(all)) => all.push(any),
                    _ => {
                        made.insert("allOf".to_owned(), json!([any]));
                    }
                }
            }
            Some(any) => {
                made.insert("anyOf".to_owned(), any);
            }
            None => {}
        }
        modernise(&mut made);
        Value::Object(made)
    }

    /// What a reference points to, and the resource it stands in.
    fn resolve(&self, target: &str, base: &'a Value) -> Option<(&'a Value, &'a Value)> {
        let fragment = decode(target.strip_prefix('#')?);
        if fragment.is_empty() {
            return Some((base, base));
        }
        let Some(pointer) = fragment.strip_prefix('/') else {
            return self.anchors.get(fragment.as_str()).map(|found| (*found, base));
        };
        let from = |start: &'a Value| {
            let mut at = (start, start);
            for segment in pointer.split('/') {
                let segment = segment.replace("~1", "/").replace("~0", "~");
                let next = match at.0 {
                    Value::Object(map) => map.get(&segment)?,
                    Value::Array(list) => list.get(segment.parse::<usize>().ok()?)?,
                    _ => return None,
                };
                at = (next, if is_resource(next) { next } else { at.1 });
            }
            (at.0.is_object() || at.0.is_boolean()).then_some(at)
        };
        from(base).or_else(|| from(self.root))
    }
}

struct Target {
    value: Value,
    is_cut: bool,
}

/// What stands beside a reference: descriptions win over the target's, restrictions add to it.
fn overlay(target: Target, mut beside: Map<String, Value>) -> Value {
    let mut made = match target.value {
        Value::Object(map) => map,
        Value::Bool(true) => return Value::Object(beside),
        other => return other,
    };
    if target.is_cut
        && let (Some(Value::String(cut)), Some(Value::String(own))) =
            (made.get("description"), beside.get_mut("description"))
    {
        *own = words::append(own, std::slice::from_ref(cut));
    }
    for annotation in ANNOTATIONS {
        if let Some(value) = beside.shift_remove(annotation) {
            made.insert(annotation.to_owned(), value);
        }
    }
    match meet::meet(&made, &beside) {
        Some(both) => Value::Object(both),
        None => {
            let more = json!({ "allOf": [beside] });
            let joined = more.as_object().and_then(|more| meet::meet(&made, more));
            Value::Object(joined.unwrap_or(made))
        }
    }
}

/// Today's keywords for those of earlier drafts.
fn modernise(map: &mut Map<String, Value>) {
    for (bound, exclusive) in [("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")] {
        if let Some(Value::Bool(is_exclusive)) = map.get(exclusive) {
            let is_exclusive = *is_exclusive;
            map.shift_remove(exclusive);
            if is_exclusive && let Some(limit) = map.shift_remove(bound) {
                map.insert(exclusive.to_owned(), limit);
            }
        }
    }
    let rest = map.shift_remove("additionalItems");
    if let Some(Value::Array(_)) = map.get("items") {
        if let Some(tuple) = map.shift_remove("items") {
            map.insert("prefixItems".to_owned(), tuple);
        }
        if let Some(rest) = rest {
            map.insert("items".to_owned(), rest);
        }
    }
    if let Some(Value::Object(dependencies)) = map.shift_remove("dependencies") {
        for (name, wants) in dependencies {
            let keyword = if wants.is_array() { "dependentRequired" } else { "dependentSchemas" };
            let into = map.entry(keyword).or_insert_with(|| json!({}));
            if let Some(into) = into.as_object_mut() {
                into.entry(name).or_insert(wants);
            }
        }
    }
}

/// A part with an address of its own: references inside it start there.
fn is_resource(schema: &Value) -> bool {
    schema.get("$id").and_then(Value::as_str).is_some_and(|id| !id.is_empty() && !id.starts_with('#'))
}

fn find_anchors<'a>(value: &'a Value, anchors: &mut HashMap<&'a str, &'a Value>) {
    match value {
        Value::Object(map) => {
            for keyword in ["$anchor", "$dynamicAnchor"] {
                if let Some(Value::String(name)) = map.get(keyword) {
                    anchors.entry(name).or_insert(value);
                }
            }
            for keyword in ["$id", "id"] {
                if let Some(name) = map.get(keyword).and_then(Value::as_str).and_then(|id| id.strip_prefix('#')) {
                    anchors.entry(name).or_insert(value);
                }
            }
            map.values().for_each(|child| find_anchors(child, anchors));
        }
        Value::Array(list) => list.iter().for_each(|child| find_anchors(child, anchors)),
        _ => {}
    }
}

/// How a person calls what a reference points to.
fn name_of(target: &str) -> String {
    let decoded = decode(target.trim_start_matches('#'));
    match decoded.rsplit('/').next().unwrap_or_default() {
        "" => "the whole form".to_owned(),
        last => format!("`{}`", cut(&last.replace("~1", "/").replace("~0", "~"), 60)),
    }
}

/// `%20` and the like as the characters they stand for.
fn decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let code = (*byte == b'%')
            .then(|| text.get(at + 1..at + 3))
            .flatten()
            .and_then(|hex| u8::from_str_radix(hex, 16).ok());
        match code {
            Some(code) => {
                out.push(code);
                at += 3;
            }
            None => {
                out.push(*byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn what_is_pointed_to_stands_where_it_is_used() {
        let text = json!({ "type": "string", "minLength": 1 });
        let rows = [
            (json!({ "$defs": { "t": text }, "properties": { "a": { "$ref": "#/$defs/t" } } }), text.clone()),
            (
                json!({ "definitions": { "t": text }, "properties": { "a": { "$ref": "#/definitions/t" } } }),
                text.clone(),
            ),
            (
                json!({ "$defs": { "a/b c": text }, "properties": { "a": { "$ref": "#/$defs/a~1b%20c" } } }),
                text.clone(),
            ),
            (
                json!({ "$defs": { "t": { "$anchor": "here", "type": "string", "minLength": 1 } },
                    "properties": { "a": { "$ref": "#here" } } }),
                text.clone(),
            ),
            (
                json!({ "$defs": { "t": { "$dynamicAnchor": "here", "type": "string", "minLength": 1 } },
                    "properties": { "a": { "$dynamicRef": "#here" } } }),
                text.clone(),
            ),
            // A reference to a reference, and one into properties.
            (
                json!({ "$defs": { "t": text, "u": { "$ref": "#/$defs/t" } }, "properties": { "a": { "$ref": "#/$defs/u" } } }),
                text.clone(),
            ),
            (json!({ "properties": { "a": { "$ref": "#/properties/b" }, "b": text } }), text.clone()),
            // Beside it: a description wins, a restriction adds.
            (
                json!({ "$defs": { "t": { "type": "string", "description": "old" } },
                    "properties": { "a": { "$ref": "#/$defs/t", "description": "new" } } }),
                json!({ "type": "string", "description": "new" }),
            ),
            (
                json!({ "$defs": { "t": text }, "properties": { "a": { "$ref": "#/$defs/t", "minLength": 5, "maxLength": 9 } } }),
                json!({ "type": "string", "minLength": 5, "maxLength": 9 }),
            ),
            (
                json!({ "$schema": "http://json-schema.org/draft-07/schema#", "definitions": { "t": text },
                    "properties": { "a": { "$ref": "#/definitions/t", "minLength": 5, "description": "d" } } }),
                json!({ "type": "string", "minLength": 1, "description": "d" }),
            ),
            (
                json!({ "$defs": { "t": { "type": "string", "pattern": "a" } },
                    "properties": { "a": { "$ref": "#/$defs/t", "pattern": "b" } } }),
                json!({ "type": "string", "pattern": "a", "allOf": [{ "pattern": "b" }] }),
            ),
            // A part with an address of its own.
            (
                json!({ "$defs": { "o": { "$id": "https://example.org/o", "$defs": { "t": text },
                    "type": "array", "items": { "$ref": "#/$defs/t" } } }, "properties": { "a": { "$ref": "#/$defs/o" } } }),
                json!({ "type": "array", "items": { "type": "string", "minLength": 1 } }),
            ),
            (
                json!({ "$defs": { "t": true }, "properties": { "a": { "$ref": "#/$defs/t", "title": "x" } } }),
                json!({ "title": "x" }),
            ),
        ];
        for (schema, expected) in rows {
            let made = inline(&schema);
            assert_eq!(made.schema["properties"]["a"], expected, "{schema}");
            assert!(made.schema.get("$defs").is_none() && made.schema.get("definitions").is_none(), "{schema}");
            assert_eq!(made.cuts, Vec::<String>::new(), "{schema}");
        }
    }

    #[test]
    fn a_circle_is_cut_with_a_word() {
        let node = json!({ "type": "object", "$defs": { "node": { "type": "object", "properties": {
            "name": { "type": "string" },
            "left": { "$ref": "#/$defs/node", "description": "Smaller ones." },
            "children": { "type": "array", "items": { "$ref": "#/$defs/node" } } } } },
            "properties": { "tree": { "$ref": "#/$defs/node" }, "all": { "$ref": "#" }, "lost": { "$ref": "#/$defs/none" } } });
        let made = inline(&node);
        let tree = &made.schema["properties"]["tree"]["properties"];
        assert_eq!(tree["children"]["items"], json!({ "type": "object", "description": "`node` again, as above" }));
        assert_eq!(tree["left"], json!({ "type": "object", "description": "Smaller ones (`node` again, as above)." }));
        assert_eq!(made.schema["properties"]["all"]["description"], "the whole form again, as above");
        assert_eq!(made.schema["properties"]["lost"]["description"], "`none`, which is not defined");
        assert_eq!(made.cuts.len(), 3, "{:?}", made.cuts);
        // What is cut fits more, so of several exactly one can no longer be asked for.
        let fork = json!({ "properties": { "x": { "oneOf": [{ "$ref": "#" }, { "type": "string" }], "not": { "$ref": "#" } } } });
        let cut = json!({ "description": "the whole form again, as above" });
        assert_eq!(inline(&fork).schema["properties"]["x"], json!({ "anyOf": [cut, { "type": "string" }] }));
        // Two definitions that need each other.
        let pair = json!({ "$defs": { "a": { "properties": { "b": { "$ref": "#/$defs/b" } } }, "b": { "properties": { "a": { "$ref": "#/$defs/a" } } } },
            "properties": { "x": { "$ref": "#/$defs/a" } } });
        let text = inline(&pair).schema.to_string();
        assert!(text.contains("`a` again") && !text.contains("$ref"), "{text}");
    }

    #[test]
    fn a_schema_that_grows_without_end_is_cut_in_time() {
        let mut defs = Map::new();
        for i in 0..40 {
            let next = json!({ "$ref": format!("#/$defs/d{}", i + 1) });
            defs.insert(format!("d{i}"), json!({ "properties": { "a": next, "b": next } }));
        }
        defs.insert("d40".to_owned(), json!({ "type": "string" }));
        let made = inline(&json!({ "$defs": defs, "properties": { "x": { "$ref": "#/$defs/d0" } } }));
        assert!(made.cuts.iter().any(|c| c.contains("too large")), "{:?}", made.cuts);
        assert!(made.schema.to_string().len() < 4_000_000);
        let chain: Map<String, Value> = (0..500)
            .map(|i| (format!("d{i}"), json!({ "properties": { "a": { "$ref": format!("#/$defs/d{}", i + 1) } } })))
            .collect();
        let made = inline(&json!({ "$defs": chain, "properties": { "x": { "$ref": "#/$defs/d0" } } }));
        assert!(made.cuts.iter().any(|c| c.contains("too deep")), "{:?}", made.cuts);
    }

    #[test]
    fn keywords_of_earlier_drafts_become_those_of_today() {
        let rows = [
            (json!({ "minimum": 1, "exclusiveMinimum": true }), json!({ "exclusiveMinimum": 1 })),
            (json!({ "maximum": 1, "exclusiveMaximum": false }), json!({ "maximum": 1 })),
            (json!({ "items": [{ "type": "string" }] }), json!({ "prefixItems": [{ "type": "string" }] })),
            (json!({ "items": [{}], "additionalItems": false }), json!({ "prefixItems": [{}], "items": false })),
            (json!({ "items": {}, "additionalItems": false }), json!({ "items": {} })),
            (
                json!({ "dependencies": { "a": ["b"], "c": { "required": ["d"] } } }),
                json!({ "dependentRequired": { "a": ["b"] }, "dependentSchemas": { "c": { "required": ["d"] } } }),
            ),
            (json!({ "$comment": "x", "$id": "https://example.org", "type": "object" }), json!({ "type": "object" })),
        ];
        for (old, new) in rows {
            assert_eq!(inline(&old).schema, new, "{old}");
        }
    }
}
