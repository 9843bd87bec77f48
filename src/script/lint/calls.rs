//! Whether a call can find its function, and whether a file's own functions hide methods that the file uses.

use super::super::diagnostic::Diagnostic;
use super::super::resolver::Source;
use super::natives::{Counts, Natives};
use super::nearest;
use super::outline::at;
use rhai::{AST, ASTFlags, ASTNode, Expr, ImmutableString, Position, Stmt};
use std::collections::{BTreeMap, HashMap, HashSet};

/// What a file defines.
#[derive(Default)]
pub(super) struct Own {
    functions: HashMap<ImmutableString, (Counts, Vec<(usize, Position)>)>,
    /// Top-level constants, with each place where they stand.
    pub(super) constants: BTreeMap<String, Vec<Position>>,
    /// Top-level variables.
    pub(super) variables: BTreeMap<String, Position>,
}

impl Own {
    pub(super) fn of(ast: &AST) -> Own {
        let mut out = Own::default();
        for (_, _, name, count, function) in ast.shared_lib().iter_script_fn_info() {
            if !name.starts_with("anon$") {
                let entry = out.functions.entry(function.name.clone()).or_default();
                entry.0.add(count);
                entry.1.push((count, function.body.start_position()));
            }
        }
        for statement in ast.statements() {
            if let Stmt::Var(var, flags, _) = statement {
                let (name, position) = (var.0.name.to_string(), var.0.pos);
                if flags.contains(ASTFlags::CONSTANT) {
                    out.constants.entry(name).or_default().push(position);
                } else {
                    out.variables.entry(name).or_insert(position);
                }
            }
        }
        out
    }

    pub(super) fn has(&self, function: &str) -> bool {
        self.functions.contains_key(function)
    }

    /// Where the first function of that name begins.
    pub(super) fn begin(&self, function: &str) -> Option<Position> {
        let places = self.functions.get(function)?.1.iter().map(|(_, position)| *position);
        places.min_by_key(|position| (position.line(), position.position()))
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.functions.keys().map(ImmutableString::as_str)
    }

    fn counts(&self, function: &str) -> Counts {
        self.functions.get(function).map_or_else(Counts::default, |f| f.0)
    }
}

/// An own function that hides a method of the same name and count.
struct Hiding {
    count: usize,
    defined: Position,
    /// The first use of the method in the file.
    used: Option<Position>,
}

/// Collects what is wrong with a file's calls.
pub(super) struct Calls<'a> {
    natives: &'a Natives,
    own: &'a Own,
    source: &'a Source,
    /// Own functions that hide a method.
    hiding: HashMap<&'a str, Vec<Hiding>>,
    methods: Vec<(String, Position)>,
    findings: Vec<Diagnostic>,
}

/// The name that `a in b` calls.
pub(super) const CONTAINS: &str = "contains";

impl<'a> Calls<'a> {
    pub(super) fn new(natives: &'a Natives, own: &'a Own, source: &'a Source) -> Self {
        let mut hiding: HashMap<&str, Vec<Hiding>> = HashMap::new();
        for (name, (_, definitions)) in &own.functions {
            let Some(native) = natives.plain.get(name.as_str()) else { continue };
            for (count, defined) in definitions {
                let is_operator = name == CONTAINS && *count == 2;
                if native.has(count + 1) || is_operator {
                    hiding.entry(name).or_default().push(Hiding { count: *count, defined: *defined, used: None });
                }
            }
        }
        Calls { natives, own, source, hiding, methods: Vec::new(), findings: Vec::new() }
    }

    /// `object.name(..)`.
    pub(super) fn method(&mut self, name: &str, arguments: usize, position: Position) {
        self.uses(name, arguments, position);
        if !self.own.has(name) && !self.natives.plain.contains_key(name) {
            self.methods.push((name.to_owned(), position));
        }
    }

    fn uses(&mut self, name: &str, arguments: usize, position: Position) {
        if self.hiding.is_empty() {
            return;
        }
        let earlier = |p: &Position| (position.line(), position.position()) < (p.line(), p.position());
        for hiding in self.hiding.get_mut(name).into_iter().flatten().filter(|h| h.count == arguments) {
            if hiding.used.as_ref().is_none_or(earlier) {
                hiding.used = Some(position);
            }
        }
    }

    /// `name(..)`, where `name` has no module before it.
    pub(super) fn function(&mut self, name: &str, arguments: usize, position: Position) {
        if name == CONTAINS && arguments == 2 && self.is_in_operator(position) {
            self.uses(name, arguments, position);
            return;
        }
        let native = self.natives.plain.get(name).copied();
        let own = self.own.counts(name);
        if own.has(arguments) || native.is_some_and(|counts| counts.has(arguments)) {
            return;
        }
        let counts = if self.own.has(name) { own } else { native.unwrap_or_default() };
        let finding = wrong_count(name, arguments, counts).unwrap_or_else(|| {
            let d = Diagnostic::error("lint", "", format!("no function `{name}`"));
            let known = self.own.names().chain(self.natives.plain.keys().map(String::as_str).filter(|n| is_name(n)));
            match (self.elsewhere(name), nearest(name, known)) {
                (Some(place), _) => d.hint(format!("did you mean `{place}`?")),
                (None, Some(near)) => d.hint(format!("did you mean `{near}`?")),
                (None, None) => d.hint("check the spelling; a closure in a variable is called as variable.call(..)"),
            }
        });
        self.push(finding, position);
    }

    /// Whether the operator `in` stands here, which the language turns into a call.
    fn is_in_operator(&self, position: Position) -> bool {
        let (Some(line), Some(column)) = (position.line(), position.position()) else { return false };
        self.source.text.lines().nth(line - 1).is_some_and(|text| {
            let rest: String = text.chars().skip(column.saturating_sub(1)).take(CONTAINS.len()).collect();
            rest != CONTAINS
        })
    }

    /// The one host module that has a function of this name.
    fn elsewhere(&self, name: &str) -> Option<String> {
        let mut modules = self.natives.modules.iter().filter(|(_, functions)| functions.contains_key(name));
        match (modules.next(), modules.next()) {
            (Some((module, _)), None) => Some(format!("{module}::{name}")),
            _ => None,
        }
    }

    /// `module::name(..)` of a host module.
    pub(super) fn host(
        &mut self,
        module: &str,
        functions: &HashMap<String, Counts>,
        name: &str,
        arguments: usize,
        position: Position,
    ) {
        let counts = functions.get(name).copied().unwrap_or_default();
        if counts.has(arguments) {
            return;
        }
        let full = format!("{module}::{name}");
        let finding = wrong_count(&full, arguments, counts).unwrap_or_else(|| {
            let d = Diagnostic::error("lint", "", format!("no function `{full}`"));
            match nearest(name, functions.keys().map(String::as_str)) {
                Some(near) => d.hint(format!("did you mean `{module}::{near}`?")),
                None => {
                    let mut names: Vec<&str> = functions.keys().map(String::as_str).filter(|n| is_name(n)).collect();
                    names.sort_unstable();
                    d.hint(format!("`{module}` has {}", names.join(" ")))
                }
            }
        });
        self.push(finding, position);
    }

    /// `Fn("name")`.
    pub(super) fn pointer(&mut self, name: &str, position: Position) {
        if self.own.has(name) || self.natives.plain.contains_key(name) {
            return;
        }
        let d = Diagnostic::warning("lint", "", format!("`Fn(\"{name}\")` names no function of this file"));
        let d = match nearest(name, self.own.names()) {
            Some(near) => d.hint(format!("did you mean `{near}`?")),
            None => d,
        };
        self.push(d, position);
    }

    fn push(&mut self, finding: Diagnostic, position: Position) {
        let finding = Diagnostic { file: self.source.name.to_string(), ..finding };
        self.findings.push(at(finding, self.source, position));
    }

    pub(super) fn finish(mut self, ast: &AST) -> Vec<Diagnostic> {
        let hiding = std::mem::take(&mut self.hiding);
        for (name, Hiding { count, defined, used }) in
            hiding.into_iter().flat_map(|(n, list)| list.into_iter().map(move |h| (n, h)))
        {
            let Some(used) = used else { continue };
            let what = if name == CONTAINS && count == 2 { "the operator `in`" } else { "the method" };
            let (here, there) = (used.line().unwrap_or(0), defined.line().unwrap_or(0));
            let d = Diagnostic::error(
                "lint",
                "",
                format!("`fn {name}` of line {there} takes the place of {what} used here, at line {here}"),
            )
            .hint(format!("give the function of line {there} another name"));
            self.push(d, used);
        }
        let methods = std::mem::take(&mut self.methods);
        if !methods.is_empty() {
            let keys = keys(ast);
            for (name, position) in methods.into_iter().filter(|(name, _)| !keys.contains(name.as_str())) {
                let d = Diagnostic::warning("lint", "", format!("nothing has a method `{name}`"));
                let known = self.natives.plain.keys().map(String::as_str).filter(|n| is_name(n));
                let d = match nearest(&name, known.chain(self.own.names())) {
                    Some(near) => d.hint(format!("did you mean `{near}`?")),
                    None => d.hint("it works only where the object is a map that holds a function of that name"),
                };
                self.push(d, position);
            }
        }
        self.findings
    }
}

/// Says that a known function takes another number of arguments; `None` where it is not known at all.
pub(super) fn wrong_count(name: &str, arguments: usize, counts: Counts) -> Option<Diagnostic> {
    (counts != Counts::default())
        .then(|| Diagnostic::error("lint", "", format!("`{name}` takes {}, not {arguments}", counts.words())))
}

/// Operators, getters and setters are functions too, but not ones that anybody writes by name.
fn is_name(name: &str) -> bool {
    name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') && !name.starts_with("__")
}

/// Every key of a map and every property in the file: what may hold a closure that is called like a method.
fn keys(ast: &AST) -> HashSet<String> {
    let mut out = HashSet::new();
    ast.walk(&mut |path| {
        match path.last() {
            Some(ASTNode::Expr(Expr::Map(map, _))) => out.extend(map.0.iter().map(|(key, _)| key.name.to_string())),
            Some(ASTNode::Expr(Expr::Property(property, _))) => {
                out.insert(property.2.to_string());
            }
            Some(ASTNode::Expr(Expr::Index(index, ..))) => {
                if let Expr::StringConstant(key, _) = &index.rhs {
                    out.insert(key.to_string());
                }
            }
            _ => {}
        }
        true
    });
    out
}
