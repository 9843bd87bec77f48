//! Plugins that come and go: installed from a file, copied, given away as a file, removed and listed while they can come back.

use super::Api;
use super::answer::{Answer, Asked, At, Sent, blocking};
use super::table::{Content, Op, delete, get, post, schema_of};
use crate::base::error::Result;
use crate::http::plugin::disposition;
use crate::http::reply::read_within;
use crate::plugin::install::{Arrival, Existing, Source, Terms};
use crate::plugin::package::{MAX_PACKED, Package};
use crate::plugin::removal::{Data, Removed};
use crate::plugin::status::Status;
use crate::service::permissions::Permission;
use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

pub(super) fn ops() -> Vec<Op> {
    vec![
        post("/api/install", "Install a plugin from a script or a zip, or look at what it would bring", install)
            .asks::<InstallAsked>()
            .body(Content::Bytes("application/octet-stream"))
            .answers(200, Content::Json(schema_of::<Arrival>()))
            .answers(201, Content::Json(schema_of::<Status>())),
        post(
            "/api/plugins/{name}/copy",
            "Make a copy that can be changed; of a shipped plugin, one that takes its place",
            copy,
        )
        .takes::<CopySent>()
        .answers(201, Content::Json(schema_of::<Status>())),
        get("/api/plugins/{name}/download", "A plugin as one file: the script, or a zip of the folder", download)
            .answers(200, Content::Bytes("text/plain"))
            .answers(200, Content::Bytes("application/zip")),
        delete("/api/plugins/{name}", "Remove a plugin; for 30 days it can be brought back by a rollback", uninstall)
            .asks::<UninstallAsked>()
            .gives::<Removed>(),
        get("/api/removed", "The plugins that were removed and can be brought back, by name", removed).gives::<Gone>(),
    ]
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct InstallAsked {
    /// What the file is called: its ending says what it is, and a script's name is its plugin's.
    file: String,
    /// Put it in the place of an installed plugin of that name; its settings and state stay.
    #[serde(default)]
    force: bool,
    /// What it shall not do from its first moment on, also of what it would hold without a grant: the words of permissions, with
    /// commas between.
    #[serde(default)]
    deny: String,
    /// Only tell what it would bring.
    #[serde(default)]
    look: bool,
}

async fn install(State(api): State<Arc<Api>>, Asked(asked): Asked<InstallAsked>, body: Body) -> Answer<Response> {
    let bytes = Vec::from(read_within(body, MAX_PACKED).await?);
    if asked.look {
        let arrival: Arrival =
            blocking(&api, move |host| host.plugins().look_at(&Package::of_bytes(&asked.file, bytes)?)).await?;
        return Ok(Json(arrival).into_response());
    }
    let words = asked.deny.split(',').map(str::trim).filter(|word| !word.is_empty());
    let denied = words.map(Permission::read).collect::<Result<_>>()?;
    let existing = if asked.force { Existing::Replace } else { Existing::Keep };
    let terms = Terms { existing, denied };
    let status = blocking(&api, move |host| {
        let package = Package::of_bytes(&asked.file, bytes)?;
        host.plugins().install(&package, &Source { from: asked.file, method: "upload" }, &terms)
    })
    .await?;
    Ok((StatusCode::CREATED, Json(status)).into_response())
}

/// A copy to make.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CopySent {
    /// The copy's name; the same where there is none, which only a shipped plugin's copy can have.
    name: Option<String>,
}

async fn copy(
    State(api): State<Arc<Api>>,
    At(name): At<String>,
    Sent(sent): Sent<CopySent>,
) -> Answer<(StatusCode, Json<Status>)> {
    let status = blocking(&api, move |host| host.plugins().copy(&name, sent.name.as_deref())).await?;
    Ok((StatusCode::CREATED, Json(status)))
}

async fn download(State(api): State<Arc<Api>>, At(name): At<String>) -> Answer<Response> {
    let file = blocking(&api, move |host| host.plugins().download(&name)).await?;
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(file.media_type)),
        (
            header::CONTENT_DISPOSITION,
            HeaderValue::try_from(disposition(&file.file_name)).unwrap_or(HeaderValue::from_static("attachment")),
        ),
    ];
    Ok((headers, file.bytes).into_response())
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct UninstallAsked {
    /// Leave its settings, state and grants where they are.
    #[serde(default)]
    keep_data: bool,
}

async fn uninstall(
    State(api): State<Arc<Api>>,
    At(name): At<String>,
    Asked(asked): Asked<UninstallAsked>,
) -> Answer<Json<Removed>> {
    let data = if asked.keep_data { Data::Keep } else { Data::Remove };
    Ok(Json(blocking(&api, move |host| host.plugins().uninstall(&name, data)).await?))
}

/// What can be brought back.
#[derive(Serialize, JsonSchema)]
struct Gone {
    /// The plugins, by name.
    removed: Vec<Removed>,
}

async fn removed(State(api): State<Arc<Api>>) -> Answer<Json<Gone>> {
    Ok(Json(Gone { removed: blocking(&api, |host| Ok(host.plugins().removed())).await? }))
}
