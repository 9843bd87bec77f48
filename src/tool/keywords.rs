//! Which keywords of JSON Schema hold schemas, and how: one schema, a list, or schemas by name. It walks nothing itself.

use serde_json::Value;

/// What stands behind a keyword.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Holds {
    /// One schema; a boolean may stand for it.
    One,
    /// A list of schemas.
    List,
    /// Schemas by names that are no keywords.
    Named,
    /// No schema: a word, a number, data such as `default` or `enum`.
    Data,
}

/// What a keyword with this value holds. Some mean two things, by their value: `items` is a schema, and was a list of them.
pub(super) fn holds(keyword: &str, value: &Value) -> Holds {
    match (keyword, value) {
        (
            "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas" | "dependencies",
            Value::Object(_),
        ) => Holds::Named,
        ("allOf" | "anyOf" | "oneOf" | "prefixItems" | "items", Value::Array(_)) => Holds::List,
        (
            "items"
            | "additionalItems"
            | "additionalProperties"
            | "propertyNames"
            | "contains"
            | "not"
            | "if"
            | "then"
            | "else"
            | "unevaluatedItems"
            | "unevaluatedProperties"
            | "contentSchema",
            Value::Object(_) | Value::Bool(_),
        ) => Holds::One,
        _ => Holds::Data,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_keyword_holds_schemas_by_its_name_and_its_value() {
        let rows = [
            ("properties", json!({}), Holds::Named),
            ("$defs", json!({}), Holds::Named),
            ("dependencies", json!({}), Holds::Named),
            ("items", json!({}), Holds::One),
            ("items", json!(true), Holds::One),
            ("items", json!([]), Holds::List),
            ("anyOf", json!([]), Holds::List),
            ("additionalProperties", json!(false), Holds::One),
            ("not", json!({}), Holds::One),
            ("contentSchema", json!({}), Holds::One),
            // What no schema says, whatever it looks like.
            ("properties", json!([]), Holds::Data),
            ("anyOf", json!({}), Holds::Data),
            ("not", json!("x"), Holds::Data),
            ("default", json!({}), Holds::Data),
            ("enum", json!([{}]), Holds::Data),
            ("const", json!({}), Holds::Data),
            ("examples", json!([{}]), Holds::Data),
            ("dependentRequired", json!({}), Holds::Data),
            ("type", json!("object"), Holds::Data),
        ];
        for (keyword, value, expected) in rows {
            assert_eq!(holds(keyword, &value), expected, "{keyword}: {value}");
        }
    }
}
