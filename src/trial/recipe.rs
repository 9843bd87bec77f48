//! What a test's world is made of: the plugin's own files, and those of its tests. Bytes are read once and written anew for
//! each world, so that no test sees what another one left.

use crate::base::error::{Error, Result, io};
use crate::base::file::{self, confine};
use crate::base::json;
use crate::base::paths::Paths;
use crate::plugin::discover::{self, Embedded, Found, Location, MANIFEST, Origin};
use crate::script::program::MAX_SOURCE;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// A world to make.
pub struct Recipe {
    /// The plugin's name; `None` for a script that stands for itself.
    pub plugin: Option<String>,
    /// Paths under the root, and what is there.
    files: Vec<(String, Vec<u8>)>,
    tests: Vec<TestFile>,
}

/// Whether a plugin's tests come along.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tests {
    Taken,
    Left,
}

/// A test script.
pub struct TestFile {
    /// What people call it.
    pub shown: String,
    /// What it holds.
    pub bytes: Vec<u8>,
}

impl Recipe {
    /// No plugin of one's own: the shipped ones and the shared modules.
    pub fn alone() -> Recipe {
        Recipe { plugin: None, files: Vec::new(), tests: Vec::new() }
    }

    /// No plugin, but the shared modules of this root.
    ///
    /// # Errors
    /// What the file system says.
    pub fn modules(root: &Paths) -> Result<Recipe> {
        let mut files = Vec::new();
        modules(&root.stdlib(), "stdlib", 0, &mut files)?;
        Ok(Recipe { files, ..Recipe::alone() })
    }

    /// A plugin's files as they are now, in the place of that kind of plugin, and beside it the plugins that it requires.
    ///
    /// # Errors
    /// What the file system says.
    pub fn of(found: &Found, root: &Paths, known: &[Found]) -> Result<Recipe> {
        let mut recipe = Recipe { plugin: Some(found.name.clone()), ..Recipe::alone() };
        let mut required = recipe.take(found, root, Tests::Taken)?;
        let mut there = vec![found.name.clone()];
        while let Some(name) = required.pop() {
            if let Some(other) = known.iter().find(|f| f.name == name && !there.contains(&name)) {
                there.push(name);
                required.extend(recipe.take(other, root, Tests::Left)?);
            }
        }
        // The root's own shared modules win over the embedded ones, in tests as everywhere.
        modules(&root.stdlib(), "stdlib", 0, &mut recipe.files)?;
        Ok(recipe)
    }

    /// Takes a plugin's files in; gives the names of the plugins that it requires.
    fn take(&mut self, found: &Found, root: &Paths, tests: Tests) -> Result<Vec<String>> {
        let home = match (&found.location, found.origin) {
            (Location::File(_), _) => "user/tools".to_owned(),
            (_, Origin::Shipped) => format!("scripts/{}", found.name),
            _ => format!("user/plugins/{}", found.name),
        };
        let mut required = Vec::new();
        for path in discover::list_plugin_files(&Embedded, found)? {
            let is_test = path.starts_with("tests/") && path.ends_with(".rhai");
            if is_test && tests == Tests::Left {
                continue;
            }
            let bytes = discover::read_plugin_file(&Embedded, found, &path)?;
            if is_test {
                self.tests.push(TestFile { shown: found.shown(&path), bytes });
                continue;
            }
            if path == MANIFEST {
                required = requires(&bytes);
            }
            self.files.push((format!("{home}/{path}"), bytes));
        }
        if let Location::File(script) = &found.location
            && tests == Tests::Taken
        {
            let beside = script.with_file_name("tests").join(script.file_name().unwrap_or_default());
            if beside.is_file() {
                let bytes = file::read_capped(&beside, MAX_SOURCE as u64)?;
                self.tests.push(TestFile { shown: root.shown(&beside), bytes });
            }
        }
        Ok(required)
    }

    /// The plugin's own test scripts.
    pub fn tests(&self) -> Vec<TestFile> {
        self.tests.iter().map(|t| TestFile { shown: t.shown.clone(), bytes: t.bytes.clone() }).collect()
    }

    /// Writes everything under a new root.
    #[expect(clippy::disallowed_methods, reason = "the folder is a test's own and goes with it")]
    pub fn write(&self, root: &Path) -> Result<()> {
        for (path, bytes) in &self.files {
            let target = confine(root, path)?;
            let cannot = |e: std::io::Error| io(format_args!("cannot write `{}` for a test", target.display()), &e);
            if let Some(folder) = target.parent() {
                fs::create_dir_all(folder).map_err(cannot)?;
            }
            fs::write(&target, bytes).map_err(cannot)?;
        }
        Ok(())
    }
}

/// Names in `requires_plugins`. A manifest that cannot be read says so when it is loaded.
fn requires(manifest: &[u8]) -> Vec<String> {
    let manifest = json::parse_file_text(manifest).unwrap_or_default();
    let names = manifest.get("requires_plugins").and_then(Value::as_array);
    names.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn modules(folder: &Path, key: &str, depth: usize, out: &mut Vec<(String, Vec<u8>)>) -> Result<()> {
    let Ok(listing) = fs::read_dir(folder) else { return Ok(()) };
    for entry in listing.flatten() {
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        if path.is_dir() && depth < 4 && name != "tests" {
            modules(&path, &format!("{key}/{name}"), depth + 1, out)?;
        } else if name.ends_with(".rhai") {
            out.push((format!("{key}/{name}"), file::read_capped(&path, MAX_SOURCE as u64)?));
        }
    }
    Ok(())
}

/// A folder of our own that goes with its last user.
pub struct TempRoot(PathBuf);

impl TempRoot {
    /// A new empty folder.
    ///
    /// # Errors
    /// What the file system says.
    pub fn new() -> Result<TempRoot> {
        let home = std::env::temp_dir();
        let cannot = |e: &std::io::Error| io(format_args!("cannot make a folder in `{}`", home.display()), e);
        for _ in 0..16 {
            let path = home.join(format!("lapidary-test-{:016x}", fastrand::u64(..)));
            match make(&path) {
                Ok(()) => return Ok(TempRoot(path)),
                Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(e) => return Err(cannot(&e)),
            }
        }
        Err(Error::internal(format!("cannot find a free name in `{}`", home.display())))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

#[cfg(unix)]
fn make(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    fs::DirBuilder::new().mode(0o700).create(path)
}

#[cfg(not(unix))]
fn make(path: &Path) -> std::io::Result<()> {
    fs::create_dir(path)
}

impl Drop for TempRoot {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
