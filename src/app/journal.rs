//! The journal of a host: which secrets it must not hold, and running a call of it again on what is live now.

use super::Host;
use crate::base::error::{Error, Kind, Result};
use crate::plugin::set::Plugins;
use crate::plugin::tune::diff;
use crate::service::Services;
use crate::service::journal::{Entry, Journal, Limits, Setup};
use crate::service::permissions::Reach;
use crate::service::secret::Redactor;
use crate::service::settings;
use crate::tool::dispatch::{Arguments, Call, Outcome, Who};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::Duration;
use zeroize::Zeroizing;

/// How long a comparison waits for the new call's own row.
const PATIENCE: Duration = Duration::from_secs(2);

/// All secrets of an installation: stored credentials, those that plugins were granted by name, and passwords among settings.
pub(super) struct KnownSecrets {
    services: Weak<Services>,
    plugins: OnceLock<Weak<Plugins>>,
    /// What settings held at the last look: a call may still tell the password that was changed after it.
    before: Mutex<Vec<Zeroizing<String>>>,
}

impl KnownSecrets {
    pub(super) fn new(services: &Arc<Services>) -> KnownSecrets {
        KnownSecrets { services: Arc::downgrade(services), plugins: OnceLock::new(), before: Mutex::default() }
    }

    pub(super) fn look_at(&self, plugins: &Arc<Plugins>) {
        let _ = self.plugins.set(Arc::downgrade(plugins));
    }

    fn redactor(&self) -> Redactor {
        let Some(services) = self.services.upgrade() else { return Redactor::default() };
        let plugins = self.plugins.get().and_then(Weak::upgrade);
        let generations: Vec<_> =
            plugins.iter().flat_map(|p| p.names().into_iter().filter_map(|name| p.live(&name))).collect();
        let mut names = Vec::new();
        let mut passwords = Vec::new();
        for generation in &generations {
            if let Reach::Listed(granted) = generation.plugin.grants.load().secrets() {
                names.extend(granted.iter().cloned());
            }
            if generation.fields.iter().any(|field| field.is_secret()) {
                let stored = services.settings.stored(generation.name()).unwrap_or_default();
                let values = settings::effective(&generation.fields, &stored).values;
                let secret = generation.fields.iter().filter(|field| field.is_secret());
                passwords.extend(secret.filter_map(|field| values.get(&field.key)).filter_map(text_of));
            }
        }
        // A file of credentials that cannot be used gives its values to nobody, so that no call can tell one; nor can it tell
        // one of the keyring that was never read.
        let mut redactor = services.credentials.known_redactor(names.iter().map(String::as_str)).unwrap_or_default();
        let mut before = self.before.lock().unwrap_or_else(PoisonError::into_inner);
        before.iter().chain(&passwords).for_each(|password| redactor.add(password));
        *before = passwords;
        redactor
    }
}

fn text_of(value: &Value) -> Option<Zeroizing<String>> {
    match value {
        Value::String(text) if !text.is_empty() => Some(Zeroizing::new(text.clone())),
        Value::Number(number) => Some(Zeroizing::new(number.to_string())),
        _ => None,
    }
}

/// The journal over the services of a host.
pub(super) fn open(services: &Arc<Services>, limits: Limits, known: &Arc<KnownSecrets>) -> Arc<Journal> {
    let known = known.clone();
    Arc::new(Journal::new(Setup {
        store: services.store.clone(),
        clock: services.clock.clone(),
        bus: services.bus.clone(),
        limits,
        known: Box::new(move || known.redactor()),
    }))
}

/// A call of the journal that is about to run again.
pub struct Again {
    /// What is kept of it.
    pub then: Entry,
    /// The call to make: a door may give it a sink and a handle.
    pub call: Call,
}

/// A call that ran again: what came of it then, and now.
#[derive(Debug, Clone)]
pub struct Replay {
    /// What is kept of it.
    pub then: Entry,
    /// What came of it now.
    pub now: Outcome,
    /// The unified diff of both texts; empty where they are the same.
    pub diff: String,
    /// What differs beside the text.
    pub changes: Vec<Change>,
}

/// Something that differs between two runs of a call.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Change {
    /// What: `ok`, `code`, `generation`, `parts`, `structured`.
    pub what: &'static str,
    /// What it was.
    pub then: Value,
    /// What it is.
    pub now: Value,
}

impl Host {
    /// The journal: calls that ended, whoever made them, also in other processes on this root.
    #[must_use]
    pub fn journal(&self) -> &Arc<Journal> {
        &self.0.journal
    }

    /// Everything that is kept of a call, with the generation that a call of its tool would run now.
    ///
    /// # Errors
    /// As [`Journal::get`].
    pub fn kept(&self, id: &str) -> Result<Entry> {
        let mut entry = self.0.journal.get(id)?;
        entry.live_generation = self.0.dispatcher.snapshot().get(&entry.listed.tool).map(|tool| tool.generation());
        Ok(entry)
    }

    /// The call of the journal with this id, made ready to run again in the name of `who`, with the same arguments. In the chat
    /// that it was made in, unless `who` names one: handles of pictures mean something there only.
    ///
    /// # Errors
    /// As [`Journal::get`]; `disabled` where a secret was taken out of its arguments, `too_large` where they were too long to be kept.
    pub fn again(&self, id: &str, who: &Who) -> Result<Again> {
        let then = self.kept(id)?;
        let arguments = arguments_of(&then)?;
        let mut who = who.clone();
        if who.chat.is_none() {
            who.chat = then.listed.chat.as_deref().map(Into::into);
        }
        let call = Call { arguments, ..Call::new(then.listed.tool.as_str(), serde_json::Map::new(), who) };
        Ok(Again { then, call })
    }

    /// What came of a call then and now.
    #[must_use]
    pub fn compare(&self, then: Entry, now: Outcome) -> Replay {
        // Both as they are kept: without secrets, and cut at the same place.
        self.0.journal.flush(PATIENCE);
        let kept = self.0.journal.get(&now.call).ok();
        let text = kept.as_ref().map_or(now.text.as_str(), |kept| kept.text.as_str());
        let texts = (numbered(&then.text), numbered(text));
        let diff = if texts.0 == texts.1 { String::new() } else { diff(&texts.0, &texts.1) };
        let parts = kept.as_ref().map_or(now.parts.len(), |kept| kept.parts.len());
        let code = now.error.as_ref().map(Error::code);
        let structured = kept.as_ref().map_or_else(|| now.structured.clone(), |kept| kept.structured.clone());
        let rows = [
            ("ok", then.listed.ok.into(), now.ok.into()),
            ("code", then.listed.code.clone().into(), code.into()),
            ("generation", then.listed.generation.into(), now.generation.into()),
            ("parts", then.parts.len().into(), parts.into()),
            ("structured", then.structured.clone().into(), structured.into()),
        ];
        let differs = |(_, then, now): &(_, Value, Value)| {
            then != now && numbered(&then.to_string()) != numbered(&now.to_string())
        };
        let rows = rows.into_iter().filter(differs);
        let changes = rows.map(|(what, then, now)| Change { what, then, now }).collect();
        Replay { then, now, diff, changes }
    }

    /// Runs a call of the journal again, as a new call in the name of `who`, on what is live now.
    ///
    /// # Errors
    /// As [`Host::again`]. A call that fails now is a [`Replay`] all the same.
    pub async fn replay(&self, id: &str, who: &Who) -> Result<Replay> {
        let Again { then, call } = self.again(id, who)?;
        let now = self.0.dispatcher.call_async(call).await;
        Ok(self.compare(then, now))
    }
}

/// A text with `img:1`, `img:2` .. in the order of their coming for its handles of pictures: the same picture has another handle each
/// time that it is given.
fn numbered(text: &str) -> String {
    const MARK: &str = "img:";
    let mut handles: Vec<&str> = Vec::new();
    let mut parts = text.split(MARK);
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        out.push_str(MARK);
        let digits = part.bytes().take_while(|b| b.is_ascii_hexdigit()).count();
        let ending = part[digits..]
            .strip_prefix('.')
            .map_or(0, |rest| 1 + rest.bytes().take_while(u8::is_ascii_alphanumeric).count());
        let (handle, rest) = part.split_at(digits + ending);
        if digits < 12 || ending < 2 {
            out.push_str(part);
            continue;
        }
        let number = handles.iter().position(|known| *known == handle).unwrap_or_else(|| {
            handles.push(handle);
            handles.len() - 1
        });
        out.push_str(&format!("{}{rest}", number + 1));
    }
    out
}

/// The arguments of a kept call, whole and as they came.
///
/// # Errors
/// As [`Host::again`].
pub(crate) fn arguments_of(entry: &Entry) -> Result<Arguments> {
    let (id, tool) = (&entry.listed.id, &entry.listed.tool);
    let hint = format!("call it with its arguments: lapidary call {tool} ..");
    if entry.masked {
        return Err(Error::new(
            Kind::Disabled,
            format!("the call `{id}` of `{tool}` cannot run again: a secret was taken out of its arguments"),
        )
        .hint(hint));
    }
    if entry.cut.iter().any(|what| what == "arguments") {
        return Err(Error::new(
            Kind::TooLarge,
            format!("the call `{id}` of `{tool}` cannot run again: its arguments were too long to be kept"),
        )
        .hint(hint));
    }
    Ok(match &entry.arguments {
        Value::Object(map) => Arguments::Object(map.clone()),
        Value::String(text) => Arguments::Text(text.clone()),
        other => Arguments::Text(other.to_string()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_of_pictures_are_numbered_and_nothing_else_is_changed() {
        for (text, told) in [
            ("", ""),
            ("no picture", "no picture"),
            ("(image img:0123456789ab.png)", "(image img:1)"),
            ("img:0123456789ab.png img:0123456789ac.jpg img:0123456789ab.png.", "img:1 img:2 img:1."),
            ("\"img:0123456789ab.webp\"", "\"img:1\""),
            ("img:", "img:"),
            ("img:dice", "img:dice"),
            ("img:0123.png", "img:0123.png"),
            ("img:0123456789ab", "img:0123456789ab"),
            ("img:img:0123456789ab.png é", "img:img:1 é"),
        ] {
            assert_eq!(numbered(text), told, "{text}");
        }
    }
}
