//! Headers that keep browsers from doing with an answer what it is not for. It knows no route.

use axum::http::{HeaderMap, HeaderName, HeaderValue, header};

/// What the host's own page may load and do: its own files, pictures and sounds; no script that stands in it, nothing of others.
const PAGE: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; \
                    media-src 'self' blob:; connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'";
/// What every other answer may do: nothing.
const NOTHING: &str = "default-src 'none'; frame-ancestors 'none'";
/// What no page of this host needs of a machine.
const UNUSED: &str = "accelerometer=(), camera=(), display-capture=(), geolocation=(), gyroscope=(), hid=(), magnetometer=(), \
                      microphone=(), midi=(), payment=(), publickey-credentials-get=(), screen-wake-lock=(), serial=(), usb=()";

/// Sets what every answer has, and what an answer that says nothing of it has too.
pub(super) fn secure(headers: &mut HeaderMap) {
    for (name, value) in [
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    for (name, value) in [
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CONTENT_SECURITY_POLICY, NOTHING),
        (header::CACHE_CONTROL, "no-store"),
    ] {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    }
}

/// Sets what an answer has that a browser may show as a page of its own.
pub(super) fn of_document(headers: &mut HeaderMap) {
    headers.insert(HeaderName::from_static("cross-origin-opener-policy"), HeaderValue::from_static("same-origin"));
    headers.insert(HeaderName::from_static("permissions-policy"), HeaderValue::from_static(UNUSED));
}

/// Sets what the files of the host's own page have.
pub(super) fn of_page(headers: &mut HeaderMap) {
    of_document(headers);
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(PAGE));
    // With none at all, a browser would not say that a page's own writes are its own.
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("same-origin"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_answer_is_closed_and_the_page_opens_only_what_it_needs() {
        let mut other = HeaderMap::new();
        secure(&mut other);
        assert_eq!(other[header::CONTENT_SECURITY_POLICY], NOTHING);
        assert_eq!(other[header::REFERRER_POLICY], "no-referrer");
        let mut page = HeaderMap::new();
        of_page(&mut page);
        secure(&mut page);
        let policy = page[header::CONTENT_SECURITY_POLICY].to_str().unwrap_or_default();
        assert!(policy.starts_with("default-src 'none'; script-src 'self';") && !policy.contains("unsafe"), "{policy}");
        for name in ["x-content-type-options", "x-frame-options", "cross-origin-resource-policy"] {
            assert!(page.contains_key(name) && other.contains_key(name), "{name}");
        }
        assert!(page.contains_key("cross-origin-opener-policy") && page.contains_key("permissions-policy"));
    }
}
