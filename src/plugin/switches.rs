//! Which plugins the owner switched on and off: `user/webui/plugins.json`. Knows names, not plugins.

use crate::base::clock::Clock;
use crate::base::error::{Error, Kind, Result, io};
use crate::base::event::{Bus, Event};
use crate::base::paths::{Paths, valid_plugin_name};
use crate::base::{file, json};
use crate::service::quarantine;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::path::Path;

/// The file holds names; more than this is not ours.
const MAX_BYTES: u64 = 4 << 20;
const ENABLED: &str = "enabled";
const DISABLED: &str = "disabled";

/// The owner's word on plugins. A plugin that it does not name follows its own manifest.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Switches {
    enabled: BTreeSet<String>,
    disabled: BTreeSet<String>,
}

impl Switches {
    /// Reads the file. One that is no JSON object is set aside with a notice, and the manifests' own defaults hold.
    ///
    /// # Errors
    /// When the file is there and cannot be read.
    pub fn load(paths: &Paths, clock: &Clock, bus: &Bus) -> Result<Switches> {
        let path = paths.plugins_json();
        // Without the lock: a start on a read-only disk must work, and a whole file is all that can be seen.
        let map = match read(&path)? {
            Read::Object(map) => map,
            Read::Nothing => Map::new(),
            // Under the lock: somebody may have mended it since.
            Read::Broken(_) => file::with_lock(&path, || read_or_set_aside(paths, clock, bus))?,
        };
        Ok(Switches::of(&map, paths, bus))
    }

    /// Whether a plugin runs; its manifest's `default_enabled` counts only where the owner said nothing.
    #[must_use]
    pub fn is_enabled(&self, name: &str, default_enabled: bool) -> bool {
        self.enabled.contains(name) || (default_enabled && !self.disabled.contains(name))
    }

    /// What the owner said about a plugin: on, off, or nothing.
    #[must_use]
    pub fn said(&self, name: &str) -> Option<bool> {
        if self.enabled.contains(name) {
            return Some(true);
        }
        self.disabled.contains(name).then_some(false)
    }

    /// Switches a plugin on for good and gives the whole state after that. Other keys of the file stay.
    ///
    /// # Errors
    /// `invalid_arguments` for what cannot be a plugin's name, or what the file system says; nothing was changed then.
    pub fn enable(paths: &Paths, clock: &Clock, bus: &Bus, name: &str) -> Result<Switches> {
        set(paths, clock, bus, name, ENABLED, DISABLED)
    }

    /// Switches a plugin off for good, also one that is on by default.
    ///
    /// # Errors
    /// As [`Switches::enable`].
    pub fn disable(paths: &Paths, clock: &Clock, bus: &Bus, name: &str) -> Result<Switches> {
        set(paths, clock, bus, name, DISABLED, ENABLED)
    }

    /// Forgets what the owner said about a plugin, so that its manifest decides again.
    ///
    /// # Errors
    /// As [`Switches::enable`].
    pub fn forget(paths: &Paths, clock: &Clock, bus: &Bus, name: &str) -> Result<Switches> {
        change(paths, clock, bus, |map| {
            remove(map, ENABLED, name);
            remove(map, DISABLED, name);
        })
    }

    fn of(map: &Map<String, Value>, paths: &Paths, bus: &Bus) -> Switches {
        let notice =
            |message: String| bus.publish(Event::Notice { subject: paths.shown(&paths.plugins_json()), message });
        let names = |key: &str| -> BTreeSet<String> {
            let list = match map.get(key) {
                None => return BTreeSet::new(),
                Some(Value::Array(list)) => list.as_slice(),
                Some(_) => {
                    notice(format!("`{key}` is not a list of plugin names and is not used"));
                    &[]
                }
            };
            if list.iter().any(|v| !v.is_string()) {
                notice(format!("`{key}` holds something that is not a plugin name; that is not used"));
            }
            list.iter().filter_map(Value::as_str).map(str::to_owned).collect()
        };
        Switches { enabled: names(ENABLED), disabled: names(DISABLED) }
    }
}

enum Read {
    Object(Map<String, Value>),
    Nothing,
    Broken(String),
}

fn read(path: &Path) -> Result<Read> {
    let bytes = match file::read_capped(path, MAX_BYTES) {
        Ok(bytes) => bytes,
        Err(e) if e.kind() == Kind::NotFound => return Ok(Read::Nothing),
        Err(e) if e.kind() == Kind::TooLarge => return Ok(Read::Broken(e.message().to_owned())),
        Err(e) => return Err(e),
    };
    // An editor that saves in place leaves an empty file for a moment.
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Ok(Read::Nothing);
    }
    Ok(match json::parse_file_text(&bytes) {
        Ok(Value::Object(map)) => Read::Object(map),
        Ok(_) => Read::Broken("it is not a JSON object".to_owned()),
        Err(e) => Read::Broken(format!("{}, {}", e.message, e.position())),
    })
}

fn set(paths: &Paths, clock: &Clock, bus: &Bus, name: &str, into: &str, out_of: &str) -> Result<Switches> {
    valid_plugin_name(name)?;
    change(paths, clock, bus, |map| {
        remove(map, out_of, name);
        let list = map.entry(into).or_insert_with(|| json!([]));
        if !list.is_array() {
            *list = json!([]);
        }
        if let Some(list) = list.as_array_mut()
            && !list.iter().any(|v| v == name)
        {
            list.push(name.into());
        }
    })
}

fn remove(map: &mut Map<String, Value>, key: &str, name: &str) {
    if let Some(list) = map.get_mut(key).and_then(Value::as_array_mut) {
        list.retain(|v| v != name);
    }
}

/// The caller holds the lock.
fn read_or_set_aside(paths: &Paths, clock: &Clock, bus: &Bus) -> Result<Map<String, Value>> {
    let path = paths.plugins_json();
    Ok(match read(&path)? {
        Read::Object(map) => map,
        Read::Nothing => Map::new(),
        Read::Broken(why) => {
            quarantine::set_aside(&path, &why, paths, clock, bus);
            Map::new()
        }
    })
}

/// Reads, changes and writes as one step, in this process and across processes.
fn change(paths: &Paths, clock: &Clock, bus: &Bus, edit: impl FnOnce(&mut Map<String, Value>)) -> Result<Switches> {
    let path = paths.plugins_json();
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(|e| io(format_args!("cannot make `{}`", folder.display()), &e))?;
    }
    file::with_lock(&path, || {
        let before = read_or_set_aside(paths, clock, bus)?;
        let mut after = before.clone();
        edit(&mut after);
        if after != before {
            let mut text = serde_json::to_string_pretty(&after).map_err(|e| Error::internal(e.to_string()))?;
            text.push('\n');
            file::write_atomic(&path, text.as_bytes())?;
        }
        Ok(Switches::of(&after, paths, bus))
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::fs;

    struct World {
        _dir: tempfile::TempDir,
        paths: Paths,
        clock: Clock,
        bus: Bus,
    }

    fn world() -> World {
        let dir = tempfile::tempdir().unwrap();
        let paths = Paths::at(dir.path());
        paths.ensure().unwrap();
        World { _dir: dir, paths, clock: Clock::manual(1_796_031_295_000), bus: Bus::default() }
    }

    impl World {
        fn load(&self) -> (Switches, Vec<(String, String)>) {
            self.saying(|| Switches::load(&self.paths, &self.clock, &self.bus).unwrap())
        }

        fn enable(&self, name: &str) -> Switches {
            Switches::enable(&self.paths, &self.clock, &self.bus, name).unwrap()
        }

        fn disable(&self, name: &str) -> Switches {
            Switches::disable(&self.paths, &self.clock, &self.bus, name).unwrap()
        }

        fn saying<T>(&self, work: impl FnOnce() -> T) -> (T, Vec<(String, String)>) {
            let mut events = self.bus.subscribe();
            let value = work();
            let mut said = Vec::new();
            while let Ok(Event::Notice { subject, message }) = events.try_recv() {
                said.push((subject, message));
            }
            (value, said)
        }
    }

    #[test]
    fn the_owner_wins_over_the_default_and_on_over_off() {
        let w = world();
        fs::write(w.paths.plugins_json(), r#"{"enabled":["on","both"],"disabled":["off","both"]}"#).unwrap();
        let (s, notices) = w.load();
        assert!(notices.is_empty());
        let rows = [
            ("on", true, true),
            ("on", false, true),
            ("off", true, false),
            ("off", false, false),
            ("both", true, true),
            ("both", false, true),
            ("unnamed", true, true),
            ("unnamed", false, false),
        ];
        for (name, default, expected) in rows {
            assert_eq!(s.is_enabled(name, default), expected, "{name} {default}");
        }
    }

    #[test]
    fn a_missing_file_says_nothing() {
        let w = world();
        let (s, notices) = w.load();
        assert_eq!((s, notices.len()), (Switches::default(), 0));
        assert!(!w.paths.plugins_json().exists());
        fs::write(w.paths.plugins_json(), " \n").unwrap();
        assert_eq!(w.load(), (Switches::default(), vec![]));
        assert!(w.paths.plugins_json().exists(), "half of a save is not set aside");
    }

    #[test]
    fn switching_keeps_everything_else_in_the_file() {
        let w = world();
        let path = w.paths.plugins_json();
        fs::write(&path, r#"{"order":[3,1],"enabled":["a",7],"disabled":["dice"],"note":"mine"}"#).unwrap();
        let s = w.enable("dice");
        assert!(s.is_enabled("dice", false));
        let v: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        assert_eq!(v, json!({"order":[3,1],"enabled":["a",7,"dice"],"disabled":[],"note":"mine"}));
        let s = w.disable("dice");
        assert!(!s.is_enabled("dice", true));
        let v: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        assert_eq!(v, json!({"order":[3,1],"enabled":["a",7],"disabled":["dice"],"note":"mine"}));
        let s = Switches::forget(&w.paths, &w.clock, &w.bus, "dice").unwrap();
        assert!(s.is_enabled("dice", true) && !s.is_enabled("dice", false));
    }

    #[test]
    fn a_change_that_changes_nothing_leaves_the_file_alone() {
        let w = world();
        let path = w.paths.plugins_json();
        fs::write(&path, r#"{ "enabled": ["dice"] }"#).unwrap();
        w.enable("dice");
        assert_eq!(fs::read_to_string(&path).unwrap(), r#"{ "enabled": ["dice"] }"#);
    }

    #[test]
    fn a_corrupt_file_is_kept_aside_and_reported() {
        for (broken, why) in [("{\"enabled\":[", "ends too early"), ("[]", "not a JSON object"), ("\u{0}", "line 1")] {
            let w = world();
            let path = w.paths.plugins_json();
            fs::write(&path, broken).unwrap();
            let (s, notices) = w.load();
            assert_eq!(s, Switches::default());
            assert_eq!(notices.len(), 1);
            assert_eq!(notices[0].0, "user/webui/plugins.json");
            assert!(notices[0].1.contains(why), "{broken:?}: {}", notices[0].1);
            assert!(!path.exists());
            let aside = path.with_file_name("plugins.json.bad-20261130T093455");
            assert_eq!(fs::read_to_string(&aside).unwrap(), broken);
            let (_, notices) = w.load();
            assert!(notices.is_empty(), "once is enough");
        }
    }

    #[test]
    fn a_second_corrupt_file_does_not_replace_the_first_one_kept() {
        let w = world();
        let path = w.paths.plugins_json();
        for text in ["one", "two"] {
            fs::write(&path, text).unwrap();
            let (s, notices) = w.saying(|| w.disable("dice"));
            assert!(!s.is_enabled("dice", true));
            assert_eq!(notices.len(), 1);
        }
        let stem = "plugins.json.bad-20261130T093455";
        assert_eq!(fs::read_to_string(path.with_file_name(stem)).unwrap(), "one");
        assert_eq!(fs::read_to_string(path.with_file_name(format!("{stem}-2"))).unwrap(), "two");
    }

    #[test]
    fn odd_entries_are_said_and_the_rest_is_used() {
        let w = world();
        fs::write(w.paths.plugins_json(), "\u{feff}{\"enabled\":[\"a\",1],\"disabled\":\"b\"}").unwrap();
        let (s, notices) = w.load();
        assert!(s.is_enabled("a", false) && s.is_enabled("b", true));
        assert_eq!(notices.len(), 2);
        let s = w.disable("b");
        assert!(!s.is_enabled("b", true));
    }

    #[test]
    fn a_name_that_is_no_plugin_is_refused() {
        let w = world();
        assert!(Switches::enable(&w.paths, &w.clock, &w.bus, "../x").is_err());
        assert!(!w.paths.plugins_json().exists());
    }

    #[test]
    fn many_writers_lose_nothing() {
        let w = world();
        std::thread::scope(|scope| {
            for t in 0..4 {
                let w = &w;
                scope.spawn(move || {
                    for i in 0..20 {
                        w.enable(&format!("p{t}x{i}"));
                    }
                });
            }
        });
        let s = w.load().0;
        assert_eq!(s.enabled.len(), 80);
    }
}
