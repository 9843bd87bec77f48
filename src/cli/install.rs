//! `install` and `uninstall`: plugins from elsewhere, and plugins that go.

use super::context::{Context, Done, Stop, Verdict};
use super::print::{self, Table};
use crate::plugin::consent::Power;
use crate::plugin::install::{Arrival, Existing, Source, Terms};
use crate::plugin::package::Package;
use crate::plugin::removal::Data;
use crate::service::permissions::Permission;
use clap::Args;
use serde_json::json;
use std::path::PathBuf;

/// Install a plugin from a script, a folder or a zip; it gets no permission by that
#[derive(Args)]
#[command(after_help = "\
Examples:
  lapidary install dice.rhai
  lapidary install ~/Downloads/weather.zip --look
  lapidary install ~/Downloads/weather.zip --deny EXTERNAL_HTTP
  lapidary install ../weather --force")]
pub struct Install {
    /// A .rhai script, a plugin's folder, or a .zip of one
    #[arg(value_name = "FILE")]
    path: PathBuf,
    /// Put it in the place of an installed plugin of that name; settings and state stay
    #[arg(long)]
    force: bool,
    /// What it shall not do from its first moment on, also of what it would hold without a grant; several by several
    #[arg(long, value_name = "PERMISSION")]
    deny: Vec<String>,
    /// Only show what it would bring, and what it asks for
    #[arg(long)]
    look: bool,
}

/// Remove a plugin; `rollback` brings it back for 30 days
#[derive(Args)]
pub struct Uninstall {
    /// The plugin
    plugin: String,
    /// Leave its settings, state and grants where they are
    #[arg(long)]
    keep_data: bool,
}

impl Install {
    pub(super) fn run(&self, cx: &Context) -> Done {
        let denied = self.deny.iter().map(|word| Permission::read(word)).collect::<Result<Vec<_>, _>>();
        let denied = denied.map_err(Stop::Usage)?;
        let package = Package::of_path(&self.path)?;
        if !self.look {
            // As for a new tool: what is installed may be the first thing in a workshop.
            cx.paths()?.ensure().map_err(Stop::NoHost)?;
        }
        let host = cx.host()?;
        let plugins = host.plugins();
        let arrival = plugins.look_at(&package)?;
        if self.look {
            if cx.json {
                print::json(&arrival);
            } else {
                show(&arrival, &denied);
                print::note("Nothing was installed.");
            }
            return Ok(Verdict::of(!arrival.is_broken()));
        }
        let existing = if self.force { Existing::Replace } else { Existing::Keep };
        let terms = Terms { existing, denied };
        let status = plugins.install(&package, &self.source(), &terms)?;
        if cx.json {
            print::json(&json!({ "installed": arrival, "status": status }));
            return Ok(Verdict::of(status.live.is_some()));
        }
        show(&arrival, &terms.denied);
        print::line(format_args!("{}: {} ({})", status.name, status.status, status.path));
        let is_denied = |missing: &String| terms.denied.iter().any(|p| missing.split('=').next() == Some(p.as_str()));
        for missing in status.missing_permissions.iter().filter(|missing| !is_denied(missing)) {
            print::line(format_args!("  needs a grant   lapidary grant {} {missing}", status.name));
        }
        print::diagnostics(&status.diagnostics);
        Ok(Verdict::of(status.live.is_some()))
    }

    fn source(&self) -> Source {
        let from = self.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let method = if self.path.is_dir() {
            "folder"
        } else if from.to_ascii_lowercase().ends_with(".zip") {
            "zip"
        } else {
            "file"
        };
        Source { from, method }
    }
}

fn show(arrival: &Arrival, denied: &[Permission]) {
    let version = arrival.version.as_ref().map(|v| format!(" {v}")).unwrap_or_default();
    print::line(format_args!("{}{version}: {}", arrival.name, print::count(arrival.files.len(), "file")));
    if let Some(old) = &arrival.replaces {
        let edited = if old.is_edited { ", which has changes of your own" } else { "" };
        print::line(format_args!("  takes the place of {}{edited}", old.place));
    }
    let mut table = Table::plain();
    for tool in &arrival.tools {
        table.row([tool.name.clone(), print::clip(&print::first_paragraph(&tool.description), 80)]);
    }
    if !arrival.tools.is_empty() {
        print::line(table.render(2));
    }
    let is_denied = |power: &Power| denied.iter().any(|p| p.as_str() == power.permission);
    let (refused, rest): (Vec<&Power>, Vec<&Power>) = arrival.permissions.iter().partition(|power| is_denied(power));
    let (held, asked): (Vec<&Power>, Vec<&Power>) = rest.into_iter().partition(|power| power.granted);
    let words = |powers: &[&Power]| powers.iter().map(|power| power.says.clone()).collect::<Vec<_>>().join("; ");
    if !held.is_empty() {
        print::line(format_args!("  it may: {}", words(&held)));
    }
    if !asked.is_empty() {
        print::line(format_args!("  it asks to: {}", words(&asked)));
    }
    if !refused.is_empty() {
        print::line(format_args!("  it may not: {}", words(&refused)));
    }
    print::diagnostics(&arrival.diagnostics);
}

impl Uninstall {
    pub(super) fn run(&self, cx: &Context) -> Done {
        let host = cx.host()?;
        let data = if self.keep_data { Data::Keep } else { Data::Remove };
        let removed = host.plugins().uninstall(&self.plugin, data)?;
        if cx.json {
            print::json(&removed);
            return Ok(Verdict::Good);
        }
        let what =
            if self.keep_data { "Its settings, state and grants stay." } else { "So are its settings and state." };
        print::line(format_args!("{}: removed, and kept until {}. {what}", self.plugin, day(&removed.undo_until)));
        print::line(format_args!("Bring it back: lapidary rollback {}", self.plugin));
        Ok(Verdict::Good)
    }
}

fn day(moment: &str) -> &str {
    moment.split('T').next().unwrap_or(moment)
}
