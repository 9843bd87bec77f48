//! The file of credentials: closed to others, one of this user. It holds names, rules, and the values that no keyring holds.
//! It knows nothing of plugins, nor of the environment.

use super::Place;
use super::keyring::{Item, Refusal, Value};
use crate::base::error::{Error, Kind, Result, io};
use crate::base::file;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{ErrorKind, Read};
use std::path::Path;
use zeroize::Zeroizing;

/// Most bytes of the file.
const MAX_FILE: u64 = 4 << 20;

/// The file. It has no `Debug`: it holds values.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Book {
    pub(super) credentials: BTreeMap<String, Entry>,
    /// What the keyring still has to let go of: names by id.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) left: BTreeMap<String, String>,
}

#[derive(Default, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Entry {
    /// Of a credential with a single value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) value: Option<Value>,
    /// Of an account, by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) fields: BTreeMap<String, Value>,
    /// The fields that plugins may read as text.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub(super) public: BTreeSet<String>,
    /// Where values may be sent.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) hosts: Vec<String>,
    /// Where the value is, if it is in the keyring.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) keyring: Option<Kept>,
}

/// A value in the keyring.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Kept {
    /// What finds it there.
    pub(super) id: String,
    /// The names of an account's fields; none of a single value.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(super) fields: BTreeSet<String>,
}

impl Entry {
    /// The item of the keyring that holds its value.
    pub(super) fn item(&self, name: &str) -> Option<Item> {
        self.keyring.as_ref().map(|kept| Item { name: name.to_owned(), id: kept.id.clone() })
    }

    /// Whether a value is in the file itself, or was brought here.
    pub(super) fn has_value(&self) -> bool {
        self.value.is_some() || !self.fields.is_empty()
    }

    /// Whether it has a single value, here or in the keyring.
    pub(super) fn has_single_value(&self) -> bool {
        self.value.is_some() || self.keyring.as_ref().is_some_and(|kept| kept.fields.is_empty())
    }

    /// Where its value is.
    pub(super) fn place(&self) -> Option<Place> {
        if self.keyring.is_some() { Some(Place::Keyring) } else { self.has_value().then_some(Place::File) }
    }

    /// The names of an account's fields, wherever their values are.
    pub(super) fn field_names(&self) -> BTreeSet<String> {
        let kept = self.keyring.iter().flat_map(|kept| &kept.fields);
        self.fields.keys().chain(kept).cloned().collect()
    }

    /// Its values as one text for the keyring: a single one as it is, an account as JSON.
    pub(super) fn text(&self) -> Value {
        match &self.value {
            Some(value) => value.clone(),
            None => Zeroizing::new(serde_json::to_string(&self.fields).expect("texts by their names are always JSON")),
        }
    }

    /// Takes in what the keyring holds for it.
    ///
    /// # Errors
    /// `Failed` for what is not an account where one was kept.
    pub(super) fn fill(&mut self, text: Value) -> Result<(), Refusal> {
        if self.keyring.as_ref().is_none_or(|kept| kept.fields.is_empty()) {
            self.value = Some(text);
            return Ok(());
        }
        // What the parser says quotes what it read.
        self.fields = serde_json::from_str(&text)
            .map_err(|_| Refusal::Failed("what it holds is not the account that was stored".to_owned()))?;
        Ok(())
    }

    /// The fields that nobody may read as text.
    pub(super) fn hidden(&self) -> impl Iterator<Item = &Value> {
        self.fields.iter().filter(|(field, _)| !self.public.contains(*field)).map(|(_, value)| value)
    }
}

impl Book {
    /// Reads the file; one that is not there is empty.
    ///
    /// # Errors
    /// `permission_denied` where others may read it, `invalid_arguments` where it does not parse.
    pub(super) fn read(path: &Path) -> Result<Book> {
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

    /// Writes the whole file, closed to others from its first byte.
    ///
    /// # Errors
    /// What the file system says.
    pub(super) fn write(&self, path: &Path) -> Result<()> {
        let bytes = serde_json::to_vec_pretty(self).map(Zeroizing::new);
        let bytes = bytes.map_err(|_| Error::internal("the credentials cannot be written as JSON"))?;
        file::write_atomic_private(path, &bytes)
    }

    /// Every id that something is kept under.
    pub(super) fn ids(&self) -> impl Iterator<Item = &str> {
        self.credentials.values().filter_map(|entry| entry.keyring.as_ref()).map(|kept| kept.id.as_str())
    }

    /// What the entry's value was kept under is to be removed from the keyring, if it was there.
    pub(super) fn leave(&mut self, item: Option<Item>) {
        self.left.extend(item.map(|item| (item.id, item.name)));
    }
}

/// Runs `work` under the file's lock, in a folder that is made if it has to be, and closed to others.
///
/// # Errors
/// Those of `work` and of the file system.
pub(super) fn locked<T>(path: &Path, work: impl FnOnce() -> Result<T>) -> Result<T> {
    if let Some(folder) = path.parent() {
        make_folder(folder)?;
    }
    file::with_lock(path, work)
}

fn cannot_read(path: &Path, e: &std::io::Error) -> Error {
    io(format_args!("cannot read `{}`", path.display()), e)
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
    maker.create(folder).map_err(|e| io(format_args!("cannot make the folder `{}`", folder.display()), &e))
}
