//! Which lane a host belongs to, by its text alone: promise 4, no name is ever resolved here.
//! Pure; what is connected to is checked by `guard`, not here.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Where a host is, judged by how it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Lane {
    /// The machine itself or the network around it.
    Lan,
    /// Everything else.
    Wan,
}

impl Lane {
    /// The word scripts see.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Lane::Lan => "lan",
            Lane::Wan => "wan",
        }
    }
}

/// The lane of `host`, as it stands in a URL (with or without brackets). What cannot be read is WAN.
#[must_use]
pub fn classify(host: &str) -> Lane {
    classify_with(host, &|_| false)
}

/// As [`classify`], where `direct` answers whether a normalised name was registered as a direct host.
#[must_use]
pub fn classify_with(host: &str, direct: &dyn Fn(&str) -> bool) -> Lane {
    let host = normalise(host);
    if host.is_empty() {
        return Lane::Wan;
    }
    if host == "localhost" || host.ends_with(".local") {
        return Lane::Lan;
    }
    if let Some(ip) = literal(&host) {
        if is_private(ip) {
            return Lane::Lan;
        }
        // A public literal can still be a registered direct host, and nothing else.
        return if direct(&host) { Lane::Lan } else { Lane::Wan };
    }
    if host.ends_with(".lan") || host.ends_with(".home.arpa") {
        return Lane::Lan;
    }
    if !host.contains(['.', ':']) {
        return match dotless(&host) {
            Some(ip) if !is_private(IpAddr::V4(ip)) => Lane::Wan,
            // A private number, or not a number at all: a single label.
            _ => Lane::Lan,
        };
    }
    if direct(&host) {
        return Lane::Lan;
    }
    match padded(&host) {
        Some(ip) if is_private(IpAddr::V4(ip)) => Lane::Lan,
        _ => Lane::Wan,
    }
}

/// The form in which hosts are compared: no brackets, lower case, ASCII dots, no trailing dot.
#[must_use]
pub fn normalise(host: &str) -> String {
    let mut host: String = host
        .trim_matches(['[', ']'])
        .chars()
        .map(|c| match c {
            // The ideographic and full-width dots that IDNA treats as a dot.
            '\u{3002}' | '\u{FF0E}' | '\u{FF61}' => '.',
            other => other,
        })
        .flat_map(char::to_lowercase)
        .collect();
    host.truncate(host.trim_end_matches('.').len());
    host
}

/// An address written as one, with an optional zone behind a v6 one.
fn literal(host: &str) -> Option<IpAddr> {
    if let Ok(ip) = host.parse::<IpAddr>() {
        return Some(ip);
    }
    let (address, zone) = host.split_once('%')?;
    if zone.is_empty() || zone.contains('%') {
        return None;
    }
    address.parse::<Ipv6Addr>().ok().map(IpAddr::V6)
}

/// `2130706433`, `0x7f000001`, `017700000001`: an IPv4 address as one number.
fn dotless(host: &str) -> Option<Ipv4Addr> {
    let (digits, radix) = if let Some(hex) = host.strip_prefix("0x") {
        (hex, 16)
    } else if host.len() > 1 && host.starts_with('0') {
        (&host[1..], 8)
    } else {
        (host, 10)
    };
    // `from_str_radix` takes a sign, which no address has.
    if digits.is_empty() || !digits.chars().all(|c| c.is_digit(radix)) {
        return None;
    }
    u32::from_str_radix(digits, radix).ok().map(Ipv4Addr::from)
}

/// `192.168.001.005`: four groups of one to three digits, read as decimal.
fn padded(host: &str) -> Option<Ipv4Addr> {
    let mut octets = [0_u8; 4];
    let mut groups = host.split('.');
    for octet in &mut octets {
        let group = groups.next()?;
        if !(1..=3).contains(&group.len()) || !group.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        *octet = group.parse().ok()?;
    }
    groups.next().is_none().then_some(Ipv4Addr::from(octets))
}

/// Whether an address belongs to the LAN lane: wider than RFC 1918, without CGNAT, v4-mapped ones unwrapped.
#[must_use]
pub fn is_private(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(v4) => is_private_v4(v4),
        IpAddr::V6(v6) => match v6.to_ipv4_mapped() {
            Some(v4) => is_private_v4(v4),
            None => is_private_v6(v6),
        },
    }
}

fn is_private_v4(ip: Ipv4Addr) -> bool {
    match ip.octets() {
        [0 | 10 | 127, ..] | [169, 254, ..] | [172, 16..=31, ..] | [192, 168, ..] | [198, 18..=19, ..] => true,
        // IETF protocol assignments, without the two anycast addresses that are reachable from everywhere.
        [192, 0, 0, last] => !matches!(last, 9 | 10),
        // Documentation.
        [192, 0, 2, _] | [198, 51, 100, _] | [203, 0, 113, _] => true,
        // Reserved, with broadcast.
        [240..=255, ..] => true,
        _ => false,
    }
}

fn is_private_v6(ip: Ipv6Addr) -> bool {
    match ip.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0 | 1] => true,
        [0x100, 0, 0, 0, ..] => true,
        [0x2001, second, ..] if second < 0x200 => true,
        [0x2001, 0xdb8, ..] => true,
        [first, ..] => first & 0xfe00 == 0xfc00 || first & 0xffc0 == 0xfe80,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use Lane::{Lan, Wan};

    /// Row 42 of the edge cases: the classification table, host by host.
    const TABLE: &[(&str, Lane)] = &[
        // names
        ("workshop-pi", Lan),
        ("WORKSHOP-PI", Lan),
        ("nas.", Lan),
        ("nas..", Lan),
        ("localhost", Lan),
        ("LOCALHOST.", Lan),
        ("homeassistant.local", Lan),
        ("printer.lan", Lan),
        ("box.home.arpa", Lan),
        ("a.b.Local.", Lan),
        ("notlocal.localx", Wan),
        ("local.example", Wan),
        ("lan.example", Wan),
        ("foo.localhost", Wan),
        ("example.com", Wan),
        ("example.com.", Wan),
        ("EXAMPLE.com", Wan),
        ("evil。com", Wan),
        ("evil.com", Wan),
        ("printer。lan", Lan),
        ("http://192.168.1.1@evil.com/", Wan),
        ("user@example.com", Wan),
        ("host:80", Wan),
        ("", Wan),
        (".", Wan),
        ("...", Wan),
        ("[]", Wan),
        ("。", Wan),
        // plain v4
        ("192.168.1.5", Lan),
        ("10.0.0.5", Lan),
        ("172.16.0.1", Lan),
        ("172.31.255.255", Lan),
        ("172.15.0.1", Wan),
        ("172.32.0.1", Wan),
        ("192.169.0.1", Wan),
        ("192.167.0.1", Wan),
        ("11.0.0.1", Wan),
        ("127.0.0.1", Lan),
        ("127.255.255.254", Lan),
        ("0.0.0.0", Lan),
        ("169.254.1.1", Lan),
        ("169.253.1.1", Wan),
        ("100.64.0.1", Wan),
        ("8.8.8.8", Wan),
        ("1.1.1.1", Wan),
        ("192.0.0.8", Lan),
        ("192.0.0.9", Wan),
        ("192.0.0.10", Wan),
        ("192.0.2.1", Lan),
        ("198.18.0.1", Lan),
        ("198.19.255.255", Lan),
        ("198.20.0.1", Wan),
        ("198.51.100.7", Lan),
        ("203.0.113.7", Lan),
        ("224.0.0.1", Wan),
        ("240.0.0.1", Lan),
        ("255.255.255.255", Lan),
        ("192。168。1。1", Lan),
        ("192.168.1.1.", Lan),
        // v4 written otherwise
        ("2130706433", Lan),
        ("0x7f000001", Lan),
        ("0X7F000001", Lan),
        ("017700000001", Lan),
        ("0", Lan),
        ("00", Lan),
        ("16843009", Wan),
        ("0x08080808", Wan),
        ("010002004010", Wan),
        ("4294967295", Lan),
        ("4294967296", Lan),
        ("99999999999", Lan),
        ("089", Lan),
        ("0x", Lan),
        ("0xzz", Lan),
        ("192.168.001.005", Lan),
        ("008.008.008.008", Wan),
        ("127.1", Wan),
        ("0x7f.0.0.1", Wan),
        ("999.1.1.1", Wan),
        ("1.2.3.4.5", Wan),
        ("0192.168.1.1", Wan),
        ("192.168.1.1%eth0", Wan),
        // v6
        ("::1", Lan),
        ("[::1]", Lan),
        ("::", Lan),
        ("fe80::1", Lan),
        ("fe80::1%eth0", Lan),
        ("[fe80::1%25en0]", Lan),
        ("fe80::1%", Wan),
        ("fe80::zz", Wan),
        ("febf::1", Lan),
        ("fec0::1", Wan),
        ("fc00::1", Lan),
        ("fdff::1", Lan),
        ("fe00::1", Wan),
        ("2001:db8::1", Lan),
        ("2001::1", Lan),
        ("2001:1ff::1", Lan),
        ("2001:200::1", Wan),
        ("100::1", Lan),
        ("100:0:0:1::1", Wan),
        ("2001:4860:4860::8888", Wan),
        ("2001:4860:4860::8888%eth0", Wan),
        ("::ffff:8.8.8.8", Wan),
        ("::ffff:10.0.0.1", Lan),
        ("::ffff:7f00:1", Lan),
        ("64:ff9b::a00:1", Wan),
        ("2002:a00:1::", Wan),
        ("ff02::1", Wan),
    ];

    #[test]
    fn the_lane_follows_from_the_text_of_the_host_alone() {
        for (host, want) in TABLE {
            assert_eq!(classify(host), *want, "{host}");
        }
    }

    #[test]
    fn a_registered_direct_host_is_lan_by_exact_normalised_match() {
        let direct = |name: &str| name == "models.example.com" || name == "8.8.8.8";
        for (host, want) in [
            ("models.example.com", Lan),
            ("Models.Example.COM.", Lan),
            ("x.models.example.com", Wan),
            ("example.com", Wan),
            ("8.8.8.8", Lan),
            ("1.1.1.1", Wan),
            ("", Wan),
        ] {
            assert_eq!(classify_with(host, &direct), want, "{host}");
        }
    }
}
