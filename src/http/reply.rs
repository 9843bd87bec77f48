//! Failures as HTTP: the status of a kind, and the body that says what went wrong. And the body of a request, read within limits.

use super::limit;
use crate::base::error::{Error, Kind};
use axum::Json;
use axum::body::{Body, HttpBody};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use serde_json::{Map, Value, json};
use std::time::Duration;

/// How long a body may take to arrive.
const BODY_TIME: Duration = Duration::from_secs(60);

/// A request that failed: why, and what else the answer says.
pub(super) struct Refusal {
    error: Error,
    status: StatusCode,
    more: Map<String, Value>,
}

impl Refusal {
    /// The body of the answer.
    pub(super) fn body(&self) -> Value {
        let error = &self.error;
        let mut told = json!({ "code": error.code(), "message": error.message(), "hint": error.hint_text() });
        if let Some(action) = error.user_action() {
            told["user_action"] = action.into();
        }
        if let Some(ms) = error.retry_after_ms() {
            told["retry_after_ms"] = ms.into();
        }
        let mut body = Map::from_iter([("ok".to_owned(), false.into()), ("error".to_owned(), told)]);
        body.extend(self.more.clone());
        Value::Object(body)
    }

    /// Adds a field to the body.
    pub(super) fn with(mut self, key: &str, value: Value) -> Refusal {
        self.more.insert(key.to_owned(), value);
        self
    }

    /// Answers with another status than that of the failure's kind.
    pub(super) fn status(mut self, status: StatusCode) -> Refusal {
        self.status = status;
        self
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Refusal {
        Refusal { status: status(error.kind()), error, more: Map::new() }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let mut response = (self.status, Json(self.body())).into_response();
        wait(&self.error, response.headers_mut());
        response
    }
}

/// The answer to a request that failed.
pub(super) fn failure(error: &Error) -> Response {
    Refusal::from(error.clone()).into_response()
}

/// Says how long to wait, where the failure does: in whole seconds, and never sooner than it is of use.
fn wait(error: &Error, headers: &mut HeaderMap) {
    if let Some(ms) = error.retry_after_ms() {
        headers.insert(header::RETRY_AFTER, HeaderValue::from(ms.div_ceil(1000)));
    }
}

/// The whole body of a request that the gate has let through, which has arrived and fits already.
pub(super) async fn read_body(body: Body) -> Result<Bytes, Refusal> {
    read_within(body, limit::LARGEST).await
}

/// The whole body of a request, or the answer to one of more than `most` bytes or that is too slow.
pub(super) async fn read_within(body: Body, most: usize) -> Result<Bytes, Refusal> {
    // One that says beforehand that it is too large is not waited for.
    if HttpBody::size_hint(&body).lower() > most as u64 {
        return Err(too_large(most).into());
    }
    match tokio::time::timeout(BODY_TIME, axum::body::to_bytes(body, most)).await {
        Ok(Ok(body)) => Ok(body),
        Ok(Err(_)) => Err(too_large(most).into()),
        Err(_) => {
            let seconds = BODY_TIME.as_secs();
            let error = Error::new(Kind::Timeout, format!("the body did not arrive within {seconds} seconds"));
            Err(Refusal::from(error.hint("send it again")).status(StatusCode::REQUEST_TIMEOUT))
        }
    }
}

fn too_large(most: usize) -> Error {
    let most = if most < 1 << 20 { format!("{} KiB", most >> 10) } else { format!("{} MiB", most >> 20) };
    Error::new(Kind::TooLarge, format!("the body is larger than {most} or broke off"))
        .hint(format!("send at most {most}, and all of it"))
}

/// The status that belongs to a failure.
fn status(kind: Kind) -> StatusCode {
    match kind {
        Kind::InvalidArguments | Kind::BadImage => StatusCode::BAD_REQUEST,
        Kind::NotFound => StatusCode::NOT_FOUND,
        Kind::Conflict | Kind::InboxRefused | Kind::ChatBusy | Kind::OutcomeUnknown => StatusCode::CONFLICT,
        Kind::PermissionDenied | Kind::Disabled | Kind::ChatSealed | Kind::ApprovalDeclined => StatusCode::FORBIDDEN,
        Kind::ApprovalExpired => StatusCode::GONE,
        Kind::UpstreamAuth | Kind::UpstreamUnavailable => StatusCode::BAD_GATEWAY,
        Kind::RateLimited => StatusCode::TOO_MANY_REQUESTS,
        // It is the host that took too long; to the words for a client that did, some clients answer by sending again.
        Kind::Timeout => StatusCode::GATEWAY_TIMEOUT,
        Kind::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        Kind::Cancelled | Kind::Quota | Kind::Internal => StatusCode::INTERNAL_SERVER_ERROR,
    }
}
