//! Links that sign a person in, and where the hosts of a root listen, so that another process can make one.

use super::codes::{self, Codes};
use super::ledger::{Broken, Ledger, push_within};
use super::seal;
use crate::base::clock::Clock;
use crate::base::error::{Error, Kind, Result};
use crate::base::paths::Paths;
use serde::{Deserialize, Serialize};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::time::Duration;

/// How long a host has to take a connection before it counts as gone.
const ANSWERS: Duration = Duration::from_secs(2);
/// Most hosts that are remembered.
const MOST: usize = 16;

/// A link that signs whoever opens it in, once.
#[derive(Clone, PartialEq, Eq)]
pub struct Link {
    /// The address, with the code behind `#`: what stands there is sent to nobody and written into no log.
    pub url: String,
    /// Until when it works, in milliseconds since 1970.
    pub expires_ms: i64,
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Link").field("expires_ms", &self.expires_ms).finish_non_exhaustive()
    }
}

impl Link {
    /// A link to the page at `base`, such as `http://127.0.0.1:8470`.
    pub(super) fn make(codes: &Codes, base: &str, clock: &Clock) -> Result<Link> {
        let code = codes.make()?;
        Ok(Link { url: format!("{base}/#sign-in={code}"), expires_ms: clock.unix_ms() + codes::LIFETIME_MS })
    }
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct All {
    hosts: Vec<Serves>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Serves {
    id: String,
    /// Where people find it.
    url: String,
    /// Where it listens.
    address: SocketAddr,
}

fn ledger(paths: &Paths) -> Ledger<All> {
    Ledger::at(paths.webui().join("hosts.json"), Broken::StartsOver)
}

/// Says where a host listens for as long as this lives.
pub(super) struct Listening {
    ledger: Ledger<All>,
    id: String,
}

impl Listening {
    pub(super) fn at(paths: &Paths, address: SocketAddr, url: &str) -> Result<Listening> {
        let (ledger, id) = (ledger(paths), seal::name()?);
        ledger.change(|all| {
            all.hosts.retain(|other| other.address != address);
            push_within(&mut all.hosts, Serves { id: id.clone(), url: url.to_owned(), address }, MOST);
            Ok(())
        })?;
        Ok(Listening { ledger, id })
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let _ = self.ledger.change(|all| {
            all.hosts.retain(|host| host.id != self.id);
            Ok(())
        });
    }
}

/// A link to the host that serves the root at `paths`; the one that started last, where there are several. It waits for the disk
/// and asks whether the host is there.
///
/// # Errors
/// `not_found` where none runs, and what the file system says.
pub fn link(paths: &Paths, clock: &Clock) -> Result<Link> {
    let all = ledger(paths).read();
    let there =
        all.hosts.iter().rev().find(|host| TcpStream::connect_timeout(&reachable(host.address), ANSWERS).is_ok());
    let Some(host) = there else {
        return Err(Error::new(Kind::NotFound, "no host serves this root now").hint("lapidary serve prints a link too"));
    };
    Link::make(&Codes::of(paths, clock.clone()), &host.url, clock)
}

/// An address by which this machine itself reaches what listens on `address`.
pub(super) fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_to_the_host_that_is_there() {
        let dir = tempfile::tempdir().unwrap();
        let (paths, clock) = (Paths::at(dir.path()), Clock::manual(1_800_000_000_000));
        assert_eq!(link(&paths, &clock).unwrap_err().kind(), Kind::NotFound);
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let gone = {
            let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            gone.local_addr().unwrap()
        };
        let here = Listening::at(&paths, address, "http://here").unwrap();
        let _crashed = Listening::at(&paths, gone, "http://crashed").unwrap();
        let made = link(&paths, &clock).unwrap();
        let code = made.url.strip_prefix("http://here/#sign-in=").unwrap();
        assert!(code.len() == 43 && made.expires_ms == clock.unix_ms() + codes::LIFETIME_MS);
        assert!(!format!("{made:?}").contains(code));
        assert!(Codes::of(&paths, clock.clone()).spend(code).unwrap());
        drop(here);
        assert_eq!(link(&paths, &clock).unwrap_err().kind(), Kind::NotFound);
    }

    #[test]
    fn what_listens_everywhere_is_reached_here() {
        for (address, expected) in [
            ("0.0.0.0:1", "127.0.0.1:1"),
            ("[::]:2", "[::1]:2"),
            ("192.168.1.5:3", "192.168.1.5:3"),
            ("[::1]:4", "[::1]:4"),
        ] {
            assert_eq!(reachable(address.parse().unwrap()).to_string(), expected);
        }
    }
}
