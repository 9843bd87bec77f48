//! What stands in for the network in one test's world: it answers from the recordings, or lets requests through and writes
//! down what came of them. Everything it keeps is without values of credentials.

use super::Requests;
use super::compare::{Asked, Question};
use super::page::{Exchange, Outcome, Reply};
use crate::base::error::{Error, Kind, Result};
use crate::net::tape::{Heard, Hop, Play, Tape};
use crate::script::diagnostic::Diagnostic;
use crate::service::secret::Redactor;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Headers of an answer that scripts read; everything else stays out of the recordings.
const KEPT: [&str; 15] = [
    "accept-ranges",
    "allow",
    "cache-control",
    "content-disposition",
    "content-language",
    "content-location",
    "content-range",
    "content-type",
    "etag",
    "expires",
    "last-modified",
    "link",
    "location",
    "retry-after",
    "content-length",
];
/// And those that begin so: limits and pages of services.
const KEPT_BEGINNINGS: [&str; 7] =
    ["ratelimit", "x-ratelimit", "x-rate-limit", "x-total", "x-page", "x-per-page", "x-next-page"];
/// Most recordings that are named as nearly the same.
const NEAR: usize = 3;

/// What a deck is for.
pub struct Of {
    /// The test's name.
    pub test: String,
    /// Its plugin; empty for a script that stands for itself.
    pub plugin: String,
    /// The file of recordings, as people see it.
    pub file: String,
    /// What it holds.
    pub exchanges: Arc<Vec<Exchange>>,
    /// Where requests go.
    pub requests: Requests,
}

/// Answers one test's requests.
pub struct Deck {
    of: Of,
    /// What must not be written down: known once the world stands.
    hidden: OnceLock<Redactor>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Which exchanges have answered.
    used: Vec<bool>,
    missing: Vec<Missing>,
    taken: Vec<Taken>,
}

struct Missing {
    what: String,
    hint: String,
}

struct Taken {
    asked: Asked,
    /// `None` while it is under way.
    outcome: Option<Outcome>,
}

/// What came of one test's requests.
#[derive(Default)]
pub struct Played {
    /// Requests that were not recorded.
    pub missing: Vec<Diagnostic>,
    /// What was heard from the network, or of a kept exchange, in order.
    pub taken: Vec<Exchange>,
}

impl Deck {
    /// For one test.
    pub fn new(of: Of) -> Deck {
        let used = vec![false; of.exchanges.len()];
        Deck { of, hidden: OnceLock::new(), state: Mutex::new(State { used, ..State::default() }) }
    }

    /// For what asks for nothing, such as loading a script.
    pub fn empty() -> Arc<Deck> {
        let of = Of {
            test: String::new(),
            plugin: String::new(),
            file: "a test".into(),
            exchanges: Arc::default(),
            requests: Requests::Replayed,
        };
        Arc::new(Deck::new(of))
    }

    /// Where requests go.
    pub fn requests(&self) -> Requests {
        self.of.requests
    }

    /// What is taken out of everything that is written down. Before this is said, nothing is sent.
    pub fn hide(&self, values: Redactor) {
        let _ = self.hidden.set(values);
    }

    /// What came of it all.
    pub fn finish(&self) -> Played {
        let mut state = self.state();
        let missing = std::mem::take(&mut state.missing)
            .into_iter()
            .map(|missing| Diagnostic::error("not_recorded", self.of.file.as_str(), missing.what).hint(missing.hint));
        let missing = missing.collect();
        let taken = std::mem::take(&mut state.taken).into_iter().map(|taken| Exchange {
            test: None,
            keep: false,
            // Nobody waited for its end.
            outcome: taken.outcome.unwrap_or_else(|| {
                Outcome::Failure(Kind::Timeout, format!("{} did not answer in time", place(&taken.asked.url)))
            }),
            request: taken.asked,
        });
        Played { missing, taken: taken.collect() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next exchange that answers a request: the first that has not answered yet, else the last one.
    fn next(&self, state: &mut State, question: &Question) -> Option<usize> {
        let mut last = None;
        for (at, exchange) in self.of.exchanges.iter().enumerate() {
            let counts = match self.of.requests {
                Requests::Replayed => true,
                Requests::Recorded => exchange.keep,
            };
            if !counts || !self.is_mine(exchange) || !exchange.request.fits(question) {
                continue;
            }
            last = Some(at);
            if !state.used[at] {
                state.used[at] = true;
                break;
            }
        }
        last
    }

    fn is_mine(&self, exchange: &Exchange) -> bool {
        exchange.test.as_ref().is_none_or(|test| *test == self.of.test)
    }

    fn unknown(&self, state: &mut State, question: &Question) -> Error {
        let what = format!("{} is not recorded in {}", question.shown(), self.of.file);
        let mut near: Vec<(usize, String)> = Vec::new();
        for exchange in self.of.exchanges.iter() {
            let closeness = exchange.request.closeness(question);
            if closeness < 4 && !exchange.request.fits(question) {
                continue;
            }
            let mut differences = exchange.request.differences(question);
            if let Some(test) = exchange.test.as_ref().filter(|_| !self.is_mine(exchange)) {
                differences.push(format!("it is for `{test}` alone"));
            }
            let text = format!("{} is recorded: {}", exchange.request.shown(), differences.join(", "));
            if !near.iter().any(|(_, said)| *said == text) {
                near.push((closeness, text));
            }
        }
        near.sort_by_key(|(closeness, _)| std::cmp::Reverse(*closeness));
        let mut hint: Vec<String> = near.into_iter().take(NEAR).map(|(_, text)| text).collect();
        hint.push(format!("to record it, type: lapidary test --record {}", self.of.plugin).trim_end().to_owned());
        let hint = hint.join("; ");
        if !state.missing.iter().any(|missing| missing.what == what) {
            state.missing.push(Missing { what: what.clone(), hint: hint.clone() });
        }
        Error::new(Kind::UpstreamUnavailable, what).with_retryable(false).hint(hint)
    }

    /// Without the values of any credential.
    fn concealed(&self, mut hop: Hop) -> Result<Hop> {
        let hidden = self.hidden.get().ok_or_else(|| Error::internal("the recorder does not know what to hide"))?;
        if !hidden.is_empty() {
            hop.url = hidden.text(&hop.url).into_owned();
            hop.headers.iter_mut().for_each(|(_, value)| *value = hidden.text(value).into_owned());
            hop.body = hop.body.map(|body| hidden.bytes(body));
        }
        Ok(hop)
    }
}

impl Tape for Deck {
    fn ask(&self, hop: Hop) -> Result<Play> {
        let question = match self.of.requests {
            Requests::Replayed => Question::of(hop),
            Requests::Recorded => Question::of(self.concealed(hop)?),
        };
        let mut state = self.state();
        if let Some(at) = self.next(&mut state, &question) {
            return match &self.of.exchanges[at].outcome {
                Outcome::Answer(reply) => Ok(Play::Answer(reply.heard())),
                Outcome::Failure(kind, message) => Err(Error::new(*kind, message.clone())),
            };
        }
        match self.of.requests {
            Requests::Replayed => Err(self.unknown(&mut state, &question)),
            Requests::Recorded => {
                state.taken.push(Taken { asked: question.asked(), outcome: None });
                Ok(Play::Send(state.taken.len() - 1))
            }
        }
    }

    fn keep(&self, number: usize, mut heard: Heard) -> Heard {
        let mut state = self.state();
        let is_head = state.taken.get(number).is_some_and(|taken| taken.asked.method == "HEAD");
        heard.headers.retain(|(name, _)| {
            // Of an unpacked body the length says nothing.
            (KEPT.contains(&name.as_str()) && (name != "content-length" || is_head))
                || KEPT_BEGINNINGS.iter().any(|beginning| name.starts_with(beginning))
        });
        if let Some(hidden) = self.hidden.get().filter(|hidden| !hidden.is_empty()) {
            heard.headers.iter_mut().for_each(|(_, value)| *value = hidden.text(value).into_owned());
            heard.body = hidden.bytes(heard.body);
        }
        // Sorted by name, as the file has them.
        heard.headers.sort_by(|(a, _), (b, _)| a.cmp(b));
        if let Some(taken) = state.taken.get_mut(number) {
            let Heard { status, headers, body } = heard.clone();
            taken.outcome = Some(Outcome::Answer(Reply { status, headers, body, file: None }));
        }
        heard
    }

    fn failed(&self, number: usize, error: &Error) {
        let message = match self.hidden.get() {
            Some(hidden) => hidden.text(error.message()).into_owned(),
            None => error.message().to_owned(),
        };
        if let Some(taken) = self.state().taken.get_mut(number) {
            taken.outcome = Some(Outcome::Failure(error.kind(), message));
        }
    }
}

/// Scheme and host of an address.
fn place(url: &str) -> &str {
    let behind = url.find("://").map_or(0, |at| at + 3);
    url[behind..].find('/').map_or(url, |end| &url[..behind + end])
}
