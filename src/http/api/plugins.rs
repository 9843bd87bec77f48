//! `/api/plugins`: what there is, what is live of it; making, switching and loading it, and going back to earlier versions.

use super::Api;
use super::answer::{Answer, At, Sent, blocking, encoded, json_text};
use super::table::{Content, Op, get, post, schema_of};
use crate::app::Host;
use crate::base::error::Result;
use crate::base::paths::valid_plugin_name;
use crate::plugin::scaffold::{Form, Kind};
use crate::plugin::set::Switch;
use crate::plugin::source::{Entry, KeptFile};
use crate::plugin::status::Status;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

pub(super) fn ops() -> Vec<Op> {
    vec![
        get("/api/plugins", "Every plugin with its state, by name", list).gives::<Plugins>(),
        post("/api/plugins", "Write a new plugin that works, with a test beside it", create)
            .takes::<CreateSent>()
            .answers(201, Content::Json(schema_of::<Status>())),
        get("/api/plugins/{name}", "The state of one plugin", one).gives::<Status>(),
        post("/api/plugins/{name}/enable", "Switch a plugin on", enable).gives::<Status>(),
        post("/api/plugins/{name}/disable", "Switch a plugin off; its files, settings and state stay", disable)
            .gives::<Status>(),
        post("/api/plugins/{name}/reload", "Load a plugin's files again now", reload).gives::<Status>(),
        get("/api/plugins/{name}/history", "The versions of a plugin that were kept, newest first", history)
            .gives::<Versions>(),
        get(
            "/api/plugins/{name}/history/{generation}",
            "The files of a version, and what going back to it would change",
            version,
        )
        .gives::<Version>(),
        post(
            "/api/plugins/{name}/rollback",
            "Bring an earlier version back into the files, or a plugin that was removed",
            rollback,
        )
        .takes::<RollbackSent>()
        .gives::<Status>(),
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

async fn list(State(api): State<Arc<Api>>) -> Answer<Response> {
    // A workshop may have a thousand, and a swap may hold them for a moment.
    let listed = blocking(&api, |host| {
        let plugins = host.plugins();
        let notices = plugins.notices().into_iter();
        let notices = notices.map(|notice| Notice { subject: notice.subject, message: notice.message }).collect();
        encoded("the list", &Plugins { plugins: plugins.statuses(), notices })
    });
    Ok(json_text(listed.await?))
}

async fn one(State(api): State<Arc<Api>>, At(name): At<String>) -> Answer<Json<Status>> {
    Ok(Json(blocking(&api, move |host| known(host, &name)).await?))
}

/// The state of a plugin, or the failure with names that are close.
fn known(host: &Host, name: &str) -> Result<Status> {
    host.plugins().status(name).ok_or_else(|| host.plugins().unknown(name))
}

/// A plugin to write.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CreateSent {
    /// Its name: letters, digits, `_` and `-`.
    name: String,
    /// One file, or a folder with a manifest.
    #[serde(default)]
    kind: KindSent,
    /// How its file says what its tools are.
    #[serde(default)]
    form: FormSent,
}

#[derive(Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum KindSent {
    /// One file in `user/tools/`.
    #[default]
    Tool,
    /// A folder in `user/plugins/`.
    Plugin,
}

#[derive(Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum FormSent {
    /// A comment above each function.
    #[default]
    Documented,
    /// `TOOLS` and `execute`.
    Explicit,
}

async fn create(State(api): State<Arc<Api>>, Sent(sent): Sent<CreateSent>) -> Answer<(StatusCode, Json<Status>)> {
    let kind = match sent.kind {
        KindSent::Tool => Kind::SingleFile,
        KindSent::Plugin => Kind::Folder,
    };
    let form = match sent.form {
        FormSent::Documented => Form::Documented,
        FormSent::Explicit => Form::Explicit,
    };
    let status = blocking(&api, move |host| host.plugins().create(&sent.name, form, kind)).await?;
    Ok((StatusCode::CREATED, Json(status)))
}

async fn enable(State(api): State<Arc<Api>>, At(name): At<String>) -> Answer<Json<Status>> {
    Ok(Json(blocking(&api, move |host| host.plugins().switch(&name, Switch::On)).await?))
}

async fn disable(State(api): State<Arc<Api>>, At(name): At<String>) -> Answer<Json<Status>> {
    Ok(Json(blocking(&api, move |host| host.plugins().switch(&name, Switch::Off)).await?))
}

async fn reload(State(api): State<Arc<Api>>, At(name): At<String>) -> Answer<Json<Status>> {
    Ok(Json(blocking(&api, move |host| host.plugins().reload(&name)).await?))
}

/// What was kept of a plugin.
#[derive(Serialize, JsonSchema)]
struct Versions {
    /// The versions, newest first.
    entries: Vec<Entry>,
    /// The generation that answers; nothing where none does.
    live: Option<u64>,
}

async fn history(State(api): State<Arc<Api>>, At(name): At<String>) -> Answer<Json<Versions>> {
    let versions = blocking(&api, move |host| {
        valid_plugin_name(&name).map_err(|_| host.plugins().unknown(&name))?;
        let entries = host.history().list(&name);
        // A plugin that is gone may still have a history.
        if entries.is_empty() {
            known(host, &name)?;
        }
        Ok(Versions { entries, live: host.plugins().live(&name).map(|live| live.number) })
    });
    Ok(Json(versions.await?))
}

/// A version that was kept.
#[derive(Serialize, JsonSchema)]
struct Version {
    /// Its number.
    generation: u64,
    /// Its files.
    files: Vec<KeptFile>,
}

async fn version(State(api): State<Arc<Api>>, At((name, generation)): At<(String, u64)>) -> Answer<Json<Version>> {
    let files = blocking(&api, move |host| host.plugins().kept_files(host.history(), &name, generation)).await?;
    Ok(Json(Version { generation, files }))
}

/// What to go back to. Nothing at all is a version to choose, or the plugin itself where it was removed.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RollbackSent {
    /// Its number; the last good one that differs from the files where there is none.
    generation: Option<u64>,
}

async fn rollback(
    State(api): State<Arc<Api>>,
    At(name): At<String>,
    Sent(sent): Sent<RollbackSent>,
) -> Answer<Json<Status>> {
    let back = blocking(&api, move |host| host.plugins().go_back(host.history(), &name, sent.generation));
    Ok(Json(back.await?.status))
}
