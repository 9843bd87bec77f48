//! `sign-in`: a fresh link that signs a person in to a running host. The link is for a terminal or a browser, never for a log.

use super::context::{Context, Done, Verdict};
use super::print;
use crate::base::clock::Clock;
use crate::base::file;
use crate::base::paths::Paths;
use crate::doors::{self, Link};
use crate::service::time;
use clap::Args;
use serde_json::json;
use std::path::PathBuf;

/// Print a link that signs you in to the page of a running host; it works once, for 15 minutes
#[derive(Args)]
pub struct SignIn {
    /// Open it in the browser
    #[arg(long)]
    open: bool,
}

impl SignIn {
    pub(super) fn run(&self, cx: &Context) -> Done {
        let paths = cx.workshop()?;
        let link = doors::link(&paths, &Clock::system())?;
        if cx.json {
            print::json(&json!({ "url": link.url, "expires_at": time::from_unix_ms(link.expires_ms) }));
        } else {
            print::line(&link.url);
        }
        // The browser reads the file when it likes; what stands in it is of no use after 15 minutes.
        if self.open
            && let Some(page) = open(&paths, &link)
        {
            page.leave();
        }
        Ok(Verdict::Good)
    }
}

/// A file that leads a browser to a link; it is taken away when this goes.
pub(super) struct Page(Option<PathBuf>);

impl Page {
    /// Leaves the file where it is.
    fn leave(mut self) {
        self.0 = None;
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        if let Some(path) = &self.0 {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Opens a link in the person's browser. The browser is told a file that only its owner can read: what programs are told when
/// they are started, everybody on the machine can read.
pub(super) fn open(paths: &Paths, link: &Link) -> Option<Page> {
    let path = paths.webui().join("open.html");
    let opened = file::write_atomic_private(&path, page(&link.url).as_bytes())
        .map_err(|e| e.message().to_owned())
        .and_then(|()| open::that_detached(&path).map_err(|e| e.to_string()));
    if let Err(e) = opened {
        print::note(format_args!("note: no browser was opened: {e}"));
        print::note("  help: open the link yourself");
    }
    Some(Page(Some(path)))
}

/// A page that leads to `url`.
fn page(url: &str) -> String {
    let url = url.replace('&', "&amp;").replace('"', "&quot;").replace('<', "&lt;");
    format!(
        "<!doctype html>\n<meta charset=\"utf-8\">\n<meta name=\"referrer\" content=\"no-referrer\">\n\
         <meta http-equiv=\"refresh\" content=\"0; url={url}\">\n<title>Lapidary</title>\n<p><a href=\"{url}\">Lapidary</a>\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_leads_to_the_link_and_nowhere_else() {
        let page = page("http://127.0.0.1:8470/#sign-in=ab-_\"><script>&");
        assert!(page.contains("url=http://127.0.0.1:8470/#sign-in=ab-_&quot;>&lt;script>&amp;\""), "{page}");
        assert!(!page.contains("<script"));
    }
}
