//! What `[server]` of `lapidary.toml`, the command line and the environment say about the server. It opens nothing.

use super::access::Names;
use super::limit::Rate;
use super::token::{self, Source};
use crate::base::error::{Error, Result, excerpt};
use crate::config::Config;
use ipnet::IpNet;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use url::Url;

/// Where a server listens unless told otherwise.
const ADDRESS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8470);

/// How a server is to be opened.
#[derive(Debug)]
pub(super) struct Settings {
    pub(super) address: SocketAddr,
    pub(super) token: Option<(String, Source)>,
    pub(super) names: Names,
    /// Where people find it, where that is not its own address: `https://workshop.example`.
    pub(super) url: Option<Url>,
    /// The files of a certificate and its key.
    pub(super) tls: Option<(PathBuf, PathBuf)>,
    /// Whose word about who asks counts.
    pub(super) trusted: Vec<IpNet>,
    /// What each caller may ask for, wherever it is; `None` for the defaults.
    pub(super) rate: Option<Rate>,
}

impl Settings {
    /// Reads `[server]` of a root whose `user` folder is given; `addr` and `token` come before what stands there.
    ///
    /// # Errors
    /// `invalid_arguments`, naming the key and never what a secret one holds.
    pub(super) fn read(config: &Config, user: &Path, addr: Option<&str>, token: Option<&str>) -> Result<Settings> {
        let empty = toml::Table::new();
        let server = match config.get("server") {
            None => &empty,
            Some(toml::Value::Table(table)) => table,
            Some(_) => return Err(wrong("[server]", "a table")),
        };
        let text = |key: &str| match server.get(key) {
            None => Ok(None),
            Some(toml::Value::String(text)) => Ok(Some(text.as_str())),
            Some(_) => Err(wrong(key, "a text")),
        };
        let list = |key: &str| match server.get(key) {
            None => Ok(Vec::new()),
            Some(toml::Value::Array(list)) => list
                .iter()
                .map(|entry| entry.as_str().map(str::to_owned).ok_or_else(|| wrong(key, "a list of texts")))
                .collect(),
            Some(_) => Err(wrong(key, "a list of texts")),
        };
        let address = addr.map_or_else(|| text("addr"), |addr| Ok(Some(addr)))?;
        let token = match (token.filter(|token| !token.trim().is_empty()), text("token")?) {
            (Some(token), _) => Some((token::given(token, "LAPIDARY_TOKEN")?, Source::Environment)),
            (None, Some(token)) if !token.trim().is_empty() => {
                Some((token::given(token, "[server] of user/lapidary.toml")?, Source::Config))
            }
            (None, _) => None,
        };
        let url = text("url")?.map(public).transpose()?;
        let mut names = Names { hosts: list("hosts")?, origins: list("origins")? };
        if let Some(url) = &url {
            names.hosts.push(authority(url));
            names.origins.push(url.origin().ascii_serialization());
        }
        let tls = match (text("tls_cert")?, text("tls_key")?) {
            (None, None) => None,
            (Some(certificate), Some(key)) => Some((user.join(certificate), user.join(key))),
            _ => {
                return Err(Error::invalid(
                    "`tls_cert` and `tls_key` under [server] in user/lapidary.toml go together",
                )
                .hint("name both files, or neither"));
            }
        };
        let trusted = list("trusted_proxies")?.iter().map(|entry| network(entry)).collect::<Result<_>>()?;
        let rate = match server.get("rate") {
            None => None,
            Some(toml::Value::Integer(rate)) if (1..=1_000_000).contains(rate) => {
                Some(Rate::a_second(u32::try_from(*rate).unwrap_or(u32::MAX)))
            }
            Some(_) => return Err(wrong("rate", "a number of requests a second, from 1 to 1000000")),
        };
        Ok(Settings { address: address.map_or(Ok(ADDRESS), parse)?, token, names, url, tls, trusted, rate })
    }
}

/// The name of a URL as `Host` has it.
pub(super) fn authority(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

fn wrong(key: &str, expected: &str) -> Error {
    Error::invalid(format!("`{key}` under [server] in user/lapidary.toml must be {expected}"))
}

/// Where people find the server: a scheme and a name, and nothing behind it.
fn public(text: &str) -> Result<Url> {
    let url = Url::parse(text.trim()).ok().filter(|url| {
        matches!(url.scheme(), "http" | "https")
            && url.host_str().is_some_and(|host| !host.is_empty())
            && url.path() == "/"
            && url.query().is_none()
            && url.fragment().is_none()
            && url.username().is_empty()
            && url.password().is_none()
    });
    url.ok_or_else(|| wrong("url", "an address such as https://workshop.example, with nothing behind the name"))
}

fn network(text: &str) -> Result<IpNet> {
    let text = text.trim();
    let net = text.parse().ok().or_else(|| text.parse::<IpAddr>().ok().map(IpNet::from));
    net.ok_or_else(|| wrong("trusted_proxies", "a list of addresses such as 127.0.0.1 or 10.0.0.0/8"))
}

/// `address:port`, with `localhost` for this machine.
fn parse(text: &str) -> Result<SocketAddr> {
    let text = text.trim();
    let plain = match text.strip_prefix("localhost:") {
        Some(port) => format!("127.0.0.1:{port}"),
        None => text.to_owned(),
    };
    plain.parse().map_err(|_| {
        let shown = excerpt(text, 80);
        Error::invalid(format!("`{shown}` is no address to listen on")).hint("write it as 127.0.0.1:8470 or [::1]:8470")
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::base::error::Kind;

    fn read(text: &str) -> Result<Settings> {
        Settings::read(&text.parse().unwrap(), Path::new("/root/user"), None, None)
    }

    #[test]
    fn an_address_is_a_number_and_a_port() {
        for (text, expected) in [
            ("127.0.0.1:8470", "127.0.0.1:8470"),
            ("localhost:0", "127.0.0.1:0"),
            ("[::1]:1", "[::1]:1"),
            (" 0.0.0.0:80 ", "0.0.0.0:80"),
        ] {
            assert_eq!(parse(text).unwrap().to_string(), expected);
        }
        for text in
            ["", "8470", ":8470", "localhost", "example.com:80", "127.0.0.1", "127.0.0.1:x", "http://127.0.0.1:1"]
        {
            assert_eq!(parse(text).unwrap_err().kind(), Kind::InvalidArguments, "{text}");
        }
    }

    #[test]
    fn nothing_said_is_loopback_without_anything() {
        let settings = read("").unwrap();
        assert_eq!(settings.address, ADDRESS);
        assert!(
            settings.token.is_none() && settings.url.is_none() && settings.tls.is_none() && settings.rate.is_none()
        );
        assert!(settings.trusted.is_empty() && settings.names.hosts.is_empty());
        assert!(read("[server]\ntoken = \"\"").unwrap().token.is_none(), "as the example has it");
    }

    #[test]
    fn the_command_line_and_the_environment_come_first() {
        let config = "[server]\naddr = \"127.0.0.1:1\"\ntoken = \"the-token-of-the-file\"".parse().unwrap();
        let read = |addr, token| Settings::read(&config, Path::new("/user"), addr, token).unwrap();
        let settings = read(None, Some(" "));
        assert_eq!(settings.address.port(), 1);
        assert_eq!(settings.token, Some(("the-token-of-the-file".into(), Source::Config)));
        let settings = read(Some("[::1]:2"), Some("the-token-of-the-environment"));
        assert_eq!(settings.address.port(), 2);
        assert_eq!(settings.token, Some(("the-token-of-the-environment".into(), Source::Environment)));
    }

    #[test]
    fn the_url_of_people_is_a_name_that_it_answers_to() {
        let settings = read("[server]\nurl = \"https://Workshop.example:8443\"\nhosts = [\"box.lan\"]").unwrap();
        assert_eq!(settings.names.hosts, ["box.lan", "workshop.example:8443"]);
        assert_eq!(settings.names.origins, ["https://workshop.example:8443"]);
        let settings = read("[server]\nurl = \"https://workshop.example/\"").unwrap();
        assert_eq!(settings.names.hosts, ["workshop.example"]);
    }

    #[test]
    fn files_of_a_certificate_are_in_the_user_folder_unless_said_otherwise() {
        let settings = read("[server]\ntls_cert = \"cert.pem\"\ntls_key = \"/etc/key.pem\"").unwrap();
        assert_eq!(settings.tls, Some(("/root/user/cert.pem".into(), "/etc/key.pem".into())));
    }

    #[test]
    fn what_cannot_be_meant_is_refused_by_its_key() {
        for (line, key) in [
            ("addr = 1", "addr"),
            ("token = 1", "token"),
            ("hosts = \"a\"", "hosts"),
            ("origins = [1]", "origins"),
            ("url = \"workshop.example\"", "url"),
            ("url = \"ftp://a\"", "url"),
            ("url = \"https://a/b\"", "url"),
            ("url = \"https://u:p@a\"", "url"),
            ("tls_cert = \"a\"", "tls_key"),
            ("tls_key = \"a\"", "tls_cert"),
            ("trusted_proxies = [\"proxy.lan\"]", "trusted_proxies"),
            ("trusted_proxies = [\"10.0.0.0/33\"]", "trusted_proxies"),
            ("rate = 0", "rate"),
            ("rate = \"fast\"", "rate"),
        ] {
            let e = read(&format!("[server]\n{line}")).unwrap_err();
            assert!(e.kind() == Kind::InvalidArguments && e.message().contains(key), "{line}: {e}");
        }
        let e = read("server = 1").unwrap_err();
        assert!(e.message().contains("[server]"), "{e}");
        let nets = read("[server]\ntrusted_proxies = [\"127.0.0.1\", \"fd00::/8\"]").unwrap().trusted;
        assert_eq!(nets.iter().map(ToString::to_string).collect::<Vec<_>>(), ["127.0.0.1/32", "fd00::/8"]);
    }
}
