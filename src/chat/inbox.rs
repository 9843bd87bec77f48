//! What waits in the chats, and the threads that give it its turn: one thread a chat, only while something waits there. An item is
//! kept until its turn has ended, so neither a restart nor a fault of the store loses one; its messages and its start are one
//! transaction, so none is said twice. Who may have a turn is decided by [`pick`](super::pick).

use super::live::{Happening, Live};
use super::pick::{self, Pick};
use super::row::{Body, Fault, File};
use super::turn::{Ended, Stop};
use crate::base::error::{Error, Kind, Result};
use crate::service::Services;
use crate::store::inbox::{Item, Lane, NewItem};
use crate::store::messages::{NewMessage, Role};
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak, mpsc};
use std::time::Duration;

/// Most items of one plugin that wait in one chat.
pub const MOST_OF_PLUGIN: u64 = 200;
/// A turn that a stop of the host broke off so often is given up.
const ATTEMPTS: u32 = 3;
/// How long a chat waits for a store that does not answer: at first, and at most.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(2));
/// Most turns at once; other chats wait.
const TURNS: usize = 256;

/// What is to be said.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Payload {
    /// The text.
    pub text: String,
    /// Handles of pictures of the chat.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<String>,
    /// Files of the chat.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<File>,
    /// What stands beside the text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<serde_json::Value>,
}

/// An item to be put.
#[derive(Debug, Clone)]
pub struct Put {
    /// The chat.
    pub chat: i64,
    /// People first.
    pub lane: Lane,
    /// Where it comes from: `user`, a plugin, a door.
    pub source: String,
    /// The plugin, where it is one.
    pub plugin: Option<String>,
    /// The line above the text, where no person typed it.
    pub header: String,
    /// What is to be said.
    pub payload: Payload,
    /// How long it may wait, in milliseconds.
    pub ttl_ms: Option<i64>,
    /// Whether the chat is private now.
    pub private: Option<bool>,
    /// The function of the plugin that hears where it is dropped.
    pub on_drop: Option<String>,
    /// Whether it outlives a restart.
    pub durable: bool,
}

/// Why an item has no turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Drop {
    /// Taken out of the line.
    Removed,
    /// It waited too long.
    Stale,
    /// Its chat is gone.
    Gone,
    /// Its chat is locked away.
    Sealed,
    /// It was put while the chat was private, and the chat is not any more.
    Privacy,
    /// Its turn could not be run.
    Unreachable,
    /// The host was started anew, and it asked not to outlive that.
    Restart,
}

impl Drop {
    /// Its word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Drop::Removed => "removed",
            Drop::Stale => "stale",
            Drop::Gone => "gone",
            Drop::Sealed => "sealed",
            Drop::Privacy => "privacy",
            Drop::Unreachable => "unreachable",
            Drop::Restart => "restart",
        }
    }
}

/// Runs turns; the chats do.
pub trait Turns: Send + Sync {
    /// Whether the chat is private now; nothing where that cannot be known.
    fn is_private(&self, chat: i64) -> Option<bool>;
    /// Runs the turn of these items, whose messages stand in the chat.
    ///
    /// # Errors
    /// What the store says; then the turn is taken up again.
    fn run(&self, chat: i64, turn: &str, resumed: bool, live: &Arc<Live>, stop: &Stop) -> Result<Ended>;
    /// Tells a plugin that an item of it was dropped.
    fn dropped(&self, item: &Item, why: Drop);
}

/// What came of an item that somebody waits for.
pub type Answer = std::result::Result<String, Error>;

/// The inboxes of all chats.
pub struct Inbox {
    services: Arc<Services>,
    state: Mutex<State>,
    ended: Condvar,
    turns: Mutex<Option<Weak<dyn Turns>>>,
    me: Weak<Inbox>,
}

#[derive(Default)]
struct State {
    lines: HashMap<i64, Line>,
    waiting: HashMap<String, mpsc::SyncSender<Answer>>,
    /// Turns that this process began or took up: what it tries again is not counted as broken off.
    begun: HashSet<String>,
    closed: bool,
}

struct Line {
    live: Arc<Live>,
    /// The turn that runs, if one does.
    running: Option<(String, Stop)>,
    has_thread: bool,
}

impl Inbox {
    /// Inboxes over the store. Nothing runs before [`Inbox::open`].
    #[must_use]
    pub fn new(services: Arc<Services>) -> Arc<Inbox> {
        Arc::new_cyclic(|me| Inbox {
            services,
            state: Mutex::default(),
            ended: Condvar::new(),
            turns: Mutex::default(),
            me: me.clone(),
        })
    }

    /// Lets turns run, and takes up what an earlier start left.
    ///
    /// # Errors
    /// What the store says.
    pub fn open(&self, turns: Weak<dyn Turns>) -> Result<()> {
        *self.turns.lock().unwrap_or_else(PoisonError::into_inner) = Some(turns);
        let mut chats = Vec::new();
        for item in self.services.store.all_items()? {
            if item.durable || item.state == crate::store::inbox::ItemState::Running {
                chats.push(item.chat);
            } else {
                self.drop_item(&item, Drop::Restart)?;
            }
        }
        chats.dedup();
        chats.into_iter().for_each(|chat| self.kick(chat));
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The events of a chat.
    #[must_use]
    pub fn live(&self, chat: i64) -> Arc<Live> {
        self.line(&mut self.state(), chat).live.clone()
    }

    fn line<'a>(&self, state: &'a mut State, chat: i64) -> &'a mut Line {
        let first = u64::try_from(self.services.clock.unix_ms()).unwrap_or(1);
        state.lines.entry(chat).or_insert_with(|| Line { live: Live::new(first), running: None, has_thread: false })
    }

    /// Puts an item in line and gives its ticket. It never runs a turn itself.
    ///
    /// # Errors
    /// `inbox_refused` for an empty text or a chat that is gone, `quota` where the plugin has too many items there.
    pub fn put(&self, put: &Put) -> Result<String> {
        let ticket = new_ticket();
        self.put_as(&ticket, put)?;
        Ok(ticket)
    }

    fn put_as(&self, ticket: &str, put: &Put) -> Result<()> {
        if put.payload.text.trim().is_empty() && put.payload.images.is_empty() && put.payload.files.is_empty() {
            return Err(
                Error::new(Kind::InboxRefused, "there is nothing to say").hint("give a text, a picture or a file")
            );
        }
        let store = &self.services.store;
        if let Some(plugin) = &put.plugin
            && store.waiting_of(put.chat, plugin)? >= MOST_OF_PLUGIN
        {
            return Err(Error::new(
                Kind::Quota,
                format!("{MOST_OF_PLUGIN} items of this plugin wait in this chat already"),
            )
            .hint("wait until some have had their turn, or say several things in one"));
        }
        let now = self.services.clock.unix_ms();
        let payload = serde_json::to_string(&put.payload).unwrap_or_default();
        store
            .put_item(&NewItem {
                ticket,
                chat: put.chat,
                lane: put.lane,
                source: &put.source,
                plugin: put.plugin.as_deref(),
                header: &put.header,
                payload: &payload,
                put_at: now,
                expires_at: put.ttl_ms.map(|ttl| now.saturating_add(ttl)),
                private_at_put: put.private,
                on_drop: put.on_drop.as_deref(),
                durable: put.durable,
            })
            .map_err(|e| match e.kind() {
                Kind::NotFound => Error::new(Kind::InboxRefused, "this chat is gone"),
                _ => e,
            })?;
        let position = pick::position(&store.items(put.chat)?, ticket);
        let typed = (put.header.is_empty()).then(|| put.payload.text.clone());
        let queued = Happening::Queued { ticket: ticket.to_owned(), position, source: put.source.clone(), text: typed };
        self.live(put.chat).tell(queued);
        self.kick(put.chat);
        Ok(())
    }

    /// Puts an item in line and waits for what comes of it; at the time limit it is taken out again, unless its turn has begun.
    ///
    /// # Errors
    /// As [`Inbox::put`]; `timeout`; why it was dropped, or failed.
    pub fn ask(&self, put: &Put, limit: Duration) -> Result<String> {
        let (tx, rx) = mpsc::sync_channel(1);
        let ticket = new_ticket();
        // Before it is in line, so that its turn cannot end before somebody waits for it.
        self.state().waiting.insert(ticket.clone(), tx);
        if let Err(e) = self.put_as(&ticket, put) {
            self.state().waiting.remove(&ticket);
            return Err(e);
        }
        match rx.recv_timeout(limit) {
            Ok(answer) => answer,
            Err(_) => {
                self.state().waiting.remove(&ticket);
                self.take_back(put.chat, &ticket)?;
                Err(Error::new(Kind::Timeout, format!("there was no answer within {} s", limit.as_secs()))
                    .hint("ask with a longer `timeout`, or tell instead of asking"))
            }
        }
    }

    /// What waits or runs in a chat.
    ///
    /// # Errors
    /// What the store says.
    pub fn items(&self, chat: i64) -> Result<Vec<Item>> {
        self.expire(chat)?;
        self.services.store.items(chat)
    }

    /// Takes an item out of the line; says whether it was still there.
    ///
    /// # Errors
    /// What the store says.
    pub fn take_back(&self, chat: i64, ticket: &str) -> Result<bool> {
        let Some(item) = self.services.store.item(ticket)?.filter(|item| item.chat == chat) else { return Ok(false) };
        if item.state == crate::store::inbox::ItemState::Running {
            return Ok(false);
        }
        self.drop_item(&item, Drop::Removed)
    }

    /// Stops the turn that runs in a chat; says whether one did.
    pub fn stop(&self, chat: i64) -> bool {
        match self.state().lines.get(&chat).and_then(|line| line.running.clone()) {
            Some((_, stop)) => {
                stop.stop();
                true
            }
            None => false,
        }
    }

    /// Whether a turn runs in a chat.
    #[must_use]
    pub fn is_busy(&self, chat: i64) -> bool {
        self.state().lines.get(&chat).is_some_and(|line| line.running.is_some())
    }

    /// Waits until no turn runs in a chat and nothing waits there, at most so long; says whether it came to that.
    pub fn idle(&self, chat: i64, most: Duration) -> bool {
        let state = self.state();
        let is_at_work = |state: &mut State| state.lines.get(&chat).is_some_and(|line| line.has_thread);
        !self.ended.wait_timeout_while(state, most, is_at_work).unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }

    /// Drops what has waited too long in any chat, and looks whether something waits that another process put there.
    ///
    /// # Errors
    /// What the store says.
    pub fn sweep(&self) -> Result<()> {
        let mut chats: Vec<i64> = self.services.store.all_items()?.into_iter().map(|item| item.chat).collect();
        chats.dedup();
        for chat in chats {
            self.expire(chat)?;
            self.kick(chat);
        }
        let mut state = self.state();
        state.lines.retain(|_, line| line.has_thread || line.live.is_watched());
        Ok(())
    }

    /// Ends: turns are stopped as a stop of the host does it, so that they go on at the next start.
    pub fn close(&self) {
        let mut state = self.state();
        state.closed = true;
        for line in state.lines.values() {
            if let Some((_, stop)) = &line.running {
                stop.interrupt();
            }
        }
        state.waiting.clear();
        drop(state);
    }

    fn expire(&self, chat: i64) -> Result<()> {
        let items = self.services.store.items(chat)?;
        pick::stale(&items, self.services.clock.unix_ms())
            .try_for_each(|item| self.drop_item(item, Drop::Stale).map(|_| ()))
    }

    /// Takes an item away and tells everybody who cares.
    fn drop_item(&self, item: &Item, why: Drop) -> Result<bool> {
        if self.services.store.remove_item(&item.ticket)?.is_none() {
            return Ok(false);
        }
        let payload: Payload = serde_json::from_str(&item.payload).unwrap_or_default();
        let typed = item.header.is_empty().then_some(payload.text);
        self.live(item.chat).tell(Happening::Dropped {
            ticket: item.ticket.clone(),
            kind: why.word().to_owned(),
            text: typed,
        });
        self.answer(&item.ticket, Err(Error::new(Kind::InboxRefused, format!("it was dropped: {}", why.word()))));
        if let Some(turns) = self.turns() {
            turns.dropped(item, why);
        }
        Ok(true)
    }

    /// Tells everybody who cares that an item went with its chat.
    pub fn gone(&self, item: &Item) {
        self.answer(&item.ticket, Err(Error::new(Kind::InboxRefused, "it was dropped: gone")));
        if let Some(turns) = self.turns() {
            turns.dropped(item, Drop::Gone);
        }
    }

    fn answer(&self, ticket: &str, answer: Answer) {
        if let Some(waiting) = self.state().waiting.remove(ticket) {
            let _ = waiting.try_send(answer);
        }
    }

    fn turns(&self) -> Option<Arc<dyn Turns>> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner).as_ref()?.upgrade()
    }

    /// Sees to it that what waits in a chat has its turn.
    pub fn kick(&self, chat: i64) {
        if self.turns().is_none() {
            return;
        }
        let mut state = self.state();
        if state.closed || state.lines.values().filter(|line| line.has_thread).count() >= TURNS {
            return;
        }
        let line = self.line(&mut state, chat);
        if std::mem::replace(&mut line.has_thread, true) {
            return;
        }
        drop(state);
        let me = self.me.clone();
        let spawned = std::thread::Builder::new().name("lapidary-turn".into()).spawn(move || {
            if let Some(me) = me.upgrade() {
                me.drain(chat);
            }
        });
        if spawned.is_err() {
            self.line(&mut self.state(), chat).has_thread = false;
        }
    }

    fn drain(&self, chat: i64) {
        let mut wait = BACKOFF.0;
        loop {
            let worked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| self.step(chat)));
            let panicked = worked.is_err();
            let more = match worked {
                Ok(Ok(more)) => {
                    wait = BACKOFF.0;
                    more
                }
                Ok(Err(e)) => {
                    tracing::warn!(chat, code = e.code(), "a turn waits for the store");
                    std::thread::park_timeout(wait);
                    wait = (wait * 2).min(BACKOFF.1);
                    true
                }
                Err(_) => {
                    tracing::error!(chat, "a turn panicked");
                    std::thread::park_timeout(wait);
                    wait = (wait * 2).min(BACKOFF.1);
                    true
                }
            };
            let mut state = self.state();
            let closed = state.closed;
            let was = self.line(&mut state, chat).running.take();
            if panicked && let Some((turn, _)) = was {
                state.begun.remove(&turn);
            }
            let line = self.line(&mut state, chat);
            if closed || !more {
                line.has_thread = false;
                drop(state);
                self.ended.notify_all();
                // Something may have come between the last look and this.
                if !closed && self.services.store.items(chat).is_ok_and(|items| pick::next(&items) != Pick::Nothing) {
                    self.kick(chat);
                }
                return;
            }
        }
    }

    /// One turn, or nothing; tells whether there may be more.
    fn step(&self, chat: i64) -> Result<bool> {
        let Some(turns) = self.turns() else { return Ok(false) };
        self.expire(chat)?;
        let store = &self.services.store;
        let items = store.items(chat)?;
        let of = |tickets: &[String]| {
            items.iter().filter(|item| tickets.contains(&item.ticket)).cloned().collect::<Vec<_>>()
        };
        let (tickets, resumed) = match pick::next(&items) {
            Pick::Nothing => return Ok(false),
            Pick::Resume(tickets) => (tickets, true),
            Pick::Run(tickets) => (tickets, false),
        };
        let batch = of(&tickets);
        let Some(head) = batch.first() else { return Ok(false) };
        let names: Vec<&str> = tickets.iter().map(String::as_str).collect();
        // Privacy rolls downhill only: what was put while the chat was private is not said where it is not.
        if !resumed
            && batch.iter().any(|item| item.private_at_put == Some(true))
            && turns.is_private(chat) == Some(false)
        {
            for item in &batch {
                self.drop_item(item, Drop::Privacy)?;
            }
            return Ok(true);
        }
        let live = self.live(chat);
        let turn = head.ticket.clone();
        let stop = Stop::default();
        self.line(&mut self.state(), chat).running = Some((turn.clone(), stop.clone()));
        let is_taken_up = self.state().begun.insert(turn.clone());
        if !resumed {
            self.begin(chat, &batch, &names, &live)?;
        } else if is_taken_up {
            if head.attempts >= ATTEMPTS {
                let fault = Fault {
                    code: Kind::OutcomeUnknown.code().to_owned(),
                    message: format!("the host stopped {ATTEMPTS} times during this turn, so it was given up"),
                    hint: Some("send the message again".to_owned()),
                };
                let body = Body { error: Some(fault), ..Body::default() }.to_json();
                let at = self.services.clock.unix_ms();
                let last = NewMessage { role: Role::Assistant, at, turn: &turn, body: &body };
                store.finish_items_with(&names, chat, &[last])?;
                return Ok(true);
            }
            store.count_attempt(&turn)?;
        }
        live.tell(Happening::TurnStarted { turn: turn.clone(), resumed });
        let ended = turns.run(chat, &turn, resumed, &live, &stop)?;
        if self.state().closed {
            // The next start goes on with it.
            return Ok(false);
        }
        store.finish_items(&names)?;
        self.state().begun.remove(&turn);
        let (how, error, answer) = match ended {
            Ended::Answered(text) => ("done", None, Ok(text)),
            Ended::Stopped => ("cancelled", None, Err(Error::new(Kind::Cancelled, "the turn was stopped"))),
            Ended::Failed(fault) => {
                let e = Error::new(Kind::UpstreamUnavailable, fault.message.clone());
                ("error", Some(fault), Err(e))
            }
        };
        self.line(&mut self.state(), chat).running = None;
        for ticket in &tickets {
            self.answer(ticket, answer.clone());
        }
        live.tell(Happening::TurnEnded { turn, how: how.to_owned(), error });
        Ok(true)
    }

    /// Writes what the items say, as one message, and marks them as begun: one transaction.
    fn begin(&self, chat: i64, batch: &[Item], names: &[&str], live: &Arc<Live>) -> Result<()> {
        let mut body = Body::default();
        for (n, item) in batch.iter().enumerate() {
            let payload: Payload = serde_json::from_str(&item.payload).unwrap_or_default();
            if n > 0 {
                body.text.push_str("\n\n");
                live.tell(Happening::Merged { ticket: item.ticket.clone(), into: batch[0].ticket.clone() });
            } else {
                body.header = Some(item.header.clone()).filter(|header| !header.is_empty());
                body.source = Some(item.source.clone());
            }
            body.text.push_str(&payload.text);
            body.images.extend(payload.images);
            body.files.extend(payload.files);
            body.parts.extend(payload.parts);
        }
        if body.header.is_some() {
            let more = self.services.store.items(chat)?.len().saturating_sub(batch.len());
            if more > 0 {
                body.model_text = Some(format!("{}\n\n[{more} more waiting in the inbox]", body.text));
            }
        }
        let (at, json) = (self.services.clock.unix_ms(), body.to_json());
        let row = NewMessage { role: Role::User, at, turn: names[0], body: &json };
        let ids = self.services.store.start_items(names, &[row])?;
        if let Some(id) = ids.first() {
            let turn = names[0].to_owned();
            let entry = super::row::Entry { id: *id, role: Role::User, at, turn, body };
            live.tell(Happening::Saved { message: Box::new(entry) });
        }
        Ok(())
    }
}

/// A name that nothing in any inbox has.
fn new_ticket() -> String {
    format!("{:012x}", fastrand::u64(..1 << 48))
}
