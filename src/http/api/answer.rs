//! What every handler needs: bodies, paths and queries read strictly, refusals in one form, and blocking work off the runtime.

use super::Api;
use crate::app::Host;
use crate::base::error::{Error, Kind, Result};
use crate::base::json;
pub(super) use crate::http::reply::Refusal;
use crate::http::{gate, reply};
use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::sync::Arc;

/// What to do about a request that does not fit.
const SAYS: &str = "/api/openapi.json says what goes in";

/// What a handler gives.
pub(super) type Answer<T> = std::result::Result<T, Refusal>;

/// Runs what may wait for a disk, a build or a database elsewhere than on a runtime thread. Places in a failure are told
/// from the root on.
pub(super) async fn blocking<T: Send + 'static>(
    api: &Arc<Api>,
    work: impl FnOnce(&Host) -> Result<T> + Send + 'static,
) -> Answer<T> {
    let host = api.host.clone();
    match tokio::task::spawn_blocking(move || work(&host).map_err(|e| host.paths().conceal(e))).await {
        Ok(done) => Ok(done?),
        Err(_) => Err(Error::internal("the host failed while answering").hint("see the host's log").into()),
    }
}

/// Parameters of the path.
pub(super) struct At<T>(pub(super) T);

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for At<T> {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Answer<Self> {
        match Path::<T>::from_request_parts(parts, state).await {
            Ok(Path(value)) => Ok(At(value)),
            Err(e) => Err(bad_path(&e).into()),
        }
    }
}

fn bad_path(e: &PathRejection) -> Error {
    Error::invalid(format!("the address cannot be read: {}", lowered(&e.body_text()))).hint(SAYS)
}

/// The query, by its fields; one that is not known is refused.
pub(super) struct Asked<T>(pub(super) T);

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for Asked<T> {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Answer<Self> {
        match Query::<T>::try_from_uri(&parts.uri) {
            Ok(Query(value)) => Ok(Asked(value)),
            Err(e) => {
                let text = e.body_text();
                let what = text.strip_prefix("Failed to deserialize query string: ").unwrap_or(&text);
                Err(Error::invalid(format!("the query does not fit: {}", lowered(what))).hint(SAYS).into())
            }
        }
    }
}

/// A JSON body of this type; a field that is not known is refused. Nothing at all is the empty object.
pub(super) struct Sent<T>(pub(super) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Sent<T> {
    type Rejection = Refusal;

    async fn from_request(request: Request, _: &S) -> Answer<Self> {
        Ok(Sent(read(&reply::read_body(request.into_body()).await?)?))
    }
}

/// As [`Sent`], for a body that holds a secret: see [`read_secret`].
pub(super) struct SecretSent<T>(pub(super) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for SecretSent<T> {
    type Rejection = Refusal;

    async fn from_request(request: Request, _: &S) -> Answer<Self> {
        Ok(SecretSent(read_secret(&reply::read_body(request.into_body()).await?)?))
    }
}

/// A JSON text as a value of this type.
///
/// # Errors
/// `invalid_arguments` with the place: no JSON, a key twice, a number beyond 64 bits, a field that is not known or does not fit.
pub(super) fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T> {
    fitted(object(body).map_err(|e| Error::from(e).context("the body"))?, Some)
}

/// As [`read`], for a body that holds a secret: the failure names the place and quotes nothing that was sent.
///
/// # Errors
/// As [`read`].
pub(super) fn read_secret<T: DeserializeOwned>(body: &[u8]) -> Result<T> {
    let value = object(body).map_err(|e| Error::invalid(format!("the body is not valid JSON at {}", e.position())))?;
    let names_fields = ["unknown field", "missing field", "duplicate field"];
    fitted(value, |told| names_fields.iter().any(|start| told.starts_with(start)).then_some(told))
}

/// A value as one of this type; `shown` says what of the reason may be told.
fn fitted<T: DeserializeOwned>(value: Value, shown: impl Fn(String) -> Option<String>) -> Result<T> {
    // A list would do as an object whose fields are in order, and says nothing about what it means.
    if !value.is_object() {
        return Err(Error::invalid("the body is no JSON object").hint(SAYS));
    }
    serde_path_to_error::deserialize(value).map_err(|e| {
        let path = e.path().to_string();
        let place = if path == "." { String::new() } else { format!(" at `{path}`") };
        let told = shown(e.into_inner().to_string()).map(|told| format!(": {}", lowered(&told)));
        Error::invalid(format!("the body does not fit{place}{}", told.unwrap_or_default())).hint(SAYS)
    })
}

/// A JSON text; nothing at all is the empty object.
fn object(body: &[u8]) -> Result<Value, json::ParseError> {
    if body.iter().all(u8::is_ascii_whitespace) {
        return Ok(Value::Object(Map::new()));
    }
    json::parse_untrusted_bytes(body)
}

/// A JSON text.
///
/// # Errors
/// `invalid_arguments` with the place.
pub(super) fn parse(body: &[u8]) -> Result<Value> {
    json::parse_untrusted_bytes(body).map_err(|e| Error::from(e).context("the body"))
}

fn lowered(text: &str) -> String {
    let mut letters = text.trim_end_matches('.').chars();
    letters.next().map_or_else(String::new, |first| first.to_lowercase().chain(letters).collect())
}

/// A moment in milliseconds since 1970-01-01 UTC, as RFC 3339 in UTC.
pub(super) fn utc(unix_ms: i64) -> String {
    jiff::Timestamp::from_millisecond(unix_ms).unwrap_or_default().to_string()
}

/// The refusal of one more of what there may be only so many of.
pub(super) fn rate_limited(what: &str) -> Refusal {
    Error::new(Kind::RateLimited, format!("too many {what} at once")).hint("close one, or try again later").into()
}

/// A value as JSON text; `what` names it in a failure. Large ones are written where waiting does no harm.
///
/// # Errors
/// `internal` for a value that JSON cannot hold.
pub(super) fn encoded(what: &str, value: &impl Serialize) -> Result<Vec<u8>> {
    serde_json::to_vec(value).map_err(|e| Error::internal(format!("{what} cannot be written as JSON: {e}")))
}

/// A JSON text that was made already.
pub(super) fn json_text(bytes: impl Into<Bytes>) -> Response {
    let mut response = Response::new(Body::from(bytes.into()));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// A header that stands once, as text.
pub(super) fn header_text(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    gate::text(headers, name)
}

/// The version behind an `If-Match` or in an `ETag`: without quotes and without the mark of a weak one.
pub(super) fn version_of(tag: &str) -> &str {
    let tag = tag.trim();
    let tag = tag.strip_prefix("W/").unwrap_or(tag);
    tag.strip_prefix('"').and_then(|tag| tag.strip_suffix('"')).unwrap_or(tag)
}

/// The same value with its version as `ETag`.
pub(super) fn tagged(version: &str, value: impl IntoResponse) -> Response {
    let mut response = value.into_response();
    if let Ok(tag) = HeaderValue::try_from(format!("\"{version}\"")) {
        response.headers_mut().insert(header::ETAG, tag);
    }
    response
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(deny_unknown_fields)]
    struct Body {
        name: String,
        #[serde(default)]
        count: Option<i64>,
    }

    #[test]
    fn a_body_is_read_strictly_and_says_where_it_does_not_fit() {
        assert_eq!(read::<Body>(br#"{"name": "a"}"#).unwrap(), Body { name: "a".into(), count: None });
        for (text, told) in [
            (r#"{"name": "a", "nmae": 1}"#, "unknown field `nmae`, expected `name` or `count`"),
            (r#"{"name": 5}"#, "at `name`: invalid type"),
            (r#"{"name": "a", "name": "b"}"#, "twice"),
            (r#"{"name": "a", "count": 99999999999999999999}"#, "64 bits"),
            (r#"{"name": "a""#, "too early"),
            ("", "missing field `name`"),
            (" \n", "missing field `name`"),
            ("[]", "no JSON object"),
            (r#"["a", 1]"#, "no JSON object"),
        ] {
            let e = read::<Body>(text.as_bytes()).unwrap_err();
            assert_eq!(e.kind(), Kind::InvalidArguments);
            assert!(e.to_string().contains(told), "{text}: {e}");
        }
        assert!(read::<Body>(b"\xff").unwrap_err().message().contains("UTF-8"));
    }

    #[test]
    fn what_does_not_fit_of_a_secret_is_named_and_never_quoted() {
        for (text, told) in [
            (r#"{"name": 77123}"#, "the body does not fit at `name`"),
            (r#"{"name": "a", "count": "s3cret"}"#, "the body does not fit at `count`"),
            (r#"{"name": "a", "nmae": "s3cret"}"#, "unknown field `nmae`, expected `name` or `count`"),
            (r#"{"count": 1}"#, "missing field `name`"),
            ("\"s3cret\"", "no JSON object"),
            (r#"{"name": "s3cret"#, "not valid JSON at line 1"),
            (r#"{"name": s3cret}"#, "not valid JSON at line 1"),
        ] {
            let e = read_secret::<Body>(text.as_bytes()).unwrap_err();
            let said = e.to_string();
            assert!(e.kind() == Kind::InvalidArguments && said.contains(told), "{text}: {e}");
            assert!(!said.contains("s3cret") && !said.contains("77123"), "{e}");
        }
        assert_eq!(read_secret::<Body>(br#"{"name": "a"}"#).unwrap().name, "a");
    }

    #[test]
    fn a_version_is_what_stands_in_a_tag() {
        for (tag, version) in [("\"ab\"", "ab"), ("W/\"ab\"", "ab"), ("ab", "ab"), (" \"ab\" ", "ab"), ("\"", "\"")] {
            assert_eq!(version_of(tag), version);
        }
    }
}
