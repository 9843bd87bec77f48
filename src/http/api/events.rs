//! `/api/events`: what happens in the host, as server-sent events that can be taken up again where they broke off.
//! A ring holds the newest; whoever is behind it is told to fetch everything anew, and nobody is waited for.

use super::Api;
use super::answer::{Answer, Asked, header_text, rate_limited};
use super::table::{Content, Op, get, schema_of};
use crate::app::Host;
use crate::base::event::Event;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::response::Response;
use bytes::Bytes;
use futures_util::Stream;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, watch};
use tokio::time::Instant;

/// How many events can be asked for again.
const KEPT: usize = 1000;
/// How often a quiet stream says that it is there.
const QUIET: Duration = Duration::from_secs(15);
/// Most readers at once: each holds a connection.
const READERS: usize = 64;
/// How long events are kept on once nobody reads them.
const UNREAD: Duration = Duration::from_secs(60);
/// A reader that cannot follow is told to fetch everything anew at most this often.
const BETWEEN: Duration = Duration::from_secs(1);
/// Most events that are written at once.
const AT_ONCE: usize = 64;

pub(super) fn ops() -> Vec<Op> {
    vec![
        get("/api/events", "What happens in the host from now on, or from an event on", follow)
            .asks::<EventsAsked>()
            .hears(&[("Last-Event-ID", "The id of the last event that was read.")])
            .answers(200, Content::Events(schema_of::<EventData>())),
    ]
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct EventsAsked {
    /// The id of the last event that was read; the header `Last-Event-ID` says the same.
    since: Option<String>,
}

/// The data of an event of the stream, by the event's name.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "it documents the events, which are written one by one")]
enum EventData {
    /// `hello`: the first of a fresh stream.
    Hello(Hello),
    /// `resync`: events were missed, so everything is to be fetched anew. Its data is that of `hello`.
    Resync(Hello),
    /// Any other name: what happened.
    Happened(Event),
}

/// Whom a reader speaks to.
#[derive(Serialize, JsonSchema)]
struct Hello {
    /// The version of the program.
    version: &'static str,
    /// The revision of the tools.
    revision: u64,
    /// Another word for every start of the server: events of one start mean nothing to the next.
    boot: String,
}

/// The newest events.
pub(super) struct Events {
    boot: String,
    ring: Mutex<Ring>,
    newest: watch::Sender<u64>,
    pub(super) readers: AtomicUsize,
}

#[derive(Default)]
struct Ring {
    events: VecDeque<Event>,
    /// The number of the next event; those in the ring have the numbers before it.
    next: u64,
    is_filled: bool,
}

/// What a reader is behind by.
enum Behind {
    Nothing,
    Events(Vec<(u64, Event)>),
    /// More than there is left of.
    TooMuch,
}

impl Ring {
    fn push(&mut self, event: Event) {
        if self.events.len() == KEPT {
            self.events.pop_front();
        }
        self.events.push_back(event);
        self.next += 1;
    }

    /// What is in the ring no longer follows on what was.
    fn tear(&mut self) {
        self.events.clear();
        self.next += 1;
    }

    fn after(&self, next: u64) -> Behind {
        if next == self.next {
            return Behind::Nothing;
        }
        let oldest = self.next - self.events.len() as u64;
        let Some(skip) = next.checked_sub(oldest).filter(|_| next < self.next) else { return Behind::TooMuch };
        let skip = usize::try_from(skip).unwrap_or(usize::MAX);
        Behind::Events((next..).zip(self.events.iter().skip(skip).take(AT_ONCE).cloned()).collect())
    }
}

impl Events {
    pub(super) fn new() -> Arc<Events> {
        Arc::new(Events {
            boot: format!("{:08x}", fastrand::u32(..)),
            ring: Mutex::default(),
            newest: watch::Sender::new(0),
            readers: AtomicUsize::new(0),
        })
    }

    fn ring(&self) -> MutexGuard<'_, Ring> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn id(&self, number: u64) -> String {
        format!("{}-{number}", self.boot)
    }

    /// The number after that of an id of this start.
    fn after(&self, id: &str) -> Option<u64> {
        let (boot, number) = id.rsplit_once('-')?;
        (boot == self.boot).then(|| number.parse::<u64>().ok()?.checked_add(1)).flatten()
    }

    /// Follows the host from now on, unless somebody does: a host that nobody watches pays nothing for this.
    fn fill(self: &Arc<Self>, host: &Host) {
        let mut ring = self.ring();
        if !std::mem::replace(&mut ring.is_filled, true) {
            tokio::spawn(keep(self.clone(), host.events()));
        }
    }

    fn publish(&self, change: impl FnOnce(&mut Ring)) {
        let mut ring = self.ring();
        change(&mut ring);
        self.newest.send_replace(ring.next);
    }
}

/// Takes events into the ring until the host ends, or nobody has read them for a while.
async fn keep(events: Arc<Events>, mut heard: broadcast::Receiver<Event>) {
    let mut unread = tokio::time::interval(UNREAD);
    unread.tick().await;
    let mut was_read = true;
    loop {
        tokio::select! {
            event = heard.recv() => match event {
                Ok(event) => events.publish(|ring| ring.push(event)),
                Err(RecvError::Lagged(_)) => events.publish(Ring::tear),
                Err(RecvError::Closed) => break,
            },
            _ = unread.tick() => {
                let is_read = events.readers.load(Ordering::Acquire) > 0;
                if !is_read && !was_read {
                    break;
                }
                was_read = is_read;
            }
        }
    }
    events.publish(|ring| {
        ring.tear();
        ring.is_filled = false;
    });
}

/// Counts a reader until it goes.
struct Reading(Arc<Events>);

impl Reading {
    fn begin(events: &Arc<Events>) -> Option<Reading> {
        let reading = Reading(events.clone());
        (events.readers.fetch_add(1, Ordering::AcqRel) < READERS).then_some(reading)
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        self.0.readers.fetch_sub(1, Ordering::AcqRel);
    }
}

/// One reader.
struct Reader {
    api: Arc<Api>,
    reading: Reading,
    newest: watch::Receiver<u64>,
    /// The number of the event that it gets next.
    next: u64,
    /// What it is told before anything else.
    first: Option<&'static str>,
    told_anew: Option<Instant>,
}

impl Reader {
    fn hello(&self, name: &str) -> Bytes {
        let hello = Hello {
            version: env!("CARGO_PKG_VERSION"),
            revision: self.api.host.dispatcher().snapshot().revision,
            boot: self.events().boot.clone(),
        };
        frame(Some(&self.events().id(self.next.wrapping_sub(1))), name, &hello)
    }

    fn events(&self) -> &Arc<Events> {
        &self.reading.0
    }

    /// The next bytes to write; nothing once the API closes.
    async fn bytes(&mut self) -> Option<Bytes> {
        if *self.api.closing.borrow() {
            return None;
        }
        if let Some(first) = self.first.take() {
            return Some(self.hello(first));
        }
        loop {
            let behind = self.events().ring().after(self.next);
            match behind {
                Behind::Events(events) => {
                    self.next += events.len() as u64;
                    let frames: Vec<u8> =
                        events.iter().flat_map(|(number, event)| self.happened(*number, event)).collect();
                    return Some(frames.into());
                }
                Behind::TooMuch => {
                    let wait = self.told_anew.and_then(|told| BETWEEN.checked_sub(told.elapsed()));
                    if let Some(wait) = wait {
                        tokio::select! {
                            () = tokio::time::sleep(wait) => {}
                            () = self.api.closed() => return None,
                        }
                    }
                    self.told_anew = Some(Instant::now());
                    let newest = self.events().ring().next;
                    self.next = newest;
                    return Some(self.hello("resync"));
                }
                Behind::Nothing => {}
            }
            tokio::select! {
                _ = self.newest.changed() => {}
                () = tokio::time::sleep(QUIET) => return Some(Bytes::from_static(b": still here\n\n")),
                () = self.api.closed() => return None,
            }
        }
    }

    fn happened(&self, number: u64, event: &Event) -> Bytes {
        let data = serde_json::to_value(event).unwrap_or_default();
        let name = data.get("event").and_then(Value::as_str).unwrap_or("notice").to_owned();
        frame(Some(&self.events().id(number)), &name, &data)
    }
}

async fn follow(State(api): State<Arc<Api>>, Asked(asked): Asked<EventsAsked>, headers: HeaderMap) -> Answer<Response> {
    let reading = Reading::begin(&api.events).ok_or_else(|| rate_limited("streams of events"))?;
    let last = header_text(&headers, HeaderName::from_static("last-event-id")).map(str::to_owned).or(asked.since);
    // It listens before it looks, so that nothing happens in between.
    let newest = api.events.newest.subscribe();
    api.events.fill(&api.host);
    let now = api.events.ring().next;
    let (next, first) = match last.as_deref().filter(|last| !last.is_empty()) {
        None => (now, Some("hello")),
        Some(last) => match api.events.after(last) {
            Some(next) if !matches!(api.events.ring().after(next), Behind::TooMuch) => (next, None),
            _ => (now, Some("resync")),
        },
    };
    let reader = Reader { api, reading, newest, next, first, told_anew: None };
    Ok(stream(futures_util::stream::unfold(reader, |mut reader| async move {
        let bytes = reader.bytes().await?;
        Some((Ok(bytes), reader))
    })))
}

/// One event as it is written.
pub(super) fn frame(id: Option<&str>, name: &str, data: &impl Serialize) -> Bytes {
    // A value that cannot be written is none.
    written(id, name, &serde_json::to_vec(data).unwrap_or_else(|_| b"null".to_vec()))
}

/// As [`frame`], for JSON that was written already. It has no line breaks outside of texts, and escapes them inside.
pub(super) fn written(id: Option<&str>, name: &str, json: &[u8]) -> Bytes {
    let id = id.map(|id| format!("id: {id}\n")).unwrap_or_default();
    [id.as_bytes(), b"event: ", name.as_bytes(), b"\ndata: ", json, b"\n\n"].concat().into()
}

/// Events as an answer, written as they come.
pub(super) fn stream(events: impl Stream<Item = Result<Bytes, Infallible>> + Send + 'static) -> Response {
    let mut response = Response::new(Body::from_stream(events));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    // A proxy that gathers an answer before it hands it on would hold everything back.
    headers.insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(n: u64) -> Event {
        Event::ToolsChanged { revision: n }
    }

    fn numbers(ring: &Ring, next: u64) -> Option<Vec<u64>> {
        match ring.after(next) {
            Behind::Nothing => Some(Vec::new()),
            Behind::Events(events) => Some(events.into_iter().map(|(n, _)| n).collect()),
            Behind::TooMuch => None,
        }
    }

    #[test]
    fn a_ring_gives_what_follows_on_a_number_or_says_that_it_cannot() {
        let mut ring = Ring::default();
        assert_eq!((numbers(&ring, 0), numbers(&ring, 1)), (Some(vec![]), None));
        (0..3).for_each(|n| ring.push(event(n)));
        assert_eq!(numbers(&ring, 1), Some(vec![1, 2]));
        assert_eq!((numbers(&ring, 3), numbers(&ring, 4)), (Some(vec![]), None));
        (3..KEPT as u64 + 2).for_each(|n| ring.push(event(n)));
        assert_eq!((numbers(&ring, 1), numbers(&ring, 2).map(|n| n.len())), (None, Some(AT_ONCE)));
        ring.tear();
        assert_eq!((numbers(&ring, KEPT as u64), numbers(&ring, ring.next)), (None, Some(vec![])));
    }

    #[test]
    fn an_id_of_another_start_follows_on_nothing() {
        let events = Events::new();
        assert_eq!(events.after(&events.id(7)), Some(8));
        for other in ["", "7", "zzz-7", &format!("{}-", events.boot), &format!("{}-x", events.boot)] {
            assert_eq!(events.after(other), None, "{other}");
        }
    }

    #[test]
    fn an_event_is_one_frame_whatever_its_data_holds() {
        let text = "a\nb\r\n\nevent: evil\ndata: x";
        let frame = frame(Some("b-1"), "notice", &text);
        let lines: Vec<&[u8]> = frame.split(|b| *b == b'\n').collect();
        assert_eq!((lines.len(), lines[0], lines[1]), (5, b"id: b-1".as_slice(), b"event: notice".as_slice()));
    }
}
