//! What a path or name on the command line stands for: a plugin, a test script, or a shared module.
//! It looks at names and folders, never into a script.

use crate::base::error::{Error, Kind, Result, io};
use crate::base::paths::{Paths, valid_plugin_name};
use crate::plugin::discover::{Found, Location, MANIFEST, Origin, is_litter};
use std::path::{Path, PathBuf};

/// Folders are searched this deep.
const MAX_DEPTH: usize = 8;

/// One thing that can be checked or tested.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// A plugin: a tool file, a plugin folder, a shipped plugin.
    Plugin(Found),
    /// A test script.
    Script {
        /// Where it is.
        path: PathBuf,
        /// The plugin it tests; without one it stands for itself.
        owner: Option<Found>,
    },
    /// A module of `stdlib/`.
    Module {
        /// What stands after `std/`.
        name: String,
    },
}

/// What `path` stands for. `known` are the plugins of this root; a word that is no path may be the name of one of them.
///
/// # Errors
/// `not_found` where there is nothing; `invalid_arguments` for a file that is no script.
pub fn of_path(paths: &Paths, known: &[Found], path: &Path) -> Result<Vec<Subject>> {
    let finder = Finder { paths, known };
    let absolute = std::path::absolute(path).map_err(|e| io(format_args!("cannot use `{}`", path.display()), &e))?;
    if !absolute.exists() {
        let word = path.to_string_lossy();
        if let Some(found) = known.iter().find(|f| f.name == *word) {
            return Ok(vec![Subject::Plugin(found.clone())]);
        }
        let close = crate::tool::names::did_you_mean(&word, known.iter().map(|f| f.name.as_str()), 3);
        let hint = if close.is_empty() {
            "give a .rhai file, a folder, or a plugin's name".to_owned()
        } else {
            format!("did you mean {}", close.join(", "))
        };
        return Err(Error::not_found(format!("there is no file, folder or plugin `{word}`")).hint(hint));
    }
    let mut out = Vec::new();
    if absolute.is_file() {
        out.push(finder.file(&absolute)?);
    } else if same(&absolute, paths.root()) {
        out.extend(known.iter().cloned().map(Subject::Plugin));
    } else {
        finder.folder(&absolute, 0, &mut out)?;
    }
    // The tests of a plugin that is there itself run with it.
    let plugins: Vec<Found> =
        out.iter().filter_map(|s| if let Subject::Plugin(found) = s { Some(found.clone()) } else { None }).collect();
    out.retain(|s| !matches!(s, Subject::Script { owner: Some(owner), .. } if plugins.contains(owner)));
    if out.is_empty() {
        return Err(Error::not_found(format!("there is no plugin or script in `{}`", path.display()))
            .hint("a plugin is a .rhai file, or a folder with a plugin.json"));
    }
    Ok(out)
}

struct Finder<'a> {
    paths: &'a Paths,
    known: &'a [Found],
}

impl Finder<'_> {
    fn file(&self, path: &Path) -> Result<Subject> {
        let home = path.ancestors().skip(1).find(|folder| folder.join(MANIFEST).is_file());
        if let Some(home) = home {
            let found = self.plugin(home, Location::Folder(home.to_path_buf()))?;
            let is_test = path.strip_prefix(home).is_ok_and(|p| p.starts_with("tests"));
            return Ok(if is_test {
                Subject::Script { path: path.to_path_buf(), owner: Some(found) }
            } else {
                Subject::Plugin(found)
            });
        }
        let name = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        if !name.ends_with(".rhai") {
            return Err(
                Error::invalid(format!("`{}` is not a script", path.display())).hint("a script's name ends in .rhai")
            );
        }
        if let Ok(inside) = path.strip_prefix(self.paths.stdlib()) {
            let module = inside.to_string_lossy().replace('\\', "/");
            return Ok(Subject::Module { name: module.trim_end_matches(".rhai").to_owned() });
        }
        if let Some(tests) = path.ancestors().skip(1).find(|folder| folder.file_name().is_some_and(|n| n == "tests")) {
            let beside = tests.with_file_name(name.as_str());
            let owner =
                if beside.is_file() { Some(self.plugin(&beside, Location::File(beside.clone()))?) } else { None };
            return Ok(Subject::Script { path: path.to_path_buf(), owner });
        }
        self.plugin(path, Location::File(path.to_path_buf())).map(Subject::Plugin)
    }

    /// The plugin at `place`, as discovery knows it where it does.
    fn plugin(&self, place: &Path, location: Location) -> Result<Found> {
        let is_here = |found: &&Found| match &found.location {
            Location::File(known) | Location::Folder(known) => same(known, place),
            Location::Embedded(_) => false,
        };
        if let Some(found) = self.known.iter().find(is_here) {
            return Ok(found.clone());
        }
        let stem = if matches!(location, Location::File(_)) { place.file_stem() } else { place.file_name() };
        let name = stem.map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        valid_plugin_name(&name)
            .map_err(|e| Error::invalid(format!("{}: {}", place.display(), e.message())).hint("rename it"))?;
        Ok(Found { name, origin: Origin::Extra, location, root: self.paths.root().to_path_buf() })
    }

    fn folder(&self, folder: &Path, depth: usize, out: &mut Vec<Subject>) -> Result<()> {
        if folder.join(MANIFEST).is_file() {
            out.push(Subject::Plugin(self.plugin(folder, Location::Folder(folder.to_path_buf()))?));
            return Ok(());
        }
        let listing =
            std::fs::read_dir(folder).map_err(|e| io(format_args!("cannot list `{}`", folder.display()), &e))?;
        let mut entries: Vec<PathBuf> = listing.flatten().map(|entry| entry.path()).collect();
        entries.sort();
        for path in entries {
            let name = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
            if is_litter(&name) {
                continue;
            }
            if path.is_dir() {
                if depth < MAX_DEPTH {
                    self.folder(&path, depth + 1, out)?;
                }
            } else if name.ends_with(".rhai") {
                match self.file(&path) {
                    Ok(subject) => out.push(subject),
                    Err(e) if e.kind() == Kind::InvalidArguments && depth > 0 => {}
                    Err(e) => return Err(e),
                }
            }
        }
        Ok(())
    }
}

fn same(a: &Path, b: &Path) -> bool {
    a == b || matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b)
}
