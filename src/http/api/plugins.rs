//! `/api/plugins`: what there is, what is live of it, and switching and loading it.

use super::Api;
use super::answer::{Answer, At};
use super::table::{Op, get};
use crate::plugin::status::Status;
use axum::Json;
use axum::extract::State;
use schemars::JsonSchema;
use serde::Serialize;
use std::sync::Arc;

pub(super) fn ops() -> Vec<Op> {
    vec![
        get("/api/plugins", "Every plugin with its state, by name", list).gives::<Plugins>(),
        get("/api/plugins/{name}", "The state of one plugin", one).gives::<Status>(),
    ]
}

#[derive(Serialize, JsonSchema)]
struct Plugins {
    /// The plugins.
    plugins: Vec<Status>,
    /// What was not taken as a plugin, or takes another's place.
    notices: Vec<Notice>,
}

/// Something that a person should know about the folders of plugins.
#[derive(Serialize, JsonSchema)]
struct Notice {
    /// What it is about: a plugin's name, or a file relative to the root.
    subject: String,
    /// What happened and what to do.
    message: String,
}

async fn list(State(api): State<Arc<Api>>) -> Json<Plugins> {
    let plugins = api.host.plugins();
    let notices = plugins.notices().into_iter();
    Json(Plugins {
        plugins: plugins.statuses(),
        notices: notices.map(|notice| Notice { subject: notice.subject, message: notice.message }).collect(),
    })
}

async fn one(State(api): State<Arc<Api>>, At(name): At<String>) -> Answer<Json<Status>> {
    Ok(Json(known(&api, &name)?))
}

/// The state of a plugin, or the failure with names that are close.
pub(super) fn known(api: &Api, name: &str) -> Answer<Status> {
    let plugins = api.host.plugins();
    plugins.status(name).ok_or_else(|| plugins.unknown(name).into())
}
