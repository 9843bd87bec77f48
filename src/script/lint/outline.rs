//! One walk over a compiled file: its imports, its names, and every call and variable that cannot work.

use super::super::ctx::Ctx;
use super::super::diagnostic::Diagnostic;
use super::super::resolver::{self, Source};
use super::calls::{CONTAINS, Calls, Own};
use super::natives::{self, Natives};
use super::nearest;
use crate::base::error::{Error, Kind};
use rhai::{AST, ASTFlags, ASTNode, Engine, Expr, FnCallExpr, Module, Namespace, Position, Shared, Stmt};
use std::collections::BTreeMap;

/// An import anywhere in a file.
#[derive(Debug)]
pub(in crate::script) struct Import {
    pub(in crate::script) path: String,
    pub(in crate::script) alias: String,
    pub(in crate::script) position: Position,
}

/// What one walk found.
#[derive(Default)]
pub(in crate::script) struct Outline {
    /// Every import, function bodies and closures included.
    pub(in crate::script) imports: Vec<Import>,
    /// What makes running the file senseless: a computed import, a taken alias, a `return` outside a function.
    pub(in crate::script) refused: Option<(Error, Position)>,
    findings: Vec<Diagnostic>,
    /// What an imported module has to have.
    wanted: Vec<Wanted>,
}

/// A use of an imported module, to be checked once that module was evaluated.
struct Wanted {
    alias: String,
    name: String,
    /// Arguments of a call; `None` for a constant.
    arguments: Option<usize>,
    position: Position,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    TopLevel,
    Function,
    /// What a closure captures is checked where it is made.
    Closure,
}

impl Outline {
    /// Walks a compiled file.
    pub(in crate::script) fn of(engine: &Engine, ctx: &Ctx, ast: &AST, source: &Source) -> Outline {
        natives::with(engine, |natives| {
            let own = Own::of(ast);
            let mut walk = Walk {
                natives,
                calls: Calls::new(natives, &own, source),
                own: &own,
                source,
                ctx,
                place: Place::TopLevel,
                captures_scope: false,
                unknown: Vec::new(),
                pointers: Vec::new(),
                prints: (0, Position::NONE),
                last_setting: None,
                out: Outline::default(),
            };
            walk.file(ast);
            walk.finish(ast)
        })
    }

    /// Checks what the file uses of its imports and hands out all findings.
    pub(in crate::script) fn finish(mut self, ctx: &Ctx, source: &Source) -> Vec<Diagnostic> {
        let modules: Vec<(&str, Option<Shared<Module>>)> = self
            .imports
            .iter()
            .map(|i| (i.alias.as_str(), resolver::confine(&i.path).ok().and_then(|key| ctx.imports.get(&key))))
            .collect();
        for want in &self.wanted {
            let candidates = || modules.iter().filter(|(alias, _)| *alias == want.alias);
            // An alias that also stands for something not loaded here is left alone.
            if candidates().any(|(_, m)| m.is_none()) {
                continue;
            }
            let lacks = candidates().all(|(_, m)| m.as_deref().is_some_and(|m| !want.is_in(m)));
            if lacks {
                let functions: Vec<(String, usize)> =
                    candidates().filter_map(|(_, m)| m.as_deref()).flat_map(functions_of).collect();
                self.findings.push(want.finding(source, &functions));
            }
        }
        super::cap(&mut self.findings);
        self.findings
    }
}

fn functions_of(module: &Module) -> Vec<(String, usize)> {
    module.iter_script_fn_info().map(|(_, _, name, count, _)| (name.to_owned(), count)).collect()
}

impl Wanted {
    fn is_in(&self, module: &Module) -> bool {
        match self.arguments {
            Some(n) => module.iter_script_fn_info().any(|(_, _, name, count, _)| name == self.name && count == n),
            None => module.contains_var(&self.name),
        }
    }

    fn finding(&self, source: &Source, functions: &[(String, usize)]) -> Diagnostic {
        let full = format!("{}::{}", self.alias, self.name);
        let Some(n) = self.arguments else {
            return at(
                Diagnostic::error("lint", &*source.name, format!("the imported module has no constant `{full}`"))
                    .hint(format!("write `export const {} = ..` in the module", self.name)),
                source,
                self.position,
            );
        };
        let mut counts = super::natives::Counts::default();
        functions.iter().filter(|(name, _)| *name == self.name).for_each(|(_, count)| counts.add(*count));
        let found = super::calls::wrong_count(&full, n, counts).unwrap_or_else(|| {
            let near = nearest(&self.name, functions.iter().map(|(name, _)| name.as_str()));
            let d = Diagnostic::error("lint", "", format!("the imported module has no function `{full}`"));
            match near {
                Some(near) => d.hint(format!("did you mean `{}::{near}`?", self.alias)),
                None => d.hint("a `private` function stays in its module"),
            }
        });
        at(Diagnostic { file: source.name.to_string(), ..found }, source, self.position)
    }
}

/// Puts a finding at a place of the file.
pub(super) fn at(finding: Diagnostic, source: &Source, position: Position) -> Diagnostic {
    finding.at(&source.text, position.line().unwrap_or(0), position.position().unwrap_or(0))
}

struct Walk<'a> {
    natives: &'a Natives,
    calls: Calls<'a>,
    own: &'a Own,
    source: &'a Source,
    ctx: &'a Ctx,
    place: Place,
    /// A call `f!()` or `is_def_var` is somewhere: names may come from elsewhere.
    captures_scope: bool,
    unknown: Vec<(String, Place, Position)>,
    /// Names in closures that stand for functions of the file.
    pointers: Vec<(String, Position)>,
    prints: (usize, Position),
    last_setting: Option<Position>,
    out: Outline,
}

impl Walk<'_> {
    fn file(&mut self, ast: &AST) {
        for statement in ast.statements() {
            statement.walk(&mut Vec::new(), &mut |path| self.node(path));
        }
        let lib = ast.shared_lib();
        let is_closure = |name: &str| name.starts_with("anon$");
        if lib.iter_script_fn_info().all(|(_, _, name, ..)| !is_closure(name)) {
            self.functions(Place::Function, lib.clone());
            return;
        }
        let (mut named, mut closures) = (Module::new(), Module::new());
        for (_, _, name, _, function) in lib.iter_script_fn_info() {
            let module = if is_closure(name) { &mut closures } else { &mut named };
            module.set_script_fn(function.clone());
        }
        self.functions(Place::Function, named.into());
        self.functions(Place::Closure, closures.into());
    }

    fn functions(&mut self, place: Place, lib: Shared<Module>) {
        self.place = place;
        AST::new(std::iter::empty(), lib).walk(&mut |path| self.node(path));
    }

    fn node(&mut self, path: &[ASTNode]) -> bool {
        match path.last() {
            Some(ASTNode::Stmt(Stmt::FnCall(call, pos)) | ASTNode::Expr(Expr::FnCall(call, pos))) => {
                self.call(path, call, *pos)
            }
            Some(ASTNode::Expr(Expr::MethodCall(call, pos))) => {
                self.calls.method(&call.name, call.args.len(), *pos);
            }
            Some(ASTNode::Expr(Expr::Variable(variable, short, pos))) => {
                let (long, name, namespace, _) = &**variable;
                if !namespace.is_empty() {
                    self.qualified(namespace, name, None, *pos);
                } else if long.is_none() && short.is_none() {
                    match self.place {
                        Place::Closure if self.own.has(name) => self.pointers.push((name.to_string(), *pos)),
                        Place::Closure => {}
                        _ => self.variable(name, *pos),
                    }
                }
            }
            Some(ASTNode::Expr(Expr::StringConstant(text, pos))) => self.text(text, *pos),
            Some(ASTNode::Stmt(Stmt::Import(import, pos))) => self.import(&import.0, import.1.name.as_str(), *pos),
            Some(ASTNode::Stmt(Stmt::Return(_, flags, pos)))
                if self.place == Place::TopLevel && !flags.contains(ASTFlags::BREAK) =>
            {
                let error =
                    Error::invalid("`return` outside a function").hint("the top level of a file runs to its end");
                self.out.refused.get_or_insert((error, *pos));
            }
            _ => {}
        }
        true
    }

    fn call(&mut self, path: &[ASTNode], call: &FnCallExpr, position: Position) {
        if call.is_operator_call() {
            // `a !in b` is an operator to the parser and a call to whoever runs it.
            if call.name == CONTAINS {
                self.calls.function(CONTAINS, call.args.len(), position);
            }
            return;
        }
        self.captures_scope |= call.capture_parent_scope || call.name == "is_def_var";
        if call.is_qualified() {
            self.qualified(&call.namespace, &call.name, Some(call.args.len()), position);
            self.setting(path, call);
            return;
        }
        if call.name == "Fn"
            && let [Expr::StringConstant(name, at)] = &*call.args
        {
            self.calls.pointer(name, *at);
        }
        if matches!(call.name.as_str(), "print" | "debug") && !self.own.has(&call.name) {
            self.prints.0 += 1;
            if self.prints.0 == 1 || before(position, self.prints.1) {
                self.prints.1 = position;
            }
        }
        self.calls.function(&call.name, call.args.len(), position);
    }

    /// `module::name`, a function or a constant.
    fn qualified(&mut self, namespace: &Namespace, name: &str, arguments: Option<usize>, position: Position) {
        let mut path = namespace.path.iter();
        let (Some(root), None) = (path.next(), path.next()) else { return };
        let root = root.name.as_str();
        match (self.natives.modules.get(root), arguments) {
            (Some(functions), Some(n)) => self.calls.host(root, functions, name, n, position),
            (Some(_), None) => {}
            _ if root == "global" && arguments.is_none() => {
                if !self.own.constants.contains_key(name) {
                    self.unknown.push((name.to_owned(), self.place, position));
                }
            }
            _ => self.out.wanted.push(Wanted {
                alias: root.to_owned(),
                name: name.to_owned(),
                arguments,
                position: namespace.path.first().map_or(position, |root| root.pos),
            }),
        }
    }

    fn variable(&mut self, name: &str, position: Position) {
        let known = self.own.has(name) || self.place == Place::Function && self.own.constants.contains_key(name);
        if !known {
            self.unknown.push((name.to_owned(), self.place, position));
        }
    }

    /// A setting that is read once, at the top level, into a constant.
    fn setting(&mut self, path: &[ASTNode], call: &FnCallExpr) {
        if self.place != Place::TopLevel || !matches!(call.name.as_str(), "get" | "all") {
            return;
        }
        let (Some(root), Some(ASTNode::Stmt(Stmt::Var(var, flags, _)))) = (call.namespace.path.first(), path.first())
        else {
            return;
        };
        if root.name != "settings" || !flags.contains(ASTFlags::CONSTANT) || self.last_setting == Some(var.0.pos) {
            return;
        }
        self.last_setting = Some(var.0.pos);
        let name = var.0.name.as_str();
        self.warn(
            var.0.pos,
            format!("`const {name}` keeps the setting as it was when the file was loaded"),
            "read it inside the function: settings::get(..) there sees every save; or build the tools in get_tools()",
        );
    }

    fn text(&mut self, text: &str, position: Position) {
        const MARKERS: [&str; 3] = ["<!--FILES:", "<!--GALLERY:", "<<IMG::"];
        if let Some(marker) = MARKERS.iter().find(|m| text.contains(**m)) {
            self.warn(
                position,
                format!("`{marker}` looks like a marker made by hand, which the chat shows as plain text"),
                "the host makes markers: images::result, images::gallery, attachments::marker",
            );
        }
    }

    fn import(&mut self, path: &Expr, alias: &str, position: Position) {
        match path {
            Expr::StringConstant(text, at) => {
                self.out.imports.push(Import { path: text.to_string(), alias: alias.to_owned(), position: *at });
            }
            _ => {
                let error =
                    Error::invalid("an import needs a literal path").hint("write import \"std/<module>\" as m;");
                self.out.refused.get_or_insert((error, position));
            }
        }
        if self.ctx.imports.is_reserved(alias) {
            let error =
                Error::new(Kind::Conflict, format!("`{alias}` is a host module, so an import cannot be called that"))
                    .hint("choose another alias");
            self.out.refused.get_or_insert((error, position));
        }
    }

    fn warn(&mut self, position: Position, message: String, hint: &str) {
        let finding = Diagnostic::warning("lint", &*self.source.name, message).hint(hint);
        self.out.findings.push(at(finding, self.source, position));
    }

    fn finish(mut self, ast: &AST) -> Outline {
        let aliases: Vec<String> = self.out.imports.iter().map(|i| i.alias.clone()).collect();
        let unknown = std::mem::take(&mut self.unknown);
        let skip = self.captures_scope;
        let mut names = Names::default();
        for (name, place, position) in unknown.into_iter().filter(|(_, place, _)| !skip || *place == Place::TopLevel) {
            let finding = self.undefined(&name, place, &aliases, names.of(ast));
            self.out.findings.push(at(finding, self.source, position));
        }
        let (foreign, wanted): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.out.wanted).into_iter().partition(|w| !aliases.contains(&w.alias));
        self.out.wanted = wanted;
        for Wanted { alias, position, .. } in foreign {
            if let Some(finding) = not_built(&alias, &self.source.name) {
                self.out.findings.push(at(finding, self.source, position));
                continue;
            }
            let modules = self.natives.modules.keys().chain(&aliases).map(String::as_str);
            let hint = nearest(&alias, modules).map_or_else(
                || format!("import it: import \"lib/{alias}\" as {alias};"),
                |near| format!("did you mean `{near}`?"),
            );
            let finding = Diagnostic::error("lint", &*self.source.name, format!("no module `{alias}`")).hint(hint);
            self.out.findings.push(at(finding, self.source, position));
        }
        for (name, lines) in &self.own.constants {
            if let [.., before, last] = lines.as_slice() {
                let message = format!(
                    "`const {name}` stands twice, at lines {} and {}: the last one counts",
                    before.line().unwrap_or(0),
                    last.line().unwrap_or(0)
                );
                let finding = Diagnostic::warning("lint", &*self.source.name, message).hint("keep one");
                self.out.findings.push(at(finding, self.source, *last));
            }
        }
        if self.prints.0 > 0 {
            let more = if self.prints.0 > 1 { format!(" ({} times)", self.prints.0) } else { String::new() };
            let position = self.prints.1;
            self.warn(
                position,
                format!("`print` is left in{more}"),
                "take it out, or say log::info(..) for what should stay",
            );
        }
        self.out.findings.extend(super::closures::hidden(ast, &self.pointers, self.own, self.source));
        let calls = self.calls.finish(ast);
        self.out.findings.extend(calls);
        self.out
    }

    fn undefined(&self, name: &str, place: Place, aliases: &[String], names: &[String]) -> Diagnostic {
        let finding = Diagnostic::error("lint", &*self.source.name, format!("no variable `{name}` here"));
        if place == Place::TopLevel && self.own.constants.contains_key(name) {
            return finding.hint(format!("`const {name}` stands further down: move it above its first use"));
        }
        if self.own.variables.contains_key(name) {
            return finding.hint(match place {
                Place::TopLevel => format!("`let {name}` stands further down: move it above its first use"),
                _ => format!(
                    "a top-level `let` is not visible in functions: make `{name}` a const, a parameter, or keep it in state::"
                ),
            });
        }
        if let Some((_, here)) = ELSEWHERE.iter().find(|(word, _)| *word == name) {
            return finding.hint(format!("write `{here}`"));
        }
        if self.natives.modules.contains_key(name) || aliases.iter().any(|a| a == name) {
            return finding.hint(format!("`{name}` is a module: write {name}::<function>(..)"));
        }
        let known = self.own.constants.keys().chain(names).map(String::as_str).chain(self.own.names());
        match nearest(name, known) {
            Some(near) => finding.hint(format!("did you mean `{near}`?")),
            None => finding
                .hint("check the spelling; only parameters, `let` of this function and top-level `const` are visible"),
        }
    }
}

/// The script API's own names for its modules. One of them that the engine does not know is not built: it is no misspelling, and
/// no import brings it.
const MODULES: [&str; 29] = [
    "agents",
    "attachments",
    "base64",
    "cache",
    "chat_state",
    "command",
    "credentials",
    "db",
    "files",
    "hash",
    "html",
    "images",
    "inbox",
    "json",
    "log",
    "math",
    "net",
    "progress",
    "random",
    "regex",
    "room",
    "routes",
    "scopes",
    "settings",
    "state",
    "text",
    "time",
    "tools",
    "uuid",
];

/// The finding about a module that the script API has and this version does not.
fn not_built(alias: &str, file: &str) -> Option<Diagnostic> {
    MODULES.contains(&alias).then(|| {
        Diagnostic::error("lint", file, format!("the host module `{alias}` is not built yet"))
            .hint("do without it in this version; `lapidary docs` lists the modules that there are")
    })
}

/// Words of other languages, and what they are here.
const ELSEWHERE: [(&str, &str); 7] = [
    ("None", "()"),
    ("undefined", "()"),
    ("True", "true"),
    ("False", "false"),
    ("self", "this"),
    ("elif", "else if"),
    ("pass", "{}"),
];

pub(super) fn before(a: Position, b: Position) -> bool {
    (a.line(), a.position()) < (b.line(), b.position())
}

/// The names of all variables and parameters of a file, for suggestions; collected when first needed.
#[derive(Default)]
struct Names(Option<Vec<String>>);

impl Names {
    fn of(&mut self, ast: &AST) -> &[String] {
        self.0.get_or_insert_with(|| {
            let mut out: BTreeMap<String, ()> = BTreeMap::new();
            for function in ast.iter_functions() {
                out.extend(function.params.iter().map(|p| ((*p).to_owned(), ())));
            }
            ast.walk(&mut |path| {
                if let Some(ASTNode::Stmt(Stmt::Var(var, ..))) = path.last() {
                    out.insert(var.0.name.to_string(), ());
                }
                true
            });
            out.into_keys().collect()
        })
    }
}
