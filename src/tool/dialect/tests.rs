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

/// Panics unless this is a schema that a function declaration of Gemini may hold.
fn is_geminis(schema: &Value) {
    const FIELDS: [&str; 18] = [
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
    let map = schema.as_object().unwrap_or_else(|| panic!("{schema}"));
    for (keyword, value) in map {
        assert!(FIELDS.contains(&keyword.as_str()), "{keyword}: {schema}");
        match keyword.as_str() {
            "properties" => value.as_object().into_iter().flatten().for_each(|(_, s)| is_geminis(s)),
            "anyOf" => {
                assert_eq!(map.len(), 1, "{schema}");
                assert!(value.as_array().is_some_and(|l| l.len() > 1), "{schema}");
                value.as_array().into_iter().flatten().for_each(is_geminis);
            }
            "items" => is_geminis(value),
            "enum" => {
                let texts =
                    value.as_array().is_some_and(|l| l.iter().all(|v| v.as_str().is_some_and(|s| !s.is_empty())));
                assert!(map["type"] == "STRING" && texts, "{schema}");
            }
            _ => {}
        }
    }
    assert!(map.contains_key("anyOf") || map.get("type").is_some_and(Value::is_string), "{schema}");
    assert!(map.get("type").is_none_or(|t| t != "ARRAY") || map.contains_key("items"), "{schema}");
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
    is_geminis(&gemini.definition["parameters"]);
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

/// Numbers that look random and are the same at every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap_or(0) % most
    }

    fn name(&mut self) -> String {
        ["a", "b", "c", "d"][self.below(4)].to_owned()
    }

    fn value(&mut self, level: usize) -> Value {
        match self.below(if level > 2 { 6 } else { 8 }) {
            0 => Value::Null,
            1 => json!(self.below(2) == 0),
            2 => json!(self.below(6)),
            3 => json!(0.5 + f64::from(u8::try_from(self.below(6)).unwrap_or(0))),
            4 | 5 => json!("abcdef"[..self.below(6)]),
            6 => (0..self.below(4)).map(|_| self.value(level + 1)).collect(),
            _ => Value::Object((0..self.below(4)).map(|_| (self.name(), self.value(level + 1))).collect()),
        }
    }

    fn list(&mut self, level: usize) -> Value {
        (0..=self.below(3)).map(|_| self.schema(level + 1)).collect()
    }

    fn properties(&mut self, level: usize) -> Value {
        Value::Object((0..self.below(4)).map(|_| (self.name(), self.schema(level + 1))).collect())
    }

    /// Any schema, with keywords that agree or not.
    fn schema(&mut self, level: usize) -> Value {
        if level > 4 {
            return json!({ "type": "string" });
        }
        if self.below(20) == 0 {
            return json!(self.below(4) > 0);
        }
        let mut map = Map::new();
        let types = ["string", "integer", "number", "boolean", "array", "object", "null"];
        match self.below(4) {
            0 => {}
            1 => {
                let mut two = vec![types[self.below(7)], types[self.below(7)]];
                two.dedup();
                map.insert("type".to_owned(), json!(two));
            }
            _ => {
                map.insert("type".to_owned(), json!(types[self.below(7)]));
            }
        }
        for _ in 0..self.below(4) {
            let small = json!(self.below(4));
            let (keyword, value) = match self.below(26) {
                0 => ("minLength", small),
                1 => ("maxLength", small),
                2 => ("minimum", small),
                3 => ("exclusiveMaximum", small),
                4 => ("multipleOf", json!(1 + self.below(3))),
                5 => ("minItems", small),
                6 => ("uniqueItems", json!(true)),
                7 => ("items", self.schema(level + 1)),
                8 | 9 => ("properties", self.properties(level)),
                10 => ("required", json!([self.name()])),
                11 => ("additionalProperties", self.schema(level + 1)),
                12 => ("enum", json!([self.value(2), self.value(2), "x"])),
                13 => ("const", self.value(2)),
                14 | 15 => ("anyOf", self.list(level)),
                16 => ("oneOf", self.list(level)),
                17 | 18 => ("allOf", self.list(level)),
                19 => ("not", self.schema(level + 1)),
                20 => ("$ref", json!(["#/$defs/n", "#/$defs/m", "#"][self.below(3)])),
                21 => ("if", self.schema(level + 1)),
                22 => ("then", self.schema(level + 1)),
                23 => ("dependentRequired", json!({ "a": [self.name()] })),
                24 => ("patternProperties", json!({ "^a": self.schema(level + 1) })),
                _ => ("description", json!("Some words.")),
            };
            map.insert(keyword.to_owned(), value);
        }
        Value::Object(map)
    }
}

#[test]
fn whatever_a_schema_says_every_form_of_it_holds_and_refuses_no_call_that_is_right() {
    let mut dice = Dice(7);
    let (mut compiled, mut fitting) = (0, 0);
    for _ in 0..800 {
        let parameters = json!({ "type": "object", "properties": dice.properties(0), "$defs": { "n": dice.schema(2), "m": dice.schema(2) } });
        // Nonsense that no tool could have, such as a reference that leads round in a circle, is none of ours.
        let Ok(original) = crate::tool::schema::compile(&parameters) else { continue };
        compiled += 1;
        let forms: Vec<(Dialect, jsonschema::Validator, Value)> = Dialect::ALL
            .into_iter()
            .filter_map(|dialect| {
                let made = made(&parameters, dialect).definition;
                if dialect == Dialect::Gemini {
                    if let Some(schema) = made.get("parameters") {
                        is_geminis(schema);
                    }
                    return None;
                }
                let schema = made.get("input_schema").or_else(|| made.get("function")?.get("parameters"))?;
                let validator = crate::tool::schema::compile(schema)
                    .unwrap_or_else(|e| panic!("{dialect} {parameters}\n{schema}: {e}"));
                Some((dialect, validator, schema.clone()))
            })
            .collect();
        for _ in 0..12 {
            let arguments = Value::Object((0..dice.below(4)).map(|_| (dice.name(), dice.value(0))).collect());
            if original.is_valid(&arguments) {
                fitting += 1;
                for (dialect, validator, schema) in &forms {
                    assert!(validator.is_valid(&arguments), "{dialect} refuses {arguments}\n{parameters}\n{schema}");
                }
            }
        }
    }
    assert!(compiled > 300 && fitting > 600, "{compiled} {fitting}");
}
