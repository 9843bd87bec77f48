//! The commands as a page of the reference, from the same words that `--help` shows.

use clap::{Arg, Command, CommandFactory};
use std::fmt::Write;

/// The page about the command line, as Markdown.
#[must_use]
pub fn page() -> String {
    let mut cli = super::Cli::command();
    cli.build();
    let mut out = String::from(
        "# Commands\n\nPlain text for people; with `--json` one JSON value on stdout, for programs.\n\n\
         Exit codes: 0 fine · 1 what was asked about failed (a tool, a check, a test) · 2 wrong usage · 3 the host could not start.\n\n\
         Before or after every command:\n\n",
    );
    options(&mut out, cli.get_arguments().filter(|a| !is_builtin(a)));
    for command in cli.get_subcommands().filter(|c| c.get_name() != "help") {
        section(&mut out, command, "lapidary", 2);
    }
    out
}

fn section(out: &mut String, command: &Command, parent: &str, level: usize) {
    let name = format!("{parent} {}", command.get_name());
    let _ = write!(out, "\n{} `{name}`\n\n", "#".repeat(level));
    if let Some(about) = command.get_about() {
        let _ = writeln!(out, "{about}.\n");
    }
    let own = || command.get_arguments().filter(|a| !a.is_global_set() && !is_builtin(a) && !a.is_hide_set());
    let subs: Vec<&Command> = command.get_subcommands().filter(|c| c.get_name() != "help").collect();
    if subs.is_empty() {
        let _ = writeln!(out, "```\n{name}{}\n```\n", own().map(|a| format!(" {}", usage(a))).collect::<String>());
        options(out, own());
    }
    if let Some(after) = command.get_after_help() {
        let _ = writeln!(out, "\n```\n{after}\n```");
    }
    for sub in subs {
        section(out, sub, &name, level + 1);
    }
}

fn is_builtin(arg: &Arg) -> bool {
    matches!(arg.get_id().as_str(), "help" | "version")
}

/// `<TOOL>`, `[KEY=VALUE]...`, `[--json]`.
fn usage(arg: &Arg) -> String {
    let word = written(arg);
    let many = if arg.get_num_args().is_some_and(|n| n.max_values() > 1) { "..." } else { "" };
    match (arg.is_positional(), arg.is_required_set()) {
        (true, true) => format!("<{word}>{many}"),
        _ => format!("[{word}]{many}"),
    }
}

fn written(arg: &Arg) -> String {
    let value = arg.get_value_names().and_then(|names| names.first()).map(ToString::to_string);
    let takes = arg.get_action().takes_values();
    match (arg.get_long(), value) {
        (Some(long), Some(value)) if takes => format!("--{long} {value}"),
        (Some(long), _) => format!("--{long}"),
        (None, Some(value)) => value,
        (None, None) => arg.get_id().to_string().to_uppercase(),
    }
}

fn options<'a>(out: &mut String, args: impl Iterator<Item = &'a Arg>) {
    let rows: Vec<(String, String)> =
        args.map(|a| (written(a), a.get_help().map(ToString::to_string).unwrap_or_default())).collect();
    if rows.is_empty() {
        return;
    }
    out.push_str("| | |\n|---|---|\n");
    for (what, help) in rows {
        let _ = writeln!(out, "| `{}` | {} |", what.replace('|', "\\|"), help.replace('\n', " ").replace('|', "\\|"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_names_every_command_and_no_option_that_is_not_built() {
        let page = page();
        for command in super::super::Cli::command().get_subcommands() {
            assert!(page.contains(&format!("`lapidary {}`", command.get_name())), "{}", command.get_name());
        }
        for hidden in ["--agent", "--as", "--yes"] {
            assert!(!page.contains(&format!("`{hidden}")), "{hidden}");
        }
    }
}
