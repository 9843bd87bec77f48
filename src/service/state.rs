//! `state::` of plugins: one JSON object a plugin, in one file, shared by every thread and process on the root.
//! Every write is under the file's lock; no lock is ever held while somebody's function computes a value.

use super::objects::{Object, Objects, Which};
use crate::base::clock::Clock;
use crate::base::error::{Error, Kind, Result, io};
use crate::base::event::Bus;
use crate::base::file::{self, Staged};
use crate::base::json;
use crate::base::paths::Paths;
use serde_json::{Map, Value};
use std::path::Path;
use std::time::Duration;

/// One value may have this many bytes as JSON.
pub const MAX_VALUE_BYTES: usize = 8 << 20;
/// All values of a plugin may have this many bytes as JSON.
pub const MAX_FILE_BYTES: u64 = 64 << 20;
/// A key may have this many bytes.
pub const MAX_KEY_BYTES: usize = 1024;
/// A plugin may have this many keys.
pub const MAX_KEYS: usize = 100_000;
/// A value may be nested this deep: one less than what can be read back inside the file's own object.
pub const MAX_VALUE_DEPTH: usize = json::MAX_DEPTH - 1;
/// How often [`States::update`] tries before it gives up.
pub const MAX_TRIES: u32 = 50;

/// The state of all plugins of one installation.
pub struct States {
    paths: Paths,
    objects: Objects,
}

enum Change<'a> {
    Set(&'a str, &'a Value),
    Remove(&'a str),
    Clear,
}

impl Change<'_> {
    fn apply(&self, map: &mut Map<String, Value>) {
        match self {
            Change::Set(key, value) => {
                map.insert((*key).to_string(), (*value).clone());
            }
            Change::Remove(key) => {
                map.shift_remove(*key);
            }
            Change::Clear => map.clear(),
        }
    }
}

impl States {
    /// The state under these paths. Reads nothing yet.
    #[must_use]
    pub fn new(paths: Paths, clock: Clock, bus: Bus) -> Self {
        let which = Which { name: "state", file: Paths::state_file, most: MAX_FILE_BYTES * 2 };
        States { objects: Objects::new(which, paths.clone(), clock, bus), paths }
    }

    /// The value of a key.
    ///
    /// # Errors
    /// What the file system says. A corrupt file is set aside, told on the bus, and counts as empty.
    pub fn get(&self, plugin: &str, key: &str) -> Result<Option<Value>> {
        Ok(self.objects.load(plugin)?.get(key).cloned())
    }

    /// Every key with its value, in the order of the file.
    ///
    /// # Errors
    /// As [`States::get`].
    pub fn all(&self, plugin: &str) -> Result<Map<String, Value>> {
        Ok(self.objects.load(plugin)?.as_ref().clone())
    }

    /// Stores a value; it is on disk when this returns.
    ///
    /// # Errors
    /// `too_large` for a value over [`MAX_VALUE_BYTES`], `quota` for too many keys or bytes in all, `invalid_arguments` for a
    /// value that could not be read back, or what the file system says. Nothing is changed then.
    pub fn save(&self, plugin: &str, key: &str, value: &Value) -> Result<()> {
        check(key, value)?;
        self.commit(plugin, &self.objects.load(plugin)?, &Change::Set(key, value), None).map(drop)
    }

    /// Removes a key. One that is not there is fine.
    ///
    /// # Errors
    /// What the file system says.
    pub fn delete(&self, plugin: &str, key: &str) -> Result<()> {
        self.commit(plugin, &self.objects.load(plugin)?, &Change::Remove(key), None).map(drop)
    }

    /// Removes every key.
    ///
    /// # Errors
    /// What the file system says.
    pub fn clear(&self, plugin: &str) -> Result<()> {
        self.commit(plugin, &self.objects.load(plugin)?, &Change::Clear, None).map(drop)
    }

    /// Replaces a value by what `change` makes of it (of `default` where there is none), and gives the new value.
    /// `change` runs without any lock; when another writer of the key was first it runs again on the newer value, so it should
    /// only compute.
    ///
    /// # Errors
    /// Those of `change`; `conflict` after [`MAX_TRIES`]; those of [`States::save`]. Nothing is changed then.
    #[expect(clippy::disallowed_methods, reason = "well under a millisecond, to step out of the way of another writer")]
    pub fn update<E: From<Error>>(
        &self,
        plugin: &str,
        key: &str,
        default: &Value,
        mut change: impl FnMut(Value) -> Result<Value, E>,
    ) -> Result<Value, E> {
        for attempt in 1..=MAX_TRIES {
            let before = self.objects.load_in_turn(plugin)?;
            let old = before.get(key);
            let new = change(old.unwrap_or(default).clone())?;
            check(key, &new)?;
            if self.commit(plugin, &before, &Change::Set(key, &new), Some((key, old)))? {
                return Ok(new);
            }
            // Writers in lockstep would lose to each other again and again; a random step apart ends that.
            std::thread::sleep(Duration::from_micros(fastrand::u64(..200 * u64::from(attempt))));
        }
        Err(Error::new(Kind::Conflict, format!("other writers changed `{key}` {MAX_TRIES} times in between"))
            .with_retryable(true)
            .hint("let fewer calls write this key, or do less inside the function given to state::update")
            .into())
    }

    /// Forgets what was read of a plugin, so that the next access reads its file again.
    pub fn evict(&self, plugin: &str) {
        self.objects.evict(plugin);
    }

    /// Deletes everything of a plugin below `user/plugin_state`: its state, what was set aside, its data folder, databases and
    /// other siblings `<name>-*` and `<name>_*`. What belongs to a longer name among `known`, the plugins that exist, stays:
    /// `mail_log.json` is the plugin `mail_log`'s, not `mail`'s.
    ///
    /// # Errors
    /// What the file system says about the first thing that could not be deleted; the others are gone.
    pub fn purge(&self, plugin: &str, known: &[&str]) -> Result<()> {
        self.each_own(plugin, known, |entry| {
            let is_folder = entry.file_type().is_ok_and(|t| t.is_dir());
            if is_folder { std::fs::remove_dir_all(entry.path()) } else { std::fs::remove_file(entry.path()) }
        })
    }

    /// Moves everything that [`States::purge`] would delete into a folder, under its own names.
    ///
    /// # Errors
    /// What the file system says about the first thing that could not be moved; the others are.
    #[expect(clippy::disallowed_methods, reason = "files are moved away as they are, not written")]
    pub fn take_away(&self, plugin: &str, known: &[&str], into: &Path) -> Result<()> {
        std::fs::create_dir_all(into).map_err(|e| io(format_args!("cannot make `{}`", into.display()), &e))?;
        self.each_own(plugin, known, |entry| std::fs::rename(entry.path(), into.join(entry.file_name())))
    }

    /// Does something with each file and folder of a plugin's state, under the lock of its state file, so that a write in
    /// flight cannot bring that back. The first failure is told at the end.
    fn each_own(
        &self,
        plugin: &str,
        known: &[&str],
        mut work: impl FnMut(&std::fs::DirEntry) -> std::io::Result<()>,
    ) -> Result<()> {
        let path = self.objects.path(plugin)?;
        let folder = self.paths.plugin_state();
        if !folder.exists() {
            return Ok(());
        }
        self.evict(plugin);
        let mut first = Ok(());
        file::with_lock(&path, || {
            let entries =
                std::fs::read_dir(&folder).map_err(|e| io(format_args!("cannot read `{}`", folder.display()), &e))?;
            for entry in entries.flatten() {
                let name = entry.file_name().to_string_lossy().into_owned();
                if !belongs(&name, plugin) || known.iter().any(|k| k.len() > plugin.len() && belongs(&name, k)) {
                    continue;
                }
                if let Err(e) = work(&entry)
                    && e.kind() != std::io::ErrorKind::NotFound
                    && first.is_ok()
                {
                    first = Err(io(format_args!("cannot put `{}` away", entry.path().display()), &e));
                }
            }
            Ok(())
        })?;
        self.evict(plugin);
        file::sync_folder_of(&path);
        first
    }

    /// Writes `change`, or gives `false` where the key of `expected` no longer has the value it had.
    /// The slow part, writing and syncing, is done on a guess before the lock is taken: whoever holds the lock only looks and
    /// renames, so writers take turns fairly.
    fn commit(
        &self,
        plugin: &str,
        before: &Object,
        change: &Change<'_>,
        expected: Option<(&str, Option<&Value>)>,
    ) -> Result<bool> {
        self.write(plugin, before, change, expected).map_err(|e| self.paths.conceal(e))
    }

    fn write(
        &self,
        plugin: &str,
        before: &Object,
        change: &Change<'_>,
        expected: Option<(&str, Option<&Value>)>,
    ) -> Result<bool> {
        let path = self.objects.path(plugin)?;
        let folder = self.paths.plugin_state();
        std::fs::create_dir_all(&folder)
            .map_err(|e| io(format_args!("cannot make the folder `{}`", folder.display()), &e))?;
        let stage = |from: &Map<String, Value>| -> Result<(Staged, Vec<u8>, Object)> {
            let mut map = from.clone();
            change.apply(&mut map);
            let text = text_of(plugin, &map)?;
            Ok((Staged::write(&path, &text)?, text, Object::new(map)))
        };
        let guess = stage(before)?;
        let done = file::with_lock(&path, || {
            let now = self.objects.load_locked(plugin, &path)?;
            if expected.is_some_and(|(key, old)| now.get(key) != old) {
                return Ok(false);
            }
            let (staged, text, object) = if now == *before { guess } else { stage(&now)? };
            staged.commit()?;
            self.objects.remember(plugin, text, object);
            Ok(true)
        })?;
        if done {
            file::sync_folder_of(&path);
        }
        Ok(done)
    }
}

/// Whether a name in the folder of state belongs to `plugin`: `<plugin>.json..`, `<plugin>-..`, `<plugin>_..`, and the hidden
/// files that writes leave when the machine stops in the middle. Lock files stay: somebody may be waiting for one.
fn belongs(name: &str, plugin: &str) -> bool {
    if let Some(hidden) = name.strip_prefix('.') {
        return hidden.ends_with(".tmp") && belongs_plain(hidden, plugin);
    }
    belongs_plain(name, plugin)
}

fn belongs_plain(name: &str, plugin: &str) -> bool {
    name.strip_prefix(plugin)
        .is_some_and(|rest| rest == ".json" || rest.starts_with(".json.") || rest.starts_with(['-', '_']))
}

/// Whether a key can be stored.
pub(super) fn check_key(key: &str) -> Result<()> {
    if key.len() > MAX_KEY_BYTES {
        return Err(Error::new(
            Kind::TooLarge,
            format!("a key of {} bytes; at most {MAX_KEY_BYTES} are stored", key.len()),
        ));
    }
    Ok(())
}

fn check(key: &str, value: &Value) -> Result<()> {
    check_key(key)?;
    check_readable(value, MAX_VALUE_DEPTH)?;
    let size = json::encoded_len(value);
    if size > MAX_VALUE_BYTES {
        return Err(Error::new(
            Kind::TooLarge,
            format!("the value of `{key}` has {size} bytes as JSON; at most {MAX_VALUE_BYTES} are stored"),
        )
        .hint("split it over several keys, or keep it in a file (files::) or database (db::)"));
    }
    Ok(())
}

/// What the strict reader would refuse must not be written, or the next read would set the whole file aside.
pub(super) fn check_readable(value: &Value, depth: usize) -> Result<()> {
    match value {
        Value::Number(n) if n.is_u64() && !n.is_i64() => {
            Err(Error::invalid(format!("the integer {n} is outside 64 bits")).hint("store it as text"))
        }
        Value::Array(_) | Value::Object(_) if depth == 0 => {
            Err(Error::invalid(format!("the value is nested deeper than {MAX_VALUE_DEPTH} levels")))
        }
        Value::Array(items) => items.iter().try_for_each(|item| check_readable(item, depth - 1)),
        Value::Object(map) => map.values().try_for_each(|item| check_readable(item, depth - 1)),
        _ => Ok(()),
    }
}

fn text_of(plugin: &str, map: &Map<String, Value>) -> Result<Vec<u8>> {
    let quota = |what: String| {
        Err(Error::new(Kind::Quota, format!("the state of `{plugin}` would have {what}"))
            .hint("delete keys that are not needed, or use a database (db::)"))
    };
    if map.len() > MAX_KEYS {
        return quota(format!("{} keys; at most {MAX_KEYS} are stored", map.len()));
    }
    let mut text = serde_json::to_vec_pretty(map).map_err(|e| Error::internal(format!("state of `{plugin}`: {e}")))?;
    text.push(b'\n');
    if text.len() as u64 > MAX_FILE_BYTES {
        return quota(format!("{} bytes; at most {MAX_FILE_BYTES} are stored", text.len()));
    }
    Ok(text)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::base::event::Event;
    use serde_json::json;
    use std::fs;

    fn states(root: &Path) -> States {
        states_on(root, Bus::default())
    }

    fn states_on(root: &Path, bus: Bus) -> States {
        let paths = Paths::at(root);
        paths.ensure().unwrap();
        States::new(paths, Clock::manual(1_700_000_000_000), bus)
    }

    fn names(root: &Path) -> Vec<String> {
        let folder = Paths::at(root).plugin_state();
        let mut names: Vec<_> =
            fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.retain(|name| !name.ends_with(".lock"));
        names.sort();
        names
    }

    fn count_up(states: &States, key: &str) -> Result<Value> {
        states.update("dice", key, &json!(0), |n| Ok::<_, Error>(json!(n.as_i64().unwrap() + 1)))
    }

    #[test]
    fn what_is_saved_is_there_for_every_instance() {
        let dir = tempfile::tempdir().unwrap();
        let (one, two) = (states(dir.path()), states(dir.path()));
        assert_eq!(one.get("dice", "a").unwrap(), None);
        for n in 0..20 {
            one.save("dice", "a", &json!({"n": n, "big": i64::MAX, "text": "日本\n"})).unwrap();
            assert_eq!(two.get("dice", "a").unwrap().unwrap()["n"], n);
            two.save("dice", "b", &json!(n)).unwrap();
            assert_eq!(one.get("dice", "b").unwrap(), Some(json!(n)));
        }
        assert_eq!(one.all("dice").unwrap().len(), 2);
        assert_eq!(one.all("other").unwrap().len(), 0);
        one.delete("dice", "a").unwrap();
        one.delete("dice", "never").unwrap();
        assert_eq!(two.all("dice").unwrap(), *json!({"b": 19}).as_object().unwrap());
        two.clear("dice").unwrap();
        assert!(one.all("dice").unwrap().is_empty());
    }

    #[test]
    fn the_file_is_json_that_people_can_read() {
        let dir = tempfile::tempdir().unwrap();
        let states = states(dir.path());
        states.save("dice", "last", &json!([1, "é"])).unwrap();
        let text = fs::read_to_string(Paths::at(dir.path()).state_file("dice")).unwrap();
        assert_eq!(text, "{\n  \"last\": [\n    1,\n    \"é\"\n  ]\n}\n");
        assert_eq!(names(dir.path()), ["dice.json"]);
    }

    #[test]
    fn an_edit_by_hand_is_seen() {
        let dir = tempfile::tempdir().unwrap();
        let states = states(dir.path());
        states.save("dice", "a", &json!(1)).unwrap();
        let file = Paths::at(dir.path()).state_file("dice");
        for n in [2, 3, 4] {
            fs::write(&file, format!("\u{feff}{{\"a\": {n}}}")).unwrap();
            assert_eq!(states.get("dice", "a").unwrap(), Some(json!(n)));
        }
        fs::remove_file(&file).unwrap();
        assert_eq!(states.get("dice", "a").unwrap(), None);
    }

    #[test]
    fn row_43_fifty_threads_that_count_up_give_fifty() {
        let dir = tempfile::tempdir().unwrap();
        let states = states(dir.path());
        std::thread::scope(|scope| {
            for _ in 0..50 {
                scope.spawn(|| count_up(&states, "n").unwrap());
            }
        });
        assert_eq!(states.get("dice", "n").unwrap(), Some(json!(50)));
        assert_eq!(names(dir.path()), ["dice.json"]);
    }

    #[test]
    fn what_another_writes_in_the_same_moment_is_seen_whatever_it_looks_like_from_outside() {
        let dir = tempfile::tempdir().unwrap();
        let states = states(dir.path());
        let file = Paths::at(dir.path()).state_file("dice");
        for n in 0..5 {
            states.save("dice", "n", &json!(n)).unwrap();
            assert_eq!(states.get("dice", "n").unwrap(), Some(json!(n)));
            let text = fs::read_to_string(&file).unwrap();
            fs::write(&file, text.replace(&n.to_string(), "7")).unwrap();
            assert_eq!(states.get("dice", "n").unwrap(), Some(json!(7)));
            assert_eq!(states.update("dice", "n", &json!(0), |n| Ok::<_, Error>(json!([n]))).unwrap(), json!([7]));
        }
    }

    #[test]
    fn two_processes_that_write_a_thousand_times_each_lose_nothing() {
        const ROOT: &str = "LAPIDARY_TEST_STATE_ROOT";
        let writes = |root: &Path, own: &str| {
            let states = states(root);
            for n in 0..500 {
                count_up(&states, "shared").unwrap();
                states.save("dice", &format!("{own}{n}"), &json!(n)).unwrap();
            }
        };
        // The second process is this test again, told by its environment where to write.
        if let Some(root) = std::env::var_os(ROOT) {
            writes(Path::new(&root), "child");
            return;
        }
        // In memory where there is such a place: thousands of syncs say nothing about the rule.
        let dir = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        let mut child = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "service::state::tests::two_processes_that_write_a_thousand_times_each_lose_nothing"])
            .env(ROOT, dir.path())
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        writes(dir.path(), "parent");
        assert!(child.wait().unwrap().success());
        let all = states(dir.path()).all("dice").unwrap();
        assert_eq!(all["shared"], 1000);
        for own in ["child", "parent"] {
            for n in 0..500 {
                assert_eq!(all[&format!("{own}{n}")], n);
            }
        }
        assert_eq!(names(dir.path()), ["dice.json"]);
    }

    #[test]
    fn no_lock_is_held_while_the_function_runs() {
        let dir = tempfile::tempdir().unwrap();
        let states = states(dir.path());
        let mut runs = 0;
        let new = states
            .update("dice", "n", &json!(0), |n| {
                runs += 1;
                // Both would wait for ever if the function ran under the lock.
                states.save("dice", "other", &json!(runs))?;
                if runs == 1 {
                    states.save("dice", "n", &json!(100))?;
                }
                Ok::<_, Error>(json!(n.as_i64().unwrap() + 1))
            })
            .unwrap();
        assert_eq!((new, runs), (json!(101), 2), "another key does not disturb, the same key runs it again");
    }

    #[test]
    fn a_writer_that_never_wins_gets_a_conflict() {
        let dir = tempfile::tempdir().unwrap();
        let states = states(dir.path());
        let mut runs = 0;
        let e = states
            .update("dice", "n", &json!(0), |_| {
                runs += 1;
                states.save("dice", "n", &json!(runs))?;
                Ok::<_, Error>(json!(-1))
            })
            .unwrap_err();
        assert_eq!((e.kind(), runs), (Kind::Conflict, 50));
        assert_eq!(states.get("dice", "n").unwrap(), Some(json!(50)));
    }

    #[test]
    fn a_function_that_fails_changes_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let states = states(dir.path());
        let e = states.update("dice", "n", &json!(0), |_| Err(Error::invalid("no"))).unwrap_err();
        assert_eq!(e.message(), "no");
        assert!(names(dir.path()).is_empty());
    }

    #[test]
    fn row_43_a_corrupt_file_is_set_aside_and_reported() {
        for content in [&b"{\"a\": 1"[..], b"[1, 2]", b"null", b"{\"a\": 9223372036854775808}", b"\xff\xfe", b"{}{}"] {
            let dir = tempfile::tempdir().unwrap();
            let paths = Paths::at(dir.path());
            let bus = Bus::default();
            let mut events = bus.subscribe();
            let states = states_on(dir.path(), bus);
            fs::write(paths.state_file("dice"), content).unwrap();
            assert_eq!(states.get("dice", "a").unwrap(), None);
            let bad = paths.plugin_state().join("dice.json.bad-20231114T221320");
            assert_eq!(fs::read(&bad).unwrap(), content);
            let Event::Notice { subject, message } = events.try_recv().unwrap() else { panic!("a notice") };
            assert_eq!(subject, "user/plugin_state/dice.json");
            assert!(message.contains("bad-20231114T221320"), "{message}");
            states.save("dice", "a", &json!(2)).unwrap();
            assert_eq!(states.get("dice", "a").unwrap(), Some(json!(2)));
            assert!(events.try_recv().is_err(), "told once");
        }
    }

    #[test]
    fn a_write_onto_a_corrupt_file_sets_it_aside_first() {
        let dir = tempfile::tempdir().unwrap();
        let states = states(dir.path());
        let file = Paths::at(dir.path()).state_file("dice");
        fs::write(&file, "{oops").unwrap();
        states.save("dice", "a", &json!(1)).unwrap();
        assert_eq!(names(dir.path()), ["dice.json", "dice.json.bad-20231114T221320"]);
        fs::write(&file, "").unwrap();
        assert!(states.all("dice").unwrap().is_empty());
        assert_eq!(names(dir.path()).len(), 2, "an empty file is an empty state");
    }

    #[test]
    fn row_43_a_failed_replace_leaves_no_temporary_file() {
        let dir = tempfile::tempdir().unwrap();
        let states = states(dir.path());
        let file = Paths::at(dir.path()).state_file("dice");
        fs::create_dir(&file).unwrap();
        fs::write(file.join("x"), "").unwrap();
        let e = states.save("dice", "a", &json!(1)).unwrap_err();
        assert!(e.message().contains("`user/plugin_state/dice.json`"), "{e}");
        assert!(!e.to_string().contains(&*dir.path().to_string_lossy()), "scripts see no path outside: {e}");
        assert_eq!(names(dir.path()), ["dice.json"]);
    }

    #[test]
    fn values_that_are_too_big_or_could_not_be_read_back_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let states = states(dir.path());
        let save = |key: &str, value: Value| states.save("dice", key, &value);
        let big = "x".repeat(MAX_VALUE_BYTES);
        assert_eq!(save("a", json!(big)).unwrap_err().kind(), Kind::TooLarge);
        assert_eq!(save("a", json!([1, big])).unwrap_err().kind(), Kind::TooLarge);
        assert!(save("a", json!(big[..MAX_VALUE_BYTES - 2])).is_ok());
        assert_eq!(save(&"k".repeat(MAX_KEY_BYTES + 1), json!(1)).unwrap_err().kind(), Kind::TooLarge);
        assert_eq!(save("u", json!({"x": [u64::MAX]})).unwrap_err().kind(), Kind::InvalidArguments);
        let nested = |depth: usize| (0..depth).fold(json!(1), |inner, _| json!([inner]));
        assert_eq!(save("deep", nested(MAX_VALUE_DEPTH + 1)).unwrap_err().kind(), Kind::InvalidArguments);
        save("deep", nested(MAX_VALUE_DEPTH)).unwrap();
        states.evict("dice");
        assert_eq!(states.get("dice", "deep").unwrap(), Some(nested(MAX_VALUE_DEPTH)));
    }

    #[test]
    fn all_values_together_have_a_limit() {
        let dir = tempfile::tempdir().unwrap();
        let states = states(dir.path());
        let map: Map<String, Value> = (0..=MAX_KEYS).map(|n| (n.to_string(), json!(0))).collect();
        assert_eq!(text_of("dice", &map).unwrap_err().kind(), Kind::Quota);
        let chunk = json!("x".repeat(MAX_VALUE_BYTES - 2));
        let map: Map<String, Value> = (0..8).map(|n| (n.to_string(), chunk.clone())).collect();
        assert_eq!(text_of("dice", &map).unwrap_err().kind(), Kind::Quota);
        assert!(states.all("dice").unwrap().is_empty());
    }

    #[test]
    fn names_that_are_not_plugins_reach_no_file() {
        let dir = tempfile::tempdir().unwrap();
        let states = states(dir.path());
        for name in ["../x", "", "agents", "a/b"] {
            assert_eq!(states.save(name, "k", &json!(1)).unwrap_err().kind(), Kind::InvalidArguments, "{name}");
            assert!(states.purge(name, &[]).is_err());
        }
        assert!(names(dir.path()).is_empty());
    }

    #[test]
    fn purge_takes_the_siblings_and_leaves_other_plugins_alone() {
        let dir = tempfile::tempdir().unwrap();
        let states = states(dir.path());
        let folder = Paths::at(dir.path()).plugin_state();
        let mine = [
            "mail.json",
            "mail.json.bad-20231114T221320",
            "mail-cache.bin",
            "mail_key.json",
            "mail_x.db",
            "mail_x.db-wal",
            ".mail.json.1-2-3.tmp",
        ];
        let theirs = ["mail_log.json", "mail_log_x.db", "mailbox.json", "agents.json", "a_mail.json", "mail.txt"];
        for name in mine.iter().chain(&theirs) {
            fs::write(folder.join(name), "{}").unwrap();
        }
        fs::create_dir_all(folder.join("mail_files/deep")).unwrap();
        fs::create_dir(folder.join("mail_log_files")).unwrap();
        states.get("mail", "x").unwrap();
        states.purge("mail", &["mail", "mail_log", "mailbox"]).unwrap();
        let mut left: Vec<String> = theirs.iter().map(ToString::to_string).chain(["mail_log_files".into()]).collect();
        left.sort();
        assert_eq!(names(dir.path()), left);
        states.save("mail", "new", &json!(1)).unwrap();
        assert_eq!(states.all("mail").unwrap().len(), 1, "nothing old comes back");
    }
}
