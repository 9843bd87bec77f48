//! `/api/journal`: the calls that were made, whoever made them, and one of them again on what is live now.

use super::Api;
use super::answer::{Answer, Asked, At, blocking, encoded, json_text};
use super::events::{frame, written};
use super::run::{self, Line, Ran, Started};
use super::table::{Content, Op, delete, get, post, schema_of};
use crate::app::{Again, Change, Host, Replay};
use crate::base::error::{Error, Result};
use crate::http::caller::Caller;
use crate::service::journal::{Entry, Filter, MAX_PAGE, Page};
use crate::tool::dispatch::Outcome;
use crate::tool::running::Progress;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use axum::{Extension, Json};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

pub(super) fn ops() -> Vec<Op> {
    vec![
        get("/api/journal", "The calls that were made, newest first", list).asks::<JournalAsked>().gives::<Page>(),
        delete("/api/journal", "Delete all calls of the journal", clear).gives::<Cleared>(),
        get("/api/journal/{id}", "Everything that is kept of a call", one).gives::<Entry>(),
        post("/api/journal/{id}/replay", "Make a call again, on what is live now, and say what differs", replay)
            .hears(&[("Accept", "`text/event-stream` for a stream of events, of which the last is `result`.")])
            .answers(200, Content::Json(schema_of::<Replayed<'static>>()))
            .answers(200, Content::Events(schema_of::<ReplayEvent>())),
    ]
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct JournalAsked {
    /// Only calls of this tool.
    tool: Option<String>,
    /// Only calls of this plugin's tools.
    plugin: Option<String>,
    /// Only calls that failed.
    #[serde(default)]
    failed: bool,
    /// Only calls through this door: `cli`, `http`, `mcp`, `library`, or `tool` for those that tools made.
    door: Option<String>,
    /// Only calls before the one with this id: the `next` of the page before.
    before: Option<String>,
    /// At most so many, from 1 to 500; 50 unless given.
    limit: Option<usize>,
}

async fn list(State(api): State<Arc<Api>>, Asked(asked): Asked<JournalAsked>) -> Answer<Json<Page>> {
    let limit = asked.limit.unwrap_or(Filter::default().limit);
    if !(1..=MAX_PAGE).contains(&limit) {
        return Err(Error::invalid(format!("`limit` is {limit}")).hint(format!("ask for 1 to {MAX_PAGE}")).into());
    }
    let filter = Filter {
        tool: asked.tool,
        plugin: asked.plugin,
        failed: asked.failed,
        door: asked.door,
        before: asked.before,
        limit,
    };
    Ok(Json(blocking(&api, move |host| host.journal().list(&filter)).await?))
}

/// What is gone.
#[derive(Serialize, JsonSchema)]
struct Cleared {
    /// How many calls there were.
    deleted: u64,
}

async fn clear(State(api): State<Arc<Api>>) -> Answer<Json<Cleared>> {
    Ok(Json(Cleared { deleted: blocking(&api, |host| host.journal().clear()).await? }))
}

async fn one(State(api): State<Arc<Api>>, At(id): At<String>) -> Answer<Json<Entry>> {
    Ok(Json(blocking(&api, move |host| host.kept(&id)).await?))
}

/// A call that ran again.
#[derive(Serialize, JsonSchema)]
pub(super) struct Replayed<'a> {
    /// What is kept of it.
    then: &'a Entry,
    /// What came of it now: the answer of `POST /api/call`.
    now: Ran<'a>,
    /// The unified diff of both texts, as a model reads them; empty where they are the same.
    diff: &'a str,
    /// What differs beside the text.
    changes: &'a [Change],
}

/// The data of an event of a replay's stream, by the event's name.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "it documents the events, which are written one by one")]
enum ReplayEvent {
    /// `started`: it is about to run.
    Started(Started),
    /// `progress`: what it said of how far it is.
    Progress(Progress),
    /// `log`: a line that it wrote.
    Log(Line),
    /// `result`: how it ended, beside what it was. The last one.
    Result(Box<Replayed<'static>>),
}

/// The body of an answer about a call that ran again.
fn compared(host: &Host, then: Entry, now: Outcome) -> Result<Vec<u8>> {
    let Replay { then, now, diff, changes } = host.compare(then, now);
    encoded("the result", &Replayed { then: &then, now: Ran::of(&now), diff: &diff, changes: &changes })
}

async fn replay(
    State(api): State<Arc<Api>>,
    At(id): At<String>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
) -> Answer<Response> {
    let who = caller.who();
    let Again { then, call } = blocking(&api, move |host| host.again(&id, &who)).await?;
    if run::wants_events(&headers) {
        let comparing = api.clone();
        return run::told(&api, call, async move |outcome| {
            match blocking(&comparing, move |host| compared(host, then, outcome)).await {
                Ok(body) => written(None, "result", &body),
                Err(refusal) => frame(None, "error", &refusal.body()),
            }
        });
    }
    let outcome = run::answered(&api, call).await;
    Ok(json_text(blocking(&api, move |host| compared(host, then, outcome)).await?))
}
