//! What a person changes about credentials: storing, moving and deleting, under the file's lock. A value is in the keyring before
//! the file says so, and leaves it after, so that at no moment there is none.

use super::book::{self, Book, Entry, Kept};
use super::keyring::{Item, Keyring, Refusal};
use super::{Keep, Store, fit, gone, unknown};
use crate::base::error::{Error, Kind, Result, excerpt};
use crate::service::permissions::{host_pattern, secret_name};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;
use zeroize::Zeroizing;

/// What is stored under a name. It has no `Debug`: it holds values.
#[derive(Default)]
pub struct Given {
    /// The only value of a credential.
    pub value: Option<Zeroizing<String>>,
    /// The fields of an account.
    pub fields: BTreeMap<String, Zeroizing<String>>,
    /// The fields that plugins may read as text; the others of what was stored before stay so.
    pub public: BTreeSet<String>,
    /// Where values may be sent: hosts, or `*.` and a domain. `None` leaves those of what was stored before.
    pub hosts: Option<Vec<String>>,
}

/// Where values are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Place {
    /// The keyring of the desktop.
    Keyring,
    /// The file, closed to others.
    File,
}

impl Place {
    /// The place by its word: `keyring` or `file`.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Place> {
        [Place::Keyring, Place::File].into_iter().find(|place| place.to_string() == word)
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Place::Keyring => "keyring",
            Place::File => "file",
        })
    }
}

/// What became of a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changed {
    /// Whether there was no credential of that name before.
    pub is_new: bool,
    /// Where its value is now; `None` where nothing stored has one.
    pub place: Option<Place>,
    /// Why the keyring does not hold the value that was given, where it was to be tried.
    pub refused: Option<Refusal>,
    /// Why the keyring still holds a value that it should not; every later change tries to remove it again.
    pub left: Option<Refusal>,
}

/// What a change of the file came to.
#[derive(Default)]
struct Change {
    is_new: bool,
    place: Option<Place>,
    refused: Option<Refusal>,
    /// What is in the keyring since.
    put: Option<Item>,
}

impl Store {
    /// Stores a credential, beside what the same name has already, in the keyring or in the file as its source says. A value of
    /// the same name moves with it.
    ///
    /// # Errors
    /// `invalid_arguments` for a bad name, host or field, an empty or oversized value, or a single value beside fields; those
    /// of the file; those of a keyring that has to be used. Nothing is changed then.
    pub fn set(&self, name: &str, given: Given) -> Result<Changed> {
        let name = account_free(name)?;
        let Given { value, fields, public, hosts } = given;
        value.iter().chain(fields.values()).try_for_each(|value| fit(value))?;
        fields.keys().chain(&public).try_for_each(|field| field_name(field))?;
        let hosts = hosts.map(|hosts| hosts.iter().map(|h| host_pattern(h)).collect::<Result<Vec<_>>>()).transpose()?;
        self.change(|book| {
            let before = book.credentials.get(&name);
            let (is_new, mut entry) = (before.is_none(), before.cloned().unwrap_or_default());
            let names: BTreeSet<String> = entry.field_names().into_iter().chain(fields.keys().cloned()).collect();
            if (value.is_some() || entry.has_single_value()) && !names.is_empty() {
                return Err(Error::invalid("a credential has either one value or fields")
                    .hint("delete it first: lapidary credentials delete NAME"));
            }
            entry.public.extend(public);
            if let Some(field) = entry.public.iter().find(|field| !names.contains(*field)) {
                return Err(Error::invalid(format!("there is no field `{field}` that could be public")));
            }
            if let Some(hosts) = hosts {
                entry.hosts = hosts;
            }
            let mut change = Change { is_new, ..Change::default() };
            if value.is_some() || !fields.is_empty() {
                // What stays of an account comes along, from wherever it is.
                if !names.iter().all(|name| fields.contains_key(name)) {
                    self.bring(&name, &mut entry)?;
                }
                book.leave(entry.item(&name));
                entry.keyring = None;
                entry.value = value;
                entry.fields.extend(fields);
                let item = new_item(&name);
                match (self.keep(), &self.source.keyring) {
                    (Keep::File, _) | (Keep::Auto, None) => {}
                    (keep, _) => match self.put(&item, &mut entry) {
                        Ok(()) => change.put = Some(item),
                        Err(refused) if keep == Keep::Auto => {
                            // Nobody knows what it does when it is not waited for any more.
                            book.leave((refused == Refusal::Slow).then_some(item));
                            change.refused = Some(refused);
                        }
                        Err(refused) => return Err(refused.error_of(&name)),
                    },
                }
            }
            change.place = entry.place();
            book.credentials.insert(name, entry);
            Ok(change)
        })
    }

    /// Moves the stored value of a credential to the keyring or to the file.
    ///
    /// # Errors
    /// `not_found`; those of the file; those of the keyring, which has to be there for either. Nothing is changed then.
    pub fn relocate(&self, name: &str, place: Place) -> Result<Changed> {
        let name = secret_name(name)?;
        self.change(|book| {
            let mut entry = book.credentials.get(&name).cloned().ok_or_else(|| unknown(&name))?;
            let mut change = Change { place: entry.place(), ..Change::default() };
            if change.place.is_none() {
                return Err(Error::not_found(format!("nothing stored has a value of the credential `{name}`"))
                    .hint(format!("type: lapidary credentials set {name}")));
            }
            if change.place != Some(place) {
                self.bring(&name, &mut entry)?;
                book.leave(entry.item(&name));
                entry.keyring = None;
                if place == Place::Keyring {
                    let item = new_item(&name);
                    self.put(&item, &mut entry).map_err(|refused| refused.error_of(&name))?;
                    change.put = Some(item);
                }
                change.place = entry.place();
                book.credentials.insert(name, entry);
            }
            Ok(change)
        })
    }

    /// Deletes a credential, from the file and from the keyring.
    ///
    /// # Errors
    /// `not_found`; those of the file. A keyring that does not let go of the value is no error: [`Changed::left`].
    pub fn delete(&self, name: &str) -> Result<Changed> {
        let name = secret_name(name)?;
        self.change(|book| {
            let entry = book.credentials.remove(&name).ok_or_else(|| unknown(&name))?;
            book.leave(entry.item(&name));
            Ok(Change::default())
        })
    }

    /// Has the keyring ask its owner for its password, where it is locked.
    ///
    /// # Errors
    /// Where there is none, and where it stays locked.
    pub fn unlock(&self) -> Result<()> {
        self.keyring().and_then(Keyring::unlock).map_err(|refused| match refused {
            Refusal::Locked => refused.error().hint("it opens as you sign in to the desktop, or in its own program"),
            refused => refused.error(),
        })
    }

    /// Asks the keyring; where a person is there, it may ask for its password first.
    fn patiently<T>(
        &self,
        ask: impl Fn(&dyn Keyring) -> std::result::Result<T, Refusal>,
    ) -> std::result::Result<T, Refusal> {
        let keyring = self.keyring()?;
        match ask(keyring) {
            Err(Refusal::Locked) if self.source.attended => keyring.unlock().and_then(|()| ask(keyring)),
            done => done,
        }
    }

    /// Brings the values of a credential here that are in the keyring, for a change.
    fn bring(&self, name: &str, entry: &mut Entry) -> Result<()> {
        let Some(item) = entry.item(name) else { return Ok(()) };
        let values = self.patiently(|keyring| keyring.get(std::slice::from_ref(&item)));
        let value = values.map_err(|refused| refused.error_of(name))?.pop().flatten().ok_or_else(|| gone(name))?;
        entry.fill(value).map_err(|refused| refused.error_of(name))
    }

    /// Puts the values of an entry into the keyring.
    fn put(&self, item: &Item, entry: &mut Entry) -> std::result::Result<(), Refusal> {
        let text = entry.text();
        self.patiently(|keyring| keyring.put(item, &text))?;
        entry.value = None;
        let fields = std::mem::take(&mut entry.fields).into_keys().collect();
        entry.keyring = Some(Kept { id: item.id.clone(), fields });
        Ok(())
    }

    fn change(&self, change: impl FnOnce(&mut Book) -> Result<Change>) -> Result<Changed> {
        let path = self.path().ok_or_else(|| {
            Error::new(Kind::Disabled, "this host keeps no credentials").hint("there is no home folder to keep them in")
        })?;
        book::locked(path, || {
            let mut book = self.read()?;
            let Change { is_new, place, refused, put } = change(&mut book)?;
            // The new value is in the keyring before the file says so, the old one goes after: at no moment is there none.
            if let Err(e) = book.write(path) {
                let _ = put.map(|item| self.keyring().and_then(|keyring| keyring.remove(&item)));
                return Err(e);
            }
            let left = match &refused {
                Some(refused) => Some(refused.clone()).filter(|_| !book.left.is_empty()),
                None => self.sweep(&mut book, path)?,
            };
            Ok(Changed { is_new, place, refused, left })
        })
    }

    /// Removes from the keyring what no credential is kept under any more; why something is left.
    fn sweep(&self, book: &mut Book, path: &Path) -> Result<Option<Refusal>> {
        if book.left.is_empty() {
            return Ok(None);
        }
        let before = book.left.len();
        let mut refused = None;
        while let Some((id, name)) = book.left.first_key_value() {
            let item = Item { name: name.clone(), id: id.clone() };
            match self.patiently(|keyring| keyring.remove(&item)) {
                Ok(()) => book.left.remove(&item.id),
                Err(refusal) => {
                    refused = Some(refusal);
                    break;
                }
            };
        }
        if book.left.len() < before {
            book.write(path)?;
        }
        Ok(refused)
    }
}

/// What a new value of this credential is kept under.
fn new_item(name: &str) -> Item {
    Item { name: name.to_owned(), id: uuid::Uuid::new_v4().to_string() }
}

fn account_free(name: &str) -> Result<String> {
    let name = secret_name(name)?;
    if name.starts_with('/') || name.ends_with('/') {
        return Err(Error::invalid(format!("`{name}` is not the name of a credential"))
            .hint("an account is written kind/scope, as in email/work"));
    }
    Ok(name)
}

fn field_name(name: &str) -> Result<()> {
    let fits = (1..=64).contains(&name.len()) && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    if fits {
        return Ok(());
    }
    let shown = excerpt(name, 80);
    Err(Error::invalid(format!("`{shown}` is not the name of a field")).hint("letters, digits and `_`"))
}
