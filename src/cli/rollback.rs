//! `rollback`: an earlier version's source back into the plugin's files.

use super::context::{Context, Done, Verdict};
use super::print;
use clap::Args;
use serde_json::json;

/// Bring an earlier version back into the files, or a plugin that was uninstalled; what is there now is kept
#[derive(Args)]
pub struct Rollback {
    /// The plugin
    plugin: String,
    /// The version, as `history` shows it [default: the last good one that differs from the files]
    #[arg(long, value_name = "VERSION")]
    to: Option<u64>,
}

impl Rollback {
    pub(super) fn run(&self, cx: &Context) -> Done {
        let host = cx.host()?;
        let back = host.plugins().go_back(host.history(), &self.plugin, self.to)?;
        let (status, rolled) = (back.status, back.rolled);
        if cx.json {
            print::json(&json!({
                "plugin": self.plugin,
                "restored": back.restored,
                "to": rolled.as_ref().map(|r| r.to),
                "kept_as": rolled.as_ref().and_then(|r| r.from),
                "files": rolled.as_ref().map(|r| &r.files),
                "newer": rolled.as_ref().map(|r| &r.newer),
                "status": status,
            }));
            return Ok(Verdict::of(status.diagnostics.is_empty()));
        }
        if back.restored {
            print::line(format_args!("{}: back again, {}", self.plugin, status.status));
        }
        let Some(rolled) = rolled else {
            print::diagnostics(&status.diagnostics);
            return Ok(Verdict::of(status.diagnostics.is_empty()));
        };
        print::line(format_args!("{}: version {} is back in {}", self.plugin, rolled.to, rolled.files.join(", ")));
        if let Some(from) = rolled.from {
            print::line(format_args!(
                "What it replaced is kept as version {from}: lapidary rollback {} --to {from}",
                self.plugin
            ));
        }
        for file in &rolled.newer {
            print::note(format_args!("note: {file} came later and was left alone"));
        }
        print::diagnostics(&status.diagnostics);
        Ok(Verdict::of(status.diagnostics.is_empty()))
    }
}
