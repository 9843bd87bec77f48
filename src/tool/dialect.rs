//! A tool as the provider of a model gets it: one exact definition for each dialect. Pure functions over values; it calls no
//! provider and knows no script.

mod gemini;
mod inline;
mod meet;
mod plain;
mod simple;
mod strict;
mod subset;
#[cfg(test)]
mod tests;
mod wire;
mod words;

pub use strict::Strict;
pub use wire::WireNames;

use super::spec::Spec;
use super::tokens;
use crate::base::error::Error;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::fmt;
use std::str::FromStr;

/// Characters of a description that every model of OpenAI takes.
const OPENAI_DESCRIPTION: usize = 1024;
/// What providers refuse at the top of a tool's parameters.
const NOT_AT_TOP: [&str; 8] = ["anyOf", "oneOf", "allOf", "not", "if", "then", "else", "enum"];

/// How the provider of a model wants tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Dialect {
    /// Function tools as OpenAI's chat completions take them, and all who copy them.
    #[default]
    OpenAi,
    /// Anthropic's tools: a name, a description and JSON Schema of 2020-12.
    Anthropic,
    /// Gemini's function declarations, whose schema is a part of OpenAPI's.
    Gemini,
    /// llama.cpp and the chat templates of Llama: OpenAI's form, with what becomes a grammar.
    Llama,
    /// Text, for models without tool calls.
    Plain,
}

impl Dialect {
    /// All of them.
    pub const ALL: [Dialect; 5] =
        [Dialect::OpenAi, Dialect::Anthropic, Dialect::Gemini, Dialect::Llama, Dialect::Plain];

    /// Its word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Dialect::OpenAi => "openai",
            Dialect::Anthropic => "anthropic",
            Dialect::Gemini => "gemini",
            Dialect::Llama => "llama",
            Dialect::Plain => "plain",
        }
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Dialect {
    type Err = Error;

    /// Reads its word.
    ///
    /// # Errors
    /// `invalid_arguments` with the words there are.
    fn from_str(word: &str) -> Result<Dialect, Error> {
        Dialect::ALL.into_iter().find(|d| d.as_str() == word).ok_or_else(|| {
            let shown = super::schema::cut(word, 40);
            Error::invalid(format!("there is no dialect `{shown}`"))
                .hint(format!("one of {}", Dialect::ALL.map(Dialect::as_str).join(", ")))
        })
    }
}

/// A tool in one dialect.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Definition {
    /// The tool.
    pub tool: String,
    /// What the model calls it; [`WireNames::tool`] leads back.
    pub name: String,
    /// Whose form it is.
    pub dialect: Dialect,
    /// What is sent: an object; a text in the dialect `plain`.
    pub definition: Value,
    /// About how many tokens that is.
    pub tokens: usize,
    /// Whether strict mode could hold; only OpenAI has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strict: Option<Strict>,
    /// What was cut, and what a provider may still refuse; one clause each.
    pub notes: Vec<String>,
}

impl Definition {
    /// The definition as a person reads and compares it: the description's own lines, then the schema; the text itself in
    /// the dialect `plain`.
    #[must_use]
    pub fn reading(&self) -> String {
        let inner = self.definition.get("function").unwrap_or(&self.definition);
        let Value::Object(map) = inner else { return self.definition.as_str().unwrap_or_default().to_owned() };
        let description = map.get("description").and_then(Value::as_str).unwrap_or_default();
        let schema = ["parameters", "input_schema"].iter().find_map(|k| map.get(*k));
        let schema = schema.map(|s| serde_json::to_string_pretty(s).unwrap_or_default());
        format!("{}\n{description}\n\n{}", self.name, schema.as_deref().unwrap_or("no arguments"))
    }
}

/// A tool in a dialect. `names` should hold every tool that is sent together; a tool it does not know is named as if alone.
#[must_use]
pub fn define(spec: &Spec, dialect: Dialect, names: &WireNames) -> Definition {
    let name = names.wire(&spec.name).map(str::to_owned).or_else(|| {
        let alone = WireNames::new([spec.name.as_str()]);
        alone.wire(&spec.name).map(str::to_owned)
    });
    let name = name.unwrap_or_else(|| spec.name.clone());
    let inlined = inline::inline(&spec.parameters);
    let mut notes: Vec<String> = inlined.cuts.iter().map(|cut| format!("cut: {cut}")).collect();
    let mut parameters = match (dialect, inlined.schema) {
        (Dialect::Anthropic, schema) => schema,
        (Dialect::OpenAi | Dialect::Plain, schema) => simple::simplify(schema, simple::Beside::Allowed),
        (Dialect::Gemini | Dialect::Llama, schema) => simple::simplify(schema, simple::Beside::Refused),
    };
    let description = lift(&mut parameters, &spec.description, dialect);
    let mut strict = None;
    let definition = match dialect {
        Dialect::OpenAi | Dialect::Llama => {
            let subset = if dialect == Dialect::OpenAi { subset::Subset::OpenAi } else { subset::Subset::Llama };
            let parameters = subset::fold(&parameters, subset);
            if dialect == Dialect::OpenAi {
                strict = Some(strict::judge(&parameters));
                let length = description.chars().count();
                if length > OPENAI_DESCRIPTION {
                    notes.push(format!(
                        "the description has {length} characters; older models refuse more than {OPENAI_DESCRIPTION}"
                    ));
                }
            }
            json!({ "type": "function", "function": { "name": name, "description": description, "parameters": parameters } })
        }
        Dialect::Anthropic => {
            odd_names(&parameters, &mut notes);
            json!({ "name": name, "description": description, "input_schema": parameters })
        }
        Dialect::Gemini => {
            let mut made = json!({ "name": name, "description": description });
            // A declaration without arguments has no schema at all: an empty one is refused.
            if parameters.get("properties").and_then(Value::as_object).is_some_and(|p| !p.is_empty()) {
                let declared = gemini::declare(&parameters);
                notes.extend(declared.notes);
                made["parameters"] = declared.schema;
            }
            made
        }
        Dialect::Plain => Value::String(plain::text(&name, &description, &parameters)),
    };
    let tokens = tokens::of_definition(&definition);
    Definition { tool: spec.name.clone(), name, dialect, definition, tokens, strict, notes }
}

/// Every tool in a dialect, in this order, under names that tell them apart.
#[must_use]
pub fn define_all<'a>(specs: impl IntoIterator<Item = &'a Spec>, dialect: Dialect) -> (Vec<Definition>, WireNames) {
    let specs: Vec<&Spec> = specs.into_iter().collect();
    let names = WireNames::new(specs.iter().map(|s| s.name.as_str()));
    (specs.into_iter().map(|spec| define(spec, dialect, &names)).collect(), names)
}

/// What stands at the top of the parameters goes where models read it, into the tool's description; the top becomes a plain
/// object schema, as every provider wants it.
fn lift(parameters: &mut Value, description: &str, dialect: Dialect) -> String {
    if !parameters.is_object() {
        *parameters = json!({});
    }
    let Some(map) = parameters.as_object_mut() else { return description.to_owned() };
    let is_kept = |keyword: &str| match dialect {
        Dialect::Anthropic => !NOT_AT_TOP.contains(&keyword),
        Dialect::Gemini => matches!(keyword, "minProperties" | "maxProperties"),
        Dialect::OpenAi | Dialect::Llama => keyword == "additionalProperties",
        Dialect::Plain => false,
    };
    let said = words::restrictions(map, &|keyword| is_kept(keyword) || keyword == "default");
    let about = map.get("description").and_then(Value::as_str).unwrap_or_default().trim();
    let mut text = description.trim().to_owned();
    // The schema's own description, where it does not repeat the tool's.
    let extra = if about.is_empty() || text.contains(about) { String::new() } else { about.to_owned() };
    let extra = words::append(&extra, &said);
    if !extra.is_empty() {
        text = if text.is_empty() { extra } else { format!("{text}\n\nArguments: {extra}") };
    }
    let mut top = Map::new();
    top.insert("type".to_owned(), "object".into());
    let properties = map.shift_remove("properties").filter(Value::is_object).unwrap_or_else(|| json!({}));
    top.insert("properties".to_owned(), properties);
    for (keyword, value) in std::mem::take(map) {
        let is_plain = keyword == "required" || is_kept(&keyword);
        if is_plain && !matches!(keyword.as_str(), "type" | "description" | "title" | "const" | "default") {
            top.insert(keyword, value);
        }
    }
    *map = top;
    text
}

/// Arguments whose names Anthropic refuses.
fn odd_names(schema: &Value, notes: &mut Vec<String>) {
    let is_fine = |name: &str| {
        (1..=64).contains(&name.len())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-'))
    };
    match schema {
        Value::Object(map) => {
            for (name, _) in map.get("properties").and_then(Value::as_object).into_iter().flatten() {
                if !is_fine(name) && notes.len() < 20 {
                    notes.push(format!(
                        "the argument `{}` has a name that is refused: letters, digits, `_`, `.` and `-`, at most 64",
                        super::schema::cut(name, 80)
                    ));
                }
            }
            map.values().for_each(|child| odd_names(child, notes));
        }
        Value::Array(list) => list.iter().for_each(|child| odd_names(child, notes)),
        _ => {}
    }
}
