//! Reading a plugin's files: from one file, a folder or the binary, each once per build, remembered for hash and history.

use super::discover::{Found, Location, MANIFEST, Stock, is_litter};
use super::manifest::Manifest;
use crate::base::error::{Error, Kind, Result};
use crate::base::file;
use crate::script::diagnostic::Diagnostic;
use crate::script::program::{self, MAX_SOURCE};
use crate::script::resolver::{Library, Source};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// One plugin's files during a build.
pub struct Shelf(Arc<Inner>);

/// A text that stands in for a file of a plugin while it is only looked at.
pub struct Unsaved {
    /// The file's path inside the plugin.
    pub path: String,
    /// All of it.
    pub bytes: Arc<[u8]>,
}

struct Inner {
    found: Found,
    unsaved: Option<Arc<Unsaved>>,
    stdlib: PathBuf,
    stock: Arc<dyn Stock>,
    taken: Mutex<BTreeMap<String, Arc<[u8]>>>,
}

impl Shelf {
    /// Opens a plugin for reading.
    ///
    /// # Errors
    /// A diagnostic when the place is not there any more.
    pub fn open(found: &Found, stock: Arc<dyn Stock>) -> Result<Shelf, Diagnostic> {
        Shelf::open_with(found, stock, None)
    }

    /// As [`Shelf::open`], with a text in the place of one of the files.
    ///
    /// # Errors
    /// As [`Shelf::open`].
    pub fn open_with(found: &Found, stock: Arc<dyn Stock>, unsaved: Option<Arc<Unsaved>>) -> Result<Shelf, Diagnostic> {
        // Whether a file is there is seen when it is read.
        if let Location::Folder(path) = &found.location
            && !path.is_dir()
        {
            return Err(Diagnostic::error("load", path.display().to_string(), "the folder is gone"));
        }
        Ok(Shelf(Arc::new(Inner {
            found: found.clone(),
            unsaved,
            stdlib: found.root.join("stdlib"),
            stock,
            taken: Mutex::default(),
        })))
    }

    /// What people call a file of this plugin: its path relative to the root.
    #[must_use]
    pub fn display(&self, path: &str) -> String {
        self.0.display(path)
    }

    /// A text file of the plugin, without a BOM.
    ///
    /// # Errors
    /// `not_found`, `too_large`, `invalid_arguments` for bytes that are not UTF-8, or for a path out of its folder.
    pub fn text(&self, path: &str) -> Result<Source> {
        self.0.text(path)
    }

    /// Where `files::asset` reads.
    #[must_use]
    pub fn assets(&self) -> Option<PathBuf> {
        match &self.0.found.location {
            Location::File(path) => path.parent().map(Path::to_path_buf),
            Location::Folder(path) => Some(path.clone()),
            Location::Embedded(_) => None,
        }
    }

    /// The tool files, in the manifest's order, or every `tools/*.rhai` sorted.
    #[must_use]
    pub fn tool_files(&self, manifest: &Manifest) -> Vec<String> {
        if let Some(listed) = &manifest.capabilities.tools {
            return listed.clone();
        }
        match &self.0.found.location {
            Location::File(path) => {
                vec![
                    path.file_name()
                        .map_or_else(|| format!("{}.rhai", self.0.found.name), |n| n.to_string_lossy().into_owned()),
                ]
            }
            Location::Folder(path) => {
                let mut names: Vec<String> = std::fs::read_dir(path.join("tools"))
                    .map(|dir| {
                        dir.flatten()
                            .filter_map(|entry| entry.file_name().into_string().ok())
                            .filter(|n| n.ends_with(".rhai") && !is_litter(n))
                            .map(|n| format!("tools/{n}"))
                            .collect()
                    })
                    .unwrap_or_default();
                if let Some(unsaved) = &self.0.unsaved
                    && unsaved.path.strip_prefix("tools/").is_some_and(|n| n.ends_with(".rhai") && !n.contains('/'))
                    && !names.contains(&unsaved.path)
                {
                    names.push(unsaved.path.clone());
                }
                names.sort();
                names
            }
            Location::Embedded(name) => {
                let mut names: Vec<String> = self
                    .0
                    .stock
                    .list(name)
                    .into_iter()
                    .filter(|p| p.starts_with("tools/") && p.ends_with(".rhai"))
                    .collect();
                names.sort();
                names
            }
        }
    }

    /// Where imports come from.
    #[must_use]
    pub fn library(&self) -> Box<dyn Library> {
        Box::new(PluginLibrary(self.0.clone()))
    }

    /// Everything that was read, by path or import key.
    #[must_use]
    pub fn taken(&self) -> Vec<(String, Arc<[u8]>)> {
        let taken = self.0.taken.lock().unwrap_or_else(PoisonError::into_inner);
        taken.iter().map(|(k, v)| (k.clone(), v.clone())).collect()
    }
}

impl Inner {
    fn display(&self, path: &str) -> String {
        self.found.shown(path)
    }

    fn bytes(&self, path: &str) -> Result<Vec<u8>> {
        if let Some(unsaved) = self.unsaved.as_ref().filter(|unsaved| unsaved.path == path) {
            return Ok(unsaved.bytes.to_vec());
        }
        match &self.found.location {
            Location::File(file) => {
                let own = file.file_name().is_some_and(|n| n.to_string_lossy() == path);
                if own { file::read_capped(file, MAX_SOURCE as u64) } else { Err(absent(path)) }
            }
            Location::Folder(folder) => file::read_capped(&file::confine(folder, path)?, MAX_SOURCE as u64),
            Location::Embedded(name) => self.stock.read(name, path).map(<[u8]>::to_vec).ok_or_else(|| absent(path)),
        }
    }

    fn text(&self, path: &str) -> Result<Source> {
        self.decode(path, &self.display(path), self.bytes(path)?)
    }

    /// Text from bytes, which are kept too: in the same memory where they are the text.
    fn decode(&self, key: &str, shown: &str, bytes: Vec<u8>) -> Result<Source> {
        let keep = |bytes: Arc<[u8]>| {
            self.taken.lock().unwrap_or_else(PoisonError::into_inner).insert(key.to_owned(), bytes);
        };
        if bytes.starts_with(b"\xEF\xBB\xBF") || std::str::from_utf8(&bytes).is_err() {
            keep(bytes.as_slice().into());
            return program::decode(shown, bytes);
        }
        let source = program::decode(shown, bytes)?;
        keep(source.text.clone().into());
        Ok(source)
    }
}

fn absent(path: &str) -> Error {
    Error::not_found(format!("there is no `{path}`"))
}

struct PluginLibrary(Arc<Inner>);

impl Library for PluginLibrary {
    fn read(&self, key: &str) -> Result<Source> {
        let inner = &self.0;
        if let Some(module) = key.strip_prefix("std/") {
            let path = inner.stdlib.join(format!("{module}.rhai"));
            let bytes = if path.is_file() {
                file::read_capped(&path, MAX_SOURCE as u64)?
            } else {
                inner.stock.std(module).map(<[u8]>::to_vec).ok_or_else(|| {
                    let known = inner.stock.std_modules();
                    Error::not_found(format!("there is no `std/{module}`"))
                        .hint(format!("std has: {}", known.join(" ")))
                })?
            };
            return inner.decode(key, &format!("stdlib/{module}.rhai"), bytes);
        }
        if matches!(inner.found.location, Location::File(_)) {
            return Err(Error::new(Kind::NotFound, format!("`{key}`: a single-file plugin has no lib/ folder")).hint(
                format!("make it a folder: user/plugins/{}/ with plugin.json, tools/ and lib/", inner.found.name),
            ));
        }
        inner.text(&format!("{key}.rhai"))
    }
}

/// Whether a plugin is on when nobody said anything. Only a manifest can say no; one that cannot be read says nothing.
#[must_use]
pub fn default_enabled(found: &Found, stock: &dyn Stock) -> bool {
    let text = match &found.location {
        Location::File(_) => return true,
        Location::Folder(folder) => file::read_capped(&folder.join(MANIFEST), MAX_SOURCE as u64).unwrap_or_default(),
        Location::Embedded(name) => stock.read(name, MANIFEST).map(<[u8]>::to_vec).unwrap_or_default(),
    };
    crate::base::json::parse_file_text(&text)
        .ok()
        .and_then(|manifest| manifest.get("default_enabled").and_then(serde_json::Value::as_bool))
        .unwrap_or(true)
}

/// The hash of what a generation was built from: 12 hex digits.
#[must_use]
pub fn hash(sources: &[(String, Arc<[u8]>)]) -> String {
    let mut hasher = Sha256::new();
    for (path, bytes) in sources {
        hasher.update((path.len() as u64).to_le_bytes());
        hasher.update(path.as_bytes());
        hasher.update((bytes.len() as u64).to_le_bytes());
        hasher.update(bytes);
    }
    hasher.finalize().iter().take(6).map(|b| format!("{b:02x}")).collect()
}
