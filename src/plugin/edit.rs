//! A plugin's files as an editor sees them: read, checked before they are saved, saved only over the version that was edited.
//! It knows texts and their versions; what a text means is the loader's to say.

use super::discover::{self, Found, Location, MANIFEST, Origin, is_litter};
use super::install::Installed;
use super::load::{Loader, guarded};
use super::package;
use super::read::Unsaved;
use super::set::Plugins;
use super::source::{History, KeptFile};
use super::status::Status;
use super::swap::asks_for_more;
use super::tune::diff;
use crate::base::error::{Error, Kind, Result, excerpt, io};
use crate::base::file;
use crate::base::paths::valid_plugin_name;
use crate::script::diagnostic::Diagnostic;
use crate::script::program::{self, MAX_SOURCE};
use crate::service::digest;
use schemars::JsonSchema;
use serde::Serialize;
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Endings of files that are text, and may be read and written here.
const TEXTS: [&str; 16] =
    ["rhai", "json", "md", "txt", "csv", "tsv", "toml", "yaml", "yml", "html", "css", "js", "svg", "xml", "sql", "ini"];
/// Most files that are listed.
const MOST: usize = 500;

/// One file of a plugin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FileInfo {
    /// Its path inside the plugin.
    pub path: String,
    /// Its size.
    pub bytes: u64,
    /// Its version: the SHA-256 of its bytes, in hex.
    pub version: String,
}

/// The files of a plugin that an editor can show.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FileList {
    /// Whether they may be changed: those of shipped plugins may not.
    pub editable: bool,
    /// The files, by path; the script of a single file first.
    pub files: Vec<FileInfo>,
    /// Where it was installed from; nothing for one that was written here.
    pub installed: Option<Installed>,
}

/// The text of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "SourceText")]
pub struct Source {
    /// Its path inside the plugin.
    pub path: String,
    /// All of it.
    pub text: String,
    /// Its version: the SHA-256 of its bytes, in hex.
    pub version: String,
    /// Whether it may be changed.
    pub editable: bool,
}

/// A text to save.
#[derive(Debug, Clone)]
pub struct Draft {
    /// Its path inside the plugin; the script itself where it is left out, for a plugin of one file.
    pub path: Option<String>,
    /// All of it.
    pub text: String,
}

/// What became of a save.
#[derive(Debug, Clone)]
pub enum Saved {
    /// It is on the disk, and the plugin was loaded again.
    Written {
        /// The new version.
        version: String,
        /// The plugin now; a text that does not load is saved all the same.
        status: Box<Status>,
    },
    /// The disk holds another version than the one that was edited, and nothing was written.
    Other(Option<Box<Source>>),
}

/// Where a file of a plugin is.
enum Place {
    Disk(PathBuf),
    Inside(&'static str),
}

impl Plugins {
    /// The texts of a plugin: scripts, manifest, tests, pages. Other files are left out.
    ///
    /// # Errors
    /// `not_found` for a plugin that nobody knows; what the file system says.
    pub fn files(&self, name: &str) -> Result<FileList> {
        let found = self.known(name)?;
        let mut paths = discover::list_plugin_files(&*self.loader.stock, &found)?;
        if let Some(file) = found.single_file() {
            paths.push(format!("tests/{file}"));
        }
        paths.retain(|path| is_text(path));
        let mut files = Vec::new();
        for path in paths.into_iter().take(MOST) {
            // What vanished meanwhile, or is too large for an editor, is no file to show.
            let Ok(bytes) = self.bytes(&found, &path) else { continue };
            files.push(FileInfo { bytes: bytes.len() as u64, version: version(&bytes), path });
        }
        Ok(FileList { editable: is_editable(&found), files, installed: self.installed(name)? })
    }

    /// The text of one file. Without a path, the script of a plugin of one file.
    ///
    /// # Errors
    /// `not_found`, `permission_denied` for a path that leads out of the plugin, `too_large`, `invalid_arguments` for a file
    /// that is no text, or a plugin of many files without a path.
    pub fn source(&self, name: &str, path: Option<&str>) -> Result<Source> {
        let found = self.known(name)?;
        let path = path_of(&found, path)?;
        let bytes = self.bytes(&found, &path)?;
        read(&found, path, bytes)
    }

    /// Saves a text over version `base` of it, or as a new file where there is no base, and loads the plugin again. A text that
    /// does not load is saved too: the status says so, and the last good version goes on. Runs builds: not for a runtime thread.
    ///
    /// # Errors
    /// `permission_denied` for a shipped plugin or a path that leads out, `too_large`, `invalid_arguments` for a file that is no
    /// text, and what the file system says. Nothing was changed then.
    pub fn save(self: &Arc<Self>, name: &str, draft: &Draft, base: Option<&str>) -> Result<Saved> {
        let found = self.known(name)?;
        let path = path_of(&found, draft.path.as_deref())?;
        let bytes = draft.text.as_bytes();
        if bytes.len() > MAX_SOURCE {
            return Err(too_large(&path));
        }
        let Place::Disk(target) = self.place(&found, &path)? else { return Err(shipped(name)) };
        if !is_editable(&found) {
            return Err(shipped(name));
        }
        if base.is_none() && !target.exists() {
            self.may_come(&found, &path)?;
        }
        if let Some(folder) = target.parent() {
            std::fs::create_dir_all(folder)
                .map_err(|e| io(format_args!("cannot make the folder `{}`", folder.display()), &e))?;
        }
        let other = file::with_lock(&target, || {
            let now = match file::read_capped(&target, discover::MAX_FILE) {
                Ok(now) => Some(now),
                Err(e) if e.kind() == Kind::NotFound => None,
                Err(e) => return Err(e),
            };
            // What is there already need not be written, whichever version was edited.
            if now.as_deref() == Some(bytes) {
                return Ok(None);
            }
            if now.as_deref().map(version).as_deref() != base {
                return Ok(Some(now));
            }
            file::write_atomic(&target, bytes)?;
            Ok(None)
        })?;
        if let Some(now) = other {
            let now = now.map(|now| read(&found, path, now)).transpose()?;
            return Ok(Saved::Other(now.map(Box::new)));
        }
        // A manifest may say that the plugin is off.
        if path == MANIFEST {
            self.rescan();
        }
        self.refresh(&[name.into()]);
        let status = self.status(name).ok_or_else(|| self.unknown(name))?;
        Ok(Saved::Written { version: version(bytes), status: Box::new(status) })
    }

    /// A new file of a plugin has a name that every system takes, and that none takes for that of another file: the plugin is given
    /// away one day.
    fn may_come(&self, found: &Found, path: &str) -> Result<()> {
        package::checked_path(path)?;
        let (folded, there) = (path.to_lowercase(), discover::list_plugin_files(&*self.loader.stock, found)?);
        match there.into_iter().find(|other| other.to_lowercase() == folded) {
            Some(other) => Err(Error::new(Kind::Conflict, format!("`{path}` differs from `{other}` in case only"))
                .hint("many file systems take both for one: choose another name")),
            None => Ok(()),
        }
    }

    /// What a save of this text would find. Nothing is written, and nothing that is live changes; a script's top level is run as
    /// it is at every load. Runs builds: not for a runtime thread.
    ///
    /// # Errors
    /// As [`Plugins::save`].
    pub fn check_text(self: &Arc<Self>, name: &str, draft: Draft) -> Result<Vec<Diagnostic>> {
        let found = self.known(name)?;
        let path = path_of(&found, draft.path.as_deref())?;
        self.place(&found, &path)?;
        if draft.text.len() > MAX_SOURCE {
            return Err(too_large(&path));
        }
        let unsaved = Unsaved { path, bytes: draft.text.into_bytes().into() };
        if unsaved.path.starts_with("tests/") || !matches!(ending(&unsaved.path), "rhai" | "json") {
            return Ok(self.check_aside(&found, unsaved));
        }
        Ok(match self.check_with(&found, Some(unsaved)) {
            Ok(generation) => {
                let waits = self.live(name).map(|live| asks_for_more(&live, &generation, &found)).unwrap_or_default();
                let left_out = generation.quarantined.iter().map(|q| &q.diagnostic);
                let broken = generation.broken.values().flatten();
                broken.chain(left_out).chain(&generation.warnings).cloned().chain(waits).collect()
            }
            Err(diagnostics) => diagnostics,
        })
    }

    /// A script that is no part of what is loaded, such as a test: whether it is one at all.
    fn check_aside(&self, found: &Found, unsaved: Unsaved) -> Vec<Diagnostic> {
        if ending(&unsaved.path) != "rhai" {
            return Vec::new();
        }
        let (loader, shown) = (self.loader.clone(), shown(found, &unsaved.path));
        let checked = self.pool().run(move || syntax(&loader, &shown, &unsaved.bytes));
        checked.unwrap_or_else(|| vec![super::swap::lost()])
    }

    /// The files of a version that was kept, beside those that are there now.
    ///
    /// # Errors
    /// `not_found` with the numbers that are kept; `internal` for a version that is damaged.
    pub fn kept_files(&self, history: &History, name: &str, generation: u64) -> Result<Vec<KeptFile>> {
        valid_plugin_name(name).map_err(|_| self.unknown(name))?;
        // A plugin that is gone may still have a history.
        let found = self.found(name);
        let now = |path: &str| {
            let bytes = found.as_ref().and_then(|found| self.bytes(found, path).ok())?;
            String::from_utf8(bytes).ok()
        };
        let shown = |(path, bytes): (String, Vec<u8>)| {
            let size = bytes.len() as u64;
            let text = String::from_utf8(bytes).ok();
            let diff = text.as_ref().map(|then| diff(&now(&path).unwrap_or_default(), then));
            KeptFile { path, bytes: size, text, diff }
        };
        Ok(history.files(name, generation)?.into_iter().map(shown).collect())
    }

    /// What discovery found of a plugin.
    ///
    /// # Errors
    /// `not_found` with names that are close.
    pub fn known(&self, name: &str) -> Result<Found> {
        self.found(name).ok_or_else(|| self.unknown(name))
    }

    fn place(&self, found: &Found, path: &str) -> Result<Place> {
        if !is_text(path) {
            let shown = excerpt(path, 120);
            return Err(Error::invalid(format!("`{shown}` is no file for an editor"))
                .hint(format!("its name ends in .{}", TEXTS.join(", ."))));
        }
        match &found.location {
            Location::Embedded(inner) => Ok(Place::Inside(inner)),
            Location::Folder(folder) => file::confine(folder, path).map(Place::Disk),
            Location::File(script) => {
                let own = found.single_file().unwrap_or_default();
                if path != own && path.strip_prefix("tests/") != Some(&own) {
                    return Err(missing(found, path)
                        .hint(format!("a plugin of one file has `{own}` and its tests, `tests/{own}`")));
                }
                file::confine(script.parent().unwrap_or(Path::new(".")), path).map(Place::Disk)
            }
        }
    }

    fn bytes(&self, found: &Found, path: &str) -> Result<Vec<u8>> {
        let bytes = match self.place(found, path)? {
            Place::Inside(inner) => self.loader.stock.read(inner, path).map(<[u8]>::to_vec),
            Place::Disk(target) => match file::read_capped(&target, discover::MAX_FILE) {
                Ok(bytes) => Some(bytes),
                Err(e) if e.kind() == Kind::NotFound => None,
                Err(e) => return Err(e),
            },
        };
        let bytes = bytes.ok_or_else(|| missing(found, path))?;
        if bytes.len() > MAX_SOURCE { Err(too_large(path)) } else { Ok(bytes) }
    }
}

fn syntax(loader: &Loader, shown: &str, bytes: &[u8]) -> Vec<Diagnostic> {
    let source = match program::decode(shown, bytes.to_vec()) {
        Ok(source) => source,
        Err(e) => return vec![Diagnostic::from_error("load", shown, &e)],
    };
    let ctx = loader.bare_context();
    match guarded(&ctx, || program::check_syntax(&loader.engine, &ctx, &source)) {
        Ok(found) => found.into_iter().collect(),
        Err(_) => vec![super::swap::lost()],
    }
}

fn is_editable(found: &Found) -> bool {
    found.origin != Origin::Shipped
}

fn path_of(found: &Found, path: Option<&str>) -> Result<String> {
    match path {
        Some(path) => Ok(path.to_owned()),
        None => found.single_file().ok_or_else(|| {
            Error::invalid(format!("the plugin `{}` has many files, and none is named", found.name))
                .hint("name one, such as plugin.json")
        }),
    }
}

/// What people call a file; the tests of a plugin of one file lie beside it.
fn shown(found: &Found, path: &str) -> String {
    match &found.location {
        Location::File(script) if path.starts_with("tests/") => {
            crate::base::paths::Paths::at(&found.root).shown(&script.with_file_name(path))
        }
        _ => found.shown(path),
    }
}

fn read(found: &Found, path: String, bytes: Vec<u8>) -> Result<Source> {
    let version = version(&bytes);
    match String::from_utf8(bytes) {
        Ok(text) => Ok(Source { path, text, version, editable: is_editable(found) }),
        Err(e) => Err(Error::invalid(format!(
            "`{}` is not UTF-8 text: byte {}",
            shown(found, &path),
            e.utf8_error().valid_up_to()
        ))
        .hint("save it as UTF-8 with another editor")),
    }
}

/// The version of a content.
pub(super) fn version(bytes: &[u8]) -> String {
    digest::hex(&Sha256::digest(bytes))
}

fn ending(path: &str) -> &str {
    path.rsplit_once('.').map_or("", |(_, ending)| ending)
}

/// Whether a path names a text, and no part of it is what editors leave behind.
fn is_text(path: &str) -> bool {
    path.len() <= 400
        && path.split('/').all(|part| !part.is_empty() && !is_litter(part) && !part.chars().any(char::is_control))
        && TEXTS.contains(&ending(path))
}

fn missing(found: &Found, path: &str) -> Error {
    let shown = excerpt(path, 120);
    Error::not_found(format!("the plugin `{}` has no file `{shown}`", found.name))
}

fn too_large(path: &str) -> Error {
    Error::new(Kind::TooLarge, format!("`{path}` is larger than {} KiB", MAX_SOURCE >> 10))
        .hint("split it, and keep data in files:: or db::")
}

fn shipped(name: &str) -> Error {
    Error::denied(format!("`{name}` is a shipped plugin, so its files are not changed"))
        .hint("make a copy of it and change that: the copy takes its place")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_texts_without_litter_are_for_an_editor() {
        for good in ["dice.rhai", "tools/a.rhai", "plugin.json", "README.md", "data/a.b.csv", "tests/recorded/net.json"]
        {
            assert!(is_text(good), "{good}");
        }
        for bad in [
            "",
            "/a.rhai",
            "a//b.rhai",
            "../a.rhai",
            "./a.rhai",
            ".git/a.json",
            ".a.rhai.lock",
            "a.rhai~",
            "a.png",
            "a",
        ] {
            assert!(!is_text(bad), "{bad}");
        }
    }
}
