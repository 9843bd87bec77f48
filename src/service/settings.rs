//! Stored settings: one flat JSON object a plugin, holding only what a person set. Defaults and types are the fields'.
//! It knows files and versions; whether new settings suit a script is decided before they come here.

pub mod field;

pub use field::{
    Choice, Confirm, Effective, Field, FieldType, Widget, check_patch, effective, fields_from_script, undeclared,
    validate,
};

use super::objects::{Objects, Which};
use crate::base::clock::Clock;
use crate::base::error::{Error, Kind, Result, io};
use crate::base::event::{Bus, Event};
use crate::base::file;
use crate::base::json;
use crate::base::paths::Paths;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

/// The stored settings of a plugin may have this many bytes.
pub const MAX_BYTES: u64 = 4 << 20;

/// The stored settings of all plugins of one installation.
pub struct Store {
    paths: Paths,
    bus: Bus,
    objects: Objects,
}

impl Store {
    /// The settings under these paths. Reads nothing yet.
    #[must_use]
    pub fn new(paths: Paths, clock: Clock, bus: Bus) -> Self {
        let which = Which { name: "settings", file: Paths::settings_file, most: MAX_BYTES };
        Store { objects: Objects::new(which, paths.clone(), clock, bus.clone()), paths, bus }
    }

    /// What a person set, as it stands in the file. No file means nothing. A corrupt file is set aside and told on the bus, and
    /// means nothing too.
    ///
    /// # Errors
    /// What the file system says, or a bad plugin name.
    pub fn stored(&self, plugin: &str) -> Result<Map<String, Value>> {
        Ok(self.objects.load(plugin)?.as_ref().clone())
    }

    /// The version of what is stored: the same for the same values, whatever their order.
    ///
    /// # Errors
    /// As [`Store::stored`].
    pub fn etag(&self, plugin: &str) -> Result<String> {
        Ok(etag_of(&*self.objects.load(plugin)?))
    }

    /// Stores `values` in place of everything that was set, and gives them back. With `expected`, only if that is still the
    /// version. Publishes [`Event::SettingsChanged`] where something changed.
    ///
    /// # Errors
    /// `conflict` when somebody else saved in between, `too_large` over [`MAX_BYTES`], `invalid_arguments` for integers outside
    /// 64 bits or deep nesting, or what the file system says. Nothing is changed then.
    pub fn replace(
        &self,
        plugin: &str,
        values: Map<String, Value>,
        expected: Option<&str>,
    ) -> Result<Map<String, Value>> {
        self.change(plugin, expected, |_| values)
    }

    /// Stores the keys of `patch` and keeps the others, and gives everything that is stored then. `null` takes a key out, so
    /// that its default is in force again. `expected` and events as in [`Store::replace`].
    ///
    /// # Errors
    /// As [`Store::replace`].
    pub fn patch(
        &self,
        plugin: &str,
        patch: &Map<String, Value>,
        expected: Option<&str>,
    ) -> Result<Map<String, Value>> {
        self.change(plugin, expected, |stored| patched(stored, patch))
    }

    /// Takes out everything that was set: the file is removed. Doing it again is fine.
    ///
    /// # Errors
    /// What the file system says, or a bad plugin name.
    pub fn reset(&self, plugin: &str) -> Result<()> {
        let path = self.objects.path(plugin)?;
        if !path.exists() {
            return Ok(());
        }
        file::with_lock(&path, || match std::fs::remove_file(&path) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                Err(io(format_args!("cannot remove `{}`", path.display()), &e))
            }
            _ => Ok(()),
        })?;
        file::sync_folder_of(&path);
        self.bus.publish(Event::SettingsChanged { plugin: plugin.to_string() });
        Ok(())
    }

    fn change(
        &self,
        plugin: &str,
        expected: Option<&str>,
        change: impl FnOnce(&Map<String, Value>) -> Map<String, Value>,
    ) -> Result<Map<String, Value>> {
        let path = self.objects.path(plugin)?;
        let folder = self.paths.webui_plugins();
        std::fs::create_dir_all(&folder)
            .map_err(|e| self.paths.conceal(io(format_args!("cannot make the folder `{}`", folder.display()), &e)))?;
        let (values, changed) = file::with_lock(&path, || {
            let stored = self.objects.load_locked(plugin, &path)?;
            if expected.is_some_and(|version| version != etag_of(&stored)) {
                return Err(Error::new(Kind::Conflict, format!("the settings of `{plugin}` were changed in between"))
                    .hint("read them again and repeat the change"));
            }
            let values = change(&stored);
            let changed = values != *stored || !path.exists();
            if changed {
                file::write_atomic(&path, &text_of(plugin, &values)?)?;
            }
            Ok((values, changed))
        })
        .map_err(|e| self.paths.conceal(e))?;
        if changed {
            self.bus.publish(Event::SettingsChanged { plugin: plugin.to_string() });
        }
        Ok(values)
    }
}

/// The version of a set of values.
#[must_use]
pub fn etag_of(values: &Map<String, Value>) -> String {
    let digest = Sha256::digest(json::canonical(&Value::Object(values.clone())).as_bytes());
    digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

/// `stored` with a patch laid over it: `null` takes a key out.
#[must_use]
pub fn patched(stored: &Map<String, Value>, patch: &Map<String, Value>) -> Map<String, Value> {
    let mut values = stored.clone();
    for (key, value) in patch {
        if value.is_null() {
            values.shift_remove(key);
        } else {
            values.insert(key.clone(), value.clone());
        }
    }
    values
}

fn text_of(plugin: &str, values: &Map<String, Value>) -> Result<Vec<u8>> {
    let mut text =
        serde_json::to_vec_pretty(values).map_err(|e| Error::internal(format!("settings of `{plugin}`: {e}")))?;
    text.push(b'\n');
    if text.len() as u64 > MAX_BYTES {
        return Err(Error::new(
            Kind::TooLarge,
            format!("the settings of `{plugin}` would have {} bytes; at most {MAX_BYTES} are stored", text.len()),
        ));
    }
    // What could not be read back must not be written, or the next read would set the whole file aside.
    json::parse_bytes(&text)?;
    Ok(text)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::fs;
    use std::path::Path;

    fn store(root: &Path) -> Store {
        let paths = Paths::at(root);
        paths.ensure().unwrap();
        Store::new(paths, Clock::manual(1_700_000_000_000), Bus::default())
    }

    fn map(value: Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn a_patch_keeps_what_it_does_not_name() {
        let dir = tempfile::tempdir().unwrap();
        let store = store(dir.path());
        assert!(store.stored("dice").unwrap().is_empty());
        store.patch("dice", &map(json!({"sides": 20, "name": "d"})), None).unwrap();
        let now = store.patch("dice", &map(json!({"sides": 12, "extra": [1]})), None).unwrap();
        assert_eq!(now, map(json!({"sides": 12, "name": "d", "extra": [1]})));
        let now = store.patch("dice", &map(json!({"name": null, "never": null})), None).unwrap();
        assert_eq!(now, map(json!({"sides": 12, "extra": [1]})));
        assert_eq!(store.stored("dice").unwrap(), now);
        let text = fs::read_to_string(Paths::at(dir.path()).settings_file("dice")).unwrap();
        assert!(text.starts_with("{\n  \"sides\": 12"), "{text}");
    }

    #[test]
    fn a_stale_version_is_a_conflict_and_changes_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let (one, two) = (store(dir.path()), store(dir.path()));
        let version = one.etag("dice").unwrap();
        one.patch("dice", &map(json!({"a": 1})), Some(&version)).unwrap();
        for attempt in [
            two.patch("dice", &map(json!({"a": 2})), Some(&version)),
            two.replace("dice", map(json!({"b": 2})), Some(&version)),
        ] {
            assert_eq!(attempt.unwrap_err().kind(), Kind::Conflict);
        }
        assert_eq!(two.stored("dice").unwrap(), map(json!({"a": 1})));
        let version = two.etag("dice").unwrap();
        assert_eq!(two.replace("dice", map(json!({"b": 2})), Some(&version)).unwrap(), map(json!({"b": 2})));
    }

    #[test]
    fn a_version_is_of_the_values_not_of_their_order() {
        assert_eq!(
            etag_of(&map(json!({"a": 1, "b": {"x": 1, "y": 2}}))),
            etag_of(&map(json!({"b": {"y": 2, "x": 1}, "a": 1})))
        );
        assert_ne!(etag_of(&map(json!({"a": 1}))), etag_of(&map(json!({"a": 1.0}))));
    }

    #[test]
    fn writers_at_once_keep_each_others_keys() {
        let dir = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let root = dir.path();
                scope.spawn(move || {
                    let store = store(root);
                    for n in 0..10 {
                        store.patch("dice", &map(json!({ (format!("k{thread}_{n}")): n })), None).unwrap();
                    }
                });
            }
        });
        assert_eq!(store(dir.path()).stored("dice").unwrap().len(), 40);
    }

    #[test]
    fn a_change_is_told_once_and_no_change_is_not_told() {
        let dir = tempfile::tempdir().unwrap();
        let store = store(dir.path());
        let mut events = store.bus.subscribe();
        for _ in 0..3 {
            store.patch("dice", &map(json!({"a": 1})), None).unwrap();
        }
        assert_eq!(events.try_recv().unwrap(), Event::SettingsChanged { plugin: "dice".into() });
        assert!(events.try_recv().is_err());
        store.reset("dice").unwrap();
        store.reset("dice").unwrap();
        assert!(events.try_recv().is_ok() && events.try_recv().is_err());
        assert!(store.stored("dice").unwrap().is_empty());
    }

    #[test]
    fn a_corrupt_file_is_set_aside_and_defaults_are_in_force() {
        for content in ["{\"a\": 1,}", "[]", "{\"a\": 99999999999999999999}"] {
            let dir = tempfile::tempdir().unwrap();
            let store = store(dir.path());
            let mut events = store.bus.subscribe();
            let file = Paths::at(dir.path()).settings_file("dice");
            fs::write(&file, content).unwrap();
            assert!(store.stored("dice").unwrap().is_empty());
            assert_eq!(fs::read_to_string(file.with_file_name("dice.json.bad-20231114T221320")).unwrap(), content);
            let Event::Notice { subject, message } = events.try_recv().unwrap() else { panic!("a notice") };
            assert_eq!(subject, "user/webui/plugins/dice.json");
            assert!(!message.contains("999"), "{message}");
            store.patch("dice", &map(json!({"a": 2})), None).unwrap();
            assert_eq!(store.stored("dice").unwrap(), map(json!({"a": 2})));
        }
    }

    #[test]
    fn an_edit_by_hand_is_seen_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let store = store(dir.path());
        let file = Paths::at(dir.path()).settings_file("dice");
        for n in 0..5 {
            fs::write(&file, format!("\u{feff}{{\"a\": {n}}}")).unwrap();
            assert_eq!(store.stored("dice").unwrap(), map(json!({"a": n})));
        }
        fs::write(&file, "").unwrap();
        assert!(store.stored("dice").unwrap().is_empty());
        assert_eq!(fs::read_to_string(&file).unwrap(), "", "half of a save is not set aside");
    }

    #[test]
    fn what_could_not_be_read_back_is_not_written() {
        let dir = tempfile::tempdir().unwrap();
        let store = store(dir.path());
        assert_eq!(store.patch("dice", &map(json!({"a": u64::MAX})), None).unwrap_err().kind(), Kind::InvalidArguments);
        let big = json!("x".repeat(usize::try_from(MAX_BYTES).unwrap()));
        assert_eq!(store.patch("dice", &map(json!({"a": big})), None).unwrap_err().kind(), Kind::TooLarge);
        assert_eq!(store.patch("../dice", &map(json!({"a": 1})), None).unwrap_err().kind(), Kind::InvalidArguments);
        assert!(!Paths::at(dir.path()).settings_file("dice").exists());
    }
}
