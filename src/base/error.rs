//! The one error of the host: a closed kind, a message, a hint that says what to do next.
//! It knows nothing of scripts, HTTP or terminals; the four renderers live in their doors.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// What went wrong, as a closed list; `code()` is the word that scripts, models and programs see.
/// The comments are the documentation that people read: one sentence each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "ErrorCode")]
pub enum Kind {
    /// Arguments do not fit the tool's schema or a function's parameters.
    InvalidArguments,
    /// The named thing does not exist.
    NotFound,
    /// Somebody else was first, or a name is taken.
    Conflict,
    /// A grant or permission is missing.
    PermissionDenied,
    /// Switched off, or not callable here.
    Disabled,
    /// Bytes are not a picture that can be used.
    BadImage,
    /// The chat does not take this item.
    InboxRefused,
    /// The chat is in a turn.
    ChatBusy,
    /// The chat is sealed by the vault.
    ChatSealed,
    /// A write was started and its end is unknown.
    OutcomeUnknown,
    /// A person said no.
    ApprovalDeclined,
    /// Nobody decided in time.
    ApprovalExpired,
    /// The other side refused our credentials.
    UpstreamAuth,
    /// The other side is not there or failed.
    UpstreamUnavailable,
    /// Too many requests.
    RateLimited,
    /// A deadline passed.
    Timeout,
    /// Too big to accept or to return.
    TooLarge,
    /// Somebody stopped it.
    Cancelled,
    /// An operation, memory or count budget is used up.
    Quota,
    /// A fault of the host or of the script itself.
    Internal,
}

impl Kind {
    /// Every kind, in the order of the documentation.
    pub const ALL: [Kind; 20] = [
        Kind::InvalidArguments,
        Kind::NotFound,
        Kind::Conflict,
        Kind::PermissionDenied,
        Kind::Disabled,
        Kind::BadImage,
        Kind::InboxRefused,
        Kind::ChatBusy,
        Kind::ChatSealed,
        Kind::OutcomeUnknown,
        Kind::ApprovalDeclined,
        Kind::ApprovalExpired,
        Kind::UpstreamAuth,
        Kind::UpstreamUnavailable,
        Kind::RateLimited,
        Kind::Timeout,
        Kind::TooLarge,
        Kind::Cancelled,
        Kind::Quota,
        Kind::Internal,
    ];

    /// The word for this kind, as in `failure(#{code: ..})`.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Kind::InvalidArguments => "invalid_arguments",
            Kind::NotFound => "not_found",
            Kind::Conflict => "conflict",
            Kind::PermissionDenied => "permission_denied",
            Kind::Disabled => "disabled",
            Kind::BadImage => "bad_image",
            Kind::InboxRefused => "inbox_refused",
            Kind::ChatBusy => "chat_busy",
            Kind::ChatSealed => "chat_sealed",
            Kind::OutcomeUnknown => "outcome_unknown",
            Kind::ApprovalDeclined => "approval_declined",
            Kind::ApprovalExpired => "approval_expired",
            Kind::UpstreamAuth => "upstream_auth",
            Kind::UpstreamUnavailable => "upstream_unavailable",
            Kind::RateLimited => "rate_limited",
            Kind::Timeout => "timeout",
            Kind::TooLarge => "too_large",
            Kind::Cancelled => "cancelled",
            Kind::Quota => "quota",
            Kind::Internal => "internal",
        }
    }

    /// The kind for a code word, or `None` for a word that is not on the list.
    #[must_use]
    pub fn from_code(code: &str) -> Option<Kind> {
        Kind::ALL.into_iter().find(|k| k.code() == code)
    }

    /// Whether the same call may succeed a moment later without anybody changing anything.
    #[must_use]
    pub const fn retryable(self) -> bool {
        matches!(self, Kind::ChatBusy | Kind::UpstreamUnavailable | Kind::RateLimited | Kind::Timeout)
    }
}

/// A tool that may serve instead of the one that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Fallback {
    /// The tool's name.
    pub tool: String,
    /// When it fits, in a few words.
    #[serde(default)]
    pub when: String,
}

/// The error of every layer. Cheap to move: one pointer.
#[derive(Debug, Clone, PartialEq)]
pub struct Error(Box<Inner>);

#[derive(Debug, Clone, PartialEq)]
struct Inner {
    kind: Kind,
    message: String,
    hint: Option<String>,
    retryable: Option<bool>,
    retry_after_ms: Option<u64>,
    user_action: Option<String>,
    fallbacks: Vec<Fallback>,
}

/// A piece of a text from outside as a message shows it: at most `most` characters of it, with what would break a line or fool a
/// reader written out.
#[must_use]
pub fn excerpt(text: &str, most: usize) -> String {
    text.chars().take(most).flat_map(char::escape_debug).collect()
}

/// Short for a result with our [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// An error of `kind`. The message is lower case, names the thing and ends without a full stop.
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        Error(Box::new(Inner {
            kind,
            message: message.into(),
            hint: None,
            retryable: None,
            retry_after_ms: None,
            user_action: None,
            fallbacks: Vec::new(),
        }))
    }

    /// Short for [`Kind::InvalidArguments`].
    pub fn invalid(message: impl Into<String>) -> Self {
        Error::new(Kind::InvalidArguments, message)
    }

    /// Short for [`Kind::NotFound`].
    pub fn not_found(message: impl Into<String>) -> Self {
        Error::new(Kind::NotFound, message)
    }

    /// Short for [`Kind::PermissionDenied`].
    pub fn denied(message: impl Into<String>) -> Self {
        Error::new(Kind::PermissionDenied, message)
    }

    /// Short for [`Kind::Internal`].
    pub fn internal(message: impl Into<String>) -> Self {
        Error::new(Kind::Internal, message)
    }

    /// Adds what to do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.0.hint = Some(hint.into());
        self
    }

    /// Says whether a retry may help, where the kind's own answer is wrong.
    #[must_use]
    pub fn with_retryable(mut self, yes: bool) -> Self {
        self.0.retryable = Some(yes);
        self
    }

    /// Says how long to wait before a retry, in milliseconds.
    #[must_use]
    pub fn with_retry_after_ms(mut self, ms: u64) -> Self {
        self.0.retry_after_ms = Some(ms);
        self
    }

    /// Says what a person has to do.
    #[must_use]
    pub fn with_user_action(mut self, action: impl Into<String>) -> Self {
        self.0.user_action = Some(action.into());
        self
    }

    /// Adds tools that may serve instead.
    #[must_use]
    pub fn with_fallbacks(mut self, fallbacks: Vec<Fallback>) -> Self {
        self.0.fallbacks = fallbacks;
        self
    }

    /// Puts `context: ` before the message.
    #[must_use]
    pub fn context(mut self, context: impl fmt::Display) -> Self {
        self.0.message = format!("{context}: {}", self.0.message);
        self
    }

    /// Replaces the message by what `word` makes of it, for a reader who must not see all of it.
    #[must_use]
    pub fn reworded(mut self, word: impl FnOnce(&str) -> String) -> Self {
        self.0.message = word(&self.0.message);
        self
    }

    /// The kind.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.0.kind
    }

    /// The code word of the kind.
    #[must_use]
    pub fn code(&self) -> &'static str {
        self.0.kind.code()
    }

    /// The message without the hint.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// What to do about it, if known.
    #[must_use]
    pub fn hint_text(&self) -> Option<&str> {
        self.0.hint.as_deref()
    }

    /// Whether a retry may help.
    #[must_use]
    pub fn retryable(&self) -> bool {
        self.0.retryable.unwrap_or(self.0.kind.retryable())
    }

    /// How long to wait before a retry, in milliseconds.
    #[must_use]
    pub fn retry_after_ms(&self) -> Option<u64> {
        self.0.retry_after_ms
    }

    /// What a person has to do, if known.
    #[must_use]
    pub fn user_action(&self) -> Option<&str> {
        self.0.user_action.as_deref()
    }

    /// Tools that may serve instead.
    #[must_use]
    pub fn fallbacks(&self) -> &[Fallback] {
        &self.0.fallbacks
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)?;
        if let Some(hint) = &self.0.hint {
            write!(f, " (hint: {hint})")?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {}

/// Turns an I/O error on `what` into ours, with the path in the message.
pub fn io(what: impl fmt::Display, e: &std::io::Error) -> Error {
    use std::io::ErrorKind as E;
    let kind = match e.kind() {
        E::NotFound | E::NotADirectory => Kind::NotFound,
        E::InvalidFilename | E::IsADirectory => Kind::InvalidArguments,
        E::AlreadyExists => Kind::Conflict,
        E::PermissionDenied | E::ReadOnlyFilesystem => Kind::PermissionDenied,
        E::StorageFull | E::QuotaExceeded | E::FileTooLarge => Kind::Quota,
        _ => Kind::Internal,
    };
    let error = Error::new(kind, format!("{what}: {e}"));
    match e.kind() {
        E::ReadOnlyFilesystem => error.hint("the file system is read-only; give --root a folder that can be written"),
        E::StorageFull => error.hint("the disk is full; free some space, nothing was changed"),
        E::PermissionDenied => error.hint("check the owner and mode of the folder"),
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_unique_and_read_back() {
        for kind in Kind::ALL {
            assert_eq!(Kind::from_code(kind.code()), Some(kind));
        }
        assert_eq!(Kind::from_code("nonsense"), None);
    }

    #[test]
    fn text_carries_the_hint() {
        let e = Error::not_found("no tool `x`").hint("see `lapidary tools`");
        assert_eq!(e.to_string(), "no tool `x` (hint: see `lapidary tools`)");
    }
}
