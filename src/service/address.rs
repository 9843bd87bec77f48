//! Addresses of the web taken apart and put together, as `net::` would understand them. Nothing is sent and no name resolved.

use crate::base::error::{Error, Result, excerpt};
use crate::net::lane;
use url::Url;

/// The parts of an address, in their one spelling.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parts {
    /// The whole address.
    pub url: String,
    /// Such as `https`.
    pub scheme: String,
    /// In lower case, without brackets and user name; empty where there is none.
    pub host: String,
    /// The one that is written, or the scheme's own; 0 where there is none.
    pub port: u16,
    /// Percent-encoded.
    pub path: String,
    /// What stands behind `?`, percent-encoded.
    pub query: String,
    /// What stands behind `#`, percent-encoded.
    pub fragment: String,
}

/// Takes an address apart; a relative one is read from `base`.
///
/// # Errors
/// `invalid_arguments` for what is no address.
pub fn parse(address: &str, base: Option<&str>) -> Result<Parts> {
    let url = match base {
        Some(base) => read(base)?.join(address).map_err(|_| none(address))?,
        None => read(address)?,
    };
    Ok(Parts {
        scheme: url.scheme().to_owned(),
        host: lane::normalise(url.host_str().unwrap_or_default()),
        port: url.port_or_known_default().unwrap_or(0),
        path: url.path().to_owned(),
        query: url.query().unwrap_or_default().to_owned(),
        fragment: url.fragment().unwrap_or_default().to_owned(),
        url: url.into(),
    })
}

/// An address with `params` behind what its query has.
///
/// # Errors
/// `invalid_arguments` for what is no address.
pub fn with_params(address: &str, params: &[(String, String)]) -> Result<String> {
    let mut url = read(address)?;
    if !params.is_empty() {
        url.query_pairs_mut().extend_pairs(params);
    }
    Ok(url.into())
}

fn read(address: &str) -> Result<Url> {
    Url::parse(address.trim()).map_err(|_| none(address))
}

fn none(address: &str) -> Error {
    let shown = excerpt(address, 80);
    Error::invalid(format!("`{shown}` is no address")).hint("an address looks like https://host/path")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_taken_apart_as_a_browser_reads_it() {
        for (address, base, want) in [
            ("https://Example.ORG./a b?x=ü#f", None, "https example.org 443 /a%20b x=%C3%BC f"),
            ("http://user:pw@[::1]:8080", None, "http ::1 8080 /  "),
            ("http:\\\\localhost\\x", None, "http localhost 80 /x  "),
            ("https://good.example\\@evil.example/", None, "https good.example 443 /@evil.example/  "),
            ("http://0x7f.1/", None, "http 127.0.0.1 80 /  "),
            ("../c?d", Some("https://a.example/x/y/z"), "https a.example 443 /x/c d "),
            ("//b.example/", Some("https://a.example/"), "https b.example 443 /  "),
            ("mailto:ann@example.org", None, "mailto  0 ann@example.org  "),
        ] {
            let parts = parse(address, base).unwrap();
            let Parts { scheme, host, port, path, query, fragment, .. } = parts;
            assert_eq!(format!("{scheme} {host} {port} {path} {query} {fragment}"), want, "{address}");
        }
        for wrong in ["", "example.org", "/path", "https://", "https://a b/"] {
            assert_eq!(parse(wrong, None).unwrap_err().code(), "invalid_arguments", "{wrong}");
        }
    }

    #[test]
    fn params_are_added_encoded() {
        let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        let params = [pair("q", "a&b=c d"), pair("page", "2"), pair("é", "")];
        let url = with_params("http://localhost:8888/search?format=json#x", &params).unwrap();
        assert_eq!(url, "http://localhost:8888/search?format=json&q=a%26b%3Dc+d&page=2&%C3%A9=#x");
        assert_eq!(with_params("https://a.example", &[]).unwrap(), "https://a.example/");
    }
}
