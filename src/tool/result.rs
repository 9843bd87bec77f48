//! What a tool returned, as a model reads it: text, whether it succeeded, the structured part; and failures in words and as JSON.
//! It works on JSON that was converted already and decides nothing about the call.

use super::blob;
pub use super::handles::{Handles, Part};
use super::schema::{self, cut, describe, dotted};
use super::spec::Spec;
use crate::base::error::{Error, Kind};
use crate::base::json;
use jsonschema::Validator;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::fmt::Write as _;

/// What stands for a result that says nothing.
pub const NO_OUTPUT: &str = "(no output)";
/// Longest result in characters where nothing else is set.
pub const MAX_CHARS: usize = 200_000;
/// Most fallbacks that a failure offers.
const FALLBACKS: usize = 3;

/// A result in its final shape.
#[derive(Debug, Clone, PartialEq)]
pub struct Shaped {
    /// Whether the tool says that it succeeded.
    pub ok: bool,
    /// What a model reads.
    pub text: String,
    /// The structured result, where the tool declares a schema for it and keeps to it.
    pub structured: Option<Value>,
    /// Whether something of the text was left out.
    pub truncated: bool,
    /// The handle of the whole text, where it was cut.
    pub rest: Option<String>,
    /// For the author: what was dropped and why.
    pub warnings: Vec<String>,
    /// Why this is a failure although the tool says otherwise: it declares an output schema and does not keep to it.
    /// `internal`, or `too_large` where it would have kept to it and is cut.
    pub broken: Option<Error>,
}

/// Shapes what the tool `spec` returned. At most `chars` characters of text stay, and the rest goes behind a handle.
#[must_use]
pub fn shape(value: Value, spec: &Spec, chars: usize, handles: &Handles) -> Shaped {
    let (value, ok) = unpack(value);
    let mut shaped = Shaped {
        ok,
        text: String::new(),
        structured: None,
        truncated: false,
        rest: None,
        warnings: Vec::new(),
        broken: None,
    };
    let is_promised = ok && spec.output_schema.is_some();
    let text = match value {
        Value::String(text) => {
            if is_promised {
                let parsed = text.trim_start().starts_with('{').then(|| json::parse(&text).ok()).flatten();
                structure(&mut shaped, spec, parsed.unwrap_or_else(|| Value::String(cut(&text, 80))));
            }
            if text.is_empty() { NO_OUTPUT.to_owned() } else { text }
        }
        value => {
            let text = if value.is_null() { NO_OUTPUT.to_owned() } else { value.to_string() };
            if is_promised {
                structure(&mut shaped, spec, value);
            }
            text
        }
    };
    let text = match plain(&text) {
        Cow::Owned(clean) => clean,
        Cow::Borrowed(_) => text,
    };
    let text = match blob::without(&text, handles) {
        Some(stripped) => {
            shaped.truncated = true;
            shaped.warnings.push("base64 was left out of the text; return pictures with images::result".to_owned());
            if let Some(mut structured) = shaped.structured.take() {
                strip_blobs(&mut structured, handles);
                structure(&mut shaped, spec, structured);
            }
            // A page with a picture in it can still be read; a file as text is no answer.
            if ok && shaped.broken.is_none() && stripped.left_out > stripped.readable {
                shaped.structured = None;
                shaped.broken = Some(file_as_text(stripped.left_out, &stripped.text));
            }
            stripped.text
        }
        None => text,
    };
    match cut_text(&text, &spec.name, chars, handles) {
        Some((short, handle)) => {
            if shaped.structured.take().is_some() {
                let told = format!("the result has more than {chars} characters, and a structured result is never cut");
                shaped.broken = Some(Error::new(Kind::TooLarge, told).hint(format!(
                    "the tool has done its work; ask for less, or read the resource {handle}; its author may raise `limits.result_chars`"
                )));
            }
            shaped.truncated = true;
            shaped.rest = Some(handle);
            shaped.text = short;
        }
        None => shaped.text = text,
    }
    shaped
}

/// `[text, bool]`, exactly, is a text and whether it succeeded; every other value is a success.
fn unpack(value: Value) -> (Value, bool) {
    match value {
        Value::Array(mut pair) => match pair.as_mut_slice() {
            [first, Value::Bool(ok)] if is_text(first) => (first.take(), *ok),
            _ => (Value::Array(pair), true),
        },
        other => (other, true),
    }
}

/// The text of a result: all of it, or the first of a text and whether it succeeded. What a map or a list holds is no text.
pub(super) fn text_of(value: &mut Value) -> Option<&mut String> {
    match value {
        Value::String(text) => Some(text),
        Value::Array(pair) => match pair.as_mut_slice() {
            [Value::String(text), Value::Bool(_)] => Some(text),
            _ => None,
        },
        _ => None,
    }
}

/// A text, or a text with pictures.
fn is_text(value: &Value) -> bool {
    match value {
        Value::String(_) => true,
        Value::Object(map) => {
            map.len() == 2
                && map.get("text").is_some_and(Value::is_string)
                && map.get("images").is_some_and(Value::is_array)
        }
        _ => false,
    }
}

/// Takes a value as the structured result if it fits the declared schema. Where it does not, the call has failed: who reads the
/// schema relies on it, and the protocol lets no success go without.
fn structure(shaped: &mut Shaped, spec: &Spec, value: Value) {
    let mismatch = if value.is_object() {
        spec.output_validator().and_then(|validator| validator.iter_errors(&value).next()).map(|error| {
            let place = dotted("result", error.instance_path().as_str());
            format!("the result does not fit the output schema at `{place}`: {}", cut(&error.to_string(), 160))
        })
    } else {
        Some(format!("there is an output schema, and the result is {}, not a map", describe(&value)))
    };
    match mismatch {
        Some(why) => {
            shaped.broken = Some(Error::internal(why).hint(
                "the tool has done its work, only its answer is not what it promises; its author mends the result or `output_schema`",
            ));
        }
        None => shaped.structured = Some(value),
    }
}

impl Spec {
    fn output_validator(&self) -> Option<&Validator> {
        let schema = self.output_schema.as_ref()?;
        self.output.get_or_init(|| schema::compile(schema).ok().map(Box::new)).as_deref()
    }
}

/// The text without control characters, which a terminal would obey and a protocol may refuse: they become pictures of themselves.
fn plain(text: &str) -> Cow<'_, str> {
    let is_control = |c: char| c.is_control() && !matches!(c, '\n' | '\t' | '\r');
    // Bytes first: nearly every text is fine, and DEL and the C0 range are ASCII; C1 begins with 0xC2.
    if !text.bytes().any(|b| (b < 0x20 && !matches!(b, b'\n' | b'\t' | b'\r')) || b == 0x7f || b == 0xc2) {
        return Cow::Borrowed(text);
    }
    if !text.contains(is_control) {
        return Cow::Borrowed(text);
    }
    let picture = |c: char| match u32::from(c) {
        code @ 0..=0x1f => char::from_u32(0x2400 + code).unwrap_or('\u{fffd}'),
        0x7f => '\u{2421}',
        _ => '\u{fffd}',
    };
    Cow::Owned(text.chars().map(|c| if is_control(c) { picture(c) } else { c }).collect())
}

/// Why a result that is mostly base64 is refused. `rest` is what is left of it, with the handles of what is not.
fn file_as_text(left_out: usize, rest: &str) -> Error {
    let told =
        format!("the result is {left_out} characters of base64, which is a file and no text: {}", cut(rest, 400));
    Error::new(Kind::TooLarge, told).hint(
        "the tool has done its work; its author returns pictures with images::result, and files with attachments::marker",
    )
}

fn strip_blobs(value: &mut Value, handles: &Handles) {
    match value {
        Value::String(text) => {
            if let Some(stripped) = blob::without(text, handles) {
                *text = stripped.text;
            }
        }
        Value::Array(list) => list.iter_mut().for_each(|v| strip_blobs(v, handles)),
        Value::Object(map) => map.values_mut().for_each(|v| strip_blobs(v, handles)),
        _ => {}
    }
}

/// Head and tail of a text beyond `chars`, with a note between them, and the handle of the whole. `None` where it fits.
fn cut_text(text: &str, tool: &str, chars: usize, handles: &Handles) -> Option<(String, String)> {
    // Never more characters than bytes: short texts are not counted.
    if text.len() <= chars {
        return None;
    }
    let total = text.chars().count();
    if total <= chars {
        return None;
    }
    let tail = (chars / 20).min(2_000);
    let head = chars - tail;
    let boundary = |n: usize| text.char_indices().nth(n).map_or(text.len(), |(at, _)| at);
    let (head_end, tail_start) = (boundary(head), boundary(total - tail));
    let handle = handles.keep(text);
    let mut short = String::with_capacity(head_end + text.len() - tail_start + 256);
    short.push_str(&text[..head_end]);
    let _ = write!(
        short,
        "\n\n[{} of {total} characters of `{tool}` left out here. This is a size limit, not a failure. \
         Ask for less, or read the resource {handle}?from={head}]\n\n",
        total - chars
    );
    short.push_str(&text[tail_start..]);
    Some((short, handle))
}

/// A failure as a model reads it: code and message, what to do, then tools that may serve instead.
#[must_use]
pub fn failure_text(error: &Error) -> String {
    let message = plain(error.message());
    let mut text = format!("{}: {message}", error.code());
    // A message of several lines keeps its last one clean.
    let gap = if message.contains('\n') { '\n' } else { ' ' };
    let mut notes = Vec::new();
    if let Some(hint) = error.hint_text() {
        notes.push(format!("hint: {hint}"));
    }
    if let Some(action) = error.user_action() {
        notes.push(format!("the user can: {action}"));
    }
    match error.retry_after_ms() {
        Some(ms) => notes.push(format!("try again in {} s", ms.div_ceil(1000))),
        None if error.retryable() => notes.push("may be tried again".to_owned()),
        None => {}
    }
    if !notes.is_empty() {
        let _ = write!(text, "{gap}({})", plain(&notes.join("; ")).replace('\n', " "));
    }
    for fallback in error.fallbacks().iter().take(FALLBACKS) {
        let _ = write!(text, "\nfallback: {}", one_line(&fallback.tool));
        if !fallback.when.is_empty() {
            let _ = write!(text, " - {}", one_line(&fallback.when));
        }
    }
    text
}

fn one_line(text: &str) -> String {
    cut(&plain(text).replace(['\n', '\r'], " "), 200)
}

/// A failure for programs.
#[must_use]
pub fn failure_json(error: &Error, correlation_id: &str) -> Value {
    let fallbacks: Vec<Value> =
        error.fallbacks().iter().take(FALLBACKS).map(|f| json!({ "tool": f.tool, "when": f.when })).collect();
    let mut value = json!({
        "ok": false,
        "error": {
            "code": error.code(),
            "message": error.message(),
            "retryable": error.retryable(),
            "retry_after_ms": error.retry_after_ms(),
            "user_action": error.user_action(),
        },
        "fallbacks": fallbacks,
        "correlation_id": correlation_id,
    });
    if let Some(hint) = error.hint_text() {
        value["error"]["hint"] = hint.into();
    }
    value
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::base::error::{Fallback, Kind};

    fn spec() -> Spec {
        Spec::new("look", "Looks.", json!({ "type": "object" }))
    }

    fn with_output(schema: Value) -> Spec {
        let mut spec = spec();
        spec.output_schema = Some(schema);
        spec
    }

    fn shaped(value: Value) -> Shaped {
        shape(value, &spec(), MAX_CHARS, &Handles::default())
    }

    /// Text with the mixture of real base64, of this many characters.
    fn base64(length: usize) -> String {
        const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        (0..length).map(|i| char::from(LETTERS[i * i % 61 + i % 4])).collect()
    }

    #[test]
    fn row_14_only_a_text_with_a_real_bool_is_unpacked_and_everything_else_is_a_success() {
        let rows = [
            (json!("done"), "done", true),
            (json!(["done", true]), "done", true),
            (json!(["failed", false]), "failed", false),
            (json!(["text", 1]), "[\"text\",1]", true),
            (json!(["text", 0]), "[\"text\",0]", true),
            (json!(["text", "false"]), "[\"text\",\"false\"]", true),
            (json!(["text", null]), "[\"text\",null]", true),
            (json!(["text", false, 1]), "[\"text\",false,1]", true),
            (json!(["text"]), "[\"text\"]", true),
            (json!([false, false]), "[false,false]", true),
            (json!([1, true]), "[1,true]", true),
            (json!([[], false]), "[[],false]", true),
            (json!([{ "a": 1 }, false]), "[{\"a\":1},false]", true),
            (json!([{ "text": "t", "images": [] }, false]), "{\"text\":\"t\",\"images\":[]}", false),
            (json!(["", false]), NO_OUTPUT, false),
            (json!(null), NO_OUTPUT, true),
            (json!(""), NO_OUTPUT, true),
            (json!(5), "5", true),
            (json!(-2.5), "-2.5", true),
            (json!(true), "true", true),
            (json!(false), "false", true),
            (json!({}), "{}", true),
            (json!([]), "[]", true),
            (json!({ "ort": "Århus 中", "n": [1, 2] }), "{\"ort\":\"Århus 中\",\"n\":[1,2]}", true),
            (json!("  keeps its spaces \n"), "  keeps its spaces \n", true),
        ];
        for (value, text, ok) in rows {
            let made = shaped(value.clone());
            assert_eq!((made.text.as_str(), made.ok, made.truncated), (text, ok, false), "{value}");
            assert_eq!((made.structured, made.rest, made.warnings.len()), (None, None, 0));
        }
    }

    #[test]
    fn a_long_result_keeps_head_and_tail_and_says_what_is_missing() {
        let handles = Handles::default();
        let text: String = (0..1_000).map(|i| char::from(b'a' + (i % 26) as u8)).collect();
        for (length, chars) in [(1_000, 100), (1_000, 999), (101, 100)] {
            let text = &text[..length];
            let made = shape(json!(text), &spec(), chars, &handles);
            assert!(made.truncated && made.ok, "{length} {chars}");
            let handle = made.rest.unwrap();
            let (head, tail) = (chars - (chars / 20).min(2_000), (chars / 20).min(2_000));
            assert!(
                made.text.starts_with(&text[..head]) && made.text.ends_with(&text[length - tail..]),
                "{length} {chars}"
            );
            let note = format!("[{} of {length} characters of `look` left out here.", length - chars);
            assert!(
                made.text.contains(&note) && made.text.contains("not a failure") && made.text.contains(&handle),
                "{}",
                made.text
            );
            assert_eq!(handles.read(&handle, 0, length).unwrap().text, text);
        }
        for (text, chars) in [("x".repeat(100), 100), ("é".repeat(100), 100), (String::from("x"), usize::MAX)] {
            assert!(!shape(json!(text), &spec(), chars, &handles).truncated);
        }
    }

    #[test]
    fn a_cut_never_splits_a_character() {
        for chars in 1..60 {
            let made = shape(json!("aé日😀".repeat(40)), &spec(), chars, &Handles::default());
            assert!(made.truncated && !made.text.contains('\u{fffd}'));
        }
    }

    #[test]
    fn a_result_that_is_a_file_in_base64_is_refused_and_one_that_holds_a_file_goes_without_it() {
        let handles = Handles::default();
        let blob = base64(5_000);
        let prose = "Words that a model can read. ".repeat(300);
        let rows = [
            (json!(format!("data:image/png;base64,{blob} end")), true),
            (json!(blob), true),
            (json!([blob, true]), true),
            (json!({ "name": "x", "data": blob }), true),
            (json!({ "all": [{ "data": blob }, { "data": blob }] }), true),
            (json!(format!("{prose}{blob}")), false),
            (json!({ "text": prose, "icon": blob, "n": 1 }), false),
            (json!([blob, false]), false),
        ];
        for (value, is_refused) in rows {
            let made = shape(value.clone(), &spec(), MAX_CHARS, &handles);
            let shown = cut(&value.to_string(), 60);
            assert_eq!((made.truncated, made.broken.is_some()), (true, is_refused), "{shown}");
            assert!(made.text.contains(" characters of base64 left out: result:"), "{shown}: {}", made.text);
            assert!(!made.text.contains(&blob[..50]) && made.warnings.len() == 1, "{shown}");
            if let Some(error) = made.broken {
                let told = failure_text(&error);
                assert!(told.starts_with("too_large: the result is ") && told.len() < 900, "{told}");
                assert!(told.contains("images::result") && told.contains("attachments::marker"), "{told}");
                assert!(told.contains("left out: result:") && !told.contains(&blob[..50]), "{told}");
            }
        }
        let made = shape(json!(base64(4_096)), &spec(), MAX_CHARS, &handles);
        assert_eq!((made.text.len(), made.truncated, made.broken), (4_096, false, None));
    }

    #[test]
    fn control_characters_are_shown_and_not_obeyed() {
        let rows = [
            ("a\0b", "a\u{2400}b"),
            ("\u{1b}[31mred", "\u{241b}[31mred"),
            ("bell\u{7}", "bell\u{2407}"),
            ("del\u{7f}", "del\u{2421}"),
            ("c1\u{9b}31m", "c1\u{fffd}31m"),
            ("tab\tline\r\nend", "tab\tline\r\nend"),
            ("é £ \u{a0}", "é £ \u{a0}"),
            ("\u{200f}שלום e\u{301} 👩‍👧", "\u{200f}שלום e\u{301} 👩‍👧"),
        ];
        for (given, text) in rows {
            assert_eq!(shaped(json!(given)).text, text, "{given:?}");
        }
        assert_eq!(shaped(json!({ "a": "\0" })).text, "{\"a\":\"\\u0000\"}");
    }

    #[test]
    fn where_an_output_schema_is_declared_a_success_meets_it_and_everything_else_is_a_failure() {
        let schema = json!({ "type": "object", "required": ["city"], "properties": { "city": { "type": "string" } } });
        let rows = [
            (json!({ "city": "Oslo" }), Some(json!({ "city": "Oslo" })), ""),
            (json!({ "city": "Oslo", "more": 1 }), Some(json!({ "city": "Oslo", "more": 1 })), ""),
            (json!("{\"city\": \"Oslo\"}"), Some(json!({ "city": "Oslo" })), ""),
            (json!(["{\"city\": \"Oslo\"}", true]), Some(json!({ "city": "Oslo" })), ""),
            (json!({ "city": 5 }), None, "at `result.city`"),
            (json!({}), None, "at `result`"),
            (json!([]), None, "not a map"),
            (json!("Oslo"), None, "not a map"),
            (json!(["Oslo", true]), None, "not a map"),
            (json!(null), None, "not a map"),
            (json!(""), None, "not a map"),
            (json!(7), None, "not a map"),
            (json!(["sorry", false]), None, ""),
            (json!("{broken"), None, "not a map"),
        ];
        let spec = with_output(schema);
        for (value, structured, broken) in rows {
            let made = shape(value.clone(), &spec, MAX_CHARS, &Handles::default());
            assert_eq!((made.structured, made.broken.is_some()), (structured, !broken.is_empty()), "{value}");
            let told = made.broken.map_or(String::new(), |e| format!("{} {e}", e.code()));
            assert!(told.contains(broken) && (told.is_empty() || told.starts_with("internal ")), "{value}: {told}");
            assert!(!made.text.is_empty());
        }
        let none = shape(json!({ "city": "Oslo" }), &self::spec(), MAX_CHARS, &Handles::default());
        assert_eq!((none.structured, none.broken), (None, None));
    }

    #[test]
    fn what_is_left_out_of_the_text_is_left_out_of_the_structured_part_which_is_never_cut() {
        let spec = with_output(json!({ "type": "object" }));
        let words = "long ".repeat(1_500);
        let made = shape(json!({ "data": base64(5_000), "words": words }), &spec, MAX_CHARS, &Handles::default());
        assert!(made.structured.unwrap()["data"].as_str().unwrap().len() < 200);
        let made = shape(json!({ "data": base64(5_000) }), &spec, MAX_CHARS, &Handles::default());
        assert_eq!((made.structured, made.broken.map(|e| e.kind())), (None, Some(Kind::TooLarge)));
        let strict =
            with_output(json!({ "type": "object", "properties": { "data": { "pattern": "^[A-Za-z0-9+/]+$" } } }));
        let made = shape(json!({ "data": base64(5_000) }), &strict, MAX_CHARS, &Handles::default());
        assert_eq!((made.structured, made.broken.map(|e| e.kind())), (None, Some(Kind::Internal)));
        let made = shape(json!({ "data": "long ".repeat(1_000) }), &spec, 100, &Handles::default());
        assert_eq!((made.structured, made.broken.map(|e| e.kind())), (None, Some(Kind::TooLarge)));
        assert!(made.rest.is_some());
    }

    #[test]
    fn a_failure_reads_as_code_message_advice_and_fallbacks() {
        let fallback = |tool: &str, when: &str| Fallback { tool: tool.to_owned(), when: when.to_owned() };
        let rows = [
            (Error::not_found("no note `x`"), "not_found: no note `x`"),
            (Error::not_found("no note `x`").hint("list them"), "not_found: no note `x` (hint: list them)"),
            (Error::new(Kind::Timeout, "30 s are over"), "timeout: 30 s are over (may be tried again)"),
            (
                Error::new(Kind::RateLimited, "too many").with_retry_after_ms(1_500),
                "rate_limited: too many (try again in 2 s)",
            ),
            (
                Error::new(Kind::UpstreamAuth, "the drive refused the token (401)")
                    .with_user_action("reconnect the drive")
                    .with_fallbacks(vec![fallback("web_search", "the answer is public"), fallback("find_note", "")]),
                "upstream_auth: the drive refused the token (401) (the user can: reconnect the drive)\nfallback: web_search - the answer is public\nfallback: find_note",
            ),
            (
                Error::invalid("2 arguments do not fit\n- a: x\n- b: y").hint("again"),
                "invalid_arguments: 2 arguments do not fit\n- a: x\n- b: y\n(hint: again)",
            ),
            (Error::internal("a\0b\u{1b}[0m"), "internal: a\u{2400}b\u{241b}[0m"),
        ];
        for (error, text) in rows {
            assert_eq!(failure_text(&error), text);
        }
        let many = Error::internal("x")
            .with_fallbacks((0..9).map(|i| fallback(&format!("t{i}"), "a\nfallback: evil")).collect());
        assert_eq!(failure_text(&many).lines().count(), 4);
    }

    #[test]
    fn a_failure_for_programs_has_every_field() {
        let error = Error::new(Kind::UpstreamAuth, "the drive refused the token (401)")
            .with_user_action("reconnect the drive in Settings")
            .with_fallbacks(vec![Fallback { tool: "web_search".to_owned(), when: "the answer is public".to_owned() }]);
        assert_eq!(
            failure_json(&error, "c_9f2"),
            json!({ "ok": false, "error": { "code": "upstream_auth", "message": "the drive refused the token (401)", "retryable": false,
                "retry_after_ms": null, "user_action": "reconnect the drive in Settings" },
                "fallbacks": [{ "tool": "web_search", "when": "the answer is public" }], "correlation_id": "c_9f2" })
        );
        assert_eq!(failure_json(&Error::internal("x").hint("y"), "c")["error"]["hint"], "y");
    }
}
