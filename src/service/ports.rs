//! Traits for calling upward: what the script API asks of rooms above it, without knowing them.

use serde_json::Value;

/// The tool registry as the host module `tools` sees it. Running a tool is not here: it needs the call's own context.
/// Every answer is from one snapshot, in the registry's order.
pub trait Tools: Send + Sync {
    /// One object a tool: `name`, `description`, `parameters`.
    fn list(&self) -> Vec<Value>;

    /// `{category, writes, module, plugin, ..}` of a tool, or `None` for a name that does not exist.
    fn meta(&self, name: &str) -> Option<Value>;

    /// An object: category to the sorted names of its tools.
    fn categories(&self) -> Value;

    /// Names of the tools of a category; `writes` keeps those that change something, or those that do not.
    fn in_category(&self, category: &str, writes: Option<bool>) -> Vec<String>;

    /// The scope that a tool needs, if any.
    fn scope(&self, name: &str) -> Option<String>;

    /// Asks for a reload of `plugin` soon, after the call that asks; within 5 s of the last one nothing happens. Returns at once.
    fn reload(&self, plugin: &str);
}

/// The plugins that the program itself carries, for whom no folder is on disk.
pub trait Carried: Send + Sync {
    /// A file of a plugin, by its path in the plugin's folder; `None` where there is none, or the path leads out of it.
    fn file(&self, plugin: &str, path: &str) -> Option<&'static [u8]>;
}
