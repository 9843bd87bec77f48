//! What stands in a message of a chat: one shape for every role, so that an older program reads what a newer one wrote and the
//! other way round. It knows neither how rows are kept nor what a model is sent of them.

use crate::base::error::Error;
use crate::service::markers::Part;
use crate::service::picture::View;
use crate::store::messages::{Message, Role};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// A call that a model made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ChatCall")]
pub struct Call {
    /// Its id, unique within its message.
    pub id: String,
    /// The tool.
    pub name: String,
    /// The arguments, exactly as they came: JSON text, unless the model failed at it.
    pub arguments: String,
}

/// A file that was attached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ChatFile")]
pub struct File {
    /// Its id in the chat.
    pub id: String,
    /// What it is called.
    pub name: String,
    /// Its bytes.
    pub size: u64,
}

/// Why a turn ended without an answer, or a call without a result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ChatFault")]
pub struct Fault {
    /// The word of the closed list.
    pub code: String,
    /// What happened.
    pub message: String,
    /// What to do next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl Fault {
    /// A failure as it is kept.
    #[must_use]
    pub fn of(error: &Error) -> Fault {
        let hint = error.user_action().or(error.hint_text()).map(str::to_owned);
        Fault { code: error.code().to_owned(), message: error.message().to_owned(), hint }
    }
}

/// How many tokens a reply cost, as its provider says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ChatUsage")]
pub struct Usage {
    /// Of what was sent.
    pub input: u64,
    /// Of what came.
    pub output: u64,
}

/// What a message holds. What does not apply to its role is absent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ChatBody")]
pub struct Body {
    /// What a person reads. Of a result the person's copy.
    #[serde(default)]
    pub text: String,
    /// What the model reads in its place, where that is another text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_text: Option<String>,
    /// Who wrote it, where no person typed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header: Option<String>,
    /// Where it came from: `user`, a plugin, a door.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Handles of attached pictures.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<String>,
    /// Attached files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<File>,
    /// What the model thought before it answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking: Option<String>,
    /// The calls that it made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<Call>,
    /// The model that answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// What it cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// A person stopped it: the text is as far as it came.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stopped: bool,
    /// The model was out of steps: a word from the person lets it go on.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub out_of_steps: bool,
    /// Why there is no answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Fault>,
    /// Of a result: the id of its call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    /// Of a result: the tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Of a result: whether the call succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ok: Option<bool>,
    /// Of a result: the code of its failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// Of a result: how long the call took, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub took_ms: Option<u64>,
    /// Pictures, galleries and rows of files that stand beside the text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Value>,
}

impl Body {
    /// What a model reads of it.
    #[must_use]
    pub fn for_model(&self) -> &str {
        self.model_text.as_deref().unwrap_or(&self.text)
    }

    /// As JSON text, for the store.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_else(|_| "{}".to_owned())
    }

    /// Handles of every picture that it names.
    pub fn handles(&self) -> impl Iterator<Item = &str> {
        let of_parts = self.parts.iter().flat_map(|part| {
            let tiles = part.get("items").and_then(Value::as_array).into_iter().flatten();
            tiles.filter_map(|tile| tile.get("handle")).chain(part.get("id")).filter_map(Value::as_str)
        });
        self.images.iter().map(String::as_str).chain(of_parts)
    }
}

/// A message as a reader of a chat sees it.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "ChatEntry")]
pub struct Entry {
    /// Its number; those of one chat rise.
    pub id: i64,
    /// `user`, `assistant` or `tool`.
    #[schemars(with = "String")]
    pub role: Role,
    /// When, in milliseconds since 1970-01-01 UTC.
    pub at: i64,
    /// The turn that it belongs to.
    pub turn: String,
    /// What it holds.
    #[serde(flatten)]
    pub body: Body,
}

impl Entry {
    /// A row of the store. One that holds no JSON of ours is shown as text rather than lost.
    #[must_use]
    pub fn of(row: Message) -> Entry {
        let body =
            serde_json::from_str(&row.body).unwrap_or_else(|_| Body { text: row.body.clone(), ..Body::default() });
        Entry { id: row.id, role: row.role, at: row.at, turn: row.turn, body }
    }
}

/// What stands beside a text, as it is kept and as the API writes it: no bytes.
#[must_use]
pub fn part(part: &Part) -> Value {
    match part {
        Part::Image(image) => {
            let mut value = json!({
                "type": "image", "id": image.id, "media_type": image.media_type, "width": image.width, "height": image.height,
                "display_only": image.display_only,
            });
            if let Some(caption) = &image.caption {
                value["caption"] = caption.as_str().into();
            }
            if let View::Unseen(why) = &image.view {
                value["unseen"] = why.as_str().into();
            }
            value
        }
        Part::Gallery(gallery) => json!({ "type": "gallery", "title": gallery.title, "items": gallery.items }),
        Part::Files(files) => json!({ "type": "files", "title": files.title, "items": files.items }),
    }
}
