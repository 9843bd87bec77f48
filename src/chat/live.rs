//! What happens in a chat while it happens: a ring of numbered events that any number of viewers read at their own pace. Nobody
//! waits for a viewer; one that falls behind the ring is told how things stand and goes on from there.

use super::row::Entry;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// Most characters of text that the ring of a chat holds.
const RING_CHARS: usize = 256_000;
/// Most events that it holds.
const RING_EVENTS: usize = 20_000;

/// Something that happened in a chat.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
#[schemars(rename = "ChatEvent")]
pub enum Happening {
    /// Something waits for its turn.
    Queued {
        /// What it is called until it has had its turn.
        ticket: String,
        /// How many turns come before it, itself counted.
        position: usize,
        /// Where it came from.
        source: String,
        /// What a person typed; nothing for what a machine wrote.
        #[serde(skip_serializing_if = "Option::is_none")]
        text: Option<String>,
    },
    /// What waited became part of another turn.
    Merged {
        /// What waited.
        ticket: String,
        /// The turn that it is part of now.
        into: String,
    },
    /// What waited will have no turn.
    Dropped {
        /// What waited.
        ticket: String,
        /// Why: `removed`, `stale`, `gone`, `sealed`, `privacy`, `unreachable` or `restart`.
        kind: String,
        /// What a person typed, to be given back.
        #[serde(skip_serializing_if = "Option::is_none")]
        text: Option<String>,
    },
    /// A turn began.
    TurnStarted {
        /// The turn.
        turn: String,
        /// Whether it goes on with one that a stop of the host broke off.
        resumed: bool,
    },
    /// The model is asked once more.
    Round {
        /// From 1.
        n: u32,
    },
    /// A piece of the answer.
    Content {
        /// The piece.
        text: String,
    },
    /// A piece of what the model thinks.
    Thinking {
        /// The piece.
        text: String,
    },
    /// The model names a tool; its arguments are still coming.
    ToolPending {
        /// The call.
        id: String,
        /// The tool.
        name: String,
    },
    /// A call runs.
    ToolStart {
        /// The call.
        id: String,
        /// The tool.
        name: String,
        /// The arguments as they came.
        arguments: String,
    },
    /// A call says how far it is.
    ToolProgress {
        /// The call.
        id: String,
        /// In its own words.
        #[serde(skip_serializing_if = "Option::is_none")]
        text: Option<String>,
        /// Steps done.
        #[serde(skip_serializing_if = "Option::is_none")]
        done: Option<i64>,
        /// Of so many.
        #[serde(skip_serializing_if = "Option::is_none")]
        total: Option<i64>,
    },
    /// A call ended.
    ToolEnd {
        /// The call.
        id: String,
        /// The tool.
        name: String,
        /// Whether it succeeded.
        ok: bool,
        /// The code of its failure.
        #[serde(skip_serializing_if = "Option::is_none")]
        code: Option<String>,
        /// The beginning of what a person reads of it.
        text: String,
        /// What stands beside it.
        parts: Vec<Value>,
    },
    /// Something a person should know.
    Notice {
        /// What.
        message: String,
        /// `info`, `warning` or `error`.
        severity: String,
    },
    /// A message was written, in the place of what was streamed of it.
    Saved {
        /// The message.
        message: Box<Entry>,
    },
    /// A turn ended. The chat is free when this is told.
    TurnEnded {
        /// The turn.
        turn: String,
        /// `done`, `cancelled` or `error`.
        how: String,
        /// Why there is no answer.
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<super::row::Fault>,
    },
    /// The chat was renamed, deleted or cleared, or its messages or settings were changed: what is shown is to be fetched anew.
    ChatChanged {
        /// `renamed`, `deleted`, `cleared`, `messages` or `settings`.
        what: String,
        /// Its new name.
        #[serde(skip_serializing_if = "Option::is_none")]
        name: Option<String>,
    },
    /// Events were missed: everything is to be fetched anew; this is how far the turn is that runs now.
    Resync {
        /// Nothing where no turn runs.
        #[serde(skip_serializing_if = "Option::is_none")]
        turn: Option<String>,
        /// What was streamed since the last message that was written.
        text: String,
        /// The same of what the model thinks.
        thinking: String,
    },
}

impl Happening {
    fn chars(&self) -> usize {
        match self {
            Happening::Content { text } | Happening::Thinking { text } => text.len(),
            Happening::ToolEnd { text, .. } => text.len() + 64,
            Happening::ToolStart { arguments, .. } => arguments.len() + 64,
            Happening::Saved { message } => message.body.text.len() + 256,
            _ => 64,
        }
    }
}

/// An event with its number. Numbers of one chat rise without a gap, also over a restart of the host (there with one).
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "NumberedChatEvent")]
pub struct Numbered {
    /// The number.
    pub seq: u64,
    /// What happened.
    #[serde(flatten, serialize_with = "shared")]
    pub what: Arc<Happening>,
}

fn shared<S: serde::Serializer>(what: &Arc<Happening>, serializer: S) -> Result<S::Ok, S::Error> {
    what.as_ref().serialize(serializer)
}

/// The ring of one chat.
pub struct Live {
    ring: Mutex<Ring>,
    newest: watch::Sender<u64>,
}

struct Ring {
    events: VecDeque<Arc<Happening>>,
    /// The number of the next event; those in the ring have the numbers before it.
    next: u64,
    chars: usize,
    turn: Option<String>,
    text: String,
    thinking: String,
}

impl Live {
    /// A ring whose numbers begin at `first`: the time in milliseconds does, so that no number comes twice.
    #[must_use]
    pub fn new(first: u64) -> Arc<Live> {
        let ring = Ring {
            events: VecDeque::new(),
            next: first,
            chars: 0,
            turn: None,
            text: String::new(),
            thinking: String::new(),
        };
        Arc::new(Live { ring: Mutex::new(ring), newest: watch::Sender::new(first) })
    }

    fn ring(&self) -> MutexGuard<'_, Ring> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells what happened, to whoever looks.
    pub fn tell(&self, what: Happening) {
        let mut ring = self.ring();
        match &what {
            Happening::TurnStarted { turn, .. } => ring.begin(Some(turn.clone())),
            Happening::TurnEnded { .. } => ring.begin(None),
            Happening::Content { text } => ring.text.push_str(text),
            Happening::Thinking { text } => ring.thinking.push_str(text),
            Happening::Saved { .. } => {
                ring.text.clear();
                ring.thinking.clear();
            }
            _ => {}
        }
        ring.chars += what.chars();
        ring.events.push_back(Arc::new(what));
        ring.next += 1;
        while ring.chars > RING_CHARS || ring.events.len() > RING_EVENTS {
            let Some(oldest) = ring.events.pop_front() else { break };
            ring.chars -= oldest.chars();
        }
        let next = ring.next;
        drop(ring);
        self.newest.send_replace(next);
    }

    /// Whether somebody looks.
    #[must_use]
    pub fn is_watched(&self) -> bool {
        self.newest.receiver_count() > 0
    }

    /// The number of the last event.
    #[must_use]
    pub fn last(&self) -> u64 {
        self.ring().next.saturating_sub(1)
    }

    /// A viewer that is told everything after the event `since`; without one, everything from now on, and first how far the turn
    /// is that runs.
    #[must_use]
    pub fn watch(self: &Arc<Self>, since: Option<u64>) -> Watcher {
        let newest = self.newest.subscribe();
        let next = since.map_or(0, |since| since.saturating_add(1));
        Watcher { live: self.clone(), newest, next }
    }
}

impl Ring {
    fn begin(&mut self, turn: Option<String>) {
        self.turn = turn;
        self.text.clear();
        self.thinking.clear();
    }
}

/// One viewer.
pub struct Watcher {
    live: Arc<Live>,
    newest: watch::Receiver<u64>,
    next: u64,
}

impl Watcher {
    /// What comes next, all that is there at once; waits where nothing is. Never empty.
    pub async fn next(&mut self) -> Vec<Numbered> {
        loop {
            self.newest.borrow_and_update();
            if let Some(events) = self.ready() {
                return events;
            }
            // The sender lives in the ring that this holds.
            let _ = self.newest.changed().await;
        }
    }

    /// What is there now; nothing where the viewer has seen everything.
    pub fn ready(&mut self) -> Option<Vec<Numbered>> {
        let ring = self.live.ring();
        if self.next == ring.next {
            return None;
        }
        let oldest = ring.next - ring.events.len() as u64;
        let skip =
            self.next.checked_sub(oldest).filter(|_| self.next < ring.next).and_then(|n| usize::try_from(n).ok());
        let events = match skip {
            Some(skip) => {
                let events = ring.events.iter().skip(skip);
                (self.next..).zip(events).map(|(seq, what)| Numbered { seq, what: what.clone() }).collect()
            }
            None => {
                let what = Happening::Resync {
                    turn: ring.turn.clone(),
                    text: ring.text.clone(),
                    thinking: ring.thinking.clone(),
                };
                vec![Numbered { seq: ring.next.saturating_sub(1), what: Arc::new(what) }]
            }
        };
        self.next = ring.next;
        Some(events)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn content(text: &str) -> Happening {
        Happening::Content { text: text.to_owned() }
    }

    fn read(watcher: &mut Watcher) -> String {
        let mut text = String::new();
        while let Some(events) = watcher.ready() {
            for event in events {
                match &*event.what {
                    Happening::Content { text: piece } => text.push_str(piece),
                    Happening::Resync { text: all, .. } => text = format!("[{all}]"),
                    _ => {}
                }
            }
        }
        text
    }

    #[test]
    fn a_viewer_that_comes_back_reads_each_event_once_wherever_it_broke_off() {
        let live = Live::new(1_000);
        live.tell(Happening::TurnStarted { turn: "t".into(), resumed: false });
        for n in 0..100 {
            live.tell(content(&format!("{n} ")));
        }
        let whole: String = (0..100).map(|n| format!("{n} ")).collect();
        for since in 1_000..=1_100 {
            let read = read(&mut live.watch(Some(since)));
            assert!(whole.ends_with(&read), "{since}");
            assert_eq!(read.split_whitespace().count(), usize::try_from(1_100 - since).unwrap());
        }
    }

    #[test]
    fn a_viewer_that_comes_fresh_or_too_late_is_told_how_far_the_turn_is() {
        let live = Live::new(1_000);
        live.tell(Happening::TurnStarted { turn: "t".into(), resumed: false });
        live.tell(content("so far"));
        for since in [None, Some(3), Some(999_999)] {
            let mut watcher = live.watch(since);
            assert_eq!(read(&mut watcher), "[so far]", "{since:?}");
            live.tell(content("!"));
            assert_eq!(read(&mut watcher), "!");
            live.tell(Happening::TurnEnded { turn: "t".into(), how: "done".into(), error: None });
            live.tell(Happening::TurnStarted { turn: "t".into(), resumed: false });
            live.tell(content("so far"));
        }
    }

    #[test]
    fn a_viewer_that_is_too_slow_is_told_to_fetch_everything_and_the_ring_stays_small() {
        let live = Live::new(0);
        let mut slow = live.watch(Some(0));
        for _ in 0..300 {
            live.tell(content(&"x".repeat(4096)));
        }
        assert!(live.ring().chars <= RING_CHARS);
        let events = slow.ready().unwrap();
        assert!(matches!(&*events[0].what, Happening::Resync { .. }), "{}", events.len());
        assert_eq!(events[0].seq, live.last());
        assert!(slow.ready().is_none());
    }
}
