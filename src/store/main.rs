//! The host's own database, `user/lapidary.db`: opened when it is first needed, one writer and a few readers a process, any
//! number of processes. What stands in its tables is the business of the files beside this one.

use super::schema;
use crate::base::error::{Error, Kind, Result, io};
use crate::base::file;
use rusqlite::{Connection, ErrorCode, OpenFlags, Params, Statement, Transaction, TransactionBehavior};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// How long a statement waits for another process that writes.
const BUSY: Duration = Duration::from_secs(5);
/// So many pages in the log, 32 MiB, are brought into the file by a commit.
const LOG_PAGES: i64 = 8000;
/// What of the log stays for further use once it is in the file, in bytes.
const LOG_KEPT: i64 = 16 << 20;
/// Statements that a connection keeps ready.
const STATEMENTS: usize = 48;
/// Readers that are kept open.
const READERS: usize = 2;

/// The database. Nothing is opened or made before it is asked for something.
pub struct MainDb {
    path: PathBuf,
    writer: Mutex<Option<Connection>>,
    readers: Mutex<Vec<Connection>>,
}

impl MainDb {
    /// The database at `path`.
    #[must_use]
    pub fn new(path: PathBuf) -> MainDb {
        MainDb { path, writer: Mutex::default(), readers: Mutex::default() }
    }

    /// Runs `work` in one transaction, which is undone where it fails. Writers of this process take turns.
    pub(super) fn write<T>(&self, work: impl FnOnce(&Transaction) -> Result<T>) -> Result<T> {
        let mut slot = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        if slot.is_none() {
            *slot = Some(open_to_write(&self.path)?);
        }
        let Some(connection) = slot.as_mut() else { return Err(Error::internal("the database is not open")) };
        let transaction =
            connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(|e| explain(&e))?;
        let value = work(&transaction)?;
        transaction.commit().map_err(|e| explain(&e))?;
        Ok(value)
    }

    /// Runs one statement that changes something, which is a transaction of its own, and not a pair of statements more around it.
    pub(super) fn write_one<T>(&self, work: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
        let mut slot = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        if slot.is_none() {
            *slot = Some(open_to_write(&self.path)?);
        }
        let Some(connection) = slot.as_ref() else { return Err(Error::internal("the database is not open")) };
        work(connection)
    }

    /// As [`MainDb::write`], with the statements around it kept ready: for what is written so often that they count.
    pub(super) fn write_often<T>(&self, work: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
        self.write_one(|connection| {
            let run = |sql: &str| {
                connection.prepare_cached(sql).and_then(|mut statement| statement.execute([])).map_err(|e| explain(&e))
            };
            run("BEGIN IMMEDIATE")?;
            let done = work(connection).and_then(|value| run("COMMIT").map(|_| value));
            // Where the disk is full SQLite may have undone it already.
            if done.is_err() && !connection.is_autocommit() {
                run("ROLLBACK")?;
            }
            done
        })
    }

    /// Gives the room of deleted rows back to the file system, where the file was made for that.
    pub(super) fn vacuum_some(&self) {
        let slot = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(connection) = slot.as_ref() {
            // It gives a row for each page; where it does not come to its end, the room is used again all the same.
            let vacuum = || -> rusqlite::Result<()> {
                let mut statement = connection.prepare("PRAGMA incremental_vacuum")?;
                let mut pages = statement.query([])?;
                while pages.next()?.is_some() {}
                Ok(())
            };
            let _ = vacuum();
        }
    }

    /// Brings what was written into the file itself, as far as nobody has to wait for that. Commits do so only when there is much, for
    /// it takes milliseconds and a disk's flush; whoever writes much calls this when it has time.
    pub fn catch_up(&self) {
        let slot = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(connection) = slot.as_ref() {
            let _ = connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
        }
    }

    /// Brings what was written into the file itself and empties the log beside it, as far as others let it.
    pub(super) fn settle_log(&self) {
        let slot = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(connection) = slot.as_ref() {
            // The pragma gives a row that says how far it came; nobody needs it.
            let _ = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
        }
    }

    /// Runs `work` on a reader, which sees what was committed before it began. `None` where there is no database yet.
    pub(super) fn read<T>(&self, work: impl FnOnce(&Connection) -> Result<T>) -> Result<Option<T>> {
        let kept = self.readers.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let connection = match kept {
            Some(connection) => connection,
            None if !self.path.exists() => return Ok(None),
            None => {
                // A writer migrates: what a reader finds has the tables it asks for.
                let mut slot = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
                if slot.is_none() {
                    *slot = Some(open_to_write(&self.path)?);
                }
                drop(slot);
                open_to_read(&self.path)?
            }
        };
        let value = work(&connection)?;
        let mut readers = self.readers.lock().unwrap_or_else(PoisonError::into_inner);
        if readers.len() < READERS {
            readers.push(connection);
        }
        Ok(Some(value))
    }
}

/// What a statement that changes something returns of one row. It is run to its end: only there does one that is a transaction of its
/// own say that it could not be committed.
pub(super) fn returned<T: rusqlite::types::FromSql>(
    statement: &mut Statement,
    values: impl Params,
) -> rusqlite::Result<Option<T>> {
    let mut rows = statement.query(values)?;
    let value = rows.next()?.map(|row| row.get(0)).transpose()?;
    while rows.next()?.is_some() {}
    Ok(value)
}

/// One process after the other: switching a new file to write-ahead logging does not wait for others by itself.
fn open_to_write(path: &Path) -> Result<Connection> {
    let folder = path.parent().ok_or_else(|| Error::internal("the database has no place"))?;
    std::fs::create_dir_all(folder).map_err(|e| io("cannot make the folder of the database", &e))?;
    file::with_lock(path, || {
        if !path.exists() {
            // SQLite gives its side files the mode of this one.
            file::write_private(path, b"")?;
        }
        let open = || {
            let mut connection =
                Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
            settle(&connection)?;
            // Counts for a new file only: what is deleted from an older one is used again, and stays in the file until then.
            connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
            connection.pragma_update(None, "journal_mode", "WAL")?;
            connection.pragma_update(None, "synchronous", "NORMAL")?;
            // A batch of the journal fits; what does not is written twice.
            connection.pragma_update(None, "cache_size", -1024)?;
            connection.pragma_update(None, "wal_autocheckpoint", LOG_PAGES)?;
            connection.pragma_update(None, "journal_size_limit", LOG_KEPT)?;
            // It also sees to it that what belongs to a row goes with it.
            let migrated = schema::migrate(&mut connection)?;
            Ok(migrated.map(|()| connection))
        };
        open().map_err(|e| explain(&e))?.map_err(|found| {
            Error::new(
                Kind::Conflict,
                format!("the database is of version {found}, and this program knows {}", schema::VERSION),
            )
            .hint("a newer program made it: use that one")
        })
    })
}

fn open_to_read(path: &Path) -> Result<Connection> {
    let open = || {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags)?;
        settle(&connection)?;
        Ok(connection)
    };
    open().map_err(|e| explain(&e))
}

/// What every connection is set to. Pictures are read once, so little is kept of them.
fn settle(connection: &Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(BUSY)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    connection.pragma_update(None, "cache_size", -256)?;
    connection.pragma_update(None, "trusted_schema", false)
}

/// SQLite's error as ours, without the path of the file.
pub(super) fn explain(error: &rusqlite::Error) -> Error {
    let code = error.sqlite_error_code();
    let of = |kind: Kind| Error::new(kind, format!("the host's database: {error}"));
    match code {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            Error::new(Kind::Conflict, "the host's database is in use by another process").with_retryable(true)
        }
        Some(ErrorCode::DiskFull) => {
            Error::new(Kind::Quota, "the host's database cannot grow: the disk is full").hint("free some space")
        }
        Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => {
            of(Kind::Internal).hint("user/lapidary.db is damaged; move it away, a new one is made at the next use")
        }
        Some(ErrorCode::ConstraintViolation) => of(Kind::Conflict),
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::CannotOpen) => {
            Error::denied("the host's database cannot be written").hint("look at the permissions of user/lapidary.db")
        }
        Some(ErrorCode::TooBig) => of(Kind::TooLarge),
        _ => of(Kind::Internal),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
