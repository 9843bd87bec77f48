//! `/api/plugins/{name}/source` and its like: a plugin's files as an editor reads, checks and saves them.

use super::Api;
use super::answer::{Answer, Asked, At, Refusal, Sent, blocking, tagged};
use super::table::{Op, get, post, put};
use crate::base::error::{Error, Kind};
use crate::plugin::edit::{Draft, FileList, Saved, Source};
use crate::plugin::status::Status;
use crate::script::diagnostic::Diagnostic;
use axum::Json;
use axum::extract::State;
use axum::response::Response;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::Arc;

pub(super) fn ops() -> Vec<Op> {
    vec![
        get("/api/plugins/{name}/files", "The texts of a plugin", files).gives::<FileList>(),
        get("/api/plugins/{name}/source", "The text of a file, with its version as ETag", source)
            .asks::<SourceAsked>()
            .gives::<Source>(),
        put("/api/plugins/{name}/source", "Save a text over the version that was edited, and load the plugin", save)
            .takes::<SaveSent>()
            .gives::<SavedNow>(),
        post("/api/plugins/{name}/check", "What a save of a text would find; nothing is written", check)
            .takes::<CheckSent>()
            .gives::<Findings>(),
    ]
}

async fn files(State(api): State<Arc<Api>>, At(name): At<String>) -> Answer<Json<FileList>> {
    Ok(Json(blocking(&api, move |host| host.plugins().files(&name)).await?))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SourceAsked {
    /// Which file; a plugin of one file needs none.
    path: Option<String>,
}

async fn source(
    State(api): State<Arc<Api>>,
    At(name): At<String>,
    Asked(asked): Asked<SourceAsked>,
) -> Answer<Response> {
    let source = blocking(&api, move |host| host.plugins().source(&name, asked.path.as_deref())).await?;
    Ok(tagged(&source.version.clone(), Json(source)))
}

/// A text to save.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SaveSent {
    /// Which file; a plugin of one file needs none.
    path: Option<String>,
    /// All of it.
    text: String,
    /// The version that was edited; nothing for a file that is not there yet.
    base: Option<String>,
}

/// A text that was saved.
#[derive(Serialize, JsonSchema)]
struct SavedNow {
    /// Its version now.
    version: String,
    /// The plugin after it was loaded again: a text that does not load is saved all the same.
    plugin: Status,
}

async fn save(State(api): State<Arc<Api>>, At(name): At<String>, Sent(sent): Sent<SaveSent>) -> Answer<Json<SavedNow>> {
    let draft = Draft { path: sent.path, text: sent.text };
    match blocking(&api, move |host| host.plugins().save(&name, &draft, sent.base.as_deref())).await? {
        Saved::Written { version, status } => Ok(Json(SavedNow { version, plugin: *status })),
        Saved::Other(current) => Err(changed(current.as_deref())),
    }
}

/// Somebody else saved in between: what is there now comes along, so that nobody's work is lost.
fn changed(current: Option<&Source>) -> Refusal {
    let told = match current {
        Some(_) => "the file holds another version than the one that was edited",
        None => "the file is gone",
    };
    let current =
        current.map_or(Value::Null, |now| json!({ "path": now.path, "text": now.text, "version": now.version }));
    let error = Error::new(Kind::Conflict, told).hint("look at what is there now, then save over that version");
    Refusal::from(error).with("current", current)
}

/// A text to look at.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CheckSent {
    /// Which file; a plugin of one file needs none.
    path: Option<String>,
    /// All of it.
    text: String,
}

/// What was found.
#[derive(Serialize, JsonSchema)]
struct Findings {
    /// Errors and warnings, with their places.
    diagnostics: Vec<Diagnostic>,
}

async fn check(
    State(api): State<Arc<Api>>,
    At(name): At<String>,
    Sent(sent): Sent<CheckSent>,
) -> Answer<Json<Findings>> {
    let draft = Draft { path: sent.path, text: sent.text };
    let diagnostics = blocking(&api, move |host| host.plugins().check_text(&name, draft)).await?;
    Ok(Json(Findings { diagnostics }))
}
