//! How requests leave: directly or through a proxy, which names lead where, whom TLS trusts. Builds the clients of the lanes.
//! An outlet that cannot be used lets nothing out: there is no way around it.

use super::guard::{HostRule, check_address};
use super::lane::Lane;
use super::tape::Tape;
use crate::base::error::{Error, Kind, Result};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use std::error::Error as StdError;
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use url::Url;

/// How long a connection, through a proxy too, may take to stand.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

type Found = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>>;

/// How names become addresses.
#[derive(Clone)]
pub struct Names(Arc<dyn Fn(String) -> Found + Send + Sync>);

impl Default for Names {
    fn default() -> Self {
        Names(Arc::new(|name| {
            Box::pin(async move { Ok(tokio::net::lookup_host((name, 0)).await?.map(|a| a.ip()).collect()) })
        }))
    }
}

impl Names {
    /// By a function instead of the system's resolver.
    pub fn by(lookup: impl Fn(&str) -> io::Result<Vec<IpAddr>> + Send + Sync + 'static) -> Self {
        Names(Arc::new(move |name| {
            let found = lookup(&name);
            Box::pin(async move { found })
        }))
    }
}

/// How requests reach the internet. The local network is always reached directly.
#[derive(Clone, Default)]
pub enum Outlet {
    /// Straight.
    #[default]
    Direct,
    /// Through this proxy, which resolves the names; never around it.
    Through(Proxy),
    /// Not at all, for this reason.
    Closed(Error),
}

/// A proxy. It has no `Debug`: it holds a password.
#[derive(Clone)]
pub struct Proxy(Url);

impl Proxy {
    /// Reads `socks5h://host:port` (also `socks5`, which means the same: names are never resolved here), `http://host:port`
    /// or `https://host:port`, with a user name and password before the host or not. Without a scheme it is SOCKS, without
    /// a port SOCKS has 1080.
    ///
    /// # Errors
    /// `invalid_arguments`, which repeats nothing of the text.
    pub fn parse(text: &str) -> Result<Proxy> {
        let hint = "write \"socks5h://127.0.0.1:1080\", or http:// and https:// for a proxy that speaks HTTP";
        let text = text.trim();
        let whole = if text.contains("://") { text.to_owned() } else { format!("socks5h://{text}") };
        let whole = match whole.split_once("://") {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("socks5") => format!("socks5h://{rest}"),
            _ => whole,
        };
        let mut url =
            Url::parse(&whole).map_err(|e| Error::invalid(format!("the proxy cannot be read: {e}")).hint(hint))?;
        if !matches!(url.scheme(), "socks5h" | "http" | "https") {
            return Err(Error::invalid("the proxy's scheme is none of socks5h, http and https").hint(hint));
        }
        if url.host_str().is_none_or(str::is_empty) {
            return Err(Error::invalid("the proxy has no host").hint(hint));
        }
        if !matches!(url.path(), "" | "/") || url.query().is_some() || url.fragment().is_some() || url.port() == Some(0)
        {
            return Err(Error::invalid("the proxy is more than a scheme, a host and a port").hint(hint));
        }
        if url.scheme() == "socks5h" && url.port().is_none() {
            let _ = url.set_port(Some(1080));
        }
        Ok(Proxy(url))
    }

    /// With this user name and password, whatever was written before the host.
    ///
    /// # Errors
    /// `invalid_arguments` where the address takes none.
    pub fn with_login(mut self, user: &str, password: &str) -> Result<Proxy> {
        let set = self.0.set_username(user).and_then(|()| self.0.set_password(Some(password)));
        set.map(|()| self).map_err(|()| Error::invalid("the proxy takes no user name"))
    }

    /// Its address as programs read it, login included.
    pub(super) fn address(&self) -> String {
        self.0.as_str().trim_end_matches('/').to_owned()
    }

    /// The password, as it was given.
    pub(super) fn password(&self) -> Option<String> {
        let written = format!("p={}", self.0.password()?.replace('+', "%2B"));
        url::form_urlencoded::parse(written.as_bytes()).next().map(|(_, password)| password.into_owned())
    }

    /// Whether it passes on requests that are not encrypted as they are, and so may answer itself.
    pub(super) fn speaks_http(&self) -> bool {
        self.0.scheme() != "socks5h"
    }
}

/// Authorities that TLS trusts beside the system's own.
#[derive(Clone, Default)]
pub struct Trusted(Vec<reqwest::Certificate>);

impl Trusted {
    /// Reads a file of certificates in PEM.
    ///
    /// # Errors
    /// `invalid_arguments` where there is none in it.
    pub fn parse(pem: &[u8]) -> Result<Trusted> {
        let found = reqwest::Certificate::from_pem_bundle(pem).unwrap_or_default();
        if found.is_empty() {
            return Err(Error::invalid("there is no certificate in it")
                .hint("a certificate in PEM begins with -----BEGIN CERTIFICATE-----"));
        }
        Ok(Trusted(found))
    }
}

/// How far requests go.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Range {
    /// As far as permissions let them.
    #[default]
    Anywhere,
    /// No further than this machine.
    ThisMachine,
}

/// What the owner of a host decides about its network.
#[derive(Clone, Default)]
pub struct Settings {
    /// How the internet is reached.
    pub outlet: Outlet,
    /// Whom TLS trusts beside the system's authorities.
    pub trusted: Trusted,
    /// How names become addresses.
    pub names: Names,
    /// How far requests go.
    pub range: Range,
    /// What stands in for the network, or listens to it.
    pub tape: Option<Arc<dyn Tape>>,
}

impl Settings {
    /// The proxy of a lane, if there is one.
    ///
    /// # Errors
    /// Why the lane is closed.
    pub(super) fn proxy(&self, lane: Lane) -> Result<Option<&Proxy>> {
        match (lane, &self.outlet) {
            (Lane::Lan, _) | (Lane::Wan, Outlet::Direct) => Ok(None),
            (Lane::Wan, Outlet::Through(proxy)) => Ok(Some(proxy)),
            (Lane::Wan, Outlet::Closed(error)) => Err(error.clone()),
        }
    }

    /// The client of a lane. Lanes share no connections.
    #[expect(clippy::disallowed_methods, reason = "this is the one client")]
    pub(super) fn build(&self, lane: Lane) -> Result<reqwest::Client> {
        let failed = |e: reqwest::Error| Error::internal(format!("the http client cannot be built: {}", deepest(&e)));
        // Somebody who embeds us may have installed a provider of their own; then theirs is used.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let proxy = self.proxy(lane)?;
        let resolver: Arc<dyn Resolve> = match proxy {
            None => Arc::new(Guarded { names: self.names.clone(), lane }),
            Some(proxy) => Arc::new(OnlyProxy {
                names: self.names.clone(),
                host: proxy.0.host_str().unwrap_or_default().to_owned(),
            }),
        };
        let mut builder = reqwest::Client::builder()
            // Nothing of the environment counts: a lane is what its settings say.
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            // A request that may have been acted on is never sent twice.
            .retry(reqwest::retry::never())
            .referer(false)
            .dns_resolver(resolver)
            .connect_timeout(CONNECT_TIMEOUT)
            .tls_certs_merge(self.trusted.0.clone())
            .pool_idle_timeout(Duration::from_secs(30))
            .pool_max_idle_per_host(4);
        if let Some(proxy) = proxy {
            builder = builder.proxy(reqwest::Proxy::all(proxy.0.clone()).map_err(failed)?);
        }
        builder.build().map_err(failed)
    }
}

/// Resolves names and lets through only the addresses that a name of this lane may lead to.
struct Guarded {
    names: Names,
    lane: Lane,
}

impl Resolve for Guarded {
    fn resolve(&self, name: Name) -> Resolving {
        let rule = HostRule { lane: self.lane, literal: false };
        let found = (self.names.0)(name.as_str().to_owned());
        Box::pin(async move {
            let mut allowed: Vec<SocketAddr> = Vec::new();
            let mut refused = None;
            for ip in found.await? {
                match check_address(ip, rule) {
                    // Port 0 stands for the URL's.
                    Ok(()) => allowed.push(SocketAddr::new(ip, 0)),
                    Err(error) => refused = Some(error),
                }
            }
            match (allowed.is_empty(), refused) {
                (true, Some(error)) => Err(Box::new(error) as Box<dyn StdError + Send + Sync>),
                _ => Ok(Box::new(allowed.into_iter()) as Addrs),
            }
        })
    }
}

/// Resolves the proxy's own name, which its owner chose, and no other: a name that is asked for here would tell the local
/// name server what is visited.
struct OnlyProxy {
    names: Names,
    host: String,
}

impl Resolve for OnlyProxy {
    fn resolve(&self, name: Name) -> Resolving {
        if !name.as_str().eq_ignore_ascii_case(&self.host) {
            let error = Error::new(Kind::UpstreamUnavailable, "names are resolved by the proxy and not here");
            return Box::pin(async move { Err(Box::new(error) as Box<dyn StdError + Send + Sync>) });
        }
        let found = (self.names.0)(name.as_str().to_owned());
        Box::pin(async move {
            let found: Vec<SocketAddr> = found.await?.into_iter().map(|ip| SocketAddr::new(ip, 0)).collect();
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

/// The text of the innermost cause: what the operating system or TLS said.
pub(super) fn deepest(error: &(dyn StdError + 'static)) -> String {
    let mut inner = error;
    while let Some(source) = inner.source() {
        inner = source;
    }
    // The outermost error is the only one that knows the URL.
    if std::ptr::addr_eq(inner, error) { "no further reason given".to_owned() } else { inner.to_string() }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_proxy_is_read_and_its_names_are_never_resolved_here() {
        for (text, read) in [
            ("socks5h://127.0.0.1:1080", "socks5h://127.0.0.1:1080"),
            ("socks5://127.0.0.1:9050", "socks5h://127.0.0.1:9050"),
            ("SOCKS5://Box.lan", "socks5h://Box.lan:1080"),
            ("127.0.0.1:9050", "socks5h://127.0.0.1:9050"),
            ("tor", "socks5h://tor:1080"),
            (" http://proxy.lan:3128/ ", "http://proxy.lan:3128/"),
            ("https://proxy.example.org", "https://proxy.example.org/"),
            ("socks5h://u:p%20w@[::1]:1080", "socks5h://u:p%20w@[::1]:1080"),
        ] {
            assert_eq!(Proxy::parse(text).unwrap().0.as_str(), read, "{text}");
        }
        for text in [
            "",
            "socks4://a:1",
            "socks4a://a:1",
            "ftp://a:1",
            "http://",
            "http://:80",
            "socks5h://",
            "socks5h://a:99999",
            "socks5h://a:0",
            "socks5h://secret@a:1/path",
            "http://a:1?secret",
            "secret word",
        ] {
            let error = Proxy::parse(text).map(drop).unwrap_err();
            assert_eq!(error.code(), "invalid_arguments", "{text}");
            assert!(!error.to_string().contains("secret"), "{error}");
        }
        let proxy = Proxy::parse("socks5h://old:older@a:1").unwrap().with_login("n@me", "p:w/").unwrap();
        assert_eq!(proxy.0.as_str(), "socks5h://n%40me:p%3Aw%2F@a:1");
    }

    #[test]
    fn a_file_without_certificates_is_told() {
        assert!(Trusted::parse(b"nothing").is_err());
        assert!(Trusted::parse(b"").is_err());
    }
}
