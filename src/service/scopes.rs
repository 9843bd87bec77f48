//! Scopes: words that part a plugin's data by chat. The registry knows which exist and who owns them; the values of one call
//! are a snapshot that belongs to the call. There is no ambient "current scope".

use crate::base::error::{Error, Result, excerpt};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

/// The owner of the scopes that always exist.
pub const CORE: &str = "core";
const RAG: &str = "rag";
const PRIVATE: &str = "private";

/// A scope as it was registered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scope {
    /// The plugin it belongs to, or [`CORE`].
    pub owner: Arc<str>,
    /// The value where a chat chose none; `None` means closed.
    pub default: Option<Arc<str>>,
    /// The chat setting that chooses it: `<key>_scope`; none for `rag`, `private_chat` for `private`.
    pub setting: Option<Arc<str>>,
}

/// What became of a registration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Registered {
    /// A new scope.
    New,
    /// The same owner registered it again; it keeps its place and takes the new default.
    Again,
    /// Somebody else was first and keeps it; worth a warning.
    Kept {
        /// Who owns it.
        owner: Arc<str>,
    },
}

/// Every scope that exists now. Shared by all threads; readers take a snapshot and are not disturbed by a reload.
#[derive(Debug)]
pub struct Registry {
    known: RwLock<Known>,
}

#[derive(Debug)]
struct Known {
    scopes: BTreeMap<Arc<str>, Scope>,
    /// Values of a call without a chat, made anew at each change so that such calls share one.
    defaults: Arc<ScopeValues>,
}

impl Default for Registry {
    fn default() -> Self {
        let core = |default: Option<&str>, setting: Option<&str>| Scope {
            owner: CORE.into(),
            default: default.map(Into::into),
            setting: setting.map(Into::into),
        };
        let scopes = BTreeMap::from([
            (RAG.into(), core(None, None)),
            (PRIVATE.into(), core(Some("false"), Some("private_chat"))),
        ]);
        Registry { known: RwLock::new(Known { scopes, defaults: Arc::default() }) }
    }
}

impl Registry {
    /// A registry with the core scopes `rag` and `private`.
    #[must_use]
    pub fn new() -> Self {
        Registry::default()
    }

    /// Adds a scope of `owner`. The first owner of a key keeps it.
    ///
    /// # Errors
    /// `invalid_arguments` for a key that is not an identifier of at most 64 ASCII characters; nothing is registered then.
    pub fn register(&self, key: &str, owner: &str, default: Option<&str>) -> Result<Registered> {
        if !is_identifier(key) {
            let shown = excerpt(key, 80);
            return Err(Error::invalid(format!("`{shown}` cannot be a scope's key"))
                .hint("use letters, digits and `_`, not beginning with a digit"));
        }
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        let outcome = match known.scopes.get_mut(key) {
            Some(scope) if &*scope.owner == owner && owner != CORE => {
                scope.default = default.map(Into::into);
                Registered::Again
            }
            Some(scope) => return Ok(Registered::Kept { owner: Arc::clone(&scope.owner) }),
            None => {
                let setting = Some(format!("{key}_scope").into());
                let scope = Scope { owner: owner.into(), default: default.map(Into::into), setting };
                known.scopes.insert(key.into(), scope);
                Registered::New
            }
        };
        known.renew();
        Ok(outcome)
    }

    /// Removes a scope where `owner` owns it; says whether it did. Core scopes stay.
    pub fn unregister(&self, key: &str, owner: &str) -> bool {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        let owned = owner != CORE && known.scopes.get(key).is_some_and(|scope| &*scope.owner == owner);
        if owned {
            known.scopes.remove(key);
            known.renew();
        }
        owned
    }

    /// Keys that `owner` owns, sorted.
    #[must_use]
    pub fn owned_by(&self, owner: &str) -> Vec<Arc<str>> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        known.scopes.iter().filter(|(_, scope)| &*scope.owner == owner).map(|(key, _)| Arc::clone(key)).collect()
    }

    /// One scope, if it exists.
    #[must_use]
    pub fn scope(&self, key: &str) -> Option<Scope> {
        self.known.read().unwrap_or_else(PoisonError::into_inner).scopes.get(key).cloned()
    }

    /// Every key, sorted.
    #[must_use]
    pub fn keys(&self) -> Vec<Arc<str>> {
        self.known.read().unwrap_or_else(PoisonError::into_inner).scopes.keys().cloned().collect()
    }

    /// The values for a call that belongs to no chat: every scope at its default.
    #[must_use]
    pub fn defaults(&self) -> Arc<ScopeValues> {
        Arc::clone(&self.known.read().unwrap_or_else(PoisonError::into_inner).defaults)
    }

    /// Scopes that a person can set, each as its owner and its key.
    #[must_use]
    pub fn owners(&self) -> Vec<(Arc<str>, Arc<str>)> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let settable = known.scopes.iter().filter(|(key, scope)| scope.setting.is_some() && &***key != PRIVATE);
        settable.map(|(key, scope)| (Arc::clone(&scope.owner), Arc::clone(key))).collect()
    }

    /// The values for a call in a chat with these settings. It starts from the defaults every time, so one chat's choice never
    /// shows in another. A setting that is `"none"` closes the scope, `""` or an absent one means the default.
    #[must_use]
    pub fn values(&self, chat_settings: &Map<String, Value>) -> ScopeValues {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let values = known.scopes.iter().map(|(key, scope)| {
            let chosen = scope.setting.as_deref().and_then(|setting| chat_settings.get(setting));
            let value = match chosen {
                None => scope.default.clone(),
                Some(value) if &**key == PRIVATE => Some(if is_falsy(value) { "false" } else { "true" }.into()),
                Some(Value::Null) => None,
                Some(Value::String(text)) if text == "none" => None,
                Some(Value::String(text)) if text.is_empty() => scope.default.clone(),
                Some(Value::String(text)) => Some(text.as_str().into()),
                Some(other) => Some(other.to_string().into()),
            };
            (Arc::clone(key), value)
        });
        ScopeValues { values: values.collect() }
    }
}

impl Known {
    fn renew(&mut self) {
        let values = self.scopes.iter().map(|(key, scope)| (Arc::clone(key), scope.default.clone())).collect();
        self.defaults = Arc::new(ScopeValues { values });
    }
}

/// The scopes of one call, fixed when it starts. The default knows the core scopes only: `rag` closed, `private` false.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScopeValues {
    values: BTreeMap<Arc<str>, Option<Arc<str>>>,
}

impl Default for ScopeValues {
    fn default() -> Self {
        ScopeValues { values: BTreeMap::from([(RAG.into(), None), (PRIVATE.into(), Some("false".into()))]) }
    }
}

impl ScopeValues {
    /// The value of a scope; `None` where it is closed.
    ///
    /// # Errors
    /// `not_found` for a key that nobody registered.
    pub fn get(&self, key: &str) -> Result<Option<&str>> {
        match self.values.get(key) {
            Some(value) => Ok(value.as_deref()),
            None => {
                let shown = excerpt(key, 80);
                let known: Vec<&str> = self.values.keys().map(|key| &**key).collect();
                Err(Error::not_found(format!("no loaded plugin registered the scope `{shown}`"))
                    .hint(format!("the scopes are {}; declare yours in plugin.json", known.join(", "))))
            }
        }
    }

    /// The chat is private.
    #[must_use]
    pub fn is_private(&self) -> bool {
        self.values.get(PRIVATE).is_some_and(|value| value.as_deref() == Some("true"))
    }

    /// The same values with one of them set; a key that is not registered is left out.
    #[must_use]
    pub fn with(mut self, key: &str, value: Option<&str>) -> Self {
        if let Some(slot) = self.values.get_mut(key) {
            *slot = value.map(Into::into);
        }
        self
    }

    /// Whether a scope is closed here; one that is not registered counts as closed.
    #[must_use]
    pub fn is_closed(&self, key: &str) -> bool {
        self.values.get(key).is_none_or(Option::is_none)
    }

    /// Every key with its value, sorted.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Option<&str>)> {
        self.values.iter().map(|(key, value)| (&**key, value.as_deref()))
    }
}

fn is_identifier(key: &str) -> bool {
    key.len() <= 64
        && key.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
        && key.bytes().next().is_some_and(|b| !b.is_ascii_digit())
}

/// What a chat setting means for "no": the spellings that forms and hand edits use.
fn is_falsy(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Number(n) => n.as_f64() == Some(0.0),
        Value::String(text) => matches!(text.trim().to_ascii_lowercase().as_str(), "" | "false" | "0" | "no" | "off"),
        _ => false,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::base::error::Kind;
    use serde_json::json;

    fn settings(value: Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn core_scopes_exist_without_any_plugin() {
        for values in [ScopeValues::default(), Registry::new().values(&Map::new())] {
            assert_eq!(values.get("rag").unwrap(), None);
            assert_eq!(values.get("private").unwrap(), Some("false"));
            assert!(!values.is_private());
            let e = values.get("email").unwrap_err();
            assert_eq!(e.kind(), Kind::NotFound);
            assert!(e.hint_text().unwrap().contains("private, rag"), "{e}");
        }
        assert_eq!(*Registry::new().defaults(), ScopeValues::default());
    }

    #[test]
    fn the_first_owner_keeps_a_key_and_only_the_owner_removes_it() {
        let registry = Registry::new();
        assert_eq!(registry.register("email", "mail", Some("default")).unwrap(), Registered::New);
        assert_eq!(registry.register("email", "thief", None).unwrap(), Registered::Kept { owner: "mail".into() });
        assert_eq!(registry.register("email", "mail", Some("work")).unwrap(), Registered::Again);
        assert_eq!(registry.scope("email").unwrap().default.as_deref(), Some("work"));
        assert!(!registry.unregister("email", "thief"));
        assert_eq!(registry.owned_by("mail"), ["email".into()]);
        assert!(registry.unregister("email", "mail"));
        assert!(!registry.unregister("email", "mail"));
        assert!(registry.values(&Map::new()).get("email").is_err());
    }

    #[test]
    fn core_scopes_cannot_be_taken_or_removed() {
        let registry = Registry::new();
        for key in ["rag", "private"] {
            for owner in ["p", CORE] {
                assert_eq!(registry.register(key, owner, None).unwrap(), Registered::Kept { owner: CORE.into() });
                assert!(!registry.unregister(key, owner));
            }
        }
    }

    #[test]
    fn a_key_that_is_not_an_identifier_is_refused() {
        let registry = Registry::new();
        let long = "a".repeat(65);
        for bad in ["", "1a", "a-b", "a b", "a.b", "é", "a\n", long.as_str()] {
            assert_eq!(registry.register(bad, "p", None).unwrap_err().kind(), Kind::InvalidArguments, "{bad:?}");
        }
        assert_eq!(registry.keys(), ["private".into(), "rag".into()]);
    }

    #[test]
    fn chat_settings_choose_close_or_leave_the_default() {
        let registry = Registry::new();
        registry.register("email", "mail", Some("default")).unwrap();
        registry.register("git", "git", None).unwrap();
        let rows = [
            (json!({}), Some("default"), None),
            (json!({"email_scope": "work"}), Some("work"), None),
            (json!({"email_scope": "none", "git_scope": "x"}), None, Some("x")),
            (json!({"email_scope": "", "git_scope": ""}), Some("default"), None),
            (json!({"email_scope": null}), None, None),
            (json!({"email_scope": 7}), Some("7"), None),
            (json!({"unknown_scope": "x", "rag_scope": "x"}), Some("default"), None),
        ];
        for (chat, email, git) in rows {
            let values = registry.values(&settings(chat.clone()));
            assert_eq!((values.get("email").unwrap(), values.get("git").unwrap()), (email, git), "{chat}");
            assert_eq!(values.get("rag").unwrap(), None);
            assert_eq!(values.is_closed("email"), email.is_none());
        }
    }

    #[test]
    fn private_follows_the_falsy_words() {
        let registry = Registry::new();
        for no in [
            json!(false),
            json!(0),
            json!(0.0),
            json!(""),
            json!("false"),
            json!("False"),
            json!("0"),
            json!("no"),
            json!("off"),
            json!(null),
        ] {
            assert!(!registry.values(&settings(json!({"private_chat": no}))).is_private(), "{no}");
        }
        for yes in [json!(true), json!(1), json!("true"), json!("yes"), json!("none"), json!([])] {
            assert!(registry.values(&settings(json!({"private_chat": yes}))).is_private(), "{yes}");
        }
    }

    #[test]
    fn a_snapshot_outlives_the_registration() {
        let registry = Registry::new();
        registry.register("email", "mail", Some("default")).unwrap();
        let values = registry.defaults().as_ref().clone().with("email", Some("mine")).with("nobody", Some("x"));
        registry.unregister("email", "mail");
        assert_eq!(values.get("email").unwrap(), Some("mine"));
        assert!(values.get("nobody").is_err() && values.is_closed("nobody"));
    }

    #[test]
    fn ten_calls_at_once_never_see_each_others_values() {
        let registry = Registry::new();
        registry.register("email", "mail", Some("default")).unwrap();
        std::thread::scope(|scope| {
            for n in 0..10 {
                let registry = &registry;
                scope.spawn(move || {
                    let mine = format!("account-{n}");
                    for round in 0..200 {
                        let values =
                            registry.values(&settings(json!({"email_scope": mine, "private_chat": n % 2 == 0})));
                        registry.register(&format!("extra_{n}_{round}"), "other", None).unwrap();
                        assert_eq!(values.get("email").unwrap(), Some(mine.as_str()));
                        assert_eq!(values.is_private(), n % 2 == 0);
                        assert_eq!(registry.defaults().get("email").unwrap(), Some("default"));
                        registry.unregister(&format!("extra_{n}_{round}"), "other");
                    }
                });
            }
        });
        assert_eq!(registry.keys().len(), 3);
    }
}
