//! What a schema asks of arguments before they are validated: text to numbers, nulls to absence, defaults filled in.
//! A plan is computed once per tool; running it touches only what it changes.

use super::schema::describe;
use serde_json::{Map, Number, Value};

/// Whole numbers of a float are exact below this, 2^53.
const EXACT: f64 = 9_007_199_254_740_992.0;
/// Deepest level of a schema that a plan follows; recursive data goes deeper unplanned.
const MAX_DEPTH: usize = 16;

/// An argument that could not be brought to its declared type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Misfit {
    /// JSON pointer into the arguments.
    pub(super) pointer: String,
    /// What the schema wants, in words.
    pub(super) expected: String,
    /// What was given, in words.
    pub(super) got: String,
}

/// What to do with the properties of one object schema.
#[derive(Debug, Default)]
pub(super) struct Plan {
    properties: Box<[Property]>,
}

#[derive(Debug)]
struct Property {
    name: Box<str>,
    rule: Rule,
    default: Option<Value>,
    /// A null means "not given": the property is optional and its type knows no null.
    null_is_absent: bool,
}

/// What one value is brought to.
#[derive(Debug)]
enum Rule {
    Keep,
    Integer { big: bool },
    Number,
    Boolean,
    Object(Plan),
    List(Box<Rule>),
}

impl Plan {
    /// The plan of an object schema.
    pub(super) fn new(schema: &Value) -> Plan {
        Plan::at(schema, 0)
    }

    fn at(schema: &Value, depth: usize) -> Plan {
        let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return Plan::default() };
        let required = schema.get("required").and_then(Value::as_array);
        let properties = properties
            .iter()
            .filter_map(|(name, property)| {
                let required = required.is_some_and(|list| list.iter().any(|n| n == name.as_str()));
                let property = Property {
                    name: name.as_str().into(),
                    rule: Rule::new(property, depth),
                    default: property.get("default").cloned(),
                    null_is_absent: !required && refuses_null(property),
                };
                let idle =
                    matches!(property.rule, Rule::Keep) && property.default.is_none() && !property.null_is_absent;
                (!idle).then_some(property)
            })
            .collect();
        Plan { properties }
    }

    fn is_idle(&self) -> bool {
        self.properties.is_empty()
    }

    /// Coerces, drops nulls that mean nothing, fills defaults. What does not fit stays as it was and is told in `misfits`.
    pub(super) fn run(&self, map: &mut Map<String, Value>, misfits: &mut Vec<Misfit>) {
        self.run_at(map, &mut String::new(), misfits);
    }

    fn run_at(&self, map: &mut Map<String, Value>, pointer: &mut String, misfits: &mut Vec<Misfit>) {
        for property in &self.properties {
            match map.get_mut(&*property.name) {
                Some(Value::Null) if property.null_is_absent => {
                    map.shift_remove(&*property.name);
                }
                Some(value) => {
                    if !property.rule.settled(value) {
                        let start = pointer.len();
                        push_segment(pointer, &property.name);
                        property.rule.run(value, pointer, misfits);
                        pointer.truncate(start);
                    }
                    continue;
                }
                None => {}
            }
            if let Some(default) = &property.default {
                map.insert(property.name.to_string(), default.clone());
            }
        }
    }
}

impl Rule {
    fn new(schema: &Value, depth: usize) -> Rule {
        if depth >= MAX_DEPTH {
            return Rule::Keep;
        }
        match single_type(schema) {
            Some("integer") => Rule::Integer { big: schema.get("big") == Some(&Value::Bool(true)) },
            Some("number") => Rule::Number,
            Some("boolean") => Rule::Boolean,
            Some("object") => {
                let plan = Plan::at(schema, depth + 1);
                if plan.is_idle() { Rule::Keep } else { Rule::Object(plan) }
            }
            Some("array") => match schema.get("items").map(|items| Rule::new(items, depth + 1)) {
                None | Some(Rule::Keep) => Rule::Keep,
                Some(rule) => Rule::List(Box::new(rule)),
            },
            _ => Rule::Keep,
        }
    }

    /// Whether `value` needs nothing: the usual case, told without building a path.
    fn settled(&self, value: &Value) -> bool {
        match (self, value) {
            (Rule::Keep, _) | (Rule::Boolean, Value::Bool(_)) => true,
            (Rule::Integer { .. }, Value::Number(n)) => n.is_i64(),
            (Rule::Number, Value::Number(n)) => n.is_i64() || n.is_f64(),
            _ => false,
        }
    }

    fn run(&self, value: &mut Value, pointer: &mut String, misfits: &mut Vec<Misfit>) {
        let made = match self {
            Rule::Keep => return,
            Rule::Integer { big } => integer(value, *big),
            Rule::Number => number(value),
            Rule::Boolean => Ok(boolean(value)),
            Rule::Object(plan) => {
                if let Value::Object(map) = value {
                    plan.run_at(map, pointer, misfits);
                }
                return;
            }
            Rule::List(rule) => {
                if let (Value::String(text), Rule::Integer { .. } | Rule::Number) = (&*value, &**rule) {
                    match split(text, rule) {
                        Ok(list) => *value = list,
                        Err(expected) => {
                            misfits.push(Misfit { pointer: pointer.clone(), expected, got: describe(value) })
                        }
                    }
                } else if let Value::Array(list) = value {
                    for (index, item) in list.iter_mut().enumerate() {
                        if !rule.settled(item) {
                            let start = pointer.len();
                            push_segment(pointer, &index.to_string());
                            rule.run(item, pointer, misfits);
                            pointer.truncate(start);
                        }
                    }
                }
                return;
            }
        };
        match made {
            Ok(None) => {}
            Ok(Some(better)) => *value = better,
            Err(expected) => misfits.push(Misfit { pointer: pointer.clone(), expected, got: describe(value) }),
        }
    }
}

/// `1, 2,3` as a list of numbers; the empty text as an empty list.
fn split(text: &str, rule: &Rule) -> Result<Value, String> {
    if text.trim().is_empty() {
        return Ok(Value::Array(Vec::new()));
    }
    text.split(',')
        .map(|part| {
            let part = Value::String(part.trim().to_owned());
            let made = match rule {
                Rule::Integer { big } => integer(&part, *big),
                _ => number(&part),
            };
            match made {
                Ok(Some(value)) => Ok(value),
                _ => Err(match rule {
                    Rule::Integer { .. } => "a list of integers, such as [1, 2, 3]".to_owned(),
                    _ => "a list of numbers, such as [1, 2.5]".to_owned(),
                }),
            }
        })
        .collect::<Result<Vec<_>, _>>()
        .map(Value::Array)
}

/// `Ok(None)` leaves the value to the validator; an error says what was expected.
fn integer(value: &Value, big: bool) -> Result<Option<Value>, String> {
    match value {
        Value::Number(n) if n.is_i64() => Ok(None),
        Value::Number(n) => match n.as_f64().filter(|f| n.is_f64() && f.abs() < 9.3e18) {
            // A fraction is the validator's to refuse, with the range in its words.
            Some(float) if float.fract() != 0.0 => Ok(None),
            Some(float) if float.abs() < EXACT => Ok(Some(whole(float))),
            Some(_) => Err("an integer; from 2^53 on write it without a fraction or exponent".to_owned()),
            None => Err("an integer within 64 bits".to_owned()),
        },
        Value::String(text) => {
            let text = text.trim();
            if let Ok(exact) = text.parse::<i64>() {
                if big || exact.unsigned_abs() <= 1 << 53 {
                    return Ok(Some(exact.into()));
                }
                return Err("an integer; from 2^53 on write it as a number, not as text".to_owned());
            }
            match text.parse::<f64>() {
                Ok(float) if float.fract() == 0.0 && float.abs() < EXACT => Ok(Some(whole(float))),
                Ok(float) if float.is_finite() && float.fract() == 0.0 => Err("an integer within 64 bits".to_owned()),
                _ => Err("an integer".to_owned()),
            }
        }
        _ => Ok(None),
    }
}

#[expect(clippy::cast_possible_truncation, reason = "callers check that it is whole and below 2^53")]
fn whole(float: f64) -> Value {
    (float as i64).into()
}

fn number(value: &Value) -> Result<Option<Value>, String> {
    match value {
        Value::Number(n) if n.is_u64() && !n.is_i64() => {
            Err("a number; whole numbers go to 9223372036854775807".to_owned())
        }
        Value::String(text) => match text.trim().parse::<f64>().ok().and_then(Number::from_f64) {
            Some(number) => Ok(Some(Value::Number(number))),
            None => Err("a number".to_owned()),
        },
        _ => Ok(None),
    }
}

fn boolean(value: &Value) -> Option<Value> {
    let Value::String(word) = value else { return None };
    let word = word.trim();
    if ["true", "1", "yes"].iter().any(|yes| word.eq_ignore_ascii_case(yes)) {
        Some(Value::Bool(true))
    } else if ["false", "0", "no"].iter().any(|no| word.eq_ignore_ascii_case(no)) {
        Some(Value::Bool(false))
    } else {
        None
    }
}

/// The one type beside null that a schema declares; `None` where text would be fine too, or nothing is declared.
fn single_type(schema: &Value) -> Option<&str> {
    match schema.get("type")? {
        Value::String(word) => Some(word),
        Value::Array(words) => {
            let mut others = words.iter().filter_map(Value::as_str).filter(|w| *w != "null");
            let first = others.next()?;
            others.next().is_none().then_some(first)
        }
        _ => None,
    }
}

fn refuses_null(schema: &Value) -> bool {
    let typed = match schema.get("type") {
        Some(Value::String(word)) => word != "null",
        Some(Value::Array(words)) => !words.iter().any(|w| w == "null"),
        _ => false,
    };
    typed || schema.get("enum").and_then(Value::as_array).is_some_and(|words| !words.iter().any(Value::is_null))
}

/// Adds `/segment` to a JSON pointer.
pub(super) fn push_segment(pointer: &mut String, segment: &str) {
    pointer.push('/');
    if segment.contains(['~', '/']) {
        pointer.push_str(&segment.replace('~', "~0").replace('/', "~1"));
    } else {
        pointer.push_str(segment);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use serde_json::json;

    /// The value after the plan of a property with this schema, or the misfit's `expected`.
    fn coerce(schema: &Value, value: &Value) -> Result<Value, String> {
        let plan = Plan::new(&json!({ "type": "object", "properties": { "x": schema }, "required": ["x"] }));
        let mut map = Map::new();
        map.insert("x".to_owned(), value.clone());
        let mut misfits = Vec::new();
        plan.run(&mut map, &mut misfits);
        match misfits.pop() {
            Some(misfit) => Err(misfit.expected),
            None => Ok(map.remove("x").unwrap_or_default()),
        }
    }

    #[test]
    fn row_13_values_move_toward_the_declared_type_and_never_away_from_text() {
        let integer = json!({ "type": "integer" });
        let big = json!({ "type": "integer", "big": true });
        let number = json!({ "type": "number" });
        let boolean = json!({ "type": "boolean" });
        let text = json!({ "type": "string" });
        let integers = json!({ "type": "array", "items": { "type": "integer" } });
        let numbers = json!({ "type": "array", "items": { "type": "number" } });
        let texts = json!({ "type": "array", "items": { "type": "string" } });
        let rows: Vec<(&Value, Value, Option<Value>)> = vec![
            (&integer, json!("2"), Some(json!(2))),
            (&integer, json!("2.0"), Some(json!(2))),
            (&integer, json!(" -7 "), Some(json!(-7))),
            (&integer, json!("1e3"), Some(json!(1000))),
            (&integer, json!("2.5"), None),
            (&integer, json!("two"), None),
            (&integer, json!(""), None),
            (&integer, json!("inf"), None),
            (&integer, json!("nan"), None),
            (&integer, json!(2), Some(json!(2))),
            (&integer, json!(2.0), Some(json!(2))),
            (&integer, json!(-0.0), Some(json!(0))),
            (&integer, json!(2.5), Some(json!(2.5))),
            (&integer, json!(true), Some(json!(true))),
            (&integer, json!([1]), Some(json!([1]))),
            (&integer, json!(i64::MAX), Some(json!(i64::MAX))),
            (&integer, json!(i64::MIN), Some(json!(i64::MIN))),
            (&integer, json!(u64::MAX), None),
            (&integer, json!(9_223_372_036_854_775_808_u64), None),
            (&integer, json!(1e19), None),
            (&integer, json!(-1e19), None),
            (&integer, json!(9_007_199_254_740_991.0), Some(json!(9_007_199_254_740_991_i64))),
            (&integer, json!(9_007_199_254_740_992.0), None),
            (&integer, json!("9007199254740992"), Some(json!(9_007_199_254_740_992_i64))),
            (&integer, json!("9007199254740993"), None),
            (&integer, json!("99999999999999999999"), None),
            (&big, json!("9007199254740993"), Some(json!(9_007_199_254_740_993_i64))),
            (&big, json!("9223372036854775807"), Some(json!(i64::MAX))),
            (&big, json!("-9223372036854775808"), Some(json!(i64::MIN))),
            (&big, json!("9223372036854775808"), None),
            (&number, json!("2"), Some(json!(2.0))),
            (&number, json!(" 2.5"), Some(json!(2.5))),
            (&number, json!("nan"), None),
            (&number, json!("inf"), None),
            (&number, json!("x"), None),
            (&number, json!(2), Some(json!(2))),
            (&number, json!(u64::MAX), None),
            (&number, json!(1e300), Some(json!(1e300))),
            (&boolean, json!("true"), Some(json!(true))),
            (&boolean, json!(" YES "), Some(json!(true))),
            (&boolean, json!("1"), Some(json!(true))),
            (&boolean, json!("False"), Some(json!(false))),
            (&boolean, json!("no"), Some(json!(false))),
            (&boolean, json!("0"), Some(json!(false))),
            (&boolean, json!("maybe"), Some(json!("maybe"))),
            (&boolean, json!(1), Some(json!(1))),
            (&integers, json!("1,2,3"), Some(json!([1, 2, 3]))),
            (&integers, json!(" 1 , 2.0 "), Some(json!([1, 2]))),
            (&integers, json!(""), Some(json!([]))),
            (&integers, json!("1,,2"), None),
            (&integers, json!("1,two"), None),
            (&integers, json!(["1", 2.0, 3]), Some(json!([1, 2, 3]))),
            (&integers, json!(["x"]), None),
            (&numbers, json!("1,2.5"), Some(json!([1.0, 2.5]))),
            (&texts, json!("a,b"), Some(json!("a,b"))),
            (&texts, json!(["1"]), Some(json!(["1"]))),
            (&text, json!("2"), Some(json!("2"))),
            (&text, json!(2), Some(json!(2))),
            (&text, json!("true"), Some(json!("true"))),
        ];
        for (schema, given, expected) in rows {
            let made = coerce(schema, &given);
            assert_eq!(made.clone().ok(), expected, "{schema} {given} {made:?}");
            if let (Ok(Value::Number(a)), Some(Value::Number(b))) = (&made, &expected) {
                assert_eq!((a.is_i64(), a.is_f64()), (b.is_i64(), b.is_f64()), "{schema} {given}");
            }
        }
    }

    #[test]
    fn a_type_with_null_coerces_like_the_type_alone_and_one_with_text_does_not() {
        let rows = [
            (json!({ "type": ["integer", "null"] }), json!("2"), json!(2)),
            (json!({ "type": ["integer", "null"] }), json!(null), json!(null)),
            (json!({ "type": ["integer", "string"] }), json!("2"), json!("2")),
            (json!({ "anyOf": [{ "type": "integer" }] }), json!("2"), json!("2")),
            (json!({}), json!("2"), json!("2")),
            (json!(true), json!("2"), json!("2")),
        ];
        for (schema, given, expected) in rows {
            assert_eq!(coerce(&schema, &given), Ok(expected), "{schema}");
        }
    }

    #[test]
    fn defaults_are_filled_at_the_top_and_inside_objects_that_were_given() {
        let plan = Plan::new(&json!({ "type": "object", "properties": {
            "a": { "type": "integer", "default": 6 },
            "o": { "type": "object", "properties": { "b": { "type": "string", "default": "x" }, "n": { "type": "integer" } } },
            "l": { "type": "array", "items": { "type": "object", "properties": { "c": { "default": true } } } },
        } }));
        let rows = [
            (json!({}), json!({ "a": 6 })),
            (json!({ "a": 7 }), json!({ "a": 7 })),
            (json!({ "a": null }), json!({ "a": 6 })),
            (json!({ "o": {} }), json!({ "o": { "b": "x" }, "a": 6 })),
            (json!({ "o": { "n": "4" }, "a": 1 }), json!({ "o": { "n": 4, "b": "x" }, "a": 1 })),
            (json!({ "l": [{}, { "c": false }], "a": 1 }), json!({ "l": [{ "c": true }, { "c": false }], "a": 1 })),
            (json!({ "o": null, "a": 1 }), json!({ "a": 1 })),
        ];
        for (given, expected) in rows {
            let mut map = given.as_object().unwrap().clone();
            let mut misfits = Vec::new();
            plan.run(&mut map, &mut misfits);
            assert_eq!((Value::Object(map), misfits), (expected, vec![]), "{given}");
        }
    }

    #[test]
    fn a_null_stays_where_it_is_required_or_allowed() {
        let plan = Plan::new(&json!({ "type": "object", "required": ["r"], "properties": {
            "r": { "type": "integer" }, "n": { "type": ["integer", "null"] }, "any": {},
            "e": { "enum": ["a", null] }, "f": { "enum": ["a"] },
        } }));
        let mut map = json!({ "r": null, "n": null, "any": null, "e": null, "f": null }).as_object().unwrap().clone();
        plan.run(&mut map, &mut Vec::new());
        assert_eq!(Value::Object(map), json!({ "r": null, "n": null, "any": null, "e": null }));
    }

    #[test]
    fn a_misfit_names_its_place() {
        let plan = Plan::new(&json!({ "type": "object", "properties": {
            "o": { "type": "object", "properties": { "a/b": { "type": "array", "items": { "type": "integer" } } } } } }));
        let mut map = json!({ "o": { "a/b": [1, "x"] } }).as_object().unwrap().clone();
        let mut misfits = Vec::new();
        plan.run(&mut map, &mut misfits);
        assert_eq!(misfits[0].pointer, "/o/a~1b/1");
        assert_eq!(misfits[0].got, "the text \"x\"");
    }
}
