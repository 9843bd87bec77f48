//! `plugin.json` as it is written: what serde reads and what the JSON Schema shows to editors, from the same types.

use crate::service::permissions::Declared;
use crate::service::settings::Field;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// The manifest of a plugin folder.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[schemars(title = "plugin.json")]
pub(super) struct Shape {
    /// Where editors find this schema; the host does not read it.
    #[serde(rename = "$schema")]
    #[allow(dead_code, reason = "editors put it there")]
    pub schema: Option<String>,
    /// The plugin's name: the same as its folder's.
    #[schemars(regex(pattern = r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$"))]
    pub name: String,
    /// Title of 2 to 4 words.
    pub short_display_name: Option<String>,
    /// Longer title.
    pub display_name: Option<String>,
    /// Older form of `short_display_name`.
    pub short_name: Option<String>,
    /// Version of the plugin, such as `1.0.0`.
    pub version: Option<String>,
    /// What it does, in one or two sentences.
    pub description: Option<String>,
    /// Who wrote it.
    pub author: Option<String>,
    /// Where it comes from.
    pub url: Option<String>,
    /// A sign for lists: an emoji, or a picture in the plugin's folder.
    pub icon: Option<String>,
    /// An emoji for lists.
    pub emoji: Option<String>,
    /// Order among plugins, lowest first; 50 unless given.
    pub priority: Option<i64>,
    /// Whether it runs before the owner said anything; true unless given, since scripts hold no power of their own.
    pub default_enabled: Option<bool>,
    /// Whether its hooks run in private chats.
    #[serde(default)]
    pub privacy_aware: bool,
    /// Plugins that must be loaded before it, by name.
    #[serde(default)]
    pub requires_plugins: Vec<String>,
    /// Its id among all publishers' plugins: `namespace.name`.
    #[schemars(regex(pattern = r"^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)+$"))]
    pub id: Option<String>,
    /// Ids and names that stand for this plugin too.
    #[serde(default)]
    #[schemars(inner(regex(pattern = r"^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$")))]
    pub aliases: Vec<String>,
    /// What the plugin may do, once granted.
    #[serde(default)]
    #[allow(dead_code, reason = "read on its own, for errors with a hint")]
    pub permissions: Declared,
    /// Whether a call of its tools changes anything outside; a tool's own flag says it more exactly.
    #[serde(default)]
    pub side_effects: bool,
    /// Whether `fn get_system_context(ctx)` of its scripts adds a line to the AI's instructions.
    #[serde(default)]
    pub injects_context: bool,
    /// The script API it was written for: 1.
    #[schemars(range(min = 1, max = 1))]
    pub api_version: Option<u64>,
    /// The script function that turns older stored settings into today's.
    #[schemars(regex(pattern = r"^[A-Za-z_][A-Za-z0-9_]*$"))]
    pub migrate: Option<String>,
    /// What one call may use, instead of the host's defaults.
    #[serde(default)]
    pub limits: Limits,
    /// What the plugin brings.
    #[serde(default)]
    pub capabilities: CapabilitiesShape,
}

/// What one call of a plugin's tools may use. What is not given is the host's default.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Wall clock in seconds; waiting for a person does not count. 30 unless given.
    #[schemars(range(min = 1, max = Limits::MAX_TIMEOUT_S))]
    pub timeout_s: Option<u64>,
    /// Script operations. 50 million unless given.
    #[schemars(range(min = 1, max = Limits::MAX_OPERATIONS))]
    pub operations: Option<u64>,
    /// Script values, in MiB. 64 unless given.
    #[schemars(range(min = 1, max = Limits::MAX_MEMORY_MB))]
    pub memory_mb: Option<u64>,
    /// Characters of a result that reach the model at once. 200,000 unless given.
    #[schemars(range(min = 1, max = Limits::MAX_RESULT_CHARS))]
    pub result_chars: Option<u64>,
}

/// What the plugin brings. Capabilities that this host does not run yet may stand here; `info` names them.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[schemars(rename = "Capabilities")]
#[allow(dead_code, reason = "what is not active yet is read as it is; here it is for the schema")]
pub(super) struct CapabilitiesShape {
    /// Tool files, relative to the plugin's folder. Every `tools/*.rhai` where this is left out.
    #[schemars(inner(regex(pattern = r"^([^./\\:][^/\\:]*/)*[^./\\:][^/\\:]*\.rhai$")))]
    pub tools: Option<Vec<String>>,
    /// What a person can set.
    #[serde(default)]
    pub settings: Vec<Field>,
    /// Data partitions, such as one for each account.
    #[serde(default)]
    pub scopes: Vec<ScopeShape>,
    /// Paths under `user/` that an uninstall removes too: only the plugin's own.
    #[serde(default)]
    pub cleanup_paths: Vec<String>,
    /// Routes under `/api/plugin/<name>/`.
    #[serde(default)]
    pub routes: Vec<RouteShape>,
    /// Kinds of agents.
    pub agents: Option<Value>,
    /// Functions that run before or after what the host does.
    pub hooks: Option<Value>,
    /// Functions that run by the clock.
    pub schedule: Option<Value>,
    /// A function that runs as long as the host.
    pub daemon: Option<Value>,
    /// Pages of the plugin.
    pub web: Option<Value>,
}

/// A route and the function that answers it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Route")]
pub(super) struct RouteShape {
    /// `GET`, `POST`, `PUT` or `DELETE`; `GET` unless given.
    #[schemars(regex(pattern = r"^(GET|POST|PUT|DELETE)$"))]
    pub method: Option<String>,
    /// The path behind the plugin's name, such as `song/{id}`; a parameter stands for one segment.
    pub path: String,
    /// File and function, such as `routes/songs.rhai:serve`; the function `handle` where only a file is named.
    #[schemars(regex(pattern = r"^[^:]+\.rhai(:[A-Za-z_][A-Za-z0-9_]*)?$"))]
    pub handler: String,
    /// Whether it gives out media, which players ask for in many pieces: its `GET` is free of the limit of requests.
    #[serde(default)]
    pub media: bool,
}

/// A data partition key with a value for each chat.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Scope")]
pub(super) struct ScopeShape {
    /// The key that scripts use: an identifier.
    #[schemars(regex(pattern = r"^[A-Za-z_][A-Za-z0-9_]*$"))]
    pub key: String,
    /// What people read.
    #[serde(default)]
    pub label: String,
    /// A route that lists the values.
    pub endpoint: Option<String>,
    /// Where in that route's answer the list is.
    pub data_key: Option<String>,
    /// Which field of an entry is the value.
    pub value_field: Option<String>,
    /// Which field of an entry is its name.
    pub name_field: Option<String>,
    /// How an entry is shown.
    pub label_template: Option<String>,
    /// The page that manages the values.
    pub nav_target: Option<String>,
    /// The value of a chat that chose none; `default` unless given, `null` for switched off.
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "Option<String>")]
    pub default: Option<Option<String>>,
}

/// Tells `null` from a key that is not there.
fn given<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Option<String>>, D::Error> {
    Option::<String>::deserialize(deserializer).map(Some)
}
