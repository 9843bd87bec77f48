//! Arguments of a call: parsed, coerced, given defaults, validated. It knows no script and runs nothing.

use super::plan::{Misfit, Plan, push_segment};
use super::spec::Spec;
use super::{reject, schema};
use crate::base::error::{Error, Kind};
use crate::base::json;
use jsonschema::Validator;
use serde_json::{Map, Value};

/// Most bytes of the arguments' JSON, and of one text in them.
pub const MAX_TEXT: usize = 8 << 20;
/// Most items of one list.
pub const MAX_LIST: usize = 1_000_000;
/// Most entries of one object.
pub const MAX_MAP: usize = 100_000;
/// Deepest nesting.
const MAX_DEPTH: usize = 128;

/// What a tool's parameters compile to, on its first call.
pub(super) struct Compiled {
    validator: Validator,
    plan: Plan,
}

/// Reads the arguments of a call as a model or a program wrote them. Nothing, blank and `null` are no arguments.
///
/// # Errors
/// `too_large` beyond [`MAX_TEXT`]; `invalid_arguments` for text that is no JSON or has a key twice (with offset and excerpt; retryable
/// where it is cut off) and for JSON that is no object.
pub fn parse(text: &str) -> Result<Map<String, Value>, Error> {
    if text.len() > MAX_TEXT {
        return Err(too_large(format!("the arguments are {} bytes of JSON; the most is {MAX_TEXT}", text.len())));
    }
    if text.trim().is_empty() {
        return Ok(Map::new());
    }
    let value = json::parse_untrusted(text).map_err(|e| {
        let what = if e.truncated { "arguments are truncated" } else { "arguments are not valid JSON" };
        let error = Error::invalid(format!("{what}: {e}")).with_retryable(e.truncated);
        error.hint(if e.truncated { "send the whole call again" } else { "send the arguments as one JSON object" })
    })?;
    match value {
        Value::Object(map) => Ok(map),
        Value::Null => Ok(Map::new()),
        Value::String(inner) if inner.trim_start().starts_with('{') => {
            Err(Error::invalid("arguments must be a JSON object, got a text that holds one")
                .hint("send the object itself, not the object as text"))
        }
        other => Err(Error::invalid(format!("arguments must be a JSON object, got {}", schema::describe(&other)))
            .hint("send an object that names each argument, such as {\"city\": \"Oslo\"}, or {} for none")),
    }
}

fn too_large(message: String) -> Error {
    Error::new(Kind::TooLarge, message).hint("pass less at once, or a handle to the rest")
}

/// Makes arguments fit a tool: coerces by the declared types, fills defaults, then validates.
///
/// # Errors
/// `too_large` for texts, lists and objects beyond the limits; `invalid_arguments` with path, expected and got of every
/// argument that does not fit, and an example.
pub fn prepare(spec: &Spec, mut arguments: Map<String, Value>) -> Result<Map<String, Value>, Error> {
    let compiled = spec.compiled()?;
    let mut misfits = Vec::new();
    compiled.plan.run(&mut arguments, &mut misfits);
    let arguments = Value::Object(arguments);
    let mut scan = Scan { pointer: String::new(), misfits };
    scan.value(&arguments, 0).map_err(|e| e.context(format!("arguments of `{}`", spec.name)))?;
    if scan.misfits.is_empty() && compiled.validator.is_valid(&arguments) {
        return match arguments {
            Value::Object(map) => Ok(map),
            _ => Ok(Map::new()),
        };
    }
    Err(reject::error(spec, &compiled.validator, &arguments, scan.misfits))
}

impl Spec {
    /// The compiled parameters, made on first use and kept.
    pub(super) fn compiled(&self) -> Result<&Compiled, Error> {
        let made = self.compiled.get_or_init(|| {
            let validator = schema::compile(&self.parameters)?;
            Ok(Box::new(Compiled { validator, plan: Plan::new(&self.parameters) }))
        });
        match made {
            Ok(compiled) => Ok(compiled),
            Err(reason) => {
                Err(Error::internal(format!("the parameters of `{}` cannot be checked: {reason}", self.name)))
            }
        }
    }
}

/// Looks for what no script can take: sizes beyond the limits, whole numbers beyond 64 bits.
struct Scan {
    pointer: String,
    misfits: Vec<Misfit>,
}

impl Scan {
    fn value(&mut self, value: &Value, depth: usize) -> Result<(), Error> {
        match value {
            Value::Null | Value::Bool(_) => {}
            Value::Number(number) => {
                if !number.is_i64() && number.is_u64() && !self.misfits.iter().any(|m| m.pointer == self.pointer) {
                    self.misfits.push(Misfit {
                        pointer: self.pointer.clone(),
                        expected: "a whole number up to 9223372036854775807".to_owned(),
                        got: schema::describe(value),
                    });
                }
            }
            Value::String(text) => {
                if text.len() > MAX_TEXT {
                    return Err(self.too_large(&format!("a text of {} bytes; the most is {MAX_TEXT}", text.len())));
                }
            }
            Value::Array(list) => {
                if list.len() > MAX_LIST {
                    return Err(self.too_large(&format!("a list of {} items; the most is {MAX_LIST}", list.len())));
                }
                self.deeper(depth)?;
                for (index, item) in list.iter().enumerate() {
                    // Paths cost more than the scan; only what can hold a fault gets one.
                    if plain(item) {
                        continue;
                    }
                    let start = self.pointer.len();
                    push_segment(&mut self.pointer, &index.to_string());
                    self.value(item, depth + 1)?;
                    self.pointer.truncate(start);
                }
            }
            Value::Object(map) => {
                if map.len() > MAX_MAP {
                    return Err(self.too_large(&format!("an object of {} entries; the most is {MAX_MAP}", map.len())));
                }
                self.deeper(depth)?;
                for (key, item) in map {
                    if plain(item) {
                        continue;
                    }
                    let start = self.pointer.len();
                    push_segment(&mut self.pointer, key);
                    self.value(item, depth + 1)?;
                    self.pointer.truncate(start);
                }
            }
        }
        Ok(())
    }

    fn deeper(&self, depth: usize) -> Result<(), Error> {
        if depth >= MAX_DEPTH {
            return Err(too_large(format!("nested more than {MAX_DEPTH} levels deep")));
        }
        Ok(())
    }

    fn too_large(&self, what: &str) -> Error {
        let place = schema::dotted("", &self.pointer);
        too_large(if place.is_empty() { what.to_owned() } else { format!("{place} is {what}") })
    }
}

/// Whether a value can break no limit.
fn plain(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(_) => true,
        Value::Number(number) => number.is_i64() || !number.is_u64(),
        Value::String(text) => text.len() <= MAX_TEXT,
        Value::Array(_) | Value::Object(_) => false,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::tool::spec::Example;
    use serde_json::json;

    fn tool(parameters: Value) -> Spec {
        Spec::new("roll_dice", "Rolls.", parameters)
    }

    fn map(value: &Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    fn refusal(spec: &Spec, given: &Value) -> String {
        prepare(spec, map(given)).unwrap_err().message().to_owned()
    }

    #[test]
    fn row_23_nothing_blank_and_null_are_no_arguments() {
        for text in ["", " ", "\n\t ", "null", " null ", "{}"] {
            assert_eq!(parse(text).unwrap(), Map::new(), "{text:?}");
        }
    }

    #[test]
    fn row_23_what_is_no_object_is_refused_and_says_so() {
        let rows = [
            ("\"foo\"", "got the text \"foo\""),
            ("5", "got the number 5"),
            ("-1.5", "got the number -1.5"),
            ("true", "got true"),
            ("[]", "got an empty list"),
            ("[1,2]", "got a list of 2"),
            ("\"{\\\"a\\\": 1}\"", "a text that holds one"),
        ];
        for (text, word) in rows {
            let error = parse(text).unwrap_err();
            assert_eq!(error.kind(), Kind::InvalidArguments, "{text}");
            assert!(error.message().contains("JSON object") && error.message().contains(word), "{text}: {error}");
            assert!(!error.retryable());
        }
    }

    #[test]
    fn row_23_bad_json_is_told_with_offset_and_excerpt_and_only_a_cut_one_may_be_retried() {
        let rows = [
            ("{", true, "byte 1"),
            ("{\"city\": \"Os", true, "truncated"),
            ("{\"city\": \"Oslo\"", true, "truncated"),
            ("{\"a\": 1,}", false, "near `{\"a\": 1,}`"),
            ("{'a': 1}", false, "byte 1"),
            ("{\"a\": 12345678901234567890}", false, "64 bits"),
            ("{\"a\": \"\\ud800\"}", false, "surrogate"),
            ("{\"a\": \"\0\"}", false, "NUL"),
            ("{\"a\": NaN}", false, "expected a value"),
            ("nonsense", false, "byte 0"),
        ];
        for (text, retryable, word) in rows {
            let error = parse(text).unwrap_err();
            assert_eq!((error.kind(), error.retryable()), (Kind::InvalidArguments, retryable), "{text}: {error}");
            assert!(error.message().contains(word), "{text}: {error}");
        }
    }

    #[test]
    fn text_of_every_kind_arrives_as_it_was_sent() {
        for text in ["×→中文", "e\u{301}", "\u{202e}שלום", "👩‍👩‍👧", "\u{0}", "\u{7f}", "\u{10ffff}"]
        {
            let sent = json!({ "t": text });
            let spec = tool(json!({ "type": "object", "properties": { "t": { "type": "string" } } }));
            assert_eq!(Value::Object(prepare(&spec, parse(&sent.to_string()).unwrap()).unwrap()), sent);
        }
    }

    #[test]
    fn integers_are_exact_to_the_last_bit_or_refused() {
        let spec = tool(json!({ "type": "object", "properties": { "n": { "type": "integer" } } }));
        for n in [i64::MAX, i64::MIN, 9_007_199_254_740_993, 0] {
            let map = parse(&format!("{{\"n\":{n}}}")).unwrap();
            assert_eq!(prepare(&spec, map).unwrap()["n"].as_i64(), Some(n));
        }
        for n in [json!(u64::MAX), json!(1e19), json!("9223372036854775808")] {
            assert!(refusal(&spec, &json!({ "n": n })).contains("within 64 bits"), "{n}");
        }
        let any = tool(json!({ "type": "object" }));
        let message = refusal(&any, &json!({ "deep": [{ "n": u64::MAX }] }));
        assert!(message.contains("deep[0].n: expected a whole number up to 9223372036854775807"), "{message}");
    }

    #[test]
    fn sizes_beyond_the_limits_are_too_large() {
        let spec = tool(json!({ "type": "object" }));
        let long = "x".repeat(MAX_TEXT + 1);
        let wide: Map<String, Value> = (0..=MAX_MAP).map(|i| (i.to_string(), Value::Null)).collect();
        let rows = [json!({ "a": [long] }), json!({ "a": vec![0; MAX_LIST + 1] }), json!({ "a": wide })];
        for given in rows {
            assert_eq!(prepare(&spec, map(&given)).unwrap_err().kind(), Kind::TooLarge);
        }
        assert_eq!(parse(&" ".repeat(MAX_TEXT + 1)).unwrap_err().kind(), Kind::TooLarge);
        assert!(prepare(&spec, map(&json!({ "a": vec![0; MAX_LIST] }))).is_ok());
        let mut deep = json!(1);
        for _ in 0..200 {
            deep = json!([deep]);
        }
        assert_eq!(prepare(&spec, map(&json!({ "a": deep }))).unwrap_err().kind(), Kind::TooLarge);
    }

    #[test]
    fn coercion_and_defaults_come_before_validation() {
        let spec = tool(
            json!({ "type": "object", "additionalProperties": false, "required": ["sides"], "properties": {
            "sides": { "type": "integer", "minimum": 2, "default": 6 }, "count": { "type": "integer", "default": 1 } } }),
        );
        let rows = [
            (json!({}), json!({ "sides": 6, "count": 1 })),
            (json!({ "sides": "20" }), json!({ "sides": 20, "count": 1 })),
            (json!({ "sides": 4.0, "count": null }), json!({ "sides": 4, "count": 1 })),
        ];
        for (given, expected) in rows {
            assert_eq!(Value::Object(prepare(&spec, map(&given)).unwrap()), expected, "{given}");
        }
    }

    #[test]
    fn unknown_names_pass_where_the_author_allows_them() {
        let open = tool(json!({ "type": "object", "properties": {} }));
        assert!(prepare(&open, map(&json!({ "x": 1 }))).is_ok());
        let closed = tool(json!({ "type": "object", "properties": {}, "additionalProperties": false }));
        assert!(refusal(&closed, &json!({ "x": 1 })).contains("x: expected no arguments, got an unknown name"));
    }

    #[test]
    fn every_bad_argument_is_told_with_path_expected_got_and_an_example() {
        let spec = tool(
            json!({ "type": "object", "additionalProperties": false, "required": ["sides", "show", "who"], "properties": {
            "sides": { "type": "integer", "minimum": 2, "maximum": 1000 },
            "show": { "enum": ["sum", "list"] },
            "who": { "type": "string", "minLength": 1, "maxLength": 20 },
            "on": { "type": "boolean" },
            "tags": { "type": "array", "items": { "type": "string" } },
            "at": { "type": "object", "required": ["lat"], "properties": { "lat": { "type": "number", "maximum": 90 } } },
        } }),
        );
        let message = refusal(
            &spec,
            &json!({ "sides": "many", "show": "both", "on": "maybe", "tags": ["a", 1], "at": { "lat": 91 }, "colour": 1, "hwo": "x" }),
        );
        let lines: Vec<&str> = message.lines().collect();
        assert_eq!(lines[0], "8 arguments of `roll_dice` do not fit");
        for line in [
            "- sides: expected an integer, got the text \"many\"",
            "- show: expected one of \"sum\", \"list\", got \"both\"",
            "- who: expected a text of 1 to 20 characters, got nothing; it is required",
            "- on: expected true or false, got \"maybe\"",
            "- tags[1]: expected a text, got 1",
            "- at.lat: expected a number at most 90, got 91",
            "- hwo: expected `who`, got an unknown name",
        ] {
            assert!(lines.contains(&line), "{line}\n{message}");
        }
        let example = lines.last().unwrap().strip_prefix("example: ").unwrap();
        assert!(prepare(&spec, parse(example).unwrap()).is_ok(), "{example}");
    }

    #[test]
    fn the_expected_form_reads_like_a_sentence() {
        let rows = [
            (json!({ "type": "integer", "minimum": 2, "maximum": 1000 }), json!(1), "an integer from 2 to 1000"),
            (json!({ "type": "integer", "minimum": 2 }), json!(1), "an integer at least 2"),
            (json!({ "type": "number", "exclusiveMinimum": 0 }), json!(0), "a number above 0"),
            (json!({ "type": "integer", "multipleOf": 5 }), json!(1), "an integer that is a multiple of 5"),
            (json!({ "type": "string", "minLength": 3 }), json!("a"), "a text of at least 3 characters"),
            (json!({ "type": "string", "minLength": 2, "maxLength": 2 }), json!("a"), "a text of exactly 2 characters"),
            (json!({ "type": "string", "pattern": "^a+$" }), json!("b"), "a text that matches /^a+$/"),
            (json!({ "type": ["string", "null"] }), json!(1), "a text or null"),
            (
                json!({ "type": "array", "items": { "type": "integer" }, "minItems": 2 }),
                json!([1]),
                "a list, each item an integer, with at least 2 items",
            ),
            (json!({ "const": 4 }), json!(5), "4"),
            (
                json!({ "anyOf": [{ "type": "integer" }, { "type": "boolean" }] }),
                json!("x"),
                "an integer, or true or false",
            ),
            (json!({ "$ref": "#/$defs/small" }), json!(9), "an integer at most 5"),
            (json!({ "type": "object", "required": ["a"] }), json!(9), "an object with `a`"),
            (json!(false), json!(1), "nothing here"),
        ];
        for (schema, given, words) in rows {
            let spec = tool(json!({ "type": "object", "properties": { "x": schema },
                "$defs": { "small": { "type": "integer", "maximum": 5 } } }));
            let message = refusal(&spec, &json!({ "x": given }));
            assert!(message.contains(&format!("- x: expected {words}, got ")), "{schema}: {message}");
        }
    }

    #[test]
    fn a_rejection_stays_short_however_long_the_value() {
        let spec = tool(
            json!({ "type": "object", "additionalProperties": false, "properties": { "n": { "type": "integer" } } }),
        );
        let mut given = map(&json!({ "n": ["y".repeat(100_000)] }));
        for i in 0..100 {
            given.insert(format!("extra{i}"), json!(1));
        }
        let message = prepare(&spec, given).unwrap_err().message().to_owned();
        assert!(message.len() < 2_000, "{}", message.len());
        assert!(message.contains("- and 89 more"), "{message}");
    }

    #[test]
    fn the_authors_example_is_shown_where_it_fits() {
        let mut spec = tool(
            json!({ "type": "object", "required": ["x"], "properties": { "x": { "type": "string", "pattern": "^[A-Z]{3}$" } } }),
        );
        assert!(!refusal(&spec, &json!({})).contains("example:"));
        spec.examples = vec![Example { arguments: json!({ "x": "OSL" }), expect: String::new(), line: 1 }];
        assert!(refusal(&spec, &json!({})).ends_with("example: {\"x\":\"OSL\"}"));
    }

    #[test]
    fn a_pattern_that_explodes_ends_in_a_refusal_not_in_a_hang() {
        let spec = tool(
            json!({ "type": "object", "properties": { "x": { "type": "string", "pattern": "^(?=(a+)+$)(a+)+b$" } } }),
        );
        let _ = prepare(&spec, map(&json!({ "x": format!("{}!", "a".repeat(5_000)) })));
    }
}
