//! `serve`: the host with hot reload, reached over HTTP.

use super::context::{Context, Done, Stop, Verdict};
use super::print;
use crate::doors::{self, ServeOptions};
use clap::Args;
use serde_json::json;

/// Run the host: MCP over HTTP, with hot reload; prints the address and what to do next
#[derive(Args, Default)]
pub struct Serve {
    /// Where to listen; port 0 takes a free one [default: 127.0.0.1:8470]
    #[arg(long, value_name = "ADDRESS:PORT")]
    addr: Option<String>,
    #[arg(long, hide = true)]
    open: bool,
}

impl Serve {
    pub(super) fn run(&self, cx: &Context) -> Done {
        if self.open {
            return Err(Stop::not_yet("`--open`"));
        }
        let lasting = cx.lasting_host()?;
        let host = &lasting.host;
        // A root that cannot be written still serves.
        if let Err(e) = crate::config::write_example(host.paths()) {
            tracing::debug!(reason = %e, "no example of the host's settings was written");
        }
        if !cx.json {
            tell_problems(host);
        }
        doors::serve(host, &ServeOptions { addr: self.addr.clone() }, |opened| {
            if cx.json {
                print::json(
                    &json!({ "address": opened.address.to_string(), "mcp": format!("http://{}/mcp", opened.address) }),
                );
            } else {
                print::line(opened.greeting.trim_end());
            }
        })
        .map_err(Stop::NoHost)?;
        Ok(Verdict::Good)
    }
}

/// What a person should know before the host answers.
fn tell_problems(host: &crate::app::Host) {
    for status in host.plugins().statuses().iter().filter(|s| !s.diagnostics.is_empty()) {
        print::note(format_args!("warning: {}: {}", status.name, status.status));
    }
    for notice in host.plugins().notices() {
        print::note(format_args!("note: {}: {}", notice.subject, notice.message));
    }
}
