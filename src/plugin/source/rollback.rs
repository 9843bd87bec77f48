//! Puts a kept source back into a plugin's files, and keeps what it replaces.

use super::super::discover::{Found, Location, MANIFEST, list_plugin_files};
use super::super::stock::Empty;
use super::{Entry, History, Index, hex};
use crate::base::error::{Error, Kind, Result, io};
use crate::base::file::{self, Staged};
use sha2::{Digest, Sha256};
use std::fs;
use std::path::PathBuf;
use std::time::UNIX_EPOCH;

/// What a rollback did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rolled {
    /// The number under which the replaced source is kept; `None` where there was none.
    pub from: Option<u64>,
    /// The generation whose source is in the files now.
    pub to: u64,
    /// Files that were written, by their path in the plugin.
    pub files: Vec<String>,
    /// Scripts that came after that generation, and are no part of it; they were left alone.
    pub newer: Vec<String>,
}

impl History {
    /// Puts an earlier source back into the plugin's files: generation `to`, or else the newest good one that differs from
    /// what is there. What is there now is kept first, each file is replaced in one step, and files that came later stay.
    ///
    /// # Errors
    /// `permission_denied` for a plugin inside the program; `not_found` where there is nothing to go back to; `conflict` where
    /// the files are that generation's already; or what the file system says.
    pub fn rollback(&self, found: &Found, to: Option<u64>) -> Result<Rolled> {
        let name = &found.name;
        if let Location::Embedded(inner) = found.location {
            return Err(Error::denied(format!("`{name}` is part of the program, so there is no file to write")).hint(format!(
                "copy the project's scripts/{inner}/ to user/plugins/{inner}/ and change the copy: it takes the place of the shipped one"
            )));
        }
        self.change(|index| {
            let wanted = match to {
                Some(number) => vec![self.entry_of(name, number)?],
                None => self.list(name).into_iter().filter(|entry| entry.ok && fits(entry, found)).collect(),
            };
            let mut newest = None;
            for entry in wanted {
                if !fits(&entry, found) {
                    return Err(Error::new(
                        Kind::Conflict,
                        format!("generation {} of `{name}` has another form than now", entry.generation),
                    )
                    .hint("a plugin folder cannot take the source of a tool file, nor the other way round"));
                }
                let files = self.files_of(name, &entry)?;
                let changed = changed_files(found, files)?;
                let newer = newer_scripts(found, &entry);
                if !changed.is_empty() {
                    return self.put_back(found, index, &entry, changed, newer);
                }
                if !newer.is_empty() || to.is_some() {
                    newest = Some((entry.generation, newer));
                    break;
                }
            }
            Err(match newest {
                Some((generation, newer)) if !newer.is_empty() => Error::new(
                    Kind::Conflict,
                    format!("the files of `{name}` are those of generation {generation}, but for {}", newer.join(", ")),
                )
                .hint("that came later: move it away to go back, or name an older generation"),
                Some((generation, _)) => Error::new(
                    Kind::Conflict,
                    format!("the files of `{name}` are those of generation {generation} already"),
                ),
                None => Error::not_found(format!("`{name}` has no earlier generation to go back to"))
                    .hint("a generation is kept when it loads; `lapidary history` shows them"),
            })
        })
    }

    fn put_back(
        &self,
        found: &Found,
        index: &mut Index,
        entry: &Entry,
        changed: Vec<Changed>,
        newer: Vec<String>,
    ) -> Result<Rolled> {
        let old: Vec<(&str, &[u8])> =
            changed.iter().filter_map(|c| Some((c.path.as_str(), c.now.as_deref()?))).collect();
        let from = if old.is_empty() { None } else { Some(self.keep_replaced(found, index, &old)?) };
        // All bytes are on the disk before the first file changes.
        let mut staged = Vec::new();
        for change in &changed {
            if let Some(folder) = change.target.parent() {
                fs::create_dir_all(folder)
                    .map_err(|e| io(format_args!("cannot make `{}`", self.paths.shown(folder)), &e))?;
            }
            staged.push(Staged::write(&change.target, &change.then)?);
        }
        for (file, change) in staged.into_iter().zip(&changed) {
            file.commit()?;
            file::sync_folder_of(&change.target);
        }
        Ok(Rolled { from, to: entry.generation, files: changed.into_iter().map(|c| c.path).collect(), newer })
    }

    /// Keeps what a rollback is about to replace, unless the newest good entry is just what is there. Gives its number.
    fn keep_replaced(&self, found: &Found, index: &mut Index, old: &[(&str, &[u8])]) -> Result<u64> {
        let name = &found.name;
        if let Some(good) = self.list(name).into_iter().find(|entry| entry.ok && fits(entry, found))
            && let Ok(files) = self.files_of(name, &good)
            && changed_files(found, files)?.is_empty()
            && old.iter().all(|(path, _)| good.files.iter().any(|f| f.path == *path))
        {
            return Ok(good.generation);
        }
        let number = self.numbers_of(name).first().copied().unwrap_or(0);
        let number = index.get(name).map_or(0, |m| m.last.max(m.generation)).max(number) + 1;
        let mut hasher = Sha256::new();
        for (path, bytes) in old {
            hasher.update(path.as_bytes());
            hasher.update(bytes);
        }
        let hash = hex(&hasher.finalize()[..6]);
        self.keep(name, &self.entry(number, &hash, false, old), old)?;
        if let Some(mark) = index.get_mut(name) {
            mark.last = number;
        }
        Ok(number)
    }
}

/// A file that a rollback writes.
struct Changed {
    path: String,
    target: PathBuf,
    now: Option<Vec<u8>>,
    then: Vec<u8>,
}

/// The files of an entry that are not on disk as they were then.
fn changed_files(found: &Found, files: Vec<(String, Vec<u8>)>) -> Result<Vec<Changed>> {
    let mut changed = Vec::new();
    for (path, then) in files {
        let target = match &found.location {
            Location::File(file) => file.clone(),
            Location::Folder(folder) => file::confine(folder, &path)?,
            Location::Embedded(_) => continue,
        };
        let now = match fs::read(&target) {
            Ok(bytes) => Some(bytes),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => None,
            Err(e) => return Err(io(format_args!("cannot read `{}`", found.shown(&path)), &e)),
        };
        if now.as_ref() != Some(&then) {
            changed.push(Changed { path, target, now, then });
        }
    }
    Ok(changed)
}

/// Scripts in the plugin that an entry does not have and that were written after it.
fn newer_scripts(found: &Found, entry: &Entry) -> Vec<String> {
    let Location::Folder(folder) = &found.location else { return Vec::new() };
    let kept_at = entry.at.parse::<jiff::Timestamp>().map_or(i64::MAX, |t| t.as_millisecond());
    let is_newer = |path: &str| {
        let written = fs::metadata(folder.join(path)).and_then(|meta| meta.modified()).ok();
        let written = written.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        written.is_some_and(|age| i64::try_from(age.as_millis()).is_ok_and(|ms| ms > kept_at))
    };
    list_plugin_files(&Empty, found)
        .unwrap_or_default()
        .into_iter()
        .filter(|path| path.ends_with(".rhai") && !path.starts_with("tests/"))
        .filter(|path| !entry.files.iter().any(|f| f.path == *path) && is_newer(path))
        .collect()
}

/// Whether an entry is of the plugin's present form: one file, or a folder.
fn fits(entry: &Entry, found: &Found) -> bool {
    let own_file = format!("{}.rhai", found.name);
    let is_single = entry.files.len() == 1 && entry.files[0].path == own_file;
    // A replaced source may be a part of the folder only, without its manifest.
    is_single == found.single_file().is_some()
        && (is_single || !entry.ok || entry.files.iter().any(|f| f.path == MANIFEST))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::super::discover::Origin;
    use super::super::tests::{World, world};
    use super::*;
    use crate::base::clock::Clock;
    use crate::base::event::Bus;
    use crate::base::paths::Paths;

    impl World {
        fn rollback(&self, to: Option<u64>) -> Result<Rolled> {
            self.history.rollback(&self.found("dice"), to)
        }
    }

    #[test]
    fn a_broken_edit_goes_back_to_the_last_good_source_and_is_kept() {
        let w = world();
        w.save(1, "one");
        w.save(2, "two");
        w.write("user/tools/dice.rhai", "broken {");
        let rolled = w.rollback(None).unwrap();
        assert_eq!(rolled, Rolled { from: Some(3), to: 2, files: vec!["dice.rhai".into()], newer: vec![] });
        assert_eq!(w.read("user/tools/dice.rhai"), "two");
        let list = w.history.list("dice");
        assert_eq!((list[0].generation, list[0].ok), (3, false));
        assert_eq!(w.history.files("dice", 3).unwrap()[0].1, b"broken {");
        let mark = &w.history.numbers().unwrap()["dice"];
        assert_eq!((mark.generation, mark.last), (2, 3), "a replaced source is no good generation");
        assert_eq!(w.save(3, "four"), 4, "its number is taken");
        assert_eq!(w.rollback(Some(3)).unwrap().to, 3);
        assert_eq!(w.read("user/tools/dice.rhai"), "broken {");
    }

    #[test]
    fn a_good_source_goes_back_to_the_one_before_it_without_a_second_copy() {
        let w = world();
        w.save(1, "one");
        w.save(2, "two");
        let rolled = w.rollback(None).unwrap();
        assert_eq!((rolled.from, rolled.to), (Some(2), 1));
        assert_eq!(w.read("user/tools/dice.rhai"), "one");
        assert_eq!(w.history.list("dice").len(), 2);
    }

    #[test]
    fn a_named_generation_is_put_back() {
        let w = world();
        for (n, text) in [(1, "one"), (2, "two"), (3, "three")] {
            w.save(n, text);
        }
        assert_eq!(w.rollback(Some(1)).unwrap().to, 1);
        assert_eq!(w.read("user/tools/dice.rhai"), "one");
        let e = w.rollback(Some(1)).unwrap_err();
        assert_eq!(e.kind(), Kind::Conflict);
        assert!(e.message().contains("already"), "{e}");
        assert_eq!(w.rollback(Some(99)).unwrap_err().kind(), Kind::NotFound);
    }

    #[test]
    fn nothing_to_go_back_to_is_said() {
        let w = world();
        w.write("user/tools/dice.rhai", "new");
        let e = w.rollback(None).unwrap_err();
        assert_eq!(e.kind(), Kind::NotFound);
        assert!(e.message().contains("no earlier generation"), "{e}");
        w.save(1, "new");
        assert_eq!(w.rollback(None).unwrap_err().kind(), Kind::NotFound);
    }

    #[test]
    fn a_damaged_entry_is_never_put_back() {
        let w = world();
        w.save(1, "one");
        w.save(2, "two");
        fs::write(w.paths.history_dir("dice").join("1/files/dice.rhai"), "0ne").unwrap();
        let e = w.rollback(None).unwrap_err();
        assert!(e.message().contains("damaged"), "{e}");
        assert_eq!(w.read("user/tools/dice.rhai"), "two");
    }

    fn folder_world() -> (World, Found) {
        let dir = tempfile::tempdir().unwrap();
        let paths = Paths::at(dir.path());
        paths.ensure().unwrap();
        let bus = Bus::default();
        // The machine's clock: what came later is told by the time of the files.
        let history = History::new(paths.clone(), Clock::system(), bus.clone());
        let w = World { _dir: dir, paths, history, bus };
        for (path, text) in [("plugin.json", "{}"), ("tools/a.rhai", "a1"), ("lib/x.rhai", "x1"), ("notes.txt", "n")] {
            w.write(&format!("user/plugins/cards/{path}"), text);
        }
        w.record("cards", 1, &[("plugin.json", "{}"), ("tools/a.rhai", "a1"), ("lib/x.rhai", "x1")]);
        let found = w.found("cards");
        (w, found)
    }

    #[test]
    fn a_folder_gets_back_what_differs_and_keeps_what_came_later() {
        let (w, found) = folder_world();
        w.write("user/plugins/cards/tools/a.rhai", "a2");
        fs::remove_file(w.paths.plugins().join("cards/lib/x.rhai")).unwrap();
        fs::remove_dir(w.paths.plugins().join("cards/lib")).unwrap();
        w.write("user/plugins/cards/tools/b.rhai", "b");
        let later = fs::File::options().write(true).open(w.paths.plugins().join("cards/tools/b.rhai")).unwrap();
        later.set_modified(std::time::SystemTime::now() + std::time::Duration::from_secs(5)).unwrap();
        let rolled = w.history.rollback(&found, None).unwrap();
        assert_eq!((rolled.from, rolled.to), (Some(2), 1));
        assert_eq!(rolled.files, ["tools/a.rhai", "lib/x.rhai"]);
        assert_eq!(rolled.newer, ["tools/b.rhai"]);
        for (path, text) in [("tools/a.rhai", "a1"), ("lib/x.rhai", "x1"), ("tools/b.rhai", "b"), ("notes.txt", "n")] {
            assert_eq!(w.read(&format!("user/plugins/cards/{path}")), text);
        }
        assert_eq!(w.history.files("cards", 2).unwrap(), [("tools/a.rhai".to_owned(), b"a2".to_vec())]);
        let e = w.history.rollback(&found, None).unwrap_err();
        assert_eq!(e.kind(), Kind::Conflict);
        assert!(e.message().contains("but for tools/b.rhai"), "{e}");
    }

    #[test]
    fn a_source_of_another_form_is_not_put_back() {
        let (w, _) = folder_world();
        fs::rename(w.paths.plugins().join("cards"), w.paths.root().join("elsewhere")).unwrap();
        w.write("user/tools/cards.rhai", "single");
        let found = w.found("cards");
        assert_eq!(found.origin, Origin::SingleFile);
        assert_eq!(w.history.rollback(&found, None).unwrap_err().kind(), Kind::NotFound);
        assert_eq!(w.history.rollback(&found, Some(1)).unwrap_err().kind(), Kind::Conflict);
        assert_eq!(w.read("user/tools/cards.rhai"), "single");
    }

    #[test]
    fn a_plugin_inside_the_program_has_no_file_to_write() {
        let w = world();
        let found = Found {
            name: "clock".into(),
            origin: Origin::Shipped,
            location: Location::Embedded("clock"),
            root: w.paths.root().to_path_buf(),
        };
        let e = w.history.rollback(&found, None).unwrap_err();
        assert_eq!(e.kind(), Kind::PermissionDenied);
        assert!(e.hint_text().unwrap().contains("user/plugins/clock/"));
    }
}
