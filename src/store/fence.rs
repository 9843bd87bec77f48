//! What SQL from a stranger may do: an authorizer, limits, and linear forms of the functions that could run for hours.
//! Knows one connection at a time and nothing of plugins.

use rusqlite::config::DbConfig;
use rusqlite::functions::{Context, FunctionFlags};
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::limits::Limit;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Result, ffi};
use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Longest text or blob, in bytes: 64 MiB.
pub(super) const MAX_VALUE: i32 = 64 << 20;
/// Longest SQL text, in bytes: 1 MiB.
const MAX_SQL: i32 = 1 << 20;
/// Largest file, in bytes: 256 MiB.
const MAX_FILE: i64 = 256 << 20;
/// Most memory of all SQLite connections of the process, in bytes: 256 MiB. Sorting happens in memory, within this.
const MAX_HEAP: i64 = 256 << 20;

/// Prepares a fresh connection: journal, limits, functions, and the authorizer, which lets the host's own statements
/// through while `house` is set.
pub(super) fn put_up(connection: &mut Connection, house: &Arc<AtomicBool>) -> Result<()> {
    let pragma = |name: &str, value: &dyn rusqlite::ToSql| connection.pragma_update(None, name, value);
    pragma("journal_mode", &"wal")?;
    pragma("synchronous", &"normal")?;
    pragma("foreign_keys", &true)?;
    // A temporary file has no limit of its own; memory has.
    pragma("temp_store", &"memory")?;
    pragma("hard_heap_limit", &MAX_HEAP)?;
    pragma("journal_size_limit", &(16 << 20))?;
    let page: i64 = connection.pragma_query_value(None, "page_size", |row| row.get(0))?;
    pragma("max_page_count", &(MAX_FILE / page.max(512)))?;

    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_FTS3_TOKENIZER, false)?;
    for (limit, value) in [
        (Limit::SQLITE_LIMIT_LENGTH, MAX_VALUE),
        (Limit::SQLITE_LIMIT_SQL_LENGTH, MAX_SQL),
        (Limit::SQLITE_LIMIT_EXPR_DEPTH, 200),
        (Limit::SQLITE_LIMIT_COMPOUND_SELECT, 200),
        (Limit::SQLITE_LIMIT_FUNCTION_ARG, 100),
        (Limit::SQLITE_LIMIT_ATTACHED, 0),
        // A pattern costs its length times the text's, and nothing can interrupt it.
        (Limit::SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 256),
        (Limit::SQLITE_LIMIT_VARIABLE_NUMBER, 1000),
        (Limit::SQLITE_LIMIT_TRIGGER_DEPTH, 50),
        (Limit::SQLITE_LIMIT_WORKER_THREADS, 0),
        // Tables, indexes, triggers and views stay in memory while the file is open.
        (Limit::SQLITE_LIMIT_SCHEMA, 500),
    ] {
        connection.set_limit(limit, value)?;
    }
    linear_functions(connection)?;
    let house = Arc::clone(house);
    connection.authorizer(Some(move |context: AuthContext<'_>| {
        if house.load(Ordering::Relaxed) || allowed(&context) { Authorization::Allow } else { Authorization::Deny }
    }))
}

/// Whether a script's statement may do this. What is not known is refused.
fn allowed(context: &AuthContext<'_>) -> bool {
    /// Read-only, or bound to this file and harmless.
    const PRAGMAS: [&str; 15] = [
        "application_id",
        "collation_list",
        "data_version",
        "foreign_key_check",
        "foreign_key_list",
        "index_info",
        "index_list",
        "index_xinfo",
        "integrity_check",
        "page_count",
        "quick_check",
        "table_info",
        "table_list",
        "table_xinfo",
        "user_version",
    ];
    const MODULES: [&str; 4] = ["fts5", "fts5vocab", "rtree", "rtree_i32"];
    /// Reach out of the file, or run for hours where nothing can interrupt them.
    const FUNCTIONS: [&str; 4] = ["load_extension", "fts3_tokenizer", "json_patch", "jsonb_patch"];
    let listed = |list: &[&str], name: &str| list.iter().any(|known| known.eq_ignore_ascii_case(name));
    match &context.action {
        // Only to be read: setting it would undo the file's limit, which counts pages.
        AuthAction::Pragma { pragma_name, pragma_value: None } if pragma_name.eq_ignore_ascii_case("page_size") => true,
        AuthAction::Pragma { pragma_name, .. } => listed(&PRAGMAS, pragma_name),
        AuthAction::CreateVtable { module_name, .. } => {
            context.database_name == Some("main") && listed(&MODULES, module_name)
        }
        AuthAction::Function { function_name } => !listed(&FUNCTIONS, function_name),
        // `CREATE TABLE temp.x` asks for a plain table, in a schema that has no limit of its size.
        AuthAction::CreateTable { .. }
        | AuthAction::CreateIndex { .. }
        | AuthAction::CreateTrigger { .. }
        | AuthAction::CreateView { .. } => context.database_name == Some("main"),
        AuthAction::Select
        | AuthAction::Recursive
        | AuthAction::Read { .. }
        | AuthAction::Insert { .. }
        | AuthAction::Update { .. }
        | AuthAction::Delete { .. }
        | AuthAction::DropTable { .. }
        | AuthAction::DropIndex { .. }
        | AuthAction::DropTrigger { .. }
        | AuthAction::DropView { .. }
        | AuthAction::DropVtable { .. }
        | AuthAction::AlterTable { .. }
        | AuthAction::Reindex { .. }
        | AuthAction::Analyze { .. } => true,
        // Attach, detach, temporary objects, transactions and savepoints, and whatever comes with a later SQLite.
        _ => false,
    }
}

/// Replaces the built-in functions whose cost is the product of their arguments' lengths.
fn linear_functions(connection: &Connection) -> Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC | FunctionFlags::SQLITE_INNOCUOUS;
    connection.create_scalar_function("instr", 2, flags, |context| {
        Ok(match (context.get_raw(0), context.get_raw(1)) {
            (ValueRef::Null, _) | (_, ValueRef::Null) => None,
            // Bytes are searched as characters of one byte each, so that the search stays linear.
            (ValueRef::Blob(all), ValueRef::Blob(part)) => Some(position(&latin1(all), &latin1(part))),
            (all, part) => Some(position(&text(all), &text(part))),
        })
    })?;
    connection.create_scalar_function("replace", 3, flags, |context| {
        if (0..3).any(|i| context.get_raw(i) == ValueRef::Null) {
            return Ok(None);
        }
        let (all, part, by) = (text(context.get_raw(0)), text(context.get_raw(1)), text(context.get_raw(2)));
        if part.is_empty() {
            return Ok(Some(all.into_owned()));
        }
        let grown = all.len() + all.matches(&*part).count().saturating_mul(by.len().saturating_sub(part.len()));
        if grown > MAX_VALUE as usize {
            return Err(rusqlite::Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_TOOBIG), None));
        }
        Ok(Some(all.replace(&*part, &by)))
    })?;
    for (name, left, right) in [("trim", true, true), ("ltrim", true, false), ("rtrim", false, true)] {
        connection.create_scalar_function(name, 2, flags, move |context: &mut Context<'_>| {
            if (0..2).any(|i| context.get_raw(i) == ValueRef::Null) {
                return Ok(None);
            }
            let (all, set) = (text(context.get_raw(0)), text(context.get_raw(1)));
            let set: HashSet<char> = set.chars().collect();
            let mut rest: &str = &all;
            if left {
                rest = rest.trim_start_matches(|c| set.contains(&c));
            }
            if right {
                rest = rest.trim_end_matches(|c| set.contains(&c));
            }
            Ok(Some(rest.to_owned()))
        })?;
    }
    Ok(())
}

/// One-based place of `part` in `all` in characters, 0 where it is not.
fn position(all: &str, part: &str) -> i64 {
    all.find(part).map_or(0, |at| i64::try_from(all[..at].chars().count() + 1).unwrap_or(i64::MAX))
}

fn latin1(bytes: &[u8]) -> String {
    bytes.iter().copied().map(char::from).collect()
}

fn text(value: ValueRef<'_>) -> Cow<'_, str> {
    match value {
        ValueRef::Null => Cow::Borrowed(""),
        ValueRef::Integer(n) => Cow::Owned(n.to_string()),
        ValueRef::Real(x) => Cow::Owned(format!("{x:?}")),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => String::from_utf8_lossy(bytes),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn fenced() -> Connection {
        let mut connection = Connection::open_in_memory().unwrap();
        put_up(&mut connection, &Arc::default()).unwrap();
        connection
    }

    fn run(connection: &Connection, sql: &str) -> Result<()> {
        let mut statement = connection.prepare(sql)?;
        let mut rows = statement.query([])?;
        while rows.next()?.is_some() {}
        Ok(())
    }

    #[test]
    fn what_a_statement_may_do_is_a_closed_list() {
        let connection = fenced();
        connection.execute_batch("CREATE TABLE t(a PRIMARY KEY, b); CREATE VIEW v AS SELECT a FROM t;").unwrap();
        for sql in [
            "SELECT 1",
            "SELECT * FROM sqlite_schema",
            "INSERT INTO t VALUES (1, 2)",
            "UPDATE t SET b = 3",
            "DELETE FROM t",
            "CREATE INDEX i ON t(b)",
            "DROP INDEX IF EXISTS i",
            "ALTER TABLE t ADD COLUMN c",
            "ALTER TABLE t RENAME COLUMN c TO d",
            "ALTER TABLE t DROP COLUMN d",
            "CREATE TRIGGER g AFTER INSERT ON t BEGIN UPDATE t SET b = 1; DELETE FROM t WHERE a = 0; END",
            "DROP TRIGGER g",
            "CREATE VIRTUAL TABLE f USING fts5(x)",
            "INSERT INTO f VALUES ('hello world')",
            "SELECT * FROM f WHERE f MATCH 'hello'",
            "DROP TABLE f",
            "CREATE VIRTUAL TABLE r USING rtree(id, x0, x1)",
            "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 9) SELECT * FROM c",
            "PRAGMA table_info(t)",
            "PRAGMA user_version = 7",
            "SELECT * FROM pragma_table_info('t')",
            "EXPLAIN QUERY PLAN SELECT * FROM t",
            "ANALYZE",
            "REINDEX",
            "SELECT json_extract('{\"a\":1}', '$.a'), value FROM json_each('[1]')",
        ] {
            let ran = run(&connection, sql);
            assert!(ran.is_ok(), "{sql}: {ran:?}");
        }
        for sql in [
            "ATTACH '/tmp/other.db' AS o",
            "ATTACH ':memory:' AS o",
            "DETACH main",
            "VACUUM",
            "VACUUM INTO '/tmp/copy.db'",
            "BEGIN",
            "COMMIT",
            "ROLLBACK",
            "END",
            "SAVEPOINT s",
            "RELEASE s",
            "CREATE TEMP TABLE x(a)",
            "CREATE TABLE temp.x(a)",
            "CREATE VIEW temp.x AS SELECT 1",
            "CREATE VIRTUAL TABLE temp.x USING fts5(a)",
            "INSERT INTO temp.sqlite_schema VALUES ('table', 'x', 'x', 0, '')",
            "CREATE TEMP VIEW x AS SELECT 1",
            "CREATE TEMP TRIGGER x AFTER INSERT ON t BEGIN SELECT 1; END",
            "PRAGMA journal_mode = delete",
            "PRAGMA max_page_count = 99999999",
            "PRAGMA hard_heap_limit = 0",
            "PRAGMA writable_schema = on",
            "PRAGMA trusted_schema = on",
            "PRAGMA temp_store_directory = '/tmp'",
            "PRAGMA mmap_size = 1000000",
            "PRAGMA foreign_keys = off",
            "PRAGMA wal_checkpoint",
            "PRAGMA page_size = 65536",
            "PRAGMA database_list",
            "SELECT * FROM pragma_database_list",
            "SELECT load_extension('/tmp/x.so')",
            "SELECT fts3_tokenizer('simple')",
            "SELECT json_patch('{}', '{}')",
            "CREATE VIRTUAL TABLE d USING dbstat(main)",
            "CREATE VIRTUAL TABLE d USING fts4(x)",
            "UPDATE sqlite_schema SET sql = ''",
            "SELECT writefile('/tmp/x', 'y')",
        ] {
            assert!(run(&connection, sql).is_err(), "{sql}");
        }
    }

    #[test]
    fn replaced_functions_answer_as_the_built_in_ones_do() {
        let plain = Connection::open_in_memory().unwrap();
        let fenced = fenced();
        for expression in [
            "instr('grün', 'n')",
            "instr('abc', '')",
            "instr('', 'a')",
            "instr('abc', 'x')",
            "instr(NULL, 'a')",
            "instr('a', NULL)",
            "instr(x'00ff01', x'ff')",
            "instr(x'6162', 'b')",
            "instr(12345, 34)",
            "replace('aXbX', 'X', '--')",
            "replace('abc', '', 'x')",
            "replace('abc', 'b', NULL)",
            "replace(1.5, '.', ',')",
            "replace(2.0, '.', ',')",
            "replace(121, 1, 0)",
            "replace('aaa', 'aa', 'b')",
            "trim('xxaxx', 'x')",
            "trim('xyaxy', 'yx')",
            "ltrim('xxaxx', 'x')",
            "rtrim('xxaxx', 'x')",
            "trim('üaü', 'ü')",
            "trim('a', '')",
            "trim(NULL, 'a')",
            "trim(' a ')",
        ] {
            let sql = format!("SELECT {expression}, typeof({expression})");
            let of = |c: &Connection| {
                c.query_row(&sql, [], |row| Ok((row.get::<_, rusqlite::types::Value>(0)?, row.get::<_, String>(1)?)))
                    .unwrap()
            };
            assert_eq!(of(&fenced), of(&plain), "{expression}");
        }
    }

    #[test]
    fn searching_a_long_text_for_a_long_text_ends() {
        let connection = fenced();
        let found: i64 = connection
            .query_row("SELECT instr(printf('%.*c', 4000000, 'a'), printf('%.*c', 2000000, 'a') || 'b')", [], |r| {
                r.get(0)
            })
            .unwrap();
        assert_eq!(found, 0);
        let trimmed: i64 = connection
            .query_row(
                "SELECT length(trim(printf('%.*c', 4000000, 'b'), printf('%.*c', 2000000, 'a') || 'b'))",
                [],
                |r| r.get(0),
            )
            .unwrap();
        assert_eq!(trimmed, 0);
        let replaced = connection.query_row(
            "SELECT replace(printf('%.*c', 4000000, 'a'), 'a', printf('%.*c', 1000, 'b'))",
            [],
            |r| r.get::<_, String>(0),
        );
        assert!(replaced.unwrap_err().to_string().contains("too big"));
    }
}
