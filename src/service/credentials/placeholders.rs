//! Stand-ins for credentials, where nothing is sent or a test says what there is. They know nothing of files.

use super::{Field, unknown};
use crate::base::error::{Error, Result};
use crate::service::permissions::secret_name;
use crate::service::secret::Secret;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Credentials that stand before those of a file. Clones share what they know.
#[derive(Clone)]
pub struct Placeholders(Arc<Inner>);

struct Inner {
    names: Names,
    /// Where they may be sent; anywhere until this is said.
    hosts: OnceLock<Vec<String>>,
    /// What a test said; `None` for what it took away.
    given: Mutex<BTreeMap<String, Option<Account>>>,
}

/// For which names there is one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Names {
    All,
    Given,
}

/// A credential that a test gave.
#[derive(Clone)]
enum Account {
    Value(String),
    Fields(BTreeMap<String, String>, BTreeSet<String>),
}

impl Placeholders {
    /// One for every name.
    #[must_use]
    pub fn for_all() -> Placeholders {
        Placeholders::new(Names::All)
    }

    /// Only those that are given; the others are what they were.
    #[must_use]
    pub fn for_given() -> Placeholders {
        Placeholders::new(Names::Given)
    }

    fn new(names: Names) -> Placeholders {
        Placeholders(Arc::new(Inner { names, hosts: OnceLock::new(), given: Mutex::default() }))
    }

    /// Says where they may be sent.
    pub fn bind(&self, hosts: impl IntoIterator<Item = String>) {
        let _ = self.0.hosts.set(hosts.into_iter().collect());
    }

    /// Gives a credential this value.
    ///
    /// # Errors
    /// `invalid_arguments` for a bad name.
    pub fn give(&self, name: &str, value: &str) -> Result<()> {
        self.put(name, Some(Account::Value(value.to_owned())))
    }

    /// Gives an account these fields; plugins may read the public ones.
    ///
    /// # Errors
    /// `invalid_arguments` for a bad name, and for a public field that there is none of.
    pub fn give_account(&self, name: &str, fields: BTreeMap<String, String>, public: BTreeSet<String>) -> Result<()> {
        if let Some(field) = public.iter().find(|field| !fields.contains_key(*field)) {
            return Err(Error::invalid(format!("there is no field `{field}` that could be public")));
        }
        self.put(name, Some(Account::Fields(fields, public)))
    }

    /// Takes a credential away.
    ///
    /// # Errors
    /// `invalid_arguments` for a bad name.
    pub fn forget(&self, name: &str) -> Result<()> {
        self.put(name, None)
    }

    fn put(&self, name: &str, account: Option<Account>) -> Result<()> {
        let name = secret_name(name)?;
        self.given().insert(name, account);
        Ok(())
    }

    fn given(&self) -> MutexGuard<'_, BTreeMap<String, Option<Account>>> {
        self.0.given.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn made(&self, name: &str, value: &str) -> Secret {
        Secret::placeholder(name, value, self.0.hosts.get().cloned())
    }

    /// The fields of a credential, one of a single value among them; `None` for one that is what it was.
    pub(super) fn fields(&self, name: &str) -> Option<Result<BTreeMap<String, Field>>> {
        let value = |value: &str| [("value".to_owned(), Field::Secret(self.made(name, value)))].into();
        match (self.given().get(name).cloned(), self.0.names) {
            (Some(None), _) => Some(Err(unknown(name))),
            (Some(Some(Account::Value(given))), _) => Some(Ok(value(&given))),
            (Some(Some(Account::Fields(fields, public))), _) => {
                let field = |(field, text): (String, String)| {
                    let held = if public.contains(&field) {
                        Field::Public(text)
                    } else {
                        Field::Secret(self.made(name, &text))
                    };
                    (field, held)
                };
                Some(Ok(fields.into_iter().map(field).collect()))
            }
            (None, Names::All) => Some(Ok(value(&format!("placeholder-of-{name}")))),
            (None, Names::Given) => None,
        }
    }

    /// The scopes of the accounts of a kind that were given.
    pub(super) fn scopes(&self, kind: &str) -> Vec<String> {
        let given = self.given();
        let there = given.iter().filter(|(_, account)| account.is_some());
        there
            .filter_map(|(name, _)| name.split_once('/').filter(|(k, _)| *k == kind))
            .map(|(_, s)| s.to_owned())
            .collect()
    }

    /// Those that are `listed` or were given, as far as they are `allowed`; public fields left out.
    pub(super) fn secrets(&self, listed: &BTreeSet<String>, allowed: &dyn Fn(&str) -> bool) -> Vec<Secret> {
        let given: BTreeSet<String> = self.given().keys().filter(|name| allowed(name)).cloned().collect();
        let fields = given.union(listed).filter_map(|name| self.fields(name)?.ok()).flatten();
        fields
            .filter_map(|(_, field)| match field {
                Field::Secret(secret) => Some(secret),
                Field::Public(_) => None,
            })
            .collect()
    }

    /// Whether it was taken away.
    pub(super) fn lacks(&self, name: &str) -> bool {
        matches!(self.given().get(name), Some(None))
    }
}
