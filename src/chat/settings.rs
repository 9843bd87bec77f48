//! What a person chose for one chat. It is checked when it is changed; what an older or newer program left there is passed over.

use crate::base::error::{Error, Result, excerpt};
use crate::tool::toolset::split_words;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Most pictures' turns.
const MAX_PICTURE_TURNS: u64 = 20;
/// Most characters of a prompt.
const MAX_PROMPT: usize = 20_000;
/// Most characters of any other text.
const MAX_TEXT: usize = 200;
/// Most words of a list.
const MAX_WORDS: usize = 64;
/// Most rounds of one turn.
const MAX_ROUNDS: u64 = 50;

/// The settings of a chat, with the defaults where nothing was chosen.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "ChatSettings")]
pub struct Settings {
    /// The model's name; nothing for the first one there is.
    pub model: Option<String>,
    /// Words that stand for tools: `all`, `none`, one toolset, or names of tools.
    pub toolset: Vec<String>,
    /// Further toolsets, joined in.
    pub extra_toolsets: Vec<String>,
    /// Values of scopes by their key; `none` closes one.
    pub scopes: BTreeMap<String, String>,
    /// Pictures of so many turns back are sent to the model again.
    pub images: u32,
    /// What the model is told about its part, before everything else.
    pub prompt: Option<String>,
    /// How often a model may be asked in one turn.
    pub rounds: u32,
    /// Whether the chat is private.
    pub private: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            model: None,
            toolset: vec!["all".to_owned()],
            extra_toolsets: Vec::new(),
            scopes: BTreeMap::new(),
            images: 3,
            prompt: None,
            rounds: 7,
            private: false,
        }
    }
}

/// The stored object of a chat; an empty one where it holds none.
#[must_use]
pub fn stored(text: &str) -> Map<String, Value> {
    serde_json::from_str(text).unwrap_or_default()
}

impl Settings {
    /// What a stored object means.
    #[must_use]
    pub fn of(stored: &Map<String, Value>, private: bool) -> Settings {
        let mut settings = Settings { private, ..Settings::default() };
        let text =
            |key: &str| stored.get(key).and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned);
        let number =
            |key: &str, most: u64| stored.get(key).and_then(Value::as_u64).filter(|n| *n <= most).map(|n| n as u32);
        settings.model = text("model");
        settings.prompt = text("prompt");
        if let Some(words) = stored.get("toolset").and_then(words) {
            settings.toolset = words;
        }
        settings.extra_toolsets = stored.get("extra_toolsets").and_then(words).unwrap_or_default();
        settings.images = number("images", MAX_PICTURE_TURNS).unwrap_or(settings.images);
        settings.rounds = number("rounds", MAX_ROUNDS).filter(|n| *n > 0).unwrap_or(settings.rounds);
        let scopes = stored.iter().filter_map(|(key, value)| Some((key.strip_suffix("_scope")?, value.as_str()?)));
        settings.scopes = scopes.map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
        settings
    }
}

/// A stored object after a change: what is null goes back to its default, what the change does not name stays.
///
/// # Errors
/// `invalid_arguments` naming the key and what it takes; then nothing is changed.
pub fn changed(mut stored: Map<String, Value>, patch: &Map<String, Value>) -> Result<Map<String, Value>> {
    for (key, value) in patch {
        if let ("scopes", Value::Object(scopes)) = (key.as_str(), value) {
            for (scope, value) in scopes {
                set(&mut stored, &format!("{scope}_scope"), value)?;
            }
        } else {
            set(&mut stored, key, value)?;
        }
    }
    Ok(stored)
}

fn set(stored: &mut Map<String, Value>, key: &str, value: &Value) -> Result<()> {
    let is_fine = match key {
        _ if value.is_null() => true,
        "model" => is_text(value, MAX_TEXT),
        "prompt" => is_text(value, MAX_PROMPT),
        "toolset" | "extra_toolsets" => words(value).is_some_and(|words| words.len() <= MAX_WORDS),
        "images" => value.as_u64().is_some_and(|n| n <= MAX_PICTURE_TURNS),
        "rounds" => value.as_u64().is_some_and(|n| (1..=MAX_ROUNDS).contains(&n)),
        _ if is_scope(key) => is_text(value, MAX_TEXT),
        _ => {
            let shown = excerpt(key, 60);
            return Err(Error::invalid(format!("a chat has no setting `{shown}`"))
                .hint("it has model, toolset, extra_toolsets, scopes, images, prompt, rounds"));
        }
    };
    if !is_fine {
        let takes = match key {
            "images" => format!("a whole number from 0 to {MAX_PICTURE_TURNS}"),
            "rounds" => format!("a whole number from 1 to {MAX_ROUNDS}"),
            "toolset" | "extra_toolsets" => "a list of words, or words between commas".to_owned(),
            "prompt" => format!("text of at most {MAX_PROMPT} characters"),
            _ => format!("text of at most {MAX_TEXT} characters"),
        };
        return Err(Error::invalid(format!("`{key}` takes {takes}")).hint("null goes back to the default"));
    }
    if value.is_null() {
        stored.remove(key);
    } else {
        stored.insert(key.to_owned(), value.clone());
    }
    Ok(())
}

fn is_scope(key: &str) -> bool {
    key.strip_suffix("_scope").is_some_and(|scope| {
        !scope.is_empty() && scope.len() <= 64 && scope.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
    })
}

fn is_text(value: &Value, most: usize) -> bool {
    value.as_str().is_some_and(|text| text.chars().count() <= most)
}

/// A list of words, or words between commas.
fn words(value: &Value) -> Option<Vec<String>> {
    match value {
        Value::String(text) => {
            let (first, more) = split_words(text);
            Some(first.into_iter().chain(more).collect())
        }
        Value::Array(list) => list.iter().map(|word| word.as_str().map(str::to_owned)).collect(),
        _ => None,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use serde_json::json;

    fn object(value: Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn a_change_sets_what_it_names_and_leaves_the_rest() {
        let before = object(json!({"model": "a", "mail_scope": "work", "later": 1}));
        let after = changed(
            before,
            &object(
                json!({"model": null, "toolset": "web, files", "images": 0, "scopes": {"mail": "none", "git": "x"}}),
            ),
        )
        .unwrap();
        assert_eq!(
            Value::Object(after.clone()),
            json!({"mail_scope": "none", "later": 1, "toolset": "web, files", "images": 0, "git_scope": "x"})
        );
        let settings = Settings::of(&after, true);
        assert_eq!((settings.model, settings.images, settings.private), (None, 0, true));
        assert_eq!(settings.toolset, ["web", "files"]);
        assert_eq!(settings.scopes.len(), 2);
    }

    #[test]
    fn what_a_setting_does_not_take_is_refused_by_name() {
        for (patch, named) in [
            (json!({"model": 1}), "`model`"),
            (json!({"model": "x".repeat(201)}), "`model`"),
            (json!({"prompt": "x".repeat(20_001)}), "`prompt`"),
            (json!({"toolset": [1]}), "`toolset`"),
            (json!({"extra_toolsets": {}}), "`extra_toolsets`"),
            (json!({"images": 21}), "`images`"),
            (json!({"images": -1}), "`images`"),
            (json!({"rounds": 0}), "`rounds`"),
            (json!({"mail_scope": []}), "`mail_scope`"),
            (json!({"scopes": {"mail": 1}}), "`mail_scope`"),
            (json!({"scopes": {"a-b": "x"}}), "`a-b_scope`"),
            (json!({"scopes": []}), "`scopes`"),
            (json!({"temperature": 1}), "`temperature`"),
        ] {
            let e = changed(Map::new(), &object(patch.clone())).unwrap_err();
            assert!(e.message().contains(named), "{patch}: {e}");
        }
    }

    #[test]
    fn what_was_left_there_by_another_program_is_passed_over() {
        for text in ["", "[]", "nonsense", r#"{"images": "many", "rounds": 0, "toolset": 7, "model": ""}"#] {
            assert_eq!(Settings::of(&stored(text), false), Settings::default(), "{text}");
        }
    }
}
