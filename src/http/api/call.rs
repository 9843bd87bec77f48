//! `/api/call` and `/api/calls`: one tool through the whole dispatcher, as one answer or as it goes on; what runs now.
//! The answer holds both copies of the text; what either may hold was decided before it came here.

use super::Api;
use super::answer::{self, Answer, At, Refusal, blocking, utc};
use super::events::frame;
use super::run::{self, Line, Ran, Started};
use super::table::{Content, Op, delete, get, post, schema_of};
use crate::base::error::{Error, Kind};
use crate::http::caller::Caller;
use crate::http::reply::{failure, read_body};
use crate::tool::dispatch::{Arguments, Call, CallHandle, Outcome, Who};
use crate::tool::running::{Progress, Running};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use std::sync::Arc;

/// The chat of calls that come through this door, where their pictures are kept.
const CHAT: &str = "http";

pub(super) fn ops() -> Vec<Op> {
    vec![
        post("/api/call", "Run one tool; with `Accept: text/event-stream`, tell how it goes on", call)
            .hears(&[("Accept", "`text/event-stream` for a stream of events instead of one answer.")])
            .takes::<CallSent>()
            .answers(200, Content::Json(schema_of::<Ran<'static>>()))
            .answers(200, Content::Events(schema_of::<CallEvent>())),
        get("/api/calls", "The calls that run now, in the order in which they came", running)
            .gives::<Vec<RunningCall>>(),
        delete("/api/calls/{call}", "Cancel a running call", cancel).answers(204, Content::Empty),
    ]
}

/// A call to make.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
#[expect(dead_code, reason = "it documents the body, which is taken apart by hand: the arguments are not copied")]
struct CallSent {
    /// The tool's name.
    tool: String,
    /// Its arguments: an object, or its JSON as text as models write it.
    arguments: Option<Value>,
    /// An id for the call, 8 to 64 letters, digits, `_` and `-`; one is made where there is none.
    call: Option<String>,
}

/// The data of an event of a call's stream, by the event's name.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "it documents the events, which are written one by one")]
enum CallEvent {
    /// `started`: it is about to run.
    Started(Started),
    /// `progress`: what it said of how far it is.
    Progress(Progress),
    /// `log`: a line that it wrote.
    Log(Line),
    /// `result`: how it ended. The last one.
    Result(Box<Ran<'static>>),
}

/// What was sent, taken apart without a copy of the arguments.
struct Wanted {
    tool: String,
    arguments: Arguments,
    call: Option<String>,
}

impl Wanted {
    fn of(body: &[u8]) -> Result<Wanted, Error> {
        const KNOWN: &str = "`tool`, `arguments` and `call`";
        let Value::Object(map) = answer::parse(body)? else {
            return Err(Error::invalid("the body is no object").hint(format!("send an object with {KNOWN}")));
        };
        let mut tool = None;
        let mut arguments = Arguments::Object(serde_json::Map::new());
        let mut call = None;
        for (key, value) in map {
            match (key.as_str(), value) {
                ("tool", Value::String(name)) => tool = Some(name),
                ("arguments", Value::Object(map)) => arguments = Arguments::Object(map),
                ("arguments", Value::String(text)) => arguments = Arguments::Text(text),
                ("arguments" | "call", Value::Null) => {}
                ("call", Value::String(id)) => call = Some(id),
                ("tool" | "call", _) => {
                    return Err(Error::invalid(format!("the body does not fit at `{key}`: it must be a text")));
                }
                ("arguments", _) => {
                    return Err(Error::invalid("the body does not fit at `arguments`: it must be an object")
                        .hint("send {} for none"));
                }
                _ => {
                    let shown: String = key.chars().take(60).flat_map(char::escape_debug).collect();
                    return Err(Error::invalid(format!("the body has an unknown field `{shown}`"))
                        .hint(format!("known are {KNOWN}")));
                }
            }
        }
        let tool = tool.ok_or_else(|| Error::invalid("the body has no `tool`").hint(format!("send {KNOWN}")))?;
        Ok(Wanted { tool, arguments, call })
    }
}

async fn call(State(api): State<Arc<Api>>, Extension(caller): Extension<Caller>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = match read_body(body).await {
        Ok(body) => body,
        Err(refused) => return refused.into_response(),
    };
    match Wanted::of(&body) {
        Ok(wanted) => made(&api, &parts.headers, wanted, caller.who().in_chat(CHAT)).await,
        Err(e) => Refusal::from(e).into_response(),
    }
}

async fn made(api: &Arc<Api>, headers: &HeaderMap, wanted: Wanted, who: Who) -> Response {
    let handle = match named(api, wanted.call).await {
        Ok(handle) => handle,
        Err(refused) => return refused.into_response(),
    };
    let snapshot = api.host.dispatcher().snapshot();
    let is_known = snapshot.get(&wanted.tool).is_some();
    let call = Call {
        arguments: wanted.arguments,
        snapshot: Some(snapshot),
        handle,
        ..Call::new(wanted.tool, serde_json::Map::new(), who)
    };
    if is_known && run::wants_events(headers) {
        return run::told(api, call, async |outcome| frame(None, "result", &Ran::of(&outcome)))
            .unwrap_or_else(Refusal::into_response);
    }
    ended(&run::answered(api, call).await)
}

/// The handle of a call whose id the client chose. One that another call had would hide that call in the journal.
async fn named(api: &Arc<Api>, id: Option<String>) -> Answer<Option<Arc<CallHandle>>> {
    let Some(id) = id else { return Ok(None) };
    let handle = CallHandle::named(id.clone())?;
    // A journal that cannot be read says nothing about ids, and holds no call up.
    if blocking(api, move |host| Ok(host.journal().holds(&id).unwrap_or(false))).await? {
        return Err(Error::new(Kind::Conflict, "another call had this id")
            .hint("choose a fresh one, or leave it out")
            .into());
    }
    Ok(Some(Arc::new(handle)))
}

/// A result is a success of the request, whether or not the tool succeeded; what never came to a tool is none.
fn ended(outcome: &Outcome) -> Response {
    if let Some(error) = &outcome.error
        && outcome.plugin.is_empty()
        && matches!(error.kind(), Kind::NotFound | Kind::Conflict)
    {
        return Refusal::from(error.clone()).with("call", outcome.call.as_str().into()).into_response();
    }
    let mut text = Vec::with_capacity(512 + outcome.text.len());
    match serde_json::to_writer(&mut text, &Ran::of(outcome)) {
        Ok(()) => answer::json_text(text),
        Err(e) => failure(&Error::internal(format!("the result cannot be written as JSON: {e}"))),
    }
}

/// A call that runs now.
#[derive(Serialize, JsonSchema)]
struct RunningCall {
    /// Its id.
    call: String,
    /// The tool.
    tool: String,
    /// The plugin; empty where the tool is gone meanwhile.
    plugin: String,
    /// Through which door it came.
    door: &'static str,
    /// Who called.
    caller: String,
    /// When it was taken in, RFC 3339 in UTC.
    started_at: String,
    /// How far it is, where it says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    progress: Option<Progress>,
}

async fn running(State(api): State<Arc<Api>>) -> Json<Vec<RunningCall>> {
    let snapshot = api.host.dispatcher().snapshot();
    let shown = |running: Running| RunningCall {
        plugin: snapshot.get(&running.tool).map(|tool| tool.plugin().name.to_string()).unwrap_or_default(),
        call: running.call,
        tool: running.tool,
        door: running.door,
        caller: running.caller.to_string(),
        started_at: utc(running.started_ms),
        progress: running.progress,
    };
    Json(api.host.dispatcher().running().into_iter().map(shown).collect())
}

async fn cancel(State(api): State<Arc<Api>>, At(call): At<String>) -> Answer<StatusCode> {
    if api.host.dispatcher().cancel(&call) {
        return Ok(StatusCode::NO_CONTENT);
    }
    let shown: String = call.chars().take(80).flat_map(char::escape_debug).collect();
    Err(Error::not_found(format!("no call `{shown}` runs"))
        .hint("it may have ended; GET /api/calls lists what runs")
        .into())
}
