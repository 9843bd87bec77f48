//! One tool's schema: the flags an author wrote, what a model reads, what is checked before a call.
//! It knows no script and no registry: a JSON entry of `TOOLS` goes in, a `Spec` comes out.

use super::arguments::Compiled;
use super::{names, schema};
use crate::base::error::Fallback;
use crate::base::json::canonical;
use crate::service::permissions::{Declared, Permission};
use jsonschema::Validator;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use std::fmt;
use std::fmt::Write as _;
use std::sync::OnceLock;

/// Most tools that one file may define.
pub const MAX_TOOLS_PER_FILE: usize = 512;

/// Whether a tool works without leaving this machine; only private chats ask.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Locality {
    /// The author did not say.
    #[default]
    Unset,
    /// `is_local: true`.
    Local,
    /// `is_local: false`.
    NotLocal,
    /// `is_local: "endpoint"`: local only if the address in its settings is.
    Endpoint,
    /// Anything else, as text; counts as not local.
    Other(String),
}

/// What a call may change, mildest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SideEffect {
    /// Computes from its arguments alone.
    None,
    /// Reads something.
    Read,
    /// Changes something.
    Write,
    /// Costs money.
    Spend,
}

impl SideEffect {
    /// The word in a schema.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            SideEffect::None => "none",
            SideEffect::Read => "read",
            SideEffect::Write => "write",
            SideEffect::Spend => "spend",
        }
    }

    /// Reads the word of a schema.
    #[must_use]
    pub fn parse(word: &str) -> Option<SideEffect> {
        [SideEffect::None, SideEffect::Read, SideEffect::Write, SideEffect::Spend]
            .into_iter()
            .find(|s| s.as_str() == word)
    }
}

/// When the model is told that it calls a tool too often in one turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoopWarn {
    /// The call in a turn that carries the warning first, from 1.
    pub after: u32,
    /// The author's own words; `{count}` stands for the number of calls.
    pub message: Option<String>,
}

/// A call that documents the tool and runs as a test.
#[derive(Debug, Clone, PartialEq)]
pub struct Example {
    /// The arguments, an object.
    pub arguments: Value,
    /// A regular expression that the result's text must match.
    pub expect: String,
    /// The line of the file where it stands, from 1; 0 where unknown.
    pub line: usize,
}

/// Everything that is known of one tool before it is called.
pub struct Spec {
    /// The name that a model calls, unique in the host.
    pub name: String,
    /// When to call it, in the author's words.
    pub description: String,
    /// JSON Schema of the arguments; the top level is always an object schema.
    pub parameters: Value,
    /// Whether it may run in a private chat.
    pub is_local: Locality,
    /// A badge: the tool uses the network.
    pub network: bool,
    /// Left out of every selection but a saved toolset that names it.
    pub hidden: bool,
    /// The author says that it changes something.
    pub writes: bool,
    /// The tool's own category, over its file's.
    pub category: Option<String>,
    /// When a model is warned of calling in a loop.
    pub loop_warn: Option<LoopWarn>,
    /// The author's deadline in seconds, within the host's own.
    pub timeout_s: Option<u64>,
    /// What the tool needs to be allowed.
    pub permissions: Vec<Permission>,
    /// The author's word on side effects; see [`Spec::effective_side_effect`].
    pub side_effect: Option<SideEffect>,
    /// Tools that may serve when this one fails.
    pub fallbacks: Vec<Fallback>,
    /// A longer explanation for people.
    pub usage: Option<String>,
    /// JSON Schema of the structured result.
    pub output_schema: Option<Value>,
    /// Calls that run as tests.
    pub examples: Vec<Example>,
    pub(super) parameters_given: bool,
    pub(super) compiled: OnceLock<Result<Box<Compiled>, String>>,
    pub(super) output: OnceLock<Option<Box<Validator>>>,
}

/// What may stand in an entry of `TOOLS` beside `type` and `function`.
const FLAGS: [&str; 14] = [
    "is_local",
    "network",
    "hidden",
    "writes",
    "category",
    "loop_warn_after",
    "loop_warn_message",
    "timeout_s",
    "permissions",
    "side_effect",
    "side_effects",
    "fallbacks",
    "usage",
    "output_schema",
];

impl Spec {
    /// A tool with a name, a description and parameters, and every flag at its default. Nothing is checked.
    #[must_use]
    pub fn new(name: impl Into<String>, description: impl Into<String>, parameters: Value) -> Spec {
        Spec {
            name: name.into(),
            description: description.into(),
            parameters,
            is_local: Locality::Unset,
            network: false,
            hidden: false,
            writes: false,
            category: None,
            loop_warn: None,
            timeout_s: None,
            permissions: Vec::new(),
            side_effect: None,
            fallbacks: Vec::new(),
            usage: None,
            output_schema: None,
            examples: Vec::new(),
            parameters_given: true,
            compiled: OnceLock::new(),
            output: OnceLock::new(),
        }
    }

    /// Reads one element of `TOOLS`. The warnings tell the author of flags that were ignored and of doubtful schemas.
    ///
    /// # Errors
    /// The reason why this tool cannot be offered; the other tools of the file are not touched by it.
    pub fn from_entry(entry: &Value) -> Result<(Spec, Vec<String>), String> {
        let Some(entry) = entry.as_object() else {
            return Err(format!(
                "the entry is {}; write #{{ type: \"function\", function: #{{ name: .., description: .., parameters: #{{..}} }} }}",
                schema::describe(entry)
            ));
        };
        let function = match entry.get("function") {
            Some(Value::Object(function)) => function,
            Some(other) => {
                return Err(format!(
                    "`function` is {}; it holds name, description and parameters",
                    schema::describe(other)
                ));
            }
            None if entry.contains_key("name") => {
                return Err("`name` stands beside `type`; put name, description and parameters into `function: #{..}`"
                    .to_owned());
            }
            None => return Err("the entry has no `function: #{ name, description, parameters }`".to_owned()),
        };
        let name = match function.get("name") {
            Some(Value::String(name)) => name.clone(),
            Some(other) => return Err(format!("`function.name` is {}; it must be a text", schema::describe(other))),
            None => return Err("`function` has no `name`".to_owned()),
        };
        names::check(&name)?;
        let description = match function.get("description") {
            Some(Value::String(description)) => description.clone(),
            Some(other) => {
                return Err(format!("`function.description` is {}; it must be a text", schema::describe(other)));
            }
            None => return Err("`function` has no `description`; say what the tool does and when to use it".to_owned()),
        };
        let given = function.get("parameters").filter(|p| !p.is_null());
        let mut warnings = Vec::new();
        let parameters = match given {
            None => empty_parameters(),
            Some(parameters) => schema::check_parameters(parameters, &mut warnings)?,
        };
        if description.trim().is_empty() {
            warnings.push("the description is empty; a model cannot know when to call the tool".to_owned());
        }
        let mut spec = Spec::new(name, description, parameters);
        spec.parameters_given = given.is_some();
        spec.read_flags(entry, function, &mut warnings);
        Ok((spec, warnings))
    }

    /// Reads the flags beside `type` and `function`. A malformed one is ignored, except that doubt about writing counts as writing.
    fn read_flags(&mut self, entry: &Map<String, Value>, function: &Map<String, Value>, warnings: &mut Vec<String>) {
        for key in function.keys() {
            if FLAGS.contains(&key.as_str()) {
                warnings.push(format!("`{key}` stands inside `function` and is ignored there; put it beside `type`"));
            }
        }
        for (key, value) in entry {
            self.read_flag(key, value, entry, warnings);
        }
    }

    fn read_flag(&mut self, key: &str, value: &Value, entry: &Map<String, Value>, warnings: &mut Vec<String>) {
        if value.is_null() {
            return;
        }
        let mut ignore = |expected: &str| {
            warnings.push(format!("`{key}` is {} and was ignored; it must be {expected}", schema::describe(value)));
        };
        match key {
            "function" => {}
            "type" => {
                if value != "function" {
                    ignore("\"function\"");
                }
            }
            "is_local" => {
                self.is_local = match value {
                    Value::Bool(true) => Locality::Local,
                    Value::Bool(false) => Locality::NotLocal,
                    Value::String(word) if word == "endpoint" => Locality::Endpoint,
                    other => {
                        warnings.push(format!(
                            "`is_local` is {} and counts as not local; it is true, false or \"endpoint\"",
                            schema::describe(other)
                        ));
                        Locality::Other(other.as_str().map_or_else(|| other.to_string(), str::to_owned))
                    }
                }
            }
            "network" => match value.as_bool() {
                Some(yes) => self.network = yes,
                None => ignore("true or false"),
            },
            "hidden" => match value.as_bool() {
                Some(yes) => self.hidden = yes,
                None => ignore("true or false"),
            },
            "writes" => {
                self.writes = value.as_bool().unwrap_or_else(|| {
                    warnings.push(format!(
                        "`writes` is {} and counts as true; it is true or false",
                        schema::describe(value)
                    ));
                    true
                });
            }
            "side_effects" => {
                if value != &Value::Bool(false) {
                    self.writes = true;
                }
            }
            "side_effect" => {
                self.side_effect = value.as_str().and_then(SideEffect::parse).or_else(|| {
                    warnings.push(format!(
                        "`side_effect` is {} and counts as \"write\"; it is \"none\", \"read\", \"write\" or \"spend\"",
                        schema::describe(value)
                    ));
                    Some(SideEffect::Write)
                });
            }
            "category" => match value.as_str().map(str::trim) {
                Some(word) if !word.is_empty() => self.category = Some(word.to_owned()),
                _ => ignore("one word"),
            },
            "loop_warn_after" => match whole(value).and_then(|n| u32::try_from(n).ok()).filter(|n| *n >= 1) {
                Some(after) => {
                    let message = entry.get("loop_warn_message").and_then(Value::as_str).map(str::to_owned);
                    self.loop_warn = Some(LoopWarn { after, message });
                }
                None => ignore("a whole number from 1"),
            },
            "loop_warn_message" => {
                if !value.is_string() {
                    ignore("a text");
                } else if !entry.contains_key("loop_warn_after") {
                    warnings.push("`loop_warn_message` does nothing without `loop_warn_after`".to_owned());
                }
            }
            "timeout_s" => match whole(value).filter(|n| *n >= 1) {
                Some(seconds) => self.timeout_s = Some(seconds),
                None => ignore("a whole number of seconds from 1"),
            },
            "permissions" => match value {
                Value::Array(words) => {
                    for word in words {
                        self.read_permission(word, warnings);
                    }
                }
                Value::String(_) => self.read_permission(value, warnings),
                _ => ignore("a list of permission names"),
            },
            "fallbacks" => match value {
                Value::Array(entries) => {
                    self.fallbacks = entries.iter().filter_map(|f| fallback(f, warnings)).collect()
                }
                _ => ignore("a list of #{ tool: .., when: .. }"),
            },
            "usage" => match value.as_str() {
                Some(usage) => self.usage = Some(usage.to_owned()),
                None => ignore("a text"),
            },
            "output_schema" => match schema::check_output(value) {
                Ok(()) => self.output_schema = Some(value.clone()),
                Err(reason) => warnings.push(format!("`output_schema` is dropped, the tool stays: {reason}")),
            },
            other => {
                let close = names::did_you_mean(other, FLAGS, 1);
                let hint = close.first().map(|flag| format!("; did you mean `{flag}`?")).unwrap_or_default();
                warnings.push(format!("the flag `{other}` is unknown and was ignored{hint}"));
            }
        }
    }

    /// A word, or a map such as `#{EXTERNAL_HTTP: [..]}`, whose list is the plugin's to declare.
    fn read_permission(&mut self, word: &Value, warnings: &mut Vec<String>) {
        match Declared::parse(&Value::Array(vec![word.clone()])) {
            Ok(declared) => {
                for permission in declared.permissions() {
                    if !self.permissions.contains(&permission) {
                        self.permissions.push(permission);
                    }
                }
            }
            Err(e) => {
                let hint = e.hint_text().map(|hint| format!(" ({hint})")).unwrap_or_default();
                warnings.push(format!("a permission was ignored: {}{hint}", e.message()));
            }
        }
    }

    /// What is sent to a model: exactly type, name, description and parameters, whatever else the schema carries.
    #[must_use]
    pub fn wire(&self) -> Value {
        json!({
            "type": "function",
            "function": { "name": self.name, "description": self.description, "parameters": self.parameters },
        })
    }

    /// SHA-256, in hex, of everything that was declared: schema, flags, permissions. A changed tool has another hash.
    #[must_use]
    pub fn content_hash(&self) -> String {
        let declared = json!([
            self.name,
            self.description,
            self.parameters,
            format!("{:?}", self.is_local),
            [self.network, self.hidden, self.writes],
            self.category,
            self.loop_warn.as_ref().map(|w| json!([w.after, w.message])),
            self.timeout_s,
            self.permissions.iter().map(|p| p.as_str()).collect::<Vec<_>>(),
            self.side_effect.map(SideEffect::as_str),
            self.fallbacks.iter().map(|f| json!([f.tool, f.when])).collect::<Vec<_>>(),
            self.usage,
            self.output_schema,
        ]);
        let digest = Sha256::digest(canonical(&declared).as_bytes());
        digest.iter().fold(String::with_capacity(64), |mut hex, byte| {
            let _ = write!(hex, "{byte:02x}");
            hex
        })
    }

    /// This tool with the description and parameters of `fresh`; name, flags and everything else stay.
    /// Parameters that the fresh entry left out stay too.
    #[must_use]
    pub fn refresh(&self, fresh: &Spec) -> Spec {
        let mut spec = self.clone();
        spec.description.clone_from(&fresh.description);
        if fresh.parameters_given && spec.parameters != fresh.parameters {
            spec.parameters.clone_from(&fresh.parameters);
            spec.parameters_given = true;
        }
        spec
    }

    /// Whether a call may reach things beyond this machine.
    #[must_use]
    pub fn is_open_world(&self) -> bool {
        let reaches = |p: &Permission| {
            matches!(p, Permission::ExternalHttp | Permission::WriteExternal | Permission::DelegateExternal)
        };
        self.network || self.permissions.iter().any(reaches)
    }

    /// What a call may change: the stronger of the author's words, or what the permissions let it do.
    #[must_use]
    pub fn effective_side_effect(&self) -> SideEffect {
        let least = if self.writes { SideEffect::Write } else { SideEffect::None };
        if let Some(declared) = self.side_effect {
            return declared.max(least);
        }
        let changes = self.permissions.iter().any(|p| {
            let word = p.as_str();
            word.starts_with("WRITE_") || matches!(word, "RUN_COMMANDS" | "SPEND" | "DELEGATE_EXTERNAL")
        });
        least.max(if changes { SideEffect::Write } else { SideEffect::Read })
    }
}

/// The parameters of a tool that takes none.
#[must_use]
pub fn empty_parameters() -> Value {
    json!({ "type": "object", "properties": {}, "additionalProperties": false })
}

/// A whole number, also where a script wrote it as `3.0`.
fn whole(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| {
        let float = value.as_f64().filter(|f| f.fract() == 0.0 && (0.0..9e15).contains(f))?;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked to be whole and small")]
        Some(float as u64)
    })
}

fn fallback(value: &Value, warnings: &mut Vec<String>) -> Option<Fallback> {
    let (tool, when) = match value {
        Value::String(tool) => (Some(tool.as_str()), ""),
        Value::Object(map) => {
            (map.get("tool").and_then(Value::as_str), map.get("when").and_then(Value::as_str).unwrap_or(""))
        }
        _ => (None, ""),
    };
    match tool {
        Some(tool) if names::check(tool).is_ok() => Some(Fallback { tool: tool.to_owned(), when: when.to_owned() }),
        _ => {
            warnings.push(format!(
                "the fallback {} names no tool and was ignored; write #{{ tool: .., when: .. }}",
                schema::describe(value)
            ));
            None
        }
    }
}

impl Clone for Spec {
    /// The copy checks arguments like the original but compiles its own validator on first use.
    fn clone(&self) -> Self {
        Spec {
            name: self.name.clone(),
            description: self.description.clone(),
            parameters: self.parameters.clone(),
            is_local: self.is_local.clone(),
            network: self.network,
            hidden: self.hidden,
            writes: self.writes,
            category: self.category.clone(),
            loop_warn: self.loop_warn.clone(),
            timeout_s: self.timeout_s,
            permissions: self.permissions.clone(),
            side_effect: self.side_effect,
            fallbacks: self.fallbacks.clone(),
            usage: self.usage.clone(),
            output_schema: self.output_schema.clone(),
            examples: self.examples.clone(),
            parameters_given: self.parameters_given,
            compiled: OnceLock::new(),
            output: OnceLock::new(),
        }
    }
}

impl fmt::Debug for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spec").field("name", &self.name).field("parameters", &self.parameters).finish_non_exhaustive()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn entry(flags: &Value) -> Value {
        let mut entry = json!({ "type": "function", "function": { "name": "do_it", "description": "Does it.",
            "parameters": { "type": "object", "properties": { "x": { "type": "string" } } } } });
        for (key, value) in flags.as_object().unwrap() {
            entry[key] = value.clone();
        }
        entry
    }

    fn read(flags: &Value) -> (Spec, Vec<String>) {
        Spec::from_entry(&entry(flags)).unwrap()
    }

    #[test]
    fn row_12_only_type_and_function_reach_the_wire_whatever_else_the_schema_carries() {
        let mut full = entry(
            &json!({ "is_local": true, "network": true, "hidden": true, "writes": true, "category": "web",
            "loop_warn_after": 3, "loop_warn_message": "{count}", "timeout_s": 20, "permissions": ["SPEND"], "side_effect": "read",
            "fallbacks": [{ "tool": "a", "when": "b" }], "usage": "u", "output_schema": { "type": "object" }, "strict": true }),
        );
        full["function"]["strict"] = json!(true);
        let (spec, _) = Spec::from_entry(&full).unwrap();
        assert_eq!(
            spec.wire(),
            json!({ "type": "function", "function": { "name": "do_it", "description": "Does it.",
                "parameters": { "type": "object", "properties": { "x": { "type": "string" } } } } })
        );
    }

    #[test]
    fn flags_are_read_as_written() {
        let (spec, warnings) = read(
            &json!({ "is_local": "endpoint", "network": true, "hidden": true, "writes": true, "category": "web",
            "loop_warn_after": 3, "loop_warn_message": "{count}!", "timeout_s": 20, "permissions": ["SPEND", "SPEND", "RUN_COMMANDS"],
            "side_effect": "spend", "fallbacks": [{ "tool": "a", "when": "b" }, "c"], "usage": "u", "output_schema": { "type": "object" } }),
        );
        assert_eq!(warnings, Vec::<String>::new());
        assert_eq!(spec.is_local, Locality::Endpoint);
        assert!(spec.network && spec.hidden && spec.writes);
        assert_eq!(spec.category.as_deref(), Some("web"));
        assert_eq!(spec.loop_warn, Some(LoopWarn { after: 3, message: Some("{count}!".to_owned()) }));
        assert_eq!(spec.timeout_s, Some(20));
        assert_eq!(spec.permissions.len(), 2);
        assert_eq!(spec.side_effect, Some(SideEffect::Spend));
        assert_eq!(spec.fallbacks.len(), 2);
        assert_eq!((spec.usage.as_deref(), spec.output_schema.is_some()), (Some("u"), true));
    }

    #[test]
    fn a_malformed_flag_never_breaks_a_tool_and_is_told() {
        let rows = [
            ("is_local", json!("yes"), "not local"),
            ("is_local", json!(1), "not local"),
            ("network", json!("yes"), "true or false"),
            ("hidden", json!(1), "true or false"),
            ("writes", json!("no"), "counts as true"),
            ("side_effect", json!("wirte"), "counts as \"write\""),
            ("category", json!(""), "one word"),
            ("category", json!(["web"]), "one word"),
            ("loop_warn_after", json!(0), "from 1"),
            ("loop_warn_after", json!(-1), "from 1"),
            ("loop_warn_after", json!(1.5), "from 1"),
            ("loop_warn_after", json!("many"), "from 1"),
            ("loop_warn_message", json!(5), "a text"),
            ("loop_warn_message", json!("x"), "without `loop_warn_after`"),
            ("timeout_s", json!(0), "seconds from 1"),
            ("timeout_s", json!("20"), "seconds from 1"),
            ("permissions", json!(5), "permission names"),
            ("permissions", json!(["HTTP", "SPEND"]), "did you mean `EXTERNAL_HTTP`"),
            ("permissions", json!(["FLY"]), "no permission `FLY`"),
            ("fallbacks", json!("x"), "a list of"),
            ("fallbacks", json!([5]), "names no tool"),
            ("fallbacks", json!([{ "when": "x" }]), "names no tool"),
            ("usage", json!(5), "a text"),
            ("output_schema", json!({ "type": "string" }), "is dropped, the tool stays"),
            ("output_schema", json!(5), "is dropped, the tool stays"),
            ("output_schema", json!({ "type": "object", "properties": { "a": { "type": "strin" } } }), "is dropped"),
            ("type", json!("tool"), "\"function\""),
            ("netwrok", json!(true), "did you mean `network`"),
            ("colour", json!(true), "unknown and was ignored"),
        ];
        for (flag, value, word) in rows {
            let (spec, warnings) = read(&json!({ flag: value }));
            assert_eq!(spec.name, "do_it");
            assert!(warnings.len() == 1 && warnings[0].contains(word), "{flag} {value}: {warnings:?}");
        }
        assert_eq!(read(&json!({ "is_local": "yes" })).0.is_local, Locality::Other("yes".to_owned()));
        assert_eq!(read(&json!({ "loop_warn_after": 0 })).0.loop_warn, None);
        let (nulls, warnings) = read(&json!({ "is_local": null, "writes": null }));
        assert_eq!((nulls.content_hash(), warnings.len()), (read(&json!({})).0.content_hash(), 0));
    }

    #[test]
    fn a_flag_inside_function_is_pointed_at() {
        let mut entry = entry(&json!({}));
        entry["function"]["is_local"] = json!(true);
        let (spec, warnings) = Spec::from_entry(&entry).unwrap();
        assert_eq!(spec.is_local, Locality::Unset);
        assert!(warnings[0].contains("`is_local` stands inside `function`"), "{warnings:?}");
    }

    #[test]
    fn an_entry_that_cannot_be_a_tool_has_its_own_reason() {
        let function = |f: Value| json!({ "type": "function", "function": f });
        let rows = [
            (json!("roll"), "the entry is the text \"roll\""),
            (json!({}), "has no `function"),
            (json!({ "name": "x", "description": "y" }), "`name` stands beside `type`"),
            (json!({ "function": "roll" }), "`function` is the text"),
            (function(json!({ "description": "x" })), "has no `name`"),
            (function(json!({ "name": 5, "description": "x" })), "must be a text"),
            (function(json!({ "name": "", "description": "x" })), "empty"),
            (function(json!({ "name": "a b", "description": "x" })), "` `"),
            (function(json!({ "name": "a".repeat(65), "description": "x" })), "65 characters"),
            (function(json!({ "name": "a" })), "has no `description`"),
            (function(json!({ "name": "a", "description": 5 })), "must be a text"),
            (
                function(json!({ "name": "a", "description": "x", "parameters": { "type": "string" } })),
                "`parameters.type`",
            ),
        ];
        for (entry, word) in rows {
            let reason = Spec::from_entry(&entry).unwrap_err();
            assert!(reason.contains(word), "{entry}: {reason}");
        }
    }

    #[test]
    fn missing_parameters_mean_none_are_taken() {
        for parameters in [None, Some(Value::Null)] {
            let mut function = json!({ "name": "a", "description": "x" });
            if let Some(parameters) = parameters {
                function["parameters"] = parameters;
            }
            let (spec, warnings) = Spec::from_entry(&json!({ "type": "function", "function": function })).unwrap();
            assert_eq!(
                (spec.parameters, warnings.len()),
                (json!({ "type": "object", "properties": {}, "additionalProperties": false }), 0)
            );
        }
        let (_, warnings) = Spec::from_entry(&json!({ "function": { "name": "a", "description": " " } })).unwrap();
        assert!(warnings[0].contains("description is empty"));
    }

    #[test]
    fn row_02_a_refresh_takes_description_and_parameters_and_nothing_else() {
        let (old, _) = read(&json!({ "writes": true, "category": "web" }));
        let mut fresh = entry(&json!({ "writes": false, "category": "files", "hidden": true }));
        fresh["function"]["name"] = json!("renamed");
        fresh["function"]["description"] = json!("Does it better.");
        fresh["function"]["parameters"]["properties"]["y"] = json!({ "type": "integer" });
        let (fresh, _) = Spec::from_entry(&fresh).unwrap();
        let made = old.refresh(&fresh);
        assert_eq!((made.name.as_str(), made.description.as_str()), ("do_it", "Does it better."));
        assert!(made.parameters["properties"].get("y").is_some() && made.writes && !made.hidden);
        assert_eq!(made.category.as_deref(), Some("web"));
        let (bare, _) = Spec::from_entry(&json!({ "function": { "name": "do_it", "description": "Other." } })).unwrap();
        assert_eq!(old.refresh(&bare).parameters, old.parameters);
    }

    #[test]
    fn side_effects_are_the_stronger_of_word_and_permissions() {
        let rows = [
            (json!({}), SideEffect::Read),
            (json!({ "side_effect": "none" }), SideEffect::None),
            (json!({ "side_effect": "read" }), SideEffect::Read),
            (json!({ "side_effect": "write" }), SideEffect::Write),
            (json!({ "side_effect": "spend" }), SideEffect::Spend),
            (json!({ "side_effect": "nonsense" }), SideEffect::Write),
            (json!({ "writes": true }), SideEffect::Write),
            (json!({ "writes": "maybe" }), SideEffect::Write),
            (json!({ "writes": true, "side_effect": "none" }), SideEffect::Write),
            (json!({ "writes": true, "side_effect": "spend" }), SideEffect::Spend),
            (json!({ "writes": false }), SideEffect::Read),
            (json!({ "side_effects": true }), SideEffect::Write),
            (json!({ "permissions": ["RUN_COMMANDS"] }), SideEffect::Write),
            (json!({ "permissions": ["SPEND"] }), SideEffect::Write),
            (json!({ "permissions": ["WRITE_NOTES"] }), SideEffect::Write),
            (json!({ "permissions": ["WRITE_EXTERNAL"] }), SideEffect::Write),
            (json!({ "permissions": ["DELEGATE_EXTERNAL"] }), SideEffect::Write),
            (json!({ "permissions": ["EXTERNAL_HTTP"] }), SideEffect::Read),
            (json!({ "permissions": ["READ_NOTES"] }), SideEffect::Read),
        ];
        for (flags, effect) in rows {
            assert_eq!(read(&flags).0.effective_side_effect(), effect, "{flags}");
        }
    }

    #[test]
    fn every_declared_difference_changes_the_hash() {
        let base = read(&json!({})).0.content_hash();
        assert_eq!(base, read(&json!({})).0.content_hash());
        for flags in [
            json!({ "is_local": true }),
            json!({ "network": true }),
            json!({ "hidden": true }),
            json!({ "writes": true }),
            json!({ "category": "web" }),
            json!({ "timeout_s": 5 }),
            json!({ "permissions": ["SPEND"] }),
            json!({ "side_effect": "read" }),
            json!({ "fallbacks": ["a"] }),
            json!({ "usage": "u" }),
            json!({ "output_schema": { "type": "object" } }),
            json!({ "loop_warn_after": 2 }),
        ] {
            assert_ne!(base, read(&flags).0.content_hash(), "{flags}");
        }
        assert_eq!(base.len(), 64);
    }
}
