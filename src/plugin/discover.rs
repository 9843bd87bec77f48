//! Which plugins there are and where their files lie. Reads folders and bytes, never what a script or manifest says.

pub use super::stock::{Embedded, Empty, Stock};

use crate::base::error::{Error, Kind, Result, excerpt, io};
use crate::base::event::Event;
use crate::base::file;
use crate::base::paths::{Paths, valid_plugin_name};
use crate::script::program::MAX_SOURCE;
use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The largest file of a plugin that is no script, in bytes.
pub const MAX_FILE: u64 = 16 << 20;
/// Folders inside a plugin are listed this deep.
const MAX_DEPTH: usize = 8;
/// Most files that one plugin may have.
const MAX_FILES: usize = 10_000;
/// The manifest's file name.
pub const MANIFEST: &str = "plugin.json";

/// Which door a plugin came in by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Origin {
    /// `scripts/<name>/` of the root, or embedded in the program.
    Shipped,
    /// A folder that the embedder or the command line named.
    Extra,
    /// `user/plugins/<name>/`.
    UserFolder,
    /// `user/tools/<name>.rhai`.
    SingleFile,
}

impl Origin {
    /// The word that people and programs see.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Origin::Shipped => "shipped",
            Origin::Extra => "extra",
            Origin::UserFolder => "plugin folder",
            Origin::SingleFile => "tool file",
        }
    }
}

/// Where a plugin's files are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Location {
    /// One script.
    File(PathBuf),
    /// A folder with a `plugin.json`.
    Folder(PathBuf),
    /// Inside the program, under this name.
    Embedded(&'static str),
}

/// One plugin that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Its name: the file's or the folder's.
    pub name: String,
    /// Which door it came in by.
    pub origin: Origin,
    /// Where its files are.
    pub location: Location,
    /// The root, which the names of files are shown from.
    pub root: PathBuf,
}

impl Found {
    /// One of its files as people see it: relative to the root where it is inside, such as `user/tools/dice.rhai`.
    #[must_use]
    pub fn shown(&self, relative: &str) -> String {
        let paths = Paths::at(&self.root);
        match &self.location {
            Location::File(path) => paths.shown(path),
            Location::Folder(folder) => format!("{}/{relative}", paths.shown(folder)),
            Location::Embedded(name) => format!("scripts/{name}/{relative}"),
        }
    }

    /// The one file of a single-file plugin, such as `dice.rhai`.
    #[must_use]
    pub fn single_file(&self) -> Option<String> {
        match &self.location {
            Location::File(path) => Some(path.file_name()?.to_string_lossy().into_owned()),
            Location::Folder(_) | Location::Embedded(_) => None,
        }
    }

    /// Whether its file or folder is there now.
    #[must_use]
    pub fn exists(&self) -> bool {
        match &self.location {
            Location::File(path) => path.is_file(),
            Location::Folder(path) => path.join(MANIFEST).is_file(),
            Location::Embedded(_) => true,
        }
    }

    /// Whether a path is that of its file, or lies in its folder.
    #[must_use]
    pub fn holds(&self, path: &Path) -> bool {
        match &self.location {
            Location::File(file) => path == file,
            Location::Folder(folder) => path.starts_with(folder),
            Location::Embedded(_) => false,
        }
    }

    /// Where it lies, as people see it.
    #[must_use]
    pub fn place(&self) -> String {
        match &self.location {
            Location::File(path) | Location::Folder(path) => Paths::at(&self.root).shown(path),
            Location::Embedded(name) => format!("the shipped `{name}`"),
        }
    }
}

/// Something that was not taken as a plugin, or takes another's place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// What it is about: a plugin's name, or a file relative to the root.
    pub subject: String,
    /// What happened and what to do.
    pub message: String,
    /// A plugin's place, relative to the root, that is not loaded because another has its name.
    pub refused: Option<String>,
}

impl Notice {
    /// A notice about `subject`.
    pub fn new(subject: impl Into<String>, message: impl Into<String>) -> Notice {
        Notice { subject: subject.into(), message: message.into(), refused: None }
    }
}

impl From<Notice> for Event {
    fn from(notice: Notice) -> Event {
        Event::Notice { subject: notice.subject, message: notice.message }
    }
}

/// What a look at all the folders found.
#[derive(Debug, Default)]
pub struct Discovery {
    /// The plugins: shipped, then extra, then plugin folders, then tool files; each sorted by name; every name once.
    pub plugins: Vec<Found>,
    /// What people should know.
    pub notices: Vec<Notice>,
}

/// Finds all plugins. A folder that cannot be read is a notice; a missing one is nothing.
/// An `extra` path is a folder of plugins and tool files, one plugin's folder, or one tool file.
#[must_use]
pub fn discover(paths: &Paths, extra: &[PathBuf], embedded: &dyn Stock) -> Discovery {
    discover_beside(paths, extra, embedded, &|_| false)
}

/// As [`discover`], in a host that runs: of two names that differ in case only, the one that `is_live` stays.
#[must_use]
pub fn discover_beside(
    paths: &Paths,
    extra: &[PathBuf],
    embedded: &dyn Stock,
    is_live: &dyn Fn(&str) -> bool,
) -> Discovery {
    let mut scan = Scan { paths, notices: Vec::new() };
    let shipped = if paths.scripts().is_dir() {
        scan.folders(&paths.scripts(), Origin::Shipped)
    } else {
        let names = embedded.plugins().into_iter();
        names.filter_map(|name| scan.accept(name, Origin::Shipped, Location::Embedded(name))).collect()
    };
    let mut extras = Vec::new();
    for place in extra {
        extras.extend(scan.extra(place));
    }
    let folders = scan.folders(&paths.plugins(), Origin::UserFolder);
    let files = scan.files(&paths.tools(), Origin::SingleFile);
    scan.settle([shipped, extras, folders, files].into_iter().flatten(), is_live)
}

struct Scan<'a> {
    paths: &'a Paths,
    notices: Vec<Notice>,
}

/// One thing in a folder. What kind it is comes with the listing; only links cost another look.
struct Entry {
    name: String,
    path: PathBuf,
    is_folder: bool,
}

impl Scan<'_> {
    fn notice(&mut self, path: &Path, message: impl Into<String>) {
        self.notices.push(Notice::new(self.paths.shown(path), message));
    }

    /// What is in a folder, by name, without litter and without links that lead out.
    fn entries(&mut self, home: &Path) -> Vec<Entry> {
        let listing = match fs::read_dir(home) {
            Ok(listing) => listing,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Vec::new(),
            Err(e) => {
                self.notice(home, io("cannot be listed", &e).to_string());
                return Vec::new();
            }
        };
        let mut entries = Vec::new();
        for entry in listing.flatten() {
            let path = entry.path();
            let Ok(name) = entry.file_name().into_string() else {
                self.notice(&path, "the name is not UTF-8, so nothing can refer to it; rename it");
                continue;
            };
            let Ok(kind) = entry.file_type() else { continue };
            if is_litter(&name) || (kind.is_symlink() && !self.leads_inside(&path, home)) {
                continue;
            }
            let is_folder = kind.is_dir() || (kind.is_symlink() && path.is_dir());
            entries.push(Entry { name, path, is_folder });
        }
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        entries
    }

    /// Whether a link stays within the root or `home`.
    fn leads_inside(&mut self, link: &Path, home: &Path) -> bool {
        let Ok(target) = fs::canonicalize(link) else {
            self.notice(link, "the link leads to nothing");
            return false;
        };
        let homes = [self.paths.root(), home].into_iter().filter_map(|p| fs::canonicalize(p).ok());
        let inside = homes.into_iter().any(|p| target.starts_with(p));
        if !inside {
            self.notice(link, "the link leads out of the root and is not followed; copy what it points to");
        }
        inside
    }

    fn accept(&mut self, name: &str, origin: Origin, location: Location) -> Option<Found> {
        if let Err(e) = valid_plugin_name(name) {
            let subject = match &location {
                Location::File(path) | Location::Folder(path) => self.paths.shown(path),
                Location::Embedded(name) => (*name).to_owned(),
            };
            self.notices.push(Notice::new(subject, format!("not loaded: {}; rename it", e.message())));
            return None;
        }
        Some(Found { name: name.to_owned(), origin, location, root: self.paths.root().to_path_buf() })
    }

    /// The plugin folders in `home`.
    fn folders(&mut self, home: &Path, origin: Origin) -> Vec<Found> {
        let mut found = Vec::new();
        for Entry { name, path, is_folder } in self.entries(home) {
            if is_folder && path.join(MANIFEST).is_file() {
                found.extend(self.accept(&name, origin, Location::Folder(path)));
            } else if is_folder {
                self.notice(&path, "not loaded: no plugin.json in it; write one that names the plugin");
            } else if name.ends_with(".rhai") {
                self.notice(&path, "not loaded: a single tool file belongs in user/tools/");
            }
        }
        found
    }

    /// The tool files in `home`.
    fn files(&mut self, home: &Path, origin: Origin) -> Vec<Found> {
        let mut found = Vec::new();
        for Entry { name, path, is_folder } in self.entries(home) {
            if is_folder && path.join(MANIFEST).is_file() {
                self.notice(&path, "not loaded: a plugin folder belongs in user/plugins/");
            } else if is_folder {
            } else if let Some(stem) = name.strip_suffix(".rhai") {
                found.extend(self.accept(stem, origin, Location::File(path)));
            } else if name.ends_with(".rhai.txt") {
                self.notice(&path, "not loaded: the editor added `.txt`; rename it to end in `.rhai`");
            }
        }
        found
    }

    /// What an embedder's or a caller's path stands for. It may be a link: who names it means it.
    fn extra(&mut self, place: &Path) -> Vec<Found> {
        let name = place.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        if place.join(MANIFEST).is_file() {
            return self.accept(&name, Origin::Extra, Location::Folder(place.to_path_buf())).into_iter().collect();
        }
        if place.is_file() {
            let Some(stem) = name.strip_suffix(".rhai") else {
                self.notice(place, "not loaded: a tool file ends in `.rhai`");
                return Vec::new();
            };
            return self.accept(stem, Origin::Extra, Location::File(place.to_path_buf())).into_iter().collect();
        }
        if !place.is_dir() {
            self.notice(place, "there is no such folder or file");
            return Vec::new();
        }
        // It may hold both forms, and anything else beside them.
        let mut found = Vec::new();
        for Entry { name, path, is_folder } in self.entries(place) {
            if is_folder && path.join(MANIFEST).is_file() {
                found.extend(self.accept(&name, Origin::Extra, Location::Folder(path)));
            } else if !is_folder && let Some(stem) = name.strip_suffix(".rhai") {
                found.extend(self.accept(stem, Origin::Extra, Location::File(path)));
            }
        }
        found
    }

    /// One plugin for each name. The user's own wins over an extra one, that over a shipped one, a folder over a file.
    /// Of two in one place whose names differ in case only, the one that is live, else the one in lower case, else the first by name.
    fn settle(mut self, all: impl Iterator<Item = Found>, is_live: &dyn Fn(&str) -> bool) -> Discovery {
        // Names that differ in case only would share files on most desktops.
        let mut winners: HashMap<String, Found> = HashMap::new();
        for found in all {
            let key = found.name.to_ascii_lowercase();
            let Some(before) = winners.remove(&key) else {
                winners.insert(key, found);
                continue;
            };
            let stays = before.origin == found.origin
                || (before.origin == Origin::UserFolder && found.origin == Origin::SingleFile);
            if before.origin == found.origin && before.name != found.name {
                let claim = |found: &Found| (is_live(&found.name), found.name == key);
                let (winner, loser) = if claim(&found) > claim(&before) { (found, before) } else { (before, found) };
                let message = format!(
                    "{} is not loaded: its name differs from that of {} in case only; rename or delete one of the two",
                    loser.place(),
                    winner.place()
                );
                let refused = Some(loser.place());
                self.notices.push(Notice { refused, ..Notice::new(winner.name.clone(), message) });
                winners.insert(key, winner);
                continue;
            }
            let (winner, loser) = if stays { (before, found) } else { (found, before) };
            let advice = if stays { "; delete or rename one of the two" } else { "" };
            let message = format!("{} takes the place of {}{advice}", winner.place(), loser.place());
            self.notices.push(Notice::new(winner.name.clone(), message));
            winners.insert(key, winner);
        }
        let mut plugins: Vec<Found> = winners.into_values().collect();
        plugins.sort_by(|a, b| (a.origin, &a.name).cmp(&(b.origin, &b.name)));
        Discovery { plugins, notices: self.notices }
    }
}

/// Whether a file or folder name is what editors, version control or the system leave behind.
#[must_use]
pub fn is_litter(name: &str) -> bool {
    const ENDINGS: [&str; 12] = [
        "~",
        ".tmp",
        ".swp",
        ".swo",
        ".swx",
        ".bak",
        ".orig",
        ".rej",
        ".part",
        ".crdownload",
        "___jb_tmp___",
        "___jb_old___",
    ];
    name.starts_with(['.', '#', '~'])
        || ENDINGS.iter().any(|ending| name.ends_with(ending))
        // The name that vim probes a folder with.
        || name == "4913"
        || matches!(name, "Thumbs.db" | "desktop.ini" | "__pycache__" | "node_modules")
}

/// Reads one file of a plugin; `relative` has `/` between names and never leaves the plugin.
///
/// # Errors
/// `not_found`; `permission_denied` for a path or link that leads out; `too_large` with the size for a script over
/// [`MAX_SOURCE`] or another file over [`MAX_FILE`], before any of it is read; or what the file system says.
pub fn read_plugin_file(stock: &dyn Stock, found: &Found, relative: &str) -> Result<Vec<u8>> {
    let missing = || Error::not_found(format!("plugin `{}` has no file `{}`", found.name, clip(relative)));
    match &found.location {
        Location::File(path) => {
            if found.single_file().as_deref() != Some(relative) {
                return Err(missing());
            }
            read_sized(path, relative)
        }
        Location::Folder(folder) => read_sized(&file::confine(folder, relative)?, relative)
            .map_err(|e| if e.kind() == Kind::NotFound { missing() } else { e }),
        Location::Embedded(name) => stock.read(name, relative).map(<[u8]>::to_vec).ok_or_else(missing),
    }
}

fn read_sized(path: &Path, relative: &str) -> Result<Vec<u8>> {
    let most = if relative.ends_with(".rhai") { MAX_SOURCE as u64 } else { MAX_FILE };
    file::read_capped(path, most).map_err(|e| {
        if e.kind() == Kind::TooLarge && relative.ends_with(".rhai") {
            e.hint("a script has at most 1 MiB; split it, and move data into files:: or db::")
        } else {
            e
        }
    })
}

/// All files of a plugin, relative with `/`, sorted; litter, hidden folders and links that lead out are left out.
///
/// # Errors
/// `too_large` for a plugin with more than 10,000 files, or what the file system says.
pub fn list_plugin_files(stock: &dyn Stock, found: &Found) -> Result<Vec<String>> {
    match &found.location {
        Location::File(_) => Ok(found.single_file().into_iter().collect()),
        Location::Embedded(name) => Ok(stock.list(name)),
        Location::Folder(folder) => {
            let mut walk = Walk { base: folder, seen: HashSet::new(), paths: Vec::new() };
            walk.folder(folder, 0).map_err(|e| e.context(format!("plugin `{}`", found.name)))?;
            walk.paths.sort_unstable();
            Ok(walk.paths)
        }
    }
}

struct Walk<'a> {
    base: &'a Path,
    /// Folders that a link led to: once each, or links could multiply.
    seen: HashSet<PathBuf>,
    paths: Vec<String>,
}

impl Walk<'_> {
    fn folder(&mut self, folder: &Path, depth: usize) -> Result<()> {
        let cannot = |e: &std::io::Error| io(format_args!("cannot list `{}`", folder.display()), e);
        for entry in fs::read_dir(folder).map_err(|e| cannot(&e))? {
            let entry = entry.map_err(|e| cannot(&e))?;
            let kind = entry.file_type().map_err(|e| cannot(&e))?;
            let path = entry.path();
            let Some(relative) = self.relative(&path) else { continue };
            let is_folder = if kind.is_symlink() {
                let Ok(target) = file::confine(self.base, &relative) else { continue };
                if target.is_dir() && !self.seen.insert(target.clone()) {
                    continue;
                }
                target.is_dir()
            } else {
                kind.is_dir()
            };
            if is_folder {
                if depth < MAX_DEPTH {
                    self.folder(&path, depth + 1)?;
                }
            } else if self.paths.len() == MAX_FILES {
                return Err(Error::new(Kind::TooLarge, format!("it has more than {MAX_FILES} files"))
                    .hint("keep data in the plugin's data folder, not beside its scripts"));
            } else {
                self.paths.push(relative);
            }
        }
        Ok(())
    }

    /// The path from the plugin's folder down; `None` for litter and names that are not UTF-8.
    fn relative(&self, path: &Path) -> Option<String> {
        let name = path.file_name()?.to_str()?;
        let relative = path.strip_prefix(self.base).ok()?.to_str()?;
        (!is_litter(name)).then(|| relative.replace('\\', "/"))
    }
}

fn clip(text: &str) -> String {
    excerpt(text, 120)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
