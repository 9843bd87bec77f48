//! The tools of one moment: an immutable snapshot that a call, a turn or a list holds while newer ones take its place.
//! It knows what a tool is and whose it is; loading and permission are decided elsewhere.

use super::doc::ParamPlan;
pub use super::gate::Absence;
use super::names;
use super::pace::Pace;
use super::route::LiveRoute;
use super::spec::Spec;
use crate::base::error::{Error, Result};
use crate::script::control::Budget;
use crate::script::ctx::{Ctx, PluginCtx};
use crate::script::program::Program;
use crate::script::resolver::Imports;
use rhai::Map;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// How the tools of a file are called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// `execute(function_name, arguments, config ..)`.
    Execute(Execute),
    /// One function a tool, arguments by position.
    Functions,
}

/// What an `execute` takes. What its script never reads need not be copied for each call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Execute {
    /// How many parameters it has: 3, 4 or 5.
    pub count: u8,
    /// Whether the script reads its `config`.
    pub config: bool,
    /// Whether the script reads its `plugin_settings`.
    pub settings: bool,
}

/// One loaded file of one generation: what its tools share. The last one to let go runs its `shutdown`.
pub struct Unit {
    /// The plugin, with what its scripts may do.
    pub plugin: Arc<PluginCtx>,
    /// Generation of the plugin.
    pub generation: u64,
    /// The module key of behaviour: `plugin_<plugin>_<file stem>`.
    pub module: Arc<str>,
    /// How its tools are called.
    pub form: Form,
    /// The loaded file.
    pub program: Program,
    /// What it imported.
    pub imports: Arc<Imports>,
    /// What one call may use.
    pub budget: Budget,
    /// Longest result in characters; the rest goes behind a handle.
    pub result_chars: usize,
    /// Told once, when nothing can call this file any more; only of a file that was live.
    pub retired: Option<Retired>,
    /// Whether it ever was live: a build that was never swapped in has nothing to shut down.
    pub was_live: AtomicBool,
}

/// Runs when a unit is no longer callable: hands its program over so that `shutdown()` can run.
pub type Retired = Box<dyn Fn(Gone) + Send + Sync>;

/// What is left of a unit that nothing can call any more.
pub struct Gone {
    /// The plugin.
    pub plugin: Arc<PluginCtx>,
    /// Its generation.
    pub generation: u64,
    /// The file, still able to run `shutdown`.
    pub program: Program,
    /// What it imported.
    pub imports: Arc<Imports>,
}

impl Drop for Unit {
    fn drop(&mut self) {
        if let Some(retired) = self.retired.take()
            && *self.was_live.get_mut()
            && self.program.function("shutdown").is_some()
        {
            let source = self.program.source.clone();
            let program = std::mem::replace(&mut self.program, Program::empty(source));
            retired(Gone {
                plugin: self.plugin.clone(),
                generation: self.generation,
                program,
                imports: self.imports.clone(),
            });
        }
    }
}

/// A tool of the embedding program, in Rust.
pub trait NativeTool: Send + Sync {
    /// Runs it on a call thread. The arguments are coerced, filled with defaults and validated.
    ///
    /// # Errors
    /// The failure that the caller sees.
    fn call(&self, ctx: &Arc<Ctx>, arguments: &serde_json::Map<String, Value>) -> Result<Value>;
}

/// What runs when a tool is called.
#[derive(Clone)]
pub enum Code {
    /// A function of a script.
    Script(Arc<Unit>),
    /// A function of the embedding program, with the plugin name it runs under.
    Native(Arc<dyn NativeTool>, Arc<PluginCtx>),
}

/// One callable tool.
#[derive(Clone)]
pub struct LiveTool {
    /// Its name, as its schema has it.
    pub name: Arc<str>,
    /// Schema and flags.
    pub spec: Arc<Spec>,
    /// What runs.
    pub code: Code,
    /// For a documented function: its parameters in order.
    pub plan: Arc<[ParamPlan]>,
    /// The script function behind it: `execute`, or the tool's own.
    pub function: Arc<str>,
    /// Resolved category.
    pub category: Arc<str>,
    /// Display: the file's EMOJI, or empty.
    pub emoji: Arc<str>,
    /// A setting of the plugin that hides the tool while it is falsy.
    pub gated_by: Option<Arc<str>>,
    /// The plugin's effective settings at this moment.
    pub settings: Arc<Map>,
    /// How long its calls take of late.
    pub pace: Arc<Pace>,
}

impl LiveTool {
    /// Name of the plugin it belongs to.
    #[must_use]
    pub fn plugin(&self) -> &Arc<PluginCtx> {
        match &self.code {
            Code::Script(unit) => &unit.plugin,
            Code::Native(_, plugin) => plugin,
        }
    }

    /// The generation that a call would run; 0 for a native tool.
    #[must_use]
    pub fn generation(&self) -> u64 {
        match &self.code {
            Code::Script(unit) => unit.generation,
            Code::Native(..) => 0,
        }
    }

    /// The module key.
    #[must_use]
    pub fn module(&self) -> &str {
        match &self.code {
            Code::Script(unit) => &unit.module,
            Code::Native(..) => "native",
        }
    }

    /// Whether a setting hides it now.
    #[must_use]
    pub fn is_gated_off(&self) -> bool {
        self.gated_by.as_ref().is_some_and(|key| !self.settings.get(&**key).is_some_and(is_truthy))
    }

    /// Whether a model gets it now where nobody chose the tools: it is neither hidden nor switched off by a setting.
    #[must_use]
    pub fn is_offered(&self) -> bool {
        !self.spec.hidden && !self.is_gated_off()
    }
}

/// Whether a setting's value counts as on.
#[must_use]
pub fn is_truthy(value: &rhai::Dynamic) -> bool {
    if value.is_unit() {
        return false;
    }
    if let Ok(b) = value.as_bool() {
        return b;
    }
    if let Ok(i) = value.as_int() {
        return i != 0;
    }
    if let Ok(f) = value.as_float() {
        return f != 0.0;
    }
    if let Some(text) = value.read_lock::<rhai::ImmutableString>() {
        return !text.trim().is_empty();
    }
    if let Some(list) = value.read_lock::<rhai::Array>() {
        return !list.is_empty();
    }
    true
}

/// The tools of one plugin, in source order.
type ToolsOfOne = Arc<[Arc<LiveTool>]>;

/// The tools of one moment.
#[derive(Clone, Default)]
pub struct Snapshot {
    /// Counts effective changes of what a model reads.
    pub revision: u64,
    tools: HashMap<Arc<str>, Arc<LiveTool>>,
    folded: HashMap<String, Arc<str>>,
    /// Per plugin in load order: its rank, and its tools in source order.
    plugins: BTreeMap<(u32, Arc<str>), ToolsOfOne>,
    ranks: HashMap<Arc<str>, u32>,
    routes: HashMap<Arc<str>, Arc<[Arc<LiveRoute>]>>,
    /// Plugins without callable tools, and why.
    pub absent: BTreeMap<Arc<str>, Absence>,
}

impl Snapshot {
    /// The tool `name`.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Arc<LiveTool>> {
        self.tools.get(name)
    }

    /// Every tool, by plugin in load order and in source order within.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<LiveTool>> {
        self.plugins.values().flat_map(|tools| tools.iter())
    }

    /// Tools of one plugin.
    #[must_use]
    pub fn of_plugin(&self, plugin: &str) -> &[Arc<LiveTool>] {
        self.ranks.get(plugin).and_then(|rank| self.plugins.get(&(*rank, plugin.into()))).map_or(&[], |tools| &**tools)
    }

    /// Routes of one plugin.
    #[must_use]
    pub fn routes_of(&self, plugin: &str) -> &[Arc<LiveRoute>] {
        self.routes.get(plugin).map_or(&[], |routes| &**routes)
    }

    /// How many tools there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.tools.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tools.is_empty()
    }

    /// Every tool's name.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.iter().map(|t| t.spec.name.as_str())
    }

    /// Puts a plugin's tools in place of those it had. All or none: the first name that another plugin holds, or that
    /// differs from one only by case, `-`, `_` or `.`, refuses the plugin.
    ///
    /// # Errors
    /// `conflict` naming the tool and its owner.
    pub fn put(&mut self, rank: u32, plugin: &Arc<str>, tools: Vec<Arc<LiveTool>>) -> Result<()> {
        for tool in &tools {
            let name = tool.spec.name.as_str();
            let holder = self.folded.get(&names::fold(name)).and_then(|held| self.tools.get(held));
            if let Some(holder) = holder.filter(|h| h.plugin().name != *plugin) {
                let owner = &holder.plugin().name;
                let message = if holder.spec.name == name {
                    format!("the tool `{name}` belongs to the plugin `{owner}` already")
                } else {
                    format!(
                        "the tool `{name}` differs from `{}` of the plugin `{owner}` only by case, `-`, `_` or `.`",
                        holder.spec.name
                    )
                };
                return Err(Error::new(crate::base::error::Kind::Conflict, message)
                    .hint(format!("rename the tool, or switch the other off: lapidary disable {owner}")));
            }
        }
        self.remove(plugin);
        for tool in &tools {
            self.folded.insert(names::fold(&tool.name), tool.name.clone());
            self.tools.insert(tool.name.clone(), tool.clone());
        }
        self.ranks.insert(plugin.clone(), rank);
        self.plugins.insert((rank, plugin.clone()), tools.into());
        Ok(())
    }

    /// Puts a plugin's routes in place of those it had. They go with its tools.
    pub fn put_routes(&mut self, plugin: &Arc<str>, routes: Vec<Arc<LiveRoute>>) {
        if routes.is_empty() {
            self.routes.remove(plugin);
        } else {
            self.routes.insert(plugin.clone(), routes.into());
        }
    }

    /// Takes a plugin's tools and routes out. Only names that are really its own go.
    pub fn remove(&mut self, plugin: &Arc<str>) {
        self.routes.remove(plugin);
        let Some(rank) = self.ranks.remove(plugin) else { return };
        for tool in self.plugins.remove(&(rank, plugin.clone())).iter().flat_map(|t| t.iter()) {
            self.tools.remove(tool.spec.name.as_str());
            self.folded.remove(&names::fold(&tool.spec.name));
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use serde_json::json;

    struct Nothing;
    impl NativeTool for Nothing {
        fn call(&self, _: &Arc<Ctx>, _: &serde_json::Map<String, Value>) -> Result<Value> {
            Ok(Value::Null)
        }
    }

    fn tool(plugin: &str, name: &str) -> Arc<LiveTool> {
        let ctx = Arc::new(PluginCtx {
            name: plugin.into(),
            assets: None,
            grants: Default::default(),
            direct: Default::default(),
        });
        Arc::new(LiveTool {
            name: name.into(),
            spec: Arc::new(Spec::new(name, "x", json!({"type": "object"}))),
            code: Code::Native(Arc::new(Nothing), ctx),
            plan: [].into(),
            function: name.into(),
            category: "web".into(),
            emoji: "".into(),
            gated_by: None,
            settings: Arc::default(),
            pace: Default::default(),
        })
    }

    #[test]
    fn row_04_a_collision_refuses_the_whole_second_plugin_and_names_the_owner() {
        let mut set = Snapshot::default();
        let (a, b): (Arc<str>, Arc<str>) = ("a".into(), "b".into());
        set.put(1, &a, vec![tool("a", "one")]).unwrap();
        let e = set.put(2, &b, vec![tool("b", "two"), tool("b", "one")]).unwrap_err();
        assert!(e.message().contains("`a`"), "{e}");
        assert_eq!(set.names().collect::<Vec<_>>(), ["one"]);
    }

    #[test]
    fn names_that_differ_only_by_folding_are_refused() {
        let mut set = Snapshot::default();
        set.put(1, &"a".into(), vec![tool("a", "get_item")]).unwrap();
        for name in ["Get_Item", "get-item", "getItem"] {
            let refused = set.put(2, &"b".into(), vec![tool("b", name)]).is_err();
            assert!(refused, "{name}");
        }
    }

    #[test]
    fn a_plugin_replaces_its_own_tools_and_nobody_elses() {
        let mut set = Snapshot::default();
        set.put(2, &"b".into(), vec![tool("b", "z")]).unwrap();
        set.put(1, &"a".into(), vec![tool("a", "x"), tool("a", "y")]).unwrap();
        set.put(1, &"a".into(), vec![tool("a", "y")]).unwrap();
        assert_eq!(set.names().collect::<Vec<_>>(), ["y", "z"]);
        set.remove(&"a".into());
        assert_eq!(set.names().collect::<Vec<_>>(), ["z"]);
        assert!(set.get("y").is_none());
    }
}
