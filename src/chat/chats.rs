//! The chats as the doors see them: by name, with everything that can be done to one. It puts together what the other files of
//! this room do, and knows no door.

use super::inbox::{Drop as Dropped, Inbox, Payload, Put, Turns};
use super::live::{Happening, Live, Watcher};
use super::pick;
use super::row::{Body, Call, Entry, Fault, File};
use super::settings::{self, Settings};
use super::turn::{Ended, Stop, Turn, command};
use crate::base::error::{Error, Kind, Result, excerpt};
use crate::model::{Model, Models};
use crate::service::Services;
use crate::service::images::{Stash, media_type};
use crate::service::time::from_unix_ms;
use crate::store::chat_files::NewFile;
use crate::store::chats::Chat;
use crate::store::inbox::{Item, ItemState, Lane};
use crate::store::messages::{NewMessage, Role};
use crate::tool::dispatch::Dispatcher;
use crate::tool::port::catalog;
use crate::tool::tokens::estimate_tokens;
use crate::tool::{saved, toolset};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// Most messages of one page.
const MAX_PAGE: usize = 500;
/// Characters of the last message that a list tells.
const PREVIEW: usize = 100;
/// How a typed turn says where it came from.
const USER: &str = "user";

/// A chat in a list.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Chat")]
pub struct Summary {
    /// What it is called.
    pub name: String,
    /// Its number, which stays when it is renamed.
    pub id: i64,
    /// When it was made: RFC 3339.
    pub created_at: String,
    /// When something of it last changed.
    pub updated_at: String,
    /// Whether it is private.
    pub private: bool,
    /// How many messages it has.
    pub messages: u64,
    /// How many items wait in it.
    pub queued: u64,
    /// Whether a turn runs.
    pub busy: bool,
    /// The beginning of its last message.
    pub preview: String,
}

/// How full a model's context is.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "ChatContext")]
pub struct Context {
    /// About how many tokens the messages are.
    pub used: u64,
    /// How many fit; 0 where that is not known.
    pub limit: u64,
    /// Of a hundred.
    pub percent: f64,
}

/// A page of messages.
#[derive(Debug, Clone, PartialEq)]
pub struct History {
    /// The messages, oldest first.
    pub messages: Vec<Entry>,
    /// How full the context is.
    pub context: Context,
    /// Whether there are older ones.
    pub more: bool,
}

/// What a person says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Say {
    /// The text.
    pub text: String,
    /// Handles of pictures of the chat.
    pub images: Vec<String>,
    /// Ids of files of the chat.
    pub files: Vec<String>,
    /// The door; a person at one door folds only with themselves. Empty means the page.
    pub source: String,
}

/// Where what was said stands now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "ChatSent")]
pub struct Sent {
    /// What it is called until it has had its turn, and its turn after that.
    pub ticket: String,
    /// How many turns come up to and with it; 0 where it has begun.
    pub position: usize,
}

/// Something that waits.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "ChatQueued")]
pub struct Queued {
    /// What it is called.
    pub ticket: String,
    /// Where it came from.
    pub source: String,
    /// `now` for people, `later` for everything else.
    pub lane: &'static str,
    /// Seconds that it has waited.
    pub age_s: f64,
    /// What a person typed; nothing for what a machine wrote.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// A message that a search found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "ChatFound")]
pub struct Found {
    /// The chat.
    pub chat: String,
    /// The message.
    pub message: i64,
    /// Whose it is.
    pub role: String,
    /// When, in milliseconds since 1970-01-01 UTC.
    pub at: i64,
    /// The place in it.
    pub excerpt: String,
}

/// How a chat is written out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// For people.
    Markdown,
    /// For programs: one object with every message.
    Json,
}

/// What became of a file that was uploaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Upload {
    /// A picture, by its handle.
    Image(String),
    /// Any other file.
    File(File),
}

/// All chats of a host.
pub struct Chats {
    services: Arc<Services>,
    dispatcher: Arc<Dispatcher>,
    models: Arc<Models>,
    inbox: Arc<Inbox>,
}

impl Chats {
    /// The chats of these services. Nothing runs before [`Chats::open`].
    #[must_use]
    pub fn new(services: &Arc<Services>, dispatcher: &Arc<Dispatcher>, models: &Arc<Models>) -> Arc<Chats> {
        Arc::new(Chats {
            services: services.clone(),
            dispatcher: dispatcher.clone(),
            models: models.clone(),
            inbox: Inbox::new(services.clone()),
        })
    }

    /// Lets turns run in this process, and takes up those that an earlier start left.
    ///
    /// # Errors
    /// What the store says.
    pub fn open(self: &Arc<Self>) -> Result<()> {
        let turns: Weak<dyn Turns> = Arc::downgrade(&(self.clone() as Arc<dyn Turns>));
        self.inbox.open(turns)
    }

    /// Ends the turns that run, so that the next start goes on with them.
    pub fn close(&self) {
        self.inbox.close();
    }

    /// The inboxes.
    #[must_use]
    pub fn inbox(&self) -> &Arc<Inbox> {
        &self.inbox
    }

    /// The models.
    #[must_use]
    pub fn models(&self) -> &Arc<Models> {
        &self.models
    }

    fn find(&self, name: &str) -> Result<Chat> {
        self.services.store.chat(name)?.ok_or_else(|| {
            Error::not_found(format!("there is no chat `{}`", excerpt(name, 60)))
                .hint("the list of chats says which there are")
        })
    }

    fn live(&self, chat: i64) -> Arc<Live> {
        self.inbox.live(chat)
    }

    fn changed(&self, chat: i64, what: &str, name: Option<&str>) {
        self.live(chat).tell(Happening::ChatChanged { what: what.to_owned(), name: name.map(str::to_owned) });
    }

    /// Every chat, the one that changed last first.
    ///
    /// # Errors
    /// What the store says.
    pub fn list(&self) -> Result<Vec<Summary>> {
        let all = self.services.store.chats()?;
        all.into_iter().map(|found| self.summarise(found.chat, found.messages, found.queued)).collect()
    }

    fn summarise(&self, chat: Chat, messages: u64, queued: u64) -> Result<Summary> {
        let last = self.services.store.messages(chat.id, None, 1)?.pop().map(|row| Entry::of(row).body.text);
        Ok(Summary {
            busy: self.inbox.is_busy(chat.id),
            preview: last.map(|text| excerpt(&text, PREVIEW)).unwrap_or_default(),
            created_at: from_unix_ms(chat.created_at).unwrap_or_default(),
            updated_at: from_unix_ms(chat.updated_at).unwrap_or_default(),
            name: chat.name,
            id: chat.id,
            private: chat.private,
            messages,
            queued,
        })
    }

    /// One chat.
    ///
    /// # Errors
    /// `not_found`.
    pub fn summary(&self, name: &str) -> Result<Summary> {
        let chat = self.find(name)?;
        let messages = self.services.store.count_messages(chat.id)?;
        let queued = self.inbox.items(chat.id)?.iter().filter(|item| item.state == ItemState::Waiting).count();
        self.summarise(chat, messages, queued as u64)
    }

    /// Makes a chat; without a name under a free one.
    ///
    /// # Errors
    /// `conflict` where there is one, `invalid_arguments` for a bad name.
    pub fn create(&self, name: Option<&str>, private: bool) -> Result<Summary> {
        let now = self.services.clock.unix_ms();
        let chat = match name {
            Some(name) => self.services.store.create_chat(name, private, now)?,
            None => (1..)
                .map(|n| self.services.store.create_chat(&format!("chat {n}"), private, now))
                .find(|made| !made.as_ref().is_err_and(|e| e.kind() == Kind::Conflict && !e.retryable()))
                .unwrap_or_else(|| Err(Error::internal("there is no free name")))?,
        };
        self.summarise(chat, 0, 0)
    }

    /// Gives a chat another name.
    ///
    /// # Errors
    /// `not_found`, `conflict`, `invalid_arguments`.
    pub fn rename(&self, old: &str, new: &str) -> Result<()> {
        let chat = self.find(old)?;
        self.services.store.rename_chat(old, new, self.services.clock.unix_ms())?;
        self.changed(chat.id, "renamed", Some(new));
        Ok(())
    }

    /// Deletes a chat with everything that belongs to it; its turn is stopped, what waits in it is dropped.
    ///
    /// # Errors
    /// `not_found`.
    pub fn delete(&self, name: &str) -> Result<()> {
        let chat = self.find(name)?;
        let waiting = self.inbox.items(chat.id)?;
        if !self.services.store.delete_chat(name)? {
            return self.find(name).map(|_| ());
        }
        self.inbox.stop(chat.id);
        for item in waiting.iter().filter(|item| item.state == ItemState::Waiting) {
            self.inbox.gone(item);
        }
        self.changed(chat.id, "deleted", None);
        Ok(())
    }

    /// Takes the messages of a chat away; what plugins keep in it stays.
    ///
    /// # Errors
    /// `not_found`; `chat_busy` while a turn runs.
    pub fn clear(&self, name: &str) -> Result<()> {
        let chat = self.quiet(name)?;
        self.services.store.clear_chat(chat.id, self.services.clock.unix_ms())?;
        self.changed(chat.id, "cleared", None);
        Ok(())
    }

    /// A chat in which no turn runs: what a turn has read must not be changed under it.
    fn quiet(&self, name: &str) -> Result<Chat> {
        let chat = self.find(name)?;
        if self.inbox.is_busy(chat.id) {
            return Err(Error::new(Kind::ChatBusy, "a turn runs in this chat").hint("stop it first, or wait"));
        }
        Ok(chat)
    }

    /// The settings of a chat.
    ///
    /// # Errors
    /// `not_found`.
    pub fn settings(&self, name: &str) -> Result<Settings> {
        let chat = self.find(name)?;
        Ok(Settings::of(&settings::stored(&chat.settings), chat.private))
    }

    /// Changes settings of a chat: what is null goes back to its default, what is not named stays. They count from the next turn.
    ///
    /// # Errors
    /// `not_found`, `invalid_arguments` naming the key.
    pub fn set_settings(&self, name: &str, patch: &Map<String, Value>) -> Result<Settings> {
        let chat = self.find(name)?;
        let now = self.services.clock.unix_ms();
        let mut patch = patch.clone();
        let private = match patch.remove("private") {
            None => None,
            Some(Value::Bool(private)) => Some(private),
            Some(_) => return Err(Error::invalid("`private` takes true or false")),
        };
        let stored = settings::changed(settings::stored(&chat.settings), &patch)?;
        if let Some(private) = private.filter(|private| *private != chat.private) {
            self.services.store.set_chat_private(chat.id, private, now)?;
        }
        if !patch.is_empty() {
            self.services.store.set_chat_settings(chat.id, &Value::Object(stored).to_string(), now)?;
        }
        self.changed(chat.id, "settings", None);
        self.settings(name)
    }

    /// The newest messages, or those before one.
    ///
    /// # Errors
    /// `not_found`.
    pub fn history(&self, name: &str, before: Option<i64>, limit: usize) -> Result<History> {
        let chat = self.find(name)?;
        let limit = limit.clamp(1, MAX_PAGE);
        let mut rows = self.services.store.messages(chat.id, before, limit + 1)?;
        let more = rows.len() > limit;
        if more {
            rows.remove(0);
        }
        let messages: Vec<Entry> = rows.into_iter().map(Entry::of).collect();
        let used: usize = messages.iter().map(|entry| estimate_tokens(entry.body.for_model())).sum();
        let settings = Settings::of(&settings::stored(&chat.settings), chat.private);
        let limit = self.model(&settings).map_or(0, |model| u64::from(model.profile().context));
        let used = used as u64;
        let percent = if limit == 0 { 0.0 } else { (used as f64 / limit as f64 * 1000.0).round() / 10.0 };
        Ok(History { messages, context: Context { used, limit, percent: percent.min(100.0) }, more })
    }

    /// Says something: it waits for its turn, and is never refused because the chat is busy.
    ///
    /// # Errors
    /// `not_found` for the chat, a picture or a file; `inbox_refused` for nothing at all.
    pub fn send(&self, name: &str, say: Say) -> Result<Sent> {
        let chat = self.find(name)?;
        let store = &self.services.store;
        let files = say.files.iter().map(|id| {
            let row = store.file(chat.id, id)?.ok_or_else(|| Error::not_found("this chat has no such file"))?;
            Ok(File { id: row.id, name: row.name, size: row.size })
        });
        let files = files.collect::<Result<Vec<_>>>()?;
        for handle in &say.images {
            let id = crate::service::picture::id_of(handle).unwrap_or_default();
            store.image(name, id)?.ok_or_else(|| Error::not_found("this chat has no such picture"))?;
        }
        let ticket = self.inbox.put(&Put {
            chat: chat.id,
            lane: Lane::Now,
            source: if say.source.is_empty() { USER.to_owned() } else { say.source },
            plugin: None,
            header: String::new(),
            payload: Payload { text: say.text, images: say.images, files, parts: Vec::new() },
            ttl_ms: None,
            private: Some(chat.private),
            on_drop: None,
            durable: true,
        })?;
        let position = pick::position(&self.inbox.items(chat.id)?, &ticket);
        Ok(Sent { ticket, position })
    }

    /// Stops the turn that runs; says whether one did.
    ///
    /// # Errors
    /// `not_found`.
    pub fn cancel(&self, name: &str) -> Result<bool> {
        Ok(self.inbox.stop(self.find(name)?.id))
    }

    /// What waits in a chat, in the order of its turns.
    ///
    /// # Errors
    /// `not_found`.
    pub fn queue(&self, name: &str) -> Result<Vec<Queued>> {
        let chat = self.find(name)?;
        let mut items = self.inbox.items(chat.id)?;
        items.retain(|item| item.state == ItemState::Waiting);
        items.sort_by_key(|item| (item.lane == Lane::Later, item.seq));
        let now = self.services.clock.unix_ms();
        let queued = |item: Item| {
            let payload: Payload = serde_json::from_str(&item.payload).unwrap_or_default();
            Queued {
                text: item.header.is_empty().then_some(payload.text),
                ticket: item.ticket,
                source: item.source,
                lane: item.lane.word(),
                age_s: ((now - item.put_at).max(0) / 100) as f64 / 10.0,
            }
        };
        Ok(items.into_iter().map(queued).collect())
    }

    /// Takes something out of the line; says whether it still waited.
    ///
    /// # Errors
    /// `not_found`.
    pub fn drop_queued(&self, name: &str, ticket: &str) -> Result<bool> {
        self.inbox.take_back(self.find(name)?.id, ticket)
    }

    /// Follows a chat from an event on, or from now on.
    ///
    /// # Errors
    /// `not_found`.
    pub fn watch(&self, name: &str, since: Option<u64>) -> Result<Watcher> {
        Ok(self.live(self.find(name)?.id).watch(since))
    }

    /// Says a message again, in other words where there are some; what came after it goes.
    ///
    /// # Errors
    /// `not_found`, `chat_busy`, `invalid_arguments` for a message that no person wrote.
    pub fn resend(&self, name: &str, message: i64, text: Option<String>) -> Result<Sent> {
        let chat = self.quiet(name)?;
        let row = self.services.store.message(chat.id, message)?.ok_or_else(no_message)?;
        let entry = Entry::of(row);
        if entry.role != Role::User || entry.body.header.is_some() {
            return Err(Error::invalid("only what a person said can be said again"));
        }
        self.delete_from(name, message)?;
        self.send(
            name,
            Say {
                text: text.unwrap_or(entry.body.text),
                images: entry.body.images,
                files: entry.body.files.into_iter().map(|file| file.id).collect(),
                source: String::new(),
            },
        )
    }

    /// Deletes a message and all after it; gives how many.
    ///
    /// # Errors
    /// `not_found`, `chat_busy`.
    pub fn delete_from(&self, name: &str, message: i64) -> Result<usize> {
        let chat = self.quiet(name)?;
        self.services.store.message(chat.id, message)?.ok_or_else(no_message)?;
        let count = self.services.store.delete_messages_from(chat.id, message)?;
        self.changed(chat.id, "messages", None);
        Ok(count)
    }

    /// Messages of chats that are not private, in which every word stands; newest first.
    ///
    /// # Errors
    /// What the store says.
    pub fn search(&self, words: &str, limit: usize) -> Result<Vec<Found>> {
        let found = self.services.store.search_messages(words, limit, None)?;
        let told = found.hits.into_iter().map(|hit| {
            let body: Body = serde_json::from_str(&hit.body).unwrap_or_default();
            Found {
                chat: hit.chat,
                message: hit.message,
                role: hit.role.word().to_owned(),
                at: hit.at,
                excerpt: around(&body.text, words),
            }
        });
        Ok(told.collect())
    }

    /// A whole chat as text.
    ///
    /// # Errors
    /// `not_found`.
    pub fn export(&self, name: &str, format: Format) -> Result<String> {
        let chat = self.find(name)?;
        let rows = self.services.store.messages_from(chat.id, 0)?.into_iter().map(Entry::of);
        match format {
            Format::Json => {
                let all: Vec<Entry> = rows.collect();
                serde_json::to_string_pretty(&serde_json::json!({ "chat": chat.name, "messages": all }))
                    .map_err(|e| Error::internal(format!("the chat cannot be written: {e}")))
            }
            Format::Markdown => Ok(rows.fold(format!("# {}\n", chat.name), |mut text: String, entry| {
                text.push_str(&written(&entry));
                text
            })),
        }
    }

    /// Takes a file into a chat: a picture gets a handle, anything else an id.
    ///
    /// # Errors
    /// `not_found`, `too_large`, `quota`.
    pub fn upload(&self, name: &str, file: &str, bytes: Vec<u8>) -> Result<Upload> {
        let chat = self.find(name)?;
        if media_type(&bytes).is_ok() {
            let shelf = self.services.shelf(Some(&chat.name), chat.private);
            return shelf.stash(&bytes, &Stash { visible: true, caption: None }).map(Upload::Image);
        }
        let id = uuid::Uuid::new_v4().simple().to_string();
        let shown: String =
            file.chars().filter(|c| !c.is_control() && !matches!(c, '/' | '\\' | '"')).take(120).collect();
        let shown = if shown.trim().is_empty() { "file".to_owned() } else { shown.trim().to_owned() };
        let kind =
            if std::str::from_utf8(&bytes).is_ok() { "text/plain; charset=utf-8" } else { "application/octet-stream" };
        let now = self.services.clock.unix_ms();
        self.services.store.put_file(&NewFile {
            id: &id,
            chat: chat.id,
            name: &shown,
            media_type: kind,
            data: &bytes,
            now,
        })?;
        Ok(Upload::File(File { id, name: shown, size: bytes.len() as u64 }))
    }

    /// A file of a chat: its name and its bytes.
    ///
    /// # Errors
    /// `not_found`.
    pub fn file(&self, name: &str, id: &str) -> Result<(String, Vec<u8>)> {
        let chat = self.find(name)?;
        let missing = || Error::not_found("this chat has no such file");
        let row = self.services.store.file(chat.id, id)?.ok_or_else(missing)?;
        let data = self.services.store.file_data(chat.id, id)?.ok_or_else(missing)?;
        Ok((row.name, data))
    }

    /// The model that answers in a chat: the one it chose, or the first that may.
    fn model(&self, settings: &Settings) -> Result<Arc<dyn Model>> {
        let may = |model: &Arc<dyn Model>| !settings.private || model.profile().local;
        let none = |what: String, hint: &str| Error::new(Kind::Disabled, what).with_user_action(hint);
        match &settings.model {
            Some(name) => {
                let model = self.models.find(name).ok_or_else(|| {
                    none(format!("there is no model `{}`", excerpt(name, 60)), "choose another model in the chat's settings")
                })?;
                if may(&model) {
                    return Ok(model);
                }
                Err(Error::denied(format!("the model `{}` is not on this machine, and this chat is private", excerpt(name, 60)))
                    .with_user_action("choose a model with `local = true`"))
            }
            None => self.models.all().into_iter().find(may).ok_or_else(|| match settings.private && self.models.first().is_some() {
                true => none("no model may answer in a private chat".to_owned(), "add one with `local = true` to user/lapidary.toml"),
                false => none("there is no model yet".to_owned(), "add one under [[models]] in user/lapidary.toml, or on the page; `/tool key=value` calls a tool without one"),
            }),
        }
    }

    fn selected(&self, settings: &Settings, closed: BTreeSet<String>) -> (BTreeSet<String>, Option<String>) {
        let snapshot = self.dispatcher.snapshot();
        let owners = self.services.scopes.owners();
        let catalog = catalog(&snapshot, &owners);
        let saved = saved::load(&self.services.paths).unwrap_or_default();
        let [word] = settings.toolset.as_slice() else {
            let names = toolset::select(&catalog, &saved, &settings.toolset);
            let wish =
                toolset::Wish { extra: &settings.extra_toolsets, add: &names.names, closed, ..Default::default() };
            let resolved = toolset::resolve(&catalog, &saved, &wish);
            return (resolved.names.unwrap_or_default().into_iter().collect(), resolved.dangling);
        };
        let wish = toolset::Wish { toolset: Some(word), extra: &settings.extra_toolsets, closed, ..Default::default() };
        let resolved = toolset::resolve(&catalog, &saved, &wish);
        (resolved.names.unwrap_or_default().into_iter().collect(), resolved.dangling)
    }
}

impl Turns for Chats {
    fn is_private(&self, chat: i64) -> Option<bool> {
        self.services.store.chat_by_id(chat).ok().flatten().map(|chat| chat.private)
    }

    fn run(&self, chat: i64, turn: &str, _resumed: bool, live: &Arc<Live>, stop: &Stop) -> Result<Ended> {
        let row = self.services.store.chat_by_id(chat)?.ok_or_else(|| Error::not_found("this chat is gone"))?;
        let stored = settings::stored(&row.settings);
        let settings = Settings::of(&stored, row.private);
        let mut scopes = self.services.scopes.values(&stored);
        scopes = scopes.with("private", Some(if row.private { "true" } else { "false" }));
        let closed = scopes.iter().filter(|(_, value)| value.is_none()).map(|(key, _)| key.to_owned()).collect();
        let (tools, dangling) = self.selected(&settings, closed);
        if let Some(word) = dangling {
            let message = format!("the toolset `{}` does not exist, so the model has no tools", excerpt(&word, 60));
            live.tell(Happening::Notice { message, severity: "warning".to_owned() });
        }
        let said = self.services.store.messages(chat, None, 1)?.pop().map(Entry::of);
        let typed = said.filter(|entry| entry.role == Role::User && entry.turn == turn && entry.body.header.is_none());
        let called = typed.as_ref().and_then(|entry| command::parse(&entry.body.text, &self.dispatcher.snapshot()));
        let model = match (&called, self.model(&settings)) {
            (_, Ok(model)) => Some(model),
            (Some(_), Err(_)) => None,
            (None, Err(e)) => return self.without_model(chat, turn, live, &e),
        };
        let turn = Turn {
            services: self.services.clone(),
            dispatcher: self.dispatcher.clone(),
            chat,
            name: row.name.as_str().into(),
            settings,
            scopes: Arc::new(scopes),
            id: turn.to_owned(),
            model,
            tools,
            snapshot: self.dispatcher.snapshot(),
            live: live.clone(),
            stop: stop.clone(),
        };
        match called {
            Some(Ok(call)) => turn.call_only(&call),
            Some(Err(e)) => self.without_model(chat, &turn.id, live, &e),
            None => turn.run(),
        }
    }

    fn dropped(&self, item: &Item, why: Dropped) {
        tracing::debug!(ticket = %item.ticket, kind = why.word(), "an item was dropped");
    }
}

impl Chats {
    /// The row that says why nobody answers.
    fn without_model(&self, chat: i64, turn: &str, live: &Arc<Live>, e: &Error) -> Result<Ended> {
        let fault = Fault::of(e);
        let body = Body { error: Some(fault.clone()), ..Body::default() };
        let (at, json) = (self.services.clock.unix_ms(), body.to_json());
        let row = NewMessage { role: Role::Assistant, at, turn, body: &json };
        if let Some(id) = self.services.store.append_messages(chat, &[row])?.first() {
            let message = Entry { id: *id, role: Role::Assistant, at, turn: turn.to_owned(), body };
            live.tell(Happening::Saved { message: Box::new(message) });
        }
        Ok(Ended::Failed(fault))
    }

    /// Waits until a chat is at rest, at most so long; says whether it came to that. For tests and for doors that run one turn.
    #[must_use]
    pub fn at_rest(&self, name: &str, most: Duration) -> bool {
        self.find(name).is_ok_and(|chat| self.inbox.idle(chat.id, most))
    }
}

fn no_message() -> Error {
    Error::not_found("this chat has no such message")
}

/// The place of the first word in a text.
fn around(text: &str, words: &str) -> String {
    const BEFORE: usize = 40;
    const WHOLE: usize = 200;
    let lower = text.to_lowercase();
    let at = words.split_whitespace().filter_map(|word| lower.find(&word.to_lowercase())).min().unwrap_or(0);
    let start = text.floor_char_boundary(at.saturating_sub(BEFORE).min(text.len()));
    let cut = excerpt(&text[start..], WHOLE);
    if start > 0 { format!("…{cut}") } else { cut }
}

/// A message as a person reads it in a file.
fn written(entry: &Entry) -> String {
    let body = &entry.body;
    let who = match entry.role {
        Role::User => body.header.as_deref().unwrap_or("User"),
        Role::Assistant => body.model.as_deref().unwrap_or("Assistant"),
        Role::Tool => body.name.as_deref().unwrap_or("tool"),
    };
    let mut text = format!("\n## {who}\n\n{}\n", body.text.trim_end());
    for Call { name, arguments, .. } in &body.calls {
        text.push_str(&format!("\n`{name}` {arguments}\n"));
    }
    for handle in &body.images {
        text.push_str(&format!("\n(image {handle})\n"));
    }
    for file in &body.files {
        text.push_str(&format!("\n(file {})\n", file.name));
    }
    if let Some(fault) = &body.error {
        text.push_str(&format!("\n({}: {})\n", fault.code, fault.message));
    }
    text
}
