//! A model behind an OpenAI-compatible server: sends the conversation over `net`, reads the answer while it comes, tries again
//! while nothing of it was told. Keys come from whoever made it, for one request at a time.

use super::assemble::Assembly;
use super::settings::Entry;
use super::sse::Events;
use super::wire::{Without, document};
use super::{Delta, Finish, Model, Profile, Reply, Replying, Request, fault};
use crate::base::error::{Error, Kind, Result};
use crate::net::lane::{Lane, classify};
use crate::net::{Body, Client, Incoming, Pace, Rules, Target};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

/// Most tries of one request.
const TRIES: u32 = 3;
/// Most bytes of an answer on the wire, envelopes included.
const MOST_WIRE: usize = 256 << 20;
/// Most bytes of a refusal that are read.
const MOST_REFUSAL: usize = 64 << 10;
/// Most bytes of an answer that does not stream.
const MOST_WHOLE: usize = 32 << 20;
/// How long the end of a finished answer is waited for.
const TAIL: Duration = Duration::from_secs(5);
/// The longest wait before another try; who is to wait longer is told so.
const LONGEST_WAIT: Duration = Duration::from_secs(20);

/// A credential for one request. It has no `Debug`.
pub struct Key {
    /// The value of the header `authorization`.
    pub header: String,
    /// Where it may be sent, and how it is taken out of texts.
    pub rules: Box<dyn Rules>,
}

/// Gives the key of a credential by its name.
pub type Keys = Arc<dyn Fn(&str) -> Result<Key> + Send + Sync>;

/// A model of the settings.
pub struct Endpoint {
    entry: Entry,
    client: Client,
    keys: Keys,
    pace: Pace,
    backoff: Duration,
}

impl Endpoint {
    /// The model of an entry.
    #[must_use]
    pub fn new(entry: Entry, client: Client, keys: Keys) -> Endpoint {
        let pace = entry.pace;
        Endpoint { entry, client, keys, pace, backoff: Duration::from_millis(500) }
    }

    /// With another wait before the second try; it doubles for the third.
    #[must_use]
    pub fn with_backoff(mut self, backoff: Duration) -> Endpoint {
        self.backoff = backoff;
        self
    }

    async fn answer(&self, request: &Request<'_>, told: &mut (dyn FnMut(Delta) + Send)) -> Result<Reply> {
        let mut without = Without::default();
        let mut tries = 1;
        loop {
            let mut has_told = false;
            let mut tell = |delta: Delta| {
                has_told = true;
                told(delta);
            };
            let failure = match self.once(request, without, &mut tell).await {
                Ok(reply) => return Ok(reply),
                Err(failure) => failure,
            };
            if has_told {
                return Err(failure.error);
            }
            if let Some(next) = failure.adapted {
                without = next;
                continue;
            }
            let doubled = self.backoff.saturating_mul(1 << (tries - 1));
            let wait = failure.wait.unwrap_or_else(|| doubled.mul_f64(0.5 + fastrand::f64()));
            if !failure.is_passing || tries >= TRIES || wait > LONGEST_WAIT {
                return Err(failure.error);
            }
            tries += 1;
            tokio::time::sleep(wait).await;
        }
    }

    async fn once(
        &self,
        request: &Request<'_>,
        without: Without,
        told: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<Reply, Failure> {
        let profile = &self.entry.profile;
        let key = match self.entry.credential.as_str() {
            "" => None,
            name => {
                Some((self.keys)(name).map_err(|e| Failure::of(e.context(format!("the model `{}`", profile.name))))?)
            }
        };
        let rules = Held { is_near: profile.local && !self.entry.trusted, key: key.as_ref() };
        let mut sent = crate::net::Request::new("POST", self.entry.address("chat/completions"));
        sent.headers = vec![
            ("accept".into(), "text/event-stream, application/json".into()),
            // Packed events come in lumps.
            ("accept-encoding".into(), "identity".into()),
        ];
        if let Some(key) = &key {
            sent.headers.push(("authorization".into(), key.header.clone()));
        }
        let settled = Request {
            temperature: request.temperature.or(self.entry.temperature),
            max_tokens: request.max_tokens.or(self.entry.max_tokens),
            ..*request
        };
        sent.body = Body::Json(document(profile, &settled, without));
        sent.allow_redirects = Some(false);
        sent.max_bytes = MOST_WIRE;
        let mut incoming = match self.client.open(sent, self.pace, &rules).await {
            Ok(incoming) => incoming,
            Err(e) => return Err(self.unreached(&e)),
        };
        let status = incoming.status;
        if !(200..300).contains(&status) {
            let wait = incoming.header("retry-after").and_then(seconds);
            let mut body = Vec::new();
            while body.len() < MOST_REFUSAL {
                let Ok(Some(chunk)) = incoming.chunk().await else { break };
                body.extend_from_slice(&chunk);
            }
            body.truncate(MOST_REFUSAL);
            let words = fault::of_body(&rules.redact(body).unwrap_or_default());
            return Err(self.refused(status, &words, wait, without));
        }
        self.read(&mut incoming, &rules, without, told).await
    }

    /// Reads an answer to its end: a stream of events, or one document where the server does not stream.
    async fn read(
        &self,
        incoming: &mut Incoming<'_>,
        rules: &Held<'_>,
        without: Without,
        told: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<Reply, Failure> {
        let mut reading = Reading { assembly: Assembly::default(), is_whole: None, whole: Vec::new(), is_done: false };
        let mut events = Events::default();
        let is_document =
            incoming.header("content-type").is_some_and(|t| t.trim_start().starts_with("application/json"));
        loop {
            let chunk = match incoming.chunk().await {
                Ok(Some(chunk)) => chunk,
                Ok(None) => break,
                Err(_) if reading.assembly.is_finished() => break,
                Err(e) if !reading.assembly.has_heard() && e.kind() == Kind::Timeout => return Err(self.unreached(&e)),
                Err(e) => {
                    let is_passing = e.kind() == Kind::UpstreamUnavailable;
                    let error = fault::broke_off(&self.entry.profile, Some(&e));
                    return Err(Failure { is_passing, ..Failure::of(error) });
                }
            };
            // What it is, its first letter says.
            if reading.is_whole.is_none() && !chunk.trim_ascii().is_empty() {
                reading.is_whole = Some(is_document || starts_document(&chunk));
            }
            if reading.is_whole == Some(true) {
                reading.whole.extend_from_slice(&chunk);
                if reading.whole.len() > MOST_WHOLE {
                    return Err(Failure::of(self.unreadable()));
                }
                continue;
            }
            for data in events.take(&chunk) {
                self.event(&data, &mut reading, rules, without, told)?;
            }
            if reading.is_done || reading.assembly.is_full() {
                return Ok(reading.finish(told));
            }
            if reading.assembly.is_finished() {
                incoming.hasten(TAIL);
            }
        }
        if !reading.whole.is_empty() {
            let text = String::from_utf8_lossy(&reading.whole).into_owned();
            let Ok(document) = serde_json::from_str::<Value>(&text) else {
                return Err(Failure::of(fault::broke_off(&self.entry.profile, None)));
            };
            self.document(&document, &mut reading, rules, without, told)?;
            if !reading.assembly.has_heard() {
                return Err(Failure::of(self.unreadable()));
            }
            return Ok(reading.finish(told));
        }
        for data in events.rest() {
            self.event(&data, &mut reading, rules, without, told)?;
        }
        match (reading.is_done || reading.assembly.is_finished(), reading.assembly.has_heard()) {
            (true, true) => Ok(reading.finish(told)),
            (false, true) => {
                // What was held back belongs to the text so far.
                reading.finish(told);
                let error = fault::broke_off(&self.entry.profile, None);
                Err(Failure { is_passing: true, ..Failure::of(error) })
            }
            (_, false) => Err(Failure::of(self.unreadable())),
        }
    }

    fn event(
        &self,
        data: &str,
        reading: &mut Reading,
        rules: &Held<'_>,
        without: Without,
        told: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<(), Failure> {
        if data.trim() == "[DONE]" {
            reading.is_done = true;
            return Ok(());
        }
        match serde_json::from_str::<Value>(data) {
            Ok(document) => self.document(&document, reading, rules, without, told),
            // One bad line is no reason to lose a turn: a stream that misses its end is noticed there.
            Err(_) => Ok(()),
        }
    }

    fn document(
        &self,
        document: &Value,
        reading: &mut Reading,
        rules: &Held<'_>,
        without: Without,
        told: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<(), Failure> {
        if let Some((status, words)) = fault::in_document(document) {
            let words = rules.redact(words.into_bytes()).unwrap_or_default();
            return Err(self.refused(status, &String::from_utf8_lossy(&words), None, without));
        }
        reading.assembly.take(document, told).map_err(Failure::of)
    }

    fn refused(&self, status: u16, words: &str, wait: Option<Duration>, without: Without) -> Failure {
        let mut error = fault::refused(&self.entry.profile, &self.entry.place(), status, words);
        if let Some(wait) = wait {
            error = error.with_retry_after_ms(u64::try_from(wait.as_millis()).unwrap_or(u64::MAX));
        }
        let is_passing = fault::is_passing(status, words) && error.retryable();
        Failure { error, is_passing, wait, adapted: fault::adapted(status, words, without) }
    }

    fn unreached(&self, error: &Error) -> Failure {
        let is_near = classify(&self.entry.host) == Lane::Lan;
        let is_passing = error.kind() == Kind::UpstreamUnavailable && error.retryable();
        let error = fault::unreached(&self.entry.profile, &self.entry.place(), is_near, error);
        Failure { is_passing, ..Failure::of(error) }
    }

    fn unreadable(&self) -> Error {
        let what = format!("{} answered something that is no answer of a model", self.entry.place());
        Error::new(Kind::UpstreamUnavailable, what)
            .with_retryable(false)
            .hint("see `base_url` of the model in user/lapidary.toml; an address usually ends in /v1")
    }
}

impl Model for Endpoint {
    fn profile(&self) -> &Profile {
        &self.entry.profile
    }

    fn reply<'a>(&'a self, request: &'a Request<'a>, told: &'a mut (dyn FnMut(Delta) + Send)) -> Replying<'a> {
        Box::pin(self.answer(request, told))
    }
}

/// Why a try came to nothing, and what may be done about it.
struct Failure {
    error: Error,
    is_passing: bool,
    wait: Option<Duration>,
    adapted: Option<Without>,
}

impl Failure {
    fn of(error: Error) -> Failure {
        Failure { error, is_passing: false, wait: None, adapted: None }
    }
}

/// An answer while it is read.
struct Reading {
    assembly: Assembly,
    /// Whether it is one document, and no stream; `None` before anything came.
    is_whole: Option<bool>,
    /// The bytes of an answer that does not stream.
    whole: Vec<u8>,
    is_done: bool,
}

impl Reading {
    fn finish(self, told: &mut (dyn FnMut(Delta) + Send)) -> Reply {
        let is_full = self.assembly.is_full();
        let mut reply = self.assembly.done(told);
        if is_full {
            reply.finish = Finish::Calls;
        }
        reply
    }
}

/// What a request to a model is held to.
struct Held<'a> {
    /// A model of private chats stays in the local network, at every hop.
    is_near: bool,
    key: Option<&'a Key>,
}

impl Rules for Held<'_> {
    fn permit(&self, target: Target) -> Result<()> {
        if self.is_near && target.lane != Lane::Lan {
            return Err(Error::denied(format!(
                "a local model is not asked at `{}`, which is on the internet",
                target.host
            )));
        }
        self.key.map_or(Ok(()), |key| key.rules.permit(target))
    }

    fn redact(&self, bytes: Vec<u8>) -> Result<Vec<u8>> {
        match self.key {
            Some(key) => key.rules.redact(bytes),
            None => Ok(bytes),
        }
    }
}

fn starts_document(chunk: &[u8]) -> bool {
    chunk.trim_ascii_start().first() == Some(&b'{')
}

/// The seconds of a `retry-after`; a date is none.
fn seconds(value: &str) -> Option<Duration> {
    let seconds: f64 = value.trim().parse().ok()?;
    Duration::try_from_secs_f64(seconds.clamp(0.0, 86_400.0)).ok()
}
