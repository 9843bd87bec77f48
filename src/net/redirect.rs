//! What a redirect means for the next hop, as pure rules over values. It sends nothing.
//! Whoever follows asks permission and checks the address again for every hop.

use super::lane::Lane;
use crate::base::error::{Error, Kind, Result};
use reqwest::Method;
use reqwest::header::{HeaderMap, HeaderName};
use url::Url;

/// How many redirects one request may follow.
pub(super) const MAX_HOPS: usize = 5;

/// The next hop of a request.
#[derive(Debug, PartialEq)]
pub(super) struct Hop {
    pub url: Url,
    pub method: Method,
    /// Whether the body goes along; a hop that became a GET has none.
    pub keep_body: bool,
    /// Whether the hop leaves the origin, so that headers which may carry credentials stay behind.
    pub leaves_origin: bool,
}

/// A request as it was sent, whose answer may point elsewhere.
pub(super) struct Sent<'a> {
    pub url: &'a Url,
    pub method: &'a Method,
    pub has_body: bool,
    /// The lane of a host.
    pub lane: &'a dyn Fn(&str) -> Lane,
}

/// The hop that an answer asks for, or `None` where the answer is the end.
///
/// # Errors
/// `permission_denied` where an internet host points into the local network, or a body would be repeated in the clear, to the
/// internet or after it was encrypted; `upstream_unavailable` where the target is not an address that can be fetched.
pub(super) fn next(status: u16, location: Option<&str>, sent: &Sent) -> Result<Option<Hop>> {
    let (from, method) = (sent.url, sent.method);
    let (301 | 302 | 303 | 307 | 308, Some(location)) = (status, location) else {
        return Ok(None);
    };
    let broken = |what: &str| {
        Error::new(Kind::UpstreamUnavailable, format!("{} redirects to {what}", place(from))).with_retryable(false)
    };
    let url = from.join(location).map_err(|_| broken("an address that cannot be read"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(broken("something that is neither http nor https"));
    }
    if has_userinfo(&url) {
        return Err(broken("an address with a user name in it"));
    }
    let lane = |url: &Url| (sent.lane)(url.host_str().unwrap_or_default());
    if lane(from) == Lane::Wan && lane(&url) == Lane::Lan {
        return Err(Error::denied(format!("{} redirects into the local network", place(from)))
            .hint("request the local address itself if that is meant"));
    }
    let becomes_get = match status {
        303 => *method != Method::HEAD,
        301 | 302 => *method == Method::POST,
        _ => false,
    };
    let is_bare = url.scheme() == "http" && (from.scheme() == "https" || lane(&url) == Lane::Wan);
    if sent.has_body && !becomes_get && is_bare {
        return Err(Error::denied(format!("{} wants what was sent repeated without encryption", place(from)))
            .hint("send it to an https address that answers itself"));
    }
    Ok(Some(Hop {
        leaves_origin: url.origin() != from.origin(),
        method: if becomes_get { Method::GET } else { method.clone() },
        keep_body: !becomes_get,
        url,
    }))
}

/// Keeps only the headers that say how to answer; anything else may be a credential of the first origin.
pub(super) fn strip_for_other_origin(headers: &mut HeaderMap) {
    const HARMLESS: [&str; 8] = [
        "accept",
        "accept-encoding",
        "accept-language",
        "cache-control",
        "content-language",
        "content-type",
        "range",
        "user-agent",
    ];
    let names: Vec<HeaderName> = headers.keys().filter(|name| !HARMLESS.contains(&name.as_str())).cloned().collect();
    for name in names {
        headers.remove(name);
    }
}

/// Whether a URL carries a user name or password.
pub(super) fn has_userinfo(url: &Url) -> bool {
    !url.username().is_empty() || url.password().is_some()
}

/// Scheme, host and port: all of a URL that an error may show, since paths and queries carry keys.
pub(super) fn place(url: &Url) -> String {
    let mut text = format!("{}://{}", url.scheme(), url.host_str().unwrap_or_default());
    if let Some(port) = url.port() {
        text.push(':');
        text.push_str(&port.to_string());
    }
    text
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::lane::classify;
    use super::*;
    use reqwest::header::HeaderValue;

    #[test]
    fn a_redirect_is_followed_by_its_status_method_and_target() {
        let from = Url::parse("https://a.example/x/y?key=secret").unwrap();
        // status, method, location -> url, method, keeps the body, leaves the origin; or the code of an error
        type Row = (
            u16,
            &'static str,
            Option<&'static str>,
            Result<Option<(&'static str, &'static str, bool, bool)>, &'static str>,
        );
        let table: &[Row] = &[
            (200, "GET", Some("/z"), Ok(None)),
            (304, "GET", Some("/z"), Ok(None)),
            (300, "GET", Some("/z"), Ok(None)),
            (302, "GET", None, Ok(None)),
            (302, "GET", Some("/z"), Ok(Some(("https://a.example/z", "GET", true, false)))),
            (302, "GET", Some("z?q=1"), Ok(Some(("https://a.example/x/z?q=1", "GET", true, false)))),
            (302, "GET", Some("//b.example/z"), Ok(Some(("https://b.example/z", "GET", true, true)))),
            (302, "GET", Some("http://a.example/"), Ok(Some(("http://a.example/", "GET", true, true)))),
            (302, "GET", Some("https://a.example:8443/"), Ok(Some(("https://a.example:8443/", "GET", true, true)))),
            (302, "GET", Some("https://a.example:443/"), Ok(Some(("https://a.example/", "GET", true, false)))),
            (301, "POST", Some("/z"), Ok(Some(("https://a.example/z", "GET", false, false)))),
            (302, "POST", Some("/z"), Ok(Some(("https://a.example/z", "GET", false, false)))),
            (302, "PUT", Some("/z"), Ok(Some(("https://a.example/z", "PUT", true, false)))),
            (303, "PUT", Some("/z"), Ok(Some(("https://a.example/z", "GET", false, false)))),
            (303, "HEAD", Some("/z"), Ok(Some(("https://a.example/z", "HEAD", true, false)))),
            (307, "POST", Some("/z"), Ok(Some(("https://a.example/z", "POST", true, false)))),
            (308, "POST", Some("/z"), Ok(Some(("https://a.example/z", "POST", true, false)))),
            (302, "POST", Some("http://a.example/"), Ok(Some(("http://a.example/", "GET", false, true)))),
            (307, "POST", Some("http://a.example/"), Err("permission_denied")),
            (302, "PUT", Some("http://b.example/"), Err("permission_denied")),
            (302, "GET", Some("file:///etc/passwd"), Err("upstream_unavailable")),
            (302, "GET", Some("javascript:alert(1)"), Err("upstream_unavailable")),
            (302, "GET", Some("https://u:p@b.example/"), Err("upstream_unavailable")),
            (302, "GET", Some("https://[::zz]/"), Err("upstream_unavailable")),
            (302, "GET", Some("http://localhost:8080/"), Err("permission_denied")),
            (302, "GET", Some("http://127.1/"), Err("permission_denied")),
            (302, "GET", Some("http://0x7f000001/"), Err("permission_denied")),
            (302, "GET", Some("http://[::ffff:10.0.0.1]/"), Err("permission_denied")),
            (302, "GET", Some("//192.168.1.1/admin"), Err("permission_denied")),
            (302, "GET", Some("http://router/"), Err("permission_denied")),
        ];
        for (status, method, location, want) in table {
            let method = Method::from_bytes(method.as_bytes()).unwrap();
            let sent = Sent { url: &from, method: &method, has_body: method != Method::GET, lane: &classify };
            let got = next(*status, *location, &sent);
            let shown = got
                .as_ref()
                .map(|hop| hop.as_ref().map(|h| (h.url.as_str(), h.method.as_str(), h.keep_body, h.leaves_origin)))
                .map_err(Error::code);
            assert_eq!(shown, *want, "{status} {method} {location:?}");
            if let Err(error) = got {
                assert!(!error.to_string().contains("secret"));
            }
        }
    }

    #[test]
    fn a_body_is_repeated_in_the_clear_within_the_local_network_only() {
        for (from, status, method, to, ok) in [
            ("http://a.example/", 307, "POST", "http://b.example/", false),
            ("http://a.example/", 308, "PUT", "http://a.example/z", false),
            ("http://a.example/", 307, "POST", "https://b.example/", true),
            ("http://a.example/", 302, "POST", "http://b.example/", true),
            ("http://a.example/", 302, "PUT", "http://b.example/", false),
            ("http://a.example/", 307, "GET", "http://b.example/", true),
            ("http://nas.local/", 307, "POST", "http://b.example/", false),
            ("http://nas.local/", 307, "POST", "http://nas.local/z", true),
            ("http://nas.local/", 307, "POST", "http://192.168.1.9/", true),
            ("https://nas.local/", 307, "POST", "http://192.168.1.9/", false),
        ] {
            let (url, method) = (Url::parse(from).unwrap(), Method::from_bytes(method.as_bytes()).unwrap());
            let sent = Sent { url: &url, method: &method, has_body: method != Method::GET, lane: &classify };
            assert_eq!(
                next(status, Some(to), &sent).map_err(|e| e.code()).is_ok(),
                ok,
                "{from} {status} {method} {to}"
            );
        }
    }

    #[test]
    fn a_local_host_may_point_anywhere() {
        let from = Url::parse("http://nas.local/").unwrap();
        let sent = Sent { url: &from, method: &Method::GET, has_body: false, lane: &classify };
        assert!(next(302, Some("http://192.168.1.9/"), &sent).unwrap().is_some());
        assert!(next(302, Some("https://vendor.example/"), &sent).unwrap().is_some());
    }

    #[test]
    fn an_internet_host_does_not_point_at_a_registered_local_one() {
        let from = Url::parse("https://a.example/").unwrap();
        let lane = |host: &str| if host == "home.example" { Lane::Lan } else { classify(host) };
        let sent = Sent { url: &from, method: &Method::GET, has_body: false, lane: &lane };
        assert_eq!(next(302, Some("https://home.example/"), &sent).unwrap_err().code(), "permission_denied");
        assert!(next(302, Some("https://b.example/"), &sent).unwrap().is_some());
    }

    #[test]
    fn only_harmless_headers_cross_an_origin() {
        let mut headers = HeaderMap::new();
        for name in ["authorization", "cookie", "x-api-key", "proxy-authorization", "accept", "user-agent", "referer"] {
            headers.insert(HeaderName::from_static(name), HeaderValue::from_static("v"));
        }
        strip_for_other_origin(&mut headers);
        let mut left: Vec<&str> = headers.keys().map(HeaderName::as_str).collect();
        left.sort_unstable();
        assert_eq!(left, ["accept", "user-agent"]);
    }
}
