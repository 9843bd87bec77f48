//! Recorded HTTP: what the requests of tests are answered with, from a file beside the test script, and how that file is made.
//! It knows requests as values and files; it sends nothing.

mod compare;
mod deck;
mod fold;
mod page;

pub use deck::{Deck, Played};
pub use page::{Exchange, schema};

use super::recipe::Beside;
use crate::base::error::{Error, Kind, Result};
use crate::base::file;
use crate::script::diagnostic::Diagnostic;
use std::sync::Arc;

/// Most bytes of a file of recordings.
pub const MAX_FILE: u64 = 32 << 20;

/// Where the requests of a run's tests go.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Requests {
    /// To the recordings, and nowhere else.
    #[default]
    Replayed,
    /// To the network, and into the recordings.
    Recorded,
}

/// The recordings of one test script, or of a plugin's examples.
pub struct Book {
    /// Where they are kept.
    beside: Beside,
    /// What they hold.
    exchanges: Arc<Vec<Exchange>>,
    requests: Requests,
    /// Whether it should be written and cannot be.
    is_fixed: bool,
    /// What each test asked for.
    heard: Vec<(String, Vec<Exchange>)>,
    /// The tests that failed.
    failed: Vec<String>,
}

impl Book {
    /// Reads the recordings; a file that is not there holds none.
    ///
    /// # Errors
    /// A diagnostic with the line and the path inside the file.
    pub fn open(beside: Beside, requests: Requests) -> Result<Book, Diagnostic> {
        let unusable = |e: &Error| Diagnostic::from_error("recording", beside.shown.as_str(), e);
        let bytes = beside.read(&beside.name, MAX_FILE).map_err(|e| unusable(&e))?;
        let exchanges = match bytes {
            None => Vec::new(),
            Some(bytes) => page::read(&bytes, &beside)?,
        };
        // What is inside the program cannot be written.
        let is_fixed = beside.path().is_none() && requests == Requests::Recorded;
        let requests = if is_fixed { Requests::Replayed } else { requests };
        Ok(Book { beside, exchanges: Arc::new(exchanges), requests, is_fixed, heard: Vec::new(), failed: Vec::new() })
    }

    /// What answers one test.
    pub fn deck(&self, test: &str, plugin: &str) -> Arc<Deck> {
        Arc::new(Deck::new(deck::Of {
            test: test.to_owned(),
            plugin: plugin.to_owned(),
            file: self.beside.shown.clone(),
            exchanges: self.exchanges.clone(),
            requests: self.requests,
        }))
    }

    /// Takes in what a test asked for.
    pub fn take(&mut self, test: &str, played: Played, ok: bool) {
        if !ok {
            self.failed.push(test.to_owned());
        }
        self.heard.push((test.to_owned(), played.taken));
    }

    /// Writes the file anew, where that was asked for and every test passed. Gives what a person should know.
    ///
    /// # Errors
    /// What the file system says.
    pub fn close(self) -> Result<Vec<String>> {
        if self.is_fixed && !self.failed.is_empty() {
            let shown = &self.beside.shown;
            return Ok(vec![format!(
                "{shown} is part of the program and stays as it is; copy the plugin to change it"
            )]);
        }
        let (Requests::Recorded, Some(path)) = (self.requests, self.beside.path()) else { return Ok(Vec::new()) };
        let shown = &self.beside.shown;
        if !self.failed.is_empty() {
            let stays = if path.exists() { "is as it was" } else { "is not written" };
            let names = self.failed.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
            let again = "a recording is of one run in which every test passes, so mend that first";
            return Ok(vec![format!("{shown} {stays}, since {names} failed; {again}")]);
        }
        let folded = fold::fold(&self.exchanges, self.heard);
        let mut notes: Vec<String> =
            folded.dropped.iter().map(|what| format!("{shown}: dropped {what}, which no test asks for")).collect();
        if folded.exchanges.is_empty() {
            if path.exists() {
                std::fs::remove_file(&path)
                    .map_err(|e| crate::base::error::io(format_args!("cannot remove `{shown}`"), &e))?;
                notes.push(format!("{shown} is removed: it held nothing any more"));
            }
            return Ok(notes);
        }
        if folded.exchanges != *self.exchanges {
            let many = folded.exchanges.len();
            let bytes = page::write(folded.exchanges)?;
            if bytes.len() as u64 > MAX_FILE {
                return Err(Error::new(Kind::TooLarge, format!("`{shown}` would have {} bytes", bytes.len()))
                    .hint("let the tests fetch less, or spread them over several scripts"));
            }
            if let Some(folder) = path.parent() {
                std::fs::create_dir_all(folder)
                    .map_err(|e| crate::base::error::io(format_args!("cannot make the folder of `{shown}`"), &e))?;
            }
            file::write_atomic(&path, &bytes)?;
            let exchanges = if many == 1 { "exchange" } else { "exchanges" };
            notes.push(format!("{shown} written: {many} {exchanges}"));
        }
        Ok(notes)
    }
}
