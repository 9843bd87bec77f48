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
#[derive(Clone)]
pub struct TestFile {
    /// What people call it.
    pub shown: String,
    /// What it holds.
    pub bytes: Vec<u8>,
    /// Its recordings.
    pub recorded: Beside,
}

/// A file that the test runner keeps for a plugin or a script.
#[derive(Clone)]
pub struct Beside {
    /// What people call it.
    pub shown: String,
    /// Its path inside its home, with `/`.
    pub name: String,
    home: Home,
}

#[derive(Clone)]
enum Home {
    /// Nothing can be kept there.
    Nowhere,
    /// A plugin's own files.
    Plugin(Found),
    /// A folder.
    Folder(PathBuf),
}

/// The folder of recordings in a folder of tests.
const RECORDED: &str = "recorded";
/// The folder of golden schemas there.
const GOLDEN: &str = "golden";

impl Beside {
    /// A file that is not there and cannot be made.
    pub fn nowhere() -> Beside {
        Beside { shown: String::new(), name: String::new(), home: Home::Nowhere }
    }

    /// The file `relative` among the tests of a plugin: of a single file those are beside it.
    pub fn of(found: &Found, root: &Paths, relative: &str) -> Beside {
        match &found.location {
            Location::File(script) => Beside::within(&script.with_file_name("tests"), root, relative),
            Location::Folder(_) | Location::Embedded(_) => {
                let name = format!("tests/{relative}");
                Beside { shown: found.shown(&name), name, home: Home::Plugin(found.clone()) }
            }
        }
    }

    /// The file `relative` in a folder of tests.
    pub fn within(tests: &Path, root: &Paths, relative: &str) -> Beside {
        let shown = root.shown(&tests.join(relative));
        Beside { shown, name: relative.to_owned(), home: Home::Folder(tests.to_path_buf()) }
    }

    /// The recordings of a plugin's examples.
    pub fn examples(found: &Found, root: &Paths) -> Beside {
        Beside::of(found, root, &format!("{RECORDED}/{}.examples.json", found.name))
    }

    /// The recordings of a test script, which is `relative` in the folder of tests of its plugin.
    pub fn recordings(found: &Found, root: &Paths, relative: &str) -> Beside {
        Beside::of(found, root, &recordings_of(relative))
    }

    /// The golden schemas of a plugin.
    pub fn golden(found: &Found, root: &Paths) -> Beside {
        Beside::of(found, root, &format!("{GOLDEN}/{}.json", found.name))
    }

    /// Another file in the same folder.
    pub fn sibling(&self, file: &str) -> String {
        self.name.rsplit_once('/').map_or_else(|| file.to_owned(), |(folder, _)| format!("{folder}/{file}"))
    }

    /// What a file of the same home holds; `None` where there is none.
    ///
    /// # Errors
    /// For a path that leads out, or what the file system says.
    pub fn read(&self, name: &str, most: u64) -> Result<Option<Vec<u8>>> {
        let read = match &self.home {
            Home::Nowhere => return Ok(None),
            Home::Plugin(found) => discover::read_plugin_file(&Embedded, found, name),
            // A folder that is not there confines nothing.
            Home::Folder(folder) if !folder.is_dir() => return Ok(None),
            Home::Folder(folder) => confine(folder, name).and_then(|path| file::read_capped(&path, most)),
        };
        match read {
            Ok(bytes) => Ok(Some(bytes)),
            Err(e) if e.kind() == crate::base::error::Kind::NotFound => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// Where it is to be written; `None` inside the program.
    pub fn path(&self) -> Option<PathBuf> {
        match &self.home {
            Home::Nowhere => None,
            Home::Folder(folder) => Some(folder.join(&self.name)),
            Home::Plugin(found) => match &found.location {
                Location::Folder(folder) => Some(folder.join(&self.name)),
                Location::File(_) | Location::Embedded(_) => None,
            },
        }
    }
}

fn recordings_of(script: &str) -> String {
    format!("{RECORDED}/{}.json", script.trim_end_matches(".rhai"))
}

impl TestFile {
    /// A script at `path`, which tests `owner`, or stands for itself.
    ///
    /// # Errors
    /// What the file system says.
    pub fn read(path: &Path, owner: Option<&Found>, root: &Paths) -> Result<TestFile> {
        let bytes = file::read_capped(path, MAX_SOURCE as u64)?;
        let inside = owner.and_then(|found| match &found.location {
            Location::Folder(home) => path.strip_prefix(home.join("tests")).ok().map(|p| (found, p)),
            Location::File(_) | Location::Embedded(_) => None,
        });
        let recorded = match inside {
            Some((found, relative)) => Beside::recordings(found, root, &relative.to_string_lossy().replace('\\', "/")),
            None => {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                Beside::within(path.parent().unwrap_or(path), root, &recordings_of(&name))
            }
        };
        Ok(TestFile { shown: root.shown(path), bytes, recorded })
    }

    /// A script that is text only, and has no place for recordings.
    pub fn of_text(shown: &str, bytes: Vec<u8>) -> TestFile {
        TestFile { shown: shown.to_owned(), bytes, recorded: Beside::nowhere() }
    }
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
            let is_kept = [RECORDED, GOLDEN].iter().any(|kept| path.starts_with(&format!("tests/{kept}/")));
            if is_kept || is_test && tests == Tests::Left {
                continue;
            }
            let bytes = discover::read_plugin_file(&Embedded, found, &path)?;
            if is_test {
                let recorded = Beside::recordings(found, root, path.trim_start_matches("tests/"));
                self.tests.push(TestFile { shown: found.shown(&path), bytes, recorded });
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
                let name = script.file_name().unwrap_or_default().to_string_lossy();
                let recorded = Beside::recordings(found, root, &name);
                self.tests.push(TestFile { shown: root.shown(&beside), bytes, recorded });
            }
        }
        Ok(required)
    }

    /// The plugin's own test scripts.
    pub fn tests(&self) -> Vec<TestFile> {
        self.tests.clone()
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
