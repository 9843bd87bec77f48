//! From the bytes of an answer to text: which charset, by mark, header, page or habit. Pure.

use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};

/// How far into a page its own declaration of a charset is looked for, as browsers do.
const PRESCAN: usize = 1024;

/// Decodes `bytes`; what does not fit the charset becomes U+FFFD. A byte order mark wins over the header.
pub(super) fn text(bytes: &[u8], content_type: Option<&str>) -> String {
    let declared = content_type.and_then(charset).or_else(|| {
        let html = content_type.is_some_and(|t| t.trim_start().to_ascii_lowercase().starts_with("text/html"));
        html.then(|| declared_in_page(bytes)).flatten()
    });
    let encoding = declared.unwrap_or_else(|| {
        // Undeclared: what is not UTF-8 is most often Western European, and every byte reads as something.
        if std::str::from_utf8(bytes).is_ok() || content_type.is_none_or(|t| !t.trim_start().starts_with("text/")) {
            UTF_8
        } else {
            WINDOWS_1252
        }
    });
    encoding.decode(bytes).0.into_owned()
}

/// The `charset` parameter of a content type.
fn charset(content_type: &str) -> Option<&'static Encoding> {
    content_type.split(';').skip(1).find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        if !name.trim().eq_ignore_ascii_case("charset") {
            return None;
        }
        Encoding::for_label(value.trim().trim_matches(['"', '\'']).as_bytes())
    })
}

/// `<meta charset=..>` or `<meta http-equiv=content-type content="..; charset=..">` near the page's start.
fn declared_in_page(bytes: &[u8]) -> Option<&'static Encoding> {
    let head = String::from_utf8_lossy(&bytes[..bytes.len().min(PRESCAN)]).to_ascii_lowercase();
    let mut rest = head.as_str();
    while let Some(at) = rest.find("<meta") {
        rest = &rest[at + 5..];
        let tag = &rest[..rest.find('>').unwrap_or(rest.len())];
        if let Some(at) = tag.find("charset") {
            let value = tag[at + 7..].trim_start().strip_prefix('=')?.trim_start().trim_start_matches(['"', '\'']);
            let label: String =
                value.chars().take_while(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | ':' | '.')).collect();
            let found = Encoding::for_label(label.as_bytes())?;
            // A page that could be read this far is not UTF-16, whatever it says.
            return Some(if found.is_ascii_compatible() { found } else { UTF_8 });
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_charset_is_found_by_mark_header_page_and_habit() {
        let page = b"<html><head><meta charset=\"iso-8859-2\"></head>\xb1</html>";
        let equiv = b"<META http-equiv='Content-Type' content='text/html; charset=windows-1251'>\xcf";
        let table: &[(&[u8], Option<&str>, &str)] = &[
            ("grün".as_bytes(), None, "grün"),
            ("grün".as_bytes(), Some("text/plain"), "grün"),
            (b"gr\xfcn", Some("text/plain; charset=ISO-8859-1"), "grün"),
            (b"gr\xfcn", Some("text/plain;charset=\"latin1\""), "grün"),
            (b"gr\xfcn", Some("text/plain"), "grün"),
            (b"gr\xfcn", Some("text/plain; charset=nonsense"), "grün"),
            (b"gr\xfcn", Some("application/json"), "gr\u{fffd}n"),
            (b"gr\xfcn", None, "gr\u{fffd}n"),
            (b"\x83\x65\x83\x58\x83\x67", Some("text/html; charset=shift_jis"), "テスト"),
            (b"\xef\xbb\xbfhi", Some("text/plain; charset=latin1"), "hi"),
            (b"\xff\xfeh\0i\0", Some("text/plain"), "hi"),
            (page, Some("text/html"), "<html><head><meta charset=\"iso-8859-2\"></head>ą</html>"),
            (equiv, Some("text/html"), "<META http-equiv='Content-Type' content='text/html; charset=windows-1251'>П"),
            (b"<meta charset=utf-16>x", Some("text/html"), "<meta charset=utf-16>x"),
            (b"<meta charset>x\xfc", Some("text/html"), "<meta charset>xü"),
            (b"", Some("text/html"), ""),
        ];
        for (bytes, content_type, want) in table {
            assert_eq!(text(bytes, *content_type), *want, "{content_type:?} {bytes:?}");
        }
    }
}
