//! The benches of what the project promises about speed: one program, one module a promise, each beside its floor.
//! `cargo bench -- dispatch` runs one of them; docs/performance.md explains every line that they print.
#![allow(
    clippy::disallowed_methods,
    reason = "an editor's save is what is measured, and a clock that no test may read"
)]

mod api;
mod bare;
mod chat;
mod client;
mod dispatch;
mod html;
mod image;
mod kept;
mod kit;
mod live;
mod load;
mod mcp;
mod measure;
mod net;
mod page;
mod peer;
mod plugins;
mod start;

// The page is driven as the tests drive it.
#[path = "../tests/it/browser.rs"]
#[allow(clippy::unwrap_used, dead_code, reason = "a part of the tests")]
mod browser;
#[path = "../tests/it/shell.rs"]
#[allow(clippy::unwrap_used, dead_code, reason = "a part of the tests")]
mod shell;
#[path = "../tests/it/workshop_bench.rs"]
#[allow(clippy::unwrap_used, dead_code, reason = "a part of the tests")]
mod workshop_bench;

#[global_allocator]
static ALLOCATOR: measure::Allocator = measure::Allocator;

fn main() {
    if peer::is_asked() || api::is_asked() || kit::is_asked() {
        return;
    }
    let benches: [(&str, fn()); 11] = [
        ("dispatch", dispatch::run),
        ("load", load::run),
        ("live", live::run),
        ("start", start::run),
        ("chat", chat::run),
        ("mcp", mcp::run),
        ("api", api::run),
        ("page", page::run),
        ("net", net::run),
        ("image", image::run),
        ("html", html::run),
    ];
    for (name, run) in benches {
        if measure::is_wanted(name) {
            run();
        }
    }
}
