//! What the owner granted to plugins: one JSON file, changed atomically, also by two processes at once.
//! It stores decisions; what a plugin holds because of them is the rule in `permissions.rs`.

use super::permissions::{self, Declared, Grants, Permission};
use super::quarantine;
use crate::base::clock::Clock;
use crate::base::error::{Error, Result, excerpt, io};
use crate::base::event::Bus;
use crate::base::file::{self, Stamp};
use crate::base::json;
use crate::base::paths::Paths;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// The file may have this many bytes.
const MAX_BYTES: u64 = 4 << 20;

/// One plugin's entry in the file. Words that this version does not know are kept and grant nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Record {
    /// Permissions granted as a whole.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub granted: BTreeSet<String>,
    /// Hosts granted to a plugin that asks for any host.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub hosts: BTreeSet<String>,
    /// Credentials it may use, by name.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub secrets: BTreeSet<String>,
    /// User folders it may read and write: name to absolute path.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub folders: BTreeMap<String, PathBuf>,
    /// Permissions taken away, also those it would hold without a grant.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub denied: BTreeSet<String>,
}

impl Record {
    /// A permission goes with its hosts or credentials, and also where it was held without a grant.
    fn take_away(&mut self, permission: Permission) {
        self.granted.remove(permission.as_str());
        self.denied.insert(permission.to_string());
        match permission {
            Permission::ExternalHttp => self.hosts.clear(),
            Permission::UseSecrets => self.secrets.clear(),
            _ => {}
        }
    }
}

/// One thing to grant or revoke.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Grant {
    /// A permission as a whole.
    Permission(Permission),
    /// Requests to one host (or `*.domain`), for a plugin that asks for any.
    Host(String),
    /// One credential.
    Secret(String),
    /// A folder of the user, which scripts reach as `files::root(name)`. The path does not matter when it is revoked.
    Folder {
        /// The name scripts use.
        name: String,
        /// An absolute path.
        path: PathBuf,
    },
}

impl Grant {
    /// Reads an argument of `grant` and `revoke`: `RUN_COMMANDS`, `EXTERNAL_HTTP=api.example.org,*.example.net`,
    /// `USE_SECRETS=name`, `folder:music=/home/me/Music` (or `folder:music`, to revoke).
    ///
    /// # Errors
    /// `invalid_arguments` naming the part that is wrong.
    pub fn parse(text: &str) -> Result<Vec<Grant>> {
        if let Some(rest) = text.strip_prefix("folder:") {
            let (name, path) = rest.split_once('=').unwrap_or((rest, ""));
            return Ok(vec![Grant::Folder { name: folder_name(name)?, path: PathBuf::from(path) }]);
        }
        let Some((word, names)) = text.split_once('=') else {
            return Ok(vec![Grant::Permission(Permission::read(text)?)]);
        };
        let names = names.split(',').map(str::trim);
        match Permission::read(word)? {
            Permission::ExternalHttp => names.map(|n| permissions::host_pattern(n).map(Grant::Host)).collect(),
            Permission::UseSecrets => names.map(|n| permissions::secret_name(n).map(Grant::Secret)).collect(),
            other => Err(Error::invalid(format!("`{other}` takes no list")).hint("write the word alone")),
        }
    }
}

fn folder_name(name: &str) -> Result<String> {
    let fits = !name.is_empty()
        && name.len() <= 64
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
    if fits {
        Ok(name.to_string())
    } else {
        let shown = excerpt(name, 80);
        Err(Error::invalid(format!("`{shown}` is not a folder's name"))
            .hint("1 to 64 letters, digits, `_` or `-`, as in folder:music=/home/me/Music"))
    }
}

/// What was last read, with the stamp that proves it is still true.
type Seen = (Stamp, Arc<Map<String, Value>>);

/// The file of grants.
pub struct GrantStore {
    paths: Paths,
    clock: Clock,
    bus: Bus,
    seen: Mutex<Option<Seen>>,
}

impl GrantStore {
    /// The grants of one installation. Reads nothing yet.
    #[must_use]
    pub fn new(paths: Paths, clock: Clock, bus: Bus) -> Self {
        GrantStore { paths, clock, bus, seen: Mutex::default() }
    }

    /// What `plugin` holds, given what it declares. Fails closed: a corrupt file is set aside and grants nothing, and one that
    /// cannot be read now gives nothing at all, because it may hold what was revoked.
    #[must_use]
    pub fn effective(&self, plugin: &str, declared: &Declared) -> Arc<Grants> {
        match self.record(plugin) {
            Ok(record) => Arc::new(permissions::effective(&record, declared)),
            Err(e) => {
                tracing::warn!(plugin, code = e.code(), "the grants could not be read");
                Arc::default()
            }
        }
    }

    /// What the owner decided about `plugin`.
    ///
    /// # Errors
    /// What the file system says.
    pub fn record(&self, plugin: &str) -> Result<Record> {
        let map = self.load()?;
        Ok(map.get(plugin).and_then(|entry| serde_json::from_value(entry.clone()).ok()).unwrap_or_default())
    }

    /// Grants one thing. Granting again changes nothing.
    ///
    /// # Errors
    /// `invalid_arguments` for a folder that is not one, is relative, or would let the plugin change the host's own files;
    /// what the file system says.
    pub fn grant(&self, plugin: &str, grant: &Grant) -> Result<()> {
        let mut folder = None;
        if let Grant::Folder { name, path } = grant {
            folder = Some((folder_name(name)?, self.checked_folder(path)?));
        }
        self.change(plugin, |record| {
            match grant {
                Grant::Permission(p) => {
                    record.granted.insert(p.to_string());
                    record.denied.remove(p.as_str());
                }
                Grant::Host(host) => {
                    record.hosts.insert(permissions::host_pattern(host)?);
                    record.denied.remove(Permission::ExternalHttp.as_str());
                }
                Grant::Secret(name) => {
                    record.secrets.insert(permissions::secret_name(name)?);
                    record.denied.remove(Permission::UseSecrets.as_str());
                }
                Grant::Folder { .. } => record.folders.extend(folder),
            }
            Ok(())
        })
    }

    /// Takes one thing away. A permission goes with its hosts or credentials, and also where it was held without a grant.
    ///
    /// # Errors
    /// `not_found` for a host, credential or folder that was not granted; what the file system says.
    pub fn revoke(&self, plugin: &str, grant: &Grant) -> Result<()> {
        self.change(plugin, |record| {
            let (what, found) = match grant {
                Grant::Permission(p) => {
                    record.take_away(*p);
                    return Ok(());
                }
                Grant::Host(host) => (host, record.hosts.remove(&permissions::host_pattern(host)?)),
                Grant::Secret(name) => (name, record.secrets.remove(name)),
                Grant::Folder { name, .. } => (name, record.folders.remove(name).is_some()),
            };
            if found {
                return Ok(());
            }
            let error = Error::not_found(format!("`{what}` was not granted to the plugin `{plugin}`"));
            Err(match grant {
                Grant::Host(_) => error.hint(format!(
                    "hosts that the plugin itself lists go with the whole permission: lapidary revoke {plugin} EXTERNAL_HTTP"
                )),
                _ => error,
            })
        })
    }

    /// Takes permissions away as one step, and gives what was decided before, for [`GrantStore::undo`].
    ///
    /// # Errors
    /// What the file system says.
    pub fn deny(&self, plugin: &str, denied: &[Permission]) -> Result<Record> {
        let mut before = Record::default();
        self.change(plugin, |record| {
            before = record.clone();
            denied.iter().for_each(|permission| record.take_away(*permission));
            Ok(())
        })?;
        Ok(before)
    }

    /// Puts decisions back as they were before a change that came to nothing.
    ///
    /// # Errors
    /// What the file system says.
    pub fn undo(&self, plugin: &str, before: Record) -> Result<()> {
        self.change(plugin, |record| {
            *record = before;
            Ok(())
        })
    }

    /// Forgets every decision about `plugin`, for an uninstall.
    ///
    /// # Errors
    /// What the file system says.
    pub fn forget(&self, plugin: &str) -> Result<()> {
        self.change(plugin, |record| {
            *record = Record::default();
            Ok(())
        })
    }

    /// Puts decisions back that an uninstall took away; those that were made since stay.
    ///
    /// # Errors
    /// What the file system says.
    pub fn put_back(&self, plugin: &str, old: Record) -> Result<()> {
        self.change(plugin, |record| {
            if *record == Record::default() {
                *record = old;
            }
            Ok(())
        })
    }

    /// The folder as it will be stored, or why a plugin must not have it.
    fn checked_folder(&self, path: &Path) -> Result<PathBuf> {
        if !path.is_absolute() {
            return Err(Error::invalid(format!("`{}` is not an absolute path", path.display()))
                .hint("write folder:music=/home/me/Music"));
        }
        let real = path.canonicalize().map_err(|e| io(format_args!("cannot use `{}`", path.display()), &e))?;
        if !real.is_dir() {
            return Err(Error::invalid(format!("`{}` is not a folder", path.display())));
        }
        let own = |folder: PathBuf| folder.canonicalize().unwrap_or(folder);
        let (user, webui) = (own(self.paths.user()), own(self.paths.user().join("webui")));
        let code = [self.paths.tools(), self.paths.plugins(), self.paths.scripts(), self.paths.stdlib()];
        let inside =
            code.into_iter().chain([self.paths.plugin_state()]).map(own).chain([webui]).any(|f| real.starts_with(f));
        if inside || user.starts_with(&real) {
            return Err(Error::invalid(format!("`{}` holds files of the host itself", path.display()))
                .hint("grant a folder that holds none of its scripts, settings, state or grants"));
        }
        Ok(real)
    }

    fn load(&self) -> Result<Arc<Map<String, Value>>> {
        let path = self.paths.grants_file();
        let Some(stamp) = Stamp::of(&path)? else { return Ok(Arc::default()) };
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, map)) = &*seen
            && *known == stamp
        {
            return Ok(Arc::clone(map));
        }
        let map = Arc::new(match parse(&file::read_capped(&path, MAX_BYTES)?) {
            Ok(map) => map,
            Err(fault) => {
                quarantine::set_aside(&path, &fault, &self.paths, &self.clock, &self.bus);
                return Ok(Arc::default());
            }
        });
        *seen = stamp.settled().then(|| (stamp, Arc::clone(&map)));
        Ok(map)
    }

    fn change(&self, plugin: &str, change: impl FnOnce(&mut Record) -> Result<()>) -> Result<()> {
        let path = self.paths.grants_file();
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)
                .map_err(|e| io(format_args!("cannot make the folder `{}`", folder.display()), &e))?;
        }
        file::update(&path, |old| {
            let mut map = match old.as_deref().map(parse) {
                None => Map::new(),
                Some(Ok(map)) => map,
                Some(Err(fault)) => {
                    quarantine::set_aside(&path, &fault, &self.paths, &self.clock, &self.bus);
                    Map::new()
                }
            };
            let mut record: Record =
                map.get(plugin).and_then(|entry| serde_json::from_value(entry.clone()).ok()).unwrap_or_default();
            change(&mut record)?;
            if record == Record::default() {
                map.shift_remove(plugin);
            } else {
                let entry = serde_json::to_value(&record).map_err(|e| Error::internal(format!("grants: {e}")))?;
                map.insert(plugin.to_string(), entry);
            }
            let mut text = serde_json::to_string_pretty(&map).map_err(|e| Error::internal(format!("grants: {e}")))?;
            text.push('\n');
            Ok(Some(text.into_bytes()))
        })
    }
}

fn parse(bytes: &[u8]) -> Result<Map<String, Value>, String> {
    match json::parse_file_text(bytes) {
        Ok(Value::Object(map)) => Ok(map),
        Ok(_) => Err("it is not a JSON object".into()),
        Err(e) => Err(format!("it is not valid JSON at {}", e.position())),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::base::error::Kind;
    use serde_json::json;

    fn store(dir: &Path) -> GrantStore {
        GrantStore::new(Paths::at(dir), Clock::manual(0), Bus::default())
    }

    fn declared(value: Value) -> Declared {
        Declared::parse(&value).unwrap()
    }

    fn grants(text: &str) -> Vec<Grant> {
        Grant::parse(text).unwrap()
    }

    #[test]
    fn what_is_granted_is_held_after_a_restart_and_gone_after_revoke() {
        let dir = tempfile::tempdir().unwrap();
        let asked = declared(json!(["RUN_COMMANDS", "EXTERNAL_HTTP"]));
        let holds = |p: Permission| store(dir.path()).effective("dice", &asked).allows(&p);
        assert!(!holds(Permission::RunCommands));
        store(dir.path()).grant("dice", &grants("RUN_COMMANDS")[0]).unwrap();
        for grant in grants("EXTERNAL_HTTP=a.example, *.b.example") {
            store(dir.path()).grant("dice", &grant).unwrap();
        }
        assert!(holds(Permission::RunCommands) && holds(Permission::ExternalHttp));
        let held = store(dir.path()).effective("dice", &asked);
        assert!(held.allows_host("x.b.example") && !held.allows_host("c.example"));
        store(dir.path()).revoke("dice", &grants("RUN_COMMANDS")[0]).unwrap();
        store(dir.path()).revoke("dice", &grants("EXTERNAL_HTTP=a.example")[0]).unwrap();
        assert!(!holds(Permission::RunCommands));
        let held = store(dir.path()).effective("dice", &asked);
        assert!(!held.allows_host("a.example") && held.allows_host("x.b.example"));
        assert!(!store(dir.path()).effective("other", &asked).allows(&Permission::ExternalHttp));
    }

    #[test]
    fn revoking_takes_implicit_powers_too_and_granting_gives_them_back() {
        let dir = tempfile::tempdir().unwrap();
        let store = store(dir.path());
        let asked = declared(json!([{"EXTERNAL_HTTP": ["a.example"]}]));
        let holds = || store.effective("p", &asked).allows_host("a.example");
        assert!(holds());
        let e = store.revoke("p", &Grant::Host("a.example".into())).unwrap_err();
        assert_eq!(e.kind(), Kind::NotFound);
        assert!(e.hint_text().unwrap().contains("revoke p EXTERNAL_HTTP"), "{e}");
        store.revoke("p", &Grant::Permission(Permission::ExternalHttp)).unwrap();
        assert!(!holds());
        store.grant("p", &Grant::Permission(Permission::ExternalHttp)).unwrap();
        assert!(holds());
        store.forget("p").unwrap();
        assert_eq!(store.record("p").unwrap(), Record::default());
    }

    #[test]
    fn what_is_denied_as_one_step_is_undone_as_one() {
        let dir = tempfile::tempdir().unwrap();
        let store = store(dir.path());
        store.grant("p", &Grant::Host("a.example".into())).unwrap();
        store.grant("p", &Grant::Permission(Permission::Spend)).unwrap();
        let before = store.record("p").unwrap();
        assert_eq!(store.deny("p", &[Permission::ExternalHttp, Permission::ReadNotes]).unwrap(), before);
        let after = store.record("p").unwrap();
        let denied: Vec<&str> = after.denied.iter().map(String::as_str).collect();
        assert_eq!((denied, after.hosts.len(), after.granted.len()), (vec!["EXTERNAL_HTTP", "READ_NOTES"], 0, 1));
        store.undo("p", before.clone()).unwrap();
        assert_eq!(store.record("p").unwrap(), before);
        let nothing = store.deny("new", &[Permission::ReadNotes]).unwrap();
        store.undo("new", nothing).unwrap();
        let text = std::fs::read_to_string(store.paths.grants_file()).unwrap();
        assert!(!text.contains("new"), "{text}");
    }

    #[test]
    fn two_stores_over_one_file_lose_nothing() {
        let dir = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let path = dir.path();
                scope.spawn(move || {
                    for n in 0..10 {
                        store(path).grant("p", &Grant::Host(format!("h{thread}-{n}.example"))).unwrap();
                    }
                });
            }
        });
        assert_eq!(store(dir.path()).record("p").unwrap().hosts.len(), 40);
    }

    #[test]
    fn a_corrupt_file_grants_nothing_and_is_set_aside() {
        for content in ["{\"dice\": {\"granted\": [\"RUN_COMMANDS\"", "[]", "\u{0}"] {
            let dir = tempfile::tempdir().unwrap();
            let paths = Paths::at(dir.path());
            paths.ensure().unwrap();
            std::fs::write(paths.grants_file(), content).unwrap();
            let bus = Bus::default();
            let mut events = bus.subscribe();
            let store = GrantStore::new(paths.clone(), Clock::manual(0), bus);
            let held = store.effective("dice", &declared(json!(["RUN_COMMANDS"])));
            assert!(!held.allows(&Permission::RunCommands));
            assert!(events.try_recv().is_ok());
            assert!(paths.grants_file().with_file_name("grants.json.bad-19700101T000000").exists());
        }
    }

    #[test]
    fn unknown_words_of_a_newer_version_survive() {
        let dir = tempfile::tempdir().unwrap();
        let store = store(dir.path());
        store.paths.ensure().unwrap();
        std::fs::write(store.paths.grants_file(), r#"{"p":{"granted":["FLY"]},"q":{"granted":["SPEND"]}}"#).unwrap();
        store.grant("p", &Grant::Permission(Permission::Spend)).unwrap();
        assert!(store.record("p").unwrap().granted.contains("FLY"));
        assert!(store.record("q").unwrap().granted.contains("SPEND"));
    }

    #[test]
    fn folders_of_the_host_itself_are_never_granted() {
        let dir = tempfile::tempdir().unwrap();
        let store = store(dir.path());
        store.paths.ensure().unwrap();
        let music = dir.path().join("Music");
        let notes = store.paths.user().join("notes");
        for folder in [&music, &notes] {
            std::fs::create_dir_all(folder).unwrap();
            store.grant("p", &Grant::Folder { name: "f".into(), path: folder.clone() }).unwrap();
            let held = store.effective("p", &Declared::default());
            assert_eq!(held.folder("f"), Some(folder.canonicalize().unwrap().as_path()));
        }
        std::fs::write(dir.path().join("file"), "").unwrap();
        let absolute = [
            store.paths.user(),
            store.paths.tools(),
            store.paths.plugin_state(),
            store.paths.webui_plugins(),
            dir.path().to_path_buf(),
            PathBuf::from("/"),
            dir.path().join("file"),
        ];
        for path in absolute.into_iter().chain(["relative".into(), PathBuf::new()]) {
            let e = store.grant("p", &Grant::Folder { name: "g".into(), path: path.clone() }).unwrap_err();
            assert_eq!(e.kind(), Kind::InvalidArguments, "{}: {e}", path.display());
        }
        store.revoke("p", &grants("folder:f")[0]).unwrap();
        assert_eq!(store.effective("p", &Declared::default()).folder("f"), None);
    }

    #[test]
    fn arguments_of_grant_are_read_or_refused() {
        assert_eq!(grants("USE_SECRETS=a,b"), [Grant::Secret("a".into()), Grant::Secret("b".into())]);
        assert_eq!(grants("folder:m=/x=y"), [Grant::Folder { name: "m".into(), path: "/x=y".into() }]);
        for bad in [
            "",
            "NOPE",
            "RUN_COMMANDS=x",
            "EXTERNAL_HTTP=",
            "EXTERNAL_HTTP=http://x",
            "folder:",
            "folder:a b=/x",
            "USE_SECRETS=a,,b",
        ] {
            assert_eq!(Grant::parse(bad).unwrap_err().kind(), Kind::InvalidArguments, "{bad}");
        }
    }
}
