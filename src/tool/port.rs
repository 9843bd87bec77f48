//! The registry as the services see it: what the host module `tools` asks.

use super::dispatch::Dispatcher;
use super::registry::Snapshot;
use super::toolset::{self, Catalog, Entry};
use crate::service::ports::Tools;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// A plugin is loaded again at most once in this time at its own wish.
const BETWEEN_RELOADS_MS: i64 = 5_000;

/// Asks for a reload of a plugin, soon.
type Reload = Box<dyn Fn(&str) + Send + Sync>;

/// The port over a dispatcher.
pub struct ToolsPort {
    // The dispatcher owns the services, which own this port.
    dispatcher: Weak<Dispatcher>,
    reload: Reload,
    /// When each plugin's wish was last followed.
    reloaded: Mutex<HashMap<String, i64>>,
}

impl ToolsPort {
    /// A port over `dispatcher`; `reload` is told the plugin that wants to be loaded again.
    #[must_use]
    pub fn new(dispatcher: &Arc<Dispatcher>, reload: impl Fn(&str) + Send + Sync + 'static) -> ToolsPort {
        ToolsPort { dispatcher: Arc::downgrade(dispatcher), reload: Box::new(reload), reloaded: Mutex::default() }
    }

    fn with<T: Default>(&self, ask: impl FnOnce(&Catalog) -> T) -> T {
        let Some(dispatcher) = self.dispatcher.upgrade() else { return T::default() };
        let snapshot = dispatcher.snapshot();
        let owned = dispatcher.services().scopes.owners();
        ask(&catalog(&snapshot, &owned))
    }
}

/// The snapshot as the toolset rules see it. `scopes` are the settable scopes by the plugin that owns them.
#[must_use]
pub fn catalog<'a>(snapshot: &'a Snapshot, scopes: &'a [(Arc<str>, Arc<str>)]) -> Catalog<'a> {
    Catalog::new(snapshot.iter().map(|tool| Entry {
        name: &tool.spec.name,
        module: tool.module(),
        plugin: &tool.plugin().name,
        category: &tool.category,
        hidden: tool.spec.hidden,
        writes: tool.spec.writes,
        gated_off: tool.is_gated_off(),
    }))
    .with_scopes(scopes.iter().map(|(plugin, key)| (&**plugin, &**key)))
}

impl Tools for ToolsPort {
    fn list(&self) -> Vec<Value> {
        let Some(dispatcher) = self.dispatcher.upgrade() else { return Vec::new() };
        let snapshot = dispatcher.snapshot();
        let catalog = catalog(&snapshot, &[]);
        snapshot
            .iter()
            .filter(|t| t.is_offered())
            .filter_map(|t| {
                let mut entry = toolset::meta(&catalog, &t.spec.name)?;
                entry["name"] = Value::from(t.spec.name.as_str());
                entry["description"] = Value::from(t.spec.description.as_str());
                entry["parameters"] = t.spec.parameters.clone();
                Some(entry)
            })
            .collect()
    }

    fn meta(&self, name: &str) -> Option<Value> {
        self.with(|catalog| toolset::meta(catalog, name))
    }

    fn categories(&self) -> Value {
        self.with(|catalog| {
            let list = toolset::categories(catalog).into_iter();
            Value::Object(list.map(|(category, names)| (category.to_owned(), Value::from(names))).collect())
        })
    }

    fn in_category(&self, category: &str, writes: Option<bool>) -> Vec<String> {
        self.with(|catalog| toolset::in_category(catalog, category, writes).into_iter().map(str::to_owned).collect())
    }

    fn scope(&self, name: &str) -> Option<String> {
        self.with(|catalog| toolset::tool_scope(catalog, name).map(str::to_owned))
    }

    fn reload(&self, plugin: &str) {
        let Some(dispatcher) = self.dispatcher.upgrade() else { return };
        let now = dispatcher.services().clock.unix_ms();
        {
            let mut reloaded = self.reloaded.lock().unwrap_or_else(PoisonError::into_inner);
            // A clock that was set back counts as time gone by.
            if reloaded.get(plugin).is_some_and(|last| (0..BETWEEN_RELOADS_MS).contains(&(now - last))) {
                return;
            }
            reloaded.insert(plugin.to_owned(), now);
        }
        (self.reload)(plugin);
    }
}
