//! Who is let in: the rules about `Host`, `Origin` and the bearer token, over plain values. It knows no socket.

use sha2::{Digest, Sha256};
use std::net::IpAddr;

/// A token, as what it is compared by: its digest, so that comparing takes the same time for every guess.
#[derive(Clone)]
pub(super) struct Key([u8; 32]);

impl Key {
    pub(super) fn new(token: &str) -> Key {
        Key(Sha256::digest(token.as_bytes()).into())
    }

    /// Whether an `Authorization` header carries the token.
    pub(super) fn opens(&self, authorization: Option<&str>) -> bool {
        let Some((scheme, token)) = authorization.and_then(|header| header.trim().split_once(' ')) else {
            return false;
        };
        let given: [u8; 32] = Sha256::digest(token.trim().as_bytes()).into();
        let differing = self.0.iter().zip(given).fold(0, |differing, (a, b)| differing | (a ^ b));
        scheme.eq_ignore_ascii_case("bearer") && differing == 0
    }
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
    pub(super) fn knows_origin(&self, origin: &str, host: &str) -> bool {
        let own = ["http://", "https://"].iter().any(|scheme| {
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
            assert_eq!(names.knows_origin(origin, host), expected, "{origin:?} {host:?}");
        }
    }

    #[test]
    fn a_token_opens_only_as_a_whole() {
        let key = Key::new("s3cret");
        for good in ["Bearer s3cret", "bearer s3cret", " Bearer  s3cret "] {
            assert!(key.opens(Some(good)), "{good}");
        }
        for bad in
            ["", "s3cret", "Bearer", "Bearer ", "Bearer s3cre", "Bearer s3cret2", "Basic s3cret", "Bearer S3CRET"]
        {
            assert!(!key.opens(Some(bad)), "{bad}");
        }
        assert!(!key.opens(None));
    }
}
