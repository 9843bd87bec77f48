//! A host module: a named set of native functions that scripts call as `name::function(..)`.

use std::sync::Arc;

/// One module of the script API. Its functions carry their own documentation (Rhai's `#[export_module]`).
#[derive(Clone)]
pub struct HostModule {
    name: &'static str,
    doc: &'static str,
    build: Arc<dyn Fn() -> rhai::Module + Send + Sync>,
}

impl HostModule {
    /// A module `name` with one paragraph of documentation and the function that builds it.
    ///
    /// ```
    /// use rhai::plugin::*;
    /// use lapidary::HostModule;
    ///
    /// #[export_module]
    /// mod greeting {
    ///     /// Says hello to `name`.
    ///     pub fn hello(name: &str) -> String {
    ///         format!("hello, {name}")
    ///     }
    /// }
    ///
    /// let module = HostModule::new("greeting", "Friendly words.", || rhai::exported_module!(greeting));
    /// assert_eq!(module.name(), "greeting");
    /// ```
    pub fn new(
        name: &'static str,
        doc: &'static str,
        build: impl Fn() -> rhai::Module + Send + Sync + 'static,
    ) -> Self {
        HostModule { name, doc, build: Arc::new(build) }
    }

    /// The name scripts write before `::`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// What the module is for.
    #[must_use]
    pub fn doc(&self) -> &'static str {
        self.doc
    }

    /// Builds the Rhai module.
    #[must_use]
    pub fn build(&self) -> rhai::Module {
        (self.build)()
    }
}

impl std::fmt::Debug for HostModule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "HostModule({})", self.name)
    }
}
