//! Which ways of writing a value are found, and that what only looks like one is left.

use super::Matcher;
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use std::fmt::Write;

const VALUES: [&str; 12] = [
    "p&ss<w0rd>99",
    "naïve-passwörd-1",
    "pa ss/\"w+rd",
    "back\\slash\\",
    "\\\\n\\u0026",
    "it's 100%25 & &amp; more",
    "emoji 🔑 key",
    "line\nbreak\ttab",
    "&&&&%%%%\\\\\\\\",
    "aaaaaaaa",
    "abcd",
    "Ключ:значение",
];

fn matcher(values: &[&str]) -> Matcher {
    let mut matcher = Matcher::default();
    values.iter().for_each(|value| matcher.add(value));
    matcher
}

fn taken_out(values: &[&str], text: &[u8]) -> Vec<u8> {
    let (mut out, mut from) = (Vec::new(), 0);
    for place in matcher(values).find(text) {
        out.extend_from_slice(&text[from..place.start]);
        out.extend_from_slice(b"***");
        from = place.end;
    }
    out.extend_from_slice(&text[from..]);
    out
}

fn each(value: &str, way: impl Fn(char) -> String) -> String {
    value.chars().map(way).collect()
}

/// `\u0026`, in pairs beyond the first plane.
fn units(c: char, way: impl Fn(u16) -> String) -> String {
    c.encode_utf16(&mut [0; 2]).iter().map(|unit| way(*unit)).collect()
}

fn bytes(c: char, way: impl Fn(u8) -> String) -> String {
    c.to_string().bytes().map(way).collect()
}

fn json(value: &str) -> String {
    let text = serde_json::Value::from(value).to_string();
    text[1..text.len() - 1].to_owned()
}

fn plain(c: char) -> bool {
    c.is_ascii_alphanumeric()
}

fn html(value: &str) -> String {
    value
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
        .replace('\'', "&#39;")
        .replace('ï', "&iuml;")
        .replace('ö', "&ouml;")
}

fn percent(value: &str) -> String {
    each(value, |c| if plain(c) { c.to_string() } else { bytes(c, |b| format!("%{b:02X}")) })
}

/// Every way by itself.
fn ways(value: &str) -> Vec<(&'static str, String)> {
    let escaped = |c: char| units(c, |unit| format!("\\u{unit:04x}"));
    let braces = |c: char| format!("\\u{{{:x}}}", u32::from(c));
    vec![
        ("as it is", value.to_owned()),
        ("json", json(value)),
        ("json with slashes escaped", json(value).replace('/', "\\/")),
        ("all ascii", each(&json(value), |c| if c.is_ascii() { c.to_string() } else { escaped(c) })),
        ("lower hex", each(value, escaped)),
        ("upper hex", each(value, |c| units(c, |unit| format!("\\u{unit:04X}")))),
        ("only what is odd", each(value, |c| if plain(c) { c.to_string() } else { escaped(c) })),
        ("javascript", each(value, braces)),
        ("python", each(value, |c| format!("\\U{:08x}", u32::from(c)))),
        ("html", html(value)),
        ("html in decimals", each(value, |c| format!("&#{};", u32::from(c)))),
        ("html in hex", each(value, |c| format!("&#x{:x};", u32::from(c)))),
        ("html in upper hex", each(value, |c| format!("&#X{:05X};", u32::from(c)))),
        ("percent", percent(value)),
        ("percent in lower case", each(value, |c| bytes(c, |b| format!("%{b:02x}")))),
        ("form", url::form_urlencoded::byte_serialize(value.as_bytes()).collect()),
        ("json in json", json(&json(value))),
        ("escapes in json", json(&each(value, escaped))),
        ("html in json", json(&html(value))),
        ("json in html", html(&json(value))),
        ("json in a url", percent(&json(value))),
        ("twice percent", percent(&percent(value))),
        ("json in json in html", html(&json(&json(value)))),
        (
            "mixed",
            value.chars().enumerate().fold(String::new(), |mut out, (number, c)| {
                match number % 5 {
                    0 => out.push_str(&escaped(c)),
                    1 => write!(out, "&#{};", u32::from(c)).unwrap(),
                    2 => out.push_str(&bytes(c, |b| format!("%{b:02x}"))),
                    3 => out.push_str(&json(&c.to_string())),
                    _ => out.push_str(&html(&c.to_string())),
                }
                out
            }),
        ),
    ]
}

#[test]
fn a_value_is_found_in_every_way_of_writing_it() {
    for value in VALUES {
        for (way, written) in ways(value) {
            let text = format!("{{\"k\": \"{written}\"}}.");
            let got = String::from_utf8(taken_out(&[value], text.as_bytes())).unwrap();
            assert_eq!(got, "{\"k\": \"***\"}.", "{value:?} {way}: {written}");
        }
    }
}

#[test]
fn a_value_is_found_in_base64_wherever_it_begins_among_other_bytes() {
    for value in VALUES {
        for before in 0..5 {
            for after in 0..4 {
                let whole = [&b"<=>?@"[..before], value.as_bytes(), &b"!~|{"[..after]].concat();
                for (engine, name) in [
                    (&STANDARD, "standard"),
                    (&STANDARD_NO_PAD, "standard without padding"),
                    (&URL_SAFE, "url"),
                    (&URL_SAFE_NO_PAD, "url without padding"),
                ] {
                    let written = engine.encode(&whole);
                    for (way, written) in [
                        ("", written.clone()),
                        (" in a url", percent(&written)),
                        (" in json", written.replace('/', "\\/")),
                    ] {
                        let got = String::from_utf8(taken_out(&[value], format!(" {written} ").as_bytes())).unwrap();
                        assert!(got.contains("***"), "{value:?} {before} {after} {name}{way}: {got}");
                        // Nothing is left but what is before and behind, and a digit at either end.
                        assert!(got.len() < 2 + 3 + 9 * 3, "{value:?} {before} {after} {name}{way}: {got}");
                    }
                }
            }
        }
    }
    let lines = STANDARD.encode("x".repeat(55) + "a-key-over-two-lines");
    let lines = format!("{}\r\n{}", &lines[..76], &lines[76..]);
    assert!(taken_out(&["a-key-over-two-lines"], lines.as_bytes()).ends_with(b"***"));
}

#[test]
fn a_value_is_found_in_other_charsets() {
    let wide = |text: &str, big: bool| -> Vec<u8> {
        text.encode_utf16().flat_map(|unit| if big { unit.to_be_bytes() } else { unit.to_le_bytes() }).collect()
    };
    for value in ["naïve-passwörd-1", "p&ss<w0rd>99"] {
        let latin: Vec<u8> = value.chars().map(|c| u8::try_from(u32::from(c)).unwrap()).collect();
        assert_eq!(taken_out(&[value], &[b"\xff=", latin.as_slice(), b"."].concat()), b"\xff=***.");
        let percent: String = latin.iter().map(|byte| format!("%{byte:02X}")).collect();
        assert_eq!(taken_out(&[value], percent.as_bytes()), b"***");
        let old: String = each(value, |c| format!("%u{:04X}", u32::from(c)));
        assert_eq!(taken_out(&[value], old.as_bytes()), b"***");
        for big in [false, true] {
            let got = taken_out(&[value], &wide(&format!("k={value};"), big));
            assert!(got.windows(3).any(|window| window == b"***") && got.len() < 12, "{got:?}");
        }
    }
}

#[test]
fn what_only_looks_like_a_value_is_left() {
    for (value, text) in [
        ("p&ss<w0rd>99", "p&ss<w0rd>9"),
        ("p&ss<w0rd>99", "P&SS<W0RD>99"),
        ("p&ss<w0rd>99", "p\\u0026ss\\u003cw0rd\\u003e9 9"),
        ("abcd", "abc\\u00"),
        ("abcd", "abc\\ud83d"),
        ("abcd", "abc%6"),
        ("abcd", "abc&#100000000000;"),
        ("abcd", "abc&eacute;"),
        ("¤bcd", "äbcd"),
        ("a", "banana"),
        ("abc", "abc"),
        ("a b c d", "a_b_c_d"),
    ] {
        assert_eq!(taken_out(&[value], text.as_bytes()), text.as_bytes(), "{value} {text}");
    }
}

#[test]
fn values_that_overlap_are_taken_out_whole_and_neighbours_apart() {
    let rows: [(&[&str], &str, &str); 5] = [
        (&["secret-one", "one-secret"], "a secret-one-secret b", "a *** b"),
        (&["abcd", "abcdefgh"], "abcdefgh abcd abcde", "*** *** ***e"),
        (&["abcd"], "abcdabcd.", "******."),
        (&["user:password", "password"], "dXNlcjpwYXNzd29yZA== user:password", "*** ***"),
        (&["20%ab"], "%20%ab =20%25ab", "%*** =***"),
    ];
    for (values, text, want) in rows {
        assert_eq!(String::from_utf8(taken_out(values, text.as_bytes())).unwrap(), want, "{values:?} {text}");
    }
}

#[test]
fn a_long_value_is_taken_out_whole_and_as_far_as_it_goes() {
    let value: String = (0..2000).map(|n| char::from(b'a' + u8::try_from(n * 7 % 23).unwrap())).collect();
    assert_eq!(taken_out(&[&value], format!("<{value}>").as_bytes()), b"<***>");
    assert_eq!(taken_out(&[&value], format!("<{}>", &value[..1500]).as_bytes()), b"<***>");
    assert_eq!(taken_out(&[&value], format!("<{}>", STANDARD.encode(&value)).as_bytes()), b"<***>");
    assert_eq!(taken_out(&[&value], &value.as_bytes()[..200]), &value.as_bytes()[..200]);
}

#[test]
fn odd_bytes_end_no_search_early() {
    let mut random = 1u64;
    let values = ["p&ss<w0rd>99", "naïve-passwörd-1"];
    for _ in 0..2000 {
        let mut text: Vec<u8> = Vec::new();
        for _ in 0..24 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let alphabet = b"\\u%&#x;26dD8{}+= \x00\xc3\xaf\xf0";
            text.push(alphabet[usize::try_from(random >> 40).unwrap() % alphabet.len()]);
        }
        text.push(b'"');
        text.extend_from_slice(values[0].as_bytes());
        assert!(taken_out(&values, &text).ends_with(b"***"), "{text:?}");
    }
}
