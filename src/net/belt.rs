//! What programs that this host starts are told of its network, as environment variables: the proxy where there is one, what
//! stays local, and nothing that would lead around the proxy. It is advice to programs that listen; it holds nobody.

use super::client::Client;
use super::outlet::{Outlet, Range};
use std::collections::BTreeSet;

/// The variables that lead through a proxy; each is read in small letters too.
const PROXY: [&str; 3] = ["ALL_PROXY", "HTTPS_PROXY", "HTTP_PROXY"];
/// What is reached without one.
const LOCAL: [&str; 10] = [
    "localhost",
    "127.0.0.1",
    "::1",
    "10.0.0.0/8",
    "172.16.0.0/12",
    "192.168.0.0/16",
    "169.254.0.0/16",
    ".local",
    ".lan",
    ".home.arpa",
];
/// A proxy that there never is: who goes through it fails, and loudly.
const CLOSED: &str = "http://closed.invalid:9";

/// Variables for a program. It has no `Debug`: it may hold the proxy's password.
pub struct Belt {
    /// Names and values.
    pub variables: Vec<(&'static str, String)>,
    /// The proxy's password, to be taken out of what the program says.
    pub password: Option<String>,
}

/// Whether `name` is a variable that says how the network is reached.
#[must_use]
pub fn is_of_belt(name: &str) -> bool {
    name.eq_ignore_ascii_case("NO_PROXY") || PROXY.iter().any(|proxy| name.eq_ignore_ascii_case(proxy))
}

impl Client {
    /// The variables for a program of a plugin that registered the hosts `direct` as local.
    #[must_use]
    pub fn belt(&self, direct: &BTreeSet<String>) -> Belt {
        let settings = self.settings();
        let proxy = match (&settings.outlet, settings.range) {
            (_, Range::ThisMachine) | (Outlet::Closed(_), _) => Some(CLOSED.to_owned()),
            (Outlet::Direct, _) => None,
            (Outlet::Through(proxy), _) => Some(proxy.address()),
        };
        let password = match &settings.outlet {
            Outlet::Through(proxy) => proxy.password(),
            _ => None,
        };
        let mut variables = Vec::new();
        let mut both = |name: &'static str, small: &'static str, value: &str| {
            variables.push((name, value.to_owned()));
            variables.push((small, value.to_owned()));
        };
        let local: Vec<&str> = LOCAL.into_iter().chain(direct.iter().map(String::as_str)).collect();
        both("NO_PROXY", "no_proxy", &local.join(","));
        if let Some(proxy) = proxy {
            both("ALL_PROXY", "all_proxy", &proxy);
            both("HTTPS_PROXY", "https_proxy", &proxy);
            both("HTTP_PROXY", "http_proxy", &proxy);
        }
        Belt { variables, password }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::base::error::Error;
    use crate::net::{Proxy, Settings};

    fn proxy_of(settings: Settings) -> Option<String> {
        let belt = Client::with(settings).belt(&BTreeSet::new());
        let value = |name: &str| belt.variables.iter().find(|(n, _)| *n == name).map(|(_, v)| v.clone());
        for name in PROXY {
            assert_eq!(value(name), value("ALL_PROXY"));
            assert_eq!(value(&name.to_ascii_lowercase()), value("ALL_PROXY"));
        }
        assert_eq!(value("NO_PROXY").unwrap(), LOCAL.join(","));
        value("ALL_PROXY")
    }

    #[test]
    fn programs_are_led_through_the_proxy_or_nowhere_where_its_setting_is_broken() {
        let through =
            |text: &str| Settings { outlet: Outlet::Through(Proxy::parse(text).unwrap()), ..Settings::default() };
        assert_eq!(proxy_of(Settings::default()), None);
        assert_eq!(proxy_of(through("127.0.0.1:9050")).unwrap(), "socks5h://127.0.0.1:9050");
        assert_eq!(proxy_of(through("http://a:p%40ss@proxy.lan:3128")).unwrap(), "http://a:p%40ss@proxy.lan:3128");
        let closed = Settings { outlet: Outlet::Closed(Error::internal("x")), ..Settings::default() };
        assert_eq!(proxy_of(closed).unwrap(), CLOSED);
        let offline = Settings { range: Range::ThisMachine, ..through("127.0.0.1:9050") };
        assert_eq!(proxy_of(offline).unwrap(), CLOSED);
    }

    #[test]
    fn direct_hosts_stay_local_and_the_password_is_told_apart() {
        let proxy = Proxy::parse("http://proxy.lan:3128").unwrap().with_login("ann", "p@ss word").unwrap();
        let client = Client::with(Settings { outlet: Outlet::Through(proxy), ..Settings::default() });
        let belt = client.belt(&["ha.my-house.example".to_owned()].into());
        assert!(belt.variables[0].1.ends_with(".home.arpa,ha.my-house.example"));
        assert_eq!(belt.password.unwrap(), "p@ss word");
    }

    #[test]
    fn a_script_cannot_name_its_variables() {
        for name in ["http_proxy", "HTTP_PROXY", "All_Proxy", "no_proxy", "HTTPS_PROXY"] {
            assert!(is_of_belt(name), "{name}");
        }
        assert!(!is_of_belt("PROXY"));
    }
}
