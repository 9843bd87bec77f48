//! `rollback`: an earlier version's source back into the plugin's files.

use super::context::{Context, Done, Verdict, known};
use super::print;
use clap::Args;
use serde_json::json;

/// Bring an earlier version's source back into the files; what is there now is kept
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
        known(&host, &self.plugin)?;
        let found = host.plugins().found(&self.plugin).ok_or_else(|| host.plugins().unknown(&self.plugin))?;
        let rolled = host.history().rollback(&found, self.to)?;
        let status = host.plugins().reload(&self.plugin)?;
        if cx.json {
            print::json(&json!({
                "plugin": self.plugin, "to": rolled.to, "kept_as": rolled.from, "files": rolled.files, "newer": rolled.newer,
                "status": status,
            }));
            return Ok(Verdict::of(status.diagnostics.is_empty()));
        }
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
