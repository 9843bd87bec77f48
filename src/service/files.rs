//! `files::` of plugins: the data folder of a plugin, granted user folders, and read-only files beside a script.
//! Every path is relative and stays inside; no error tells where the folder is on the machine.

use super::permissions::Grants;
use super::ports::Carried;
use crate::base::error::{Error, Kind, Result, excerpt, io};
use crate::base::file;
use crate::base::paths::{Paths, valid_plugin_name};
use serde::Serialize;
use std::fs::{self, Metadata};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// One read or write may have this many bytes.
pub const MAX_FILE_BYTES: u64 = 20 << 20;
/// The data folder of a plugin may hold this many bytes.
pub const MAX_DATA_BYTES: u64 = 256 << 20;
/// The data folder of a plugin may hold this many files and folders.
pub const MAX_DATA_FILES: u64 = 10_000;
/// A listing gives at most this many entries.
pub const MAX_LISTED: usize = 10_000;

/// A file or folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Entry {
    /// Its name, without the folders above it.
    pub name: String,
    /// It is a folder.
    pub is_folder: bool,
    /// Bytes; 0 for a folder.
    pub size: u64,
    /// Last change, milliseconds since 1970-01-01 UTC.
    pub modified_ms: i64,
}

/// A file that is open for reading.
#[derive(Debug)]
pub struct Opened {
    /// The file.
    pub file: fs::File,
    /// Bytes when it was opened.
    pub size: u64,
    /// Last change, nanoseconds since 1970-01-01 UTC.
    pub modified_ns: u128,
}

/// A folder that a script may use, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folder {
    base: PathBuf,
    rule: Rule,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rule {
    /// Read and write, within the quota of data folders.
    Data,
    /// Read and write.
    Granted,
    /// Read what is not hidden.
    Assets,
}

impl Folder {
    /// The data folder of a plugin. It is made by the first write.
    ///
    /// # Errors
    /// `invalid_arguments` for a bad plugin name.
    pub fn data(paths: &Paths, plugin: &str) -> Result<Folder> {
        valid_plugin_name(plugin)?;
        Ok(Folder { base: paths.files_dir(plugin), rule: Rule::Data })
    }

    /// A user folder that the owner granted under this name.
    ///
    /// # Errors
    /// `permission_denied` for a name that is not granted, whether or not such a folder exists.
    pub fn granted(grants: &Grants, name: &str, plugin: &str) -> Result<Folder> {
        let base = grants.folder(name).ok_or_else(|| {
            let shown = excerpt(name, 64);
            Error::denied(format!("the folder `{shown}` is not granted to the plugin `{plugin}`"))
                .hint(format!("type: lapidary grant {plugin} folder:{shown}=/absolute/path"))
                .with_user_action(format!("grant a folder named `{shown}` to the plugin `{plugin}`"))
        })?;
        Ok(Folder { base: base.to_path_buf(), rule: Rule::Granted })
    }

    /// The files beside a script, read-only; hidden ones are not reached.
    #[must_use]
    pub fn assets(folder: impl Into<PathBuf>) -> Folder {
        Folder { base: folder.into(), rule: Rule::Assets }
    }

    /// The bytes of a file.
    ///
    /// # Errors
    /// `not_found`, `too_large` over [`MAX_FILE_BYTES`], `permission_denied` for a path outside, `invalid_arguments` for a folder.
    pub fn read_blob(&self, path: &str) -> Result<Vec<u8>> {
        let real = self.resolve(path)?;
        file::read_capped(&real, MAX_FILE_BYTES).map_err(|e| self.conceal(e, &real, path))
    }

    /// A file as text.
    ///
    /// # Errors
    /// As [`Folder::read_blob`], and `invalid_arguments` for bytes that are not UTF-8.
    pub fn read_text(&self, path: &str) -> Result<String> {
        let real = self.resolve(path)?;
        file::read_text_capped(&real, MAX_FILE_BYTES).map_err(|e| self.conceal(e, &real, path))
    }

    /// Writes a whole file in one step, making the folders above it. Readers see the old bytes or the new ones.
    ///
    /// # Errors
    /// `too_large` over [`MAX_FILE_BYTES`], `quota` where the data folder would pass its limits or the disk is full,
    /// `permission_denied` for a path outside, a read-only place or an asset. Nothing is changed then.
    pub fn write_blob(&self, path: &str, bytes: &[u8]) -> Result<()> {
        let real = self.resolve_to_write(path)?;
        let size = bytes.len() as u64;
        if size > MAX_FILE_BYTES {
            return Err(Error::new(
                Kind::TooLarge,
                format!("`{path}` would have {size} bytes; at most {MAX_FILE_BYTES} are written at once"),
            )
            .hint("split it over several files, or use a database (db::)"));
        }
        if self.rule == Rule::Data {
            self.within_quota(&real, path, size)?;
        }
        let written = match real.parent() {
            Some(parent) => {
                fs::create_dir_all(parent).map_err(|e| io(format_args!("cannot write `{}`", real.display()), &e))
            }
            None => Ok(()),
        };
        written.and_then(|()| file::write_atomic(&real, bytes)).map_err(|e| self.conceal(e, &real, path))
    }

    /// Writes a text as UTF-8; otherwise as [`Folder::write_blob`].
    ///
    /// # Errors
    /// As [`Folder::write_blob`].
    pub fn write_text(&self, path: &str, text: &str) -> Result<()> {
        self.write_blob(path, text.as_bytes())
    }

    /// Opens a file for reading, of any size.
    ///
    /// # Errors
    /// `not_found`, `permission_denied` for a path outside, `invalid_arguments` for a folder and whatever else is no file.
    pub fn open(&self, path: &str) -> Result<Opened> {
        let real = self.resolve(path)?;
        let failed =
            |e: std::io::Error| self.conceal(io(format_args!("cannot read `{}`", real.display()), &e), &real, path);
        let no_file = || Error::invalid(format!("`{}` is no file", path.escape_debug()));
        // Asked before it is opened: opening a pipe waits for its other end.
        if !fs::metadata(&real).map_err(failed)?.is_file() {
            return Err(no_file());
        }
        let file = fs::File::open(&real).map_err(failed)?;
        let meta = file.metadata().map_err(failed)?;
        if !meta.is_file() {
            return Err(no_file());
        }
        let modified = meta.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        Ok(Opened { file, size: meta.len(), modified_ns: modified.map_or(0, |age| age.as_nanos()) })
    }

    /// What is in a folder, sorted by name; `""` and `"."` are the folder itself. A folder that does not exist is empty only
    /// where it is the folder itself. Links that lead out are not shown.
    ///
    /// # Errors
    /// `not_found`, `permission_denied` for a path outside, `too_large` over [`MAX_LISTED`].
    pub fn list(&self, path: &str) -> Result<Vec<Entry>> {
        let own = matches!(path, "" | ".");
        let real = if own { self.base.clone() } else { self.resolve(path)? };
        let entries = match fs::read_dir(&real) {
            Err(e) if own && e.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(e) => return Err(self.conceal(io(format_args!("cannot list `{}`", real.display()), &e), &real, path)),
            Ok(entries) => entries,
        };
        let mut found = Vec::new();
        for entry in entries.flatten() {
            let Ok(name) = entry.file_name().into_string() else { continue };
            let inside = if own { name.clone() } else { format!("{path}/{name}") };
            if let Ok(real) = self.resolve(&inside)
                && let Ok(meta) = fs::metadata(real)
            {
                found.push(entry_of(name, &meta));
            }
            if found.len() > MAX_LISTED {
                return Err(Error::new(Kind::TooLarge, format!("`{path}` has more than {MAX_LISTED} entries")));
            }
        }
        found.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(found)
    }

    /// A file or folder, or `None` where there is nothing.
    ///
    /// # Errors
    /// `permission_denied` for a path outside, or what the file system says.
    pub fn stat(&self, path: &str) -> Result<Option<Entry>> {
        let real = self.resolve(path)?;
        match fs::metadata(&real) {
            Ok(meta) => Ok(Some(entry_of(path.rsplit('/').next().unwrap_or(path).to_string(), &meta))),
            Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
            Err(e) => Err(self.conceal(io(format_args!("cannot read `{}`", real.display()), &e), &real, path)),
        }
    }

    /// Deletes a file or an empty folder; says whether there was one.
    ///
    /// # Errors
    /// `conflict` for a folder that is not empty, `permission_denied` for a path outside or an asset, or what the file system says.
    pub fn delete(&self, path: &str) -> Result<bool> {
        let real = self.resolve_to_write(path)?;
        let gone = match fs::symlink_metadata(&real) {
            Ok(meta) if meta.is_dir() => fs::remove_dir(&real),
            Ok(_) => fs::remove_file(&real),
            Err(e) => Err(e),
        };
        match gone {
            Ok(()) => {
                file::sync_folder_of(&real);
                Ok(true)
            }
            Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(false),
            Err(e) if e.kind() == ErrorKind::DirectoryNotEmpty => {
                Err(Error::new(Kind::Conflict, format!("the folder `{path}` is not empty"))
                    .hint("delete what is in it first"))
            }
            Err(e) => Err(self.conceal(io(format_args!("cannot delete `{}`", real.display()), &e), &real, path)),
        }
    }

    fn resolve(&self, path: &str) -> Result<PathBuf> {
        let real = file::confine(&self.base, path)?;
        if self.rule == Rule::Assets {
            not_hidden(path)?;
        }
        Ok(real)
    }

    fn resolve_to_write(&self, path: &str) -> Result<PathBuf> {
        let real = self.resolve(path)?;
        if self.rule == Rule::Assets {
            return Err(Error::denied(format!("`{}` is an asset, which is read-only", path.escape_debug()))
                .hint("write to the plugin's own folder with files::write_text"));
        }
        Ok(real)
    }

    /// Whether a file of `size` bytes at `real` keeps the data folder within its limits.
    fn within_quota(&self, real: &Path, path: &str, size: u64) -> Result<()> {
        let old = fs::metadata(real).ok().map(|meta| meta.len());
        if old.is_some_and(|old| size <= old) {
            return Ok(());
        }
        let (bytes, files) = usage(&self.base);
        let quota = |what: String| {
            Err(Error::new(Kind::Quota, format!("with `{path}` the data folder would have {what}"))
                .hint("delete files that are not needed"))
        };
        let total = (bytes - old.unwrap_or(0).min(bytes)).saturating_add(size);
        if total > MAX_DATA_BYTES {
            return quota(format!("{total} bytes; at most {MAX_DATA_BYTES} are kept"));
        }
        if old.is_none() && files >= MAX_DATA_FILES {
            return quota(format!("more than {MAX_DATA_FILES} files"));
        }
        Ok(())
    }

    /// The error as a script may read it: with the path it gave, and no other.
    fn conceal(&self, error: Error, real: &Path, path: &str) -> Error {
        let base = self.base.display().to_string();
        let error = error.reworded(|message| message.replace(&real.display().to_string(), path));
        if error.message().contains(&base) {
            return error.reworded(|_| format!("`{path}` could not be used"));
        }
        error
    }
}

fn not_hidden(path: &str) -> Result<()> {
    if path.split('/').any(|name| name.starts_with('.')) {
        let shown = path.escape_debug();
        return Err(Error::denied(format!("`{shown}` is hidden; only plain files beside the script are assets")));
    }
    Ok(())
}

/// A file beside the script of a plugin that the program carries.
///
/// # Errors
/// `permission_denied` for a hidden file or a path outside, `not_found`.
pub fn carried_asset(carried: &dyn Carried, plugin: &str, path: &str) -> Result<&'static [u8]> {
    if path.starts_with('/') || path.split('/').any(|name| name == "..") {
        return Err(Error::denied(format!("`{}` is outside the folder of the script", path.escape_debug())));
    }
    not_hidden(path)?;
    carried
        .file(plugin, path)
        .ok_or_else(|| Error::not_found(format!("there is no asset `{}` beside the script", path.escape_debug())))
}

/// The bytes of a file beside a script, read-only.
///
/// # Errors
/// `permission_denied` for a path outside or hidden, `not_found`, `too_large` over [`MAX_FILE_BYTES`].
pub fn asset(folder: &Path, path: &str) -> Result<Vec<u8>> {
    Folder::assets(folder).read_blob(path)
}

/// Bytes and number of entries below a folder; links count as entries and are not followed.
fn usage(folder: &Path) -> (u64, u64) {
    let (mut bytes, mut files) = (0, 0);
    let mut open = vec![folder.to_path_buf()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            files += 1;
            match entry.metadata() {
                Ok(meta) if meta.is_dir() => open.push(entry.path()),
                Ok(meta) => bytes += meta.len(),
                Err(_) => {}
            }
        }
    }
    (bytes, files)
}

fn entry_of(name: String, meta: &Metadata) -> Entry {
    let modified = meta.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    Entry {
        name,
        is_folder: meta.is_dir(),
        size: if meta.is_dir() { 0 } else { meta.len() },
        modified_ms: modified.and_then(|age| i64::try_from(age.as_millis()).ok()).unwrap_or(0),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::service::permissions::{Declared, Grant, GrantStore};

    fn data(root: &Path) -> Folder {
        Folder::data(&Paths::at(root), "dice").unwrap()
    }

    fn names(entries: &[Entry]) -> Vec<&str> {
        entries.iter().map(|entry| entry.name.as_str()).collect()
    }

    #[test]
    fn what_is_written_is_read_listed_and_deleted() {
        let dir = tempfile::tempdir().unwrap();
        let folder = data(dir.path());
        assert!(folder.list("").unwrap().is_empty() && folder.list(".").unwrap().is_empty());
        folder.write_text("b/é.txt", "日本\n").unwrap();
        folder.write_blob("a.bin", &[0, 255]).unwrap();
        assert_eq!(folder.read_text("b/é.txt").unwrap(), "日本\n");
        assert_eq!(folder.read_blob("a.bin").unwrap(), [0, 255]);
        let entries = folder.list("").unwrap();
        assert_eq!(names(&entries), ["a.bin", "b"]);
        assert_eq!((entries[0].size, entries[0].is_folder, entries[1].is_folder), (2, false, true));
        assert!(entries[0].modified_ms > 1_600_000_000_000);
        assert_eq!(names(&folder.list("b").unwrap()), ["é.txt"]);
        assert_eq!(folder.stat("b/é.txt").unwrap().unwrap().size, 7);
        assert_eq!(folder.stat("none").unwrap(), None);
        assert_eq!(folder.stat("a.bin/x").unwrap(), None);
        assert_eq!(folder.delete("b").unwrap_err().kind(), Kind::Conflict);
        assert!(folder.delete("b/é.txt").unwrap() && folder.delete("b").unwrap());
        assert!(!folder.delete("b").unwrap());
        assert_eq!(names(&folder.list("").unwrap()), ["a.bin"], "nothing else is left behind");
    }

    #[test]
    fn errors_say_what_and_never_where_on_the_machine() {
        let dir = tempfile::tempdir().unwrap();
        let folder = data(dir.path());
        folder.write_blob("bad.txt", b"a\xff").unwrap();
        folder.write_blob("sub/x", b"").unwrap();
        let errors = [
            (folder.read_text("none.txt").unwrap_err(), Kind::NotFound),
            (folder.read_text("bad.txt").unwrap_err(), Kind::InvalidArguments),
            (folder.read_blob("sub").unwrap_err(), Kind::InvalidArguments),
            (folder.list("none").unwrap_err(), Kind::NotFound),
            (folder.list("bad.txt").unwrap_err(), Kind::NotFound),
            (folder.write_text("bad.txt/x", "y").unwrap_err(), Kind::Conflict),
            (folder.write_text("../x", "y").unwrap_err(), Kind::PermissionDenied),
        ];
        for (e, kind) in errors {
            assert_eq!(e.kind(), kind, "{e}");
            assert!(!e.to_string().contains(&*dir.path().to_string_lossy()), "{e}");
        }
        assert!(folder.write_text("sub", "y").is_err());
    }

    #[test]
    fn a_path_outside_has_one_text_whether_or_not_it_exists() {
        let dir = tempfile::tempdir().unwrap();
        let folder = data(dir.path());
        folder.write_text("mine", "x").unwrap();
        std::fs::write(dir.path().join("user/plugin_state/secret"), "s").unwrap();
        for attempt in ["../secret", "../absent", "/etc/passwd", "/etc/absent", "a/../../secret"] {
            let text = |e: Error| e.to_string().replace(attempt, "*");
            let expected = text(folder.read_text(attempt).unwrap_err());
            assert!(expected.starts_with("`*` is not a path inside the folder"), "{expected}");
            assert_eq!(text(folder.write_text(attempt, "x").unwrap_err()), expected);
            assert_eq!(text(folder.delete(attempt).unwrap_err()), expected);
            assert_eq!(text(folder.stat(attempt).unwrap_err()), expected);
            assert_eq!(text(folder.list(attempt).unwrap_err()), expected);
        }
    }

    #[cfg(unix)]
    #[test]
    fn links_that_lead_out_are_neither_shown_nor_followed() {
        let dir = tempfile::tempdir().unwrap();
        let folder = data(dir.path());
        folder.write_text("mine", "x").unwrap();
        std::fs::write(dir.path().join("secret"), "s").unwrap();
        std::os::unix::fs::symlink(dir.path().join("secret"), folder.base.join("leak")).unwrap();
        std::os::unix::fs::symlink("mine", folder.base.join("alias")).unwrap();
        assert_eq!(names(&folder.list("").unwrap()), ["alias", "mine"]);
        assert_eq!(folder.read_text("alias").unwrap(), "x");
        assert_eq!(folder.write_text("leak", "y").unwrap_err().kind(), Kind::PermissionDenied);
        assert_eq!(std::fs::read_to_string(dir.path().join("secret")).unwrap(), "s");
    }

    #[test]
    fn one_file_and_the_whole_folder_have_limits() {
        let dir = tempfile::tempdir().unwrap();
        let folder = data(dir.path());
        let limit = usize::try_from(MAX_FILE_BYTES).unwrap();
        assert_eq!(folder.write_blob("big", &vec![0; limit + 1]).unwrap_err().kind(), Kind::TooLarge);
        folder.write_blob("small", b"1").unwrap();
        // Sparse files weigh as much as they say without using the disk.
        std::fs::File::create(folder.base.join("sparse")).unwrap().set_len(MAX_DATA_BYTES - 1001).unwrap();
        assert_eq!(folder.read_blob("sparse").unwrap_err().kind(), Kind::TooLarge);
        folder.write_blob("fits", &[0; 1000]).unwrap();
        assert_eq!(folder.write_blob("over", b"1").unwrap_err().kind(), Kind::Quota);
        assert_eq!(folder.write_blob("fits", &[0; 1001]).unwrap_err().kind(), Kind::Quota);
        folder.write_blob("fits", &[0; 999]).unwrap();
        assert_eq!(folder.stat("over").unwrap(), None);
    }

    #[test]
    fn the_number_of_files_has_a_limit() {
        let dir = tempfile::tempdir().unwrap();
        let folder = data(dir.path());
        std::fs::create_dir_all(folder.base.join("many")).unwrap();
        for n in 0..MAX_DATA_FILES - 1 {
            std::fs::File::create(folder.base.join(format!("many/{n}"))).unwrap();
        }
        assert_eq!(folder.write_text("one-more", "").unwrap_err().kind(), Kind::Quota);
        folder.write_text("many/0", "changed").unwrap();
        folder.delete("many/1").unwrap();
        folder.write_text("one-more", "").unwrap();
        assert_eq!(folder.list("many").unwrap().len() as u64, MAX_DATA_FILES - 2);
    }

    #[test]
    fn assets_are_read_only_and_hide_hidden_files() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join(".git")).unwrap();
        for name in ["logo.png", ".env", ".git/config"] {
            std::fs::write(dir.path().join(name), "x").unwrap();
        }
        assert_eq!(asset(dir.path(), "logo.png").unwrap(), b"x");
        for hidden in [".env", ".git/config", "../x", "/etc/passwd"] {
            assert_eq!(asset(dir.path(), hidden).unwrap_err().kind(), Kind::PermissionDenied, "{hidden}");
        }
        let assets = Folder::assets(dir.path());
        assert_eq!(names(&assets.list("").unwrap()), ["logo.png"]);
        assert_eq!(assets.write_text("logo.png", "y").unwrap_err().kind(), Kind::PermissionDenied);
        assert_eq!(assets.delete("logo.png").unwrap_err().kind(), Kind::PermissionDenied);
    }

    #[test]
    fn a_user_folder_needs_its_grant() {
        let dir = tempfile::tempdir().unwrap();
        let (root, music) = (dir.path().join("root"), dir.path().join("music"));
        std::fs::create_dir_all(&music).unwrap();
        let store = GrantStore::new(Paths::at(&root), Default::default(), Default::default());
        let held = || store.effective("dice", &Declared::default());
        let e = Folder::granted(&held(), "music", "dice").unwrap_err();
        assert_eq!(e.kind(), Kind::PermissionDenied);
        assert!(e.hint_text().unwrap().contains("folder:music"), "{e}");
        store.grant("dice", &Grant::Folder { name: "music".into(), path: music.clone() }).unwrap();
        let folder = Folder::granted(&held(), "music", "dice").unwrap();
        folder.write_text("a/list.m3u", "song").unwrap();
        assert_eq!(std::fs::read_to_string(music.join("a/list.m3u")).unwrap(), "song");
        assert_eq!(names(&folder.list("a").unwrap()), ["list.m3u"]);
    }

    #[test]
    fn a_place_that_cannot_be_written_is_an_error_and_changes_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let paths = Paths::at(dir.path());
        paths.ensure().unwrap();
        std::fs::write(paths.files_dir("dice"), "a file where the folder should be").unwrap();
        let e = data(dir.path()).write_text("x", "y").unwrap_err();
        assert!(!e.to_string().contains(&*dir.path().to_string_lossy()), "{e}");
        assert_eq!(std::fs::read_to_string(paths.files_dir("dice")).unwrap(), "a file where the folder should be");
    }

    #[test]
    fn an_asset_that_the_program_carries_follows_the_rules_of_one_on_disk() {
        struct One;
        impl Carried for One {
            fn file(&self, plugin: &str, path: &str) -> Option<&'static [u8]> {
                (plugin == "dice" && matches!(path, "logo.png" | ".hidden" | "web/a.css")).then_some(b"x")
            }
        }
        for path in ["logo.png", "web/a.css"] {
            assert_eq!(carried_asset(&One, "dice", path).unwrap(), b"x");
            assert_eq!(carried_asset(&One, "other", path).unwrap_err().kind(), Kind::NotFound);
        }
        for path in [".hidden", "web/.git/x", "../dice/logo.png", "web/../logo.png", "/logo.png"] {
            assert_eq!(carried_asset(&One, "dice", path).unwrap_err().kind(), Kind::PermissionDenied, "{path}");
        }
        assert_eq!(carried_asset(&One, "dice", "no.png").unwrap_err().kind(), Kind::NotFound);
    }
}
