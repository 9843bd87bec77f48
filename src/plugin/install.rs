//! Plugins that come from elsewhere: looked at, put in their place whole, and remembered with where they came from. And plugins
//! as one file, to give away. Installing grants nothing: it may only take away, and the rest waits for the owner as everywhere.

use super::consent::Power;
use super::discover::{self, Found, Location, MANIFEST, Origin};
use super::package::{self, Form, Package};
use super::set::Plugins;
use super::status::Status;
use super::{edit, scaffold};
use crate::base::error::{Error, Kind, Result, io};
use crate::base::paths::Paths;
use crate::base::{file, json};
use crate::script::diagnostic::{Diagnostic, Severity};
use crate::service::permissions::{Permission, Reach};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The record of what was installed may have this many bytes.
const MAX_RECORD: u64 = 16 << 20;

/// Where a plugin comes from.
#[derive(Debug, Clone)]
pub struct Source {
    /// What a person knows it by: a file's name.
    pub from: String,
    /// The way it came: `file`, `folder`, `zip` or `upload`.
    pub method: &'static str,
}

/// On what terms a plugin is let in.
#[derive(Debug, Clone, Default)]
pub struct Terms {
    /// What becomes of a plugin of the same name.
    pub existing: Existing,
    /// What it shall not do, also of what it would hold without a grant. It is taken away before the plugin is in its place, so
    /// that there is no moment in which it could.
    pub denied: Vec<Permission>,
}

/// What becomes of a plugin of the same name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Existing {
    /// It stays, and the new one is refused.
    #[default]
    Keep,
    /// The new one takes its place; its settings and state stay, and its files are kept for a while.
    Replace,
}

/// What would come with a plugin.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Arrival {
    /// Its name.
    pub name: String,
    /// `tool` for one file, `plugin` for a folder.
    pub kind: &'static str,
    /// Its version, where it states one.
    pub version: Option<String>,
    /// Its files.
    pub files: Vec<ArrivingFile>,
    /// Its tools, as far as they would load.
    pub tools: Vec<ArrivingTool>,
    /// What it asks for, in words.
    pub permissions: Vec<Power>,
    /// Hosts that it lists: those it may talk to at once.
    pub hosts: Vec<String>,
    /// The plugin whose place it would take.
    pub replaces: Option<Replaced>,
    /// What is wrong with it, and what should be looked at.
    pub diagnostics: Vec<Diagnostic>,
}

impl Arrival {
    /// Whether it could not be installed as it is.
    #[must_use]
    pub fn is_broken(&self) -> bool {
        self.diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error)
    }
}

/// One file of a plugin that may come.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ArrivingFile {
    /// Its path inside the plugin.
    pub path: String,
    /// Its size.
    pub bytes: u64,
}

/// One tool of a plugin that may come.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ArrivingTool {
    /// Its name.
    pub name: String,
    /// What it does.
    pub description: String,
}

/// A plugin whose place another would take.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Replaced {
    /// Its version, where it states one.
    pub version: Option<String>,
    /// Whether it was changed since it was installed, or was written here.
    pub is_edited: bool,
    /// Where it lies.
    pub place: String,
}

/// What is remembered of a plugin that was installed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Record {
    from: String,
    method: String,
    at: String,
    version: Option<String>,
    /// SHA-256 of each file, by its path.
    files: BTreeMap<String, String>,
}

/// Where a plugin was installed from, and whether it is still what came.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Installed {
    /// What it came as: a file's name.
    pub from: String,
    /// The way it came: `file`, `folder`, `zip` or `upload`.
    pub method: String,
    /// When, RFC 3339 in UTC.
    pub at: String,
    /// The version that came.
    pub version: Option<String>,
    /// Files that were changed, added or deleted since.
    pub edited: Vec<String>,
}

/// A plugin as one file.
#[derive(Debug, Clone)]
pub struct Download {
    /// What the file is called.
    pub file_name: String,
    /// Its media type.
    pub media_type: &'static str,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

impl Plugins {
    /// What installing a package would bring. Its top level is run as at every load; nothing stays written, and nothing that is
    /// live changes. Runs builds: not for a runtime thread.
    ///
    /// # Errors
    /// What the file system says. What is wrong with the plugin is in the answer.
    pub fn look_at(self: &Arc<Self>, package: &Package) -> Result<Arrival> {
        let staged = Staged::write(&self.loader.services.paths, package)?;
        let mut arrival = Arrival {
            name: package.name.clone(),
            kind: match package.form {
                Form::Single => "tool",
                Form::Folder => "plugin",
            },
            version: package.version.clone(),
            files: package
                .files
                .iter()
                .map(|(path, bytes)| ArrivingFile { path: path.clone(), bytes: bytes.len() as u64 })
                .collect(),
            tools: Vec::new(),
            permissions: Vec::new(),
            hosts: Vec::new(),
            replaces: None,
            diagnostics: Vec::new(),
        };
        match self.check(&staged.found) {
            Ok(generation) => {
                arrival.tools = generation
                    .tools()
                    .map(|spec| ArrivingTool { name: spec.name.clone(), description: spec.description.clone() })
                    .collect();
                arrival.permissions = self.asked_by(&staged.found, &generation.declared);
                if let Reach::Listed(hosts) = generation.declared.hosts() {
                    arrival.hosts = hosts.iter().cloned().collect();
                }
                let broken = generation.broken.values().flatten();
                let left_out = generation.quarantined.iter().map(|q| &q.diagnostic);
                arrival.diagnostics = broken.chain(left_out).chain(&generation.warnings).cloned().collect();
            }
            Err(diagnostics) => arrival.diagnostics = diagnostics,
        }
        for diagnostic in &mut arrival.diagnostics {
            diagnostic.file = staged.plain(&diagnostic.file);
            diagnostic.message = staged.plain(&diagnostic.message);
        }
        match self.in_the_way(package) {
            Ok(Some(found)) => arrival.replaces = Some(self.replaced(&found)),
            Ok(None) => {}
            Err(e) => arrival.diagnostics.insert(0, Diagnostic::from_error("conflict", &package.name, &e)),
        }
        Ok(arrival)
    }

    /// Puts a plugin in its place and loads it. Settings and state of one that it replaces stay. Runs builds: not for a runtime
    /// thread.
    ///
    /// # Errors
    /// `conflict` where a plugin of that name is there (with both versions) or shipped, or a tool's name belongs to another;
    /// `invalid_arguments` for one that would not load. Nothing was changed then.
    pub fn install(self: &Arc<Self>, package: &Package, source: &Source, terms: &Terms) -> Result<Status> {
        let (paths, grants) = (&self.loader.services.paths, &self.loader.services.grants);
        let old = self.in_the_way(package)?;
        if let Some(old) = old.as_ref().filter(|_| terms.existing == Existing::Keep) {
            return Err(self.is_there(package, old));
        }
        let staged = Staged::write(paths, package)?;
        if let Err(diagnostics) = self.check(&staged.found) {
            let first = diagnostics.iter().find(|d| d.severity == Severity::Error).or(diagnostics.first());
            let told = first.map(|d| staged.plain(&d.summary())).unwrap_or_default();
            let kind =
                if first.is_some_and(|d| d.code == "conflict") { Kind::Conflict } else { Kind::InvalidArguments };
            return Err(
                Error::new(kind, format!("`{}` would not load: {told}", package.name)).hint("nothing was installed")
            );
        }
        let before = match terms.denied.as_slice() {
            [] => None,
            denied => Some(grants.deny(&package.name, denied)?),
        };
        if let Err(e) = self.put_in_place(package, staged, old.as_ref()) {
            if let Some(before) = before {
                let _ = grants.undo(&package.name, before);
            }
            return Err(e);
        }
        let record = Record {
            from: source.from.chars().filter(|c| !c.is_control()).take(200).collect(),
            method: source.method.to_owned(),
            at: utc(self.loader.services.clock.unix_ms()),
            version: package.version.clone(),
            files: package.files.iter().map(|(path, bytes)| (path.clone(), edit::version(bytes))).collect(),
        };
        remember(paths, &package.name, serde_json::to_value(record).ok())?;
        self.load_new(&package.name)
    }

    /// Moves a package to its place, and what was there away.
    fn put_in_place(self: &Arc<Self>, package: &Package, staged: Staged, old: Option<&Found>) -> Result<()> {
        let paths = &self.loader.services.paths;
        let aside = old.map(|old| self.put_aside(old)).transpose()?;
        staged.place(paths, package).inspect_err(|_| {
            if let Some(aside) = aside {
                aside.undo(paths);
            }
        })
    }

    /// A plugin's files as a plugin of the owner's own: under the same name where it takes a shipped one's place, else under a
    /// new one. Runs builds: not for a runtime thread.
    ///
    /// # Errors
    /// `not_found` for a plugin that nobody knows, `conflict` where the name is taken, `invalid_arguments` for one that is none.
    pub fn copy(self: &Arc<Self>, name: &str, new_name: Option<&str>) -> Result<Status> {
        let found = self.known(name)?;
        let new_name = new_name.map_or_else(|| Ok(name.to_owned()), scaffold::plugin_name)?;
        let paths = &self.loader.services.paths;
        let (tool, folder) = (paths.tools().join(format!("{new_name}.rhai")), paths.plugins().join(&new_name));
        let taken = [&tool, &folder].into_iter().find(|place| fs::symlink_metadata(place).is_ok());
        if let Some(place) = taken {
            return Err(Error::new(Kind::Conflict, format!("`{}` is there already", paths.shown(place)))
                .hint("give the copy another name"));
        }
        if new_name != name
            && let Some(other) = self.names().into_iter().find(|other| other.eq_ignore_ascii_case(&new_name))
        {
            return Err(Error::new(Kind::Conflict, format!("there is a plugin `{other}` already"))
                .hint("give the copy another name"));
        }
        let mut files = self.all_files(&found)?;
        let form = if found.single_file().is_some() { Form::Single } else { Form::Folder };
        match form {
            Form::Single => files.iter_mut().for_each(|(path, _)| *path = format!("{new_name}.rhai")),
            Form::Folder if new_name != name => {
                for (_, bytes) in files.iter_mut().filter(|(path, _)| path == MANIFEST) {
                    *bytes = renamed(bytes, &new_name)?;
                }
            }
            Form::Folder => {}
        }
        let package = Package { name: new_name.clone(), form, version: None, files };
        Staged::write(paths, &package)?.place(paths, &package)?;
        self.load_new(&new_name)
    }

    /// A plugin as one file to give away: the script, or a zip of the folder. What belongs to this installation, such as settings
    /// and state, is not in it.
    ///
    /// # Errors
    /// `not_found`, `too_large`, and what the file system says.
    pub fn download(&self, name: &str) -> Result<Download> {
        let found = self.known(name)?;
        let files = self.all_files(&found)?;
        match (found.single_file(), files.as_slice()) {
            (Some(file_name), [(_, bytes)]) => {
                Ok(Download { file_name, media_type: "text/plain; charset=utf-8", bytes: bytes.clone() })
            }
            _ => Ok(Download {
                file_name: format!("{name}.zip"),
                media_type: "application/zip",
                bytes: package::packed(name, &files)?,
            }),
        }
    }

    /// Where a plugin was installed from, and what of it was changed since; nothing for one that was written here.
    ///
    /// # Errors
    /// `not_found` for a plugin that nobody knows; what the file system says.
    pub fn installed(&self, name: &str) -> Result<Option<Installed>> {
        let found = self.known(name)?;
        let Some(record) = recorded(&self.loader.services.paths, name)? else { return Ok(None) };
        let mut now: BTreeMap<String, String> =
            self.all_files(&found)?.into_iter().map(|(path, bytes)| (path, edit::version(&bytes))).collect();
        let mut edited: Vec<String> = Vec::new();
        for (path, version) in &record.files {
            if now.remove(path).as_ref() != Some(version) {
                edited.push(path.clone());
            }
        }
        edited.extend(now.into_keys());
        edited.sort();
        let Record { from, method, at, version, .. } = record;
        Ok(Some(Installed { from, method, at, version, edited }))
    }

    fn load_new(self: &Arc<Self>, name: &str) -> Result<Status> {
        self.rescan();
        self.refresh(&[name.into()]);
        self.status(name).ok_or_else(|| self.unknown(name))
    }

    /// Every file of a plugin with its bytes, without litter.
    fn all_files(&self, found: &Found) -> Result<Vec<(String, Vec<u8>)>> {
        let stock = &*self.loader.stock;
        let mut files = Vec::new();
        let mut total = 0;
        for path in discover::list_plugin_files(stock, found)? {
            let bytes = discover::read_plugin_file(stock, found, &path)?;
            total += bytes.len();
            if total > 2 * package::MAX_PACKED {
                return Err(Error::new(
                    Kind::TooLarge,
                    format!("the files of `{}` are too large for one file", found.name),
                ));
            }
            files.push((path, bytes));
        }
        Ok(files)
    }

    /// The owner's plugin whose place a package would take.
    ///
    /// # Errors
    /// `conflict` for one that is not the owner's to replace, or that has the same name in other letters.
    fn in_the_way(&self, package: &Package) -> Result<Option<Found>> {
        let name = &package.name;
        let conflict = |told: String, hint: &str| Err(Error::new(Kind::Conflict, told).hint(hint));
        let other = self.names().into_iter().find(|other| other.eq_ignore_ascii_case(name));
        let Some(found) = other.and_then(|other| self.found(&other)) else {
            // What is no plugin may stand in the place of one.
            let paths = &self.loader.services.paths;
            let place = match package.form {
                Form::Single => paths.tools().join(format!("{name}.rhai")),
                Form::Folder => paths.plugins().join(name),
            };
            if fs::symlink_metadata(&place).is_ok() {
                return conflict(
                    format!("`{}` is there already, and no plugin", paths.shown(&place)),
                    "look at what it is, and move it away",
                );
            }
            return Ok(None);
        };
        if found.name != *name {
            return conflict(
                format!("`{name}` would be the same name as the plugin `{}`", found.name),
                "two names that differ in case only share their files on many systems",
            );
        }
        match found.origin {
            Origin::Shipped => conflict(
                format!("`{name}` is a shipped plugin"),
                "what is installed has a name of its own; to change a shipped plugin, make a copy of it",
            ),
            Origin::Extra => conflict(
                format!("`{name}` is loaded from {}", found.place()),
                "it was named where the host was started, and is changed there",
            ),
            Origin::UserFolder | Origin::SingleFile => Ok(Some(found)),
        }
    }

    fn is_there(&self, package: &Package, old: &Found) -> Error {
        let version = |version: Option<String>| version.map_or_else(String::new, |version| format!(" {version}"));
        let replaced = self.replaced(old);
        let edited = if replaced.is_edited { ", with changes of your own" } else { "" };
        Error::new(
            Kind::Conflict,
            format!(
                "`{}`{} is there already{edited}; this is{}",
                package.name,
                version(replaced.version),
                package.version.as_ref().map_or_else(|| " another".to_owned(), |v| format!(" {v}")),
            ),
        )
        .hint("install it with `force` to put it in that one's place: settings and state stay, and its files are kept for 30 days")
    }

    fn replaced(&self, old: &Found) -> Replaced {
        let installed = self.installed(&old.name).ok().flatten();
        Replaced {
            version: self.status(&old.name).and_then(|status| status.version),
            is_edited: installed.is_none_or(|installed| !installed.edited.is_empty()),
            place: old.place(),
        }
    }
}

fn renamed(manifest: &[u8], name: &str) -> Result<Vec<u8>> {
    let Ok(Value::Object(mut map)) = json::parse_file_text(manifest).map_err(|e| e.position()) else {
        return Err(Error::invalid("its plugin.json is no JSON object, so it gets no other name"));
    };
    map.insert("name".to_owned(), name.into());
    serde_json::to_vec_pretty(&map).map_err(|e| Error::internal(e.to_string()))
}

/// A moment in milliseconds since 1970-01-01 UTC, as RFC 3339.
pub(super) fn utc(unix_ms: i64) -> String {
    jiff::Timestamp::from_millisecond(unix_ms).unwrap_or_default().to_string()
}

fn record_file(paths: &Paths) -> PathBuf {
    paths.user().join("webui").join("installed.json")
}

fn recorded(paths: &Paths, name: &str) -> Result<Option<Record>> {
    Ok(remembered(paths, name)?.and_then(|value| serde_json::from_value(value).ok()))
}

/// What is remembered of a plugin that was installed.
pub(super) fn remembered(paths: &Paths, name: &str) -> Result<Option<Value>> {
    match file::read_capped(&record_file(paths), MAX_RECORD) {
        // A file that cannot be read tells of nothing.
        Ok(bytes) => Ok(json::parse_object(&bytes).ok().and_then(|mut map| map.shift_remove(name))),
        Err(e) if e.kind() == Kind::NotFound => Ok(None),
        Err(e) => Err(e),
    }
}

/// Remembers something of a plugin, or forgets it.
pub(super) fn remember(paths: &Paths, name: &str, value: Option<Value>) -> Result<()> {
    let path = record_file(paths);
    if value.is_none() && !path.exists() {
        return Ok(());
    }
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(|e| io(format_args!("cannot make `{}`", folder.display()), &e))?;
    }
    file::update(&path, |old| {
        let mut map = old.and_then(|bytes| json::parse_object(&bytes).ok()).unwrap_or_default();
        match value {
            Some(value) => map.insert(name.to_owned(), value),
            None => map.shift_remove(name),
        };
        let mut text = serde_json::to_string_pretty(&map).map_err(|e| Error::internal(e.to_string()))?;
        text.push('\n');
        Ok(Some(text.into_bytes()))
    })
}

/// A package in a hidden folder beside its place, where a running host does not look. Gone when it is dropped.
struct Staged {
    folder: PathBuf,
    found: Found,
    shown: String,
}

impl Staged {
    fn write(paths: &Paths, package: &Package) -> Result<Staged> {
        let folder = paths.plugins().join(format!(".{}.{:08x}.new", package.name, fastrand::u32(..)));
        let (location, origin, home) = match package.form {
            Form::Single => {
                (Location::File(folder.join(format!("{}.rhai", package.name))), Origin::SingleFile, folder.clone())
            }
            Form::Folder => {
                let home = folder.join(&package.name);
                (Location::Folder(home.clone()), Origin::UserFolder, home)
            }
        };
        let found = Found { name: package.name.clone(), origin, location, root: paths.root().to_path_buf() };
        let staged = Staged { shown: format!("{}/", paths.shown(&folder)), folder, found };
        for (path, bytes) in &package.files {
            let target = file::confine(&home, path)?;
            if let Some(folder) = target.parent() {
                fs::create_dir_all(folder)
                    .map_err(|e| io(format_args!("cannot make `{}`", paths.shown(folder)), &e))?;
            }
            file::write_atomic(&target, bytes)?;
        }
        Ok(staged)
    }

    /// A text of a diagnostic, without the place that nobody knows.
    fn plain(&self, text: &str) -> String {
        text.replace(&self.shown, "")
    }

    /// Moves it to its place in one step.
    #[expect(clippy::disallowed_methods, reason = "a whole plugin takes its place in one step")]
    fn place(self, paths: &Paths, package: &Package) -> Result<()> {
        let (from, to): (&Path, PathBuf) = match &self.found.location {
            Location::File(file) => (file, paths.tools().join(format!("{}.rhai", package.name))),
            Location::Folder(folder) => (folder, paths.plugins().join(&package.name)),
            Location::Embedded(_) => return Err(Error::internal("a package is never inside the program")),
        };
        if let Some(home) = to.parent() {
            fs::create_dir_all(home).map_err(|e| io(format_args!("cannot make `{}`", paths.shown(home)), &e))?;
        }
        let placed = || fs::rename(from, &to).map_err(|e| io(format_args!("cannot make `{}`", paths.shown(&to)), &e));
        match package.form {
            // Under the file's lock, as every write.
            Form::Single => file::with_lock(&to, placed)?,
            Form::Folder => placed()?,
        }
        file::sync_folder_of(&to);
        Ok(())
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}
