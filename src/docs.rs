//! The reference, rendered from the live metadata of the host modules: pages, JSON for editors, definition files.
//! The same modules give the same bytes; nothing here is written by hand twice.

mod closed;
mod definitions;
mod json;
mod markdown;
pub mod model;

pub use json::Reference;
pub use model::Module;

use crate::script::module::HostModule;
use rhai::Engine;

/// The pages of `docs/ref`, as paths relative to the root of the project and their content.
#[must_use]
pub fn render(modules: &[HostModule]) -> Vec<(String, String)> {
    let modules: Vec<Module> = modules.iter().map(Module::of).collect();
    let mut pages = vec![("docs/ref/index.md".to_owned(), markdown::index(&modules))];
    pages.extend(modules.iter().map(|m| (format!("docs/ref/{}.md", m.name), markdown::page(m))));
    pages.push(("docs/ref/permissions.md".to_owned(), markdown::permissions()));
    pages.push(("docs/ref/errors.md".to_owned(), closed::errors()));
    pages.push(("docs/ref/events.md".to_owned(), closed::events()));
    #[cfg(feature = "cli")]
    pages.push(("docs/ref/commands.md".to_owned(), format!("{}\n{}", markdown::NOTE, crate::cli::reference())));
    pages.push(("docs/ref/plugin.schema.json".to_owned(), closed::manifest()));
    pages.push(("docs/ref/recording.schema.json".to_owned(), closed::recording()));
    pages.push(("docs/ref/host-api.json".to_owned(), json::document(&modules)));
    pages
}

/// What scripts can call, of these modules and of the language, for completion.
#[must_use]
pub fn reference(engine: &Engine, modules: &[HostModule]) -> Reference {
    let modules: Vec<Module> = modules.iter().map(Module::of).collect();
    json::reference(engine, &modules)
}

/// One definition file a module, as names and content: `json.d.rhai` and so on.
#[must_use]
pub fn definitions(modules: &[HostModule]) -> Vec<(String, String)> {
    modules.iter().map(Module::of).map(|m| (format!("{}.d.rhai", m.name), definitions::file(&m))).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn every_function_of_every_module_is_documented() {
        let mut bare = Vec::new();
        for module in crate::host::all().iter().map(Module::of) {
            for function in module.every_function() {
                if function.doc.trim().is_empty() {
                    bare.push(format!("{}::{}", module.name, function.name));
                }
                if function.receiver.is_none() && function.examples().is_empty() {
                    bare.push(format!("{}::{} has no example", module.name, function.name));
                }
            }
            assert!(!module.doc.is_empty(), "{}", module.name);
            assert!(module.types.iter().all(|t| !t.doc.is_empty()), "{}", module.name);
        }
        assert!(bare.is_empty(), "{bare:#?}");
    }

    #[test]
    fn pages_speak_the_script_s_types_only() {
        for (path, text) in render(&crate::host::all()).into_iter().chain(definitions(&crate::host::all())) {
            for foreign in [
                "&str",
                "&mut",
                "Res <",
                "Result<",
                "NativeCallContext",
                "Dynamic",
                "ImmutableString",
                "i64",
                "super::",
            ] {
                assert!(!text.contains(foreign), "{path} says {foreign}");
            }
        }
    }

    #[test]
    fn the_same_modules_give_the_same_bytes() {
        assert_eq!(render(&crate::host::all()), render(&crate::host::all()));
        assert_eq!(definitions(&crate::host::all()), definitions(&crate::host::all()));
    }
}
