//! One tool's schema: the flags an author wrote, what a model reads, what is checked before a call.
//! It knows no script and no registry: a JSON entry of `TOOLS` goes in, a `Spec` comes out.

use super::arguments::Compiled;
use super::{names, schema};
use crate::base::error::Fallback;
use crate::service::permissions::Permission;
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
}

/// What may stand in an entry of `TOOLS` beside `type` and `function`.
const FLAGS: [&str; 14] = [
    "is_local", "network", "hidden", "writes", "category", "loop_warn_after", "loop_warn_message", "timeout_s",
    "permissions", "side_effect", "side_effects", "fallbacks", "usage", "output_schema",
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
            Some(other) => return Err(format!("`function` is {}; it holds name, description and parameters", schema::describe(other))),
            None if entry.contains_key("name") => {
                return Err("`name` stands beside `type`; put name, description and parameters into `function: #{..}`".to_owned());
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
            Some(other) => return Err(format!("`function.description` is {}; it must be a text", schema::describe(other))),
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
                    warnings.push(format!("`writes` is {} and counts as true; it is true or false", schema::describe(value)));
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
                Value::Array(entries) => self.fallbacks = entries.iter().filter_map(|f| fallback(f, warnings)).collect(),
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

    fn read_permission(&mut self, word: &Value, warnings: &mut Vec<String>) {
        match word.as_str().and_then(Permission::parse) {
            Some(permission) if self.permissions.contains(&permission) => {}
            Some(permission) => self.permissions.push(permission),
            None => warnings.push(format!("the permission {} is unknown and was ignored", schema::describe(word))),
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
        let digest = Sha256::digest(declared.to_string().as_bytes());
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
        Value::Object(map) => (map.get("tool").and_then(Value::as_str), map.get("when").and_then(Value::as_str).unwrap_or("")),
        _ => (None, ""),
    };
    match tool {
        Some(tool) if names::check(tool).is_ok() => Some(Fallback { tool: tool.to_owned(), when: when.to_owned() }),
        _ => {
            warnings.push(format!("the fallback {} names no tool and was ignored; write #{{ tool: .., when: .. }}", schema::describe(value)));
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
        }
    }
}

impl fmt::Debug for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spec").field("name", &self.name).field("parameters", &self.parameters).finish_non_exhaustive()
    }
}
