//! Tests again at each save: which of them a changed file concerns. It hears of files from the plugins' own watcher.

use super::subject::Subject;
use super::{Options, Report, Tested, chosen, run_these};
use crate::base::error::Result;
use crate::base::json;
use crate::plugin::discover::{self, Embedded, Found, Location, MANIFEST, is_litter};
use crate::plugin::watch::{Folders, Follow, Watch};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// A new folder is looked into this deep, and for so many files.
const MAX_DEPTH: usize = 8;
const MOST_FILES: usize = 1_000;

/// What was saved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Saved {
    /// These files.
    Files(BTreeSet<PathBuf>),
    /// Anything: the system told of more than it could.
    Anything,
}

/// Watches what the options stand for, and tells of each save, until it is dropped.
///
/// # Errors
/// `internal` when the system refuses.
pub fn watch(options: &Options, tell: impl Fn(Saved) + Send + 'static) -> Result<Watch> {
    let named = options.paths.iter().filter_map(|path| std::path::absolute(path).ok().filter(|p| p.exists())).collect();
    Watch::with(Follower { root: options.root.clone(), named, tell })
}

struct Follower<F> {
    root: crate::base::paths::Paths,
    /// Files and folders that were named.
    named: Vec<PathBuf>,
    tell: F,
}

impl<F: Fn(Saved) + Send> Follow for Follower<F> {
    fn folders(&self) -> Folders {
        let root = &self.root;
        let homes = [root.tools(), root.plugins(), root.scripts(), root.stdlib()];
        let mut folders = Folders { deep: homes.to_vec(), shallow: vec![root.root().to_path_buf(), root.user()] };
        for named in &self.named {
            if named.is_dir() {
                folders.deep.push(named.clone());
            } else if let Some(parent) = named.parent() {
                // A folder of tests is small; the one above may hold anything.
                folders.shallow.push(parent.to_path_buf());
                folders.deep.extend(["tests", "recorded"].map(|name| parent.join(name)));
                folders.shallow.extend(plugin_of(named).map(Path::to_path_buf));
            }
        }
        folders.deep.retain(|folder| folder.is_dir());
        folders.shallow.retain(|folder| folder.is_dir());
        folders
    }

    fn filter(&self) -> Box<dyn Fn(&Path) -> bool + Send> {
        let root = &self.root;
        let homes = [root.tools(), root.plugins(), root.scripts(), root.stdlib()];
        let named = self.named.clone();
        Box::new(move |path| {
            let is_ours = |home: &Path| {
                let is_plain =
                    |part: std::path::Component| part.as_os_str().to_str().is_some_and(|name| !is_litter(name));
                path.strip_prefix(home).is_ok_and(|inside| inside.components().all(is_plain))
            };
            homes.iter().any(|home| is_ours(home))
                || named.iter().any(|named| is_ours(plugin_of(named).or(named.parent()).unwrap_or(named)))
        })
    }

    fn brings_folders(&self, paths: &BTreeSet<PathBuf>) -> bool {
        paths.iter().any(|path| path.is_dir())
    }

    fn settled(&mut self, paths: &BTreeSet<PathBuf>) {
        let mut files = BTreeSet::new();
        paths.iter().for_each(|path| spread(path, 0, &mut files));
        if !files.is_empty() {
            (self.tell)(Saved::Files(files));
        }
    }

    fn lost(&mut self) {
        (self.tell)(Saved::Anything);
    }
}

/// A folder that is new counts as what is in it.
fn spread(path: &Path, depth: usize, out: &mut BTreeSet<PathBuf>) {
    let Ok(listing) = std::fs::read_dir(path) else {
        out.insert(path.to_path_buf());
        return;
    };
    for entry in listing.flatten().filter(|entry| entry.file_name().to_str().is_some_and(|name| !is_litter(name))) {
        if out.len() < MOST_FILES && depth < MAX_DEPTH {
            spread(&entry.path(), depth + 1, out);
        }
    }
}

/// The plugin folder that a file lies in.
fn plugin_of(file: &Path) -> Option<&Path> {
    file.ancestors().skip(1).find(|folder| folder.join(MANIFEST).is_file())
}

/// Runs those of the chosen tests that a save concerns, with plugins and tests as they are now. `begin` hears which plugins
/// and scripts those are before the first one runs; where there are none, nothing runs.
///
/// # Errors
/// As [`super::run`].
pub fn run_saved(
    options: &Options,
    saved: &Saved,
    begin: &mut dyn FnMut(&[Subject]),
    told: &mut dyn FnMut(&Tested),
) -> Result<Report> {
    let known = discover::discover(&options.root, &[], &Embedded).plugins;
    let mut subjects = chosen(options, &known)?;
    if let Saved::Files(paths) = saved {
        let std = options.root.stdlib();
        subjects.retain(|subject| {
            paths.iter().any(|path| path.starts_with(&std)) || concerns(subject, paths, &known, &mut Vec::new())
        });
    }
    begin(&subjects);
    Ok(run_these(options, &known, &subjects, told))
}

fn concerns(subject: &Subject, paths: &BTreeSet<PathBuf>, known: &[Found], seen: &mut Vec<String>) -> bool {
    match subject {
        Subject::Plugin(found) => paths.iter().any(|path| belongs(found, path)) || requires(found, paths, known, seen),
        Subject::Script { path, owner } => {
            let recorded = path.with_file_name("recorded");
            paths.iter().any(|p| p == path || p.starts_with(&recorded))
                || owner.as_ref().is_some_and(|owner| concerns(&Subject::Plugin(owner.clone()), paths, known, seen))
        }
        Subject::Module { .. } => false,
    }
}

/// Whether a plugin that this one requires was saved.
fn requires(found: &Found, paths: &BTreeSet<PathBuf>, known: &[Found], seen: &mut Vec<String>) -> bool {
    if seen.contains(&found.name) {
        return false;
    }
    seen.push(found.name.clone());
    let manifest = discover::read_plugin_file(&Embedded, found, MANIFEST).unwrap_or_default();
    let manifest = json::parse_file_text(&manifest).unwrap_or_default();
    let names = manifest.get("requires_plugins").and_then(Value::as_array).into_iter().flatten();
    names
        .filter_map(Value::as_str)
        .filter_map(|name| known.iter().find(|other| other.name == name))
        .any(|other| concerns(&Subject::Plugin(other.clone()), paths, known, seen))
}

/// Whether a file is a plugin's, or its tests'.
fn belongs(found: &Found, path: &Path) -> bool {
    let Location::File(script) = &found.location else { return found.holds(path) };
    let Ok(inside) = path.strip_prefix(script.with_file_name("tests")) else { return path == script };
    let file = inside.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    // What a recording names as a file may be called anything.
    file.split('.').next() == Some(&found.name) || (inside.starts_with("recorded") && !file.ends_with(".json"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::plugin::discover::Origin;

    fn plugin(location: Location) -> Found {
        let origin = Origin::Extra;
        Found { name: "tea".into(), origin, location, root: PathBuf::from("/r") }
    }

    #[test]
    fn a_file_concerns_the_plugin_whose_it_is() {
        let single = plugin(Location::File("/r/user/tools/tea.rhai".into()));
        let folder = plugin(Location::Folder("/r/user/plugins/tea".into()));
        let rows = [
            (&single, "/r/user/tools/tea.rhai", true),
            (&single, "/r/user/tools/cup.rhai", false),
            (&single, "/r/user/tools/tests/tea.rhai", true),
            (&single, "/r/user/tools/tests/cup.rhai", false),
            (&single, "/r/user/tools/tests/recorded/tea.json", true),
            (&single, "/r/user/tools/tests/recorded/tea.examples.json", true),
            (&single, "/r/user/tools/tests/recorded/cup.json", false),
            (&single, "/r/user/tools/tests/recorded/dot.png", true),
            (&single, "/r/user/tools/tests/golden/tea.json", true),
            (&folder, "/r/user/plugins/tea/lib/x.rhai", true),
            (&folder, "/r/user/plugins/tea/tests/recorded/a.json", true),
            (&folder, "/r/user/plugins/cup/tools/x.rhai", false),
        ];
        for (found, path, is) in rows {
            assert_eq!(belongs(found, Path::new(path)), is, "{path}");
        }
    }

    #[test]
    fn a_script_is_concerned_by_its_recordings_and_its_plugin() {
        let owner = plugin(Location::Folder("/r/user/plugins/tea".into()));
        let path = PathBuf::from("/r/user/plugins/tea/tests/a.rhai");
        let subject = Subject::Script { path, owner: Some(owner) };
        for (path, is) in [
            ("/r/user/plugins/tea/tests/a.rhai", true),
            ("/r/user/plugins/tea/tests/recorded/a.json", true),
            ("/r/user/plugins/tea/tools/tea.rhai", true),
            ("/r/user/plugins/cup/tools/tea.rhai", false),
        ] {
            assert_eq!(concerns(&subject, &[PathBuf::from(path)].into(), &[], &mut Vec::new()), is, "{path}");
        }
    }
}
