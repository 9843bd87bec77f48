//! `/api/call` and `/api/calls`: one tool through the whole dispatcher, as one answer or as it goes on; what runs now.
//! The answer holds both copies of the text; what either may hold was decided before it came here.

use super::answer::{self, Answer, At, Refusal, utc};
use super::events::{frame, stream};
use super::table::{Content, Op, delete, get, post, schema_of};
use super::{Api, InFlight};
use crate::base::error::{Error, Fallback, Kind};
use crate::http::caller::Caller;
use crate::http::reply::{failure, read_body};
use crate::script::ctx::Sink;
use crate::script::diagnostic::Diagnostic;
use crate::service::attachments::Item;
use crate::service::gallery::Tile;
use crate::service::markers::Part;
use crate::service::picture::View;
use crate::tool::dispatch::{Arguments, Call, CallHandle, Outcome, Who};
use crate::tool::registry::Snapshot;
use crate::tool::running::{Progress, Running};
use crate::tool::tokens::estimate_tokens;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use bytes::Bytes;
use futures_util::Stream;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use tokio::sync::mpsc;

/// The chat of calls that come through this door, where their pictures are kept.
const CHAT: &str = "http";
/// Events of a call that may wait for a reader; further ones are left out and counted.
const WAITING: usize = 256;

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

/// How a call ended.
#[derive(Serialize, JsonSchema)]
pub(super) struct Ran<'a> {
    /// Whether it succeeded.
    ok: bool,
    /// Its id.
    call: &'a str,
    /// The tool.
    tool: &'a str,
    /// The plugin; empty for an unknown tool.
    plugin: &'a str,
    /// The generation that ran it; 0 where nothing ran.
    generation: u64,
    /// What a model reads.
    text: &'a str,
    /// What a person reads, where it is another.
    #[serde(skip_serializing_if = "Option::is_none")]
    shown: Option<&'a str>,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Failure<'a>>,
    /// What stands beside the text.
    parts: Vec<Shown<'a>>,
    /// The structured result, where an output schema is declared and met.
    #[serde(skip_serializing_if = "Option::is_none")]
    structured: Option<&'a Value>,
    /// Handle to the rest of a text that was cut.
    #[serde(skip_serializing_if = "Option::is_none")]
    rest: Option<&'a str>,
    /// For the author: where the script failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    diagnostic: Option<&'a Diagnostic>,
    /// For the author: what of the result was dropped, and why.
    warnings: &'a [String],
    /// Wall clock, in milliseconds.
    duration_ms: f64,
    /// Script operations.
    operations: u64,
    /// Highest memory of script values, in bytes; 0 where it is not counted.
    memory: u64,
    /// About how many tokens `text` is.
    tokens: usize,
}

/// Why a call failed.
#[derive(Serialize, JsonSchema)]
pub(super) struct Failure<'a> {
    /// The word of the closed list.
    code: &'static str,
    /// What happened.
    message: &'a str,
    /// What to do next.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<&'a str>,
    /// Whether the same call may succeed a moment later.
    retryable: bool,
    /// How long to wait before that, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after_ms: Option<u64>,
    /// What a person has to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    user_action: Option<&'a str>,
    /// Tools that may serve instead.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    fallbacks: &'a [Fallback],
}

/// Something beside a text.
#[derive(Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Shown<'a> {
    /// A picture, at `/api/tool-image/{id}`.
    Image {
        /// Its handle, `img:<id>`; nothing where it was not kept.
        id: Option<&'a str>,
        /// Its media type.
        media_type: &'a str,
        /// Pixels across; 0 where that is not known.
        width: u32,
        /// Pixels down; 0 where that is not known.
        height: u32,
        /// Only the person sees it.
        display_only: bool,
        /// What it shows, in words.
        #[serde(skip_serializing_if = "Option::is_none")]
        caption: Option<&'a str>,
        /// Why a model is not shown it.
        #[serde(skip_serializing_if = "Option::is_none")]
        unseen: Option<&'a str>,
    },
    /// Numbered tiles.
    Gallery {
        /// What stands above them.
        title: &'a str,
        /// The tiles.
        items: &'a [Tile],
    },
    /// Files to play or to save.
    Files {
        /// What stands above them.
        title: &'a str,
        /// The files.
        items: &'a [Item],
    },
}

impl<'a> Shown<'a> {
    fn of(part: &'a Part) -> Shown<'a> {
        match part {
            Part::Image(image) => Shown::Image {
                id: image.id.as_deref(),
                media_type: &image.media_type,
                width: image.width,
                height: image.height,
                display_only: image.display_only,
                caption: image.caption.as_deref(),
                unseen: match &image.view {
                    View::Unseen(why) => Some(why),
                    View::Same | View::Copy { .. } => None,
                },
            },
            Part::Gallery(gallery) => Shown::Gallery { title: &gallery.title, items: &gallery.items },
            Part::Files(files) => Shown::Files { title: &files.title, items: &files.items },
        }
    }
}

impl<'a> Failure<'a> {
    fn of(error: &'a Error) -> Failure<'a> {
        Failure {
            code: error.code(),
            message: error.message(),
            hint: error.hint_text(),
            retryable: error.retryable(),
            retry_after_ms: error.retry_after_ms(),
            user_action: error.user_action(),
            fallbacks: error.fallbacks(),
        }
    }
}

impl<'a> Ran<'a> {
    pub(super) fn of(outcome: &'a Outcome) -> Ran<'a> {
        Ran {
            ok: outcome.ok,
            call: &outcome.call,
            tool: &outcome.tool,
            plugin: &outcome.plugin,
            generation: outcome.generation,
            text: &outcome.text,
            shown: outcome.shown.as_deref(),
            error: outcome.error.as_ref().map(Failure::of),
            parts: outcome.parts.iter().map(Shown::of).collect(),
            structured: outcome.structured.as_ref(),
            rest: outcome.rest.as_deref(),
            diagnostic: outcome.diagnostic.as_ref(),
            warnings: &outcome.warnings,
            duration_ms: (outcome.duration.as_secs_f64() * 1e6).round() / 1e3,
            operations: outcome.operations,
            memory: outcome.memory,
            tokens: estimate_tokens(&outcome.text),
        }
    }
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

#[derive(Serialize, JsonSchema)]
struct Started {
    /// Its id.
    call: String,
    /// The tool.
    tool: String,
    /// The generation that runs it.
    generation: u64,
}

#[derive(Serialize, JsonSchema)]
struct Line {
    /// `trace`, `info`, `warn` or `error`.
    level: String,
    /// The line.
    text: String,
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

    fn call(self, who: Who, handle: Arc<CallHandle>) -> Call {
        Call {
            arguments: self.arguments,
            sink: handle.clone(),
            handle: Some(handle),
            ..Call::new(self.tool, serde_json::Map::new(), who)
        }
    }
}

/// Cancels a call when nobody waits for its answer any more.
struct Waiting(Arc<CallHandle>);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

async fn call(State(api): State<Arc<Api>>, Extension(caller): Extension<Caller>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = match read_body(body).await {
        Ok(body) => body,
        Err(refused) => return refused,
    };
    match Wanted::of(&body) {
        Ok(wanted) => {
            run(&api, &parts.headers, wanted, caller.who().in_chat(CHAT)).await.unwrap_or_else(Refusal::into_response)
        }
        Err(e) => Refusal::from(e).into_response(),
    }
}

async fn run(api: &Arc<Api>, headers: &HeaderMap, wanted: Wanted, who: Who) -> Answer<Response> {
    let dispatcher = api.host.dispatcher();
    let snapshot = dispatcher.snapshot();
    if wants_events(headers) && snapshot.get(&wanted.tool).is_some() {
        return told(api, snapshot, wanted, who);
    }
    let handle = match wanted.call.clone() {
        Some(id) => Arc::new(CallHandle::named(id)?),
        None => Arc::default(),
    };
    let mut call = wanted.call(who, handle.clone());
    call.snapshot = Some(snapshot);
    let _running = api.enter();
    let waiting = Waiting(handle);
    let outcome = dispatcher.call_async(call).await;
    drop(waiting);
    Ok(ended(&outcome))
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

/// Whether the caller asks for events.
pub(super) fn wants_events(headers: &HeaderMap) -> bool {
    answer::header_text(headers, header::ACCEPT)
        .is_some_and(|accept| accept.split([',', ';']).any(|one| one.trim().eq_ignore_ascii_case("text/event-stream")))
}

/// The call as a stream of events. It is cancelled when its reader goes away.
fn told(api: &Arc<Api>, snapshot: Arc<Snapshot>, wanted: Wanted, who: Who) -> Answer<Response> {
    let dispatcher = api.host.dispatcher().clone();
    let generation = snapshot.get(&wanted.tool).map_or(0, |tool| tool.generation());
    let id = wanted.call.clone().unwrap_or_else(|| dispatcher.new_id());
    if dispatcher.running().iter().any(|running| running.call == id) {
        return Err(Error::new(Kind::Conflict, format!("a call `{id}` runs already"))
            .hint("choose another id, or leave it out")
            .into());
    }
    let handle = Arc::new(CallHandle::named(id.clone())?);
    let started = Started { call: id, tool: wanted.tool.clone(), generation };
    let (tx, rx) = mpsc::channel(WAITING);
    let teller = Arc::new(Teller { handle: handle.clone(), tx, left_out: AtomicU64::new(0) });
    let mut call = wanted.call(who, handle.clone());
    call.snapshot = Some(snapshot);
    call.sink = teller.clone();
    Ok(stream(Told {
        ready: VecDeque::from([frame(None, "started", &started)]),
        rx,
        teller,
        call: Some(Box::pin(async move { dispatcher.call_async(call).await })),
        _waiting: Waiting(handle),
        _running: api.enter(),
    }))
}

/// The events of one call.
struct Told {
    ready: VecDeque<Bytes>,
    rx: mpsc::Receiver<Bytes>,
    teller: Arc<Teller>,
    /// Nothing once it has ended.
    call: Option<Pin<Box<dyn Future<Output = Outcome> + Send>>>,
    _waiting: Waiting,
    _running: InFlight,
}

impl Stream for Told {
    type Item = Result<Bytes, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let me = &mut *self;
        if let Some(frame) = me.ready.pop_front() {
            return Poll::Ready(Some(Ok(frame)));
        }
        let Some(call) = &mut me.call else { return Poll::Ready(None) };
        // It is asked first: what it says meanwhile is heard below, and once it has ended nothing more comes.
        let outcome = call.as_mut().poll(cx);
        if let Poll::Ready(Some(frame)) = me.rx.poll_recv(cx) {
            me.ready.push_back(frame);
        }
        if let Poll::Ready(outcome) = outcome {
            me.call = None;
            while let Ok(frame) = me.rx.try_recv() {
                me.ready.push_back(frame);
            }
            let left_out = me.teller.left_out.load(Ordering::Relaxed);
            if left_out > 0 {
                let text = format!("{left_out} events were left out: they came faster than they were read");
                me.ready.push_back(frame(None, "log", &Line { level: "warn".to_owned(), text }));
            }
            me.ready.push_back(frame(None, "result", &Ran::of(&outcome)));
        }
        match me.ready.pop_front() {
            Some(frame) => Poll::Ready(Some(Ok(frame))),
            None => Poll::Pending,
        }
    }
}

/// Tells the reader of a stream what a call says, without ever waiting for that reader.
struct Teller {
    handle: Arc<CallHandle>,
    tx: mpsc::Sender<Bytes>,
    left_out: AtomicU64,
}

impl Teller {
    fn tell(&self, frame: Bytes) {
        if self.tx.try_send(frame).is_err() {
            self.left_out.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Sink for Teller {
    fn status(&self, text: &str) {
        self.handle.status(text);
        self.tell(frame(None, "progress", &self.handle.progress()));
    }

    fn step(&self, done: i64, total: i64) {
        self.handle.step(done, total);
        self.tell(frame(None, "progress", &self.handle.progress()));
    }

    fn log(&self, level: &str, text: &str) {
        self.tell(frame(None, "log", &Line { level: level.to_owned(), text: text.to_owned() }));
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
