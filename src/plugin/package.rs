//! A plugin as one file, or as a folder from elsewhere: what is in it, within limits, before any of it is written anywhere.
//! Bytes go in and files with checked names come out; it knows no place on a disk but the one it is told to read.

use super::discover::{MANIFEST, is_litter};
use crate::base::error::{Error, Kind, Result, excerpt, io};
use crate::base::file;
use crate::base::json;
use crate::base::paths::valid_plugin_name;
use crate::script::program::MAX_SOURCE;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{Cursor, Read, Write};
use std::path::Path;
use zip::result::ZipError;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipArchive, ZipWriter};

/// Largest file that is taken, packed or not: 50 MiB.
pub const MAX_PACKED: usize = 50 << 20;
/// Largest file inside: 10 MiB.
const MAX_FILE: u64 = 10 << 20;
/// Most bytes of all files inside: 100 MiB.
const MAX_TOTAL: u64 = 100 << 20;
/// Most entries of a zip, folders and litter included.
const MAX_ENTRIES: usize = 5000;
/// Most files.
const MAX_FILES: usize = 2000;
/// Most folders around a file.
const MAX_DEPTH: usize = 8;
/// Longest path of a file.
const MAX_PATH: usize = 240;

/// Which form a plugin has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// One script.
    Single,
    /// A folder with a manifest.
    Folder,
}

/// A plugin that may be installed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Package {
    /// The plugin's name.
    pub name: String,
    /// Which form it has.
    pub form: Form,
    /// Its version, where it states one.
    pub version: Option<String>,
    /// Its files by path, sorted: the script, or what is in the folder.
    pub files: Vec<(String, Vec<u8>)>,
}

impl Package {
    /// Reads what was sent as `file_name`: a `.rhai` script or a `.zip` of a plugin's folder.
    ///
    /// # Errors
    /// `invalid_arguments` naming what is wrong with it, `too_large` over a limit.
    pub fn of_bytes(file_name: &str, bytes: Vec<u8>) -> Result<Package> {
        let base = file_name.rsplit(['/', '\\']).next().unwrap_or(file_name);
        if bytes.len() > MAX_PACKED {
            return Err(too_large(format!("`{}` is larger than {} MiB", shown(base), MAX_PACKED >> 20)));
        }
        let lower = base.to_ascii_lowercase();
        if let Some(stem) = lower.strip_suffix(".rhai") {
            return single(&base[..stem.len()], bytes);
        }
        if lower.ends_with(".zip") {
            return folder(unpacked(&bytes)?);
        }
        Err(Error::invalid(format!("`{}` is no plugin", shown(base)))
            .hint("a plugin is a .rhai script, or a .zip of a folder with a plugin.json"))
    }

    /// Reads a script, a zip or a plugin's folder from the disk. Links in a folder are refused.
    ///
    /// # Errors
    /// As [`Package::of_bytes`], and what the file system says.
    pub fn of_path(path: &Path) -> Result<Package> {
        if path.is_dir() {
            let found = walk(path)?;
            return folder(found);
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Package::of_bytes(&name, file::read_capped(path, MAX_PACKED as u64)?)
    }
}

fn single(stem: &str, bytes: Vec<u8>) -> Result<Package> {
    valid_plugin_name(stem).map_err(|e| e.hint("rename the file: its name becomes the plugin's"))?;
    let path = format!("{stem}.rhai");
    check_script(&path, &bytes)?;
    Ok(Package { name: stem.to_owned(), form: Form::Single, version: None, files: vec![(path, bytes)] })
}

fn check_script(path: &str, bytes: &[u8]) -> Result<()> {
    if bytes.len() > MAX_SOURCE {
        return Err(too_large(format!("`{}` is larger than {} MiB", shown(path), MAX_SOURCE >> 20)));
    }
    match std::str::from_utf8(bytes) {
        Ok(_) => Ok(()),
        Err(e) => Err(Error::invalid(format!("`{}` is not UTF-8 text: byte {}", shown(path), e.valid_up_to()))),
    }
}

/// A folder's files as a package: what is around the manifest, which lies at the top or one folder down.
fn folder(files: Vec<(String, Vec<u8>)>) -> Result<Package> {
    let prefix = root_of(&files)?;
    let mut inside = BTreeMap::new();
    for (path, bytes) in files {
        let Some(path) = path.strip_prefix(&prefix) else {
            return Err(Error::invalid(format!("`{}` lies beside the plugin's folder", shown(&path)))
                .hint("pack one plugin's folder, and nothing beside it"));
        };
        if path.ends_with(".rhai") {
            check_script(path, &bytes)?;
        }
        inside.insert(path.to_owned(), bytes);
    }
    let manifest = inside.get(MANIFEST).map(Vec::as_slice).unwrap_or_default();
    let Ok(Value::Object(manifest)) = json::parse_file_text(manifest).map_err(|e| e.position()) else {
        return Err(Error::invalid("the plugin's plugin.json is no JSON object"));
    };
    let text = |key: &str| manifest.get(key).and_then(Value::as_str).map(str::trim).filter(|text| !text.is_empty());
    let name = text("name").ok_or_else(|| Error::invalid("the plugin's plugin.json has no `name`"))?.to_owned();
    valid_plugin_name(&name)?;
    for key in ["version", "description"] {
        if text(key).is_none() {
            return Err(Error::invalid(format!("the plugin's plugin.json has no `{key}`"))
                .hint("a plugin that is installed states its name, version and description"));
        }
    }
    let version = text("version").map(str::to_owned);
    Ok(Package { name, form: Form::Folder, version, files: inside.into_iter().collect() })
}

/// What stands before every path: nothing, or the one folder that everything is in.
fn root_of(files: &[(String, Vec<u8>)]) -> Result<String> {
    if files.iter().any(|(path, _)| path == MANIFEST) {
        return Ok(String::new());
    }
    let mut roots = files
        .iter()
        .filter_map(|(path, _)| path.strip_suffix(MANIFEST))
        .filter(|root| root.strip_suffix('/').is_some_and(|folder| !folder.contains('/')));
    match (roots.next(), roots.next()) {
        (Some(root), None) => Ok(root.to_owned()),
        (Some(_), Some(_)) => Err(Error::invalid("there are several plugins in it").hint("install them one by one")),
        (None, _) => Err(Error::invalid("there is no plugin.json in it, at the top or one folder down")
            .hint("a plugin's folder holds a plugin.json; a single script is installed as a .rhai file")),
    }
}

/// The files of a zip.
fn unpacked(bytes: &[u8]) -> Result<Vec<(String, Vec<u8>)>> {
    let mut archive = ZipArchive::new(Cursor::new(bytes)).map_err(|e| broken(&e))?;
    if archive.len() > MAX_ENTRIES {
        return Err(too_large(format!("it has {} entries; at most {MAX_ENTRIES} are taken", archive.len())));
    }
    let mut taken = Taken::default();
    for index in 0..archive.len() {
        let (path, is_folder) = {
            // Without unpacking: what is left out, or may not be there, is never looked into.
            let entry = archive.by_index_raw(index).map_err(|e| broken(&e))?;
            let name = entry.name().map_err(|e| broken(&e))?.into_owned();
            let path = checked_path(name.strip_suffix('/').unwrap_or(&name))?;
            if entry.is_symlink()
                || entry.unix_mode().is_some_and(|mode| !matches!(mode & 0o170_000, 0 | 0o100_000 | 0o040_000))
            {
                return Err(Error::invalid(format!("`{}` is a link or no file at all", shown(&path)))
                    .hint("pack the files themselves"));
            }
            if entry.encrypted() {
                return Err(Error::invalid(format!("`{}` is locked with a password", shown(&path))));
            }
            (path, entry.is_dir())
        };
        if is_folder || is_left_out(&path) {
            continue;
        }
        taken.room_for(&path)?;
        let entry = archive.by_index(index).map_err(|e| broken(&e))?;
        let most = MAX_FILE.min(MAX_TOTAL - taken.bytes);
        if entry.size() > most {
            return Err(beyond(&path, entry.size()));
        }
        // What an entry says of its size need not be true.
        let mut data = Vec::new();
        entry
            .take(most + 1)
            .read_to_end(&mut data)
            .map_err(|e| Error::invalid(format!("`{}` cannot be unpacked: {e}", shown(&path))).hint("pack it again"))?;
        if data.len() as u64 > most {
            return Err(beyond(&path, data.len() as u64));
        }
        taken.add(path, data)?;
    }
    Ok(taken.files)
}

/// The files of a folder.
fn walk(base: &Path) -> Result<Vec<(String, Vec<u8>)>> {
    let mut stack = vec![base.to_path_buf()];
    let mut taken = Taken::default();
    while let Some(folder) = stack.pop() {
        let cannot = |e: &std::io::Error| io(format_args!("cannot list `{}`", folder.display()), e);
        for entry in std::fs::read_dir(&folder).map_err(|e| cannot(&e))? {
            let entry = entry.map_err(|e| cannot(&e))?;
            let (path, kind) = (entry.path(), entry.file_type().map_err(|e| cannot(&e))?);
            let inside = path.strip_prefix(base).unwrap_or(&path);
            let name = inside.to_str().ok_or_else(|| {
                Error::invalid(format!("the name of `{}` is not UTF-8", inside.display())).hint("rename it")
            })?;
            let name = checked_path(&name.replace(std::path::MAIN_SEPARATOR, "/"))?;
            if is_left_out(&name) {
                continue;
            }
            if kind.is_dir() {
                stack.push(path);
                continue;
            }
            if !kind.is_file() {
                return Err(Error::invalid(format!("`{}` is a link or no file at all", shown(&name)))
                    .hint("put the file itself there"));
            }
            taken.room_for(&name)?;
            let most = MAX_FILE.min(MAX_TOTAL - taken.bytes);
            let data = file::read_capped(&path, most)?;
            taken.add(name, data)?;
        }
    }
    Ok(taken.files)
}

/// What was taken so far.
#[derive(Default)]
struct Taken {
    files: Vec<(String, Vec<u8>)>,
    bytes: u64,
    /// Folded, for file systems that do not tell letters' cases apart: of files, and of the folders around them.
    names: BTreeSet<String>,
    folders: BTreeSet<String>,
}

impl Taken {
    fn room_for(&self, path: &str) -> Result<()> {
        if self.files.len() == MAX_FILES {
            return Err(too_large(format!("it has more than {MAX_FILES} files, `{}` among them", shown(path)))
                .hint("keep data out of it"));
        }
        Ok(())
    }

    fn add(&mut self, path: String, bytes: Vec<u8>) -> Result<()> {
        let folded = path.to_lowercase();
        let ends: Vec<usize> = folded.match_indices('/').map(|(at, _)| at).collect();
        let collides = self.names.contains(&folded)
            || self.folders.contains(&folded)
            || ends.iter().any(|end| self.names.contains(&folded[..*end]));
        if collides {
            return Err(Error::invalid(format!(
                "`{}` is there twice, or differs from another in case only",
                shown(&path)
            ))
            .hint("many file systems would take both for one"));
        }
        self.folders.extend(ends.into_iter().map(|end| folded[..end].to_owned()));
        self.names.insert(folded);
        self.bytes += bytes.len() as u64;
        self.files.push((path, bytes));
        Ok(())
    }
}

/// The path itself, if it is names with `/` between them that every system takes and that lead nowhere else.
pub(super) fn checked_path(path: &str) -> Result<String> {
    let refuse = |why: &str| Err(Error::invalid(format!("`{}` is no path for a file of a plugin: {why}", shown(path))));
    if path.is_empty() || path.len() > MAX_PATH {
        return refuse("it is empty or too long");
    }
    if path.chars().any(|c| c.is_control() || matches!(c, '\\' | ':' | '*' | '?' | '"' | '<' | '>' | '|')) {
        return refuse("it holds a character that some systems do not take");
    }
    let parts: Vec<&str> = path.split('/').collect();
    if parts.iter().any(|part| matches!(*part, "" | "." | "..")) {
        return refuse("it leads out of the plugin's folder, or nowhere");
    }
    if parts.iter().any(|part| part.ends_with('.') || part.ends_with(' ') || part.starts_with(' ')) {
        return refuse(
            "a name that begins with a space, or ends with one or with a full stop, is another one on some systems",
        );
    }
    if parts.len() > MAX_DEPTH {
        return refuse("it lies too deep");
    }
    Ok(path.to_owned())
}

/// What editors, version control and systems leave behind.
fn is_left_out(path: &str) -> bool {
    path.split('/').any(|part| is_litter(part) || part == "__MACOSX")
}

fn broken(e: &ZipError) -> Error {
    Error::invalid(format!("the zip cannot be read: {e}")).hint("pack it again, with the usual method")
}

fn too_large(message: String) -> Error {
    Error::new(Kind::TooLarge, message)
}

fn beyond(path: &str, size: u64) -> Error {
    too_large(format!(
        "`{}` unpacks to {size} bytes or more; at most {} MiB a file and {} MiB in all are taken",
        shown(path),
        MAX_FILE >> 20,
        MAX_TOTAL >> 20
    ))
}

fn shown(text: &str) -> String {
    excerpt(text, 120)
}

/// Files as a zip, in one folder `name`: the same files give the same bytes.
///
/// # Errors
/// `internal` where it cannot be packed.
pub fn packed(name: &str, files: &[(String, Vec<u8>)]) -> Result<Vec<u8>> {
    let options = SimpleFileOptions::default()
        .compression_method(CompressionMethod::Deflated)
        .last_modified_time(DateTime::default())
        .unix_permissions(0o644);
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    let done = files.iter().try_for_each(|(path, bytes)| {
        writer.start_file(format!("{name}/{path}"), options)?;
        writer.write_all(bytes).map_err(ZipError::Io)
    });
    let packed = done.and_then(|()| writer.finish());
    packed.map(Cursor::into_inner).map_err(|e| Error::internal(format!("`{name}` cannot be packed: {e}")))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const JSON: &str = r#"{"name": "kit", "version": "1.2.0", "description": "For tests."}"#;

    type Files<'a> = &'a [(&'a str, &'a [u8])];

    fn zipped(files: Files) -> Vec<u8> {
        zipped_with(files, |o| o)
    }

    fn zipped_with(files: Files, set: impl Fn(SimpleFileOptions) -> SimpleFileOptions) -> Vec<u8> {
        let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
        for (path, bytes) in files {
            writer.start_file(*path, set(SimpleFileOptions::default())).unwrap();
            writer.write_all(bytes).unwrap();
        }
        writer.finish().unwrap().into_inner()
    }

    fn names(package: &Package) -> Vec<&str> {
        package.files.iter().map(|(path, _)| path.as_str()).collect()
    }

    #[test]
    fn a_zip_may_have_its_plugin_at_the_top_or_one_folder_down_and_litter_is_left_out() {
        for prefix in ["", "kit/", "kit-main/"] {
            let files = ["plugin.json", "tools/a.rhai", ".git/config", "__MACOSX/x", "tools/a.rhai~", ".DS_Store"];
            let files: Vec<(String, &[u8])> = files
                .iter()
                .map(|f| (format!("{prefix}{f}"), if *f == "plugin.json" { JSON.as_bytes() } else { b"x" }))
                .collect();
            let files: Vec<(&str, &[u8])> = files.iter().map(|(path, bytes)| (path.as_str(), *bytes)).collect();
            let package = Package::of_bytes("kit.zip", zipped(&files)).unwrap();
            assert_eq!(
                (package.name.as_str(), package.form, package.version.as_deref()),
                ("kit", Form::Folder, Some("1.2.0"))
            );
            assert_eq!(names(&package), ["plugin.json", "tools/a.rhai"], "{prefix}");
        }
    }

    #[test]
    fn what_a_zip_may_not_hold_is_refused_by_its_name() {
        let json = JSON.as_bytes();
        let rows: [(Files, &str); 20] = [
            (&[("tools/a.rhai", b"x")], "no plugin.json"),
            (&[("a/b/plugin.json", json)], "no plugin.json"),
            (&[("a/plugin.json", json), ("b/plugin.json", json)], "several plugins"),
            (&[("a/plugin.json", json), ("other.txt", b"x")], "beside the plugin's folder"),
            (&[("plugin.json", b"[]")], "no JSON object"),
            (&[("plugin.json", b"{")], "no JSON object"),
            (&[("plugin.json", b"{\"version\": \"1\"}")], "no `name`"),
            (&[("plugin.json", br#"{"name": "../x", "version": "1", "description": "x"}"#)], "not a plugin name"),
            (&[("plugin.json", br#"{"name": "kit", "description": "x"}"#)], "no `version`"),
            (&[("plugin.json", br#"{"name": "kit", "version": "1"}"#)], "no `description`"),
            (&[("plugin.json", json), ("../evil.rhai", b"x")], "leads out"),
            (&[("plugin.json", json), ("tools/../../evil.rhai", b"x")], "leads out"),
            (&[("plugin.json", json), ("/etc/passwd", b"x")], "leads out"),
            (&[("plugin.json", json), ("tools\\evil.rhai", b"x")], "character"),
            (&[("plugin.json", json), ("C:/evil.rhai", b"x")], "character"),
            (&[("plugin.json", json), ("a/b/c/d/e/f/g/h/i.txt", b"x")], "too deep"),
            (&[("plugin.json", json), ("tools/a.rhai", b"x"), ("Tools/A.rhai", b"y")], "case only"),
            (&[("plugin.json", json), ("tools", b"x"), ("tools/a.rhai", b"y")], "case only"),
            (&[("plugin.json", json), ("tools/a.rhai", b"\xff")], "UTF-8"),
            (&[("plugin.json", json), ("name .", b"x")], "full stop"),
        ];
        for (files, told) in rows {
            let e = Package::of_bytes("x.zip", zipped(files)).unwrap_err();
            assert_eq!(e.kind(), Kind::InvalidArguments, "{files:?}: {e}");
            assert!(e.message().contains(told), "{told}: {e}");
        }
    }

    #[test]
    fn links_locks_and_what_is_no_zip_are_refused() {
        let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
        writer.start_file("plugin.json", SimpleFileOptions::default()).unwrap();
        writer.write_all(JSON.as_bytes()).unwrap();
        writer.add_symlink("tools/a.rhai", "/etc/passwd", SimpleFileOptions::default()).unwrap();
        let linked = writer.finish().unwrap().into_inner();
        assert!(Package::of_bytes("x.zip", linked).unwrap_err().message().contains("link"));
        for bytes in [
            Vec::new(),
            b"PK\x03\x04".to_vec(),
            b"no zip at all".to_vec(),
            zipped(&[("plugin.json", b"x")])[..30].to_vec(),
        ] {
            let e = Package::of_bytes("x.zip", bytes).unwrap_err();
            assert!(e.kind() == Kind::InvalidArguments && e.message().contains("zip"), "{e}");
        }
        for name in ["x.tar.gz", "x", "", "plugin.json", ".zip2"] {
            assert_eq!(Package::of_bytes(name, Vec::new()).unwrap_err().kind(), Kind::InvalidArguments, "{name}");
        }
    }

    #[test]
    fn a_zip_that_unpacks_to_too_much_is_refused_whatever_it_says_of_itself() {
        let deflated = |o: SimpleFileOptions| o.compression_method(CompressionMethod::Deflated);
        let zeros = vec![0; (MAX_FILE + 1) as usize];
        let bomb = zipped_with(&[("plugin.json", JSON.as_bytes()), ("data.bin", &zeros)], deflated);
        assert!(bomb.len() < 100_000);
        assert_eq!(Package::of_bytes("x.zip", bomb.clone()).unwrap_err().kind(), Kind::TooLarge);
        // The same with a size that is a lie, in the central directory and in the file's own head.
        let mut lie = bomb;
        let (real, small) = (((MAX_FILE + 1) as u32).to_le_bytes(), 10_u32.to_le_bytes());
        let places: Vec<usize> = lie.windows(4).enumerate().filter(|(_, w)| *w == real).map(|(at, _)| at).collect();
        assert!(!places.is_empty());
        for at in places {
            lie[at..at + 4].copy_from_slice(&small);
        }
        assert!(Package::of_bytes("x.zip", lie).is_err());
        let most = vec![0; MAX_FILE as usize];
        let many: Vec<(String, &[u8])> = (0..11).map(|n| (format!("data/{n}.bin"), most.as_slice())).collect();
        let mut files: Vec<(&str, &[u8])> = vec![("plugin.json", JSON.as_bytes())];
        files.extend(many.iter().map(|(path, bytes)| (path.as_str(), *bytes)));
        assert_eq!(Package::of_bytes("x.zip", zipped_with(&files, deflated)).unwrap_err().kind(), Kind::TooLarge);
        let small: Vec<String> = (0..=MAX_FILES).map(|n| format!("data/{n}.txt")).collect();
        let mut files: Vec<(&str, &[u8])> = vec![("plugin.json", JSON.as_bytes())];
        files.extend(small.iter().map(|path| (path.as_str(), b"".as_slice())));
        assert_eq!(Package::of_bytes("x.zip", zipped(&files)).unwrap_err().kind(), Kind::TooLarge);
        assert_eq!(Package::of_bytes("x.zip", vec![0; MAX_PACKED + 1]).unwrap_err().kind(), Kind::TooLarge);
    }

    #[test]
    fn a_script_is_a_plugin_of_its_file_s_name() {
        let package = Package::of_bytes("some/where/Dice.RHAI", b"fn x() {}".to_vec()).unwrap();
        assert_eq!((package.name.as_str(), names(&package)), ("Dice", vec!["Dice.rhai"]));
        for name in ["my tool.rhai", ".rhai", "con.rhai", "agents.rhai", "a.b.rhai"] {
            assert_eq!(Package::of_bytes(name, Vec::new()).unwrap_err().kind(), Kind::InvalidArguments, "{name}");
        }
        assert!(Package::of_bytes("a.rhai", b"\xff".to_vec()).unwrap_err().message().contains("UTF-8"));
        assert_eq!(Package::of_bytes("a.rhai", vec![b' '; MAX_SOURCE + 1]).unwrap_err().kind(), Kind::TooLarge);
    }

    #[test]
    fn what_is_packed_is_unpacked_as_it_was_and_the_same_files_give_the_same_bytes() {
        let files = vec![
            ("plugin.json".to_owned(), JSON.as_bytes().to_vec()),
            ("tools/ž.rhai".to_owned(), b"fn x() {}".to_vec()),
        ];
        let bytes = packed("kit", &files).unwrap();
        assert_eq!(bytes, packed("kit", &files).unwrap());
        assert_eq!(Package::of_bytes("kit.zip", bytes).unwrap().files, files);
    }

    #[test]
    fn a_folder_is_read_without_its_litter_and_without_links() {
        let dir = tempfile::tempdir().unwrap();
        let kit = dir.path().join("anything");
        for (path, text) in [("plugin.json", JSON), ("tools/a.rhai", "x"), (".git/config", "x"), ("lib/b.rhai", "y")] {
            std::fs::create_dir_all(kit.join(path).parent().unwrap()).unwrap();
            std::fs::write(kit.join(path), text).unwrap();
        }
        let package = Package::of_path(&kit).unwrap();
        assert_eq!(
            (package.name.as_str(), names(&package)),
            ("kit", vec!["lib/b.rhai", "plugin.json", "tools/a.rhai"])
        );
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink("/etc/passwd", kit.join("tools/passwd.txt")).unwrap();
            assert!(Package::of_path(&kit).unwrap_err().message().contains("link"));
        }
        assert_eq!(Package::of_path(&dir.path().join("nothing.rhai")).unwrap_err().kind(), Kind::NotFound);
    }
}
