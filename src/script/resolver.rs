//! Imports: confined to `std/..` and `lib/..`, evaluated once per generation, recorded, cycles refused.
//! At a call nothing is read: what a generation imported is all there is.

use super::ctx::{Ctx, Phase};
use super::diagnostic::{Diagnostic, Severity};
use super::program;
use crate::base::error::{Error, Kind, Result};
use rhai::{Dynamic, Engine, EvalAltResult, GlobalRuntimeState, Module, ModuleResolver, Position, Scope, Shared};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};

/// One importable or loadable file.
#[derive(Debug, Clone)]
pub struct Source {
    /// What people see: the path relative to the root, such as `stdlib/words.rhai`.
    pub name: Arc<str>,
    /// The text, without a BOM.
    pub text: Arc<str>,
}

/// Reads importable files; the plugin layer says where they are.
pub trait Library: Send + Sync {
    /// The file behind a confined key such as `std/words` or `lib/dates`.
    ///
    /// # Errors
    /// `not_found` where there is none, `too_large`, `invalid_arguments` for text that is not UTF-8.
    fn read(&self, key: &str) -> Result<Source>;
}

/// What one generation of one plugin imported: filled while it loads, only read afterwards.
pub struct Imports {
    library: Box<dyn Library>,
    reserved: Arc<BTreeSet<&'static str>>,
    modules: RwLock<HashMap<String, Shared<Module>>>,
    loading: Mutex<Loading>,
}

#[derive(Default)]
struct Loading {
    stack: Vec<String>,
    edges: BTreeSet<(String, String)>,
    sources: BTreeMap<String, Source>,
    missing: BTreeSet<String>,
    constants: BTreeMap<String, Dynamic>,
    findings: Vec<Diagnostic>,
}

impl Imports {
    /// An empty set over a library; `reserved` are the host modules' names, which no alias may take.
    #[must_use]
    pub fn new(library: Box<dyn Library>, reserved: Arc<BTreeSet<&'static str>>) -> Arc<Self> {
        Arc::new(Imports { library, reserved, modules: RwLock::default(), loading: Mutex::default() })
    }

    /// Nothing imported, nothing importable: for code that is no script.
    #[must_use]
    pub fn none() -> Arc<Self> {
        static NONE: OnceLock<Arc<Imports>> = OnceLock::new();
        NONE.get_or_init(|| Imports::new(Box::new(Nowhere), Arc::default())).clone()
    }

    /// Whether an alias would hide a host module.
    #[must_use]
    pub fn is_reserved(&self, alias: &str) -> bool {
        self.reserved.contains(alias)
    }

    fn loading(&self) -> std::sync::MutexGuard<'_, Loading> {
        self.loading.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Who imports what, by key.
    #[must_use]
    pub fn edges(&self) -> BTreeSet<(String, String)> {
        self.loading().edges.clone()
    }

    /// Keys that were asked for, found or not: a generation depends on them.
    #[must_use]
    pub fn keys(&self) -> BTreeSet<String> {
        let loading = self.loading();
        loading.sources.keys().chain(&loading.missing).cloned().collect()
    }

    /// The files that were read, for diagnostics.
    #[must_use]
    pub fn sources(&self) -> Vec<Source> {
        self.loading().sources.values().cloned().collect()
    }

    /// Adds a source for diagnostics: the entry files.
    pub fn keep_source(&self, source: Source) {
        self.loading().sources.insert(format!("entry:{}", source.name), source);
    }

    /// Keeps the constants of the entry file; those of modules stay in their modules.
    pub(super) fn keep_constants(&self, constants: impl Iterator<Item = (String, Dynamic)>) {
        let mut loading = self.loading();
        if loading.stack.is_empty() {
            loading.constants = constants.collect();
        }
    }

    pub(super) fn take_constants(&self) -> BTreeMap<String, Dynamic> {
        std::mem::take(&mut self.loading().constants)
    }

    /// What is wrong with the `lib/` files.
    pub(super) fn findings(&self) -> Vec<Diagnostic> {
        self.loading().findings.clone()
    }

    /// The text of a source by its display name.
    #[must_use]
    pub fn text_of(&self, name: &str) -> Option<Arc<str>> {
        self.loading().sources.values().find(|s| &*s.name == name).map(|s| s.text.clone())
    }

    pub(super) fn get(&self, key: &str) -> Option<Shared<Module>> {
        self.modules.read().unwrap_or_else(PoisonError::into_inner).get(key).cloned()
    }
}

struct Nowhere;

impl Library for Nowhere {
    fn read(&self, key: &str) -> Result<Source> {
        Err(Error::not_found(format!("there is no `{key}`")))
    }
}

/// An import path as a key, or why it is none.
///
/// # Errors
/// `invalid_arguments` for anything but `std/<module>` and `lib/<module>`.
pub fn confine(path: &str) -> Result<String> {
    let wrong = |why: &str| {
        Error::invalid(format!("`{path}` cannot be imported: {why}"))
            .hint("write import \"std/<module>\" as m; or import \"lib/<module>\" as m;")
    };
    let (root, rest) = path.split_once('/').ok_or_else(|| wrong("it names no folder"))?;
    if root != "std" && root != "lib" {
        return Err(wrong("only std/.. and the plugin's own lib/.. are importable"));
    }
    let plain = |s: &str| {
        !s.is_empty() && s.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_' || b == b'-')
    };
    if !rest.split('/').all(plain) {
        return Err(wrong("a module name has only a-z 0-9 _ - and never leaves its folder"));
    }
    Ok(format!("{root}/{rest}"))
}

/// The engine's resolver; everything it knows is in the tag.
pub(super) struct Resolver;

impl ModuleResolver for Resolver {
    fn resolve(
        &self,
        _: &Engine,
        _: Option<&str>,
        path: &str,
        pos: Position,
    ) -> Result<Shared<Module>, Box<EvalAltResult>> {
        Err(EvalAltResult::ErrorModuleNotFound(path.into(), pos).into())
    }

    fn resolve_raw(
        &self,
        engine: &Engine,
        global: &mut GlobalRuntimeState,
        _: &mut Scope,
        path: &str,
        pos: Position,
    ) -> Result<Shared<Module>, Box<EvalAltResult>> {
        let raise = |e: &Error| super::ctx::raise_at(e, pos);
        let Some(ctx) = global.tag.read_lock::<Arc<Ctx>>().map(|c| Arc::clone(&c)) else {
            return Err(raise(&Error::internal("an import outside a plugin")));
        };
        let key = confine(path).map_err(|e| raise(&e))?;
        if ctx.phase == Phase::Load {
            let from = global.source().unwrap_or_default().to_owned();
            return load(engine, &ctx, &from, &key, pos);
        }
        ctx.imports.get(&key).ok_or_else(|| {
            raise(
                &Error::new(Kind::NotFound, format!("`{path}` was not imported when the file was loaded"))
                    .hint("import it with a literal path"),
            )
        })
    }
}

/// Evaluates the module behind `key` once for this generation.
pub(super) fn load(
    engine: &Engine,
    ctx: &Arc<Ctx>,
    from: &str,
    key: &str,
    pos: Position,
) -> Result<Shared<Module>, Box<EvalAltResult>> {
    let raise = |e: &Error| super::ctx::raise_at(e, pos);
    let imports = &ctx.imports;
    {
        let mut loading = imports.loading();
        loading.edges.insert((from.to_owned(), key.to_owned()));
        if let Some(start) = loading.stack.iter().position(|k| k == key) {
            let mut cycle = loading.stack[start..].to_vec();
            cycle.push(key.to_owned());
            return Err(raise(&Error::new(Kind::Conflict, format!("import cycle: {}", cycle.join(" -> ")))));
        }
    }
    if let Some(module) = imports.get(key) {
        return Ok(module);
    }
    let source = match imports.library.read(key) {
        Ok(source) => source,
        Err(e) => {
            imports.loading().missing.insert(key.to_owned());
            return Err(raise(&e));
        }
    };
    imports.loading().sources.insert(key.to_owned(), source.clone());
    let in_module = |e: Box<EvalAltResult>| -> Box<EvalAltResult> {
        EvalAltResult::ErrorInModule(source.name.to_string(), e, pos).into()
    };
    let ast = program::compile(engine, &source).map_err(in_module)?;
    imports.loading().stack.push(key.to_owned());
    let module = program::evaluate(engine, ctx, &ast, &source);
    imports.loading().stack.pop();
    let (module, findings) = module.map_err(in_module)?;
    let module: Shared<Module> = module.into();
    if key.starts_with("lib/") {
        imports.loading().findings.extend(findings.into_iter().filter(|d| d.severity == Severity::Error));
    }
    imports.modules.write().unwrap_or_else(PoisonError::into_inner).insert(key.to_owned(), module.clone());
    Ok(module)
}

#[cfg(test)]
mod tests {
    use super::confine;

    #[test]
    fn only_std_and_lib_are_importable() {
        let table = [
            ("std/words", true),
            ("lib/a/b-c_1", true),
            ("words", false),
            ("std/", false),
            ("std//x", false),
            ("lib/../x", false),
            ("../lib/x", false),
            ("/etc/passwd", false),
            ("lib/.hidden", false),
            ("lib/x.rhai", false),
            ("plugin/x", false),
            ("std/W", false),
            ("lib\\x", false),
            ("", false),
        ];
        for (path, ok) in table {
            assert_eq!(confine(path).is_ok(), ok, "{path}");
        }
    }
}
