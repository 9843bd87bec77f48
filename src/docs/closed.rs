//! Pages about the closed lists: kinds of errors, events, and the manifest's schema, from the comments on the types.

use super::markdown::NOTE;
use crate::base::error::Kind;
use crate::base::event::Event;
use crate::plugin::manifest::Manifest;
use serde_json::Value;
use std::fmt::Write;

/// The codes of failures.
pub fn errors() -> String {
    let mut out = format!("{NOTE}\n# Errors\n\n");
    out.push_str(
        "Every failure has a code of this list, a message, and mostly a hint that says what to do next. \
         A script catches it as a map with `code`, `message` and `hint`, and throws one with \
         `throw failure(#{code: \"not_found\", message: \"no such note\"})`. \
         The language's own errors have no `code`; to a model they are `internal`.\n\n\
         | code | means | may a retry help |\n|---|---|---|\n",
    );
    let schema = schemars::schema_for!(Kind).to_value();
    for kind in Kind::ALL {
        let meaning =
            variants(&schema).find(|(_, v)| v["const"] == kind.code()).map(|(doc, _)| doc).unwrap_or_default();
        let retry = if kind.retryable() { "yes" } else { "" };
        let _ = writeln!(out, "| `{}` | {meaning} | {retry} |", kind.code());
    }
    out
}

/// What happens in a host.
pub fn events() -> String {
    let mut out = format!("{NOTE}\n# Events\n\n");
    out.push_str(
        "What a host tells those who listen: `Host::events()` in a program, `--log` on the command line. \
         An event holds ids, counts and status, never content.\n",
    );
    let schema = schemars::schema_for!(Event).to_value();
    for (doc, variant) in variants(&schema) {
        let properties = variant["properties"].as_object();
        let name = variant.pointer("/properties/event/const").and_then(Value::as_str).unwrap_or_default();
        let _ = write!(out, "\n## `{name}`\n\n{doc}\n");
        let fields: Vec<(&String, &Value)> =
            properties.into_iter().flatten().filter(|(key, _)| *key != "event").collect();
        if !fields.is_empty() {
            out.push_str("\n| field | holds |\n|---|---|\n");
            for (key, field) in fields {
                let _ = writeln!(out, "| `{key}` | {} |", described(field));
            }
        }
    }
    out
}

/// JSON Schema of `plugin.json`.
pub fn manifest() -> String {
    written(&Manifest::json_schema())
}

/// The schema of files of recordings.
pub fn recording() -> String {
    written(&crate::trial::recording_schema())
}

fn written(schema: &Value) -> String {
    // A value that was just built from texts can always be written.
    let mut text = serde_json::to_string_pretty(schema).unwrap_or_default();
    text.push('\n');
    text
}

fn variants(schema: &Value) -> impl Iterator<Item = (String, &Value)> {
    schema["oneOf"].as_array().into_iter().flatten().map(|v| (described(v), v))
}

fn described(schema: &Value) -> String {
    schema["description"].as_str().unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_and_every_event_says_what_it_means() {
        for line in errors().lines().filter(|l| l.starts_with("| `")) {
            assert!(line.split('|').nth(2).is_some_and(|m| m.trim().len() > 10), "{line}");
        }
        assert_eq!(errors().matches("\n| `").count(), Kind::ALL.len());
        for part in events().split("\n## ").skip(1) {
            assert!(part.lines().nth(2).is_some_and(|doc| doc.len() > 10), "{part}");
            assert!(
                part.lines()
                    .filter(|l| l.starts_with("| `"))
                    .all(|l| l.split('|').nth(2).is_some_and(|m| m.trim().len() > 5)),
                "{part}"
            );
        }
        assert!(events().contains("## `plugin_live`") && events().contains("## `stopping`"), "{}", events());
    }
}
