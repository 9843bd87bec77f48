//! A credential's value on its way into a request: bound to hosts, never shown, wiped when the last holder lets go.
//! Where values are stored, and who may have one, is decided elsewhere.

mod matcher;

use super::permissions::{covers, host_pattern, normal_host};
use crate::base::error::{Error, Fallback, Result};
use matcher::Matcher;
use serde::de::IgnoredAny;
use serde_json::Value;
use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use zeroize::Zeroizing;

/// What stands where a value was.
pub const HIDDEN: &str = "***";

/// Bytes of a value: a shorter one is not looked for in texts: it would be found everywhere.
pub const SHORTEST: usize = 4;

/// A value that scripts can pass on and never read. Cheap to clone.
#[derive(Clone)]
pub struct Secret(Arc<Inner>);

struct Inner {
    name: String,
    value: Zeroizing<String>,
    /// `None` for what stands for a value and may go anywhere.
    hosts: Option<Vec<String>>,
}

impl Secret {
    /// The value of the credential `name`, to be sent to `hosts` only: exact names, or `*.` and a domain. Without a host it
    /// goes nowhere.
    ///
    /// # Errors
    /// `invalid_arguments` for what is not a host.
    pub fn new(name: impl Into<String>, value: impl Into<String>, hosts: &[String]) -> Result<Secret> {
        let value = Zeroizing::new(value.into());
        let hosts = hosts.iter().map(|host| host_pattern(host)).collect::<Result<_>>()?;
        Ok(Secret(Arc::new(Inner { name: name.into(), value, hosts: Some(hosts) })))
    }

    /// What stands for the value of the credential `name`. Without `hosts` it fits every one.
    #[must_use]
    pub(super) fn placeholder(name: &str, value: &str, hosts: Option<Vec<String>>) -> Secret {
        Secret(Arc::new(Inner { name: name.to_owned(), value: Zeroizing::new(value.to_owned()), hosts }))
    }

    /// The credential's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The hosts it may be sent to, as the credential lists them.
    #[must_use]
    pub fn hosts(&self) -> &[String] {
        self.0.hosts.as_deref().unwrap_or_default()
    }

    /// Whether its value is too short to be looked for in texts.
    #[must_use]
    pub fn is_short(&self) -> bool {
        self.0.value.len() < SHORTEST
    }

    /// Whether it may be sent to `host`.
    #[must_use]
    pub fn fits(&self, host: &str) -> bool {
        let host = normal_host(host);
        self.0.hosts.as_ref().is_none_or(|hosts| hosts.iter().any(|pattern| covers(pattern, &host)))
    }

    /// The value itself, for a request that is about to be sent. Nobody else asks for it: a test of the house holds that.
    #[must_use]
    pub(crate) fn expose(&self) -> &str {
        &self.0.value
    }

    /// `text` without the value, however it is written there: see [`Redactor`].
    #[must_use]
    pub fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        Redactor::of([self]).text(text)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// Takes the values of some secrets out of texts: as they are, through the escapes of URLs, JSON and HTML over one another, and
/// in base64 between other bytes.
#[derive(Default)]
pub struct Redactor(Matcher);

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Redactor")
    }
}

impl Redactor {
    /// For these secrets.
    pub fn of<'a>(secrets: impl IntoIterator<Item = &'a Secret>) -> Self {
        let mut redactor = Redactor::default();
        secrets.into_iter().for_each(|secret| redactor.add(secret.expose()));
        redactor
    }

    /// Also takes out `value`, such as a password together with its user name. One of fewer than 4 bytes is left alone.
    pub fn add(&mut self, value: &str) {
        self.0.add(value);
    }

    /// Whether there is nothing to look for.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// `text` with [`HIDDEN`] where a value was.
    #[must_use]
    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match self.replaced(text.as_bytes()) {
            None => Cow::Borrowed(text),
            Some(bytes) => Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()),
        }
    }

    fn replaced(&self, text: &[u8]) -> Option<Vec<u8>> {
        let found = self.0.find(text);
        if found.is_empty() {
            return None;
        }
        let mut out = Vec::with_capacity(text.len());
        let mut from = 0;
        for place in found {
            out.extend_from_slice(&text[from..place.start]);
            // In UTF-16 what stands there has to be as wide.
            let is_wide = text[place.clone()].contains(&0);
            out.extend_from_slice(if is_wide { b"*\0*\0*" } else { HIDDEN.as_bytes() });
            from = place.end;
        }
        out.extend_from_slice(&text[from..]);
        Some(out)
    }

    /// A failure without the values, in whatever a script may have put into it.
    #[must_use]
    pub fn error(&self, e: Error) -> Error {
        let hint = e.hint_text().map(|text| self.text(text).into_owned());
        let action = e.user_action().map(|text| self.text(text).into_owned());
        let fallbacks = e
            .fallbacks()
            .iter()
            .map(|f| Fallback { tool: self.text(&f.tool).into_owned(), when: self.text(&f.when).into_owned() });
        let fallbacks = fallbacks.collect();
        let mut e = e.reworded(|text| self.text(text).into_owned()).with_fallbacks(fallbacks);
        if let Some(hint) = hint {
            e = e.hint(hint);
        }
        if let Some(action) = action {
            e = e.with_user_action(action);
        }
        e
    }

    /// A JSON value without the values, in texts and in keys.
    #[must_use]
    pub fn json(&self, value: Value) -> Value {
        match value {
            Value::String(text) => match self.text(&text) {
                Cow::Borrowed(_) => Value::String(text),
                Cow::Owned(text) => Value::String(text),
            },
            Value::Array(items) => items.into_iter().map(|item| self.json(item)).collect(),
            Value::Object(map) => {
                map.into_iter().map(|(key, item)| (self.text(&key).into_owned(), self.json(item))).collect()
            }
            // A value of digits alone may come back as a number.
            Value::Number(number) => match self.text(&number.to_string()) {
                Cow::Borrowed(_) => Value::Number(number),
                Cow::Owned(text) => Value::String(text),
            },
            other => other,
        }
    }

    /// As [`Redactor::text`], for bytes in any charset that writes ASCII as ASCII, and in UTF-16 as far as Latin-1 goes.
    /// What is JSON stays JSON.
    #[must_use]
    pub fn bytes(&self, bytes: Vec<u8>) -> Vec<u8> {
        let Some(out) = self.replaced(&bytes) else { return bytes };
        // A value of digits alone may stand there as a number, without quotes.
        match (serde_json::from_slice::<IgnoredAny>(&out), serde_json::from_slice::<Value>(&bytes)) {
            (Err(_), Ok(value)) => self.json(value).to_string().into_bytes(),
            _ => out,
        }
    }
}

/// The credentials that one call was given, and those that it may ask for. Costs nothing while there are none.
#[derive(Default)]
pub struct Used(OnceLock<Box<Mutex<Given>>>);

#[derive(Default, Clone)]
struct Given {
    texts: Vec<Zeroizing<String>>,
    /// Whether those that it may ask for are among them.
    has_permitted: bool,
    /// Over all of them, made when it is asked for.
    redactor: Option<Arc<Redactor>>,
}

impl Clone for Used {
    fn clone(&self) -> Self {
        let used = Used::default();
        if let Some(given) = self.0.get() {
            *used.lock() = given.lock().unwrap_or_else(PoisonError::into_inner).clone();
        }
        used
    }
}

impl Used {
    /// The call was given this one.
    pub fn add(&self, secret: &Secret) {
        self.add_text(secret.expose());
    }

    /// The call was given this value, or one that holds it.
    pub fn add_text(&self, value: &str) {
        let mut given = self.lock();
        if !given.texts.iter().any(|text| text.as_str() == value) {
            given.texts.push(Zeroizing::new(value.to_owned()));
            given.redactor = None;
        }
    }

    /// The call may ask for these values: what a server was told in an earlier call, it may tell in this one. `add` is
    /// asked for them once.
    pub fn permit(&self, add: impl FnOnce(&Used)) {
        if !std::mem::replace(&mut self.lock().has_permitted, true) {
            add(self);
        }
    }

    /// What takes their values out of texts; `None` where there is nothing to take out.
    #[must_use]
    pub fn redactor(&self) -> Option<Arc<Redactor>> {
        self.0.get()?;
        let mut given = self.lock();
        if given.redactor.is_none() {
            let mut redactor = Redactor::default();
            given.texts.iter().for_each(|text| redactor.add(text));
            given.redactor = Some(Arc::new(redactor));
        }
        given.redactor.clone().filter(|redactor| !redactor.is_empty())
    }

    fn lock(&self) -> MutexGuard<'_, Given> {
        self.0.get_or_init(Box::default).lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The refusal of a request that would carry `secret` to a host that its credential does not name.
#[must_use]
pub fn misplaced(secret: &Secret, host: &str) -> Error {
    let name = secret.name();
    Error::denied(format!("the credential `{name}` may not be sent to `{host}`"))
        .with_user_action(format!("let the credential `{name}` be sent to `{host}`"))
        .hint("only the hosts that the credential names get it, at every redirect too")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use base64::Engine;
    use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};

    fn secret(value: &str, hosts: &[&str]) -> Secret {
        Secret::new("weather", value, &hosts.iter().map(|h| (*h).to_owned()).collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn a_secret_goes_to_the_hosts_of_its_credential_only() {
        let secret = secret("abcdef", &["api.example.org", "*.example.net", "127.0.0.1", "[::1]"]);
        for (host, fits) in [
            ("api.example.org", true),
            ("API.example.org.", true),
            ("example.org", false),
            ("x.api.example.org", false),
            ("api.example.org.evil.com", false),
            ("a.example.net", true),
            ("example.net", false),
            ("badexample.net", false),
            ("127.0.0.1", true),
            ("::1", true),
            ("", false),
        ] {
            assert_eq!(secret.fits(host), fits, "{host}");
        }
        assert!(!self::secret("abcdef", &[]).fits("api.example.org"));
        assert!(Secret::new("w", "v", &["https://x".to_owned()]).is_err());
    }

    #[test]
    fn a_secret_shows_its_value_in_no_text() {
        let secret = secret("pa ss/\"w+rd", &[]);
        assert_eq!(format!("{secret} {secret:?} {:?}", Some(&secret)), "Secret Secret Some(Secret)");
        assert_eq!(secret.redact("nothing here"), "nothing here");
        for shown in [
            "pa ss/\"w+rd".to_owned(),
            "pa%20ss%2F%22w%2Brd".to_owned(),
            "pa%20ss%2f%22w%2brd".to_owned(),
            "pa%20ss/%22w+rd".to_owned(),
            "pa ss\\/\\\"w+rd".to_owned(),
            "pa ss/&quot;w+rd".to_owned(),
            "pa+ss%2F%22w%2Brd".to_owned(),
            "pa ss/\\\"w+rd".to_owned(),
            STANDARD.encode("pa ss/\"w+rd"),
            URL_SAFE_NO_PAD.encode("pa ss/\"w+rd"),
        ] {
            assert_eq!(secret.redact(&format!("a={shown}&b")), "a=***&b", "{shown}");
            let redactor = Redactor::of([&secret]);
            assert_eq!(redactor.bytes(format!("{shown}{shown}.").into_bytes()), b"******.", "{shown}");
            let binary = [b"\xff", shown.as_bytes(), b"\xfe", shown.as_bytes()].concat();
            assert_eq!(redactor.bytes(binary), b"\xff***\xfe***", "{shown}");
        }
    }

    #[test]
    fn a_value_too_short_to_be_told_from_other_text_is_not_looked_for() {
        assert_eq!(secret("a", &[]).redact("banana"), "banana");
        assert!(Redactor::of([&secret("abc", &[])]).is_empty());
    }
}
