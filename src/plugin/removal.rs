//! Plugins that are taken out and may come back: what a plugin has is moved into `user/history` for 30 days, not deleted; what it
//! keeps in chats stays in the database, under another name.
//! Knows files and their places; what is loaded is the set's.

use super::discover::{Found, Location, Origin};
use super::install::{remember, remembered, utc};
use super::set::Plugins;
use super::source::{History, Rolled};
use super::status::Status;
use super::switches::Switches;
use crate::base::error::{Error, Kind, Result, io};
use crate::base::file;
use crate::base::paths::{Paths, valid_plugin_name};
use crate::service::{Services, permissions};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How long what was removed is kept, in milliseconds: 30 days.
const KEPT_MS: i64 = 30 * 24 * 3_600_000;
const PREFIX: &str = "removed-";
const META: &str = "removed.json";
const FILES: &str = "plugin";
const SETTINGS: &str = "settings.json";
const STATE: &str = "state";
const MAX_META: u64 = 4 << 20;

/// What becomes of a plugin's settings, state, values in chats and grants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Data {
    /// They stay where they are.
    Keep,
    /// They go with it, and come back with it.
    Remove,
}

/// A plugin that was removed and can be brought back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Removed {
    /// Its name.
    pub name: String,
    /// When it was removed, RFC 3339 in UTC.
    pub removed_at: String,
    /// Until when it can be brought back, RFC 3339 in UTC.
    pub undo_until: String,
    /// Whether its settings, state, values in chats and grants stayed.
    pub kept_data: bool,
    /// Whether another version took its place then.
    pub replaced: bool,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Meta {
    name: String,
    at_ms: i64,
    /// Where it lay, relative to `user/`.
    place: String,
    kept_data: bool,
    replaced: bool,
    /// What was remembered of where it came from.
    installed: Option<Value>,
    /// What its owner had decided about it.
    grants: Option<Value>,
    /// Whether its owner had switched it on or off.
    switched: Option<bool>,
}

/// What going back came to.
#[derive(Debug, Clone)]
pub struct Back {
    /// The version that was put into the files; nothing where only a removed plugin came back.
    pub rolled: Option<Rolled>,
    /// Whether a removed plugin came back.
    pub restored: bool,
    /// The plugin now.
    pub status: Status,
}

impl Plugins {
    /// Takes a plugin of the owner's out: its tools go, and its files are kept for 30 days. Its `shutdown` runs as at every end.
    ///
    /// # Errors
    /// `not_found`; `permission_denied` for a shipped plugin or one that was named where the host was started; what the file
    /// system says, and then nothing was changed.
    pub fn uninstall(self: &Arc<Self>, name: &str, data: Data) -> Result<Removed> {
        let found = self.known(name)?;
        match found.origin {
            Origin::Shipped => {
                return Err(Error::denied(format!("`{name}` is a shipped plugin, so it stays"))
                    .hint(format!("switch it off instead: lapidary disable {name}")));
            }
            Origin::Extra => {
                return Err(Error::denied(format!("`{name}` is loaded from {}", found.place()))
                    .hint("it was named where the host was started; leave it out there"));
            }
            Origin::UserFolder | Origin::SingleFile => {}
        }
        let services = &self.loader.services;
        let (home, mut meta) = self.move_away(&found, data, false)?;
        self.rescan();
        if data == Data::Remove {
            // Its files are closed before they are moved: what is open would be written to where it is moved.
            services.databases.close(name);
            let names = self.names();
            let known: Vec<&str> = names.iter().map(|known| &**known).collect();
            services.state.take_away(name, &known, &home.join(STATE))?;
            take(&services.paths.settings_file(name), &home.join(SETTINGS))?;
            meta.grants = services.grants.record(name).ok().and_then(|record| serde_json::to_value(record).ok());
            services.grants.forget(name)?;
            meta.switched = Switches::load(&services.paths, &services.clock, &self.bus)?.said(name);
            Switches::forget(&services.paths, &services.clock, &self.bus, name)?;
            meta.installed = remembered(&services.paths, name)?;
            remember(&services.paths, name, None)?;
            write_meta(&home, &meta)?;
            services.store.hand_values(name, &aside(&home))?;
        }
        sweep(services);
        Ok(meta.told())
    }

    /// Moves a plugin's files away for another that takes its place; its settings, state and grants stay.
    pub(super) fn put_aside(self: &Arc<Self>, found: &Found) -> Result<Aside> {
        self.move_away(found, Data::Keep, true).map(|(home, meta)| Aside { home, meta })
    }

    /// Moves the files. What can be brought back is written down first: whatever happens then, nothing is lost.
    fn move_away(&self, found: &Found, data: Data, replaced: bool) -> Result<(PathBuf, Meta)> {
        let paths = &self.loader.services.paths;
        let place = match &found.location {
            Location::File(place) | Location::Folder(place) => place,
            Location::Embedded(_) => return Err(Error::internal("a plugin inside the program has no files to move")),
        };
        let inside = place
            .strip_prefix(paths.user())
            .map_err(|_| Error::denied(format!("{} is not in the owner's folder", found.place())))?;
        let now = self.loader.services.clock.unix_ms();
        let meta = Meta {
            name: found.name.clone(),
            at_ms: now,
            place: inside.to_string_lossy().replace('\\', "/"),
            kept_data: data == Data::Keep,
            replaced,
            installed: None,
            grants: None,
            switched: None,
        };
        let home = free_home(&paths.history_dir(&found.name), now)?;
        let moved = write_meta(&home, &meta).and_then(|()| {
            let file_name = place.file_name().unwrap_or_default();
            take(place, &home.join(FILES).join(file_name))?;
            if let Location::File(script) = &found.location {
                let tests = Path::new("tests").join(file_name);
                take(&script.with_file_name(&tests), &home.join(FILES).join(&tests))?;
            }
            Ok(())
        });
        if let Err(e) = moved {
            // What was moved goes back; what was not is where it was.
            let _ = put_back(paths, &home, &meta);
            let _ = fs::remove_dir_all(&home);
            return Err(e);
        }
        file::sync_folder_of(place);
        Ok((home, meta))
    }

    /// The plugins that can be brought back, the newest removal of each, by name.
    #[must_use]
    pub fn removed(&self) -> Vec<Removed> {
        let paths = &self.loader.services.paths;
        let now = self.loader.services.clock.unix_ms();
        let mut all: Vec<Removed> = fs::read_dir(paths.user().join("history"))
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|plugin| Some(newest(paths, plugin.file_name().to_str()?, now)?.1.told()))
            .filter(|removed| self.found(&removed.name).is_none())
            .collect();
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all
    }

    /// Goes back: to an earlier version of a plugin that is there, or to the plugin itself where it was removed.
    ///
    /// # Errors
    /// As [`History::rollback`]; `not_found` where there is neither; `conflict` where something stands in its place.
    pub fn go_back(self: &Arc<Self>, history: &History, name: &str, to: Option<u64>) -> Result<Back> {
        if self.found(name).is_none() {
            let status = self.restore(name)?;
            let Some(to) = to else { return Ok(Back { rolled: None, restored: true, status }) };
            let rolled = history.rollback(&self.known(name)?, Some(to))?;
            return Ok(Back { rolled: Some(rolled), restored: true, status: self.reload(name)? });
        }
        let rolled = history.rollback(&self.known(name)?, to)?;
        // One that is off stays off, with the other source in its files.
        let status = match self.reload(name) {
            Err(e) if e.kind() == Kind::Disabled => self.status(name).ok_or_else(|| self.unknown(name))?,
            status => status?,
        };
        Ok(Back { rolled: Some(rolled), restored: false, status })
    }

    /// Brings a removed plugin back with what it had.
    fn restore(self: &Arc<Self>, name: &str) -> Result<Status> {
        let services = &self.loader.services;
        let paths = &services.paths;
        let nothing = || self.unknown(name);
        valid_plugin_name(name).map_err(|_| nothing())?;
        let (home, meta) = newest(paths, name, services.clock.unix_ms()).ok_or_else(nothing)?;
        services.store.hand_values(&aside(&home), name)?;
        put_back(paths, &home, &meta)?;
        if let Some(record) = meta.grants.clone().and_then(|v| serde_json::from_value::<permissions::Record>(v).ok()) {
            services.grants.put_back(name, record)?;
        }
        match meta.switched {
            Some(true) => drop(Switches::enable(paths, &services.clock, &self.bus, name)?),
            Some(false) => drop(Switches::disable(paths, &services.clock, &self.bus, name)?),
            None => {}
        }
        if meta.installed.is_some() {
            remember(paths, name, meta.installed)?;
        }
        services.state.evict(name);
        let _ = fs::remove_dir_all(&home);
        self.rescan();
        self.refresh(&[name.into()]);
        self.status(name).ok_or_else(|| self.unknown(name))
    }
}

/// A plugin's files that were moved away for another's.
pub(super) struct Aside {
    home: PathBuf,
    meta: Meta,
}

impl Aside {
    /// Puts them back where they were.
    pub(super) fn undo(self, paths: &Paths) {
        if put_back(paths, &self.home, &self.meta).is_ok() {
            let _ = fs::remove_dir_all(&self.home);
        }
    }
}

impl Meta {
    fn told(&self) -> Removed {
        Removed {
            name: self.name.clone(),
            removed_at: utc(self.at_ms),
            undo_until: utc(self.at_ms.saturating_add(KEPT_MS)),
            kept_data: self.kept_data,
            replaced: self.replaced,
        }
    }

    /// Whether it can still be brought back. A clock that was set back takes nothing away.
    fn is_kept(&self, now: i64) -> bool {
        now.saturating_sub(self.at_ms) < KEPT_MS
    }
}

/// A folder for one removal.
fn free_home(history: &Path, now: i64) -> Result<PathBuf> {
    let stamp = jiff::Timestamp::from_millisecond(now).unwrap_or_default().strftime("%Y%m%dT%H%M%S").to_string();
    for n in 0..100 {
        let home = history.join(format!("{PREFIX}{stamp}-{n:02}"));
        let made = fs::create_dir_all(history).and_then(|()| fs::create_dir(&home));
        match made {
            Ok(()) => return Ok(home),
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(e) => return Err(io(format_args!("cannot make `{}`", home.display()), &e)),
        }
    }
    Err(Error::internal("no free place for what is removed"))
}

fn write_meta(home: &Path, meta: &Meta) -> Result<()> {
    let bytes = serde_json::to_vec_pretty(meta).map_err(|e| Error::internal(e.to_string()))?;
    file::write_atomic(&home.join(META), &bytes)
}

fn read_meta(home: &Path) -> Option<Meta> {
    serde_json::from_slice(&file::read_capped(&home.join(META), MAX_META).ok()?).ok()
}

/// The removals of a plugin, newest first.
fn homes(paths: &Paths, name: &str) -> Vec<(PathBuf, Meta)> {
    let folders = fs::read_dir(paths.history_dir(name)).into_iter().flatten().flatten();
    let mut homes: Vec<(PathBuf, Meta)> = folders
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(PREFIX))
        .filter_map(|entry| Some((entry.path(), read_meta(&entry.path())?)))
        .filter(|(_, meta)| meta.name == name)
        .collect();
    homes.sort_by(|a, b| (b.1.at_ms, &b.0).cmp(&(a.1.at_ms, &a.0)));
    homes
}

fn newest(paths: &Paths, name: &str, now: i64) -> Option<(PathBuf, Meta)> {
    homes(paths, name).into_iter().find(|(_, meta)| meta.is_kept(now))
}

/// Moves a file or folder; one that is not there is fine.
#[expect(clippy::disallowed_methods, reason = "files are moved as they are, not written")]
fn take(from: &Path, to: &Path) -> Result<()> {
    if fs::symlink_metadata(from).is_err() {
        return Ok(());
    }
    let cannot = |e: &std::io::Error| io(format_args!("cannot move `{}`", from.display()), e);
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder).map_err(|e| cannot(&e))?;
    }
    fs::rename(from, to).map_err(|e| cannot(&e))
}

/// Moves what was taken back to where it was. Nothing that stands there now is touched.
fn put_back(paths: &Paths, home: &Path, meta: &Meta) -> Result<()> {
    let place = paths.user().join(&meta.place);
    let file_name = place.file_name().unwrap_or_default();
    let mut moves = vec![(home.join(FILES).join(file_name), place.clone())];
    let tests = Path::new("tests").join(file_name);
    if file_name.to_string_lossy().ends_with(".rhai") {
        moves.push((home.join(FILES).join(&tests), place.with_file_name(&tests)));
    }
    moves.push((home.join(SETTINGS), paths.settings_file(&meta.name)));
    let state = fs::read_dir(home.join(STATE)).into_iter().flatten().flatten();
    moves.extend(state.map(|entry| (entry.path(), paths.plugin_state().join(entry.file_name()))));
    moves.retain(|(from, _)| fs::symlink_metadata(from).is_ok());
    if let Some((_, taken)) = moves.iter().find(|(_, to)| fs::symlink_metadata(to).is_ok()) {
        return Err(Error::new(Kind::Conflict, format!("`{}` is there now", paths.shown(taken)))
            .hint("move it away, then bring the plugin back"));
    }
    // The plugin itself last, so that a running host finds its settings and state.
    moves.iter().rev().try_for_each(|(from, to)| take(from, to))
}

/// Under what name a removed plugin's values in chats wait there: no plugin is called that.
fn aside(home: &Path) -> String {
    let name = |path: Option<&Path>| path.and_then(Path::file_name).unwrap_or_default().to_string_lossy().into_owned();
    format!("{}/{}", name(home.parent()), name(Some(home)))
}

/// Deletes for good what was removed more than 30 days ago.
pub fn sweep(services: &Services) {
    let (paths, now) = (&services.paths, services.clock.unix_ms());
    for plugin in fs::read_dir(paths.user().join("history")).into_iter().flatten().flatten() {
        let Some(name) = plugin.file_name().to_str().map(str::to_owned) else { continue };
        for (home, _) in homes(paths, &name).into_iter().filter(|(_, meta)| !meta.is_kept(now)) {
            // As long as its values are there, so is what says that they are to go.
            if services.store.drop_values(&aside(&home)).is_ok() {
                let _ = fs::remove_dir_all(home);
            }
        }
    }
}
