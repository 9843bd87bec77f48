//! Settings saves as a transaction: check, run `get_tools()` under the candidate, show the difference, then commit
//! settings and schemas together, or refuse and change nothing.

use super::load::Generation;
use super::set::{Entry, Plugins};
use super::swap;
use crate::base::error::{Error, Kind, Result};
use crate::base::event::Event;
use crate::script::diagnostic::Diagnostic;
use crate::script::value;
use crate::service::quarantine;
use crate::service::settings::{self, Field};
use crate::tool::registry::{LiveTool, Snapshot};
use crate::tool::spec::Spec;
use crate::tool::tokens;
use rhai::Map;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::Arc;

/// A change of a plugin's stored settings.
#[derive(Debug, Clone)]
pub enum Change {
    /// These keys get these values; the others stay.
    Patch(serde_json::Map<String, Value>),
    /// These keys go back to their defaults; all of them where the list is empty.
    Reset(Vec<String>),
}

/// Whether to commit or only to look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Change nothing; tell what would change.
    Preview,
    /// Commit.
    Commit,
}

/// What a settings change does to one tool's text, as a model reads it.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ToolChange {
    /// The tool.
    pub tool: String,
    /// A unified diff of the description; empty where it stays.
    pub description: String,
    /// A unified diff of the parameters as JSON; empty where they stay.
    pub parameters: String,
    /// Estimated tokens before.
    pub tokens_before: usize,
    /// Estimated tokens after.
    pub tokens_after: usize,
}

/// What a settings change came to.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Tuned {
    /// Whether it was committed.
    pub committed: bool,
    /// The effective settings under the change. Values of password fields are masked.
    pub settings: serde_json::Map<String, Value>,
    /// Tools whose text changes.
    pub tools: Vec<ToolChange>,
    /// Tools that would appear or vanish in the picker because a setting gates them.
    pub gated: Vec<String>,
    /// Names that `get_tools()` returned and that are not registered: they need a reload.
    pub ignored: Vec<String>,
    /// The new version of the stored settings.
    pub etag: String,
}

/// A plugin's settings as a person sees them.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(rename = "SettingsView")]
pub struct View {
    /// The fields, in order.
    pub fields: Vec<Field>,
    /// Effective values; those of password fields are masked.
    pub values: serde_json::Map<String, Value>,
    /// What a person set; the rest are defaults.
    pub stored: Vec<String>,
    /// Stored keys that no field knows, kept aside.
    pub unknown: Vec<String>,
    /// What does not fit and is ignored.
    pub notes: Vec<String>,
    /// Files of stored settings that could not be read and were set aside, each with what is wrong with it.
    pub set_aside: Vec<String>,
    /// The version of the stored settings.
    pub etag: String,
}

/// What stands for a value that is not shown.
pub const MASK: &str = "••••••";

impl Plugins {
    /// The settings of a plugin.
    ///
    /// # Errors
    /// `not_found` for a plugin that nobody knows or that has never loaded.
    pub fn settings_view(&self, name: &str) -> Result<View> {
        let generation = self.generation_for_settings(name)?;
        let stored = self.stored(name);
        let effective = settings::effective(&generation.fields, &stored);
        let paths = &self.loader.services.paths;
        Ok(View {
            fields: generation.fields.to_vec(),
            values: masked(&generation.fields, effective.values),
            unknown: stored.keys().filter(|k| !generation.fields.iter().any(|f| f.key == **k)).cloned().collect(),
            stored: stored.keys().cloned().collect(),
            notes: effective.notes,
            set_aside: quarantine::kept(&paths.settings_file(name), paths),
            etag: settings::etag_of(&stored),
        })
    }

    /// Files of a plugin's settings and state that could not be read and were set aside, each with what is wrong with it.
    #[must_use]
    pub fn set_aside(&self, name: &str) -> Vec<String> {
        let paths = &self.loader.services.paths;
        let files = [paths.settings_file(name), paths.state_file(name)];
        files.iter().flat_map(|file| quarantine::kept(file, paths)).collect()
    }

    pub(super) fn generation_for_settings(&self, name: &str) -> Result<Arc<Generation>> {
        let state = self.state();
        let entry = state.entries.get(name);
        match entry.map(|e| (e.live.clone(), e.enabled)) {
            Some((Some(generation), _)) => Ok(generation),
            Some((None, false)) => Err(Error::new(Kind::Disabled, format!("the plugin `{name}` is off"))
                .hint(format!("lapidary enable {name}"))),
            Some((None, true)) => Err(Error::not_found(format!(
                "the plugin `{name}` has not loaded yet, so its settings are not known"
            ))
            .hint(format!(
                "mend it first (lapidary info {name}), or take back what was set: lapidary settings reset {name}"
            ))),
            None => {
                drop(state);
                Err(self.unknown(name))
            }
        }
    }

    /// Changes stored settings, or tells what a change would do. With `etag`, only if nobody else changed them meanwhile.
    ///
    /// # Errors
    /// `invalid_arguments` naming the key for a value that does not fit or for a `get_tools()` that fails under the
    /// candidate; `conflict` for a stale `etag`. Nothing is changed then.
    pub fn tune(self: &Arc<Self>, name: &str, change: &Change, mode: Mode, etag: Option<&str>) -> Result<Tuned> {
        let generation = match (self.generation_for_settings(name), change) {
            (Err(e), Change::Reset(keys)) if mode == Mode::Commit && self.is_down(name) => {
                tracing::debug!(plugin = name, code = e.code(), "settings are taken back without a live version");
                return self.take_back(name, keys);
            }
            (generation, _) => generation?,
        };
        let store = &self.loader.services.settings;
        // A save by somebody else between check and commit starts it over; a stale form is refused at once.
        for _ in 0..20 {
            let stored = store.stored(name)?;
            let version = settings::etag_of(&stored);
            if etag.is_some_and(|wanted| wanted != version) {
                return Err(stale(name));
            }
            let candidate = candidate(&generation, &stored, change)?;
            let tried = self.tried(&generation, &candidate)?;
            let (tools, gated) = self.differences(name, &generation, &tried.fresh.specs, &tried.settings);
            let mut tuned = Tuned {
                committed: mode == Mode::Commit,
                settings: masked(&generation.fields, tried.effective.values),
                tools,
                gated,
                ignored: tried.fresh.ignored,
                etag: version.clone(),
            };
            if mode == Mode::Preview {
                return Ok(tuned);
            }
            match store.replace(name, candidate, Some(&version)) {
                Ok(stored) => tuned.etag = settings::etag_of(&stored),
                Err(e) if e.kind() == Kind::Conflict && etag.is_none() => continue,
                Err(e) => return Err(e),
            }
            self.take_in(name, &generation, tried.settings, tried.fresh.specs, tried.effective.notes);
            return Ok(tuned);
        }
        Err(stale(name))
    }

    /// The effective settings that these stored ones come to, and the schemas under them.
    fn tried(self: &Arc<Self>, generation: &Arc<Generation>, stored: &serde_json::Map<String, Value>) -> Result<Tried> {
        let effective = settings::effective(&generation.fields, stored);
        let settings = Arc::new(value::from_object(&effective.values)?);
        let fresh = self.fresh_schemas(generation, &settings)?;
        Ok(Tried { effective, settings, fresh })
    }

    /// The tools of a plugin as they would be under a change of its settings. Nothing is saved or swapped in.
    pub(super) fn under(self: &Arc<Self>, name: &str, change: &Change) -> Result<Under> {
        let generation = self.generation_for_settings(name)?;
        let stored = self.loader.services.settings.stored(name)?;
        let tried = self.tried(&generation, &candidate(&generation, &stored, change)?)?;
        Ok(Under {
            tools: swap::live_tools(&generation, &tried.settings, &tried.fresh.specs),
            settings: masked(&generation.fields, tried.effective.values),
            ignored: tried.fresh.ignored,
            etag: settings::etag_of(&stored),
        })
    }

    fn is_down(&self, name: &str) -> bool {
        self.state().entries.get(name).is_some_and(|e| e.enabled && e.live.is_none())
    }

    /// Takes stored values back from a plugin that does not load: they may be why. Then it is loaded again.
    fn take_back(self: &Arc<Self>, name: &str, keys: &[String]) -> Result<Tuned> {
        let store = &self.loader.services.settings;
        if keys.is_empty() {
            store.reset(name)?;
        } else {
            let patch = keys.iter().map(|key| (key.clone(), Value::Null)).collect();
            store.patch(name, &patch, None)?;
        }
        self.refresh(&[name.into()]);
        let view = self.settings_view(name);
        Ok(Tuned {
            committed: true,
            etag: view.as_ref().map(|v| v.etag.clone()).unwrap_or_default(),
            settings: view.map(|v| v.values).unwrap_or_default(),
            tools: Vec::new(),
            gated: Vec::new(),
            ignored: Vec::new(),
        })
    }

    /// The stored settings changed on disk: by hand, or by another process.
    pub fn settings_changed_on_disk(self: &Arc<Self>, name: &str) {
        let Ok(generation) = self.generation_for_settings(name) else { return };
        let effective = settings::effective(&generation.fields, &self.stored(name));
        let Ok(map) = value::from_object(&effective.values) else { return };
        let settings = Arc::new(map);
        if self.state().entries.get(name).is_some_and(|e| same_map(&e.settings, &settings)) {
            return;
        }
        let mut notes = effective.notes;
        let specs = match self.fresh_schemas(&generation, &settings) {
            Ok(fresh) => fresh.specs,
            Err(e) => {
                notes.push(format!(
                    "{}: the tools keep their old descriptions: {}",
                    swap::settings_file(name),
                    e.message()
                ));
                self.state().entries.get(name).map(|entry| entry.refreshed.clone()).unwrap_or_default()
            }
        };
        self.take_in(name, &generation, settings, specs, notes);
        self.bus.publish(Event::SettingsChanged { plugin: name.to_owned() });
    }

    /// Runs every `get_tools()` of the plugin under these settings, on a call thread.
    fn fresh_schemas(self: &Arc<Self>, generation: &Arc<Generation>, settings: &Arc<Map>) -> Result<Fresh> {
        if !generation.files.iter().any(|f| f.is_dynamic) {
            return Ok(Fresh { specs: HashMap::new(), ignored: Vec::new() });
        }
        let (me, generation, settings) = (self.clone(), generation.clone(), settings.clone());
        self.pool()
            .run(move || me.fresh_here(&generation, &settings))
            .unwrap_or_else(|| Err(Error::internal("get_tools() failed inside the host")))
    }

    fn fresh_here(&self, generation: &Generation, settings: &Arc<Map>) -> Result<Fresh> {
        let refuse = |d: Diagnostic| {
            Error::invalid(format!("the settings are refused: {}", d.summary()))
                .hint("nothing was changed; mend get_tools() or choose another value")
        };
        let mut specs = HashMap::new();
        let mut ignored = Vec::new();
        for file in generation.files.iter().filter(|f| f.is_dynamic) {
            let source = &file.unit.program.source.name;
            let mut list = self.loader.get_tools(&file.unit, settings.clone()).map_err(refuse)?;
            if list.is_empty() {
                // As at load: TOOLS counts then. Without it the next start would have no tool, so the save is refused.
                list = tools_constant(&file.unit.program);
            }
            if list.is_empty() {
                return Err(refuse(Diagnostic::error("schema", &**source, "get_tools() returned no tools")));
            }
            for (index, entry) in list.iter().enumerate() {
                let name = entry.pointer("/function/name").and_then(Value::as_str);
                let Some(draft) = name.and_then(|n| file.tools.iter().find(|d| d.spec.name == n)) else {
                    let shown = name.map_or_else(|| format!("TOOLS[{index}]"), str::to_owned);
                    // What was bad when the plugin loaded is known; what these settings make bad is not let in.
                    if !generation.quarantined.iter().any(|q| q.tool == shown) {
                        Spec::from_entry(entry).map_err(|why| {
                            refuse(Diagnostic::error("schema", &**source, format!("`{shown}`: {why}")))
                        })?;
                        ignored.push(shown);
                    }
                    continue;
                };
                let (fresh, _) = Spec::from_entry(entry).map_err(|why| {
                    refuse(Diagnostic::error("schema", &**source, format!("`{}`: {why}", draft.spec.name)))
                })?;
                // Only description and parameters; names and flags are what was loaded.
                specs.insert(draft.spec.name.clone(), Arc::new(draft.spec.refresh(&fresh)));
            }
        }
        Ok(Fresh { specs, ignored })
    }

    fn differences(
        &self,
        name: &str,
        generation: &Generation,
        specs: &HashMap<String, Arc<Spec>>,
        settings: &Arc<Map>,
    ) -> (Vec<ToolChange>, Vec<String>) {
        let snapshot = self.snapshot.load();
        let now = snapshot.of_plugin(name);
        let next = swap::live_tools(generation, settings, specs);
        let mut changes = Vec::new();
        let mut gated = Vec::new();
        for tool in &next {
            let Some(old) = now.iter().find(|t| t.spec.name == tool.spec.name) else { continue };
            if old.is_gated_off() != tool.is_gated_off() {
                gated.push(tool.spec.name.clone());
            }
            if let Some(change) = compare(&old.spec, &tool.spec) {
                changes.push(change);
            }
        }
        (changes, gated)
    }

    /// Swaps refreshed schemas and settings in, for the generation they were made for.
    fn take_in(
        self: &Arc<Self>,
        name: &str,
        generation: &Arc<Generation>,
        settings: Arc<Map>,
        specs: HashMap<String, Arc<Spec>>,
        notes: Vec<String>,
    ) {
        let key: Arc<str> = name.into();
        {
            let mut state = self.state();
            let Some(entry) = state.entries.get_mut(&key) else { return };
            // A reload came in between: it has read the new settings itself.
            if !is_live(entry, generation) {
                return;
            }
            entry.settings = settings.clone();
            entry.refreshed = specs;
            entry.notes =
                notes.into_iter().map(|n| Diagnostic::warning("settings", swap::settings_file(name), n)).collect();
            let tools = swap::live_tools(generation, &settings, &entry.refreshed);
            let rank = entry.rank;
            let mut next = Snapshot::clone(&self.snapshot.load());
            let changed = !swap::same_to_a_reader(next.of_plugin(name), &tools);
            if next.put(rank, &key, tools).is_ok() {
                next.put_routes(&key, swap::live_routes(generation, &settings));
                self.publish(next, changed);
            }
        }
    }
}

/// The file's static TOOLS, or nothing.
fn tools_constant(program: &crate::script::program::Program) -> Vec<Value> {
    match program.constants.get("TOOLS").map(value::to_json) {
        Some(Ok(Value::Array(list))) => list,
        _ => Vec::new(),
    }
}

/// Settings that were tried, and what came of them.
struct Tried {
    effective: settings::Effective,
    settings: Arc<Map>,
    fresh: Fresh,
}

/// A plugin as it would be under other settings.
pub(super) struct Under {
    pub(super) tools: Vec<Arc<LiveTool>>,
    /// Effective; those of password fields are masked.
    pub(super) settings: serde_json::Map<String, Value>,
    pub(super) ignored: Vec<String>,
    /// The version of the stored settings.
    pub(super) etag: String,
}

struct Fresh {
    specs: HashMap<String, Arc<Spec>>,
    ignored: Vec<String>,
}

fn is_live(entry: &Entry, generation: &Arc<Generation>) -> bool {
    entry.live.as_ref().is_some_and(|live| Arc::ptr_eq(live, generation))
}

fn stale(name: &str) -> Error {
    Error::new(Kind::Conflict, format!("the settings of `{name}` were changed meanwhile"))
        .hint("read them again, then save")
}

/// The stored settings as they would be.
fn candidate(
    generation: &Generation,
    stored: &serde_json::Map<String, Value>,
    change: &Change,
) -> Result<serde_json::Map<String, Value>> {
    let mut next = stored.clone();
    match change {
        Change::Patch(patch) => {
            for (key, value) in settings::check_patch(&generation.fields, patch)? {
                // A mask that comes back from a form is not a new password.
                if value == MASK && is_secret(&generation.fields, &key) {
                    continue;
                }
                next.insert(key, value);
            }
        }
        Change::Reset(keys) if keys.is_empty() => next.clear(),
        Change::Reset(keys) => {
            for key in keys {
                if next.remove(key).is_none() && !generation.fields.iter().any(|f| f.key == *key) {
                    return Err(Error::not_found(format!("`{}` has no setting `{key}`", generation.name())));
                }
            }
        }
    }
    Ok(next)
}

fn is_secret(fields: &[Field], key: &str) -> bool {
    fields.iter().any(|f| f.key == key && f.is_secret())
}

fn masked(fields: &[Field], mut values: serde_json::Map<String, Value>) -> serde_json::Map<String, Value> {
    for (key, value) in &mut values {
        let is_set = value.as_str().is_some_and(|s| !s.is_empty());
        if is_set && is_secret(fields, key) {
            *value = Value::from(MASK);
        }
    }
    values
}

/// What differs between two schemas of a tool, as a model reads them.
fn compare(old: &Spec, new: &Spec) -> Option<ToolChange> {
    let pretty = |v: &Value| serde_json::to_string_pretty(v).unwrap_or_default();
    let description =
        if old.description == new.description { String::new() } else { diff(&old.description, &new.description) };
    let parameters = if old.parameters == new.parameters {
        String::new()
    } else {
        diff(&pretty(&old.parameters), &pretty(&new.parameters))
    };
    if description.is_empty() && parameters.is_empty() {
        return None;
    }
    Some(ToolChange {
        tool: new.name.clone(),
        description,
        parameters,
        tokens_before: tokens::of_tool(old),
        tokens_after: tokens::of_tool(new),
    })
}

/// A unified diff with three lines around each change.
#[must_use]
pub fn diff(old: &str, new: &str) -> String {
    similar::TextDiff::from_lines(format!("{old}\n"), format!("{new}\n")).unified_diff().context_radius(3).to_string()
}

fn same_map(a: &Map, b: &Map) -> bool {
    let json = |m: &Map| value::to_json(&rhai::Dynamic::from_map(m.clone())).ok();
    json(a) == json(b)
}
