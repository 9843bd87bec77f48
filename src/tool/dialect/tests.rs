//! The definitions of whole tools, side by side in every dialect.

use super::*;

fn tool(parameters: Value) -> Spec {
    Spec::new("roll_dice", "Roll dice. Use it for games.", parameters)
}

fn made(parameters: &Value, dialect: Dialect) -> Definition {
    define(&tool(parameters.clone()), dialect, &WireNames::default())
}

/// Every map in a value with its place.
fn each(value: &Value, visit: &mut impl FnMut(&Map<String, Value>)) {
    match value {
        Value::Object(map) => {
            visit(map);
            map.values().for_each(|v| each(v, visit));
        }
        Value::Array(list) => list.iter().for_each(|v| each(v, visit)),
        _ => {}
    }
}

#[test]
fn a_tool_has_the_form_of_its_dialect() {
    let parameters = json!({ "type": "object", "required": ["sides"], "additionalProperties": false, "properties": {
        "sides": { "type": "integer", "minimum": 2, "description": "Sides." },
        "note": { "type": ["string", "null"], "maxLength": 20 } } });
    let openai = json!({ "type": "object", "properties": {
        "sides": { "type": "integer", "minimum": 2, "description": "Sides." },
        "note": { "type": ["string", "null"], "description": "at most 20 characters" } },
        "required": ["sides"], "additionalProperties": false });
    let full = json!({ "type": "object", "properties": parameters["properties"], "required": ["sides"], "additionalProperties": false });
    let description = "Roll dice. Use it for games.";
    let rows = [
        (
            Dialect::OpenAi,
            json!({ "type": "function", "function": { "name": "roll_dice", "description": description, "parameters": openai } }),
        ),
        (Dialect::Anthropic, json!({ "name": "roll_dice", "description": description, "input_schema": full })),
        (
            Dialect::Gemini,
            json!({ "name": "roll_dice", "description": description, "parameters": { "type": "OBJECT", "properties": {
                "sides": { "type": "INTEGER", "description": "Sides.", "minimum": 2 },
                "note": { "type": "STRING", "maxLength": 20, "nullable": true } }, "required": ["sides"] } }),
        ),
        (
            Dialect::Llama,
            json!({ "type": "function", "function": { "name": "roll_dice", "description": description, "parameters": full } }),
        ),
        (
            Dialect::Plain,
            json!(
                "roll_dice: Roll dice. Use it for games.\nArguments:\n- sides (whole number, required): Sides (at least 2).\n- note (text or null, optional): at most 20 characters"
            ),
        ),
    ];
    for (dialect, expected) in rows {
        let made = made(&parameters, dialect);
        assert_eq!(made.definition, expected, "{dialect}");
        assert_eq!(made.tokens, tokens::of_definition(&expected), "{dialect}");
        assert_eq!(made.notes, Vec::<String>::new(), "{dialect}");
        assert_eq!(made.strict.is_some(), dialect == Dialect::OpenAi);
        assert!(made.reading().contains("Use it for games."), "{}", made.reading());
    }
}

#[test]
fn a_tool_without_arguments_fits_every_provider() {
    let none = json!({ "type": "object", "properties": {}, "additionalProperties": false });
    assert_eq!(made(&none, Dialect::Gemini).definition.get("parameters"), None);
    assert_eq!(made(&none, Dialect::OpenAi).definition["function"]["parameters"], none);
    assert!(made(&none, Dialect::OpenAi).strict.unwrap_or(Strict { holds: false, obstacles: Vec::new() }).holds);
    assert_eq!(made(&none, Dialect::Anthropic).definition["input_schema"], none);
    assert!(made(&none, Dialect::Plain).reading().ends_with("No arguments."));
    assert!(made(&none, Dialect::Gemini).reading().ends_with("no arguments"));
}

#[test]
fn what_stands_at_the_top_is_read_in_the_tools_description() {
    let rows = [
        (
            json!({ "type": "object", "properties": { "a": {}, "b": {} }, "minProperties": 1 }),
            "at least 1 entry",
            "openai llama plain",
        ),
        (
            json!({ "type": "object", "properties": { "a": {}, "b": {} }, "dependentRequired": { "a": ["b"] } }),
            "with `a` also `b`",
            "openai gemini llama plain",
        ),
        (
            json!({ "type": "object", "properties": { "a": {}, "b": {} }, "anyOf": [{ "required": ["a"] }, { "required": ["b"] }] }),
            "either with `a`, or with `b`",
            "openai anthropic gemini llama plain",
        ),
        (
            json!({ "type": "object", "properties": { "a": {} }, "description": "What is rolled." }),
            "What is rolled.",
            "openai anthropic gemini llama plain",
        ),
        (
            json!({ "type": "object", "properties": { "a": {} }, "patternProperties": { "^x": { "type": "string" } } }),
            "any name that matches `^x`: text",
            "openai gemini llama plain",
        ),
    ];
    for (parameters, words, dialects) in rows {
        for dialect in Dialect::ALL {
            let made = made(&parameters, dialect);
            let inner = made.definition.get("function").unwrap_or(&made.definition);
            let text = inner.get("description").or(Some(inner)).and_then(Value::as_str).unwrap_or_default();
            let is_said = dialects.split(' ').any(|d| d == dialect.as_str());
            assert_eq!(text.contains(words), is_said, "{dialect} {parameters}: {text}");
        }
    }
}

#[test]
fn no_dialect_gets_what_it_refuses() {
    let wild = json!({ "$schema": "http://json-schema.org/draft-07/schema#", "type": "object",
        "definitions": { "node": { "type": "object", "properties": { "next": { "$ref": "#/definitions/node" }, "v": { "const": 3 } } } },
        "properties": {
            "tree": { "$ref": "#/definitions/node" },
            "any": true,
            "never": false,
            "either": { "oneOf": [{ "type": "string", "format": "uri" }, { "type": "array", "items": [{ "type": "integer" }] }] },
            "mixed": { "enum": ["a", 1, null, true] },
            "both": { "allOf": [{ "type": "string" }, { "minLength": 3 }, { "not": { "const": "xyz" } }] },
            "cased": { "type": "object", "if": { "required": ["a"] }, "then": { "required": ["b"] }, "properties": { "a": {}, "b": {} } },
            "map": { "type": "object", "additionalProperties": { "type": "integer", "exclusiveMinimum": true, "minimum": 0 } },
            "list": { "type": ["array", "null"], "contains": { "const": 1 }, "uniqueItems": true },
            "strange name!": { "type": "number", "multipleOf": 0.1 },
        }, "required": ["tree"], "dependencies": { "any": ["tree"] } });
    for dialect in Dialect::ALL {
        let made = made(&wild, dialect);
        let text = made.definition.to_string();
        assert!(!text.contains("$ref") && !text.contains("definitions"), "{dialect}: {text}");
        assert!(text.contains("`node` again"), "{dialect}: {text}");
        assert!(made.notes.iter().any(|n| n.contains("`node` again")), "{dialect}: {:?}", made.notes);
    }
    let gemini = made(&wild, Dialect::Gemini);
    let fields = [
        "type",
        "format",
        "description",
        "nullable",
        "enum",
        "maxItems",
        "minItems",
        "properties",
        "required",
        "minProperties",
        "maxProperties",
        "minLength",
        "maxLength",
        "pattern",
        "anyOf",
        "items",
        "minimum",
        "maximum",
    ];
    fn check(schema: &Value, fields: &[&str]) {
        let map = schema.as_object().unwrap_or_else(|| panic!("{schema}"));
        for (keyword, value) in map {
            assert!(fields.contains(&keyword.as_str()), "{keyword}: {schema}");
            match keyword.as_str() {
                "properties" => value.as_object().into_iter().flatten().for_each(|(_, s)| check(s, fields)),
                "anyOf" => {
                    assert_eq!(map.len(), 1, "{schema}");
                    value.as_array().into_iter().flatten().for_each(|s| check(s, fields));
                }
                "items" => check(value, fields),
                "enum" => {
                    assert!(map["type"] == "STRING" && value.as_array().is_some_and(|l| l.iter().all(Value::is_string)))
                }
                _ => {}
            }
        }
        assert!(map.contains_key("anyOf") || map.get("type").is_some_and(Value::is_string), "{schema}");
        assert!(map.get("type").is_none_or(|t| t != "ARRAY") || map.contains_key("items"), "{schema}");
    }
    check(&gemini.definition["parameters"], &fields);
    assert!(gemini.notes.iter().any(|n| n.contains("strange name!")), "{:?}", gemini.notes);
    for dialect in [Dialect::OpenAi, Dialect::Llama] {
        each(&made(&wild, dialect).definition, &mut |map| {
            for word in
                ["not", "if", "then", "oneOf", "allOf", "uniqueItems", "contains", "prefixItems", "patternProperties"]
            {
                // A property may be called so; a keyword may not stand.
                assert!(!map.contains_key(word), "{dialect}: {word}");
            }
        });
    }
    let anthropic = made(&wild, Dialect::Anthropic);
    assert!(anthropic.notes.iter().any(|n| n.contains("strange name!")), "{:?}", anthropic.notes);
    let schema = &anthropic.definition["input_schema"];
    assert_eq!(
        schema["properties"]["map"]["additionalProperties"],
        json!({ "type": "integer", "exclusiveMinimum": 0 })
    );
    assert_eq!(schema["properties"]["either"]["oneOf"][1]["prefixItems"], json!([{ "type": "integer" }]));
    assert_eq!(schema["dependentRequired"], json!({ "any": ["tree"] }));
    assert!(crate::tool::schema::compile(schema).is_ok());
}

#[test]
fn every_json_schema_that_is_sent_still_compiles_and_still_takes_what_the_tool_takes() {
    let rows = [
        (
            json!({ "type": "object", "properties": { "a": { "type": "integer", "minimum": 2, "multipleOf": 2 } } }),
            json!({ "a": 4 }),
        ),
        (
            json!({ "type": "object", "$defs": { "t": { "type": "string", "format": "uri" } }, "properties": { "a": { "type": "array", "items": { "$ref": "#/$defs/t" } } } }),
            json!({ "a": ["https://example.org"] }),
        ),
        (
            json!({ "type": "object", "properties": { "a": { "oneOf": [{ "type": "string" }, { "type": "object", "properties": { "b": { "type": "number" } }, "required": ["b"] }] } } }),
            json!({ "a": { "b": 1.5 } }),
        ),
        (
            json!({ "type": "object", "properties": { "a": { "type": "array", "prefixItems": [{ "type": "number" }, { "type": "string" }] } } }),
            json!({ "a": [1, "x"] }),
        ),
        (
            json!({ "type": "object", "$defs": { "n": { "type": "object", "properties": { "next": { "$ref": "#/$defs/n" } } } }, "properties": { "a": { "$ref": "#/$defs/n" } } }),
            json!({ "a": { "next": { "next": {} } } }),
        ),
        (
            json!({ "type": "object", "properties": { "a": { "type": "object", "properties": { "x": { "type": "string" }, "y": { "type": "string" } },
                "anyOf": [{ "required": ["x"] }, { "required": ["y"] }] } } }),
            json!({ "a": { "y": "z" } }),
        ),
    ];
    for (parameters, arguments) in rows {
        for dialect in [Dialect::OpenAi, Dialect::Anthropic, Dialect::Llama] {
            let made = made(&parameters, dialect).definition;
            let schema = made.get("input_schema").or_else(|| made["function"].get("parameters"));
            let schema = schema.unwrap_or_else(|| panic!("{made}"));
            let validator = crate::tool::schema::compile(schema).unwrap_or_else(|e| panic!("{dialect} {schema}: {e}"));
            assert!(validator.is_valid(&arguments), "{dialect}: {schema} refuses {arguments}");
        }
    }
}

#[test]
fn a_tool_whose_name_no_provider_takes_gets_another() {
    let spec = Spec::new("mcp.server/tool", "Do it. Use it when asked.", json!({ "type": "object" }));
    let (made, names) = define_all([&spec], Dialect::Gemini);
    assert_eq!((made[0].tool.as_str(), made[0].name.as_str()), ("mcp.server/tool", "mcp_server_tool"));
    assert_eq!(made[0].definition["name"], "mcp_server_tool");
    assert_eq!(names.tool("mcp_server_tool"), Some("mcp.server/tool"));
    assert_eq!(define(&spec, Dialect::OpenAi, &WireNames::default()).name, "mcp_server_tool");
}

#[test]
fn a_dialect_has_one_word() {
    for dialect in Dialect::ALL {
        assert_eq!(dialect.as_str().parse::<Dialect>().ok(), Some(dialect));
        assert_eq!(json!(dialect), json!(dialect.as_str()));
    }
    let error = "klingon".parse::<Dialect>().err().map(|e| (e.message().to_owned(), e.hint_text().map(str::to_owned)));
    let (message, hint) = error.unwrap_or_default();
    assert!(
        message.contains("`klingon`") && hint.unwrap_or_default().contains("openai, anthropic, gemini, llama, plain")
    );
}

#[test]
fn a_long_description_is_told_where_some_models_refuse_it() {
    let spec = Spec::new("x", "long ".repeat(300), json!({ "type": "object" }));
    assert!(define(&spec, Dialect::OpenAi, &WireNames::default()).notes[0].contains("1499 characters"));
    assert!(define(&spec, Dialect::Anthropic, &WireNames::default()).notes.is_empty());
}
