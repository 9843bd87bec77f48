//! The reference as Markdown pages.

use super::model::{Function, Module, Signature};
use crate::service::permissions::{GUARDED, GUARDED_BY_FOLDER, Permission};
use std::fmt::Write;

/// What stands above every page.
pub const NOTE: &str = "<!-- Rendered from the sources by `lapidary docs`; edit the comments there. -->\n";

/// The list of modules.
pub fn index(modules: &[Module]) -> String {
    let mut out = format!("{NOTE}\n# What a script can call\n\n");
    out.push_str(
        "Every function is called as `module::function(..)`, from tool files and from the modules they import. \
         A last parameter `opts` is a map and may be left out; an unknown key in it is an error. \
         An error of these functions is, in `catch (e)`, a map with `code`, `message` and `hint`.\n\n\
         | module | for | functions |\n|---|---|---|\n",
    );
    for module in modules {
        let first = module.doc.split_inclusive('.').next().unwrap_or_default();
        let names: Vec<String> = module.functions.iter().map(|f| format!("`{}`", f.name)).collect();
        let _ = writeln!(out, "| [`{0}`]({0}.md) | {1} | {2} |", module.name, first.trim(), names.join(" "));
    }
    out.push_str(
        "\nWhile a file loads (its top level and `get_tools()`) only reading works: \
         `settings log json base64 text regex html hash time` (not `time::sleep`), `state::get` and `state::all`, \
         `cache::get`, `net::parse` and `net::with_params`, `files::list`, `stat`, `read_text` and `asset`, and the same of `files::root(name)`. \
         Everything else throws `disabled`.\n\n\
         [Permissions](permissions.md) · [Errors](errors.md) · [Events](events.md) · [Commands](commands.md) · \
         [the manifest's schema](plugin.schema.json) · [that of recorded HTTP](recording.schema.json) · [this as JSON](host-api.json)\n",
    );
    out
}

/// One module.
pub fn page(module: &Module) -> String {
    let mut out = format!("{NOTE}\n# `{}`\n\n{}\n", module.name, module.doc);
    for function in &module.functions {
        section(&mut out, &format!("{}::", module.name), function);
    }
    for kind in &module.types {
        let _ = write!(out, "\n## `{}`\n\n{}\n", kind.name, kind.doc);
        if !kind.properties.is_empty() {
            out.push_str("\n| property | type | |\n|---|---|---|\n");
            for property in &kind.properties {
                let word = property.signatures.first().map_or("any", |s| s.result.word());
                let _ = writeln!(out, "| `{}` | {} | {} |", property.name, word, property.doc.replace('\n', " "));
            }
        }
        for method in &kind.methods {
            section(&mut out, &format!("{}.", kind.name), method);
        }
    }
    out
}

fn section(out: &mut String, before: &str, function: &Function) {
    let _ = write!(out, "\n### `{before}{}`\n\n```\n", function.name);
    for signature in &function.signatures {
        let _ = writeln!(out, "{before}{}", written(&function.name, signature));
    }
    let _ = write!(out, "```\n\n{}\n", function.doc);
}

fn written(name: &str, signature: &Signature) -> String {
    let params: Vec<String> = signature.params.iter().map(|(name, kind)| format!("{name}: {}", kind.word())).collect();
    format!("{name}({}) -> {}", params.join(", "), signature.result.word())
}

/// The permissions and what they guard.
pub fn permissions() -> String {
    let mut out = format!("{NOTE}\n# Permissions\n\n");
    out.push_str(
        "A plugin declares what it needs in `const PERMISSIONS` or `plugin.json`. What is harmless is granted by that; \
         the rest by `lapidary grant <plugin> <permission>`.\n\n\
         | permission | allows | granted by declaring it | guards |\n|---|---|---|---|\n",
    );
    for (permission, functions) in GUARDED {
        let by_declaring = match permission {
            Permission::ExternalHttp => "for the hosts it lists",
            other if other.harmless() => "yes",
            _ => "no",
        };
        let names: Vec<String> = functions.iter().map(|f| format!("`{f}`")).collect();
        let _ = writeln!(out, "| `{permission}` | {} | {by_declaring} | {} |", permission.meaning(), names.join(" "));
    }
    let names: Vec<String> = GUARDED_BY_FOLDER.iter().map(|f| format!("`{f}`")).collect();
    let _ = write!(
        out,
        "\nA folder of the user is granted by name, with `lapidary grant <plugin> folder:<name>=/absolute/path`; it guards {}.\n",
        names.join(" ")
    );
    out
}
