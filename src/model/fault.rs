//! What a server's refusal means, in words for people: what is wrong and what to do about it. Pure; it repeats no key.

use super::Profile;
use super::wire::Without;
use crate::base::error::{Error, Kind, excerpt};
use serde_json::Value;

/// Most letters of a server's own words.
const MOST_WORDS: usize = 300;

/// The error that a document is, if it is one: its words, and the status it names.
pub(super) fn in_document(document: &Value) -> Option<(u16, String)> {
    let error = document.get("error").filter(|e| !e.is_null());
    let is_error = document.get("object").and_then(Value::as_str) == Some("error");
    let inner = match error {
        Some(error) => error,
        None if is_error => document,
        None => return None,
    };
    let status = ["code", "status", "status_code"]
        .into_iter()
        .filter_map(|key| inner.get(key))
        .find_map(|code| code.as_u64().or_else(|| code.as_str()?.parse().ok()))
        .and_then(|code| u16::try_from(code).ok())
        .filter(|code| (400..600).contains(code));
    let words = words(document).unwrap_or_default();
    let kind = ["type", "code"].into_iter().filter_map(|key| inner.get(key)?.as_str()).collect::<Vec<_>>().join(" ");
    let status = status.unwrap_or_else(|| {
        let has = |part: &str| kind.contains(part) || words.to_lowercase().contains(part);
        match () {
            () if has("insufficient_quota") => 402,
            () if has("rate_limit") || has("rate limit") => 429,
            () if has("overloaded") => 529,
            () if has("authentication") || has("invalid_api_key") => 401,
            () if has("not_found") => 404,
            () if has("invalid_request") || has("context") => 400,
            () => 500,
        }
    });
    Some((status, format!("{kind} {words}").trim().to_owned()))
}

/// The words of a body, whatever form it has.
fn words(document: &Value) -> Option<String> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let error = document.get("error");
    error
        .and_then(|e| text(e).or_else(|| e.get("message").and_then(text)))
        .or_else(|| ["message", "detail", "msg"].into_iter().find_map(|key| document.get(key).and_then(text)))
        .or_else(|| document.get("detail").map(Value::to_string))
        .or_else(|| error.map(Value::to_string))
}

/// A body's words: those of its document, or itself where it is short text.
pub(super) fn of_body(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    match serde_json::from_str::<Value>(&text) {
        Ok(document) => in_document(&document).map(|(_, words)| words).or_else(|| words(&document)).unwrap_or_default(),
        // A page of a proxy says nothing to a person.
        Err(_) if text.trim_start().starts_with('<') => String::new(),
        Err(_) => text.trim().to_owned(),
    }
}

/// Whether the same may be sent again after a moment.
pub(super) fn is_passing(status: u16, words: &str) -> bool {
    match status {
        429 => !is_billing(words),
        500 | 502 | 503 | 504 | 529 => true,
        _ => false,
    }
}

fn is_billing(words: &str) -> bool {
    let words = words.to_lowercase();
    ["insufficient_quota", "billing", "credit", "exceeded your current quota", "payment"]
        .iter()
        .any(|part| words.contains(part))
}

/// What to leave out where a server refuses a request for a part that we can do without.
pub(super) fn adapted(status: u16, words: &str, without: Without) -> Option<Without> {
    if !matches!(status, 400 | 422) {
        return None;
    }
    let words = words.to_lowercase();
    let mut next = without;
    next.stream_options |= words.contains("stream_options");
    next.max_tokens |= words.contains("max_completion_tokens");
    next.temperature |=
        words.contains("temperature") && (words.contains("unsupported") || words.contains("not support"));
    (next != without).then_some(next)
}

/// The error for a refusal with this status and these words.
pub(super) fn refused(profile: &Profile, place: &str, status: u16, words: &str) -> Error {
    let name = &profile.name;
    let said = match words.trim() {
        "" => String::new(),
        words => format!(": {}", excerpt(words, MOST_WORDS)),
    };
    let small = words.to_lowercase();
    let has = |parts: &[&str]| parts.iter().any(|part| small.contains(part));
    let new = |kind: Kind, what: &str| Error::new(kind, format!("the model `{name}` {what}{said}"));
    match status {
        // These words may hold a part of the key.
        401 => Error::new(Kind::UpstreamAuth, format!("the server of the model `{name}` does not accept the key"))
            .with_user_action(format!("give the model `{name}` a key that its server accepts"))
            .hint("store a good key with `lapidary credentials set`, and name it in `credential` of the model"),
        403 => new(Kind::UpstreamAuth, "may not be used with this key")
            .with_retryable(false)
            .hint("see whether the account may use this model, or choose another model"),
        402 => new(Kind::Quota, "has no credit left")
            .with_user_action("add credit to the account of the model's server")
            .hint("add credit to the account, or choose another model"),
        404 => new(Kind::NotFound, &format!("is not known to {place} as `{}`", profile.model))
            .hint("see `model` and `base_url` in user/lapidary.toml; an address usually ends in /v1"),
        408 => new(Kind::Timeout, "took too long").hint("try again in a moment"),
        413 => new(Kind::TooLarge, "does not take so much at once").hint("leave pictures out, or start a new chat"),
        429 if is_billing(words) => new(Kind::Quota, "has no credit left")
            .with_user_action("add credit to the account of the model's server")
            .hint("add credit to the account, or choose another model"),
        429 => new(Kind::RateLimited, "is asked too often").hint("wait a moment, then send it again"),
        400 | 422 | 500
            if has(&["context length", "context_length", "context size", "context window", "too many tokens"])
                || (has(&["maximum context"]) || has(&["exceed"]) && has(&["context", "token"])) =>
        {
            new(Kind::TooLarge, "has no room for this conversation").with_retryable(false).hint(
                "start a new chat or clear this one, or set `context` of the model so that old messages are left out",
            )
        }
        400 | 422 | 500 if has(&["image", "vision", "multimodal", "mmproj"]) => {
            new(Kind::InvalidArguments, "takes no pictures")
                .with_retryable(false)
                .hint("set `vision = false` for the model in user/lapidary.toml, or choose one that sees")
        }
        400 | 422 | 500 if has(&["tool", "function call", "jinja"]) => {
            new(Kind::InvalidArguments, "does not take these tools")
                .with_retryable(false)
                .hint("set `tools = false` for the model in user/lapidary.toml, or choose fewer tools for the chat")
        }
        400 | 422 => new(Kind::InvalidArguments, "refused the request")
            .hint("see `model`, `dialect` and `base_url` of the model in user/lapidary.toml"),
        300..400 => Error::new(Kind::UpstreamUnavailable, format!("{place} sends the model `{name}` elsewhere"))
            .with_retryable(false)
            .hint("write the address it leads to as `base_url`"),
        503 if has(&["loading"]) => {
            new(Kind::UpstreamUnavailable, "is still being loaded").hint("wait until it is loaded")
        }
        529 => new(Kind::UpstreamUnavailable, "is overloaded").hint("try again in a few minutes"),
        500.. => new(Kind::UpstreamUnavailable, &format!("failed with status {status}"))
            .hint("try again in a moment; if it stays, look at the server's own log"),
        _ => new(Kind::UpstreamUnavailable, &format!("answered with status {status}"))
            .with_retryable(false)
            .hint("see `base_url` of the model in user/lapidary.toml"),
    }
}

/// The error for a server that was not reached or fell silent.
pub(super) fn unreached(profile: &Profile, place: &str, is_near: bool, error: &Error) -> Error {
    let name = &profile.name;
    match error.kind() {
        Kind::Timeout => Error::new(Kind::Timeout, format!("the model `{name}` does not answer: {}", error.message()))
            .hint("a large model on a small machine takes long for the first word; try a shorter conversation"),
        Kind::UpstreamUnavailable if is_near => {
            Error::new(Kind::UpstreamUnavailable, format!("the server of the model `{name}` at {place} is not running"))
                .hint(format!("start the server of the model `{name}`, then send it again"))
        }
        Kind::UpstreamUnavailable => {
            let hint = error.hint_text().unwrap_or("see whether this machine is online, then try again").to_owned();
            Error::new(Kind::UpstreamUnavailable, format!("the model `{name}` cannot be reached: {}", error.message()))
                .with_retryable(error.retryable())
                .hint(hint)
        }
        _ => error.clone().context(format!("the model `{name}`")),
    }
}

/// The error for an answer that ended before its end.
pub(super) fn broke_off(profile: &Profile, why: Option<&Error>) -> Error {
    let (kind, why) = match why {
        Some(e) => (e.kind(), format!(": {}", e.message())),
        None => (Kind::UpstreamUnavailable, String::new()),
    };
    Error::new(kind, format!("the model's answer broke off (model `{}`){why}", profile.name))
        .hint("send it again, or ask it to go on")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_refusal_is_told_in_plain_words_with_what_to_do() {
        let rows = [
            (401, "Incorrect API key provided: sk-abcd", "upstream_auth", "key"),
            (403, "region", "upstream_auth", "may not be used"),
            (402, "", "quota", "credit"),
            (404, "model not found", "not_found", "is not known"),
            (408, "", "timeout", "too long"),
            (413, "", "too_large", "so much"),
            (429, "slow down", "rate_limited", "too often"),
            (429, "insufficient_quota You exceeded your current quota", "quota", "credit"),
            (400, "This model's maximum context length is 8192 tokens", "too_large", "no room"),
            (400, "the request exceeds the available context size", "too_large", "no room"),
            (500, "the context size is too small: context window", "too_large", "no room"),
            (400, "image_url is not supported", "invalid_arguments", "no pictures"),
            (500, "image input is not supported - hint: provide the mmproj", "invalid_arguments", "no pictures"),
            (400, "tools is not supported", "invalid_arguments", "these tools"),
            (500, "tools param requires --jinja flag", "invalid_arguments", "these tools"),
            (400, "bad", "invalid_arguments", "refused"),
            (307, "", "upstream_unavailable", "elsewhere"),
            (503, "Loading model", "upstream_unavailable", "being loaded"),
            (529, "", "upstream_unavailable", "overloaded"),
            (500, "", "upstream_unavailable", "status 500"),
            (502, "", "upstream_unavailable", "status 502"),
            (418, "", "upstream_unavailable", "status 418"),
        ];
        let profile = Profile::new("mine", "m-1");
        for (status, words, code, part) in rows {
            let error = refused(&profile, "http://127.0.0.1:1", status, words);
            assert_eq!(error.code(), code, "{status} {words}: {error}");
            assert!(error.message().contains(part) && error.message().contains("`mine`"), "{status} {words}: {error}");
            assert!(error.hint_text().is_some(), "{status} {words}");
            assert!(!error.to_string().contains("sk-"), "{error}");
        }
    }

    #[test]
    fn an_error_is_found_in_every_form_of_document() {
        let rows = [
            (json!({"error": {"message": "m", "type": "t", "code": "c"}}), Some((500, "t c m"))),
            (json!({"error": {"message": "m", "code": 429}}), Some((429, "m"))),
            (json!({"error": {"message": "m", "code": "503"}}), Some((503, "503 m"))),
            (json!({"error": "m"}), Some((500, "m"))),
            (
                json!({"error": {"message": "Overloaded", "type": "overloaded_error"}}),
                Some((529, "overloaded_error Overloaded")),
            ),
            (json!({"object": "error", "message": "m", "code": 404}), Some((404, "m"))),
            (json!({"error": null, "choices": []}), None),
            (json!({"choices": []}), None),
            (json!([]), None),
        ];
        for (document, want) in rows {
            let got = in_document(&document);
            assert_eq!(got.as_ref().map(|(status, words)| (*status, words.as_str())), want, "{document}");
        }
        for (body, want) in [
            ("<html>bad gateway</html>", ""),
            (" plain ", "plain"),
            ("{\"detail\": \"m\"}", "m"),
            ("{\"detail\": [{\"loc\": 1}]}", "[{\"loc\":1}]"),
            ("{\"error\": {\"message\": \"m\"}}", "m"),
            ("{}", ""),
        ] {
            assert_eq!(of_body(body.as_bytes()), want, "{body}");
        }
    }

    #[test]
    fn only_what_passes_is_sent_again() {
        for (status, words, again) in [
            (429, "", true),
            (429, "insufficient_quota", false),
            (500, "", true),
            (502, "", true),
            (503, "", true),
            (504, "", true),
            (529, "", true),
            (400, "", false),
            (401, "", false),
            (404, "", false),
            (501, "", false),
        ] {
            assert_eq!(is_passing(status, words), again, "{status} {words}");
        }
        let none = Without::default();
        assert!(adapted(400, "Unknown field: stream_options", none).is_some_and(|w| w.stream_options));
        assert!(adapted(400, "use 'max_completion_tokens' instead", none).is_some_and(|w| w.max_tokens));
        assert!(adapted(400, "Unsupported value: 'temperature'", none).is_some_and(|w| w.temperature));
        assert_eq!(adapted(400, "bad", none), None);
        assert_eq!(adapted(500, "stream_options", none), None);
        assert_eq!(adapted(400, "stream_options", Without { stream_options: true, ..none }), None);
    }
}
