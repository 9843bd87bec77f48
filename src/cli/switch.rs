//! `enable`, `disable` and `reload` of a plugin.

use super::context::{Context, Done, Verdict, known};
use super::{info, print};
use crate::base::file;
use crate::plugin::set::Switch;
use clap::Args;

/// Switch a plugin on
#[derive(Args)]
pub struct Enable {
    /// The plugin
    plugin: String,
}

/// Switch a plugin off; its files, settings and state stay
#[derive(Args)]
pub struct Disable {
    /// The plugin
    plugin: String,
}

/// Load a plugin's files again and say whether they work
#[derive(Args)]
pub struct Reload {
    /// The plugin
    plugin: String,
}

impl Enable {
    pub(super) fn run(&self, cx: &Context) -> Done {
        switch(cx, &self.plugin, Switch::On)
    }
}

impl Disable {
    pub(super) fn run(&self, cx: &Context) -> Done {
        switch(cx, &self.plugin, Switch::Off)
    }
}

fn switch(cx: &Context, plugin: &str, on: Switch) -> Done {
    let host = cx.host()?;
    known(&host, plugin)?;
    let status = host.plugins().switch(plugin, on)?;
    // Switching on a plugin that does not load is done, and still something to look at.
    let works = on == Switch::Off || status.live.is_some();
    if cx.json {
        print::json(&status);
    } else {
        print::line(format_args!("{plugin}: {}", status.status));
        print::diagnostics(&status.diagnostics);
    }
    Ok(Verdict::of(works))
}

impl Reload {
    pub(super) fn run(&self, cx: &Context) -> Done {
        let host = cx.host()?;
        known(&host, &self.plugin)?;
        let status = host.plugins().reload(&self.plugin)?;
        let works = status.diagnostics.is_empty();
        if cx.json {
            print::json(&status);
            return Ok(Verdict::of(works));
        }
        print::line(format_args!("{}: {}", self.plugin, info::disk_words(&status)));
        print::diagnostics(&status.diagnostics);
        print::note(if file::is_held(&host.paths().host_mark()) {
            "The host that runs on this root follows its files by itself; this command only looked at them."
        } else {
            "No host runs on this root, so nothing else was loaded; serve, dev and mcp follow files by themselves."
        });
        Ok(Verdict::of(works))
    }
}
