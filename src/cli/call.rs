//! `call`: one tool through the whole dispatcher, with its result as people or programs read it.

use super::context::{Context, Done, Stop, Verdict};
use super::{parts, print};
use crate::app::Host;
use crate::base::error::{Error, Kind};
use crate::base::json as strict;
use crate::script::ctx::Sink;
use crate::tool::arguments::MAX_TEXT;
use crate::tool::dispatch::{Arguments, Call as ToolCall, CallHandle, Outcome, Who};
use crate::tool::spec::Spec;
use clap::Args;
use serde_json::{Map, Value, json};
use std::io::Read;
use std::path::PathBuf;
use std::sync::Arc;

/// The chat that calls without one belong to.
pub const CHAT: &str = "cli";

/// Run one tool through the whole dispatcher
#[derive(Args)]
#[command(after_help = "\
Examples:
  lapidary call roll_dice sides=20
  lapidary call roll_dice --args '{\"sides\": 20}' --json
  lapidary call show_picture --save pictures
  echo '{\"sides\": 20}' | lapidary call roll_dice -")]
pub struct Call {
    /// The tool's name
    tool: String,
    /// Arguments as key=value, where the value is text or JSON as the tool's schema says; `-` reads them as JSON from stdin
    #[arg(value_name = "KEY=VALUE")]
    pairs: Vec<String>,
    /// Arguments as one JSON object; `-` reads it from stdin
    #[arg(long, value_name = "JSON", allow_hyphen_values = true, conflicts_with = "pairs")]
    args: Option<String>,
    /// The chat it belongs to, by name [default: cli]
    #[arg(long, value_name = "NAME")]
    chat: Option<String>,
    /// Write the pictures of the result into this folder
    #[arg(long, value_name = "DIR")]
    save: Option<PathBuf>,
    /// Call as from a private chat: only tools that stay on this machine may run
    #[arg(long)]
    private: bool,
    #[arg(long = "as", value_name = "AI", hide = true)]
    act_as: Option<String>,
    #[arg(long, hide = true)]
    yes: bool,
}

impl Call {
    pub(super) fn run(&self, cx: &Context) -> Done {
        if self.act_as.is_some() {
            return Err(Stop::not_yet("`--as`"));
        }
        if self.yes {
            return Err(Stop::not_yet("`--yes`"));
        }
        let chat = self.chat.as_deref().unwrap_or(CHAT);
        if chat.trim().is_empty() || chat.chars().any(char::is_control) {
            return Err(Stop::usage("the name of the chat is empty or holds control characters", "--chat NAME"));
        }
        let from_stdin = self.args.as_deref() == Some("-") || self.pairs == ["-"];
        check_pairs(if from_stdin { &[] } else { &self.pairs })?;
        let text = match &self.args {
            _ if from_stdin => match stdin() {
                Ok(text) => Some(text),
                Err(e) => return Ok(self.refused(cx, e)),
            },
            text => text.clone(),
        };
        let host = cx.calling_host()?;
        let arguments = match text {
            Some(text) => Arguments::Text(text),
            None => {
                let snapshot = host.dispatcher().snapshot();
                Arguments::Object(from_pairs(&self.pairs, snapshot.get(&self.tool).map(|t| &*t.spec))?)
            }
        };
        let mut who = Who::owner("cli").in_chat(chat);
        who.private = self.private;
        let handle = Arc::new(CallHandle::default());
        cancel_on_interrupt(&host, handle.clone());
        let sink: Arc<dyn Sink> = Arc::new(Progress { shown: print::is_watched() });
        let outcome = host.call_now(ToolCall {
            arguments,
            sink,
            handle: Some(handle),
            ..ToolCall::new(self.tool.as_str(), Map::new(), who)
        });
        let saved = match &self.save {
            Some(folder) => parts::save(&outcome, folder).map_err(Stop::Failed)?,
            None => Vec::new(),
        };
        show(&outcome, &saved, cx);
        for warning in &outcome.warnings {
            print::note(format_args!("warning: {warning}"));
        }
        if !cx.json {
            tell_if_behind(&host, &outcome);
        }
        host.stop();
        Ok(Verdict::of(outcome.ok))
    }

    /// Arguments that could not even be read: the same answer as from the dispatcher.
    fn refused(&self, cx: &Context, e: Error) -> Verdict {
        if cx.json {
            let mut value = print::failure_json(&e);
            value["text"] = format!("{}: {}", e.code(), e.message()).into();
            for (key, empty) in [
                ("images", json!([])),
                ("files", json!([])),
                ("duration_ms", 0.into()),
                ("operations", 0.into()),
                ("generation", 0.into()),
            ] {
                value[key] = empty;
            }
            print::json(&value);
        } else {
            print::failure(&e);
        }
        Verdict::Bad
    }
}

fn stdin() -> Result<String, Error> {
    let mut bytes = Vec::new();
    let most = MAX_TEXT as u64 + 1;
    std::io::stdin()
        .lock()
        .take(most)
        .read_to_end(&mut bytes)
        .map_err(|e| crate::base::error::io("cannot read the arguments from stdin", &e))?;
    if bytes.len() as u64 == most {
        return Err(Error::new(Kind::TooLarge, format!("the arguments on stdin are more than {MAX_TEXT} bytes"))
            .hint("pass less at once, or the name of a file that the tool reads"));
    }
    String::from_utf8(bytes).map_err(|e| {
        let at = e.utf8_error().valid_up_to();
        Error::invalid(format!("the arguments on stdin are not UTF-8: byte {at}")).hint("send JSON as UTF-8")
    })
}

fn check_pairs(pairs: &[String]) -> Result<(), Stop> {
    match pairs.iter().find(|p| !p.contains('=') || p.starts_with('=')) {
        Some(bad) => Err(Stop::usage(
            format!("`{}` is not key=value", print::clip(bad, 60)),
            "write name=value for each argument, or --args '{\"name\": \"value\"}'",
        )),
        None => Ok(()),
    }
}

/// `key=value` words as an object. The schema says whether a value is text; all others may be JSON, and what is no JSON is
/// text. A list may be given one entry at a time.
fn from_pairs(pairs: &[String], spec: Option<&Spec>) -> Result<Map<String, Value>, Stop> {
    let mut map = Map::new();
    for pair in pairs {
        let (key, text) = pair.split_once('=').unwrap_or((pair, ""));
        let schema = spec.and_then(|s| s.parameters.get("properties")).and_then(|p| p.get(key));
        let types = schema.map(types_of).unwrap_or_default();
        let is_text = types == ["string"];
        let value = if is_text { Value::String(text.to_owned()) } else { loose(text) };
        if types == ["array"] && !value.is_array() {
            let items = schema.and_then(|s| s.get("items")).map(types_of).unwrap_or_default();
            if let ["integer" | "number"] = items.as_slice() {
                // Numbers go on as text, with commas between: the dispatcher takes that apart as it does for a model.
                let Value::String(list) = map.entry(key).or_insert_with(|| "".into()) else { return Err(twice(key)) };
                if !list.is_empty() {
                    list.push(',');
                }
                list.push_str(text);
                continue;
            }
            let item = if items == ["string"] { Value::String(text.to_owned()) } else { value };
            match map.entry(key).or_insert_with(|| json!([])) {
                Value::Array(list) => list.push(item),
                _ => return Err(twice(key)),
            }
        } else if map.insert(key.to_owned(), value).is_some() {
            return Err(twice(key));
        }
    }
    Ok(map)
}

/// Arguments as typed behind a tool's name: nothing, one JSON object, or `key=value` words. `None` for nothing.
pub(super) fn typed_arguments(text: &str, spec: Option<&Spec>) -> Result<Option<Map<String, Value>>, Stop> {
    if text.is_empty() {
        return Ok(None);
    }
    if text.starts_with('{') {
        return crate::tool::arguments::parse(text).map(Some).map_err(Stop::Failed);
    }
    let words = words(text);
    check_pairs(&words)?;
    from_pairs(&words, spec).map(Some)
}

/// Words as a shell splits them: quotes hold spaces, a backslash holds the next character.
fn words(text: &str) -> Vec<String> {
    let mut out = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (Some(q), c) if c == q => quote = None,
            (None, '"' | '\'') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None | Some('"'), '\\') => word.get_or_insert_default().extend(chars.next()),
            (None, c) if c.is_whitespace() => out.extend(word.take()),
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    out.extend(word);
    out
}

fn twice(key: &str) -> Stop {
    Stop::usage(format!("the argument `{key}` is given twice"), "give it once; a list is written name='[1, 2]'")
}

fn types_of(schema: &Value) -> Vec<&str> {
    match schema.get("type") {
        Some(Value::String(one)) => vec![one],
        Some(Value::Array(many)) => many.iter().filter_map(Value::as_str).filter(|t| *t != "null").collect(),
        _ => Vec::new(),
    }
}

fn loose(text: &str) -> Value {
    strict::parse_untrusted(text).unwrap_or_else(|_| Value::String(text.to_owned()))
}

/// The first Ctrl+C stops the script, the second one the program.
pub(super) fn cancel_on_interrupt(host: &Host, handle: Arc<CallHandle>) {
    host.services().runtime.spawn(async move {
        let mut is_first = true;
        while tokio::signal::ctrl_c().await.is_ok() {
            if !is_first {
                std::process::exit(130);
            }
            is_first = false;
            handle.cancel();
        }
    });
}

/// Shows what a running call says about itself, where a person watches.
pub(super) struct Progress {
    /// Whether anybody watches.
    pub shown: bool,
}

impl Sink for Progress {
    fn status(&self, text: &str) {
        if self.shown {
            print::note(format_args!("  {}", print::clip(text, 120)));
        }
    }

    fn step(&self, done: i64, total: i64) {
        if self.shown {
            print::note(format_args!("  {done} of {total}"));
        }
    }

    fn log(&self, level: &str, text: &str) {
        if self.shown {
            print::note(format_args!("  {level}: {}", print::clip(text, 200)));
        }
    }
}

/// The result as people or programs read it.
fn show(outcome: &Outcome, saved: &[PathBuf], cx: &Context) {
    if cx.json {
        print::json(&outcome_json(outcome));
        return;
    }
    if outcome.ok {
        show_success(outcome);
    } else {
        show_failure(outcome);
        show_parts(outcome);
    }
    for path in saved {
        print::note(format_args!("saved {}", path.display()));
    }
}

/// The person's copy of the text, and a line for each thing beside it.
fn show_success(outcome: &Outcome) {
    let text = outcome.for_person();
    if !text.is_empty() || outcome.parts.is_empty() {
        print::line(text);
    }
    show_parts(outcome);
}

fn show_parts(outcome: &Outcome) {
    for line in parts::lines(outcome) {
        print::line(line);
    }
}

/// Says so where an older version answered because the files do not load, or wait.
fn tell_if_behind(host: &Host, outcome: &Outcome) {
    let status = host.plugins().status(&outcome.plugin).filter(|s| s.disk.is_some());
    if let Some((status, first)) = status.as_ref().and_then(|s| Some((s, s.diagnostics.first()?))) {
        let (plugin, generation) = (&outcome.plugin, outcome.generation);
        let what = if status.waiting { "waits for a yes" } else { "does not load" };
        print::note(format_args!("note: version {generation} of {plugin} answered; what is on disk {what}"));
        print::note(format_args!("  {}", first.summary()));
        if let Some(grant) = first.hint.as_ref().filter(|_| status.waiting) {
            print::note(format_args!("  help: {grant}"));
        }
    }
}

/// A failed call on stderr: where the script failed, or the refusal.
pub(super) fn show_failure(outcome: &Outcome) {
    match (&outcome.diagnostic, &outcome.error) {
        (Some(diagnostic), error) => {
            print::note(diagnostic.render().trim_end());
            if let Some(error) = error.as_ref().filter(|e| e.kind() != Kind::Internal) {
                print::note(format_args!("  code: {}", error.code()));
                print::ways_out(error);
            }
        }
        (None, Some(error)) => print::failure(error),
        (None, None) => print::note(format_args!("error: {}", outcome.text)),
    }
}

/// The result for programs.
pub(super) fn outcome_json(outcome: &Outcome) -> Value {
    let mut value = Map::new();
    value.insert("ok".into(), outcome.ok.into());
    value.insert("text".into(), outcome.text.as_str().into());
    if let Some(error) = &outcome.error {
        let mut shown = print::error_json(error);
        if let Some(diagnostic) = &outcome.diagnostic {
            shown["diagnostic"] = serde_json::to_value(diagnostic).unwrap_or_default();
        }
        value.insert("error".into(), shown);
        if !error.fallbacks().is_empty() {
            value.insert("fallbacks".into(), serde_json::to_value(error.fallbacks()).unwrap_or_default());
        }
    }
    parts::insert(&mut value, outcome);
    if let Some(structured) = &outcome.structured {
        value.insert("structured".into(), structured.clone());
    }
    let ms = outcome.duration.as_secs_f64() * 1000.0;
    value.insert("duration_ms".into(), ((ms * 1000.0).round() / 1000.0).into());
    value.insert("operations".into(), outcome.operations.into());
    value.insert("generation".into(), outcome.generation.into());
    Value::Object(value)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn spec() -> Spec {
        let properties = json!({
            "name": { "type": "string" }, "sides": { "type": "integer" }, "loud": { "type": "boolean" },
            "tags": { "type": "array", "items": { "type": "string" } }, "rows": { "type": "array", "items": { "type": "integer" } },
            "either": { "type": ["string", "integer"] }, "deep": { "type": "object" }, "maybe": { "type": ["string", "null"] },
        });
        Spec::new("t", "x", json!({ "type": "object", "properties": properties }))
    }

    #[test]
    fn words_become_values_by_the_schema_and_by_what_they_look_like() {
        let rows = [
            (vec!["sides=20"], json!({ "sides": 20 })),
            (vec!["name=20"], json!({ "name": "20" })),
            (vec!["name="], json!({ "name": "" })),
            (vec!["name=a=b"], json!({ "name": "a=b" })),
            (vec!["name=\"x\""], json!({ "name": "\"x\"" })),
            (vec!["maybe=7"], json!({ "maybe": "7" })),
            (vec!["loud=true", "sides=2"], json!({ "loud": true, "sides": 2 })),
            (vec!["tags=a", "tags=2"], json!({ "tags": ["a", "2"] })),
            (vec!["tags=[\"a\", \"b\"]"], json!({ "tags": ["a", "b"] })),
            (vec!["rows=1", "rows=2"], json!({ "rows": "1,2" })),
            (vec!["rows=1,2"], json!({ "rows": "1,2" })),
            (vec!["rows=[1, 2]"], json!({ "rows": [1, 2] })),
            (vec!["tags=a,b"], json!({ "tags": ["a,b"] })),
            (vec!["either=7"], json!({ "either": 7 })),
            (vec!["either=seven"], json!({ "either": "seven" })),
            (vec!["deep={\"a\": [1]}"], json!({ "deep": { "a": [1] } })),
            (vec!["unknown=null"], json!({ "unknown": null })),
            (vec!["sides=99999999999999999999"], json!({ "sides": "99999999999999999999" })),
        ];
        for (words, expected) in rows {
            let words: Vec<String> = words.into_iter().map(str::to_owned).collect();
            check_pairs(&words).unwrap();
            assert_eq!(Value::Object(from_pairs(&words, Some(&spec())).unwrap()), expected, "{words:?}");
        }
    }

    #[test]
    fn typed_words_are_split_as_a_shell_does() {
        let rows: [(&str, &[&str]); 7] = [
            ("a=1  b=2", &["a=1", "b=2"]),
            ("a=\"x y\"", &["a=x y"]),
            ("a='x \"y\"'", &["a=x \"y\""]),
            ("a=x\\ y", &["a=x y"]),
            ("a=\"\"", &["a="]),
            ("a=\"x\\\"y\"", &["a=x\"y"]),
            ("", &[]),
        ];
        for (text, expected) in rows {
            assert_eq!(words(text), expected, "{text}");
        }
    }

    #[test]
    fn words_that_make_no_sense_are_wrong_usage() {
        for words in [vec!["sides"], vec!["=1"]] {
            let words: Vec<String> = words.into_iter().map(str::to_owned).collect();
            assert!(matches!(check_pairs(&words), Err(Stop::Usage(_))), "{words:?}");
        }
        let words = ["sides=1".to_owned(), "sides=2".to_owned()];
        assert!(matches!(from_pairs(&words, Some(&spec())), Err(Stop::Usage(_))));
    }
}
