//! A small JSON file that several processes write and every request may read: read again when it changed, written under its lock,
//! closed to everybody but its owner. What stands in it is its owner's affair.

use crate::base::error::{Error, Kind, Result, io};
use crate::base::file::{self, Stamp};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// Most bytes of such a file.
const MAX: u64 = 1 << 20;

/// Puts `new` at the end of a list that holds at most `most`: the first ones go.
pub(super) fn push_within<T>(list: &mut Vec<T>, new: T, most: usize) {
    list.push(new);
    let excess = list.len().saturating_sub(most);
    list.drain(..excess);
}

/// What becomes of a file that cannot be read as what it should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Broken {
    /// The next write starts it over: what it held is easily had again.
    StartsOver,
    /// It is not written until a person has looked at it. It counts as empty meanwhile.
    Stays,
}

/// The file.
pub(super) struct Ledger<T> {
    path: PathBuf,
    broken: Broken,
    last: Mutex<Option<Last<T>>>,
}

/// What was read last.
struct Last<T> {
    stamp: Option<Stamp>,
    value: Arc<T>,
}

impl<T: Serialize + DeserializeOwned + Default + Clone + PartialEq> Ledger<T> {
    pub(super) fn at(path: PathBuf, broken: Broken) -> Ledger<T> {
        Ledger { path, broken, last: Mutex::new(None) }
    }

    /// What stands in the file now, whoever wrote it. A file that is missing or broken has nothing in it: where there is doubt,
    /// nobody is let in. It costs one look at the file's date.
    pub(super) fn read(&self) -> Arc<T> {
        let stamp = Stamp::of(&self.path).unwrap_or(None);
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(last) = &*last
            && last.stamp == stamp
        {
            return last.value.clone();
        }
        let value = match self.load() {
            Ok(value) => Arc::new(value),
            Err(e) => {
                tracing::warn!(file = %self.name(), code = e.code(), "a file of the server is not used");
                Arc::default()
            }
        };
        // A file of this moment may be written again under the same date.
        let keeps = stamp.is_none_or(|stamp| stamp.settled());
        *last = keeps.then(|| Last { stamp, value: value.clone() });
        value
    }

    /// Changes the file as one step, in this process and across processes, and tells what `change` made of it. Nothing is written
    /// where nothing changed. It waits for the disk.
    ///
    /// # Errors
    /// Those of `change`, after which nothing was written, and what the file system says.
    pub(super) fn change<R>(&self, change: impl FnOnce(&mut T) -> Result<R>) -> Result<R> {
        if let Some(folder) = self.path.parent() {
            std::fs::create_dir_all(folder)
                .map_err(|e| io(format_args!("cannot make the folder `{}`", folder.display()), &e))?;
        }
        file::with_lock(&self.path, || {
            let before = match (self.load(), self.broken) {
                (Err(e), Broken::StartsOver) if e.kind() == Kind::InvalidArguments => T::default(),
                (read, _) => read?,
            };
            let mut after = before.clone();
            let made = change(&mut after)?;
            if after != before {
                let text = serde_json::to_vec_pretty(&after)
                    .map_err(|e| Error::internal(format!("cannot write {}: {e}", self.name())))?;
                file::write_atomic_private(&self.path, &text)?;
                *self.last.lock().unwrap_or_else(PoisonError::into_inner) = None;
            }
            Ok(made)
        })
    }

    fn load(&self) -> Result<T> {
        match file::read_capped(&self.path, MAX) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|e| {
                // What the parser quotes could be a digest.
                Error::invalid(format!("{} is broken in line {}", self.name(), e.line()))
                    .hint("mend it, or delete it to start over")
            }),
            Err(e) if e.kind() == Kind::NotFound => Ok(T::default()),
            Err(e) => Err(e),
        }
    }

    fn name(&self) -> String {
        format!("user/webui/{}", self.path.file_name().unwrap_or_default().to_string_lossy())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    type Numbers = Ledger<Vec<u32>>;

    fn push(n: u32) -> impl FnOnce(&mut Vec<u32>) -> Result<()> {
        move |all| {
            all.push(n);
            Ok(())
        }
    }

    #[test]
    fn what_another_process_writes_is_read_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("webui/numbers.json");
        let [here, there] = [0, 1].map(|_| Numbers::at(path.clone(), Broken::Stays));
        assert!(here.read().is_empty() && there.read().is_empty());
        for n in 0..50 {
            there.change(push(n)).unwrap();
            assert_eq!(here.read().len(), n as usize + 1);
            here.change(|all| Ok(all.pop())).unwrap();
            assert_eq!(there.read().len(), n as usize);
            there.change(push(n)).unwrap();
        }
        std::fs::remove_file(&path).unwrap();
        assert!(here.read().is_empty());
    }

    #[test]
    fn nothing_is_written_where_nothing_changed_or_the_change_failed() {
        let dir = tempfile::tempdir().unwrap();
        let ledger = Numbers::at(dir.path().join("numbers.json"), Broken::Stays);
        ledger.change(|_| Ok(())).unwrap();
        let failed: Result<()> = ledger.change(|all| {
            all.push(1);
            Err(Error::invalid("no"))
        });
        assert!(failed.is_err() && !ledger.path.exists() && ledger.read().is_empty());
    }

    #[cfg(unix)]
    #[test]
    fn only_the_owner_can_read_it() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let ledger = Numbers::at(dir.path().join("numbers.json"), Broken::Stays);
        for n in 0..2 {
            ledger.change(push(n)).unwrap();
            let mode = || std::fs::metadata(&ledger.path).unwrap().permissions().mode() & 0o777;
            assert_eq!(mode(), 0o600);
            std::fs::set_permissions(&ledger.path, std::fs::Permissions::from_mode(0o644)).unwrap();
        }
    }

    #[test]
    fn a_broken_file_lets_nobody_in_and_is_kept_where_it_matters() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("numbers.json");
        std::fs::write(&path, "[1, \"s3cret").unwrap();
        let stays = Numbers::at(path.clone(), Broken::Stays);
        assert!(stays.read().is_empty());
        let e = stays.change(push(2)).unwrap_err();
        assert!(e.message().contains("numbers.json") && !e.to_string().contains("s3cret"), "{e}");
        Numbers::at(path, Broken::StartsOver).change(push(3)).unwrap();
        assert_eq!(*stays.read(), [3]);
    }
}
