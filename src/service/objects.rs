//! JSON objects of plugins, one in a file of each: as they stand now, whoever wrote them. One that holds something else is set
//! aside. What stands in an object, and how it is written, is its owner's affair.

use super::quarantine;
use crate::base::clock::Clock;
use crate::base::error::{Error, Kind, Result};
use crate::base::event::Bus;
use crate::base::file::{self, Stamp};
use crate::base::json;
use crate::base::paths::{Paths, valid_plugin_name};
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// An object, shared.
pub(super) type Object = Arc<Map<String, Value>>;

/// What was last read or written of each plugin.
type Seen = HashMap<String, Known>;

/// Most bytes of a file that are kept to compare the next reading with: a larger one is read anew.
const MAX_COMPARED: usize = 1 << 20;

/// An object, with what proves that the file still holds it.
struct Known {
    proof: Proof,
    object: Object,
}

enum Proof {
    /// The file's stamp, once it tells every later write apart.
    Stamp(Stamp),
    /// The bytes themselves, until then: comparing them is far less work than making an object of them.
    Bytes(Vec<u8>),
}

/// Which objects these are.
#[derive(Debug, Clone, Copy)]
pub(super) struct Which {
    /// What a person calls them: `settings`.
    pub(super) name: &'static str,
    /// The file of a plugin.
    pub(super) file: fn(&Paths, &str) -> PathBuf,
    /// Most bytes of a file that is read.
    pub(super) most: u64,
}

/// The objects of all plugins of one installation.
pub(super) struct Objects {
    which: Which,
    paths: Paths,
    clock: Clock,
    bus: Bus,
    seen: Mutex<Seen>,
}

impl Objects {
    /// Those under these paths. Reads nothing yet.
    pub(super) fn new(which: Which, paths: Paths, clock: Clock, bus: Bus) -> Objects {
        Objects { which, paths, clock, bus, seen: Mutex::default() }
    }

    /// The file of a plugin.
    ///
    /// # Errors
    /// `invalid_arguments` for what is no name of a plugin.
    pub(super) fn path(&self, plugin: &str) -> Result<PathBuf> {
        valid_plugin_name(plugin)?;
        Ok((self.which.file)(&self.paths, plugin))
    }

    /// The object of a plugin, empty where there is no file. A corrupt file is set aside and told on the bus, and means an empty
    /// object too.
    ///
    /// # Errors
    /// What the file system says, with places from the root on; a bad plugin name.
    pub(super) fn load(&self, plugin: &str) -> Result<Object> {
        let path = self.path(plugin)?;
        let object = match self.read(plugin, &path) {
            // Somebody may have mended it since: only the holder of the lock may say that it is corrupt.
            Ok(Err(_)) => file::with_lock(&path, || self.load_locked(plugin, &path)),
            Ok(Ok(object)) => Ok(object),
            Err(e) => Err(e),
        };
        object.map_err(|e| self.paths.conceal(e))
    }

    /// As [`Objects::load`], for one who takes turns with others: whoever wrote last has no start over those who have to read that.
    ///
    /// # Errors
    /// As [`Objects::load`].
    pub(super) fn load_in_turn(&self, plugin: &str) -> Result<Object> {
        let mut seen = self.seen();
        if matches!(seen.get(plugin), Some(Known { proof: Proof::Bytes(_), .. })) {
            seen.remove(plugin);
        }
        drop(seen);
        self.load(plugin)
    }

    /// As [`Objects::load`], for the holder of the file's lock.
    ///
    /// # Errors
    /// What the file system says.
    pub(super) fn load_locked(&self, plugin: &str, path: &Path) -> Result<Object> {
        let fault = match self.read(plugin, path)? {
            Ok(object) => return Ok(object),
            Err(fault) => fault,
        };
        match quarantine::set_aside(path, &fault, &self.paths, &self.clock, &self.bus) {
            Some(_) => Ok(Object::default()),
            None => Err(Error::internal(format!(
                "the file with the {} of `{plugin}` is corrupt and cannot be set aside: {fault}",
                self.which.name
            ))
            .hint(format!("mend or move `{}`", self.paths.shown(path)))),
        }
    }

    /// Forgets what was read of a plugin: its file was taken away.
    pub(super) fn evict(&self, plugin: &str) {
        self.seen().remove(plugin);
    }

    /// Notes what the holder of the file's lock has just written, so that it is not read back to be understood.
    pub(super) fn remember(&self, plugin: &str, bytes: Vec<u8>, object: Object) {
        if bytes.len() <= MAX_COMPARED {
            self.seen().insert(plugin.to_owned(), Known { proof: Proof::Bytes(bytes), object });
        } else {
            self.seen().remove(plugin);
        }
    }

    /// The present content, or what is wrong with it.
    fn read(&self, plugin: &str, path: &Path) -> Result<Result<Object, String>> {
        let Some(stamp) = Stamp::of(path)? else { return Ok(Ok(Object::default())) };
        if let Some(Known { proof: Proof::Stamp(known), object }) = self.seen().get(plugin)
            && *known == stamp
        {
            return Ok(Ok(object.clone()));
        }
        let bytes = match file::read_capped(path, self.which.most) {
            Ok(bytes) => bytes,
            Err(e) if e.kind() == Kind::NotFound => return Ok(Ok(Object::default())),
            Err(e) => return Err(e),
        };
        let same = match self.seen().get(plugin) {
            Some(Known { proof: Proof::Bytes(known), object }) if *known == bytes => Some(object.clone()),
            _ => None,
        };
        let object = match same {
            Some(object) => object,
            None => match json::parse_object(&bytes) {
                Ok(map) => Arc::new(map),
                Err(fault) => return Ok(Err(fault)),
            },
        };
        // A file of this moment may be written again under the same date.
        if stamp.settled() {
            self.seen().insert(plugin.to_owned(), Known { proof: Proof::Stamp(stamp), object: object.clone() });
        } else {
            self.remember(plugin, bytes, object.clone());
        }
        Ok(Ok(object))
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
