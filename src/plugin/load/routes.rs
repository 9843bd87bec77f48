//! The files under `routes/`: which handler answers which route, and that its parameters are what a handler can be given.

use super::{Building, LoadedFile};
use crate::plugin::manifest::RouteField;
use crate::script::diagnostic::Diagnostic;
use crate::script::program::Program;
use crate::script::resolver::{Imports, Source};
use crate::tool::registry::Form;
use crate::tool::route::{GIVEN, Method, Pattern};
use crate::tool::spec::Spec;
use serde_json::json;
use std::sync::Arc;

/// A route of a loaded file, before it is in the registry.
#[derive(Clone)]
pub struct RouteDraft {
    /// Its method.
    pub method: Method,
    /// Its path.
    pub pattern: Arc<Pattern>,
    /// Whether it gives out media.
    pub media: bool,
    /// The names of its handler's parameters, in order.
    pub takes: Arc<[String]>,
    /// Its handler.
    pub function: Arc<str>,
    /// What it is called where calls are told of, and what it needs.
    pub spec: Arc<Spec>,
}

impl Building<'_> {
    /// Loads every file that a route names, once.
    pub(super) fn route_files(&mut self, tools: &[String]) {
        let manifest = self.manifest;
        let mut seen: Vec<&str> = Vec::new();
        for route in &manifest.capabilities.routes {
            let file = route.file.as_str();
            if seen.contains(&file) {
                continue;
            }
            seen.push(file);
            if tools.iter().any(|tool| tool == file) {
                let d = Diagnostic::error(
                    "manifest",
                    self.shelf.display("plugin.json"),
                    format!("`{file}` has tools, and a route names it too"),
                )
                .hint("put the handlers of routes into a file of their own, under routes/");
                self.warnings.push(d);
                continue;
            }
            let routes: Vec<&RouteField> =
                manifest.capabilities.routes.iter().filter(|other| other.file == file).collect();
            self.file(file, Some(&routes));
        }
    }

    pub(super) fn handlers(
        &mut self,
        path: &str,
        source: &Source,
        imports: &Arc<Imports>,
        routes: &[&RouteField],
    ) -> Result<Option<LoadedFile>, Vec<Diagnostic>> {
        let program = self.program(source, imports)?;
        let mut drafts = Vec::new();
        let mut errors = Vec::new();
        for route in routes {
            match self.route(&program, route) {
                Ok(draft) => drafts.push(draft),
                Err(d) => errors.push(*d),
            }
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        let unit = self.unit(path, Form::Functions, program, imports);
        Ok(Some(LoadedFile {
            path: path.to_owned(),
            unit,
            tools: Vec::new(),
            routes: drafts,
            emoji: "".into(),
            is_dynamic: false,
        }))
    }

    fn route(&self, program: &Program, route: &RouteField) -> Result<RouteDraft, Box<Diagnostic>> {
        let (file, text) = (&program.source.name, &program.source.text);
        let shown = format!("{} {}", route.method.as_str(), route.path);
        let mut named = program.functions.iter().filter(|f| f.name == route.function);
        let Some(function) = named.next() else {
            return Err(Box::new(
                Diagnostic::error(
                    "load",
                    &**file,
                    format!("there is no function `{}` for the route {shown}", route.function),
                )
                .hint(format!("write `fn {}(query) {{ .. }}`, or name another in plugin.json", route.function)),
            ));
        };
        let wrong = |what: String, hint: String| {
            Err(Box::new(Diagnostic::error("load", &**file, what).at(text, function.line, function.column).hint(hint)))
        };
        if named.next().is_some() {
            return wrong(format!("`{}` stands here more than once", route.function), "keep one".into());
        }
        if function.private {
            return wrong(format!("`{}` is private, so nothing can call it", route.function), "drop `private`".into());
        }
        let known: Vec<&str> = route.path.params().chain(GIVEN).collect();
        if let Some(strange) = function.params.iter().find(|name| !known.contains(&name.as_str())) {
            return wrong(
                format!("`{}` takes `{strange}`, which the route {shown} does not have", route.function),
                format!("a handler is given, by name: {}", known.join(" ")),
            );
        }
        let mut spec = Spec::new(
            format!("{} /api/plugin/{}/{}", route.method.as_str(), self.found.name, route.path),
            "",
            json!({ "type": "object" }),
        );
        spec.permissions = self.declared.permissions();
        Ok(RouteDraft {
            method: route.method,
            pattern: route.path.clone(),
            media: route.media,
            takes: function.params.clone().into(),
            function: function.name.as_str().into(),
            spec: Arc::new(spec),
        })
    }
}
