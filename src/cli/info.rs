//! `info`: what is live, what the disk holds, what a plugin may do and what should be looked at.

use super::context::{Context, Done, Verdict, known};
use super::grant;
use super::print::{self, Table};
use crate::app::Host;
use crate::plugin::status::Status;
use clap::Args;
use serde_json::Value;

/// Show the state of all plugins, or everything about one
#[derive(Args)]
pub struct Info {
    /// The plugin
    plugin: Option<String>,
}

impl Info {
    pub(super) fn run(&self, cx: &Context) -> Done {
        let host = cx.host()?;
        match &self.plugin {
            Some(plugin) => one(&host, &known(&host, plugin)?, cx),
            None => all(&host, cx),
        }
        Ok(Verdict::Good)
    }
}

/// The status line, where only this process looked: without a running host there is no older version that answers.
pub(super) fn disk_words(status: &Status) -> String {
    match (status.enabled, status.diagnostics.is_empty(), status.live) {
        (false, ..) => "off".to_owned(),
        (true, true, Some(_)) => format!("loads, {}", print::count(status.tools.len(), "tool")),
        _ => status.status.clone(),
    }
}

fn all(host: &Host, cx: &Context) {
    let statuses = host.plugins().statuses();
    if cx.json {
        let list: Vec<Value> = statuses.iter().map(|s| json_of(host, s)).collect();
        print::json(&list);
        return;
    }
    print::line(format_args!("root {}\n", host.paths().root().display()));
    if statuses.is_empty() {
        print::line("No plugins. Write one: lapidary new greet");
        return;
    }
    let mut table = Table::new(&["PLUGIN", "STATUS", "TOOLS", "FROM", "WHAT IT IS"]).right(2);
    for status in &statuses {
        table.row([
            status.name.clone(),
            print::clip(&status.status, 60),
            status.tools.len().to_string(),
            if status.origin == "shipped" { "shipped".to_owned() } else { status.path.clone() },
            print::clip(&status.description, 60),
        ]);
    }
    print::line(table.render(0));
    for notice in host.plugins().notices() {
        print::note(format_args!("note: {}: {}", notice.subject, notice.message));
    }
    let (waiting, bad): (Vec<_>, Vec<_>) =
        statuses.iter().filter(|s| !s.diagnostics.is_empty()).partition(|s| s.waiting);
    if let Some(first) = bad.first() {
        print::note(format_args!("\nTo see what is wrong: lapidary info {}", first.name));
    }
    if let Some(first) = waiting.first() {
        print::note(format_args!("\nTo see what it waits for: lapidary info {}", first.name));
    }
}

fn json_of(host: &Host, status: &Status) -> Value {
    let mut value = serde_json::to_value(status).unwrap_or_default();
    value["grants_to_give"] = grant::missing_json(&status.missing_permissions, &status.name);
    value["set_aside"] = host.plugins().set_aside(&status.name).into();
    value["installed"] =
        serde_json::to_value(host.plugins().installed(&status.name).ok().flatten()).unwrap_or_default();
    let history = host.history().list(&status.name);
    value["history"] = serde_json::to_value(history).unwrap_or_default();
    value
}

fn one(host: &Host, status: &Status, cx: &Context) {
    if cx.json {
        print::json(&json_of(host, status));
        return;
    }
    print::line(format_args!("{}: {}", status.name, status.status));
    if !status.description.is_empty() {
        print::line(format_args!("  {}", print::clip(&status.description, 110)));
    }
    print::line("");
    let mut table = Table::plain();
    let mut row = |what: &str, text: String| {
        if !text.is_empty() {
            table.row([what.to_owned(), text]);
        }
    };
    row(
        "from",
        if status.origin == "shipped" { status.path.clone() } else { format!("{} ({})", status.path, status.origin) },
    );
    row("version", status.version.clone().unwrap_or_default());
    if let Ok(Some(installed)) = host.plugins().installed(&status.name) {
        let day = installed.at.split('T').next().unwrap_or_default();
        let edited = match installed.edited.as_slice() {
            [] => "as it came".to_owned(),
            edited => format!("changed since: {}", print::clip(&edited.join(", "), 60)),
        };
        row("installed", format!("from {} on {day}, {edited}", installed.from));
    }
    row("hash", status.hash.clone().unwrap_or_default());
    row("tools", status.tools.join(", "));
    row("routes", status.routes.join(", "));
    row("permissions", status.permissions.join(", "));
    row("not active yet", status.not_active_yet.join(", "));
    if let Ok(view) = host.plugins().settings_view(&status.name)
        && !view.values.is_empty()
    {
        row("settings", view.values.keys().cloned().collect::<Vec<_>>().join(", "));
    }
    let kept = host.history().list(&status.name);
    if let (Some(newest), Some(oldest)) = (kept.first(), kept.last()) {
        let range = if kept.len() == 1 {
            newest.generation.to_string()
        } else {
            format!("{} to {}", oldest.generation, newest.generation)
        };
        row("history", format!("{} ({range})", print::count(kept.len(), "version")));
    }
    let notices: Vec<_> = host.plugins().notices().into_iter().filter(|n| n.subject == status.name).collect();
    for notice in notices {
        row("note", notice.message);
    }
    for file in host.plugins().set_aside(&status.name) {
        row("set aside", file);
    }
    print::line(table.render(2));
    for missing in &status.missing_permissions {
        print::line(format_args!("  needs a grant   lapidary grant {} {missing}", status.name));
    }
    for left_out in &status.quarantined {
        print::line(format_args!("  quarantined: tool {}: {}", left_out.tool, left_out.reason));
    }
    if !status.diagnostics.is_empty() || !status.warnings.is_empty() {
        print::line("");
        print::diagnostics(status.diagnostics.iter().chain(&status.warnings));
    }
}
