//! Failures as HTTP: the status of a kind, and the body that says what went wrong. And the body of a request, read within limits.

use super::limit;
use crate::base::error::{Error, Kind};
use axum::body::{Body, HttpBody};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use std::time::Duration;

/// How long a body may take to arrive.
const BODY_TIME: Duration = Duration::from_secs(60);

/// The whole body of a request that the gate has let through, which has arrived and fits already.
pub(super) async fn read_body(body: Body) -> Result<Bytes, Response> {
    read_within(body, limit::LARGEST).await
}

/// The whole body of a request, or the answer to one of more than `most` bytes or that is too slow.
pub(super) async fn read_within(body: Body, most: usize) -> Result<Bytes, Response> {
    // One that says beforehand that it is too large is not waited for.
    if HttpBody::size_hint(&body).lower() > most as u64 {
        return Err(failure(&too_large(most)));
    }
    match tokio::time::timeout(BODY_TIME, axum::body::to_bytes(body, most)).await {
        Ok(Ok(body)) => Ok(body),
        Ok(Err(_)) => Err(failure(&too_large(most))),
        Err(_) => Err(failure(&Error::new(Kind::Timeout, "the body did not arrive in time"))),
    }
}

fn too_large(most: usize) -> Error {
    let most = if most < 1 << 20 { format!("{} KiB", most >> 10) } else { format!("{} MiB", most >> 20) };
    Error::new(Kind::TooLarge, format!("the body is larger than {most} or broke off"))
}

/// The answer to a request that failed.
pub(super) fn failure(error: &Error) -> Response {
    let mut response = (status(error.kind()), body(error)).into_response();
    wait(error, response.headers_mut());
    response
}

/// Says how long to wait, where the failure does: in whole seconds, and never sooner than it is of use.
pub(super) fn wait(error: &Error, headers: &mut HeaderMap) {
    if let Some(ms) = error.retry_after_ms() {
        headers.insert(header::RETRY_AFTER, HeaderValue::from(ms.div_ceil(1000)));
    }
}

/// The body of an answer to a request that failed.
pub(super) fn body(error: &Error) -> impl IntoResponse + use<> {
    axum::Json(value(error))
}

/// As [`body`], for those who add something.
pub(super) fn value(error: &Error) -> serde_json::Value {
    serde_json::json!({
        "ok": false,
        "error": { "code": error.code(), "message": error.message(), "hint": error.hint_text() },
    })
}

/// The status that belongs to a failure.
pub(super) fn status(kind: Kind) -> StatusCode {
    match kind {
        Kind::InvalidArguments | Kind::BadImage => StatusCode::BAD_REQUEST,
        Kind::NotFound => StatusCode::NOT_FOUND,
        Kind::Conflict | Kind::InboxRefused | Kind::ChatBusy | Kind::OutcomeUnknown => StatusCode::CONFLICT,
        Kind::PermissionDenied | Kind::Disabled | Kind::ChatSealed | Kind::ApprovalDeclined => StatusCode::FORBIDDEN,
        Kind::ApprovalExpired => StatusCode::GONE,
        Kind::UpstreamAuth | Kind::UpstreamUnavailable => StatusCode::BAD_GATEWAY,
        Kind::RateLimited => StatusCode::TOO_MANY_REQUESTS,
        Kind::Timeout => StatusCode::REQUEST_TIMEOUT,
        Kind::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        Kind::Cancelled | Kind::Quota | Kind::Internal => StatusCode::INTERNAL_SERVER_ERROR,
    }
}
