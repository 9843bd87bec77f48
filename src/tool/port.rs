//! The registry as the services see it: what the host module `tools` asks.

use super::dispatch::Dispatcher;
use super::registry::LiveTool;
use crate::service::ports::Tools;
use serde_json::{Map, Value, json};
use std::sync::{Arc, Weak};

/// Asks for a reload of a plugin, soon.
type Reload = Box<dyn Fn(&str) + Send + Sync>;

/// The port over a dispatcher.
pub struct ToolsPort {
    // The dispatcher owns the services, which own this port.
    dispatcher: Weak<Dispatcher>,
    reload: Reload,
}

impl ToolsPort {
    /// A port over `dispatcher`; `reload` is told the plugin that wants to be loaded again.
    #[must_use]
    pub fn new(dispatcher: &Arc<Dispatcher>, reload: impl Fn(&str) + Send + Sync + 'static) -> ToolsPort {
        ToolsPort { dispatcher: Arc::downgrade(dispatcher), reload: Box::new(reload) }
    }

    fn with<T: Default>(&self, ask: impl FnOnce(&super::registry::Snapshot) -> T) -> T {
        self.dispatcher.upgrade().map(|d| ask(&d.snapshot())).unwrap_or_default()
    }
}

fn meta(tool: &LiveTool) -> Value {
    json!({
        "name": tool.spec.name,
        "category": &*tool.category,
        "writes": tool.spec.writes,
        "module": tool.module(),
        "plugin": &*tool.plugin().name,
    })
}

impl Tools for ToolsPort {
    fn list(&self) -> Vec<Value> {
        self.with(|snapshot| {
            snapshot
                .iter()
                .filter(|t| !t.spec.hidden && !t.is_gated_off())
                .map(|t| {
                    let mut entry = meta(t);
                    entry["description"] = Value::from(t.spec.description.as_str());
                    entry
                })
                .collect()
        })
    }

    fn meta(&self, name: &str) -> Option<Value> {
        self.with(|snapshot| snapshot.get(name).map(|t| meta(t)))
    }

    fn categories(&self) -> Value {
        self.with(|snapshot| {
            let mut out = Map::new();
            for tool in snapshot.iter().filter(|t| !t.spec.hidden) {
                let list = out.entry(&*tool.category).or_insert_with(|| json!([]));
                if let Value::Array(list) = list {
                    list.push(Value::from(tool.spec.name.as_str()));
                }
            }
            Value::Object(out)
        })
    }

    fn in_category(&self, category: &str, writes: Option<bool>) -> Vec<String> {
        self.with(|snapshot| {
            snapshot
                .iter()
                .filter(|t| !t.spec.hidden && &*t.category == category && writes.is_none_or(|w| t.spec.writes == w))
                .map(|t| t.spec.name.clone())
                .collect()
        })
    }

    fn scope(&self, _name: &str) -> Option<String> {
        None
    }

    fn reload(&self, plugin: &str) {
        (self.reload)(plugin);
    }
}
