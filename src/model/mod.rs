//! Layer 1: models that talk. What is asked of one, what it answers, and which ones there are.
//! It knows nothing of chats, tools or credentials: values come in, deltas and replies go out, all traffic rides `net`.

mod assemble;
pub mod endpoint;
mod fault;
pub mod local;
pub mod repair;
pub mod scripted;
pub mod settings;
mod sse;
mod think;
mod wire;

pub use endpoint::{Endpoint, Key, Keys};
pub use settings::Entry;

use crate::base::error::Result;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, PoisonError, RwLock};

/// A part of what a person said.
#[derive(Clone, PartialEq, Eq)]
pub enum Content {
    /// Text.
    Text(String),
    /// A picture, in the bytes of its file.
    Image {
        /// Its media type, such as `image/png`.
        media_type: String,
        /// The file.
        data: Arc<[u8]>,
    },
}

impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Content::Text(text) => f.debug_tuple("Text").field(text).finish(),
            Content::Image { media_type, data } => write!(f, "Image({media_type}, {} bytes)", data.len()),
        }
    }
}

/// One entry of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message {
    /// What frames the conversation.
    System(String),
    /// What a person said, or the host in a person's place.
    User(Vec<Content>),
    /// What the model said.
    Assistant {
        /// Its words; empty where it only called.
        text: String,
        /// The calls it made.
        calls: Vec<ToolCall>,
    },
    /// What came of a call.
    Tool {
        /// The call's id.
        call: String,
        /// The tool's name.
        name: String,
        /// The result as the model reads it.
        text: String,
    },
}

/// A call that a model asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCall {
    /// Its id, unique within a reply; made up where the model gave none.
    pub id: String,
    /// The tool's name, as the model wrote it.
    pub name: String,
    /// The arguments exactly as they came: JSON where the model wrote well.
    pub arguments: String,
}

/// What is asked of a model.
#[derive(Debug, Clone, Copy, Default)]
pub struct Request<'a> {
    /// The conversation, oldest first.
    pub messages: &'a [Message],
    /// The tools it may call, as definitions of the wire.
    pub tools: &'a [serde_json::Value],
    /// How freely it answers; the server's own default without one.
    pub temperature: Option<f64>,
    /// Most tokens of the answer.
    pub max_tokens: Option<u32>,
}

/// A piece of an answer, told while it comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delta<'a> {
    /// More of the text.
    Text(&'a str),
    /// More of what it thinks before it speaks.
    Thinking(&'a str),
    /// The name of a call is known; told once a call, its arguments may still come.
    CallNamed {
        /// The call's place in the reply, from 0.
        index: usize,
        /// Its id.
        id: &'a str,
        /// The tool's name.
        name: &'a str,
    },
}

/// Tokens of one reply, as the server counted them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    /// Of the request.
    pub input: u64,
    /// Of the answer.
    pub output: u64,
}

/// Why a reply ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Finish {
    /// It was done.
    #[default]
    Stop,
    /// The limit of tokens was reached.
    Length,
    /// It waits for the results of calls.
    Calls,
    /// The server's filter ended it.
    Filtered,
    /// A word of the server that is none of these.
    Other(String),
}

/// A whole answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reply {
    /// Its words.
    pub text: String,
    /// What it thought.
    pub thinking: String,
    /// The calls it asks for, in order.
    pub calls: Vec<ToolCall>,
    /// Why it ended.
    pub finish: Finish,
    /// Tokens, where the server tells them.
    pub usage: Option<Usage>,
}

/// What a model is and can do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    /// How chats name it.
    pub name: String,
    /// How its server names it.
    pub model: String,
    /// Whether it may serve private chats.
    pub local: bool,
    /// Whether it sees pictures.
    pub vision: bool,
    /// Whether it calls tools by itself.
    pub tools: bool,
    /// Tokens that fit into it; 0 where that is unknown.
    pub context: u32,
    /// The shape of its tool definitions: `openai`, `anthropic`, `gemini`, `llama` or `plain`.
    pub dialect: String,
}

impl Profile {
    /// A model on this machine that calls tools and sees no pictures, of unknown size.
    #[must_use]
    pub fn new(name: impl Into<String>, model: impl Into<String>) -> Profile {
        Profile {
            name: name.into(),
            model: model.into(),
            local: true,
            vision: false,
            tools: true,
            context: 0,
            dialect: "openai".into(),
        }
    }
}

/// A reply on its way.
pub type Replying<'a> = Pin<Box<dyn Future<Output = Result<Reply>> + Send + 'a>>;

/// Something that answers a conversation.
pub trait Model: Send + Sync {
    /// What it is and can do.
    fn profile(&self) -> &Profile;

    /// Answers. `told` hears the pieces as they come. Dropping the future stops it.
    ///
    /// # Errors
    /// `upstream_unavailable` where it cannot be reached, failed or broke off in the middle, `upstream_auth` where it does not
    /// know us, `rate_limited`, `timeout`, `too_large` where the conversation does not fit, `invalid_arguments` for what it
    /// cannot take. The message is for people and holds no key.
    fn reply<'a>(&'a self, request: &'a Request<'a>, told: &'a mut (dyn FnMut(Delta) + Send)) -> Replying<'a>;
}

/// The models there are, in the order of the settings. The first is used where nobody asks for another.
#[derive(Default)]
pub struct Models(RwLock<Vec<Arc<dyn Model>>>);

impl Models {
    /// These, in this order.
    #[must_use]
    pub fn new(models: Vec<Arc<dyn Model>>) -> Models {
        Models(RwLock::new(models))
    }

    /// The model of that name.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<Arc<dyn Model>> {
        self.all().into_iter().find(|model| model.profile().name == name)
    }

    /// The one that is used where nobody asks for another.
    #[must_use]
    pub fn first(&self) -> Option<Arc<dyn Model>> {
        self.all().into_iter().next()
    }

    /// All of them.
    #[must_use]
    pub fn all(&self) -> Vec<Arc<dyn Model>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What each of them is.
    #[must_use]
    pub fn profiles(&self) -> Vec<Profile> {
        self.all().iter().map(|model| model.profile().clone()).collect()
    }

    /// Adds one, behind the others or in the place of the one of its name.
    pub fn add(&self, model: Arc<dyn Model>) {
        let mut models = self.0.write().unwrap_or_else(PoisonError::into_inner);
        match models.iter_mut().find(|old| old.profile().name == model.profile().name) {
            Some(old) => *old = model,
            None => models.push(model),
        }
    }

    /// These in the place of all there were. Replies on their way go on.
    pub fn replace(&self, models: Vec<Arc<dyn Model>>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = models;
    }
}
