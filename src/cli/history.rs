//! `history`: the versions of a plugin that were kept.

use super::context::{Context, Done, Verdict, known};
use super::print::{self, Table};
use clap::Args;

/// List the versions of a plugin that rollback can bring back
#[derive(Args)]
pub struct History {
    /// The plugin
    plugin: String,
}

impl History {
    pub(super) fn run(&self, cx: &Context) -> Done {
        let host = cx.host()?;
        let entries = host.history().list(&self.plugin);
        // A plugin that is gone may still have a history.
        if entries.is_empty() {
            known(&host, &self.plugin)?;
        }
        if cx.json {
            print::json(&entries);
            return Ok(Verdict::Good);
        }
        if entries.is_empty() {
            print::line(format_args!(
                "`{}` has no kept versions yet. A running host (serve, dev or mcp) keeps each one that loads.",
                self.plugin
            ));
            return Ok(Verdict::Good);
        }
        let live = host.plugins().live(&self.plugin).map(|g| g.hash.to_string());
        let status = host.plugins().status(&self.plugin);
        let is_waiting = status.as_ref().is_some_and(|s| s.waiting);
        let is_behind = status.is_some_and(|s| s.disk.is_some());
        let mut table = Table::new(&["VERSION", "KEPT AT", "FILES", "BYTES", ""]).right(0).right(2).right(3);
        for entry in &entries {
            let bytes: u64 = entry.files.iter().map(|f| f.bytes).sum();
            let what = match (entry.ok, Some(&entry.hash) == live.as_ref()) {
                (false, _) => "replaced by a rollback",
                (true, true) if is_waiting => "answers now; the files wait for a yes",
                (true, true) if is_behind => "answers now; the files do not load",
                (true, true) => "in the files now",
                (true, false) => "",
            };
            table.row([
                entry.generation.to_string(),
                entry.at.replace('T', " ").split('.').next().unwrap_or_default().trim_end_matches('Z').to_owned(),
                entry.files.len().to_string(),
                print::grouped(usize::try_from(bytes).unwrap_or(usize::MAX)),
                what.to_owned(),
            ]);
        }
        print::line(table.render(0));
        print::line(format_args!("\nBring one back: lapidary rollback {} --to <version>", self.plugin));
        Ok(Verdict::Good)
    }
}
