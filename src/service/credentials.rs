//! Credentials that a person stored for plugins: in the keyring of the desktop or one file of this user, outside every root, and
//! the environment behind both. It hands values out as [`Secret`]s only. Which plugin may ask is `permissions`', where a value may
//! be sent `secret`'s.

mod book;
mod change;
pub mod keyring;
mod known;
mod placeholders;
mod source;

pub use change::{Changed, Given, Place};
pub use placeholders::Placeholders;
pub use source::{Environment, Keep, Source};

use self::book::{Book, Entry};
use self::keyring::{Item, Keyring, Refusal};
use self::known::{Age, Known};
use super::permissions::{Grants, Missing, Permission, Reach, secret_name};
use super::secret::{Redactor, Secret, Used};
use crate::base::error::{Error, Kind, Result};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use zeroize::Zeroizing;

/// What the name of a variable begins with that holds a credential.
pub const VARIABLE: &str = "LAPIDARY_CREDENTIAL_";
/// Most bytes of one value.
pub const MAX_VALUE: usize = 64 << 10;

/// The credentials of a source. The file is read afresh for every answer, so what another process stored counts at once; what
/// was read from the keyring is kept by clones in common.
#[derive(Clone, Default)]
pub struct Store {
    source: Source,
    known: Arc<Mutex<Known>>,
}

/// A field of an account as a plugin gets it.
#[derive(Debug, Clone)]
pub enum Field {
    /// Its owner said that it may be read.
    Public(String),
    /// Anything else.
    Secret(Secret),
}

/// A credential without its values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Listed {
    /// Its name; of an account the kind and the scope, with `/` between them.
    pub name: String,
    /// Names of the fields of an account.
    pub fields: Vec<String>,
    /// The fields that plugins may read as text.
    pub public: Vec<String>,
    /// Where values may be sent.
    pub hosts: Vec<String>,
    /// Where the value is: `keyring`, `file`, `environment` or `nowhere`.
    pub from: &'static str,
    /// The variable that is looked at where nothing stored has a value.
    pub variable: String,
}

/// What is stored, and whether it can be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked {
    /// Credentials with a value in the keyring.
    pub in_keyring: usize,
    /// Credentials with a value in the file.
    pub in_file: usize,
    /// Why the keyring cannot be asked.
    pub refused: Option<Refusal>,
    /// Names of credentials that should be in the keyring and are not.
    pub gone: Vec<String>,
}

impl Store {
    /// The credentials of `source`.
    #[must_use]
    pub fn new(source: Source) -> Store {
        Store { source, known: Arc::default() }
    }

    /// The file, where there is one to be.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.source.file.as_deref()
    }

    /// The credential with a single value.
    ///
    /// # Errors
    /// `not_found`; `invalid_arguments` for an account; where the file or the keyring cannot be used, an error without the place:
    /// these are for scripts.
    pub fn secret(&self, name: &str) -> Result<Secret> {
        let name = &secret_name(name)?;
        if let Some(fields) = self.source.placeholders.as_ref().and_then(|p| p.fields(name)) {
            return match fields?.remove("value") {
                Some(Field::Secret(secret)) => Ok(secret),
                Some(Field::Public(_)) | None => Err(has_fields(name)),
            };
        }
        let mut entry = self.read().map_err(discreet)?.credentials.remove(name).unwrap_or_default();
        if !entry.field_names().is_empty() {
            return Err(has_fields(name));
        }
        let filled = self.fill(name, &mut entry);
        match self.only_value(name, &entry) {
            Some((value, hosts)) => Secret::new(name.as_str(), value.as_str(), &hosts),
            None => Err(filled.err().unwrap_or_else(|| unknown(name))),
        }
    }

    /// The fields of an account, by name; of a credential with a single value, that is `value`.
    ///
    /// # Errors
    /// As [`Store::secret`].
    pub fn account(&self, kind: &str, scope: &str) -> Result<BTreeMap<String, Field>> {
        let name = &account_name(kind, scope)?;
        if let Some(fields) = self.source.placeholders.as_ref().and_then(|p| p.fields(name)) {
            return fields;
        }
        let mut entry = self.read().map_err(discreet)?.credentials.remove(name).unwrap_or_default();
        if entry.field_names().is_empty() {
            let secret = self.secret(name)?;
            return Ok([("value".to_owned(), Field::Secret(secret))].into());
        }
        self.fill(name, &mut entry)?;
        let read = |(field, value): (&String, &Zeroizing<String>)| {
            let held = if entry.public.contains(field) {
                Field::Public(value.to_string())
            } else {
                Field::Secret(Secret::new(name.as_str(), value.as_str(), &entry.hosts)?)
            };
            Ok((field.clone(), held))
        };
        entry.fields.iter().map(read).collect()
    }

    /// The scopes for which there is an account of that kind, sorted. Accounts of the environment alone are not among them: its
    /// variables do not tell.
    ///
    /// # Errors
    /// Where the file cannot be used, as [`Store::secret`].
    pub fn scopes(&self, kind: &str) -> Result<Vec<String>> {
        let names = self.read().map_err(discreet)?.credentials.into_keys();
        let placeholders = self.source.placeholders.as_ref();
        let mut scopes: BTreeSet<String> = names
            .filter(|name| !placeholders.is_some_and(|p| p.lacks(name)))
            .filter_map(|name| name.split_once('/').filter(|(k, _)| *k == kind).map(|(_, scope)| scope.to_owned()))
            .collect();
        scopes.extend(placeholders.map(|p| p.scopes(kind)).unwrap_or_default());
        Ok(scopes.into_iter().collect())
    }

    /// Everything that is stored, without values. The keyring is not asked: the file knows what is in it.
    ///
    /// # Errors
    /// Those of the file: `permission_denied` where others may read it, `invalid_arguments` where it does not parse.
    pub fn list(&self) -> Result<Vec<Listed>> {
        let book = self.read()?;
        let listed = book.credentials.iter().map(|(name, entry)| {
            let found = self.only_value(name, entry).filter(|_| entry.keyring.is_none());
            Listed {
                name: name.clone(),
                fields: entry.field_names().into_iter().collect(),
                public: entry.public.iter().cloned().collect(),
                hosts: found.as_ref().map_or_else(|| entry.hosts.clone(), |(_, hosts)| hosts.clone()),
                from: if entry.keyring.is_some() {
                    "keyring"
                } else if entry.has_value() {
                    "file"
                } else if found.is_some() {
                    "environment"
                } else {
                    "nowhere"
                },
                variable: variable(name),
            }
        });
        Ok(listed.collect())
    }

    /// What takes all stored values, and those that the environment has for `names`, out of texts.
    ///
    /// # Errors
    /// Those of the file, and where the keyring does not tell a value that it holds: it could not be taken out.
    pub fn redactor<'a>(&self, names: impl IntoIterator<Item = &'a str>) -> Result<Redactor> {
        let mut book = self.read()?;
        let all: Vec<String> = book.credentials.keys().cloned().collect();
        self.fill_all(&mut book, &all)?;
        Ok(self.redactor_of(&book, names))
    }

    /// As [`Store::redactor`], of the keyring only with what was read from it: for what is no reason to ask it.
    ///
    /// # Errors
    /// Those of the file.
    pub fn known_redactor<'a>(&self, names: impl IntoIterator<Item = &'a str>) -> Result<Redactor> {
        let mut book = self.read()?;
        let known = self.known();
        for (name, entry) in &mut book.credentials {
            let value = entry.item(name).and_then(|item| known.remembered(&item));
            let _ = value.map(|value| entry.fill(value));
        }
        drop(known);
        Ok(self.redactor_of(&book, names))
    }

    fn redactor_of<'a>(&self, book: &Book, names: impl IntoIterator<Item = &'a str>) -> Redactor {
        let mut redactor = Redactor::default();
        for entry in book.credentials.values() {
            entry.value.iter().chain(entry.hidden()).for_each(|value| redactor.add(value));
        }
        for name in names {
            let entry = book.credentials.get(name).cloned().unwrap_or_default();
            self.single_values(name, &entry).for_each(|value| redactor.add(&value));
        }
        redactor
    }

    /// Adds the values that a plugin with these grants may ask for, fields that it may read as text left out. None where the
    /// file cannot be used, and of the keyring only those that are known where it does not answer: neither gives anybody a
    /// value then. What only a variable holds is among them where the grant names it.
    pub fn add_permitted(&self, grants: &Grants, used: &Used) {
        let Ok(mut book) = self.read() else { return };
        let listed = match grants.secrets() {
            Reach::None => return,
            Reach::Listed(names) => names.clone(),
            Reach::Any => BTreeSet::new(),
        };
        if let Some(placeholders) = &self.source.placeholders {
            placeholders
                .secrets(&listed, &|name| grants.allows_secret(name))
                .iter()
                .for_each(|secret| used.add(secret));
        }
        let held: Vec<String> = book.credentials.keys().filter(|name| grants.allows_secret(name)).cloned().collect();
        let _ = self.fill_all(&mut book, &held);
        for name in held.iter().chain(listed.iter().filter(|name| !book.credentials.contains_key(*name))) {
            let entry = book.credentials.get(name).cloned().unwrap_or_default();
            self.single_values(name, &entry).for_each(|value| used.add_text(&value));
            entry.hidden().for_each(|value| used.add_text(value));
        }
    }

    /// What is stored, and whether it can be used. A keyring is asked for all that it should hold.
    ///
    /// # Errors
    /// Those of the file.
    pub fn check(&self) -> Result<Checked> {
        let book = self.read()?;
        let count = |place| book.credentials.values().filter(|entry| entry.place() == Some(place)).count();
        let mut checked =
            Checked { in_keyring: count(Place::Keyring), in_file: count(Place::File), refused: None, gone: Vec::new() };
        let items: Vec<Item> = book.credentials.iter().filter_map(|(name, entry)| entry.item(name)).collect();
        if !items.is_empty() {
            match self.keyring().and_then(|keyring| keyring.get(&items)) {
                Ok(values) => {
                    let missing = items.into_iter().zip(values).filter(|(_, value)| value.is_none());
                    checked.gone = missing.map(|(item, _)| item.name).collect();
                }
                Err(refused) => checked.refused = Some(refused),
            }
        }
        Ok(checked)
    }

    /// The stored value, else the environment's, and where it may be sent. What is in the keyring was filled in before.
    fn only_value(&self, name: &str, entry: &Entry) -> Option<(Zeroizing<String>, Vec<String>)> {
        match &entry.value {
            Some(value) => Some((value.clone(), entry.hosts.clone())),
            None if entry.field_names().is_empty() => self.variable_value(name, entry),
            None => None,
        }
    }

    /// The environment's value, and where it may be sent.
    fn variable_value(&self, name: &str, entry: &Entry) -> Option<(Zeroizing<String>, Vec<String>)> {
        let read = self.source.environment.as_ref()?;
        let variable = variable(name);
        let value = read(&variable).map(Zeroizing::new).filter(|value| fit(value).is_ok())?;
        let hosts = if entry.hosts.is_empty() {
            let listed = read(&format!("{variable}_HOSTS")).unwrap_or_default();
            listed.split([',', ' ']).filter(|host| !host.is_empty()).map(str::to_owned).collect()
        } else {
            entry.hosts.clone()
        };
        Some((value, hosts))
    }

    /// Every single value that a plugin could be given under this name: what the keyring holds, or, while it does not answer,
    /// what the environment has.
    fn single_values(&self, name: &str, entry: &Entry) -> impl Iterator<Item = Zeroizing<String>> {
        let second = entry.keyring.as_ref().and_then(|_| self.variable_value(name, entry));
        self.only_value(name, entry).into_iter().chain(second).map(|(value, _)| value)
    }

    fn keyring(&self) -> std::result::Result<&dyn Keyring, Refusal> {
        match &self.source.keyring {
            _ if self.keep() == Keep::File => Err(Refusal::Absent("this host is set to use the file only")),
            Some(keyring) => Ok(keyring.as_ref()),
            None => Err(Refusal::Absent("this host was given none")),
        }
    }

    /// Fills in what the keyring holds for a credential that is about to be given to somebody.
    fn fill(&self, name: &str, entry: &mut Entry) -> Result<()> {
        let Some(item) = entry.item(name) else { return Ok(()) };
        let value = self
            .keyring()
            .and_then(|keyring| self.known().get(keyring, &[item], Age::Recent, Instant::now()))
            .map_err(|refused| refused.error_of(name))?;
        let value = value.into_iter().next().flatten().ok_or_else(|| gone(name))?;
        entry.fill(value).map_err(|refused| refused.error_of(name))
    }

    /// Fills in what the keyring holds for these credentials, to take it out of texts; where it does not answer, what is known.
    fn fill_all(&self, book: &mut Book, names: &[String]) -> Result<()> {
        let items: Vec<Item> = names.iter().filter_map(|name| book.credentials.get(name)?.item(name)).collect();
        if items.is_empty() {
            return Ok(());
        }
        let mut known = self.known();
        let asked = self.keyring().and_then(|keyring| known.get(keyring, &items, Age::Any, Instant::now()));
        let (values, refused) = match asked {
            Ok(values) => (values, None),
            Err(refused) => (items.iter().map(|item| known.remembered(item)).collect(), Some(refused)),
        };
        drop(known);
        let mut wrong = refused.zip(items.first()).map(|(refused, item)| refused.error_of(&item.name));
        for (item, value) in items.iter().zip(values) {
            if let (Some(entry), Some(value)) = (book.credentials.get_mut(&item.name), value)
                && let Err(refused) = entry.fill(value)
            {
                wrong.get_or_insert_with(|| refused.error_of(&item.name));
            }
        }
        wrong.map_or(Ok(()), Err)
    }

    fn keep(&self) -> Keep {
        self.source.keep.unwrap_or_default()
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read(&self) -> Result<Book> {
        let book = self.path().map_or_else(|| Ok(Book::default()), Book::read)?;
        // While somebody waits for the keyring, what is in the file must not wait with them.
        if let Ok(mut known) = self.known.try_lock() {
            known.keep(book.ids());
        }
        Ok(book)
    }
}

/// `Ok` where `plugin` may use the credential `name`; whether there is one plays no part.
///
/// # Errors
/// `permission_denied` with what to declare and to type.
pub fn permit(grants: &Grants, plugin: &str, name: &str) -> Result<()> {
    let name = secret_name(name)?;
    if grants.allows_secret(&name) {
        return Ok(());
    }
    let word = Permission::UseSecrets;
    let argument = Missing { permission: word, names: vec![name.clone()] }.argument();
    Err(Error::denied(format!("the plugin `{plugin}` may not use the credential `{name}`"))
        .with_user_action(format!("let the plugin `{plugin}` use the credential `{name}`"))
        .hint(format!(
            "declare it: const PERMISSIONS = [#{{{word}: [\"{name}\"]}}]; (or \"{word}\": [\"{name}\"] in plugin.json), \
             then type: lapidary grant {plugin} {argument}"
        )))
}

/// The name of the account of a kind that belongs to the value of a scope.
///
/// # Errors
/// `invalid_arguments` for what cannot be one.
pub fn account_name(kind: &str, scope: &str) -> Result<String> {
    if kind.contains('/') {
        return Err(Error::invalid("the kind of an account has no `/`"));
    }
    secret_name(&format!("{kind}/{scope}"))
}

/// The variable that may hold the value of a credential: its name in capitals, with `_` for what is neither letter nor digit.
#[must_use]
pub fn variable(name: &str) -> String {
    let name = name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' });
    VARIABLE.chars().chain(name).collect()
}

fn fit(value: &str) -> Result<()> {
    match value.len() {
        0 => Err(Error::invalid("the value is empty")),
        n if n > MAX_VALUE => Err(Error::new(Kind::TooLarge, format!("the value has {n} bytes; at most {MAX_VALUE}"))),
        _ => Ok(()),
    }
}

fn has_fields(name: &str) -> Error {
    let (kind, scope) = name.split_once('/').unwrap_or((name, ""));
    Error::invalid(format!("the credential `{name}` is an account with several fields"))
        .hint(format!("read it with credentials::account(\"{kind}\", \"{scope}\")"))
}

fn unknown(name: &str) -> Error {
    Error::not_found(format!("there is no credential `{name}`"))
        .with_user_action(format!("store the credential `{name}`"))
        .hint(format!("its owner types: lapidary credentials set {name} --host HOST"))
}

fn gone(name: &str) -> Error {
    Error::not_found(format!("the keyring no longer has the credential `{name}`"))
        .with_user_action(format!("store the credential `{name}` again"))
        .hint(format!("its owner types: lapidary credentials set {name}"))
}

/// A script learns that there is something to mend, not where on this machine.
fn discreet(e: Error) -> Error {
    Error::new(e.kind(), "the stored credentials cannot be used now")
        .with_user_action("look at the file of credentials")
        .hint("the owner of this host types: lapidary doctor")
}

#[cfg(test)]
mod tests;
