//! A plugin's own SQLite files: opened once, one statement at a time, a transaction of at most five seconds.
//! Every wait and every query asks a stop function; paths come from the caller and never stand in an error.

use super::fence;
use crate::base::error::{Error, Kind, Result, io};
use rusqlite::fallible_iterator::FallibleIterator as _;
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Batch, Connection, ErrorCode, OpenFlags, Statement, ToSql};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

/// How long a transaction may take, and how long a statement waits for another process.
pub const TRANSACTION_LIMIT: Duration = Duration::from_secs(5);
/// Most rows of one result.
pub const MAX_ROWS: usize = 100_000;
/// Most bytes of one result: 64 MiB.
pub const MAX_RESULT: usize = 64 << 20;
/// Most files of one plugin that are open at once.
pub const MAX_FILES: usize = 16;
/// Instructions of SQLite's machine between two looks at the stop function.
const PROGRESS: i32 = 2_000;
/// Pause between two looks while waiting for a connection.
const PAUSE: Duration = Duration::from_millis(5);

/// Answers `true` once the caller wants its answer no more: a deadline, a cancel.
pub type Stop = Arc<dyn Fn() -> bool + Send + Sync>;

/// One value of a row or a parameter.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    /// NULL.
    Null,
    /// An integer.
    Int(i64),
    /// A floating-point number; NaN cannot be stored.
    Real(f64),
    /// A text.
    Text(String),
    /// Bytes.
    Blob(Vec<u8>),
}

/// What a query found.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Rows {
    /// Column names in the statement's order; a name may stand twice.
    pub columns: Vec<String>,
    /// One vector of cells a row, in the columns' order.
    pub rows: Vec<Vec<Cell>>,
}

/// The open files of all plugins.
#[derive(Default)]
pub struct Databases(Mutex<HashMap<(String, String), Db>>);

impl Databases {
    /// The file of that plugin and name, opened or created at `path`.
    ///
    /// # Errors
    /// `invalid_arguments` for a name that is not `[a-z0-9_]{1,32}`, `quota` for one file too many, `internal` for a
    /// file that is no database, or what the file system says.
    pub fn open(&self, plugin: &str, name: &str, path: &Path) -> Result<Db> {
        valid_name(name)?;
        let key = (plugin.to_owned(), name.to_owned());
        {
            let open = self.open_files();
            if let Some(db) = open.get(&key).filter(|db| db.0.path == path) {
                return Ok(db.clone());
            }
            if open.keys().filter(|(owner, other)| owner == plugin && other != name).count() >= MAX_FILES {
                return Err(Error::new(Kind::Quota, format!("a plugin has at most {MAX_FILES} databases"))
                    .hint("put several tables into one database"));
            }
        }
        // Outside the lock: another process may make this wait, and other plugins need not.
        let db = Db::open(name, path)?;
        let mut open = self.open_files();
        // Whoever was first with the same file is kept, so that one process has one connection.
        if let Some(first) = open.get(&key).filter(|first| first.0.path == path) {
            return Ok(first.clone());
        }
        open.insert(key, db.clone());
        Ok(db)
    }

    /// Forgets a plugin's files; each closes when its last user lets go.
    pub fn close(&self, plugin: &str) {
        self.open_files().retain(|(owner, _), _| owner != plugin);
    }

    fn open_files(&self) -> MutexGuard<'_, HashMap<(String, String), Db>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a database may be called that.
///
/// # Errors
/// `invalid_arguments` saying what a name is made of.
pub fn valid_name(name: &str) -> Result<()> {
    let fits = (1..=32).contains(&name.len())
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
    if fits {
        return Ok(());
    }
    let shown: String = name.chars().take(40).collect();
    Err(Error::invalid(format!("`{shown}` is no name for a database"))
        .hint("use 1 to 32 lower-case letters, digits and underscores, such as `notes`"))
}

/// One open file. Cheap to clone; callers take turns.
#[derive(Clone)]
pub struct Db(Arc<Shared>);

struct Shared {
    name: String,
    path: PathBuf,
    slot: Mutex<Slot>,
    freed: Condvar,
    /// Set while the host's own statements run, which the authorizer lets through.
    house: Arc<AtomicBool>,
}

struct Slot {
    /// Away while somebody uses it.
    connection: Option<Connection>,
    transaction: Option<Running>,
    serial: u64,
}

#[derive(Clone, Copy)]
struct Running {
    serial: u64,
    thread: ThreadId,
    until: Instant,
}

/// The connection, taken out for one operation; dropping it puts it back, in a panic too.
struct Lease<'a> {
    shared: &'a Shared,
    connection: Option<Connection>,
    /// The end of the transaction it works for.
    until: Option<Instant>,
}

impl Db {
    fn open(name: &str, path: &Path) -> Result<Db> {
        let whole = resolved(name, path)?;
        let house = Arc::new(AtomicBool::new(false));
        let connect = || -> rusqlite::Result<Connection> {
            // No link is followed: the file lies where the host put it.
            let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
                | OpenFlags::SQLITE_OPEN_CREATE
                | OpenFlags::SQLITE_OPEN_NO_MUTEX
                | OpenFlags::SQLITE_OPEN_NOFOLLOW;
            let mut connection = Connection::open_with_flags(&whole, flags)?;
            fence::put_up(&mut connection, &house)?;
            Ok(connection)
        };
        let connection = connect().map_err(|e| explain(e, name))?;
        Ok(Db(Arc::new(Shared {
            name: name.to_owned(),
            path: path.to_owned(),
            slot: Mutex::new(Slot { connection: Some(connection), transaction: None, serial: 0 }),
            freed: Condvar::new(),
            house,
        })))
    }

    /// Runs one statement and returns its rows; `?1`, `?2` or `?` stand for `params`.
    ///
    /// # Errors
    /// `invalid_arguments` for SQL or parameters that do not fit, `permission_denied` for what a script's database does
    /// not do, `conflict` for a broken constraint or a file that another process keeps locked, `too_large` beyond
    /// [`MAX_ROWS`] or [`MAX_RESULT`], `quota` for a full file, `timeout` once `stop` says so.
    pub fn query(&self, sql: &str, params: &[Cell], stop: &Stop) -> Result<Rows> {
        self.0.lease(None, stop)?.operate(stop, |c| query(c, sql, params, &self.0.name))
    }

    /// Runs one statement and returns how many rows it inserted, changed or deleted.
    ///
    /// # Errors
    /// As [`Db::query`].
    pub fn exec(&self, sql: &str, params: &[Cell], stop: &Stop) -> Result<usize> {
        self.0.lease(None, stop)?.operate(stop, |c| exec(c, sql, params, &self.0.name))
    }

    /// Runs `work` in one transaction that nobody else can write into. It is undone where `work` fails or panics, where
    /// `stop` says so, and after [`TRANSACTION_LIMIT`].
    ///
    /// # Errors
    /// What `work` returns; what [`Db::query`] may return; `timeout` where it took too long.
    pub fn transaction<T>(&self, stop: &Stop, work: impl FnOnce(&Tx) -> Result<T>) -> Result<T> {
        let mut lease = self.0.lease(None, stop)?;
        lease.operate(stop, |c| self.0.own(c, "BEGIN IMMEDIATE"))?;
        let serial = {
            let mut slot = self.0.slot();
            slot.serial += 1;
            let running = Running {
                serial: slot.serial,
                thread: thread::current().id(),
                until: Instant::now() + TRANSACTION_LIMIT,
            };
            slot.transaction = Some(running);
            slot.serial
        };
        let end = Unfinished { shared: &self.0, serial };
        drop(lease);
        let value = work(&Tx { db: self.clone(), serial, stop: Arc::clone(stop) })?;
        let mut lease = self.0.lease(Some(serial), stop)?;
        lease.operate(stop, |c| {
            still_open(c)?;
            self.0.own(c, "COMMIT")
        })?;
        drop(lease);
        drop(end);
        Ok(value)
    }
}

/// A running transaction. A clone kept longer than the transaction only returns errors.
#[derive(Clone)]
pub struct Tx {
    db: Db,
    serial: u64,
    stop: Stop,
}

impl Tx {
    /// As [`Db::query`], inside the transaction.
    ///
    /// # Errors
    /// As [`Db::query`]; `invalid_arguments` once the transaction has ended.
    pub fn query(&self, sql: &str, params: &[Cell]) -> Result<Rows> {
        self.operate(|c, name| query(c, sql, params, name))
    }

    /// As [`Db::exec`], inside the transaction.
    ///
    /// # Errors
    /// As [`Tx::query`].
    pub fn exec(&self, sql: &str, params: &[Cell]) -> Result<usize> {
        self.operate(|c, name| exec(c, sql, params, name))
    }

    fn operate<T>(&self, work: impl FnOnce(&Connection, &str) -> Result<T>) -> Result<T> {
        let shared = &self.db.0;
        shared.lease(Some(self.serial), &self.stop)?.operate(&self.stop, |c| {
            still_open(c)?;
            work(c, &shared.name)
        })
    }
}

impl Shared {
    fn slot(&self) -> MutexGuard<'_, Slot> {
        self.slot.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the connection out, waiting for whoever has it; `serial` names the transaction that asks.
    fn lease(&self, serial: Option<u64>, stop: &Stop) -> Result<Lease<'_>> {
        let mut slot = self.slot();
        loop {
            let turn = match (slot.transaction, serial) {
                (None, None) => true,
                (Some(running), None) if running.thread == thread::current().id() => {
                    return Err(Error::invalid(format!(
                        "the database `{}` is in a transaction of this call",
                        self.name
                    ))
                    .hint("inside a transaction use the value its function was given"));
                }
                (Some(_), None) => false,
                (Some(running), Some(serial)) if running.serial == serial => true,
                (_, Some(_)) => return Err(Error::invalid("the transaction has ended")),
            };
            let until = serial.and(slot.transaction.map(|running| running.until));
            if until.is_some_and(|until| Instant::now() >= until) {
                return Err(took_too_long());
            }
            if stop() {
                return Err(stopped());
            }
            if turn && let Some(connection) = slot.connection.take() {
                return Ok(Lease { shared: self, connection: Some(connection), until });
            }
            slot = self.freed.wait_timeout(slot, PAUSE).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Runs a statement of the host's own.
    fn own(&self, connection: &Connection, sql: &str) -> Result<()> {
        self.house.store(true, Ordering::Relaxed);
        let ran = connection.execute_batch(sql);
        self.house.store(false, Ordering::Relaxed);
        ran.map_err(|e| explain(e, &self.name))
    }
}

impl Lease<'_> {
    /// Runs `work` so that it ends soon after `stop` says so or the transaction's time is over.
    #[expect(
        clippy::disallowed_methods,
        reason = "another writer is waited for in steps of at most 20 ms, between looks at the stop flag"
    )]
    fn operate<T>(&mut self, stop: &Stop, work: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
        let Some(connection) = self.connection.as_mut() else {
            return Err(Error::internal("the database connection is away"));
        };
        let until = self.until;
        let over = {
            let stop = Arc::clone(stop);
            move || stop() || until.is_some_and(|until| Instant::now() >= until)
        };
        let waiting_ends = Instant::now() + TRANSACTION_LIMIT;
        let over_too = over.clone();
        let watched = connection.progress_handler(PROGRESS, Some(over.clone())).and_then(|()| {
            connection.busy_handler(Some(move |tries: i32| {
                if over_too() || Instant::now() >= waiting_ends {
                    return false;
                }
                thread::sleep(Duration::from_millis(u64::from(tries.unsigned_abs()).clamp(1, 20)));
                true
            }))
        });
        let result = watched.map_err(|e| explain(e, &self.shared.name)).and_then(|()| work(connection));
        // The next operation brings its own; this one's stop function may hold on to its call.
        let _ = connection.progress_handler(0, None::<fn() -> bool>);
        let _ = connection.busy_handler(None::<fn(i32) -> bool>);
        match result {
            Err(_) if until.is_some_and(|until| Instant::now() >= until) => Err(took_too_long()),
            other => other,
        }
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        self.shared.slot().connection = self.connection.take();
        self.shared.freed.notify_all();
    }
}

/// Ends a transaction: what was not committed by then is undone.
struct Unfinished<'a> {
    shared: &'a Shared,
    serial: u64,
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        let mut slot = self.shared.slot();
        // A clone of the transaction may still be in a statement on another thread; its time is limited.
        while slot.connection.is_none() {
            slot = self.shared.freed.wait_timeout(slot, PAUSE).unwrap_or_else(PoisonError::into_inner).0;
        }
        if slot.transaction.is_some_and(|running| running.serial == self.serial) {
            if let Some(connection) = slot.connection.as_ref().filter(|c| !c.is_autocommit()) {
                // Where even this fails the file is broken, and the next statement says so.
                let _ = self.shared.own(connection, "ROLLBACK");
            }
            slot.transaction = None;
        }
        drop(slot);
        self.shared.freed.notify_all();
    }
}

/// SQLite ends a transaction by itself after some failures; what follows must not run outside it.
fn still_open(connection: &Connection) -> Result<()> {
    if connection.is_autocommit() {
        return Err(Error::new(Kind::Conflict, "the transaction was undone by an earlier failure"));
    }
    Ok(())
}

fn query(connection: &Connection, sql: &str, params: &[Cell], name: &str) -> Result<Rows> {
    let mut statement = prepare(connection, sql, params, name)?;
    let columns: Vec<String> = statement.column_names().map(str::to_owned).collect();
    let mut found = Rows { columns, rows: Vec::new() };
    let mut bytes = 0;
    let mut rows = statement.raw_query();
    while let Some(row) = rows.next().map_err(|e| explain(e, name))? {
        let mut cells = Vec::with_capacity(found.columns.len());
        for i in 0..found.columns.len() {
            let cell = match row.get_ref(i).map_err(|e| explain(e, name))? {
                ValueRef::Null => Cell::Null,
                ValueRef::Integer(n) => Cell::Int(n),
                ValueRef::Real(x) => Cell::Real(x),
                ValueRef::Text(text) => Cell::Text(String::from_utf8_lossy(text).into_owned()),
                ValueRef::Blob(blob) => Cell::Blob(blob.to_vec()),
            };
            bytes += size_of::<Cell>()
                + match &cell {
                    Cell::Text(text) => text.len(),
                    Cell::Blob(blob) => blob.len(),
                    Cell::Null | Cell::Int(_) | Cell::Real(_) => 0,
                };
            cells.push(cell);
        }
        if found.rows.len() == MAX_ROWS || bytes > MAX_RESULT {
            return Err(Error::new(
                Kind::TooLarge,
                format!("the result is larger than {MAX_ROWS} rows or {MAX_RESULT} bytes"),
            )
            .hint("add a LIMIT, or let SQL count and sum"));
        }
        found.rows.push(cells);
    }
    Ok(found)
}

fn exec(connection: &Connection, sql: &str, params: &[Cell], name: &str) -> Result<usize> {
    let mut statement = prepare(connection, sql, params, name)?;
    let before = connection.total_changes();
    let mut rows = statement.raw_query();
    while rows.next().map_err(|e| explain(e, name))?.is_some() {}
    drop(rows);
    // `changes` keeps the number of an earlier statement when this one changes nothing, as CREATE TABLE does.
    let changed = if connection.total_changes() == before { 0 } else { connection.changes() };
    Ok(usize::try_from(changed).unwrap_or(usize::MAX))
}

fn prepare<'c>(connection: &'c Connection, sql: &str, params: &[Cell], name: &str) -> Result<Statement<'c>> {
    if sql.contains('\0') {
        return Err(Error::invalid("the sql holds a NUL character").hint("pass such a text as a parameter"));
    }
    // Not `Connection::prepare`, which calls itself once for every further statement in the text.
    let mut batch = Batch::new(connection, sql);
    let mut statement =
        batch.next().map_err(|e| explain(e, name))?.ok_or_else(|| Error::invalid("the sql holds no statement"))?;
    if !matches!(batch.next(), Ok(None)) {
        return Err(Error::invalid("the sql holds more than one statement").hint("run one statement a call"));
    }
    let wanted = statement.parameter_count();
    if wanted != params.len() {
        return Err(Error::invalid(format!("the sql takes {wanted} parameters, {} were given", params.len()))
            .hint("a list with one value for each `?`"));
    }
    for (i, cell) in params.iter().enumerate() {
        if matches!(cell, Cell::Real(x) if x.is_nan()) {
            return Err(Error::invalid(format!("parameter {} is not a number", i + 1)));
        }
        statement.raw_bind_parameter(i + 1, cell).map_err(|e| explain(e, name))?;
    }
    Ok(statement)
}

impl ToSql for Cell {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Cell::Null => ValueRef::Null,
            Cell::Int(n) => ValueRef::Integer(*n),
            Cell::Real(x) => ValueRef::Real(*x),
            Cell::Text(text) => ValueRef::Text(text.as_bytes()),
            Cell::Blob(blob) => ValueRef::Blob(blob),
        }))
    }
}

/// The path with its folder made and resolved, so that a link above it is no reason to refuse the file.
fn resolved(name: &str, path: &Path) -> Result<PathBuf> {
    let what = || format!("the folder of the database `{name}`");
    let (Some(folder), Some(file)) = (path.parent(), path.file_name()) else {
        return Err(Error::internal(format!("the database `{name}` has no place")));
    };
    std::fs::create_dir_all(folder).map_err(|e| io(what(), &e))?;
    Ok(folder.canonicalize().map_err(|e| io(what(), &e))?.join(file))
}

fn stopped() -> Error {
    Error::new(Kind::Timeout, "the database operation was stopped")
}

fn took_too_long() -> Error {
    Error::new(
        Kind::Timeout,
        format!("the transaction took longer than {} s and was undone", TRANSACTION_LIMIT.as_secs()),
    )
    .hint("do the slow work before the transaction")
}

/// SQLite's error as ours. Its text speaks of the script's own SQL and names no path.
fn explain(error: rusqlite::Error, name: &str) -> Error {
    let (code, message) = match error {
        rusqlite::Error::SqliteFailure(e, message) => {
            (e.code, message.unwrap_or_else(|| rusqlite::ffi::code_to_str(e.extended_code).to_owned()))
        }
        rusqlite::Error::SqlInputError { error, msg, offset, .. } if offset >= 0 => {
            (error.code, format!("{msg}, at byte {offset} of the sql"))
        }
        rusqlite::Error::SqlInputError { error, msg, .. } => (error.code, msg),
        other => return Error::internal(format!("database `{name}`: {other}")),
    };
    let of = |kind: Kind| Error::new(kind, format!("database `{name}`: {message}"));
    match code {
        ErrorCode::Unknown | ErrorCode::TypeMismatch | ErrorCode::ParameterOutOfRange => of(Kind::InvalidArguments),
        ErrorCode::ConstraintViolation => of(Kind::Conflict),
        ErrorCode::AuthorizationForStatementDenied => of(Kind::PermissionDenied)
            .hint("attaching, temporary tables, transactions in sql and most pragmas are switched off"),
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => {
            of(Kind::Conflict).with_retryable(true).hint("another process writes to this file; try again")
        }
        ErrorCode::OperationInterrupted | ErrorCode::OperationAborted => stopped(),
        ErrorCode::TooBig | ErrorCode::OutOfMemory => of(Kind::TooLarge),
        ErrorCode::DiskFull => {
            of(Kind::Quota).hint("a database holds at most 256 MiB, or the disk is full; delete something")
        }
        ErrorCode::ReadOnly | ErrorCode::PermissionDenied => of(Kind::PermissionDenied),
        ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt => of(Kind::Internal)
            .hint("the file is damaged or no database; move it away, a new one is made at the next use"),
        _ => of(Kind::Internal),
    }
}

#[cfg(test)]
mod tests;
