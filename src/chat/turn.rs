//! One turn: the model is asked, what it calls is run, it is asked again, until it answers. Everything is written as it happens, so
//! that a stop of the host at any point leaves a conversation that can go on. It decides nothing about who may call what.

mod calls;
pub mod command;

use super::history::{self, Picture, Shelf, Window};
use super::live::{Happening, Live};
use super::prompt;
use super::row::{Body, Call, Entry, Fault, Usage};
use super::settings::Settings;
use crate::base::error::{Error, Kind, Result};
use crate::model::repair::calls_in_text;
use crate::model::{Content, Delta, Finish, Message, Model, Profile, Reply, Request, ToolCall};
use crate::service::Services;
use crate::service::images::{Audience, shown_image};
use crate::service::picture::{View, id_of};
use crate::service::scopes::ScopeValues;
use crate::store::messages::{NewMessage, Role};
use crate::tool::dialect::{Dialect, WireNames, define_all};
use crate::tool::dispatch::Dispatcher;
use crate::tool::registry::Snapshot;
use serde_json::Value;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use tokio::sync::watch;

/// Most calls of one reply that are kept; a model that lists more is told so.
const MOST_CALLS: usize = 64;
/// Rows that are read at once, from the newest back.
const PAGE: usize = 400;
/// Tokens that are left for the answer, where a context is known.
const FOR_ANSWER: usize = 1024;

/// A word that stops a turn. It stays said.
#[derive(Clone)]
pub struct Stop(Arc<watch::Sender<Said>>);

/// Who stops a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Said {
    Nothing,
    /// A person: the turn is over.
    Person,
    /// The host, which ends: the next start goes on with the turn.
    Host,
}

impl Default for Stop {
    fn default() -> Self {
        Stop(Arc::new(watch::Sender::new(Said::Nothing)))
    }
}

impl Stop {
    /// A person stops it.
    pub fn stop(&self) {
        self.0.send_replace(Said::Person);
    }

    /// The host ends.
    pub fn interrupt(&self) {
        self.0.send_replace(Said::Host);
    }

    /// Whether it was stopped, by whomever.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        *self.0.borrow() != Said::Nothing
    }

    fn is_interrupted(&self) -> bool {
        *self.0.borrow() == Said::Host
    }

    /// Waits until it is stopped.
    pub async fn stopped(&self) {
        let mut heard = self.0.subscribe();
        let _ = heard.wait_for(|said| *said != Said::Nothing).await;
    }
}

/// How a turn ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Ended {
    /// With an answer; it may be empty.
    Answered(String),
    /// A person stopped it.
    Stopped,
    /// Without an answer.
    Failed(Fault),
}

/// What a turn runs with: fixed when it begins.
pub struct Turn {
    /// The services.
    pub services: Arc<Services>,
    /// Runs the tools.
    pub dispatcher: Arc<Dispatcher>,
    /// The chat's number.
    pub chat: i64,
    /// What the chat is called now.
    pub name: Arc<str>,
    /// The chat's settings.
    pub settings: Settings,
    /// The values of its scopes.
    pub scopes: Arc<ScopeValues>,
    /// The turn's own name.
    pub id: String,
    /// Who answers; nothing where a call was typed and there is no model.
    pub model: Option<Arc<dyn Model>>,
    /// Tools that the model is told of, by name.
    pub tools: BTreeSet<String>,
    /// The set of plugins that this turn holds.
    pub snapshot: Arc<Snapshot>,
    /// Who is told what happens.
    pub live: Arc<Live>,
    /// What stops it.
    pub stop: Stop,
}

/// What the model is told of the tools.
struct Offered {
    definitions: Vec<Value>,
    names: WireNames,
    tokens: usize,
    /// For a model without tool calls: the tools as text.
    text: String,
}

impl Turn {
    /// Runs the turn to its end. What began it stands in the chat already; what was broken off is mended first.
    ///
    /// # Errors
    /// What the store says: then the turn can be taken up again later.
    pub fn run(&self) -> Result<Ended> {
        let mut rows = self.read()?;
        self.mend(&mut rows)?;
        let offered = self.offered();
        let mut counts: HashMap<String, u32> = HashMap::new();
        for n in 1..=self.settings.rounds {
            if self.stop.is_stopped() {
                return self.cancelled(Reply::default());
            }
            self.live.tell(Happening::Round { n });
            let reply = match self.ask(&rows, &offered, Asking::Freely)? {
                Asked::Replied(reply) => reply,
                Asked::Stopped(heard) => return self.cancelled(heard),
                Asked::Failed(e, heard) => return self.failed(&e, &heard),
            };
            let (reply, made) = self.read_calls(reply, &offered, n);
            if made.is_empty() {
                return self.answered(reply, Steps::Left);
            }
            rows.push(self.save(Role::Assistant, self.body_of(&reply, made.clone()))?);
            let results = self.run_calls(&made, &mut counts, self.settings.rounds - n);
            for entry in self.save_all(results)? {
                rows.push(entry);
            }
            if self.stop.is_stopped() {
                return self.cancelled(Reply::default());
            }
        }
        match self.ask(&rows, &offered, Asking::ForAnEnd)? {
            Asked::Replied(reply) => self.answered(reply, Steps::UsedUp),
            Asked::Stopped(heard) => self.cancelled(heard),
            Asked::Failed(e, heard) => self.failed(&e, &heard),
        }
    }

    /// The rows that may fit what a model is sent, oldest first.
    fn read(&self) -> Result<Vec<Entry>> {
        let room = self.profile().context as usize;
        let (mut rows, mut tokens): (Vec<Entry>, usize) = (Vec::new(), 0);
        let mut before = None;
        loop {
            let page = self.services.store.messages(self.chat, before, PAGE)?;
            let is_last = page.len() < PAGE;
            before = page.first().map(|row| row.id);
            let mut entries: Vec<Entry> = page.into_iter().map(Entry::of).collect();
            tokens +=
                entries.iter().map(|row| crate::tool::tokens::estimate_tokens(row.body.for_model())).sum::<usize>();
            entries.append(&mut rows);
            rows = entries;
            if is_last || (room > 0 && tokens > room) || rows.len() >= 25 * PAGE {
                return Ok(rows);
            }
        }
    }

    /// Gives every call of this turn a result that a stop of the host left without one.
    fn mend(&self, rows: &mut Vec<Entry>) -> Result<()> {
        let Some(at) = rows.iter().rposition(|row| row.role == Role::Assistant && row.turn == self.id) else {
            return Ok(());
        };
        let answered: BTreeSet<String> = rows[at + 1..].iter().filter_map(|row| row.body.call.clone()).collect();
        let missing: Vec<Body> = rows[at]
            .body
            .calls
            .iter()
            .filter(|call| !answered.contains(&call.id))
            .map(|call| {
                calls::refused(
                    call,
                    &Error::new(Kind::OutcomeUnknown, "the host stopped while this call ran")
                        .hint("find out whether it had its effect before you call it again"),
                )
            })
            .collect();
        if !missing.is_empty() {
            rows.extend(self.save_all(missing)?);
        }
        Ok(())
    }

    fn profile(&self) -> Profile {
        self.model.as_ref().map_or_else(|| Profile::new("", ""), |model| model.profile().clone())
    }

    /// Runs one call that a person typed, and asks no model.
    ///
    /// # Errors
    /// What the store says.
    pub fn call_only(&self, call: &Call) -> Result<Ended> {
        self.save(Role::Assistant, Body { calls: vec![call.clone()], ..Body::default() })?;
        let results = self.run_calls(std::slice::from_ref(call), &mut HashMap::new(), 0);
        let entries = self.save_all(results)?;
        if self.stop.is_stopped() {
            return Ok(Ended::Stopped);
        }
        Ok(Ended::Answered(entries.into_iter().map(|entry| entry.body.text).collect()))
    }

    fn offered(&self) -> Offered {
        let specs = self.snapshot.iter().filter(|tool| self.tools.contains(&tool.spec.name)).map(|tool| &*tool.spec);
        let profile = self.profile();
        let dialect = profile.dialect.parse().unwrap_or(Dialect::OpenAi);
        let dialect = if profile.tools { dialect } else { Dialect::Plain };
        let (made, names) = define_all(specs, dialect);
        let tokens = made.iter().map(|definition| definition.tokens).sum();
        let text = if dialect == Dialect::Plain {
            made.iter().filter_map(|definition| definition.definition.as_str()).collect::<Vec<_>>().join("\n\n")
        } else {
            String::new()
        };
        let definitions = if text.is_empty() { made.into_iter().map(|d| d.definition).collect() } else { Vec::new() };
        Offered { definitions, names, tokens, text }
    }

    /// Asks the model once; an empty reply is asked for once more.
    fn ask(&self, rows: &[Entry], offered: &Offered, asking: Asking) -> Result<Asked> {
        let profile = self.profile();
        let is_free = asking == Asking::Freely;
        let today = crate::service::time::now(&self.services.clock, None)
            .map(|now| now.get(..10).unwrap_or_default().to_owned())
            .unwrap_or_default();
        let mut system = prompt::system(&self.settings, is_free && !self.tools.is_empty(), &today);
        if is_free && !offered.text.is_empty() {
            system.push_str("\n\nTo call a tool, write one line {\"name\": \"tool\", \"arguments\": {..}} and nothing else. The tools:\n\n");
            system.push_str(&offered.text);
        }
        let reserved =
            history::cost(&Message::System(system.clone())) + if is_free { offered.tokens } else { 0 } + FOR_ANSWER;
        let context = profile.context as usize;
        let window = Window {
            tokens: if context == 0 { 0 } else { context.saturating_sub(context / 100 + 512 + reserved).max(1) },
            picture_turns: self.settings.images as usize,
            vision: profile.vision,
        };
        let sent = history::sent(rows, self, &window);
        if sent.overflows {
            let e = Error::new(Kind::TooLarge, "this message does not fit the model's context").hint(format!(
                "it has {context} tokens: {} go to the tools, {} to this turn; choose fewer tools, or send less",
                offered.tokens, sent.tokens
            ));
            return Ok(Asked::Failed(e, Reply::default()));
        }
        let mut messages = vec![Message::System(system)];
        messages.extend(sent.messages);
        if !is_free {
            messages.push(Message::User(vec![Content::Text(prompt::OUT_OF_STEPS.to_owned())]));
        }
        let tools: &[Value] = if is_free { &offered.definitions } else { &[] };
        let request = Request { messages: &messages, tools, temperature: None, max_tokens: None };
        for again in [true, false] {
            match self.ask_once(&request) {
                Asked::Replied(reply) if again && reply.text.trim().is_empty() && reply.calls.is_empty() => {}
                asked => return Ok(asked),
            }
        }
        Ok(Asked::Replied(Reply::default()))
    }

    fn ask_once(&self, request: &Request) -> Asked {
        let Some(model) = &self.model else {
            return Asked::Failed(Error::internal("this turn has no model"), Reply::default());
        };
        let mut heard = Reply::default();
        let mut tell = |delta: Delta| match delta {
            Delta::Text(piece) => {
                heard.text.push_str(piece);
                self.live.tell(Happening::Content { text: piece.to_owned() });
            }
            Delta::Thinking(piece) => {
                heard.thinking.push_str(piece);
                self.live.tell(Happening::Thinking { text: piece.to_owned() });
            }
            Delta::CallNamed { id, name, .. } => {
                self.live.tell(Happening::ToolPending { id: id.to_owned(), name: name.to_owned() });
            }
        };
        let done = self.services.runtime.block_on(async {
            tokio::select! {
                biased;
                () = self.stop.stopped() => None,
                reply = model.reply(request, &mut tell) => Some(reply),
            }
        });
        match done {
            None => Asked::Stopped(heard),
            Some(Ok(reply)) => Asked::Replied(reply),
            Some(Err(e)) => Asked::Failed(e, heard),
        }
    }

    /// The calls of a reply: those it made properly, or those that stand in its text. Ids are made unique, and names those of
    /// the tools.
    fn read_calls(&self, mut reply: Reply, offered: &Offered, round: u32) -> (Reply, Vec<Call>) {
        if reply.calls.is_empty() {
            if let Some((left, calls)) = calls_in_text(&reply.text) {
                (reply.text, reply.calls) = (left, calls);
            } else if reply.text.trim().is_empty()
                && let Some((_, calls)) = calls_in_text(&reply.thinking)
            {
                reply.calls = calls;
            }
        }
        let mut seen = BTreeSet::new();
        let mut made = Vec::new();
        for (n, ToolCall { id, name, arguments }) in
            std::mem::take(&mut reply.calls).into_iter().take(MOST_CALLS).enumerate()
        {
            let mut id = if id.is_empty() { format!("call_{round}_{n}") } else { id };
            while !seen.insert(id.clone()) {
                id.push('_');
            }
            let name = offered.names.tool(&name).map_or(name.clone(), str::to_owned);
            made.push(Call { id, name, arguments });
        }
        (reply, made)
    }

    fn body_of(&self, reply: &Reply, calls: Vec<Call>) -> Body {
        Body {
            text: reply.text.clone(),
            thinking: Some(reply.thinking.clone()).filter(|thinking| !thinking.trim().is_empty()),
            calls,
            model: self.model.as_ref().map(|model| model.profile().name.clone()),
            usage: reply.usage.as_ref().map(|usage| Usage { input: usage.input, output: usage.output }),
            ..Body::default()
        }
    }

    fn answered(&self, reply: Reply, steps: Steps) -> Result<Ended> {
        let mut body = self.body_of(&reply, Vec::new());
        body.out_of_steps = steps == Steps::UsedUp;
        if body.text.trim().is_empty() {
            body.text = "(no answer)".to_owned();
            body.model_text = Some(String::new());
            self.notice("the model gave no answer; try again, or choose another model", "warning");
        } else if reply.finish == Finish::Length {
            self.notice("the answer was cut off at the model's limit", "warning");
        }
        let text = body.text.clone();
        self.save(Role::Assistant, body)?;
        Ok(Ended::Answered(text))
    }

    fn cancelled(&self, heard: Reply) -> Result<Ended> {
        if self.stop.is_interrupted() {
            return Ok(Ended::Stopped);
        }
        let mut body = self.body_of(&heard, Vec::new());
        body.stopped = true;
        self.save(Role::Assistant, body)?;
        Ok(Ended::Stopped)
    }

    /// What was heard before it failed stays beside the reason; a person has read it.
    fn failed(&self, e: &Error, heard: &Reply) -> Result<Ended> {
        let fault = Fault::of(e);
        let body = Body { error: Some(fault.clone()), ..self.body_of(heard, Vec::new()) };
        self.save(Role::Assistant, body)?;
        Ok(Ended::Failed(fault))
    }

    fn notice(&self, message: &str, severity: &str) {
        self.live.tell(Happening::Notice { message: message.to_owned(), severity: severity.to_owned() });
    }

    fn save(&self, role: Role, body: Body) -> Result<Entry> {
        self.write(role, vec![body])?.pop().ok_or_else(|| Error::internal("a message was not written"))
    }

    fn save_all(&self, results: Vec<Body>) -> Result<Vec<Entry>> {
        self.write(Role::Tool, results)
    }

    fn write(&self, role: Role, bodies: Vec<Body>) -> Result<Vec<Entry>> {
        let at = self.services.clock.unix_ms();
        let texts: Vec<String> = bodies.iter().map(Body::to_json).collect();
        let rows: Vec<NewMessage> = texts.iter().map(|body| NewMessage { role, at, turn: &self.id, body }).collect();
        let ids = self.services.store.append_messages(self.chat, &rows)?;
        let entries: Vec<Entry> =
            ids.into_iter().zip(bodies).map(|(id, body)| Entry { id, role, at, turn: self.id.clone(), body }).collect();
        for entry in &entries {
            self.live.tell(Happening::Saved { message: Box::new(entry.clone()) });
        }
        Ok(entries)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Asking {
    Freely,
    /// Without tools: the turn is out of steps.
    ForAnEnd,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Steps {
    Left,
    UsedUp,
}

enum Asked {
    Replied(Reply),
    /// With what was heard until then.
    Stopped(Reply),
    /// The same.
    Failed(Error, Reply),
}

impl Shelf for Turn {
    fn picture(&self, handle: &str) -> Option<Picture> {
        let id = id_of(handle)?;
        let found = self.services.shelf(Some(&self.name), self.settings.private).kept(id, |_| Ok(())).ok()?;
        let image = shown_image(found.data, Audience::Both, &|| Ok(())).ok()?;
        match image.view {
            View::Same => Some((image.media_type.to_string(), Arc::from(&image.data[..]))),
            View::Copy { data, media_type } => Some((media_type.to_owned(), Arc::from(&data[..]))),
            View::Unseen(_) => None,
        }
    }

    fn text(&self, file: &str) -> Option<String> {
        let data = self.services.store.file_data(self.chat, file).ok()??;
        String::from_utf8(data).ok().filter(|text| !text.contains('\0'))
    }
}
