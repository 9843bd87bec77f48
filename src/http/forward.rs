//! Who really asks, and how: what a proxy in front says counts where the proxy is one that the owner named, and nowhere else.

use axum::http::{HeaderMap, HeaderName};
use ipnet::IpNet;
use std::net::{IpAddr, Ipv4Addr};

const FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const FORWARDED: HeaderName = HeaderName::from_static("forwarded");

/// A connection as this server sees it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Connection {
    /// The address that it came in on.
    pub(super) local: IpAddr,
    /// The address that it came from.
    pub(super) peer: IpAddr,
    /// Whether this server itself speaks TLS on it.
    pub(super) is_tls: bool,
}

impl Connection {
    /// One of a test that opens no socket.
    pub(super) const HERE: Connection =
        Connection { local: IpAddr::V4(Ipv4Addr::LOCALHOST), peer: IpAddr::V4(Ipv4Addr::LOCALHOST), is_tls: false };
}

/// Whoever is behind a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Client {
    /// The address.
    pub(super) address: IpAddr,
    /// Whether nobody on the way can read along.
    pub(super) is_https: bool,
    /// Whether it is a program on this machine. What came through a proxy is not, wherever the proxy is.
    pub(super) is_here: bool,
}

/// Whoever is behind a request on `connection`.
pub(super) fn client(connection: &Connection, headers: &HeaderMap, trusted: &[IpNet]) -> Client {
    let peer = connection.peer.to_canonical();
    let is_trusted = |ip: IpAddr| trusted.iter().any(|net| net.contains(&ip));
    let came_through = [FOR, PROTO, FORWARDED].iter().any(|name| headers.contains_key(name));
    if !is_trusted(peer) {
        let is_here = peer.is_loopback() && !came_through;
        return Client { address: peer, is_https: connection.is_tls, is_here };
    }
    // Each proxy adds whom it heard from at the end: what stands before the first that is not trusted, anybody could have written.
    let hops: Vec<&str> = headers
        .get_all(FOR)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .collect();
    let mut address = peer;
    for hop in hops.iter().rev() {
        let Some(ip) = read(hop) else { break };
        address = ip;
        if !is_trusted(ip) {
            break;
        }
    }
    let proto = headers.get_all(PROTO).iter().next_back().and_then(|value| value.to_str().ok());
    let is_https = proto.map_or(connection.is_tls, |proto| {
        proto.rsplit(',').next().is_some_and(|p| p.trim().eq_ignore_ascii_case("https"))
    });
    Client { address, is_https, is_here: !came_through && peer.is_loopback() }
}

/// An address as proxies write it: alone, or with a port.
fn read(text: &str) -> Option<IpAddr> {
    let text = text.trim().trim_matches('"');
    let ip = text.parse().ok().or_else(|| text.parse().ok().map(|socket: std::net::SocketAddr| socket.ip()));
    let ip = ip.or_else(|| text.strip_prefix('[')?.strip_suffix(']')?.parse().ok());
    ip.map(|ip: IpAddr| ip.to_canonical())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    #[test]
    fn only_a_proxy_that_the_owner_named_says_who_asks() {
        // Peer, X-Forwarded-For, X-Forwarded-Proto; address, https, here.
        type Row<'a> = (&'a str, &'a [&'a str], &'a [&'a str], &'a str, bool, bool);
        let rows: [Row; 20] = [
            ("127.0.0.1", &[], &[], "127.0.0.1", false, true),
            ("::1", &[], &[], "::1", false, true),
            ("192.168.1.9", &[], &[], "192.168.1.9", false, false),
            // Not named: not believed, and not taken for somebody at this machine either.
            ("127.0.0.1", &["1.2.3.4"], &["https"], "127.0.0.1", false, false),
            ("192.168.1.9", &["127.0.0.1"], &["https"], "192.168.1.9", false, false),
            // Named: 10.0.0.0/8 and fd00::/8.
            ("10.0.0.1", &["1.2.3.4"], &["https"], "1.2.3.4", true, false),
            ("::ffff:10.0.0.1", &["1.2.3.4"], &["https"], "1.2.3.4", true, false),
            ("fd00::1", &["2001:db8::5"], &["https"], "2001:db8::5", true, false),
            ("10.0.0.1", &["1.2.3.4"], &["http"], "1.2.3.4", false, false),
            ("10.0.0.1", &["1.2.3.4"], &[], "1.2.3.4", false, false),
            ("10.0.0.1", &["1.2.3.4:5678"], &["HTTPS"], "1.2.3.4", true, false),
            ("10.0.0.1", &["[2001:db8::5]:1"], &[], "2001:db8::5", false, false),
            // What a client wrote itself stands before what the proxy added.
            ("10.0.0.1", &["127.0.0.1, 1.2.3.4"], &["https"], "1.2.3.4", true, false),
            ("10.0.0.1", &["127.0.0.1", "1.2.3.4"], &[], "1.2.3.4", false, false),
            ("10.0.0.1", &["1.2.3.4, 10.9.9.9"], &[], "1.2.3.4", false, false),
            ("10.0.0.1", &["evil, 10.9.9.9"], &[], "10.9.9.9", false, false),
            ("10.0.0.1", &["nonsense"], &[], "10.0.0.1", false, false),
            ("10.0.0.1", &[""], &[], "10.0.0.1", false, false),
            ("10.0.0.1", &["1.2.3.4"], &["https, http"], "1.2.3.4", false, false),
            ("10.0.0.1", &["1.2.3.4"], &["https", "http"], "1.2.3.4", false, false),
        ];
        let trusted: Vec<IpNet> = vec!["10.0.0.0/8".parse().unwrap(), "fd00::/8".parse().unwrap()];
        for (peer, hops, protos, address, is_https, is_here) in rows {
            let mut headers = HeaderMap::new();
            for (name, values) in [(FOR, hops), (PROTO, protos)] {
                for value in values {
                    headers.append(&name, HeaderValue::from_str(value).unwrap());
                }
            }
            let connection =
                Connection { local: IpAddr::from([127, 0, 0, 1]), peer: peer.parse().unwrap(), is_tls: false };
            let expected = Client { address: address.parse().unwrap(), is_https, is_here };
            assert_eq!(client(&connection, &headers, &trusted), expected, "{peer} {hops:?} {protos:?}");
            let tls = client(&Connection { is_tls: true, ..connection }, &headers, &[]);
            assert!(tls.is_https && tls.address == connection.peer.to_canonical());
        }
    }
}
