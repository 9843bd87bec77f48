//! Earlier sources of plugins: every good generation is kept, and one of them can be put back into the files.
//! Knows files and numbers; whether a source loads is the loader's to say.

use super::discover::{Found, Location, MANIFEST};
use crate::base::clock::Clock;
use crate::base::error::{Error, Kind, Result, io};
use crate::base::event::{Bus, Event};
use crate::base::file::{self, Staged};
use crate::base::json;
use crate::base::paths::Paths;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// Entries kept for one plugin; older ones go.
pub const KEEP: usize = 50;
const MAX_INDEX: u64 = 16 << 20;
const MAX_META: u64 = 4 << 20;
const META: &str = "meta.json";
/// Apart from `meta.json`, which a plugin may have one of.
const FILES: &str = "files";

/// Where the numbering of a plugin stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// The newest good generation.
    pub generation: u64,
    /// Its hash: a source with the same hash is that generation still.
    pub hash: String,
    /// The highest number in use; the next one is above it.
    #[serde(default)]
    pub last: u64,
}

/// One kept source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Its number.
    pub generation: u64,
    /// Hash of everything it was built from.
    pub hash: String,
    /// When it was kept, RFC 3339 in UTC.
    pub at: String,
    /// Whether it loaded: `false` for a source that a rollback replaced, kept so that nothing is lost.
    pub ok: bool,
    /// Its files.
    pub files: Vec<EntryFile>,
}

/// One file of an entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EntryFile {
    /// Path in the plugin's folder, or the name of its one file.
    pub path: String,
    /// Size in bytes.
    pub bytes: u64,
    /// SHA-256 of the content, in hex: a damaged entry is never put back.
    pub sha256: String,
}

/// A good generation to keep. Files named `std/<module>` are shared modules and not kept.
pub struct Record<'a, B> {
    /// The plugin's name.
    pub plugin: &'a str,
    /// Its number.
    pub generation: u64,
    /// Hash of everything it was built from.
    pub hash: &'a str,
    /// The plugin's files by path, and their bytes.
    pub files: &'a [(String, B)],
}

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

/// The kept sources of one root: `user/history/index.json` and one folder for each entry.
#[derive(Clone)]
pub struct History {
    paths: Paths,
    clock: Clock,
    bus: Bus,
}

type Index = BTreeMap<String, Mark>;

impl History {
    /// The history under a root. Touches nothing.
    #[must_use]
    pub fn new(paths: Paths, clock: Clock, bus: Bus) -> History {
        History { paths, clock, bus }
    }

    fn index_path(&self) -> PathBuf {
        self.paths.user().join("history").join("index.json")
    }

    /// Where the numbering of every plugin stands: one small read. An index that is damaged or gone is built again from the
    /// entries.
    ///
    /// # Errors
    /// When the index is there and cannot be read.
    pub fn numbers(&self) -> Result<BTreeMap<String, Mark>> {
        match self.read_index()? {
            Some(index) => Ok(index),
            None => Ok(self.rebuilt()),
        }
    }

    /// The index; `None` where there is none that can be used.
    fn read_index(&self) -> Result<Option<Index>> {
        let path = self.index_path();
        let bytes = match file::read_capped(&path, MAX_INDEX) {
            Ok(bytes) => bytes,
            Err(e) if e.kind() == Kind::NotFound => return Ok(None),
            Err(e) => return Err(e),
        };
        let parsed = json::parse_file_text(&bytes).map_err(|e| e.position()).and_then(|value| {
            serde_json::from_value::<Index>(value).map_err(|_| "it does not hold generations".to_owned())
        });
        match parsed {
            Ok(index) => Ok(Some(index)),
            Err(why) => {
                // It says nothing that the entries do not say, so the next write may go over it.
                let message = format!("not an index of kept sources ({why}); it is built again from the entries");
                self.bus.publish(Event::Notice { subject: self.paths.shown(&path), message });
                Ok(None)
            }
        }
    }

    fn rebuilt(&self) -> Index {
        let mut index = Index::new();
        let Ok(plugins) = fs::read_dir(self.paths.user().join("history")) else { return index };
        for plugin in plugins.flatten() {
            let Ok(name) = plugin.file_name().into_string() else { continue };
            if let Some(mark) = self.mark_of(&name) {
                index.insert(name, mark);
            }
        }
        index
    }

    fn mark_of(&self, plugin: &str) -> Option<Mark> {
        let last = self.numbers_of(plugin).into_iter().next()?;
        let good = self.list(plugin).into_iter().find(|entry| entry.ok)?;
        Some(Mark { generation: good.generation, hash: good.hash, last })
    }

    /// Numbers of the entries of a plugin, newest first.
    fn numbers_of(&self, plugin: &str) -> Vec<u64> {
        let Ok(folder) = fs::read_dir(self.paths.history_dir(plugin)) else { return Vec::new() };
        let mut numbers: Vec<u64> =
            folder.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
        numbers.sort_unstable_by(|a, b| b.cmp(a));
        numbers
    }

    /// Keeps a good generation and gives the number it is kept under: the one asked for, or a higher one where another host
    /// took that. A source with the newest entry's hash is not kept twice; only the number moves on.
    ///
    /// # Errors
    /// `invalid_arguments` for a path that leads out, or what the file system says. The history is then as it was.
    pub fn record<B: AsRef<[u8]>>(&self, record: &Record<B>) -> Result<u64> {
        Ok(self.record_all(std::slice::from_ref(record))?.first().copied().unwrap_or(record.generation))
    }

    /// As [`History::record`] for many plugins, with one write of the index.
    ///
    /// # Errors
    /// As [`History::record`].
    pub fn record_all<B: AsRef<[u8]>>(&self, records: &[Record<B>]) -> Result<Vec<u64>> {
        self.change(|index| {
            records
                .iter()
                .map(|record| {
                    let mark = index.get(record.plugin);
                    if let Some(mark) = mark.filter(|m| m.hash == record.hash && m.generation == record.generation) {
                        return Ok(mark.generation);
                    }
                    let last = mark.map_or(0, |m| m.last.max(m.generation));
                    let generation = record.generation.max(last + 1);
                    // Also where an index was lost: an entry is never written over.
                    let generation = generation.max(self.numbers_of(record.plugin).first().map_or(0, |n| n + 1));
                    if mark.is_none_or(|m| m.hash != record.hash) {
                        let own = |path: &str| !(path.starts_with("std/") && !path.contains('.'));
                        let files = record.files.iter().filter(|(path, _)| own(path));
                        let files: Vec<(&str, &[u8])> = files.map(|(path, bytes)| (path.as_str(), bytes.as_ref())).collect();
                        self.keep(record.plugin, &self.entry(generation, record.hash, true, &files), &files)?;
                    }
                    let mark = Mark { generation, hash: record.hash.to_owned(), last: generation };
                    index.insert(record.plugin.to_owned(), mark);
                    Ok(generation)
                })
                .collect()
        })
    }

    /// The entries of a plugin, newest first; those that cannot be read are left out.
    #[must_use]
    pub fn list(&self, plugin: &str) -> Vec<Entry> {
        self.numbers_of(plugin).into_iter().filter_map(|n| self.entry_of(plugin, n).ok()).collect()
    }

    fn entry_of(&self, plugin: &str, generation: u64) -> Result<Entry> {
        let path = self.paths.history_dir(plugin).join(generation.to_string()).join(META);
        let bytes = file::read_capped(&path, MAX_META).map_err(|e| {
            if e.kind() == Kind::NotFound { self.unknown(plugin, generation) } else { e }
        })?;
        let entry: Entry = serde_json::from_slice(&bytes)
            .map_err(|_| Error::internal(format!("`{}` is damaged", self.paths.shown(&path))))?;
        if entry.generation != generation {
            return Err(Error::internal(format!("`{}` belongs to another generation", self.paths.shown(&path))));
        }
        Ok(entry)
    }

    fn unknown(&self, plugin: &str, generation: u64) -> Error {
        let known: Vec<String> = self.numbers_of(plugin).iter().map(u64::to_string).collect();
        let error = Error::not_found(format!("`{plugin}` has no generation {generation} in its history"));
        if known.is_empty() {
            error.hint("a generation is kept when it loads")
        } else {
            error.hint(format!("kept are {}", known.join(" ")))
        }
    }

    /// The files of one entry, checked against the hashes they were kept with.
    ///
    /// # Errors
    /// `not_found` with the numbers that are kept; `internal` for an entry that is damaged.
    pub fn files(&self, plugin: &str, generation: u64) -> Result<Vec<(String, Vec<u8>)>> {
        let entry = self.entry_of(plugin, generation)?;
        self.files_of(plugin, &entry)
    }

    fn files_of(&self, plugin: &str, entry: &Entry) -> Result<Vec<(String, Vec<u8>)>> {
        let folder = self.paths.history_dir(plugin).join(entry.generation.to_string()).join(FILES);
        let damaged = |path: &str| {
            Error::internal(format!("generation {} of `{plugin}` is damaged: `{path}` is not what was kept", entry.generation))
                .hint("choose another generation")
        };
        entry
            .files
            .iter()
            .map(|kept| {
                let bytes = file::confine(&folder, &kept.path)
                    .and_then(|path| file::read_capped(&path, kept.bytes))
                    .map_err(|_| damaged(&kept.path))?;
                if sha256(&bytes) != kept.sha256 { Err(damaged(&kept.path)) } else { Ok((kept.path.clone(), bytes)) }
            })
            .collect()
    }

    fn entry(&self, generation: u64, hash: &str, ok: bool, files: &[(&str, &[u8])]) -> Entry {
        let at = jiff::Timestamp::from_millisecond(self.clock.unix_ms()).unwrap_or_default().to_string();
        let kept = |(path, bytes): &(&str, &[u8])| EntryFile {
            path: (*path).to_owned(),
            bytes: bytes.len() as u64,
            sha256: sha256(bytes),
        };
        Entry { generation, hash: hash.to_owned(), at, ok, files: files.iter().map(kept).collect() }
    }

    /// Writes one entry and drops those that are too many. The caller holds the lock and chose a free number.
    fn keep(&self, plugin: &str, entry: &Entry, files: &[(&str, &[u8])]) -> Result<()> {
        let home = self.paths.history_dir(plugin);
        let temp = home.join(format!(".{}.tmp", entry.generation));
        let cannot = |e: std::io::Error| io(format_args!("cannot keep a generation of `{plugin}`"), &e);
        let _ = fs::remove_dir_all(&temp);
        let written = self.fill(&temp, entry, files).and_then(|()| {
            fs::rename(&temp, home.join(entry.generation.to_string())).map_err(cannot)
        });
        if written.is_err() {
            let _ = fs::remove_dir_all(&temp);
        }
        written?;
        for old in self.numbers_of(plugin).into_iter().skip(KEEP) {
            let _ = fs::remove_dir_all(home.join(old.to_string()));
        }
        Ok(())
    }

    /// Without syncing: five hundred plugins are kept at a first start. What a crash cut short fails its hash later.
    fn fill(&self, temp: &Path, entry: &Entry, files: &[(&str, &[u8])]) -> Result<()> {
        let cannot = |e: std::io::Error| io(format_args!("cannot write `{}`", self.paths.shown(temp)), &e);
        let folder = temp.join(FILES);
        fs::create_dir_all(&folder).map_err(cannot)?;
        for (path, bytes) in files {
            let target = file::confine(&folder, path)?;
            if let Some(parent) = target.parent() {
                fs::create_dir_all(parent).map_err(cannot)?;
            }
            fs::write(&target, bytes).map_err(cannot)?;
        }
        let meta = serde_json::to_vec_pretty(entry).map_err(|e| Error::internal(e.to_string()))?;
        fs::write(temp.join(META), meta).map_err(cannot)
    }

    /// Reads, changes and writes the index as one step.
    fn change<T>(&self, edit: impl FnOnce(&mut Index) -> Result<T>) -> Result<T> {
        let path = self.index_path();
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(|e| io(format_args!("cannot make `{}`", self.paths.shown(folder)), &e))?;
        }
        file::with_lock(&path, || {
            let before = self.read_index()?;
            let mut index = before.clone().unwrap_or_else(|| self.rebuilt());
            let value = edit(&mut index)?;
            if Some(&index) != before.as_ref() {
                let bytes = serde_json::to_vec_pretty(&index).map_err(|e| Error::internal(e.to_string()))?;
                file::write_atomic(&path, &bytes)?;
            }
            Ok(value)
        })
    }

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
                    return Err(Error::new(Kind::Conflict, format!("generation {} of `{name}` has another form than now", entry.generation))
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
                Some((generation, _)) => {
                    Error::new(Kind::Conflict, format!("the files of `{name}` are those of generation {generation} already"))
                }
                None => Error::not_found(format!("`{name}` has no earlier generation to go back to"))
                    .hint("a generation is kept when it loads; `lapidary history` shows them"),
            })
        })
    }

    fn put_back(&self, found: &Found, index: &mut Index, entry: &Entry, changed: Vec<Changed>, newer: Vec<String>) -> Result<Rolled> {
        let old: Vec<(&str, &[u8])> =
            changed.iter().filter_map(|c| Some((c.path.as_str(), c.now.as_deref()?))).collect();
        let from = if old.is_empty() { None } else { Some(self.keep_replaced(found, index, &old)?) };
        // All bytes are on the disk before the first file changes.
        let mut staged = Vec::new();
        for change in &changed {
            if let Some(folder) = change.target.parent() {
                fs::create_dir_all(folder).map_err(|e| io(format_args!("cannot make `{}`", self.paths.shown(folder)), &e))?;
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
    super::discover::list_plugin_files(&super::stock::Empty, found)
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
    is_single == found.single_file().is_some() && (is_single || !entry.ok || entry.files.iter().any(|f| f.path == MANIFEST))
}

fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::discover::{Origin, discover};
    use super::super::stock::Empty;
    use super::*;

    struct World {
        _dir: tempfile::TempDir,
        paths: Paths,
        history: History,
        bus: Bus,
    }

    fn world() -> World {
        let dir = tempfile::tempdir().unwrap();
        let paths = Paths::at(dir.path());
        paths.ensure().unwrap();
        let bus = Bus::default();
        let history = History::new(paths.clone(), Clock::manual(1_796_031_295_000), bus.clone());
        World { _dir: dir, paths, history, bus }
    }

    impl World {
        fn write(&self, path: &str, text: &str) {
            let path = self.paths.root().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }

        fn read(&self, path: &str) -> String {
            fs::read_to_string(self.paths.root().join(path)).unwrap()
        }

        fn found(&self, name: &str) -> Found {
            discover(&self.paths, &[], &Empty).plugins.into_iter().find(|f| f.name == name).unwrap()
        }

        fn record(&self, plugin: &str, generation: u64, files: &[(&str, &str)]) -> u64 {
            let files: Vec<(String, &[u8])> = files.iter().map(|(p, t)| ((*p).to_owned(), t.as_bytes())).collect();
            let hash: String = files.iter().map(|(_, b)| sha256(b)).collect();
            self.history.record(&Record { plugin, generation, hash: &hash, files: &files }).unwrap()
        }

        /// Saves `user/tools/dice.rhai` and keeps it as a good generation.
        fn save(&self, generation: u64, text: &str) -> u64 {
            self.write("user/tools/dice.rhai", text);
            self.record("dice", generation, &[("dice.rhai", text)])
        }

        fn rollback(&self, to: Option<u64>) -> Result<Rolled> {
            self.history.rollback(&self.found("dice"), to)
        }

        fn notices(&self, work: impl FnOnce()) -> usize {
            let mut events = self.bus.subscribe();
            work();
            std::iter::from_fn(|| events.try_recv().ok()).count()
        }
    }

    #[test]
    fn numbers_go_on_after_a_start_from_one_small_file() {
        let w = world();
        assert!(w.history.numbers().unwrap().is_empty());
        w.save(1, "one");
        w.save(2, "two");
        w.record("clock", 5, &[("plugin.json", "{}"), ("tools/a.rhai", "x")]);
        let numbers = w.history.numbers().unwrap();
        assert_eq!((numbers["dice"].generation, numbers["dice"].last), (2, 2));
        assert_eq!(numbers["dice"].hash, sha256(b"two"));
        assert_eq!(numbers["clock"].generation, 5);
    }

    #[test]
    fn an_entry_holds_the_files_and_says_when() {
        let w = world();
        w.record("clock", 3, &[("plugin.json", "{}"), ("tools/a.rhai", "x"), ("meta.json", "mine"), ("std/words", "no")]);
        let list = w.history.list("clock");
        assert_eq!(list.len(), 1);
        assert_eq!((list[0].generation, list[0].at.as_str(), list[0].ok), (3, "2026-11-30T09:34:55Z", true));
        let files = w.history.files("clock", 3).unwrap();
        let names: Vec<_> = files.iter().map(|(p, _)| p.as_str()).collect();
        assert_eq!(names, ["plugin.json", "tools/a.rhai", "meta.json"]);
        assert_eq!(files[2].1, b"mine");
        let e = w.history.files("clock", 9).unwrap_err();
        assert_eq!(e.kind(), Kind::NotFound);
        assert!(e.hint_text().unwrap().contains("kept are 3"));
    }

    #[test]
    fn the_same_source_is_kept_once_and_the_number_moves_on() {
        let w = world();
        assert_eq!(w.save(1, "one"), 1);
        assert_eq!(w.save(1, "one"), 1);
        assert_eq!(w.save(4, "one"), 4);
        assert_eq!(w.history.numbers().unwrap()["dice"].generation, 4);
        assert_eq!(w.history.list("dice").len(), 1);
    }

    #[test]
    fn a_number_that_another_host_took_is_not_written_over() {
        let w = world();
        w.save(7, "ours");
        let other = History::new(w.paths.clone(), Clock::system(), Bus::default());
        let files = [("dice.rhai".to_owned(), b"theirs")];
        let kept = other.record(&Record { plugin: "dice", generation: 7, hash: "h", files: &files }).unwrap();
        assert_eq!(kept, 8);
        assert_eq!(w.history.files("dice", 7).unwrap()[0].1, b"ours");
        assert_eq!(w.history.files("dice", 8).unwrap()[0].1, b"theirs");
    }

    #[test]
    fn two_hosts_lose_no_entry() {
        let w = world();
        std::thread::scope(|scope| {
            for host in 0..2 {
                let history = History::new(w.paths.clone(), Clock::system(), Bus::default());
                scope.spawn(move || {
                    for n in 0..10_u64 {
                        let text = format!("{host} {n}");
                        let files = [("dice.rhai".to_owned(), text.as_bytes())];
                        history.record(&Record { plugin: "dice", generation: n, hash: &text, files: &files }).unwrap();
                    }
                });
            }
        });
        assert_eq!(w.history.list("dice").len(), 20);
    }

    #[test]
    fn only_the_newest_fifty_are_kept() {
        let w = world();
        for n in 1..=60 {
            w.record("dice", n, &[("dice.rhai", &format!("v{n}"))]);
        }
        let list = w.history.list("dice");
        assert_eq!((list.len(), list[0].generation, list[KEEP - 1].generation), (KEEP, 60, 11));
    }

    #[test]
    fn many_plugins_are_kept_with_one_write_of_the_index() {
        let w = world();
        let files = [("a.rhai".to_owned(), b"x")];
        let names: Vec<String> = (0..20).map(|n| format!("p{n}")).collect();
        let records: Vec<_> =
            names.iter().map(|name| Record { plugin: name, generation: 1, hash: "h", files: &files }).collect();
        assert_eq!(w.history.record_all(&records).unwrap(), vec![1; 20]);
        assert_eq!(w.history.numbers().unwrap().len(), 20);
    }

    #[test]
    fn a_damaged_or_lost_index_is_built_again_from_the_entries() {
        let w = world();
        w.save(1, "one");
        w.save(2, "two");
        let before = w.history.numbers().unwrap();
        for text in ["{\"dice\":", "[]", "{\"dice\": 7}", ""] {
            fs::write(w.history.index_path(), text).unwrap();
            assert_eq!(w.notices(|| assert_eq!(w.history.numbers().unwrap(), before)), 1);
        }
        fs::remove_file(w.history.index_path()).unwrap();
        assert_eq!(w.history.numbers().unwrap(), before);
        assert_eq!(w.save(2, "three"), 3);
        assert_eq!(w.history.numbers().unwrap()["dice"].generation, 3);
    }

    #[test]
    fn a_path_out_of_the_entry_is_refused_and_nothing_stays() {
        let w = world();
        let files = [("../../../tools/evil.rhai".to_owned(), b"x")];
        let record = Record { plugin: "dice", generation: 1, hash: "h", files: &files };
        assert_eq!(w.history.record(&record).unwrap_err().kind(), Kind::PermissionDenied);
        assert!(w.history.numbers().unwrap().is_empty() && w.history.list("dice").is_empty());
        assert!(!w.paths.tools().join("evil.rhai").exists());
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
