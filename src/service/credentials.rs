//! Credentials that a person stored for plugins: one file of this user, outside every root, and the environment behind it.
//! It hands values out as [`Secret`]s only. Which plugin may ask is `permissions`', where a value may be sent `secret`'s.

mod placeholders;

pub use placeholders::Placeholders;

use super::permissions::{Grants, Missing, Permission, Reach, host_pattern, secret_name};
use super::secret::{Redactor, Secret, Used};
use crate::base::error::{Error, Kind, Result};
use crate::base::{file, paths};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use zeroize::Zeroizing;

/// What the name of a variable begins with that holds a credential.
pub const VARIABLE: &str = "LAPIDARY_CREDENTIAL_";
/// Most bytes of one value.
pub const MAX_VALUE: usize = 64 << 10;
/// Most bytes of the file.
const MAX_FILE: u64 = 4 << 20;

/// Reads a variable of the environment.
pub type Environment = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// Where credentials come from. Without anything there are none.
#[derive(Clone, Default)]
pub struct Source {
    file: Option<PathBuf>,
    environment: Option<Environment>,
    placeholders: Option<Placeholders>,
}

impl Source {
    /// No credentials at all.
    #[must_use]
    pub fn none() -> Source {
        Source::default()
    }

    /// This user's file and this process's environment.
    #[must_use]
    pub fn of_this_user() -> Source {
        Source { file: paths::credentials_file(), environment: Some(Arc::new(paths::environment)), ..Source::default() }
    }

    /// This file, and no environment.
    #[must_use]
    pub fn file(path: impl Into<PathBuf>) -> Source {
        Source { file: Some(path.into()), ..Source::default() }
    }

    /// The same, with stand-ins before it.
    #[must_use]
    pub fn behind(mut self, placeholders: Placeholders) -> Source {
        self.placeholders = Some(placeholders);
        self
    }

    /// The same, with what `read` says where the file has no value: it gets the names of variables.
    #[must_use]
    pub fn environment(mut self, read: impl Fn(&str) -> Option<String> + Send + Sync + 'static) -> Source {
        self.environment = Some(Arc::new(read));
        self
    }
}

/// The credentials of a source. Every answer is read afresh, so what another process stored counts at once.
#[derive(Clone, Default)]
pub struct Store(Source);

/// The file. It has no `Debug`: it holds values.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Book {
    credentials: BTreeMap<String, Entry>,
}

#[derive(Default, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Entry {
    /// Of a credential with a single value.
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<Zeroizing<String>>,
    /// Of an account, by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    fields: BTreeMap<String, Zeroizing<String>>,
    /// The fields that plugins may read as text.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    public: BTreeSet<String>,
    /// Where values may be sent.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    hosts: Vec<String>,
}

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
    /// Where the value is: `file`, `environment` or `nowhere`.
    pub from: &'static str,
    /// The variable that is looked at where the file has no value.
    pub variable: String,
}

impl Store {
    /// The credentials of `source`.
    #[must_use]
    pub fn new(source: Source) -> Store {
        Store(source)
    }

    /// The file, where there is one to be.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.0.file.as_deref()
    }

    /// The credential with a single value.
    ///
    /// # Errors
    /// `not_found`; `invalid_arguments` for an account; where the file cannot be used, its error without the place: these are
    /// for scripts.
    pub fn secret(&self, name: &str) -> Result<Secret> {
        let name = &secret_name(name)?;
        if let Some(fields) = self.0.placeholders.as_ref().and_then(|p| p.fields(name)) {
            return match fields?.remove("value") {
                Some(Field::Secret(secret)) => Ok(secret),
                Some(Field::Public(_)) | None => Err(has_fields(name)),
            };
        }
        let entry = self.read().map_err(discreet)?.credentials.remove(name).unwrap_or_default();
        if !entry.fields.is_empty() {
            return Err(has_fields(name));
        }
        match self.only_value(name, &entry) {
            Some((value, hosts)) => Secret::new(name.as_str(), value.as_str(), &hosts),
            None => Err(unknown(name)),
        }
    }

    /// The fields of an account, by name; of a credential with a single value, that is `value`.
    ///
    /// # Errors
    /// As [`Store::secret`].
    pub fn account(&self, kind: &str, scope: &str) -> Result<BTreeMap<String, Field>> {
        let name = &account_name(kind, scope)?;
        if let Some(fields) = self.0.placeholders.as_ref().and_then(|p| p.fields(name)) {
            return fields;
        }
        let entry = self.read().map_err(discreet)?.credentials.remove(name).unwrap_or_default();
        if entry.fields.is_empty() {
            let secret = self.secret(name)?;
            return Ok([("value".to_owned(), Field::Secret(secret))].into());
        }
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
        let placeholders = self.0.placeholders.as_ref();
        let mut scopes: BTreeSet<String> = names
            .filter(|name| !placeholders.is_some_and(|p| p.lacks(name)))
            .filter_map(|name| name.split_once('/').filter(|(k, _)| *k == kind).map(|(_, scope)| scope.to_owned()))
            .collect();
        scopes.extend(placeholders.map(|p| p.scopes(kind)).unwrap_or_default());
        Ok(scopes.into_iter().collect())
    }

    /// Everything in the file, without values.
    ///
    /// # Errors
    /// Those of the file: `permission_denied` where others may read it, `invalid_arguments` where it does not parse.
    pub fn list(&self) -> Result<Vec<Listed>> {
        let book = self.read()?;
        let listed = book.credentials.iter().map(|(name, entry)| {
            let in_file = entry.value.is_some() || !entry.fields.is_empty();
            let found = self.only_value(name, entry);
            Listed {
                name: name.clone(),
                fields: entry.fields.keys().cloned().collect(),
                public: entry.public.iter().cloned().collect(),
                hosts: found.as_ref().map_or_else(|| entry.hosts.clone(), |(_, hosts)| hosts.clone()),
                from: if in_file {
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

    /// What takes all values of the file, and those that the environment has for `names`, out of texts.
    ///
    /// # Errors
    /// Those of the file.
    pub fn redactor<'a>(&self, names: impl IntoIterator<Item = &'a str>) -> Result<Redactor> {
        let book = self.read()?;
        let mut redactor = Redactor::default();
        for entry in book.credentials.values() {
            entry.value.iter().for_each(|value| redactor.add(value));
            let hidden = entry.fields.iter().filter(|(field, _)| !entry.public.contains(*field));
            hidden.for_each(|(_, value)| redactor.add(value));
        }
        for name in names {
            let entry = book.credentials.get(name).cloned().unwrap_or_default();
            if let Some((value, _)) = self.only_value(name, &entry) {
                redactor.add(&value);
            }
        }
        Ok(redactor)
    }

    /// Adds the values that a plugin with these grants may ask for, fields that it may read as text left out. None where the
    /// file cannot be used: it gives nobody a value then. What only a variable holds is among them where the grant names it.
    pub fn add_permitted(&self, grants: &Grants, used: &Used) {
        let Ok(book) = self.read() else { return };
        let listed = match grants.secrets() {
            Reach::None => return,
            Reach::Listed(names) => names.clone(),
            Reach::Any => BTreeSet::new(),
        };
        if let Some(placeholders) = &self.0.placeholders {
            placeholders
                .secrets(&listed, &|name| grants.allows_secret(name))
                .iter()
                .for_each(|secret| used.add(secret));
        }
        let held: BTreeSet<String> =
            book.credentials.keys().filter(|name| grants.allows_secret(name)).cloned().collect();
        for name in held.union(&listed) {
            let entry = book.credentials.get(name).cloned().unwrap_or_default();
            self.only_value(name, &entry).iter().for_each(|(value, _)| used.add_text(value));
            let hidden = entry.fields.iter().filter(|(field, _)| !entry.public.contains(*field));
            hidden.for_each(|(_, value)| used.add_text(value));
        }
    }

    /// Stores a credential, beside what the same name has already; whether it is a new one.
    ///
    /// # Errors
    /// `invalid_arguments` for a bad name, host or field, an empty or oversized value, or a single value beside fields; those
    /// of the file. Nothing is changed then.
    pub fn set(&self, name: &str, given: Given) -> Result<bool> {
        let name = account_free(name)?;
        let Given { value, fields, public, hosts } = given;
        value.iter().chain(fields.values()).try_for_each(|value| fit(value))?;
        fields.keys().chain(&public).try_for_each(|field| field_name(field))?;
        let hosts = hosts.map(|hosts| hosts.iter().map(|h| host_pattern(h)).collect::<Result<Vec<_>>>()).transpose()?;
        let mut is_new = false;
        self.change(|book| {
            is_new = !book.credentials.contains_key(&name);
            let entry = book.credentials.entry(name).or_default();
            if value.is_some() {
                entry.value = value;
            }
            entry.fields.extend(fields);
            entry.public.extend(public);
            if let Some(hosts) = hosts {
                entry.hosts = hosts;
            }
            if entry.value.is_some() && !entry.fields.is_empty() {
                return Err(Error::invalid("a credential has either one value or fields")
                    .hint("delete it first: lapidary credentials delete NAME"));
            }
            if let Some(field) = entry.public.iter().find(|field| !entry.fields.contains_key(*field)) {
                return Err(Error::invalid(format!("there is no field `{field}` that could be public")));
            }
            Ok(())
        })?;
        Ok(is_new)
    }

    /// Deletes a credential from the file.
    ///
    /// # Errors
    /// `not_found`; those of the file.
    pub fn delete(&self, name: &str) -> Result<()> {
        let name = secret_name(name)?;
        self.change(|book| book.credentials.remove(&name).map(drop).ok_or_else(|| unknown(&name)))
    }

    /// Whether the file can be used; `false` where there is none.
    ///
    /// # Errors
    /// Those of the file.
    pub fn check(&self) -> Result<bool> {
        self.read()?;
        Ok(self.path().is_some_and(Path::exists))
    }

    /// The value that the file has, else the environment's, and where it may be sent.
    fn only_value(&self, name: &str, entry: &Entry) -> Option<(Zeroizing<String>, Vec<String>)> {
        if let Some(value) = &entry.value {
            return Some((value.clone(), entry.hosts.clone()));
        }
        if !entry.fields.is_empty() {
            return None;
        }
        let read = self.0.environment.as_ref()?;
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

    fn read(&self) -> Result<Book> {
        let Some(path) = self.path() else { return Ok(Book::default()) };
        let mut opened = match std::fs::File::open(path) {
            Ok(opened) => opened,
            Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(Book::default()),
            Err(e) => return Err(cannot_read(path, &e)),
        };
        // What was opened is looked at, not what may have taken its place meanwhile.
        let meta = opened.metadata().map_err(|e| cannot_read(path, &e))?;
        closed(path, &meta)?;
        if meta.len() > MAX_FILE {
            return Err(Error::new(Kind::TooLarge, format!("`{}` is too large to be read", path.display())));
        }
        let mut bytes = Zeroizing::new(Vec::with_capacity(usize::try_from(meta.len()).unwrap_or(0) + 1));
        opened.by_ref().take(MAX_FILE).read_to_end(&mut bytes).map_err(|e| cannot_read(path, &e))?;
        // Only the place is told: what the parser says quotes what it read.
        serde_json::from_slice(&bytes).map_err(|e| {
            Error::invalid(format!("`{}` cannot be read: line {} column {}", path.display(), e.line(), e.column()))
                .hint("mend it by hand, or move it away and store the credentials again")
        })
    }

    fn change(&self, change: impl FnOnce(&mut Book) -> Result<()>) -> Result<()> {
        let path = self.path().ok_or_else(|| {
            Error::new(Kind::Disabled, "this host keeps no credentials").hint("there is no home folder to keep them in")
        })?;
        if let Some(folder) = path.parent() {
            make_folder(folder)?;
        }
        file::with_lock(path, || {
            let mut book = self.read()?;
            change(&mut book)?;
            let bytes = serde_json::to_vec_pretty(&book).map(Zeroizing::new);
            let bytes = bytes.map_err(|_| Error::internal("the credentials cannot be written as JSON"))?;
            file::write_atomic_private(path, &bytes)
        })
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
    let shown: String = name.chars().take(80).flat_map(char::escape_debug).collect();
    Err(Error::invalid(format!("`{shown}` is not the name of a field")).hint("letters, digits and `_`"))
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

fn cannot_read(path: &Path, e: &std::io::Error) -> Error {
    crate::base::error::io(format_args!("cannot read `{}`", path.display()), e)
}

/// A script learns that there is something to mend, not where on this machine.
fn discreet(e: Error) -> Error {
    Error::new(e.kind(), "the stored credentials cannot be used now")
        .with_user_action("look at the file of credentials")
        .hint("the owner of this host types: lapidary doctor")
}

/// A file that others may read has been read: it is not used before its owner knows.
fn closed(path: &Path, meta: &std::fs::Metadata) -> Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = meta.permissions().mode() & 0o777;
        if mode & 0o077 != 0 {
            let path = path.display();
            return Err(Error::denied(format!("`{path}` is open to other users of this machine (mode {mode:o})"))
                .with_user_action("close the file of credentials to others")
                .hint(format!("type: chmod 600 '{path}'; where others use this machine, replace what is in it")));
        }
    }
    let _ = (path, meta);
    Ok(())
}

fn make_folder(folder: &Path) -> Result<()> {
    let mut maker = std::fs::DirBuilder::new();
    maker.recursive(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt;
        maker.mode(0o700);
    }
    maker
        .create(folder)
        .map_err(|e| crate::base::error::io(format_args!("cannot make the folder `{}`", folder.display()), &e))
}

#[cfg(test)]
mod tests;
