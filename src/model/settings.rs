//! `[[models]]` of user/lapidary.toml: which models there are and where. Pure reading; a bad entry is told and left out, the
//! others stay.

use super::Profile;
use crate::base::error::{Error, Result};
use crate::net::lane::{Lane, classify};
use crate::net::{Pace, request};
use std::collections::BTreeSet;
use std::time::Duration;

/// Most models.
const MOST: usize = 100;
const DIALECTS: [&str; 5] = ["openai", "anthropic", "gemini", "llama", "plain"];
const KEYS: [&str; 14] = [
    "name",
    "base_url",
    "model",
    "credential",
    "local",
    "trusted",
    "vision",
    "tools",
    "context",
    "dialect",
    "temperature",
    "max_tokens",
    "first_s",
    "idle_s",
];

/// One model of the settings.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// What it is and can do.
    pub profile: Profile,
    /// Where it is; no slash at the end.
    pub base_url: String,
    /// The host of that, normalised.
    pub host: String,
    /// The name of its credential; empty for none.
    pub credential: String,
    /// Whether its owner said that it may serve private chats though it is not in the local network.
    pub trusted: bool,
    /// How freely it answers, where a request does not say.
    pub temperature: Option<f64>,
    /// Most tokens of an answer, where a request does not say.
    pub max_tokens: Option<u32>,
    /// How long its answers may take.
    pub pace: Pace,
}

impl Entry {
    /// A model at this address, with everything else as by default: local where its host is in the local network.
    ///
    /// # Errors
    /// `invalid_arguments` for an address that cannot be used.
    pub fn new(name: impl Into<String>, base_url: &str, model: impl Into<String>) -> Result<Entry> {
        let base_url = base_url.trim().trim_end_matches('/').to_owned();
        let host = request::host_of(&base_url)?;
        if base_url.contains(['?', '#']) {
            return Err(Error::invalid("an address with `?` or `#` takes no path behind it")
                .hint("a key goes into a credential, never into an address"));
        }
        let mut profile = Profile::new(name, model);
        profile.local = false;
        Ok(Entry {
            profile,
            base_url,
            host,
            credential: String::new(),
            trusted: false,
            temperature: None,
            max_tokens: None,
            pace: Pace::default(),
        })
    }

    /// An address below its own.
    pub(super) fn address(&self, path: &str) -> String {
        format!("{}/{path}", self.base_url)
    }

    /// Scheme, host and port: what an error may show.
    pub(super) fn place(&self) -> String {
        let rest = self.base_url.split_once("://").map_or(self.base_url.as_str(), |(_, rest)| rest);
        let end = self.base_url.len() - rest.len() + rest.find('/').unwrap_or(rest.len());
        self.base_url[..end].to_owned()
    }
}

/// The models that `config` lists, and what is wrong with the others.
#[must_use]
pub fn read(config: &toml::Table) -> (Vec<Entry>, Vec<Error>) {
    let (mut entries, mut wrong) = (Vec::new(), Vec::new());
    let list = match config.get("models") {
        None => return (entries, wrong),
        Some(toml::Value::Array(list)) => list,
        Some(_) => {
            let error = Error::invalid("user/lapidary.toml: `models` must be a list of tables");
            return (entries, vec![error.hint("write [[models]] with two brackets, and below it name = \"..\"")]);
        }
    };
    let mut names = BTreeSet::new();
    for (i, value) in list.iter().enumerate() {
        let name = value.get("name").and_then(toml::Value::as_str).unwrap_or_default();
        let which = match name {
            "" => format!("user/lapidary.toml, [[models]] number {}", i + 1),
            name => format!("user/lapidary.toml, [[models]] `{}`", crate::base::error::excerpt(name, 40)),
        };
        let entry = entry(value).and_then(|entry| match (names.contains(&entry.profile.name), i < MOST) {
            (true, _) => Err(Error::invalid("another model has this name")),
            (_, false) => Err(Error::invalid(format!("there are more than {MOST} models"))),
            _ => Ok(entry),
        });
        match entry {
            Ok(entry) => {
                names.insert(entry.profile.name.clone());
                entries.push(entry);
            }
            Err(e) => wrong.push(e.context(which)),
        }
    }
    (entries, wrong)
}

fn entry(value: &toml::Value) -> Result<Entry> {
    let table = value.as_table().ok_or_else(|| Error::invalid("it must be a table"))?;
    if let Some(key) = table.keys().find(|key| !KEYS.contains(&key.as_str())) {
        let key = crate::base::error::excerpt(key, 40);
        return Err(Error::invalid(format!("`{key}` is not known")).hint(format!("there are {}", KEYS.join(", "))));
    }
    let text = |key: &str| match table.get(key) {
        None => Ok(None),
        Some(toml::Value::String(text)) => Ok(Some(text.trim()).filter(|text| !text.is_empty())),
        Some(_) => Err(Error::invalid(format!("`{key}` must be text"))),
    };
    let flag = |key: &str| match table.get(key) {
        None => Ok(None),
        Some(toml::Value::Boolean(flag)) => Ok(Some(*flag)),
        Some(_) => Err(Error::invalid(format!("`{key}` must be true or false"))),
    };
    let number = |key: &str, least: u32, most: u32| match table.get(key) {
        None => Ok(None),
        Some(toml::Value::Integer(n)) if (i64::from(least)..=i64::from(most)).contains(n) => Ok(u32::try_from(*n).ok()),
        Some(_) => Err(Error::invalid(format!("`{key}` must be a whole number from {least} to {most}"))),
    };
    let needed = |key: &str| text(key)?.ok_or_else(|| Error::invalid(format!("`{key}` is missing")));
    let name = needed("name")?;
    if name.chars().count() > 64 || name.chars().any(char::is_control) {
        return Err(Error::invalid("`name` must be a short text in one line"));
    }
    let mut entry = Entry::new(name, needed("base_url")?, needed("model")?).map_err(|e| e.context("`base_url`"))?;
    let is_near = classify(&entry.host) == Lane::Lan;
    entry.trusted = flag("trusted")?.unwrap_or(false);
    entry.profile.local = flag("local")?.unwrap_or(false);
    if entry.profile.local && !is_near && !entry.trusted {
        return Err(Error::invalid(format!(
            "`local = true` lets it serve private chats, and `{}` is on the internet",
            entry.host
        ))
        .hint("take `local` out, or say `trusted = true` beside it where the server is yours"));
    }
    if let Some(name) = text("credential")? {
        if name.len() > 128 || !name.chars().all(|c| c.is_ascii_alphanumeric() || "._-/".contains(c)) {
            // Whoever wrote a key here must not read it in a log.
            return Err(Error::invalid("`credential` is the name of a credential, never a key")
                .hint("store the key with `lapidary credentials set <name>`, and write that name here"));
        }
        entry.credential = name.to_owned();
        if !is_near && entry.base_url.to_ascii_lowercase().starts_with("http:") {
            return Err(Error::invalid("a credential is not sent over the internet without encryption")
                .hint("write https:// in `base_url`"));
        }
    }
    entry.profile.vision = flag("vision")?.unwrap_or(false);
    entry.profile.tools = flag("tools")?.unwrap_or(true);
    entry.profile.context = number("context", 0, 100_000_000)?.unwrap_or(0);
    if let Some(dialect) = text("dialect")? {
        if !DIALECTS.contains(&dialect) {
            return Err(
                Error::invalid("`dialect` is none that there is").hint(format!("one of {}", DIALECTS.join(", ")))
            );
        }
        entry.profile.dialect = dialect.to_owned();
    }
    entry.temperature = match table.get("temperature") {
        None => None,
        Some(value) => {
            let number = value.as_float().or_else(|| value.as_integer().map(|n| n as f64));
            let number = number.filter(|n| (0.0..=2.0).contains(n));
            Some(number.ok_or_else(|| Error::invalid("`temperature` must be a number from 0 to 2"))?)
        }
    };
    entry.max_tokens = number("max_tokens", 1, 10_000_000)?;
    let seconds = |key: &str| number(key, 1, 3600).map(|n| n.map(|n| Duration::from_secs(n.into())));
    entry.pace.first = seconds("first_s")?.unwrap_or(entry.pace.first);
    entry.pace.idle = seconds("idle_s")?.unwrap_or(entry.pace.idle);
    Ok(entry)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn of(lines: &str) -> (Vec<Entry>, Vec<Error>) {
        read(&lines.parse::<toml::Table>().unwrap())
    }

    #[test]
    fn a_bad_entry_is_told_and_the_others_stay() {
        let near = "base_url = \"http://127.0.0.1:8081/v1/\"\nmodel = \"m\"";
        let far = "base_url = \"https://api.example.org/v1\"\nmodel = \"m\"";
        let rows = [
            (format!("name = \"a\"\n{near}"), ""),
            (format!("name = \"a\"\n{near}\nlocal = true\nvision = true\ntools = false\ncontext = 8192"), ""),
            (format!("name = \"a\"\n{far}\ncredential = \"work/openai\"\ntemperature = 0\nmax_tokens = 100"), ""),
            (format!("name = \"a\"\n{far}\nlocal = true\ntrusted = true\nfirst_s = 10\nidle_s = 5"), ""),
            (format!("name = \"a\"\n{near}\ndialect = \"llama\"\ntemperature = 0.5\ncredential = \"\""), ""),
            (near.to_owned(), "`name` is missing"),
            ("name = \"a\"\nmodel = \"m\"".to_owned(), "`base_url` is missing"),
            ("name = \"a\"\nbase_url = \"http://h/\"".to_owned(), "`model` is missing"),
            (format!("name = 1\n{near}"), "`name` must be text"),
            (format!("name = \"a\\nb\"\n{near}"), "one line"),
            ("name = \"a\"\nmodel = \"m\"\nbase_url = \"ftp://h\"".to_owned(), "neither http nor https"),
            ("name = \"a\"\nmodel = \"m\"\nbase_url = \"http://u:s3cret@h\"".to_owned(), "user name or password"),
            ("name = \"a\"\nmodel = \"m\"\nbase_url = \"https://h.example/v1?key=s3cret\"".to_owned(), "`?` or `#`"),
            (format!("name = \"a\"\n{far}\nlocal = true"), "is on the internet"),
            (format!("name = \"a\"\n{near}\nlocal = \"yes\""), "true or false"),
            (format!("name = \"a\"\n{near}\ncontext = -1"), "whole number"),
            (format!("name = \"a\"\n{near}\ndialect = \"french\""), "`dialect`"),
            (format!("name = \"a\"\n{near}\ntemperature = 3"), "0 to 2"),
            (format!("name = \"a\"\n{near}\ntemperature = \"hot\""), "0 to 2"),
            (format!("name = \"a\"\n{near}\nkey = \"s3cret\""), "`key` is not known"),
            (format!("name = \"a\"\n{near}\ncredential = \"Bearer s3cret\""), "never a key"),
            (
                "name = \"a\"\nmodel = \"m\"\nbase_url = \"http://api.example.org/v1\"\ncredential = \"c\"".to_owned(),
                "without encryption",
            ),
        ];
        for (lines, part) in rows {
            let (entries, wrong) = of(&format!("[[models]]\n{lines}\n[[models]]\nname = \"last\"\n{near}\n"));
            assert_eq!(entries.last().unwrap().profile.name, "last", "{lines}");
            assert_eq!(entries.len() + wrong.len(), 2, "{lines}: {wrong:?}");
            match (part, wrong.first()) {
                ("", None) => {}
                ("", Some(e)) => panic!("{lines}: {e}"),
                (part, e) => {
                    let e = e.unwrap().to_string();
                    assert!(e.contains(part) && e.contains("[[models]]") && !e.contains("s3cret"), "{lines}: {e}");
                }
            }
        }
    }

    #[test]
    fn names_are_there_once_and_models_is_a_list() {
        let two = "[[models]]\nname = \"a\"\nbase_url = \"http://127.0.0.1:1\"\nmodel = \"m\"\n".repeat(2);
        let (entries, wrong) = of(&two);
        assert_eq!((entries.len(), wrong.len()), (1, 1));
        for text in ["models = 1\n", "[models]\nname = \"a\"\n"] {
            assert!(of(text).1[0].hint_text().unwrap().contains("two brackets"), "{text}");
        }
        assert_eq!(of("").1.len(), 0);
        let (entries, _) = of("[[models]]\nname = \"a\"\nbase_url = \"http://LocalHost:1/v1/\"\nmodel = \"m\"\n");
        assert_eq!((entries[0].base_url.as_str(), entries[0].host.as_str()), ("http://LocalHost:1/v1", "localhost"));
        assert_eq!(entries[0].place(), "http://LocalHost:1");
        assert_eq!(entries[0].address("models"), "http://LocalHost:1/v1/models");
        assert!(!entries[0].profile.local);
    }
}
