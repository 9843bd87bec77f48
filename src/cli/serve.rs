//! `serve`: the host with hot reload, reached over HTTP.

use super::context::{Context, Done, Stop, Verdict};
use super::print;
use super::sign_in;
use crate::app::Host;
use crate::base::event::Event;
use crate::doors::{self, Reader, ServeOptions};
use crate::script::diagnostic::Diagnostic;
use clap::Args;
use serde_json::json;
use std::collections::BTreeSet;
use std::io::IsTerminal;
use tokio::sync::broadcast::error::RecvError;

/// Run the host: web page, HTTP API and MCP, with hot reload; prints the address, a link that signs in, and what to do next
#[derive(Args, Default)]
pub struct Serve {
    /// Where to listen; port 0 takes a free one [default: 127.0.0.1:8470]
    #[arg(long, value_name = "ADDRESS:PORT")]
    addr: Option<String>,
    /// Open the page in the browser, signed in
    #[arg(long)]
    open: bool,
}

impl Serve {
    pub(super) fn run(&self, cx: &Context) -> Done {
        let lasting = cx.lasting_host()?;
        let host = &lasting.host;
        // A root that cannot be written still serves.
        if let Err(e) = crate::config::write_example(host.paths()) {
            tracing::debug!(reason = %e, "no example of the host's settings was written");
        }
        if !cx.json {
            tell_problems(host);
            tell_news(host.clone());
        }
        let reader = reader();
        let mut page = None;
        let served = doors::serve(host, &ServeOptions { addr: self.addr.clone(), reader }, |opened| {
            let link = opened.link.as_ref();
            if cx.json {
                let mut value = json!({
                    "address": opened.address.to_string(),
                    "url": opened.url,
                    "mcp": format!("{}/mcp", opened.url),
                });
                if let Some(link) = link.filter(|_| reader != Reader::Log) {
                    value["sign_in"] = link.url.as_str().into();
                }
                print::json(&value);
            } else {
                print::line(opened.greeting.trim_end());
            }
            if self.open {
                page = link.and_then(|link| sign_in::open(host.paths(), link));
            }
        });
        drop(page);
        served.map_err(Stop::NoHost)?;
        Ok(Verdict::Good)
    }
}

/// Who reads stdout. What a service manager starts is written down, where others may read it.
#[expect(clippy::disallowed_methods, reason = "the service manager says so in the environment")]
fn reader() -> Reader {
    if std::io::stdout().is_terminal() {
        Reader::Terminal
    } else if std::env::var_os("JOURNAL_STREAM").is_some() {
        Reader::Log
    } else {
        Reader::Program
    }
}

/// What a person should know before the host answers.
fn tell_problems(host: &Host) {
    for status in host.plugins().statuses().iter().filter(|s| !s.diagnostics.is_empty()) {
        tell(&status.name, &status.status, &status.diagnostics);
    }
    for notice in host.plugins().notices() {
        print::note(format_args!("note: {}: {}", notice.subject, notice.message));
    }
}

/// What breaks and mends while the host answers, until it ends.
fn tell_news(host: Host) {
    let mut events = host.news();
    let news = move || {
        let mut broken = BTreeSet::new();
        loop {
            match events.blocking_recv() {
                Ok(Event::PluginFailed { plugin, live, summary, .. }) => {
                    let goes_on = live.map(|live| format!("; generation {live} goes on answering")).unwrap_or_default();
                    let diagnostics = host.plugins().status(&plugin).map(|s| s.diagnostics).unwrap_or_default();
                    let what = if diagnostics.is_empty() { summary } else { "does not load".to_owned() };
                    tell(&plugin, &format!("{what}{goes_on}"), &diagnostics);
                    broken.insert(plugin);
                }
                Ok(Event::PluginWaits { plugin, live, disk, .. }) => {
                    let goes_on = live.map(|live| format!("; generation {live} goes on answering")).unwrap_or_default();
                    let diagnostics = host.plugins().status(&plugin).map(|s| s.diagnostics).unwrap_or_default();
                    tell(&plugin, &format!("version {disk} on disk waits for a yes{goes_on}"), &diagnostics);
                    broken.remove(&plugin);
                }
                Ok(Event::PluginLive { plugin, generation }) if broken.remove(&plugin) => {
                    print::note(format_args!("mended: {plugin}: live {generation}"));
                }
                Ok(Event::Stopping) | Err(RecvError::Closed) => return,
                Ok(_) | Err(RecvError::Lagged(_)) => {}
            }
        }
    };
    // Without it the host serves all the same, and `lapidary check` says what this would have said.
    let _ = std::thread::Builder::new().name("lapidary-news".into()).spawn(news);
}

fn tell(plugin: &str, what: &str, diagnostics: &[Diagnostic]) {
    print::note(format_args!("warning: {plugin}: {what}"));
    for line in diagnostics.iter().map(Diagnostic::render).collect::<Vec<_>>().iter().flat_map(|d| d.trim_end().lines())
    {
        print::note(format_args!("  {line}"));
    }
}
