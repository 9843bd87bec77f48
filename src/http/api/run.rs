//! Running a call for a request: as one answer, or as events while it goes on. What of an outcome is written, and how.
//! What either copy of a text may hold was decided before it came here.

use super::answer::{Answer, header_text};
use super::events::{frame, stream};
use super::{Api, InFlight};
use crate::base::error::{Error, Fallback, Kind};
use crate::script::ctx::Sink;
use crate::script::diagnostic::Diagnostic;
use crate::service::attachments::Item;
use crate::service::gallery::Tile;
use crate::service::markers::Part;
use crate::service::picture::View;
use crate::tool::dispatch::{Call, CallHandle, Outcome};
use crate::tool::tokens::estimate_tokens;
use axum::http::{HeaderMap, header};
use axum::response::Response;
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

/// Events of a call that may wait for a reader; further ones are left out and counted.
const WAITING: usize = 256;

/// How a call ended.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "CallResult")]
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
#[schemars(rename = "CallFailure")]
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
#[schemars(rename = "ResultPart")]
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

#[derive(Serialize, JsonSchema)]
pub(super) struct Started {
    /// Its id.
    call: String,
    /// The tool.
    tool: String,
    /// The generation that runs it.
    generation: u64,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Line {
    /// `trace`, `info`, `warn` or `error`.
    level: String,
    /// The line.
    text: String,
}

/// Cancels a call when nobody waits for its answer any more.
struct Waiting(Arc<CallHandle>);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// Whether the caller asks for events.
pub(super) fn wants_events(headers: &HeaderMap) -> bool {
    header_text(headers, header::ACCEPT)
        .is_some_and(|accept| accept.split([',', ';']).any(|one| one.trim().eq_ignore_ascii_case("text/event-stream")))
}

/// Runs a call to its end. It is cancelled when whoever waits for this goes away.
pub(super) async fn answered(api: &Arc<Api>, mut call: Call) -> Outcome {
    let handle = call.handle.get_or_insert_default().clone();
    call.sink = handle.clone();
    let _running = api.enter();
    let waiting = Waiting(handle);
    let outcome = api.host.dispatcher().call_here(call).await;
    drop(waiting);
    outcome
}

/// Runs a call and tells how it goes on; `end` makes the last event of its outcome. The call is cancelled when its reader goes
/// away.
///
/// # Errors
/// `conflict` where a call of the chosen id runs already.
pub(super) fn told<F>(
    api: &Arc<Api>,
    mut call: Call,
    end: impl FnOnce(Outcome) -> F + Send + 'static,
) -> Answer<Response>
where
    F: Future<Output = Bytes> + Send,
{
    let dispatcher = api.host.dispatcher().clone();
    let snapshot = call.snapshot.get_or_insert_with(|| dispatcher.snapshot());
    let generation = snapshot.get(&call.tool).map_or(0, |tool| tool.generation());
    let handle = match call.handle.take() {
        Some(handle) => handle,
        None => Arc::new(CallHandle::named(dispatcher.new_id())?),
    };
    let id = handle.id().unwrap_or_default().to_owned();
    if dispatcher.running().iter().any(|running| running.call == id) {
        return Err(Error::new(Kind::Conflict, format!("a call `{id}` runs already"))
            .hint("choose another id, or leave it out")
            .into());
    }
    let started = Started { call: id, tool: call.tool.clone(), generation };
    let (tx, rx) = mpsc::channel(WAITING);
    let teller = Arc::new(Teller { handle: handle.clone(), tx, left_out: AtomicU64::new(0) });
    call.handle = Some(handle.clone());
    call.sink = teller.clone();
    Ok(stream(Told {
        ready: VecDeque::from([frame(None, "started", &started)]),
        rx,
        teller,
        call: Some(Box::pin(async move { end(dispatcher.call_async(call).await).await })),
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
    call: Option<Pin<Box<dyn Future<Output = Bytes> + Send>>>,
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
        let end = call.as_mut().poll(cx);
        if let Poll::Ready(Some(frame)) = me.rx.poll_recv(cx) {
            me.ready.push_back(frame);
        }
        if let Poll::Ready(end) = end {
            me.call = None;
            while let Ok(frame) = me.rx.try_recv() {
                me.ready.push_back(frame);
            }
            let left_out = me.teller.left_out.load(Ordering::Relaxed);
            if left_out > 0 {
                let text = format!("{left_out} events were left out: they came faster than they were read");
                me.ready.push_back(frame(None, "log", &Line { level: "warn".to_owned(), text }));
            }
            me.ready.push_back(end);
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
