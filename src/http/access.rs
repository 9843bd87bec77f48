//! Who is let in: the rules about `Host`, `Origin`, a person's session and what plugins answer, over plain values. It knows no
//! socket and no secret.

use axum::http::{Method, StatusCode};
use std::net::IpAddr;

/// Why a person's session is not enough for a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lacks {
    /// The browser says that another site's page sent it.
    OwnPage,
    /// It writes, and does not show what only a page of this host knows.
    Proof,
}

/// Whether a request changes nothing, by its method.
pub(super) fn only_reads(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS)
}

/// Whether the browser lets it be known that a page of this host, or the person, sent a request. Browsers that do not say so send
/// nothing, and no page can send it in their place.
pub(super) fn is_own_page(fetch_site: Option<&str>) -> bool {
    matches!(fetch_site, None | Some("same-origin" | "none"))
}

/// Whether a request may use the session that its cookie names. A cookie goes with every request to this host, whoever made the
/// browser send it; `proof` is asked where that matters.
pub(super) fn session(method: &Method, fetch_site: Option<&str>, proof: impl FnOnce() -> bool) -> Result<(), Lacks> {
    if !is_own_page(fetch_site) {
        Err(Lacks::OwnPage)
    } else if only_reads(method) || proof() {
        Ok(())
    } else {
        Err(Lacks::Proof)
    }
}

/// Whether a browser that asks for something as `destination` may have what a plugin made: to look at, to play, to read; never to
/// run or to style the host's own page with.
pub(super) fn is_harmless(destination: Option<&str>) -> bool {
    matches!(destination, None | Some("empty" | "document" | "image" | "audio" | "video" | "track"))
}

/// Whether a page would run or be styled by what has this content type.
pub(super) fn acts_in_a_page(content_type: &str) -> bool {
    let kind = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    kind == "text/css" || kind.contains("script") || kind == "application/wasm"
}

/// Whether a plugin `name` may answer a request of this method with a redirect to `location`. One that is repeated there with its
/// body and its proof would do what the plugin wants in the name of whoever asked: it may lead to the plugin's own routes only.
pub(super) fn may_lead(name: &str, method: &Method, status: StatusCode, location: &str) -> bool {
    let repeats = matches!(status, StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT);
    if !repeats || only_reads(method) {
        return true;
    }
    let path = location.split(['?', '#']).next().unwrap_or_default();
    // What a browser takes for a step up, also where it is written in another way.
    let plain = !path.split('/').any(|part| matches!(part, "." | "..")) && !path.contains('%') && !path.contains('\\');
    plain
        && path
            .strip_prefix("/api/plugin/")
            .and_then(|rest| rest.strip_prefix(name))
            .is_some_and(|rest| rest.starts_with('/'))
}

/// The names under which this server may be spoken to, beside its own address and the loopback ones.
#[derive(Debug, Clone, Default)]
pub(super) struct Names {
    /// Further hosts, `name` or `name:port`.
    pub(super) hosts: Vec<String>,
    /// Further origins of web pages, `https://name`.
    pub(super) origins: Vec<String>,
}

impl Names {
    /// Whether a `Host` header names this server. A page of somebody else's whose name was pointed at this machine still
    /// sends that name. `local` is the address that the connection came in on.
    pub(super) fn knows_host(&self, host: &str, local: IpAddr) -> bool {
        let Some((name, port)) = authority(host) else { return false };
        if let Ok(ip) = name.parse::<IpAddr>() {
            let ip = ip.to_canonical();
            if ip.is_loopback() || ip == local.to_canonical() {
                return true;
            }
        }
        name == "localhost"
            || self
                .hosts
                .iter()
                .filter_map(|known| authority(known))
                .any(|(known, only)| known == name && (only.is_none() || only == port))
    }

    /// Whether a page of this origin may speak to the server that it calls `host`: its own pages, and those that were named.
    /// `schemes` are those that its own pages may have.
    pub(super) fn knows_origin(&self, origin: &str, host: &str, schemes: &[&str]) -> bool {
        let own = schemes.iter().any(|scheme| {
            origin
                .strip_prefix(scheme)
                .is_some_and(|rest| authority(rest).is_some() && authority(rest) == authority(host))
        });
        own || self.origins.iter().any(|known| known.trim_end_matches('/').eq_ignore_ascii_case(origin))
    }
}

/// The name in lower case, without brackets, and the port of `name:port`.
fn authority(text: &str) -> Option<(String, Option<u16>)> {
    let (name, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (name, rest) = rest.split_once(']')?;
            (name, if rest.is_empty() { None } else { Some(rest.strip_prefix(':')?) })
        }
        None => match text.split_once(':') {
            Some((name, port)) => (name, Some(port)),
            None => (text, None),
        },
    };
    let port = port.map(|port| port.parse().ok()).map_or(Some(None), |port: Option<u16>| port.map(Some))?;
    let plain = !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b".-:_".contains(&b));
    plain.then(|| (name.to_ascii_lowercase(), port))
}

/// Schemes of the pages of a server that people reach over TLS.
pub(super) const SECURE: &[&str] = &["https://"];
/// Schemes of the pages of a server that may have a proxy in front that it does not know of.
pub(super) const ANY: &[&str] = &["http://", "https://"];

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_spoken_to_by_its_own_names_only() {
        let names = Names { hosts: vec!["box.lan".into(), "proxy.example:443".into()], origins: vec![] };
        let rows = [
            ("localhost", true),
            ("localhost:8470", true),
            ("LOCALHOST:9", true),
            ("127.0.0.1:8470", true),
            ("127.8.8.8", true),
            ("[::1]:8470", true),
            ("::1", false),
            ("[::ffff:127.0.0.1]", true),
            ("192.168.1.5:8470", true),
            ("192.168.1.6:8470", false),
            ("box.lan", true),
            ("BOX.lan:1234", true),
            ("proxy.example:443", true),
            ("proxy.example:80", false),
            ("proxy.example", false),
            ("evil.example", false),
            ("localhost.evil.example", false),
            ("127.0.0.1.evil.example", false),
            ("evil.example:8470", false),
            ("user@localhost", false),
            ("localhost:", false),
            ("localhost:99999", false),
            ("localhost/evil", false),
            ("2130706433", false),
            ("0.0.0.0", false),
            ("", false),
            (":8470", false),
            ("[::1", false),
            ("[::1]x", false),
        ];
        for (host, expected) in rows {
            assert_eq!(names.knows_host(host, "192.168.1.5".parse().unwrap()), expected, "{host:?}");
        }
    }

    #[test]
    fn only_own_and_named_pages_may_speak_to_it() {
        let names = Names { hosts: vec![], origins: vec!["https://app.example/".into()] };
        let rows = [
            ("http://127.0.0.1:8470", "127.0.0.1:8470", true),
            ("https://127.0.0.1:8470", "127.0.0.1:8470", true),
            ("http://localhost:8470", "127.0.0.1:8470", false),
            ("http://localhost:3000", "localhost:8470", false),
            ("https://app.example", "localhost:8470", true),
            ("https://APP.example", "localhost:8470", true),
            ("http://app.example", "localhost:8470", false),
            ("https://evil.example", "localhost:8470", false),
            ("null", "localhost:8470", false),
            ("", "localhost:8470", false),
            ("http://", "", false),
            ("file://localhost:8470", "localhost:8470", false),
        ];
        for (origin, host, expected) in rows {
            assert_eq!(names.knows_origin(origin, host, ANY), expected, "{origin:?} {host:?}");
        }
    }

    #[test]
    fn over_tls_only_pages_that_came_over_tls_are_its_own() {
        let names = Names::default();
        let rows = [
            ("https://box.lan", "box.lan", true),
            ("http://box.lan", "box.lan", false),
            ("https://other.lan", "box.lan", false),
        ];
        for (origin, host, expected) in rows {
            assert_eq!(names.knows_origin(origin, host, SECURE), expected, "{origin:?} {host:?}");
        }
    }

    #[test]
    fn a_session_reads_for_its_own_pages_and_writes_with_proof() {
        let [get, head, options, post, put, delete, patch] =
            ["GET", "HEAD", "OPTIONS", "POST", "PUT", "DELETE", "PATCH"]
                .map(|method| Method::from_bytes(method.as_bytes()).unwrap());
        let odd = Method::from_bytes(b"GET2").unwrap();
        let rows = [
            (&get, None, false, Ok(())),
            (&get, Some("same-origin"), false, Ok(())),
            (&get, Some("none"), false, Ok(())),
            (&get, Some("same-site"), true, Err(Lacks::OwnPage)),
            (&get, Some("cross-site"), true, Err(Lacks::OwnPage)),
            (&get, Some("nonsense"), true, Err(Lacks::OwnPage)),
            (&get, Some(""), true, Err(Lacks::OwnPage)),
            (&head, None, false, Ok(())),
            (&options, None, false, Ok(())),
            (&post, None, true, Ok(())),
            (&post, None, false, Err(Lacks::Proof)),
            (&post, Some("same-origin"), true, Ok(())),
            (&post, Some("same-origin"), false, Err(Lacks::Proof)),
            (&post, Some("same-site"), true, Err(Lacks::OwnPage)),
            (&post, Some("cross-site"), true, Err(Lacks::OwnPage)),
            (&put, Some("same-origin"), false, Err(Lacks::Proof)),
            (&delete, Some("same-origin"), false, Err(Lacks::Proof)),
            (&patch, None, false, Err(Lacks::Proof)),
            (&odd, None, false, Err(Lacks::Proof)),
            (&odd, None, true, Ok(())),
        ];
        for (method, site, proof, expected) in rows {
            assert_eq!(session(method, site, || proof), expected, "{method} {site:?} {proof}");
        }
    }

    #[test]
    fn what_a_plugin_made_is_never_run() {
        for good in [None, Some("empty"), Some("document"), Some("image"), Some("audio"), Some("video"), Some("track")]
        {
            assert!(is_harmless(good), "{good:?}");
        }
        for bad in [
            "script",
            "worker",
            "sharedworker",
            "serviceworker",
            "audioworklet",
            "paintworklet",
            "style",
            "xslt",
            "manifest",
            "object",
            "embed",
            "iframe",
            "frame",
            "fencedframe",
            "font",
            "report",
            "json",
            "",
            "IMAGE",
        ] {
            assert!(!is_harmless(Some(bad)), "{bad}");
        }
    }

    #[test]
    fn scripts_and_styles_are_known_by_their_kind() {
        for kind in ["text/javascript; charset=utf-8", "text/css", "Application/ECMAScript", "application/wasm"] {
            assert!(acts_in_a_page(kind), "{kind}");
        }
        for kind in ["text/plain; charset=utf-8", "text/html", "image/svg+xml", "application/json", "audio/mpeg", ""] {
            assert!(!acts_in_a_page(kind), "{kind}");
        }
    }

    #[test]
    fn no_plugin_sends_a_write_on_to_anybody_else() {
        let (same, other) = (StatusCode::TEMPORARY_REDIRECT, StatusCode::SEE_OTHER);
        let rows = [
            (Method::POST, other, "/api/plugins/songs/grants", true),
            (Method::POST, StatusCode::FOUND, "/", true),
            (Method::GET, same, "/api/host", true),
            (Method::HEAD, same, "/", true),
            (Method::POST, same, "/api/plugin/songs/list", true),
            (Method::POST, same, "/api/plugin/songs/a/b?x=../..#y", true),
            (Method::POST, StatusCode::PERMANENT_REDIRECT, "/api/plugin/songs/list", true),
            (Method::POST, same, "/api/plugins/songs/grants", false),
            (Method::POST, StatusCode::PERMANENT_REDIRECT, "/api/tokens", false),
            (Method::PUT, same, "/api/plugin/others/list", false),
            (Method::POST, same, "/api/plugin/songs2/list", false),
            (Method::POST, same, "/api/plugin/songs", false),
            (Method::DELETE, same, "/api/plugin/songs/../../tokens", false),
            (Method::POST, same, "/api/plugin/songs/./x", false),
            (Method::POST, same, "/api/plugin/songs/%2e%2e/%2E%2E/tokens", false),
            (Method::POST, same, "/api/plugin/songs/..\\x", false),
            (Method::POST, same, "/api/plugin/songs/%5c", false),
            (Method::POST, same, "", false),
        ];
        for (method, status, location, expected) in rows {
            assert_eq!(may_lead("songs", &method, status, location), expected, "{method} {status} {location}");
        }
    }
}
