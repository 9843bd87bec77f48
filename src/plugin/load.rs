//! From a plugin's files to a generation: compile, evaluate once, read the tools, check everything. Changes nothing.
//! Runs on a call thread, because it compiles and evaluates scripts.

mod routes;

pub use routes::RouteDraft;

use super::discover::{Found, Location, Origin, Stock};
use super::manifest::{Manifest, RouteField};
use super::place;
use super::read::{self, Shelf, Unsaved};
use crate::base::error::{Error, Result};
use crate::script::control::{self, Budget, Control};
use crate::script::ctx::{Ctx, NoSink, Phase, PluginCtx};
use crate::script::diagnostic::{self, Diagnostic, Severity};
use crate::script::program::{self, Function, Program};
use crate::script::resolver::{Imports, Source};
use crate::script::value;
use crate::service::Services;
use crate::service::permissions::Declared;
use crate::service::settings::{self, Field};
use crate::tool::doc::ParamPlan;
use crate::tool::registry::{Execute, Form, Gone, Unit};
use crate::tool::spec::{MAX_TOOLS_PER_FILE, Spec};
use arc_swap::ArcSwap;
use rhai::{Engine, Map};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

/// Functions of a documented file that are never tools.
pub(super) const NEVER_TOOLS: [&str; 13] = [
    "execute",
    "get_tools",
    "shutdown",
    "preview",
    "get_system_context",
    "init",
    "run",
    "say",
    "stop",
    "start",
    "migrate",
    "on_drop",
    "handle",
];

/// What loading needs of the host.
#[derive(Clone)]
pub struct Loader {
    /// The engine.
    pub engine: Arc<Engine>,
    /// The services, for what scripts may read while loading.
    pub services: Arc<Services>,
    /// The embedded scripts and modules.
    pub stock: Arc<dyn Stock>,
    /// Names of the host modules.
    pub reserved: Arc<BTreeSet<&'static str>>,
    /// Told when nothing can call a file any more.
    pub retired: Arc<dyn Fn(Gone) + Send + Sync>,
    /// A text in the place of a file, for a build that is only looked at.
    pub unsaved: Option<Arc<Unsaved>>,
}

/// A tool of a loaded file, before it is in the registry.
#[derive(Clone)]
pub struct Draft {
    /// Schema and flags.
    pub spec: Arc<Spec>,
    /// Parameters of a documented function, in order.
    pub plan: Arc<[ParamPlan]>,
    /// The script function behind it.
    pub function: Arc<str>,
    /// Resolved category.
    pub category: Arc<str>,
    /// The setting that hides it.
    pub gated_by: Option<Arc<str>>,
}

/// One tool file of a generation.
pub struct LoadedFile {
    /// Path inside the plugin, such as `tools/dice.rhai`.
    pub path: String,
    /// What its tools share.
    pub unit: Arc<Unit>,
    /// Its tools in source order.
    pub tools: Vec<Draft>,
    /// Its routes, in the manifest's order; a file has tools or routes.
    pub routes: Vec<RouteDraft>,
    /// The file's EMOJI.
    pub emoji: Arc<str>,
    /// Whether it has `get_tools`.
    pub is_dynamic: bool,
}

/// A tool that could not be offered while the others of its file are.
#[derive(Debug, Clone)]
pub struct Quarantined {
    /// Its name, or its place in the list where it has none.
    pub tool: String,
    /// Why, and where.
    pub diagnostic: Diagnostic,
}

/// A complete, validated build of a plugin.
pub struct Generation {
    /// The plugin and what its scripts may do.
    pub plugin: Arc<PluginCtx>,
    /// Counts the plugin's settled versions.
    pub number: u64,
    /// Hash of everything it was built from, 12 hex digits.
    pub hash: Arc<str>,
    /// The manifest; made up for a single file.
    pub manifest: Arc<Manifest>,
    /// Where it comes from.
    pub origin: Origin,
    /// Its settings.
    pub fields: Arc<[Field]>,
    /// Its permissions, as declared by the manifest and its files.
    pub declared: Arc<Declared>,
    /// Its tool files that work.
    pub files: Vec<LoadedFile>,
    /// Its tool files that do not, with what is wrong.
    pub broken: BTreeMap<String, Vec<Diagnostic>>,
    /// Tools left out.
    pub quarantined: Vec<Quarantined>,
    /// What should be looked at.
    pub warnings: Vec<Diagnostic>,
    /// Import keys it depends on, found or not.
    pub imports: BTreeSet<String>,
    /// The files it was built from, for the history.
    pub sources: Vec<(String, Arc<[u8]>)>,
}

impl Generation {
    /// The plugin's name.
    #[must_use]
    pub fn name(&self) -> &Arc<str> {
        &self.plugin.name
    }

    /// Lets go of compiled code until it is called; for a start, where most plugins are not called soon or ever.
    pub fn rest(&mut self) {
        for file in &mut self.files {
            if let Some(unit) = Arc::get_mut(&mut file.unit) {
                unit.program.rest();
            }
        }
    }

    /// Its tools, in source order.
    pub fn tools(&self) -> impl Iterator<Item = &Arc<Spec>> {
        self.files.iter().flat_map(|file| file.tools.iter().map(|draft| &draft.spec))
    }
}

impl Loader {
    /// Builds generation `number` of a plugin. A file that does not load is in `broken`; who swaps decides what that means.
    ///
    /// # Errors
    /// The diagnostics, when there is nothing that could run at all: no manifest, or no file that loads.
    pub fn build(&self, found: &Found, number: u64) -> Result<Generation, Vec<Diagnostic>> {
        let shelf = Shelf::open_with(found, self.stock.clone(), self.unsaved.clone()).map_err(|d| vec![d])?;
        let mut warnings = Vec::new();
        let manifest = match &found.location {
            Location::File(_) => Manifest::single_file(&found.name),
            Location::Folder(_) | Location::Embedded(_) => {
                let file = shelf.display("plugin.json");
                let text =
                    shelf.text("plugin.json").map_err(|e| vec![Diagnostic::from_error("manifest", &file, &e)])?;
                let (manifest, found_warnings) = Manifest::parse(&text.text, &file, &found.name)?;
                warnings.extend(found_warnings);
                manifest
            }
        };
        let stored = self.services.settings.stored(&found.name).map_err(|e| {
            vec![Diagnostic::from_error("settings", format!("user/webui/plugins/{}.json", found.name), &e)]
        })?;
        let plugin = Arc::new(PluginCtx {
            name: found.name.as_str().into(),
            assets: shelf.assets(),
            grants: ArcSwap::from(self.services.grants.effective(&found.name, &manifest.permissions)),
            direct: Default::default(),
        });
        let mut building = Building {
            loader: self,
            found,
            shelf: &shelf,
            number,
            plugin: plugin.clone(),
            manifest: &manifest,
            fields: manifest.capabilities.settings.clone(),
            declared: manifest.permissions.clone(),
            stored: &stored,
            files: Vec::new(),
            broken: BTreeMap::new(),
            quarantined: Vec::new(),
            warnings,
            imports: BTreeSet::new(),
            names: HashSet::new(),
        };
        let paths = shelf.tool_files(&manifest);
        for path in &paths {
            building.file(path, None);
        }
        building.route_files(&paths);
        if paths.is_empty() && manifest.capabilities.inactive.is_empty() && manifest.capabilities.routes.is_empty() {
            building.warnings.push(
                Diagnostic::warning("load", shelf.display("tools"), "the plugin has no tool files")
                    .hint("put a script into its tools/ folder"),
            );
        }
        let Building { fields, declared, files, broken, quarantined, warnings, imports, .. } = building;
        if files.is_empty() && !broken.is_empty() {
            return Err(broken.into_values().flatten().chain(warnings).collect());
        }
        if declared != manifest.permissions {
            plugin.grants.store(self.services.grants.effective(&found.name, &declared));
        }
        let sources = shelf.taken();
        Ok(Generation {
            plugin,
            number,
            hash: read::hash(&sources).into(),
            manifest: Arc::new(manifest),
            origin: found.origin,
            fields: fields.into(),
            declared: Arc::new(declared),
            files,
            broken,
            quarantined,
            warnings,
            imports,
            sources,
        })
    }

    /// A load-phase context of no plugin.
    pub(super) fn bare_context(&self) -> Arc<Ctx> {
        let plugin = Arc::new(PluginCtx {
            name: "".into(),
            assets: None,
            grants: Default::default(),
            direct: Default::default(),
        });
        self.context(&plugin, 0, Imports::none(), Arc::default())
    }

    /// A load-phase context.
    fn context(&self, plugin: &Arc<PluginCtx>, number: u64, imports: Arc<Imports>, settings: Arc<Map>) -> Arc<Ctx> {
        Arc::new(Ctx {
            phase: Phase::Load,
            plugin: plugin.clone(),
            generation: number,
            tool: "".into(),
            imports,
            settings,
            chat: None,
            private: false,
            scopes: Arc::default(),
            caller: "host".into(),
            depth: 0,
            control: Control::start(Budget::LOAD),
            sink: Arc::new(NoSink),
            heard: Default::default(),
            nested: None,
            mint: Default::default(),
            used: Default::default(),
            services: self.services.clone(),
        })
    }

    /// Runs `get_tools()` of a loaded file under these settings, in the load phase: changes nothing.
    ///
    /// # Errors
    /// The diagnostic, when it throws, hangs or returns something that is no list.
    pub fn get_tools(&self, unit: &Unit, settings: Arc<Map>) -> Result<Vec<Value>, Diagnostic> {
        self.run_get_tools(&unit.program, &unit.plugin, unit.generation, &unit.imports, settings)
    }

    fn run_get_tools(
        &self,
        program: &Program,
        plugin: &Arc<PluginCtx>,
        number: u64,
        imports: &Arc<Imports>,
        settings: Arc<Map>,
    ) -> Result<Vec<Value>, Diagnostic> {
        let file = &program.source.name;
        let ctx = self.context(plugin, number, imports.clone(), settings);
        let result = guarded(&ctx, || {
            let call = program::Invocation { function: "get_tools", this: None, arguments: &mut [], level: 0 };
            program::invoke(&self.engine, program, &ctx, call)
        });
        let at = program.function("get_tools").map_or((0, 0), |f| (f.line, f.column));
        let list = match result {
            Ok(Ok(value)) => value,
            Ok(Err(fault)) => {
                let mut d = diagnostic::explain(fault, file, &ctx).diagnostic;
                d.message = format!("get_tools() failed: {}", d.message);
                return Err(d);
            }
            Err(panic) => return Err(Diagnostic::error("internal", &**file, format!("get_tools() panicked: {panic}"))),
        };
        let bad = |what: String| Err(Diagnostic::error("schema", &**file, what).at(&program.source.text, at.0, at.1));
        match value::to_json(&list) {
            Ok(Value::Array(list)) => Ok(list),
            Ok(other) => bad(format!("get_tools() returned {}, not a list of tools", kind_of(&other))),
            Err(e) => bad(format!("get_tools() returned what a schema cannot hold: {e}")),
        }
    }
}

/// Runs script code with the context's budgets in force and panics contained.
pub fn guarded<T>(ctx: &Arc<Ctx>, work: impl FnOnce() -> T) -> Result<T, String> {
    let _running = control::enter(ctx.control.clone());
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).map_err(|panic| {
        panic
            .downcast_ref::<&str>()
            .map(|s| (*s).to_owned())
            .or_else(|| panic.downcast_ref::<String>().cloned())
            .unwrap_or_else(|| "panic".to_owned())
    })
}

struct Building<'a> {
    loader: &'a Loader,
    found: &'a Found,
    shelf: &'a Shelf,
    number: u64,
    plugin: Arc<PluginCtx>,
    manifest: &'a Manifest,
    fields: Vec<Field>,
    declared: Declared,
    stored: &'a serde_json::Map<String, Value>,
    files: Vec<LoadedFile>,
    broken: BTreeMap<String, Vec<Diagnostic>>,
    quarantined: Vec<Quarantined>,
    warnings: Vec<Diagnostic>,
    imports: BTreeSet<String>,
    names: HashSet<String>,
}

/// The constants of a tool file that mean something to the host.
struct Exports {
    enabled: bool,
    emoji: Arc<str>,
    category: Option<String>,
    available: Option<Vec<String>>,
    gated: BTreeMap<String, String>,
    tools: Option<Value>,
}

impl Building<'_> {
    fn file(&mut self, path: &str, routes: Option<&[&RouteField]>) {
        let display = self.shelf.display(path);
        let source = match self.shelf.text(path) {
            Ok(text) => Source { name: display.as_str().into(), text: text.text },
            Err(e) => {
                self.broken.insert(path.to_owned(), vec![Diagnostic::from_error("load", display, &e)]);
                return;
            }
        };
        if source.text.trim().is_empty() {
            let what = if routes.is_some() { "write the handler of its route" } else { "write a tool" };
            let d = Diagnostic::error("load", display, "the file is empty").hint(format!("{what}, or delete the file"));
            self.broken.insert(path.to_owned(), vec![d]);
            return;
        }
        let imports = Imports::new(self.shelf.library(), self.loader.reserved.clone());
        let outcome = match routes {
            None => self.evaluate(path, &source, &imports),
            Some(routes) => self.handlers(path, &source, &imports, routes),
        };
        self.imports.extend(imports.keys().into_iter().filter(|k| !k.starts_with("entry:")));
        match outcome {
            Ok(Some(file)) => self.files.push(file),
            Ok(None) => {}
            Err(diagnostics) => {
                self.broken.insert(path.to_owned(), diagnostics);
            }
        }
    }

    /// Compiles a file, runs its top level once and looks at it.
    fn program(&mut self, source: &Source, imports: &Arc<Imports>) -> Result<Program, Vec<Diagnostic>> {
        let loader = self.loader;
        let first = self.settings(None);
        let ctx = loader.context(&self.plugin, self.number, imports.clone(), first);
        let loaded = guarded(&ctx, || program::load(&loader.engine, &ctx, source));
        let program = match loaded {
            Ok(Ok(program)) => program,
            Ok(Err(fault)) => return Err(vec![diagnostic::explain(fault, &source.name, &ctx).diagnostic]),
            Err(panic) => {
                return Err(vec![Diagnostic::error("internal", &*source.name, format!("loading panicked: {panic}"))]);
            }
        };
        let lint = crate::script::lint::check(&program);
        let (errors, warnings): (Vec<_>, Vec<_>) = lint.into_iter().partition(|d| d.severity == Severity::Error);
        if !errors.is_empty() {
            return Err(errors);
        }
        self.warnings.extend(warnings);
        Ok(program)
    }

    fn unit(&self, path: &str, form: Form, program: Program, imports: &Arc<Imports>) -> Arc<Unit> {
        let stem = path.rsplit('/').next().unwrap_or(path).trim_end_matches(".rhai");
        let limits = &self.manifest.limits;
        Arc::new(Unit {
            plugin: self.plugin.clone(),
            generation: self.number,
            module: format!("plugin_{}_{stem}", self.found.name).into(),
            form,
            program,
            imports: imports.clone(),
            budget: limits.budget(),
            result_chars: limits.result_chars(),
            retired: Some(Box::new({
                let retired = self.loader.retired.clone();
                move |gone| retired(gone)
            })),
            was_live: std::sync::atomic::AtomicBool::new(false),
        })
    }

    fn evaluate(
        &mut self,
        path: &str,
        source: &Source,
        imports: &Arc<Imports>,
    ) -> Result<Option<LoadedFile>, Vec<Diagnostic>> {
        let program = self.program(source, imports)?;
        let exports = self.exports(&program)?;
        if !exports.enabled {
            return Ok(None);
        }
        let settings = self.settings(Some(&program));
        let form = form_of(&program, exports.tools.is_some())?;
        let is_dynamic = program.function("get_tools").is_some();
        let drafts = match form {
            Form::Execute(_) => self.explicit(&program, &exports, imports, settings)?,
            Form::Functions => self.documented(&program, &exports)?,
        };
        let unit = self.unit(path, form, program, imports);
        let tools = drafts;
        Ok(Some(LoadedFile {
            path: path.to_owned(),
            unit,
            tools,
            routes: Vec::new(),
            emoji: exports.emoji,
            is_dynamic,
        }))
    }

    /// Effective settings: defaults of the manifest or of the file's SETTINGS under the stored values.
    fn settings(&mut self, program: Option<&Program>) -> Arc<Map> {
        if let Some(program) = program
            && self.manifest.capabilities.settings.is_empty()
            && let Some(declared) = program.constants.get("SETTINGS").and_then(|v| value::to_json(v).ok())
        {
            let help = program.constants.get("SETTINGS_HELP").and_then(|v| value::to_json(v).ok());
            for field in settings::fields_from_script(&declared, help.as_ref().unwrap_or(&Value::Null)) {
                if !self.fields.iter().any(|f| f.key == field.key) {
                    self.fields.push(field);
                }
            }
        }
        let effective = settings::effective(&self.fields, self.stored);
        Arc::new(value::from_object(&effective.values).unwrap_or_default())
    }

    fn exports(&mut self, program: &Program) -> Result<Exports, Vec<Diagnostic>> {
        let constants = &program.constants;
        let json = |name: &str| -> Result<Option<Value>, Vec<Diagnostic>> {
            constants.get(name).map(value::to_json).transpose().map_err(|e| {
                let line = place::constant(&program.source.text, name);
                vec![Diagnostic::error("schema", &*program.source.name, format!("`{name}`: {}", e.message())).at(
                    &program.source.text,
                    line,
                    1,
                )]
            })
        };
        if let Some(declared) = json("PERMISSIONS")? {
            match Declared::parse(&declared) {
                Ok(more) => self.declared = self.declared.clone().merge(more),
                Err(e) => {
                    let line = place::constant(&program.source.text, "PERMISSIONS");
                    return Err(vec![Diagnostic::from_error("load", &*program.source.name, &e).at(
                        &program.source.text,
                        line,
                        1,
                    )]);
                }
            }
        }
        let text = |v: Option<Value>| v.and_then(|v| v.as_str().map(str::to_owned));
        Ok(Exports {
            enabled: constants.get("ENABLED").is_none_or(crate::tool::registry::is_truthy),
            emoji: text(json("EMOJI")?).unwrap_or_default().into(),
            category: text(json("TOOL_CATEGORY")?).filter(|c| !c.is_empty()),
            available: json("AVAILABLE_FUNCTIONS")?.and_then(|v| {
                v.as_array().map(|list| list.iter().filter_map(|n| n.as_str().map(str::to_owned)).collect::<Vec<_>>())
            }),
            gated: json("SETTINGS_GATED")?
                .and_then(|v| {
                    v.as_object().map(|map| {
                        map.iter().filter_map(|(k, v)| v.as_str().map(|v| (k.clone(), v.to_owned()))).collect()
                    })
                })
                .unwrap_or_default(),
            tools: json("TOOLS")?,
        })
    }

    fn explicit(
        &mut self,
        program: &Program,
        exports: &Exports,
        imports: &Arc<Imports>,
        settings: Arc<Map>,
    ) -> Result<Vec<Draft>, Vec<Diagnostic>> {
        let file = &program.source.name;
        let text = &program.source.text;
        let mut entries = None;
        if let Some(function) = program.function("get_tools") {
            match self.loader.run_get_tools(program, &self.plugin, self.number, imports, settings) {
                Ok(list) if list.is_empty() => self.warnings.push(
                    Diagnostic::warning("schema", &**file, "get_tools() returned no tools, so TOOLS is used").at(
                        text,
                        function.line,
                        function.column,
                    ),
                ),
                Ok(list) => entries = Some(list),
                Err(mut d) => {
                    d.severity = Severity::Warning;
                    d.message.push_str("; TOOLS is used");
                    self.warnings.push(d);
                }
            }
        }
        let entries = match entries {
            Some(list) => list,
            None => match &exports.tools {
                Some(Value::Array(list)) => list.clone(),
                Some(other) => {
                    let line = place::constant(text, "TOOLS");
                    return Err(vec![
                        Diagnostic::error("schema", &**file, format!("TOOLS is {}, not a list", kind_of(other)))
                            .at(text, line, 1),
                    ]);
                }
                None => Vec::new(),
            },
        };
        if entries.is_empty() {
            let line = place::constant(text, "TOOLS");
            return Err(vec![
                Diagnostic::error("schema", &**file, "the file has no tools")
                    .at(text, line, usize::from(line > 0))
                    .hint("TOOLS is a list of #{ type: \"function\", function: #{ name, description, parameters } }"),
            ]);
        }
        let mut out = Vec::new();
        for (index, entry) in entries.iter().enumerate() {
            if index >= MAX_TOOLS_PER_FILE {
                self.quarantine(
                    format!("TOOLS[{MAX_TOOLS_PER_FILE}..]"),
                    Diagnostic::error(
                        "schema",
                        &**file,
                        format!("the file has {} tools; at most {MAX_TOOLS_PER_FILE} are taken", entries.len()),
                    ),
                );
                break;
            }
            let name = entry
                .pointer("/function/name")
                .and_then(Value::as_str)
                .map_or_else(|| format!("TOOLS[{index}]"), str::to_owned);
            match Spec::from_entry(entry) {
                Ok((spec, warnings)) => {
                    if exports.available.as_ref().is_some_and(|list| !list.is_empty() && !list.contains(&spec.name)) {
                        continue;
                    }
                    let (line, column) = place::tool(text, &spec.name);
                    for warning in warnings {
                        let (line, column) = place::key(text, &spec.name, &warning);
                        self.warnings.push(
                            Diagnostic::warning("schema", &**file, format!("`{}`: {warning}", spec.name))
                                .at(text, line, column),
                        );
                    }
                    let line_diag =
                        |message: String| Diagnostic::error("schema", &**file, message).at(text, line, column);
                    if !self.names.insert(crate::tool::names::fold(&spec.name)) {
                        self.quarantine(
                            spec.name.clone(),
                            line_diag(format!("the name `{}` is used twice in this plugin", spec.name)),
                        );
                        continue;
                    }
                    out.push(self.draft(spec, [].into(), "execute", exports));
                }
                Err(reason) => {
                    let (line, column) = place::key(text, &name, &reason);
                    self.quarantine(
                        name.clone(),
                        Diagnostic::error("schema", &**file, format!("`{name}`: {reason}")).at(text, line, column),
                    );
                }
            }
        }
        if out.is_empty() {
            let reasons: Vec<Diagnostic> =
                self.quarantined.iter().filter(|q| q.diagnostic.file == **file).map(|q| q.diagnostic.clone()).collect();
            if !reasons.is_empty() {
                return Err(reasons);
            }
            return Err(vec![
                Diagnostic::error("schema", &**file, "AVAILABLE_FUNCTIONS leaves no tool of TOOLS")
                    .at(text, place::constant(text, "AVAILABLE_FUNCTIONS"), 1)
                    .hint("the names must be those in TOOLS; an empty list means all"),
            ]);
        }
        Ok(out)
    }

    fn documented(&mut self, program: &Program, exports: &Exports) -> Result<Vec<Draft>, Vec<Diagnostic>> {
        let file = &program.source.name;
        let text = &program.source.text;
        let mut out = Vec::new();
        let mut errors = Vec::new();
        let is_offered = |function: &&Function| {
            !function.private && !function.comments.is_empty() && !NEVER_TOOLS.contains(&function.name.as_str())
        };
        for function in program.functions.iter().filter(is_offered) {
            if out.len() >= MAX_TOOLS_PER_FILE {
                // One finding: each further function would say the same.
                self.quarantine(
                    format!("{}..", function.name),
                    Diagnostic::error(
                        "schema",
                        &**file,
                        format!(
                            "the file has {} tools; at most {MAX_TOOLS_PER_FILE} are taken, those from `{}` on are left out",
                            program.functions.iter().filter(is_offered).count(),
                            function.name
                        ),
                    )
                    .at(text, function.line, 1),
                );
                break;
            }
            let params: Vec<&str> = function.params.iter().map(String::as_str).collect();
            let comments: Vec<&str> = function.comments.iter().map(String::as_str).collect();
            let first = comment_line(text, function.line, &comments);
            match crate::tool::doc::from_doc(&function.name, &params, &comments, first) {
                Ok((spec, plan)) => {
                    if exports.available.as_ref().is_some_and(|list| !list.is_empty() && !list.contains(&spec.name)) {
                        continue;
                    }
                    if !self.names.insert(crate::tool::names::fold(&spec.name)) {
                        self.quarantine(
                            spec.name.clone(),
                            Diagnostic::error(
                                "schema",
                                &**file,
                                format!("the name `{}` is used twice in this plugin", spec.name),
                            )
                            .at(text, function.line, 1),
                        );
                        continue;
                    }
                    let draft = self.draft(spec, plan.into(), &function.name, exports);
                    out.push(draft);
                }
                Err(e) => {
                    let mut d = Diagnostic::error("schema", &**file, format!("`{}`: {}", function.name, e.message))
                        .at(text, e.line, 1);
                    d.hint = e.hint;
                    errors.push(d);
                }
            }
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        if out.is_empty() {
            return Err(vec![Diagnostic::error("load", &**file, "the file has no tools").hint(
                "write a `///` comment before a function, or a TOOLS list and execute(); see docs/guide/first-tool.md",
            )]);
        }
        Ok(out)
    }

    fn draft(&mut self, mut spec: Spec, plan: Arc<[ParamPlan]>, function: &str, exports: &Exports) -> Draft {
        if spec.permissions.is_empty() {
            spec.permissions = self.declared.permissions();
        } else {
            // What a tool says of itself is declared by saying it; one with a list of hosts has that from the file.
            let held = self.declared.permissions();
            let new = spec.permissions.iter().filter(|p| !held.contains(p)).map(|p| Value::from(p.as_str()));
            if let Ok(more) = Declared::parse(&Value::Array(new.collect())) {
                self.declared = self.declared.clone().merge(more);
            }
        }
        let category =
            spec.category.clone().or_else(|| exports.category.clone()).unwrap_or_else(|| self.found.name.clone());
        let gated_by = exports.gated.get(&spec.name).map(|key| key.as_str().into());
        Draft { category: category.into(), gated_by, spec: Arc::new(spec), plan, function: function.into() }
    }

    fn quarantine(&mut self, tool: String, diagnostic: Diagnostic) {
        self.quarantined.push(Quarantined { tool, diagnostic });
    }
}

/// Which form a file has, and that its `execute` fits.
fn form_of(program: &Program, has_tools: bool) -> Result<Form, Vec<Diagnostic>> {
    let file = &program.source.name;
    let text = &program.source.text;
    let executes: Vec<_> = program.functions.iter().filter(|f| f.name == "execute").collect();
    let explicit = has_tools || program.function("get_tools").is_some();
    match (explicit, executes.as_slice()) {
        (false, []) => Ok(Form::Functions),
        (false, [one, ..]) => Err(vec![
            Diagnostic::error("load", &**file, "`execute` without TOOLS or get_tools()")
                .at(text, one.line, one.column)
                .hint("add `const TOOLS = [..]`, or give each function a `///` comment and drop execute"),
        ]),
        (true, []) => Err(vec![
            Diagnostic::error("load", &**file, "the file has tools but no `execute`")
                .at(text, place::constant(text, "TOOLS"), 1)
                .hint("add `fn execute(function_name, arguments, config) { .. }`"),
        ]),
        (true, [one]) if one.private => Err(vec![
            Diagnostic::error("load", &**file, "`execute` is private, so nothing can call it").at(text, one.line, one.column),
        ]),
        (true, [one]) => match one.params.len() {
            n @ 3..=5 => {
                // A name that stands in the text once stands in the list of parameters; nothing reads it.
                let is_read =
                    |at: usize| one.params.get(at).is_some_and(|name| text.matches(name.as_str()).nth(1).is_some());
                Ok(Form::Execute(Execute { count: n as u8, config: is_read(2), settings: is_read(3) }))
            }
            n => Err(vec![
                Diagnostic::error("load", &**file, format!("`execute` has {n} parameters; it takes 3, 4 or 5"))
                    .at(text, one.line, one.column)
                    .hint("fn execute(function_name, arguments, config, plugin_settings, credentials): the last two are optional"),
            ]),
        },
        (true, [one, two, ..]) => Err(vec![
            Diagnostic::error("load", &**file, format!("`execute` stands twice, at lines {} and {}", one.line, two.line))
                .at(text, two.line, two.column)
                .hint("keep one"),
        ]),
    }
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "a map",
    }
}

/// The first line of the comment above a function, whose body starts at `line`.
fn comment_line(text: &str, line: usize, comments: &[&str]) -> usize {
    let Some(first) = comments.first().and_then(|c| c.lines().next()).map(str::trim) else { return line };
    let before: Vec<&str> = text.lines().take(line).collect();
    let wanted: usize = comments.iter().map(|c| c.lines().count()).sum();
    let lowest = before.len().saturating_sub(wanted + 20);
    (lowest..before.len())
        .rev()
        .find(|i| before[*i].trim() == first && before.len() - i > wanted.saturating_sub(1))
        .map_or(line, |i| i + 1)
}

/// A value of a program's constant as text, for callers that only look.
#[must_use]
pub fn constant_text(program: &Program, name: &str) -> Option<String> {
    program.constants.get(name).map(crate::script::language::show)
}

/// Says what loading a plugin came to nothing with, as one error.
#[must_use]
pub fn as_error(diagnostics: &[Diagnostic]) -> Error {
    diagnostics
        .iter()
        .find(|d| d.severity == Severity::Error)
        .map_or_else(|| Error::internal("the plugin does not load"), |d| Error::invalid(d.summary()))
}
