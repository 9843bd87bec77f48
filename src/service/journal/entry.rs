//! What the journal shows of a call, and how much it keeps: values that doors give out as they are. Times are RFC 3339 in UTC.

use crate::base::clock::Clock;
use crate::base::error::{Error, Fallback};
use crate::service::attachments::Item;
use crate::service::gallery::Tile;
use crate::store::journal::{CallLine, CallRow, Room};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Milliseconds of a day.
const DAY: i64 = 24 * 60 * 60 * 1000;

/// How much is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Most bytes of all calls together.
    pub max_bytes: u64,
    /// Calls that are older go.
    pub max_days: u32,
    /// Most bytes of one text of one call.
    pub max_text: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { max_bytes: 64 << 20, max_days: 30, max_text: 256 << 10 }
    }
}

impl Limits {
    pub(super) fn room(&self, clock: &Clock) -> Room {
        Room { bytes: self.max_bytes, since: clock.unix_ms().saturating_sub(i64::from(self.max_days) * DAY) }
    }
}

/// Which calls are listed; each field is one condition more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filter {
    /// Of this tool.
    pub tool: Option<String>,
    /// Of this plugin.
    pub plugin: Option<String>,
    /// Only those that failed.
    pub failed: bool,
    /// Through this door: `cli`, `http`, `mcp`, `library`, or `tool` for those that tools called.
    pub door: Option<String>,
    /// Older than the call with this id: the `next` of the page before.
    pub before: Option<String>,
    /// At most so many, from 1 to [`MAX_PAGE`](super::MAX_PAGE).
    pub limit: usize,
}

impl Default for Filter {
    fn default() -> Self {
        Filter { tool: None, plugin: None, failed: false, door: None, before: None, limit: 50 }
    }
}

/// Some calls, newest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "CallPage")]
pub struct Page {
    /// The calls.
    pub calls: Vec<Listed>,
    /// The id to ask for what is `before` it; `None` where that is all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// Calls that could not be kept since the journal was last cleared: too many at once, or the disk refused.
    pub dropped: u64,
}

/// A call as a list shows it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ListedCall")]
pub struct Listed {
    /// The id of the call.
    pub id: String,
    /// When it began.
    pub at: String,
    /// The tool.
    pub tool: String,
    /// Its plugin; empty for an unknown tool.
    pub plugin: String,
    /// The generation that ran; 0 where nothing ran.
    pub generation: u64,
    /// Whether it succeeded.
    pub ok: bool,
    /// The code of its failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// Through which door it came.
    pub door: String,
    /// Who called: `owner`, an MCP client's name, for the door `tool` the tool that called.
    pub caller: String,
    /// In which chat.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chat: Option<String>,
    /// Wall clock, in milliseconds.
    pub duration_ms: f64,
    /// One line about how it ended.
    pub summary: String,
}

/// Everything that is kept of a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "KeptCall")]
pub struct Entry {
    /// What a list shows.
    #[serde(flatten)]
    pub listed: Listed,
    /// What it was given: an object; a text where what came was no JSON object.
    pub arguments: Value,
    /// The model's copy of its result.
    pub text: String,
    /// The person's copy, where it is another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shown: Option<String>,
    /// What stands beside the text.
    pub parts: Vec<Piece>,
    /// The structured result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub structured: Option<Value>,
    /// What its plugin logged.
    pub logs: Vec<LogLine>,
    /// Log lines that there was no room for.
    pub logs_left_out: u64,
    /// What it said about its progress.
    pub progress: Vec<Step>,
    /// Its failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Failure>,
    /// Where the script failed, as a [`Diagnostic`](crate::script::diagnostic::Diagnostic) is written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diagnostic: Option<Value>,
    /// What of the result was dropped, and why.
    pub warnings: Vec<String>,
    /// Script operations.
    pub operations: u64,
    /// Highest memory of script values, in bytes; 0 where it is not counted.
    pub memory: u64,
    /// Whether a secret was taken out of the arguments: then it cannot run again.
    pub masked: bool,
    /// What was too long to be kept whole: `arguments`, `text`, `shown`, `structured`, `parts`.
    pub cut: Vec<String>,
    /// The generation that a call would run now; `None` where the tool is gone, or nobody looked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub live_generation: Option<u64>,
}

/// One log line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LogLine {
    /// Milliseconds since the call began.
    pub at_ms: u64,
    /// `trace`, `info`, `warn` or `error`.
    pub level: String,
    /// The line.
    pub text: String,
}

/// One word of progress: a line of status, or steps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "KeptProgress")]
pub struct Step {
    /// Milliseconds since the call began.
    pub at_ms: u64,
    /// A line of status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// Steps that are done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub done: Option<i64>,
    /// Of so many; 0 where that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<i64>,
}

/// Something that stood beside the text. Of a picture its bytes are not kept here: the chat keeps them under the id.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
#[schemars(rename = "KeptPart")]
pub enum Piece {
    /// A picture.
    Image {
        /// Its handle, `img:<id>`; `None` where it was not kept.
        id: Option<String>,
        /// Its media type.
        media_type: String,
        /// Pixels across; 0 where that is not known.
        width: u32,
        /// Pixels down; 0 where that is not known.
        height: u32,
        /// Only the person saw it.
        display_only: bool,
        /// What it shows, in words.
        #[serde(skip_serializing_if = "Option::is_none")]
        caption: Option<String>,
        /// Why the model was not shown it.
        #[serde(skip_serializing_if = "Option::is_none")]
        unseen: Option<String>,
        /// Its bytes.
        bytes: u64,
    },
    /// Numbered tiles.
    Gallery {
        /// What stands above them.
        title: String,
        /// The tiles.
        items: Vec<Tile>,
    },
    /// Files to play or to save.
    Files {
        /// What stands above them.
        title: String,
        /// The files.
        items: Vec<Item>,
    },
}

/// How a call failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "KeptFailure")]
pub struct Failure {
    /// The code.
    pub code: String,
    /// What happened.
    pub message: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Whether the same call may succeed a moment later.
    pub retryable: bool,
    /// How long to wait before that, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// What a person has to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_action: Option<String>,
    /// Tools that may serve instead.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fallbacks: Vec<Fallback>,
}

/// What of a row is no column: everything that most calls do not have.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct More {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) parts: Vec<Piece>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) structured: Option<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) logs: Vec<LogLine>,
    #[serde(skip_serializing_if = "is_zero")]
    pub(super) logs_left_out: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) progress: Vec<Step>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<Failure>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) diagnostic: Option<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) warnings: Vec<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) masked: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) cut: Vec<String>,
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

impl Listed {
    pub(super) fn of(line: CallLine) -> Listed {
        Listed {
            id: line.id,
            at: jiff::Timestamp::from_millisecond(line.at).unwrap_or_default().to_string(),
            tool: line.tool,
            plugin: line.plugin,
            generation: line.generation,
            ok: line.ok,
            code: line.code,
            door: line.door,
            caller: line.caller,
            chat: line.chat,
            duration_ms: line.duration_us as f64 / 1000.0,
            summary: line.summary,
        }
    }
}

impl Entry {
    pub(super) fn of(row: CallRow) -> Entry {
        // What another version wrote otherwise is shown as far as the columns go.
        let more: More = row.more.as_deref().and_then(|more| serde_json::from_str(more).ok()).unwrap_or_default();
        let arguments = serde_json::from_str(&row.arguments).unwrap_or_else(|_| Value::String(row.arguments.clone()));
        Entry {
            listed: Listed::of(row.line),
            arguments,
            text: row.text,
            shown: row.shown,
            parts: more.parts,
            structured: more.structured,
            logs: more.logs,
            logs_left_out: more.logs_left_out,
            progress: more.progress,
            error: more.error,
            diagnostic: more.diagnostic,
            warnings: more.warnings,
            operations: row.operations,
            memory: row.memory,
            masked: more.masked,
            cut: more.cut,
            live_generation: None,
        }
    }
}

impl Failure {
    pub(super) fn of(error: &Error) -> Failure {
        Failure {
            code: error.code().to_owned(),
            message: error.message().to_owned(),
            hint: error.hint_text().map(str::to_owned),
            retryable: error.retryable(),
            retry_after_ms: error.retry_after_ms(),
            user_action: error.user_action().map(str::to_owned),
            fallbacks: error.fallbacks().to_vec(),
        }
    }
}
