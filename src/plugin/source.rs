//! Earlier sources of plugins: every good generation is kept; `rollback` puts one back into the files.
//! Knows files and numbers; whether a source loads is the loader's to say.

mod rollback;

pub use rollback::Rolled;

use crate::base::clock::Clock;
use crate::base::error::{Error, Kind, Result, io};
use crate::base::event::{Bus, Event};
use crate::base::file;
use crate::base::json;
use crate::base::paths::Paths;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "KeptVersion")]
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EntryFile {
    /// Path in the plugin's folder, or the name of its one file.
    pub path: String,
    /// Size in bytes.
    pub bytes: u64,
    /// SHA-256 of the content, in hex: a damaged entry is never put back.
    pub sha256: String,
}

/// One file of an entry with its text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct KeptFile {
    /// Path in the plugin's folder, or the name of its one file.
    pub path: String,
    /// Size in bytes.
    pub bytes: u64,
    /// Its text; nothing for a file that is none.
    pub text: Option<String>,
    /// What going back would change in the file that is there now, as a unified diff; empty where it is the same.
    pub diff: Option<String>,
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
                        let is_shared = |path: &str| path.starts_with("std/") && !path.contains('.');
                        let files = record.files.iter().filter(|(path, _)| !is_shared(path));
                        let files: Vec<(&str, &[u8])> =
                            files.map(|(path, bytes)| (path.as_str(), bytes.as_ref())).collect();
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
        let bytes = file::read_capped(&path, MAX_META)
            .map_err(|e| if e.kind() == Kind::NotFound { self.unknown(plugin, generation) } else { e })?;
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
            Error::internal(format!(
                "generation {} of `{plugin}` is damaged: `{path}` is not what was kept",
                entry.generation
            ))
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
    #[expect(clippy::disallowed_methods, reason = "a whole folder takes its place in one step")]
    fn keep(&self, plugin: &str, entry: &Entry, files: &[(&str, &[u8])]) -> Result<()> {
        let home = self.paths.history_dir(plugin);
        let temp = home.join(format!(".{}.tmp", entry.generation));
        let cannot = |e: std::io::Error| io(format_args!("cannot keep a generation of `{plugin}`"), &e);
        let _ = fs::remove_dir_all(&temp);
        let written = self
            .fill(&temp, entry, files)
            .and_then(|()| fs::rename(&temp, home.join(entry.generation.to_string())).map_err(cannot));
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
    #[expect(clippy::disallowed_methods, reason = "the folder is not in its place yet")]
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
            fs::create_dir_all(folder)
                .map_err(|e| io(format_args!("cannot make `{}`", self.paths.shown(folder)), &e))?;
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
}

fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
pub(super) mod tests {
    use super::super::discover::{Found, discover};
    use super::super::stock::Empty;
    use super::*;

    pub(in super::super) struct World {
        pub _dir: tempfile::TempDir,
        pub paths: Paths,
        pub history: History,
        pub bus: Bus,
    }

    pub(in super::super) fn world() -> World {
        let dir = tempfile::tempdir().unwrap();
        let paths = Paths::at(dir.path());
        paths.ensure().unwrap();
        let bus = Bus::default();
        let history = History::new(paths.clone(), Clock::manual(1_796_031_295_000), bus.clone());
        World { _dir: dir, paths, history, bus }
    }

    impl World {
        pub fn write(&self, path: &str, text: &str) {
            let path = self.paths.root().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }

        pub fn read(&self, path: &str) -> String {
            fs::read_to_string(self.paths.root().join(path)).unwrap()
        }

        pub fn found(&self, name: &str) -> Found {
            discover(&self.paths, &[], &Empty).plugins.into_iter().find(|f| f.name == name).unwrap()
        }

        pub fn record(&self, plugin: &str, generation: u64, files: &[(&str, &str)]) -> u64 {
            let files: Vec<(String, &[u8])> = files.iter().map(|(p, t)| ((*p).to_owned(), t.as_bytes())).collect();
            let hash: String = files.iter().map(|(_, b)| sha256(b)).collect();
            self.history.record(&Record { plugin, generation, hash: &hash, files: &files }).unwrap()
        }

        /// Saves `user/tools/dice.rhai` and keeps it as a good generation.
        pub fn save(&self, generation: u64, text: &str) -> u64 {
            self.write("user/tools/dice.rhai", text);
            self.record("dice", generation, &[("dice.rhai", text)])
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
        w.record(
            "clock",
            3,
            &[("plugin.json", "{}"), ("tools/a.rhai", "x"), ("meta.json", "mine"), ("std/words", "no")],
        );
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
}
