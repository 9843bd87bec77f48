//! Where credentials come from, and where new ones go. It says so, and touches nothing.

use super::Placeholders;
use super::keyring::{Desktop, Keyring};
use crate::base::paths;
use std::path::PathBuf;
use std::sync::Arc;

/// Reads a variable of the environment.
pub type Environment = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// Where new values are kept, and whether the keyring is asked for those that are there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Keep {
    /// In the keyring where one answers, else in the file.
    #[default]
    Auto,
    /// In the keyring, or not at all.
    Keyring,
    /// In the file; the keyring is never asked.
    File,
}

impl Keep {
    /// The choice by its word: `auto`, `keyring` or `file`.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Keep> {
        match word {
            "auto" => Some(Keep::Auto),
            "keyring" => Some(Keep::Keyring),
            "file" => Some(Keep::File),
            _ => None,
        }
    }
}

/// Where credentials come from. Without anything there are none.
#[derive(Clone, Default)]
pub struct Source {
    pub(super) file: Option<PathBuf>,
    pub(super) keyring: Option<Arc<dyn Keyring>>,
    pub(super) keep: Option<Keep>,
    pub(super) attended: bool,
    pub(super) environment: Option<Environment>,
    pub(super) placeholders: Option<Placeholders>,
}

impl Source {
    /// No credentials at all.
    #[must_use]
    pub fn none() -> Source {
        Source::default()
    }

    /// This user's file and keyring, and this process's environment. Making it touches none of them.
    #[must_use]
    pub fn of_this_user() -> Source {
        Source {
            file: paths::credentials_file(),
            keyring: Some(Arc::new(Desktop::of_this_user())),
            environment: Some(Arc::new(paths::environment)),
            ..Source::default()
        }
    }

    /// This file, and neither a keyring nor an environment.
    #[must_use]
    pub fn file(path: impl Into<PathBuf>) -> Source {
        Source { file: Some(path.into()), ..Source::default() }
    }

    /// The same, with values in this keyring; their names and rules stay in the file.
    #[must_use]
    pub fn keyring(mut self, keyring: Arc<dyn Keyring>) -> Source {
        self.keyring = Some(keyring);
        self
    }

    /// The same, with new values kept as said.
    #[must_use]
    pub fn keep(mut self, keep: Keep) -> Source {
        self.keep = Some(keep);
        self
    }

    /// The same, with new values kept as said where nothing else was.
    #[must_use]
    pub fn or_keep(mut self, keep: Keep) -> Source {
        self.keep.get_or_insert(keep);
        self
    }

    /// The same, for a person who is there: a change may have the keyring ask for its password.
    #[must_use]
    pub fn attended(mut self) -> Source {
        self.attended = true;
        self
    }

    /// The same, with stand-ins before it.
    #[must_use]
    pub fn behind(mut self, placeholders: Placeholders) -> Source {
        self.placeholders = Some(placeholders);
        self
    }

    /// The same, with what `read` says where nothing stored has a value: it gets the names of variables.
    #[must_use]
    pub fn environment(mut self, read: impl Fn(&str) -> Option<String> + Send + Sync + 'static) -> Source {
        self.environment = Some(Arc::new(read));
        self
    }
}
