//! Variables that a closure does not see, since a function further up has their name: the language takes the name for the
//! function there, and the closure works on a pointer to it.

use super::super::diagnostic::Diagnostic;
use super::super::resolver::Source;
use super::calls::Own;
use super::outline::{at, before};
use rhai::{AST, ASTNode, Module, Position, Stmt};

/// Findings for names in closures that mean a function (`uses`), where the function around the closure has a variable or a
/// parameter of that name.
pub(super) fn hidden(ast: &AST, uses: &[(String, Position)], own: &Own, source: &Source) -> Vec<Diagnostic> {
    let mut out = Vec::new();
    if uses.is_empty() {
        return out;
    }
    for (_, _, name, _, function) in ast.shared_lib().iter_script_fn_info() {
        if name.starts_with("anon$") {
            continue;
        }
        let (start, end) = (function.body.start_position(), function.body.end_position());
        let inside: Vec<_> = uses.iter().filter(|(_, p)| before(start, *p) && before(*p, end)).collect();
        if inside.is_empty() {
            continue;
        }
        let mut names: Vec<String> = function.params.iter().map(ToString::to_string).collect();
        let mut alone = Module::new();
        alone.set_script_fn(function.clone());
        AST::new(std::iter::empty(), alone).walk(&mut |path| {
            match path.last() {
                Some(ASTNode::Stmt(Stmt::Var(var, ..))) => names.push(var.0.name.to_string()),
                Some(ASTNode::Stmt(Stmt::For(var, ..))) => {
                    names.push(var.0.name.to_string());
                    names.extend(var.1.as_ref().map(|counter| counter.name.to_string()));
                }
                _ => {}
            }
            true
        });
        for (name, position) in inside.into_iter().filter(|(name, _)| names.contains(name)) {
            let Some(begin) = own.begin(name).filter(|begin| before(*begin, *position)) else { continue };
            let line = begin.line().unwrap_or(0);
            let message = format!("`{name}` in this closure is `fn {name}` of line {line}, not the variable");
            let finding = Diagnostic::warning("lint", &*source.name, message)
                .hint(format!("give the variable or the function of line {line} another name"));
            out.push(at(finding, source, *position));
        }
    }
    out
}
