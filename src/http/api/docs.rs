//! `/api/docs` and `/api/host`: what scripts can call, for completion and hover, and what this host is.

use super::Api;
use super::answer::{Answer, blocking, encoded, json_text};
use super::table::{Content, Op, get, schema_of};
use axum::Json;
use axum::extract::State;
use axum::response::Response;
use bytes::Bytes;
use schemars::JsonSchema;
use serde::Serialize;
use std::sync::{Arc, OnceLock};

pub(super) fn ops() -> Vec<Op> {
    vec![
        get("/api/docs", "Everything that a script can call, with its comments", docs)
            .answers(200, Content::Json(schema_of::<crate::docs::Reference>())),
        get("/api/host", "What this host is, and how much it has done", host).gives::<HostFacts>(),
    ]
}

/// The reference of a host never changes while it runs.
#[derive(Default)]
pub(super) struct Reference(OnceLock<Bytes>);

async fn docs(State(api): State<Arc<Api>>) -> Answer<Response> {
    if let Some(made) = api.reference.0.get() {
        return Ok(json_text(made.clone()));
    }
    let made: Bytes = blocking(&api, |host| {
        let (engine, modules) = host.engine();
        encoded("the reference", &crate::docs::reference(engine, modules))
    })
    .await?
    .into();
    Ok(json_text(api.reference.0.get_or_init(|| made).clone()))
}

#[derive(Serialize, JsonSchema)]
struct HostFacts {
    /// Always `lapidary`.
    name: &'static str,
    /// The version of the program.
    version: &'static str,
    /// How many plugins there are.
    plugins: usize,
    /// How many tools can be called.
    tools: usize,
    /// When the server started, RFC 3339 in UTC.
    started_at: String,
    /// Calls since the host started.
    calls: u64,
    /// Calls that failed.
    failures: u64,
}

async fn host(State(api): State<Arc<Api>>) -> Answer<Json<HostFacts>> {
    let started_at = api.started_at.clone();
    let facts = blocking(&api, move |host| {
        let counted = host.counted();
        Ok(HostFacts {
            name: "lapidary",
            version: env!("CARGO_PKG_VERSION"),
            plugins: host.plugins().names().len(),
            tools: host.dispatcher().snapshot().len(),
            started_at,
            calls: counted.calls,
            failures: counted.failures,
        })
    });
    Ok(Json(facts.await?))
}
