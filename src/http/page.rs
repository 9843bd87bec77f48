//! The page that a browser shows: its files, embedded in the program, with their kinds, a version each, and what such a page may
//! do. It holds nothing of anybody, so it is open to all; what it asks for is not.

use super::headers;
use super::range;
use super::reply::failure;
use crate::base::error::Error;
use crate::base::file;
use crate::service::digest;
use axum::extract::Path as Name;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use include_dir::{Dir, File, include_dir};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

static FILES: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/src/http/page");

/// Names a folder whose files are served in place of the embedded ones, so that who works on the page needs no build.
const FOLDER: &str = "LAPIDARY_PAGE_DIR";
/// Largest file that is read from such a folder.
const LARGEST: u64 = 1 << 20;

/// The page itself.
pub(super) async fn shell(headers: HeaderMap) -> Response {
    answer("index.html", &headers)
}

/// One of the files that it asks for.
pub(super) async fn part(Name(name): Name<String>, headers: HeaderMap) -> Response {
    answer(&name, &headers)
}

fn answer(name: &str, headers: &HeaderMap) -> Response {
    let Some((kind, (bytes, tag))) = kind(name).zip(versioned(name)) else {
        return failure(&Error::not_found("the page has no such file").hint("the page is at /"));
    };
    let mut known = headers.get_all(header::IF_NONE_MATCH).iter().filter_map(|tags| tags.to_str().ok());
    let is_known = known.any(|tags| range::names(tags, &tag));
    let kept: [(HeaderName, HeaderValue); 2] = [
        // It is asked for every time, so that a newer program is never shown an older page; the answer is mostly 304.
        (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
        (header::ETAG, HeaderValue::try_from(tag).unwrap_or(HeaderValue::from_static("\"\""))),
    ];
    let mut response = if is_known {
        (StatusCode::NOT_MODIFIED, kept).into_response()
    } else {
        (kept, [(header::CONTENT_TYPE, kind)], bytes).into_response()
    };
    headers::of_page(response.headers_mut());
    response
}

/// The kind of a file by its name; `None` for what is no plain name of a file of the page.
fn kind(name: &str) -> Option<&'static str> {
    let (stem, ending) = name.split_once('.')?;
    if stem.is_empty() || !stem.bytes().all(|b| b.is_ascii_lowercase() || b == b'-') {
        return None;
    }
    match ending {
        "html" => Some("text/html; charset=utf-8"),
        "css" => Some("text/css; charset=utf-8"),
        "js" => Some("text/javascript; charset=utf-8"),
        _ => None,
    }
}

/// A file and the tag of its version. The tags of what is embedded are made once.
fn versioned(name: &str) -> Option<(Bytes, String)> {
    static EMBEDDED: LazyLock<HashMap<&Path, (Bytes, String)>> = LazyLock::new(|| {
        let tagged = |file: &'static File<'static>| {
            let bytes = Bytes::from_static(file.contents());
            (file.path(), (bytes.clone(), tag(&bytes)))
        };
        FILES.files().map(tagged).collect()
    });
    #[expect(clippy::disallowed_methods, reason = "a door may be told by the environment, as the token is")]
    static FROM: LazyLock<Option<PathBuf>> = LazyLock::new(|| std::env::var_os(FOLDER).map(PathBuf::from));
    match &*FROM {
        Some(folder) => file::read_capped(&folder.join(name), LARGEST).ok().map(|bytes| {
            let tag = tag(&bytes);
            (bytes.into(), tag)
        }),
        None => EMBEDDED.get(Path::new(name)).cloned(),
    }
}

fn tag(bytes: &[u8]) -> String {
    format!("\"{:.32}\"", digest::sha256(bytes))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn text(name: &str) -> &'static str {
        FILES.get_file(name).unwrap().contents_utf8().unwrap()
    }

    fn names() -> impl Iterator<Item = &'static str> {
        FILES.files().map(|file| file.path().to_str().unwrap())
    }

    /// What stands between `open` and the next quote, at every place.
    fn quoted<'a>(text: &'a str, open: &'a str) -> impl Iterator<Item = &'a str> {
        text.split(open).skip(1).map(|rest| rest.split(['"', '\'', '`']).next().unwrap())
    }

    #[test]
    fn only_plain_names_are_files_of_the_page() {
        let table = [
            ("index.html", true),
            ("more.css", true),
            ("main.js", true),
            ("Main.js", false),
            (".js", false),
            ("main.js.map", false),
            ("main", false),
            ("../page.rs", false),
            ("..%2fpage.rs", false),
            ("a/b.js", false),
            ("", false),
        ];
        for (name, is_one) in table {
            assert_eq!(kind(name).is_some(), is_one, "{name}");
        }
        for name in names() {
            assert!(kind(name).is_some(), "{name} would not be served");
        }
    }

    #[test]
    fn nothing_stands_inline_that_the_policy_would_refuse() {
        let shell = text("index.html");
        for refused in ["<style", " style=", " onclick", " onload", "javascript:", "<script>"] {
            assert!(!shell.contains(refused), "{refused} in index.html");
        }
        for name in names() {
            for refused in ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function"] {
                assert!(!text(name).contains(refused), "{refused} in {name}");
            }
        }
    }

    #[test]
    fn whatever_the_page_asks_for_is_there_and_nobody_else_is_asked() {
        for name in names() {
            let text = text(name);
            for wanted in quoted(text, "/page/").chain(quoted(text, "from './")).chain(quoted(text, "import('./")) {
                let wanted = wanted.split('$').next().unwrap();
                assert!(wanted.is_empty() || FILES.get_file(wanted).is_some(), "{name} asks for {wanted}");
            }
            for address in quoted(text, "https://").chain(quoted(text, "http://")) {
                assert!(address.starts_with("www.w3.org/"), "{name} names {address}");
            }
        }
    }

    #[test]
    fn the_workshop_loads_at_most_ten_files_and_200_kib() {
        let mut wanted: Vec<&str> = vec!["index.html"];
        let mut seen = BTreeSet::new();
        while let Some(name) = wanted.pop() {
            if !seen.insert(name) {
                continue;
            }
            let text = text(name);
            wanted.extend(quoted(text, "from './"));
            wanted.extend(quoted(text, "=\"/page/"));
        }
        let bytes: usize = seen.iter().map(|name| text(name).len()).sum();
        assert!(seen.len() <= 10, "{seen:?}");
        assert!(bytes <= 200 << 10, "{bytes} bytes");
    }

    #[test]
    fn every_file_is_short_and_says_what_it_is() {
        for name in names() {
            let text = text(name);
            assert!(text.lines().count() < 400, "{name} has {} lines", text.lines().count());
            assert!(["//", "/*", "<!"].iter().any(|open| text.starts_with(open)), "{name} says nothing of itself");
        }
    }
}
