//! `/api/plugins/{name}/grants`: what a plugin may do, in words, and its owner's decisions about it.

use super::Api;
use super::answer::{Answer, At, Sent, blocking};
use super::table::{Op, get, post};
use crate::plugin::consent::{Consent, Decision};
use axum::Json;
use axum::extract::State;
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;

pub(super) fn ops() -> Vec<Op> {
    vec![
        get("/api/plugins/{name}/grants", "What a plugin may do, and what it waits for", show).gives::<Consent>(),
        post("/api/plugins/{name}/grants", "Let a plugin do something", grant).takes::<GrantSent>().gives::<Consent>(),
        post("/api/plugins/{name}/revoke", "Take a permission away from a plugin", revoke)
            .takes::<GrantSent>()
            .gives::<Consent>(),
    ]
}

/// One decision.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct GrantSent {
    /// `PERMISSION`, `PERMISSION=name,..` or `folder:name=/path`; to take a folder back, `folder:name`.
    grant: String,
}

async fn show(State(api): State<Arc<Api>>, At(name): At<String>) -> Answer<Json<Consent>> {
    Ok(Json(blocking(&api, move |host| host.plugins().consent(&name)).await?))
}

async fn grant(
    State(api): State<Arc<Api>>,
    At(name): At<String>,
    Sent(sent): Sent<GrantSent>,
) -> Answer<Json<Consent>> {
    Ok(Json(blocking(&api, move |host| host.plugins().decide(&name, &sent.grant, Decision::Grant)).await?))
}

async fn revoke(
    State(api): State<Arc<Api>>,
    At(name): At<String>,
    Sent(sent): Sent<GrantSent>,
) -> Answer<Json<Consent>> {
    Ok(Json(blocking(&api, move |host| host.plugins().decide(&name, &sent.grant, Decision::Revoke)).await?))
}
