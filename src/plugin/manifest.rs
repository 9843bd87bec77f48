//! What a plugin says about itself: `plugin.json` read, checked, and explained where it is wrong.
//! It looks at the text alone: whether files exist and scripts load is the loader's.

pub mod locate;
mod shape;
#[cfg(test)]
mod tests;

pub use shape::Limits;

use crate::base::json;
use crate::base::paths::valid_plugin_name;
use crate::script::control::Budget;
use crate::script::diagnostic::{Diagnostic, Severity};
use crate::service::permissions::Declared;
use crate::service::settings::Field;
use crate::tool::names::did_you_mean;
use crate::tool::route::{Method, Pattern};
use locate::{Step, locate, shown, steps_to};
use serde_json::{Map, Value};
use shape::{RouteShape, ScopeShape, Shape};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// The script API of this host.
pub const API_VERSION: u64 = 1;
/// The place in the order of a plugin that names none.
pub const PRIORITY: i64 = 50;
/// Characters of a title.
const TITLE: usize = 40;

const KEYS: [&str; 24] = [
    "$schema",
    "name",
    "short_display_name",
    "display_name",
    "short_name",
    "version",
    "description",
    "author",
    "url",
    "icon",
    "emoji",
    "priority",
    "default_enabled",
    "privacy_aware",
    "requires_plugins",
    "id",
    "aliases",
    "permissions",
    "side_effects",
    "injects_context",
    "api_version",
    "migrate",
    "limits",
    "capabilities",
];
/// Keys of related hosts that have no meaning in this one.
const FOREIGN: [&str; 7] =
    ["surfaces", "essential", "managed_hide", "settingsUI", "min_core_version", "pip_dependencies", "environment"];
const ACTIVE: [&str; 5] = ["tools", "settings", "scopes", "cleanup_paths", "routes"];
const LATER: [&str; 5] = ["agents", "hooks", "schedule", "daemon", "web"];

/// A checked manifest.
#[derive(Debug, Clone, PartialEq)]
pub struct Manifest {
    /// The plugin's name.
    pub name: String,
    /// Title of 2 to 4 words.
    pub short_display_name: Option<String>,
    /// Longer title.
    pub display_name: Option<String>,
    /// Older form of the short title.
    pub short_name: Option<String>,
    /// Version of the plugin.
    pub version: Option<String>,
    /// What it does.
    pub description: Option<String>,
    /// Who wrote it.
    pub author: Option<String>,
    /// Where it comes from.
    pub url: Option<String>,
    /// A picture in its folder, or an emoji.
    pub icon: Option<String>,
    /// An emoji.
    pub emoji: Option<String>,
    /// Order among plugins, lowest first.
    pub priority: i64,
    /// Whether it runs before the owner said anything.
    pub default_enabled: bool,
    /// Whether its hooks run in private chats.
    pub privacy_aware: bool,
    /// Plugins that must be loaded before it.
    pub requires_plugins: Vec<String>,
    /// `namespace.name`.
    pub id: Option<String>,
    /// Ids and names that stand for it too.
    pub aliases: Vec<String>,
    /// What it may do, once granted.
    pub permissions: Declared,
    /// Whether a call of its tools changes anything outside.
    pub side_effects: bool,
    /// Whether it adds a line to the AI's instructions.
    pub injects_context: bool,
    /// The script API it was written for.
    pub api_version: u64,
    /// The function that turns older settings into today's.
    pub migrate: Option<String>,
    /// What one call may use.
    pub limits: Limits,
    /// What it brings.
    pub capabilities: Capabilities,
}

/// What a plugin brings.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Capabilities {
    /// Tool files by path in the plugin; `None` for every `tools/*.rhai`, sorted.
    pub tools: Option<Vec<String>>,
    /// What a person can set.
    pub settings: Vec<Field>,
    /// Data partitions.
    pub scopes: Vec<ScopeField>,
    /// What an uninstall removes too, as `user/..` paths.
    pub cleanup_paths: Vec<String>,
    /// What answers under `/api/plugin/<name>/`.
    pub routes: Vec<RouteField>,
    /// Names of what stands here and is not active yet, in the manifest's order.
    pub inactive: Vec<String>,
    /// That, as it is written.
    pub later: Map<String, Value>,
}

/// A route, as a manifest declares it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RouteField {
    /// Its method.
    pub method: Method,
    /// Its path behind the plugin's name.
    pub path: Arc<Pattern>,
    /// The file of its handler, in the plugin's folder.
    pub file: String,
    /// The handler's function.
    pub function: String,
    /// Whether it gives out media.
    pub media: bool,
}

/// A data partition key, as a manifest declares it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScopeField {
    /// The key that scripts use.
    pub key: String,
    /// What people read.
    pub label: String,
    /// The value of a chat that chose none; `None` where the scope is closed by default.
    pub default: Option<String>,
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
}

impl Limits {
    /// The longest deadline that a plugin may ask for, in seconds.
    pub const MAX_TIMEOUT_S: u64 = 600;
    /// The most operations that a plugin may ask for.
    pub const MAX_OPERATIONS: u64 = 1_000_000_000;
    /// The most memory that a plugin may ask for, in MiB.
    pub const MAX_MEMORY_MB: u64 = 512;
    /// The longest result that a plugin may ask for, in characters.
    pub const MAX_RESULT_CHARS: u64 = 2_000_000;
    /// Characters of a result where the plugin does not say.
    pub const RESULT_CHARS: usize = 200_000;

    /// The budget of one call.
    #[must_use]
    pub fn budget(&self) -> Budget {
        let host = Budget::CALL;
        Budget {
            deadline: self.timeout_s.map_or(host.deadline, Duration::from_secs),
            operations: self.operations.unwrap_or(host.operations),
            memory: self.memory_mb.map_or(host.memory, |mb| mb << 20),
        }
    }

    /// Characters of a result that reach the model at once.
    #[must_use]
    pub fn result_chars(&self) -> usize {
        self.result_chars.and_then(|n| usize::try_from(n).ok()).unwrap_or(Limits::RESULT_CHARS)
    }

    fn rows(&self) -> [(&'static str, Option<u64>, u64); 4] {
        [
            ("timeout_s", self.timeout_s, Limits::MAX_TIMEOUT_S),
            ("operations", self.operations, Limits::MAX_OPERATIONS),
            ("memory_mb", self.memory_mb, Limits::MAX_MEMORY_MB),
            ("result_chars", self.result_chars, Limits::MAX_RESULT_CHARS),
        ]
    }
}

impl Manifest {
    /// Reads a manifest. `file` is what people call it, `folder` the name of the plugin's folder.
    /// Beside the manifest come its warnings, and errors about single entries that were left out: the rest of it holds.
    ///
    /// # Errors
    /// What makes it unusable, each with its line: no JSON, a repeated key, no name or another than the folder's, a value of the
    /// wrong type, an unknown permission, a limit above the host's, another script API.
    pub fn parse(text: &str, file: &str, folder: &str) -> Result<(Manifest, Vec<Diagnostic>), Vec<Diagnostic>> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut reader = Reader { text, file, found: Vec::new() };
        let manifest = reader.manifest(folder);
        match manifest {
            Some(manifest) => Ok((manifest, reader.found)),
            None => Err(reader.found),
        }
    }

    /// The manifest of a plugin that is one tool file.
    #[must_use]
    pub fn single_file(name: &str) -> Manifest {
        Manifest {
            name: name.to_owned(),
            short_display_name: None,
            display_name: None,
            short_name: None,
            version: None,
            description: None,
            author: None,
            url: None,
            icon: None,
            emoji: None,
            priority: PRIORITY,
            default_enabled: true,
            privacy_aware: false,
            requires_plugins: Vec::new(),
            id: None,
            aliases: Vec::new(),
            permissions: Declared::default(),
            side_effects: false,
            injects_context: false,
            api_version: API_VERSION,
            migrate: None,
            limits: Limits::default(),
            capabilities: Capabilities::default(),
        }
    }

    /// JSON Schema of `plugin.json`, draft 2020-12, for editors.
    #[must_use]
    pub fn json_schema() -> Value {
        schemars::generate::SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<Shape>().to_value()
    }

    /// What people call it, at most 40 characters: a display name, the first clause of the description, or the name.
    #[must_use]
    pub fn title(&self) -> String {
        let given = [&self.short_display_name, &self.display_name, &self.short_name];
        let given = given.into_iter().flatten().map(|text| text.trim()).find(|text| !text.is_empty());
        let clause = || {
            let text = self.description.as_deref()?;
            let end = text.find(['.', ',', ';', ':', '(', '\n', '—', '–']).unwrap_or(text.len());
            Some(text[..end].trim()).filter(|clause| !clause.is_empty())
        };
        let title = given.or_else(clause).unwrap_or(&self.name);
        if title.chars().count() <= TITLE {
            return title.to_owned();
        }
        let head: String = title.chars().take(TITLE - 1).collect();
        format!("{}…", head.trim_end())
    }
}

struct Reader<'a> {
    text: &'a str,
    file: &'a str,
    found: Vec<Diagnostic>,
}

impl Reader<'_> {
    fn place(&self, diagnostic: Diagnostic, steps: &[Step]) -> Diagnostic {
        let (line, column) = locate(self.text, steps);
        diagnostic.at(self.text, line, column)
    }

    fn error(&mut self, steps: &[Step], message: impl Into<String>, hint: &str) {
        let diagnostic = Diagnostic::error("manifest", self.file, message);
        let diagnostic = if hint.is_empty() { diagnostic } else { diagnostic.hint(hint) };
        let diagnostic = self.place(diagnostic, steps);
        self.found.push(diagnostic);
    }

    fn warning(&mut self, steps: &[Step], message: impl Into<String>, hint: &str) {
        self.error(steps, message, hint);
        if let Some(last) = self.found.last_mut() {
            last.severity = Severity::Warning;
        }
    }

    fn manifest(&mut self, folder: &str) -> Option<Manifest> {
        let mut top = self.object()?;
        let mut later = Map::new();
        self.unknown_keys(&mut top);
        self.priority(&mut top);
        if let Some(Value::Object(capabilities)) = top.get_mut("capabilities") {
            later = self.later(capabilities);
        }
        let warnings = self.found.len();
        let permissions = self.permissions(top.shift_remove("permissions"));
        if !top.contains_key("name") {
            self.error(&[], "the manifest has no `name`", &format!("add \"name\": \"{folder}\""));
        }
        // A missing name has been said; the rest shall be too.
        top.entry("name").or_insert_with(|| folder.into());
        let shape = self.shape(top)?;
        self.check(&shape, folder);
        if self.found.len() > warnings {
            return None;
        }
        Some(self.finish(shape, permissions, later))
    }

    fn object(&mut self) -> Option<Map<String, Value>> {
        match json::parse_unique(self.text) {
            Ok(Value::Object(map)) => Some(map),
            Ok(_) => {
                self.error(&[], "a manifest is a JSON object", "write { \"name\": \"..\" }");
                None
            }
            Err(e) => {
                let place = if e.path.is_empty() { String::new() } else { format!("at `{}`: ", e.path) };
                let diagnostic =
                    Diagnostic::error("manifest", self.file, format!("not valid JSON: {place}{}", e.message));
                self.found.push(diagnostic.at(self.text, e.line, e.column));
                None
            }
        }
    }

    fn unknown_keys(&mut self, top: &mut Map<String, Value>) {
        let unknown: Vec<String> = top.keys().filter(|key| !KEYS.contains(&key.as_str())).cloned().collect();
        for key in unknown {
            top.shift_remove(&key);
            let steps = [Step::Key(&key)];
            if FOREIGN.contains(&key.as_str()) {
                self.warning(&steps, format!("`{key}` has no meaning in this host and is ignored"), "");
                continue;
            }
            let hint = match did_you_mean(&key, KEYS, 1).first() {
                Some(near) => format!("did you mean `{near}`?"),
                None => String::new(),
            };
            self.warning(&steps, format!("there is no key `{}`; it is ignored", shown(&steps)), &hint);
        }
    }

    fn priority(&mut self, top: &mut Map<String, Value>) {
        let Some(value) = top.get("priority").filter(|value| !value.is_i64()) else { return };
        let message = format!("`priority` is not a whole number, but {}; {PRIORITY} is used", brief(value));
        self.warning(&[Step::Key("priority")], message, "");
        top.shift_remove("priority");
    }

    /// Takes out what is not active yet.
    fn later(&mut self, capabilities: &mut Map<String, Value>) -> Map<String, Value> {
        let names: Vec<String> = capabilities.keys().filter(|key| !ACTIVE.contains(&key.as_str())).cloned().collect();
        let mut later = Map::new();
        for name in names {
            if !LATER.contains(&name.as_str())
                && let Some(near) = did_you_mean(&name, ACTIVE.into_iter().chain(LATER), 1).first()
            {
                let steps = [Step::Key("capabilities"), Step::Key(&name)];
                self.warning(
                    &steps,
                    format!("there is no capability `{}`", shown(&steps[1..])),
                    &format!("did you mean `{near}`?"),
                );
            }
            if let Some(value) = capabilities.shift_remove(&name) {
                later.insert(name, value);
            }
        }
        later
    }

    fn permissions(&mut self, value: Option<Value>) -> Declared {
        match Declared::parse(&value.unwrap_or(Value::Null)) {
            Ok(declared) => declared,
            Err(e) => {
                self.error(
                    &[Step::Key("permissions")],
                    format!("`permissions`: {}", e.message()),
                    e.hint_text().unwrap_or_default(),
                );
                Declared::default()
            }
        }
    }

    fn shape(&mut self, top: Map<String, Value>) -> Option<Shape> {
        let error = match serde_path_to_error::deserialize(Value::Object(top)) {
            Ok(shape) => return Some(shape),
            Err(error) => error,
        };
        let steps = steps_to(error.path());
        let message = format!("`{}`: {}", shown(&steps), json::plain_words(&error.inner().to_string()));
        self.error(&steps, message, "");
        None
    }

    /// What no type says. Each finding makes the manifest unusable.
    fn check(&mut self, shape: &Shape, folder: &str) {
        let name = &shape.name;
        if let Err(e) = valid_plugin_name(name) {
            self.error(&[Step::Key("name")], e.message(), "");
        } else if name != folder {
            let hint = format!("rename the folder to `{name}`, or write \"name\": \"{folder}\"");
            self.error(&[Step::Key("name")], format!("the name `{name}` is not that of its folder, `{folder}`"), &hint);
        }
        if let Some(version) = shape.api_version.filter(|version| *version != API_VERSION) {
            let message = format!("the plugin was written for script API {version}; this host has {API_VERSION}");
            self.error(
                &[Step::Key("api_version")],
                message,
                "use a newer host, or a version of the plugin for this one",
            );
        }
        for (key, value, most) in shape.limits.rows() {
            if let Some(value) = value.filter(|value| !(1..=most).contains(value)) {
                let steps = [Step::Key("limits"), Step::Key(key)];
                self.error(&steps, format!("`limits.{key}` is {value}; it can be 1 to {most}"), "");
            }
        }
        if shape.id.as_ref().is_some_and(|id| !(is_id(id) && id.contains('.'))) {
            self.error(
                &[Step::Key("id")],
                "`id` is not of the form `namespace.name`",
                "use letters, digits, `_` and `-`",
            );
        }
        for (i, alias) in shape.aliases.iter().enumerate().filter(|(_, alias)| !is_id(alias)) {
            let steps = [Step::Key("aliases"), Step::Index(i)];
            self.error(&steps, format!("{} is neither a name nor an id", brief(&Value::from(alias.as_str()))), "");
        }
        for (i, needed) in shape.requires_plugins.iter().enumerate() {
            let steps = [Step::Key("requires_plugins"), Step::Index(i)];
            if let Err(e) = valid_plugin_name(needed) {
                self.error(&steps, e.message(), "");
            } else if needed == name {
                self.error(&steps, "a plugin cannot require itself", "");
            }
        }
        if shape.migrate.as_ref().is_some_and(|function| !is_identifier(function)) {
            self.error(&[Step::Key("migrate")], "`migrate` is not the name of a function", "");
        }
        let mut keys = BTreeSet::new();
        for (i, field) in shape.capabilities.settings.iter().enumerate() {
            let steps = [Step::Key("capabilities"), Step::Key("settings"), Step::Index(i)];
            if let Err(e) = field.validate() {
                self.error(&steps, e.message(), e.hint_text().unwrap_or_default());
            } else if !keys.insert(field.key.as_str()) {
                self.error(&steps, format!("the setting `{}` is declared twice", field.key), "");
            }
        }
    }

    /// From here on an entry that is wrong is left out, and the others stay.
    fn finish(&mut self, shape: Shape, permissions: Declared, later: Map<String, Value>) -> Manifest {
        let declared = shape.capabilities;
        let is_empty = |value: &Value| match value {
            Value::Null => true,
            Value::Array(list) => list.is_empty(),
            Value::Object(map) => map.is_empty(),
            _ => false,
        };
        let capabilities = Capabilities {
            tools: declared.tools.map(|paths| self.tools(paths)),
            settings: declared.settings,
            scopes: self.scopes(declared.scopes),
            cleanup_paths: self.cleanup_paths(&shape.name, declared.cleanup_paths),
            routes: self.routes(declared.routes),
            inactive: later.iter().filter(|(_, value)| !is_empty(value)).map(|(name, _)| name.clone()).collect(),
            later,
        };
        Manifest {
            name: shape.name,
            short_display_name: shape.short_display_name,
            display_name: shape.display_name,
            short_name: shape.short_name,
            version: shape.version,
            description: shape.description,
            author: shape.author,
            url: shape.url,
            icon: shape.icon,
            emoji: shape.emoji,
            priority: shape.priority.unwrap_or(PRIORITY),
            default_enabled: shape.default_enabled.unwrap_or(true),
            privacy_aware: shape.privacy_aware,
            requires_plugins: shape.requires_plugins,
            id: shape.id,
            aliases: shape.aliases,
            permissions,
            side_effects: shape.side_effects,
            injects_context: shape.injects_context,
            api_version: shape.api_version.unwrap_or(API_VERSION),
            migrate: shape.migrate,
            limits: shape.limits,
            capabilities,
        }
    }

    fn routes(&mut self, routes: Vec<RouteShape>) -> Vec<RouteField> {
        let mut kept: Vec<RouteField> = Vec::new();
        for (i, route) in routes.into_iter().enumerate() {
            let wrong = |reader: &mut Self, key: &str, message: String, hint: &str| {
                let steps = [Step::Key("capabilities"), Step::Key("routes"), Step::Index(i), Step::Key(key)];
                reader.error(&steps, message, hint);
            };
            let word = route.method.as_deref().unwrap_or("GET").to_ascii_uppercase();
            let Some(method) = Method::parse(&word) else {
                let named = brief(&Value::from(word));
                wrong(self, "method", format!("{named} is no method of a route"), "use GET, POST, PUT or DELETE");
                continue;
            };
            let path = match Pattern::parse(&route.path) {
                Ok(path) => path,
                Err(e) => {
                    wrong(self, "path", e.message().to_owned(), e.hint_text().unwrap_or_default());
                    continue;
                }
            };
            let (file, function) = route.handler.split_once(':').unwrap_or((&route.handler, "handle"));
            if !is_inside(file) || !file.ends_with(".rhai") || !is_identifier(function) {
                let named = brief(&Value::from(route.handler.as_str()));
                wrong(self, "handler", format!("{named} is no handler"), "write it as `routes/name.rhai:function`");
            } else if kept.iter().any(|other| other.method == method && other.path.is_same_as(&path)) {
                wrong(self, "path", format!("the route {word} {path} is declared twice"), "");
            } else {
                kept.push(RouteField {
                    method,
                    path: Arc::new(path),
                    file: file.to_owned(),
                    function: function.to_owned(),
                    media: route.media,
                });
            }
        }
        kept
    }

    fn tools(&mut self, paths: Vec<String>) -> Vec<String> {
        let mut kept: Vec<String> = Vec::new();
        for (i, path) in paths.into_iter().enumerate() {
            let steps = [Step::Key("capabilities"), Step::Key("tools"), Step::Index(i)];
            let named = brief(&Value::from(path.as_str()));
            if !is_inside(&path) {
                self.error(
                    &steps,
                    format!("{named} is not a path in the plugin's folder"),
                    "write it from there, as `tools/name.rhai`",
                );
            } else if !path.ends_with(".rhai") {
                self.error(&steps, format!("{named} is no Rhai script"), "a tool file ends in `.rhai`");
            } else if kept.contains(&path) {
                self.warning(&steps, format!("{named} stands here twice"), "");
            } else {
                kept.push(path);
            }
        }
        kept
    }

    fn scopes(&mut self, scopes: Vec<ScopeShape>) -> Vec<ScopeField> {
        let mut kept: Vec<ScopeField> = Vec::new();
        for (i, scope) in scopes.into_iter().enumerate() {
            let steps = [Step::Key("capabilities"), Step::Key("scopes"), Step::Index(i)];
            if !is_identifier(&scope.key) {
                let named = brief(&Value::from(scope.key));
                self.error(
                    &steps,
                    format!("the scope key {named} is no identifier"),
                    "use letters, digits and `_`, first a letter",
                );
            } else if kept.iter().any(|other| other.key == scope.key) {
                self.error(&steps, format!("the scope `{}` is declared twice", scope.key), "");
            } else {
                kept.push(ScopeField {
                    label: if scope.label.is_empty() { scope.key.clone() } else { scope.label },
                    key: scope.key,
                    default: scope.default.unwrap_or_else(|| Some("default".to_owned())),
                    endpoint: scope.endpoint,
                    data_key: scope.data_key,
                    value_field: scope.value_field,
                    name_field: scope.name_field,
                    label_template: scope.label_template,
                    nav_target: scope.nav_target,
                });
            }
        }
        kept
    }

    fn cleanup_paths(&mut self, name: &str, paths: Vec<String>) -> Vec<String> {
        let mut kept = Vec::new();
        for (i, path) in paths.into_iter().enumerate() {
            let steps = [Step::Key("capabilities"), Step::Key("cleanup_paths"), Step::Index(i)];
            let inner = path.strip_prefix("user/").unwrap_or(&path).trim_end_matches('/');
            if is_inside(inner) && is_own(name, inner) {
                kept.push(format!("user/{inner}"));
            } else {
                let hint = format!(
                    "it can be under user/plugins/{name}/, or in user/plugin_state/ or user/webui/plugins/ with a name that begins with `{name}`"
                );
                self.error(&steps, format!("{} is not the plugin's own to remove", brief(&Value::from(path))), &hint);
            }
        }
        kept
    }
}

/// Whether a path under `user/` belongs to the plugin alone.
fn is_own(name: &str, path: &str) -> bool {
    let named = |entry: &str| {
        entry == name || entry.strip_prefix(name).is_some_and(|rest| rest == ".json" || rest.starts_with(['-', '_']))
    };
    match path.split('/').collect::<Vec<_>>().as_slice() {
        ["plugins", folder, ..] => *folder == name,
        ["plugin_state", entry, ..] | ["webui", "plugins", entry] => named(entry),
        _ => false,
    }
}

/// Names with `/` between them, from the folder down, none hidden.
fn is_inside(path: &str) -> bool {
    !path.is_empty()
        && path.len() <= 400
        && !path.contains(['\\', ':'])
        && !path.chars().any(char::is_control)
        && path.split('/').all(|name| !name.is_empty() && !name.starts_with('.'))
}

fn is_identifier(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && word.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

fn is_id(word: &str) -> bool {
    word.split('.')
        .all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-')))
}

/// A value, short enough for a message.
fn brief(value: &Value) -> String {
    let text = value.to_string();
    if text.chars().count() <= 80 { text } else { text.chars().take(79).chain(['…']).collect() }
}
