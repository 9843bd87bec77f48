//! `db::`: the plugin's own SQLite files. SQL, limits and fences are the store's; here rows become maps.

use crate::base::error::{Error, Kind, Result};
use crate::host::argument::unfit;
use crate::host::callback;
use crate::script::control::{self, Budget, Control, Stop};
use crate::script::ctx::{self, Ctx, Res};
use crate::script::module::HostModule;
use crate::service::database::{self, Cell, Db, Rows, TRANSACTION_LIMIT, Tx};
use rhai::{Array, Blob, Dynamic, EvalAltResult, FnPtr, ImmutableString, Map, NativeCallContext};
use std::sync::Arc;

/// The module.
pub fn module() -> HostModule {
    HostModule::new(
        "db",
        "The plugin's own SQLite files, for more than a few hundred values. `?` or `?1` in the SQL stand for the parameters, which are an array of (), integers, floats, bools (stored as 0 and 1), text and blobs.",
        || rhai::exported_module!(api),
    )
}

fn cells(params: &Array) -> Result<Vec<Cell>> {
    params.iter().enumerate().map(|(at, value)| cell(at, value)).collect()
}

fn cell(at: usize, value: &Dynamic) -> Result<Cell> {
    if value.is_unit() {
        return Ok(Cell::Null);
    }
    if let Ok(i) = value.as_int() {
        return Ok(Cell::Int(i));
    }
    if let Ok(f) = value.as_float() {
        return Ok(Cell::Real(f));
    }
    if let Ok(b) = value.as_bool() {
        return Ok(Cell::Int(b.into()));
    }
    if let Some(text) = value.read_lock::<ImmutableString>() {
        control::reserve(text.len())?;
        return Ok(Cell::Text(text.to_string()));
    }
    if let Ok(c) = value.as_char() {
        return Ok(Cell::Text(c.to_string()));
    }
    if let Some(blob) = value.read_lock::<Blob>() {
        control::reserve(blob.len())?;
        return Ok(Cell::Blob(blob.clone()));
    }
    Err(unfit(&format!("params[{at}]"), "(), a number, a bool, text or a blob", value)
        .hint("store lists and maps as text: json::encode(value)"))
}

/// Each row as a map from column to value; of two columns of one name the last counts.
fn maps(found: Rows) -> Result<Array> {
    // A map's node has room for eleven entries, however few there are.
    let each = found.columns.len().div_ceil(6).saturating_mul(640) + size_of::<Dynamic>();
    control::reserve(found.rows.len().saturating_mul(each))?;
    let columns: Vec<rhai::Identifier> = found.columns.iter().map(|name| name.as_str().into()).collect();
    let row = |cells: Vec<Cell>| -> Map { columns.iter().cloned().zip(cells.into_iter().map(value)).collect() };
    Ok(found.rows.into_iter().map(|cells| Dynamic::from_map(row(cells))).collect())
}

fn value(cell: Cell) -> Dynamic {
    match cell {
        Cell::Null => Dynamic::UNIT,
        Cell::Int(i) => i.into(),
        Cell::Real(f) => f.into(),
        Cell::Text(text) => text.into(),
        Cell::Blob(bytes) => Dynamic::from_blob(bytes),
    }
}

fn rows(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn stop_of(control: &Arc<Control>) -> database::Stop {
    let control = control.clone();
    Arc::new(move || control.stopped() != Stop::No)
}

/// A stopped call ends with its own reason, whatever the database says about it.
fn ended(control: &Control, error: Error) -> Error {
    if control.stopped() == Stop::No { error } else { control.error() }
}

fn open(ctx: &Ctx, name: &str) -> Result<Db> {
    database::open(&ctx.services.databases, &ctx.services.paths, &ctx.plugin.name, name)
}

fn query(ctx: &Ctx, db: &Db, sql: &str, params: &Array) -> Result<Array> {
    let found = db.query(sql, &cells(params)?, &stop_of(&ctx.control)).map_err(|e| ended(&ctx.control, e))?;
    maps(found)
}

fn exec(ctx: &Ctx, db: &Db, sql: &str, params: &Array) -> Result<i64> {
    db.exec(sql, &cells(params)?, &stop_of(&ctx.control)).map(rows).map_err(|e| ended(&ctx.control, e))
}

/// Runs `work` while this call holds the database, under a deadline of the transaction's own. The script function sees a
/// context in which nothing that acts is available, so it cannot wait for anybody while others wait for it.
fn transaction(call: &NativeCallContext, ctx: &Ctx, db: &Db, work: &FnPtr) -> Res<Dynamic> {
    let budget = Budget { deadline: TRANSACTION_LIMIT, ..ctx.control.budget() };
    let control = Control::nested(budget, &ctx.control);
    let mut thrown: Option<Box<EvalAltResult>> = None;
    let done = {
        let _running = control::enter(control.clone());
        db.transaction(&stop_of(&control), |tx| {
            let inside = ctx.in_transaction(control.clone());
            let mut global = call.global_runtime_state().clone();
            global.tag = ctx::tag(inside);
            let call = NativeCallContext::new_with_all_fields(
                call.engine(),
                call.fn_name(),
                call.fn_source(),
                &global,
                call.call_position(),
            );
            callback::run(&call, work, (Dynamic::from(Transaction(tx.clone())),)).map_err(|e| {
                thrown = Some(e);
                Error::new(Kind::Cancelled, "the function of the transaction threw")
            })
        })
    };
    // Whoever stopped the whole call has the first word; then the transaction's own deadline; then the script's error.
    if ctx.control.stopped() == Stop::No && control.stopped() == Stop::Deadline {
        let error = Error::new(
            Kind::Timeout,
            format!("the transaction took longer than {} s and was undone", TRANSACTION_LIMIT.as_secs()),
        );
        return Err(ctx::raise(call, &error.hint("prepare values before it, and do less inside")));
    }
    match (done, thrown) {
        (Ok(value), _) => Ok(value),
        (Err(_), Some(thrown)) => Err(thrown),
        (Err(e), None) => Err(ctx::raise(call, &ended(&ctx.control, e))),
    }
}

/// A running transaction as a script holds it; one kept longer only throws.
#[derive(Clone)]
pub struct Transaction(Tx);

impl std::fmt::Debug for Transaction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Transaction")
    }
}

impl Transaction {
    fn query(&self, sql: &str, params: &Array) -> Result<Array> {
        maps(self.0.query(sql, &cells(params)?)?)
    }

    fn exec(&self, sql: &str, params: &Array) -> Result<i64> {
        self.0.exec(sql, &cells(params)?).map(rows)
    }
}

/// An open database as a script holds it.
#[derive(Clone)]
pub struct Database(Db);

impl std::fmt::Debug for Database {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Database")
    }
}

#[rhai::plugin::export_module]
#[allow(clippy::unwrap_used)] // in the macro's own code, which has just checked the type
mod api {
    use crate::script::ctx::{self, OrRaise, Res};
    #[allow(clippy::wildcard_imports)] // what the macro's own code names
    use rhai::plugin::*;
    use rhai::{Array, FnPtr};

    /// An open database: `query(sql, params)`, `exec(sql, params)`, `transaction(|tx| ..)`.
    pub type Database = super::Database;
    /// A running transaction: `query(sql, params)`, `exec(sql, params)`. One kept after its end only throws.
    pub type Transaction = super::Transaction;

    /// The plugin's database of that name, made where there is none. At most 16 of a plugin are open at once.
    ///
    /// Throws `invalid_arguments` for a name that is not 1 to 32 of `a-z 0-9 _`.
    ///
    /// ```rhai
    /// let db = db::open("journal");
    /// db.exec("CREATE TABLE IF NOT EXISTS entry (day TEXT, words INTEGER)");
    /// assert_eq(db.query("SELECT * FROM entry"), []);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn open(call: NativeCallContext, name: &str) -> Res<Database> {
        let ctx = ctx::live(&call)?;
        super::open(&ctx, name).map(super::Database).or_raise(&call)
    }

    #[rhai_fn(global, return_raw, pure)]
    pub fn query(call: NativeCallContext, database: &mut Database, sql: &str) -> Res<Array> {
        query_with(call, database, sql, Array::new())
    }

    /// Runs one statement and gives its rows, each a map from column to value (NULL is `()`).
    ///
    /// Throws `invalid_arguments` for SQL or parameters that do not fit, `permission_denied` for what a plugin's database
    /// does not do (attach files, load extensions), `conflict` for a broken constraint or a file that stays locked,
    /// `too_large` over 100,000 rows or 64 MiB, `timeout` at the call's deadline.
    ///
    /// ```rhai
    /// let db = db::open("shop");
    /// db.exec("CREATE TABLE item (name TEXT, price REAL)");
    /// db.exec("INSERT INTO item VALUES (?, ?), ('milk', 1.5)", ["tea", 4.0]);
    /// assert_eq(db.query("SELECT name FROM item WHERE price > ?", [2]), [#{name: "tea"}]);
    /// ```
    #[rhai_fn(global, return_raw, pure, name = "query")]
    pub fn query_with(call: NativeCallContext, database: &mut Database, sql: &str, params: Array) -> Res<Array> {
        let ctx = ctx::live(&call)?;
        super::query(&ctx, &database.0, sql, &params).or_raise(&call)
    }

    #[rhai_fn(global, return_raw, pure)]
    pub fn exec(call: NativeCallContext, database: &mut Database, sql: &str) -> Res<i64> {
        exec_with(call, database, sql, Array::new())
    }

    /// Runs one statement and gives how many rows it inserted, changed or deleted.
    ///
    /// Throws as `query` does, and `quota` for a full file.
    ///
    /// ```rhai
    /// let db = db::open("shop");
    /// db.exec("CREATE TABLE item (name TEXT)");
    /// assert_eq(db.exec("INSERT INTO item VALUES (?), (?)", ["tea", "milk"]), 2);
    /// assert_eq(db.exec("DELETE FROM item WHERE name = ?", ["tea"]), 1);
    /// ```
    #[rhai_fn(global, return_raw, pure, name = "exec")]
    pub fn exec_with(call: NativeCallContext, database: &mut Database, sql: &str, params: Array) -> Res<i64> {
        let ctx = ctx::live(&call)?;
        super::exec(&ctx, &database.0, sql, &params).or_raise(&call)
    }

    /// Runs `work` in one transaction and gives what it gives. It is undone where `work` throws, and after 5 s. Inside, only
    /// the transaction that `work` is given and functions that compute are available.
    ///
    /// Throws what `work` throws, `timeout` after 5 s, and what `query` throws.
    ///
    /// ```rhai
    /// let db = db::open("bank");
    /// db.exec("CREATE TABLE account (name TEXT, amount INTEGER)");
    /// try {
    ///     db.transaction(|tx| {
    ///         tx.exec("INSERT INTO account VALUES ('ann', 10)");
    ///         throw "changed my mind";
    ///     });
    /// } catch (e) { assert_eq(e, "changed my mind"); }
    /// assert_eq(db.query("SELECT * FROM account"), []);
    /// let sum = db.transaction(|tx| {
    ///     tx.exec("INSERT INTO account VALUES ('ann', 10), ('bob', 5)");
    ///     tx.query("SELECT sum(amount) AS sum FROM account")[0].sum
    /// });
    /// assert_eq(sum, 15);
    /// ```
    #[rhai_fn(global, return_raw, pure)]
    pub fn transaction(call: NativeCallContext, database: &mut Database, work: FnPtr) -> Res<Dynamic> {
        let ctx = ctx::live(&call)?;
        super::transaction(&call, &ctx, &database.0, &work)
    }

    #[rhai_fn(global, return_raw, pure, name = "query")]
    pub fn tx_query(call: NativeCallContext, transaction: &mut Transaction, sql: &str) -> Res<Array> {
        transaction.query(sql, &Array::new()).or_raise(&call)
    }

    /// As `query` of a database, inside the transaction.
    #[rhai_fn(global, return_raw, pure, name = "query")]
    pub fn tx_query_with(
        call: NativeCallContext,
        transaction: &mut Transaction,
        sql: &str,
        params: Array,
    ) -> Res<Array> {
        transaction.query(sql, &params).or_raise(&call)
    }

    #[rhai_fn(global, return_raw, pure, name = "exec")]
    pub fn tx_exec(call: NativeCallContext, transaction: &mut Transaction, sql: &str) -> Res<i64> {
        transaction.exec(sql, &Array::new()).or_raise(&call)
    }

    /// As `exec` of a database, inside the transaction.
    #[rhai_fn(global, return_raw, pure, name = "exec")]
    pub fn tx_exec_with(call: NativeCallContext, transaction: &mut Transaction, sql: &str, params: Array) -> Res<i64> {
        transaction.exec(sql, &params).or_raise(&call)
    }
}
