//! The check of the address that is really connected to, for every hop. Pure: it opens nothing.
//! A name that reads as WAN must not lead into the LAN (rebinding), and nobody reaches a cloud's metadata service.

use super::lane::{Lane, classify, is_private};
use crate::base::error::{Error, Result};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What a request's own host allows its address to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostRule {
    /// The lane of the host by its text.
    pub lane: Lane,
    /// Whether the host is itself an address, so that whoever permitted it saw which one.
    pub literal: bool,
}

impl HostRule {
    /// The rule for a host as a URL gives it.
    #[must_use]
    pub fn of(host: &str) -> Self {
        HostRule { lane: classify(host), literal: address(host).is_some() }
    }
}

/// The address that a host is, if it is one, as a URL gives it.
#[must_use]
pub fn address(host: &str) -> Option<IpAddr> {
    host.trim_matches(['[', ']']).parse().ok()
}

/// How far an address reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    /// Anywhere on the internet.
    Public,
    /// This machine, its links, its site.
    Local,
    /// Between a customer and a carrier or a cloud (100.64/10): public to read, local to reach.
    Shared,
    /// A metadata service that hands out the machine's credentials.
    Metadata,
    /// Not the address of one machine.
    Group,
}

/// Refuses an address that a host may not lead to.
///
/// # Errors
/// `permission_denied`, naming neither the host nor the address: the text may travel to a stranger's script.
pub fn check_address(ip: IpAddr, rule: HostRule) -> Result<()> {
    for candidate in unwrapped(ip) {
        match (reach(candidate), rule.lane, rule.literal) {
            (Reach::Metadata, ..) => {
                return Err(Error::denied("the address belongs to a cloud's metadata service")
                    .hint("no script reaches it; pass what is needed as a setting"));
            }
            (Reach::Group, ..) => {
                return Err(Error::denied("the address is a multicast or broadcast address"));
            }
            (Reach::Local, Lane::Wan, _) => {
                return Err(Error::denied("the host is on the internet by its name, but its address is on the local network")
                    .hint("a local machine is reached by its address, its short name, or a name in .local, .lan or .home.arpa"));
            }
            (Reach::Shared, Lane::Wan, false) => {
                return Err(Error::denied("the host's address lies in a carrier's shared range")
                    .hint("name the address itself"));
            }
            (Reach::Public | Reach::Local | Reach::Shared, ..) => {}
        }
    }
    Ok(())
}

/// The address and every IPv4 address that travels inside it.
fn unwrapped(ip: IpAddr) -> Vec<IpAddr> {
    let mut all = vec![ip];
    if let IpAddr::V6(v6) = ip {
        let s = v6.segments();
        let v4 = |high: u16, low: u16| Ipv4Addr::from((u32::from(high) << 16) | u32::from(low));
        let inner = match s {
            // IPv4-mapped, and the older IPv4-compatible form (`::` and `::1` are themselves).
            [0, 0, 0, 0, 0, 0xffff, high, low] => Some(v4(high, low)),
            [0, 0, 0, 0, 0, 0, high, low] if high != 0 || low > 1 => Some(v4(high, low)),
            // IPv4-translated (SIIT).
            [0, 0, 0, 0, 0xffff, 0, high, low] => Some(v4(high, low)),
            // NAT64's well-known prefix.
            [0x64, 0xff9b, 0, 0, 0, 0, high, low] => Some(v4(high, low)),
            // 6to4.
            [0x2002, high, low, ..] => Some(v4(high, low)),
            // Teredo: the client's address, inverted, at the end.
            [0x2001, 0, _, _, _, _, high, low] => Some(v4(!high, !low)),
            // ISATAP interface identifiers.
            [_, _, _, _, 0 | 0x200, 0x5efe, high, low] => Some(v4(high, low)),
            _ => None,
        };
        all.extend(inner.map(IpAddr::V4));
    }
    all
}

fn reach(ip: IpAddr) -> Reach {
    match ip {
        IpAddr::V4(v4) => reach_v4(v4),
        IpAddr::V6(v6) => reach_v6(v6),
    }
}

fn reach_v4(ip: Ipv4Addr) -> Reach {
    match ip.octets() {
        // The usual one, the two of containers, and those of three clouds that chose their own.
        [169, 254, 169, 254]
        | [169, 254, 170, 2 | 23]
        | [100, 100, 100, 200]
        | [168, 63, 129, 16]
        | [192, 0, 0, 192] => Reach::Metadata,
        [224..=239, ..] | [255, 255, 255, 255] => Reach::Group,
        [100, 64..=127, ..] => Reach::Shared,
        _ if is_private(IpAddr::V4(ip)) => Reach::Local,
        _ => Reach::Public,
    }
}

fn reach_v6(ip: Ipv6Addr) -> Reach {
    match ip.segments() {
        [0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254 | 0x23] | [0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254] => Reach::Metadata,
        [first, ..] if first & 0xff00 == 0xff00 => Reach::Group,
        // Mapped addresses are judged by what they carry.
        [0, 0, 0, 0, 0, 0xffff, ..] => Reach::Public,
        // Local-use NAT64, site-local and segment-routing ranges, which Python's table leaves out.
        [0x64, 0xff9b, 1, ..] | [0x5f00, ..] => Reach::Local,
        [first, ..] if first & 0xffc0 == 0xfec0 => Reach::Local,
        _ if is_private(IpAddr::V6(ip)) => Reach::Local,
        _ => Reach::Public,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const WAN: HostRule = HostRule { lane: Lane::Wan, literal: false };
    const LAN: HostRule = HostRule { lane: Lane::Lan, literal: false };

    #[test]
    fn a_wan_name_reaches_public_addresses_only_and_a_lan_name_never_the_metadata_service() {
        // address, may a WAN name lead there, may a LAN name lead there
        let table = [
            ("8.8.8.8", true, true),
            ("93.184.216.34", true, true),
            ("2606:4700:4700::1111", true, true),
            ("::ffff:8.8.8.8", true, true),
            ("64:ff9b::808:808", true, true),
            ("2002:808:808::1", true, true),
            ("127.0.0.1", false, true),
            ("127.9.9.9", false, true),
            ("0.0.0.0", false, true),
            ("10.1.2.3", false, true),
            ("172.20.0.1", false, true),
            ("192.168.0.10", false, true),
            ("169.254.1.1", false, true),
            ("198.18.0.1", false, true),
            ("240.0.0.1", false, true),
            ("100.64.0.1", false, true),
            ("::1", false, true),
            ("::", false, true),
            ("fe80::1", false, true),
            ("fec0::1", false, true),
            ("fc00::1", false, true),
            ("fd12:3456::1", false, true),
            ("::ffff:127.0.0.1", false, true),
            ("::ffff:192.168.1.1", false, true),
            ("::ffff:0:10.0.0.1", false, true),
            ("::127.0.0.1", false, true),
            ("::2", false, true),
            ("64:ff9b::7f00:1", false, true),
            ("64:ff9b::a00:1", false, true),
            ("64:ff9b:1::a00:1", false, true),
            ("2002:7f00:1::", false, true),
            ("2002:c0a8:101::1", false, true),
            ("2001:0:4136:e378:8000:63bf:f5ff:fffe", false, true),
            ("2a00::5efe:10.0.0.1", false, true),
            ("2a00::200:5efe:10.0.0.1", false, true),
            ("169.254.169.254", false, false),
            ("169.254.170.2", false, false),
            ("169.254.170.23", false, false),
            ("100.100.100.200", false, false),
            ("168.63.129.16", false, false),
            ("192.0.0.192", false, false),
            ("fd00:ec2::254", false, false),
            ("fd00:ec2::23", false, false),
            ("fd20:ce::254", false, false),
            ("::ffff:169.254.169.254", false, false),
            ("::169.254.169.254", false, false),
            ("64:ff9b::a9fe:a9fe", false, false),
            ("2002:a9fe:a9fe::", false, false),
            ("2001:0:0:0:0:0:5601:5601", false, false),
            ("224.0.0.1", false, false),
            ("255.255.255.255", false, false),
            ("ff02::1", false, false),
        ];
        for (address, wan, lan) in table {
            let ip: IpAddr = address.parse().unwrap();
            assert_eq!(check_address(ip, WAN).is_ok(), wan, "{address} for a wan name");
            assert_eq!(check_address(ip, LAN).is_ok(), lan, "{address} for a lan name");
        }
    }

    #[test]
    fn a_carriers_shared_address_is_reached_by_its_number_but_not_through_a_name() {
        let ip: IpAddr = "100.64.0.1".parse().unwrap();
        assert!(check_address(ip, HostRule::of("100.64.0.1")).is_ok());
        assert!(check_address(ip, HostRule::of("shared.example.com")).is_err());
    }

    #[test]
    fn the_rule_of_a_host_is_its_lane_and_whether_it_is_an_address() {
        for (host, lane, literal) in [
            ("example.com", Lane::Wan, false),
            ("nas.local", Lane::Lan, false),
            ("[::1]", Lane::Lan, true),
            ("8.8.8.8", Lane::Wan, true),
        ] {
            assert_eq!(HostRule::of(host), HostRule { lane, literal }, "{host}");
        }
    }

    #[test]
    fn a_refusal_names_no_address() {
        let error = check_address("10.1.2.3".parse().unwrap(), WAN).unwrap_err();
        assert!(!error.to_string().contains("10.1.2.3"));
        assert_eq!(error.code(), "permission_denied");
    }
}
