//! Plugins' databases on real files.

#![allow(clippy::unwrap_used)]

use super::*;
use std::sync::atomic::AtomicUsize;
use std::sync::mpsc;
use tempfile::TempDir;

fn never() -> Stop {
    Arc::new(|| false)
}

/// Says stop at the `n`th time it is asked.
fn after(n: usize) -> Stop {
    let asked = AtomicUsize::new(0);
    Arc::new(move || asked.fetch_add(1, Ordering::Relaxed) + 1 >= n)
}

struct World {
    folder: TempDir,
    all: Databases,
}

impl World {
    fn new() -> Self {
        World { folder: TempDir::new().unwrap(), all: Databases::default() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join("db").join(format!("{name}.db"))
    }

    fn open(&self, name: &str) -> Db {
        self.all.open("notes", name, &self.path(name)).unwrap()
    }
}

fn text(text: &str) -> Cell {
    Cell::Text(text.to_owned())
}

fn run(db: &Db, sql: &str) -> Result<usize> {
    db.exec(sql, &[], &never())
}

fn count(db: &Db, table: &str) -> i64 {
    let found = db.query(&format!("SELECT count(*) FROM {table}"), &[], &never()).unwrap();
    match found.rows[0][0] {
        Cell::Int(n) => n,
        ref other => panic!("{other:?}"),
    }
}

#[test]
fn every_kind_of_value_goes_in_and_comes_out_the_same() {
    let db = World::new().open("values");
    run(&db, "CREATE TABLE t(a, b, c, d, e, f)").unwrap();
    let row = vec![
        Cell::Null,
        Cell::Int(i64::MIN),
        Cell::Real(0.1),
        text("grün 日本 \0 x"),
        Cell::Blob(vec![0, 255, 1]),
        Cell::Int(i64::MAX),
    ];
    assert_eq!(db.exec("INSERT INTO t VALUES (?, ?, ?, ?, ?, ?)", &row, &never()).unwrap(), 1);
    let found = db
        .query("SELECT f, e, d, c, b, a, a FROM t WHERE b = ?1 AND b < ?2", &[row[1].clone(), Cell::Int(0)], &never())
        .unwrap();
    assert_eq!(found.columns, ["f", "e", "d", "c", "b", "a", "a"]);
    let mut want: Vec<Cell> = row.iter().rev().cloned().collect();
    want.push(Cell::Null);
    assert_eq!(found.rows, [want]);
}

#[test]
fn exec_counts_the_rows_of_its_own_statement() {
    let db = World::new().open("counts");
    for (sql, want) in [
        ("CREATE TABLE t(a PRIMARY KEY)", 0),
        ("INSERT INTO t VALUES (1), (2), (3)", 3),
        ("CREATE INDEX i ON t(a)", 0),
        ("UPDATE t SET a = a + 10 WHERE a > 1", 2),
        ("SELECT * FROM t", 0),
        ("INSERT INTO t VALUES (9) RETURNING a", 1),
        ("DELETE FROM t WHERE a = 99", 0),
        ("DELETE FROM t", 4),
        ("DROP TABLE t;  -- and a comment", 0),
    ] {
        assert_eq!(run(&db, sql).unwrap(), want, "{sql}");
    }
}

#[test]
fn bad_sql_and_bad_parameters_say_what_is_wrong() {
    let db = World::new().open("bad");
    run(&db, "CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT NOT NULL)").unwrap();
    let many = "SELECT 1;".repeat(100_000);
    let long = format!("SELECT '{}'", "x".repeat(1 << 20));
    let deep = format!("SELECT {}1", "NOT ".repeat(5000));
    let table: &[(&str, &[Cell], &str)] = &[
        ("", &[], "invalid_arguments"),
        ("  -- nothing", &[], "invalid_arguments"),
        ("SELEC 1", &[], "invalid_arguments"),
        ("SELECT * FROM nowhere", &[], "invalid_arguments"),
        ("SELECT 1; SELECT 2", &[], "invalid_arguments"),
        ("SELECT 1; nonsense", &[], "invalid_arguments"),
        (&many, &[], "invalid_arguments"),
        (&long, &[], "too_large"),
        (&deep, &[], "invalid_arguments"),
        ("SELECT 1 \0 2", &[], "invalid_arguments"),
        ("SELECT ?", &[], "invalid_arguments"),
        ("SELECT 1", &[Cell::Int(1)], "invalid_arguments"),
        ("SELECT ?1, ?2", &[Cell::Int(1)], "invalid_arguments"),
        ("SELECT ?", &[Cell::Real(f64::NAN)], "invalid_arguments"),
        ("INSERT INTO t(b) VALUES (NULL)", &[], "conflict"),
        ("INSERT INTO t VALUES ('x', 'y')", &[], "invalid_arguments"),
        ("ATTACH '/tmp/x.db' AS x", &[], "permission_denied"),
        ("BEGIN", &[], "permission_denied"),
        ("PRAGMA journal_mode = off", &[], "permission_denied"),
        ("VACUUM INTO '/tmp/x.db'", &[], "permission_denied"),
    ];
    for (sql, params, code) in table {
        let shown: String = sql.chars().take(40).collect();
        assert_eq!(db.exec(sql, params, &never()).map_err(|e| e.code()), Err(*code), "{shown}");
        let error = db.query(sql, params, &never()).unwrap_err();
        assert_eq!(error.code(), *code, "{shown}: {error}");
        assert!(!error.to_string().contains(".db`") && error.to_string().len() < 400, "{error}");
    }
}

#[test]
fn names_are_short_and_plain_and_one_plugin_has_a_bounded_number_of_files() {
    let world = World::new();
    for name in ["", "a b", "A", "../x", "a/b", "a.b", "ä", &"x".repeat(33)] {
        let opened = world.all.open("notes", name, &world.path("x"));
        assert_eq!(opened.err().map(|e| e.code()), Some("invalid_arguments"), "{name:?}");
    }
    for n in 0..MAX_FILES {
        world.open(&format!("n{n}"));
    }
    assert!(world.all.open("notes", "n0", &world.path("n0")).is_ok());
    let one_more = world.all.open("notes", "more", &world.path("more"));
    assert_eq!(one_more.err().map(|e| e.code()), Some("quota"));
    assert!(world.all.open("other", "more", &world.path("more")).is_ok());
}

#[test]
fn the_same_name_is_the_same_connection_until_the_plugin_is_closed() {
    let world = World::new();
    let first = world.open("same");
    assert!(Arc::ptr_eq(&first.0, &world.open("same").0));
    world.all.close("notes");
    assert!(!Arc::ptr_eq(&first.0, &world.open("same").0));
    let moved = world.all.open("notes", "same", &world.path("elsewhere")).unwrap();
    run(&moved, "CREATE TABLE only_here(a)").unwrap();
    assert!(run(&first, "SELECT * FROM only_here").is_err());
}

#[test]
fn what_was_written_is_there_after_opening_again() {
    let world = World::new();
    run(&world.open("kept"), "CREATE TABLE t AS SELECT 7 AS a").unwrap();
    world.all.close("notes");
    assert_eq!(count(&world.open("kept"), "t"), 1);
}

#[test]
fn a_file_that_is_no_database_is_refused_and_left_as_it_is() {
    let world = World::new();
    let path = world.path("broken");
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, "this is not a database, it is a letter").unwrap();
    let error = world.all.open("notes", "broken", &path).err().unwrap();
    assert_eq!(error.code(), "internal");
    assert!(!error.to_string().contains(path.to_str().unwrap()), "{error}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "this is not a database, it is a letter");
}

#[cfg(unix)]
#[test]
fn a_link_in_the_files_place_is_not_followed() {
    let world = World::new();
    let outside = world.folder.path().join("outside.db");
    Connection::open(&outside).unwrap().execute_batch("CREATE TABLE secret(a)").unwrap();
    let path = world.path("link");
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::os::unix::fs::symlink(&outside, &path).unwrap();
    assert!(world.all.open("notes", "link", &path).is_err());
}

#[test]
fn a_transaction_holds_or_leaves_nothing() {
    let db = World::new().open("tx");
    run(&db, "CREATE TABLE t(a PRIMARY KEY)").unwrap();
    let sum = db
        .transaction(&never(), |tx| {
            tx.exec("INSERT INTO t VALUES (1), (2)", &[])?;
            Ok(tx.query("SELECT sum(a) FROM t", &[])?.rows[0][0].clone())
        })
        .unwrap();
    assert_eq!(sum, Cell::Int(3));

    let failed: Result<()> = db.transaction(&never(), |tx| {
        tx.exec("INSERT INTO t VALUES (3)", &[])?;
        Err(Error::invalid("changed my mind"))
    });
    assert_eq!(failed.unwrap_err().message(), "changed my mind");
    assert_eq!(count(&db, "t"), 2);

    let broken: Result<usize> = db.transaction(&never(), |tx| {
        tx.exec("INSERT INTO t VALUES (4)", &[])?;
        tx.exec("INSERT INTO t VALUES (1)", &[])
    });
    assert_eq!(broken.unwrap_err().code(), "conflict");
    assert_eq!(count(&db, "t"), 2);

    // A failure that the work gets over does not undo the rest.
    db.transaction(&never(), |tx| {
        tx.exec("INSERT INTO t VALUES (5)", &[])?;
        assert!(tx.exec("INSERT INTO t VALUES (5)", &[]).is_err());
        Ok(())
    })
    .unwrap();
    assert_eq!(count(&db, "t"), 3);
}

#[test]
fn a_panic_inside_a_transaction_undoes_it_and_frees_the_database() {
    let db = World::new().open("panic");
    run(&db, "CREATE TABLE t(a)").unwrap();
    let other = db.clone();
    let ended = thread::spawn(move || {
        let _: Result<()> = other.transaction(&never(), |tx| {
            tx.exec("INSERT INTO t VALUES (1)", &[])?;
            panic!("on purpose");
        });
    })
    .join();
    assert!(ended.is_err());
    assert_eq!(count(&db, "t"), 0);
    run(&db, "INSERT INTO t VALUES (2)").unwrap();
}

#[test]
fn inside_its_own_transaction_a_call_uses_the_transaction() {
    let db = World::new().open("own");
    run(&db, "CREATE TABLE t(a)").unwrap();
    db.transaction(&never(), |_| {
        assert_eq!(db.query("SELECT 1", &[], &never()).unwrap_err().code(), "invalid_arguments");
        let nested: Result<()> = db.transaction(&never(), |_| Ok(()));
        assert_eq!(nested.unwrap_err().code(), "invalid_arguments");
        Ok(())
    })
    .unwrap();
}

#[test]
fn a_transaction_kept_beyond_its_end_does_nothing() {
    let db = World::new().open("late");
    run(&db, "CREATE TABLE t(a)").unwrap();
    let kept = db.transaction(&never(), |tx| Ok(tx.clone())).unwrap();
    assert_eq!(kept.exec("INSERT INTO t VALUES (1)", &[]).unwrap_err().code(), "invalid_arguments");
    db.transaction(&never(), |_| {
        assert_eq!(kept.exec("INSERT INTO t VALUES (1)", &[]).unwrap_err().code(), "invalid_arguments");
        Ok(())
    })
    .unwrap();
    assert_eq!(count(&db, "t"), 0);
}

#[test]
fn a_foreign_key_that_breaks_at_the_end_undoes_the_transaction() {
    let db = World::new().open("keys");
    run(&db, "CREATE TABLE p(a PRIMARY KEY)").unwrap();
    run(&db, "CREATE TABLE c(a REFERENCES p DEFERRABLE INITIALLY DEFERRED)").unwrap();
    let broken = db.transaction(&never(), |tx| tx.exec("INSERT INTO c VALUES (1)", &[]));
    assert_eq!(broken.unwrap_err().code(), "conflict");
    assert_eq!(count(&db, "c"), 0);
    run(&db, "INSERT INTO p VALUES (1)").unwrap();
}

#[test]
fn an_endless_query_ends_when_the_caller_says_stop() {
    const ENDLESS: &str = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c";
    let db = World::new().open("endless");
    run(&db, "CREATE TABLE t(a)").unwrap();
    assert_eq!(db.query(ENDLESS, &[], &after(50)).unwrap_err().code(), "timeout");
    assert_eq!(
        db.exec(
            "INSERT INTO t WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x FROM c",
            &[],
            &after(50)
        )
        .unwrap_err()
        .code(),
        "timeout"
    );
    let ended = db.transaction(&after(50), |tx| {
        tx.exec("INSERT INTO t VALUES (1)", &[])?;
        tx.query(ENDLESS, &[])
    });
    assert_eq!(ended.unwrap_err().code(), "timeout");
    assert_eq!(count(&db, "t"), 0);
    assert_eq!(db.query("SELECT 1", &[], &after(1)).unwrap_err().code(), "timeout");
}

#[test]
fn after_a_stopped_write_the_transaction_takes_no_more() {
    let db = World::new().open("undone");
    run(&db, "CREATE TABLE t(a)").unwrap();
    let stop_once = {
        let asked = AtomicUsize::new(0);
        let stop: Stop = Arc::new(move || asked.fetch_add(1, Ordering::Relaxed) == 20);
        stop
    };
    let ended = db.transaction(&stop_once, |tx| {
        tx.exec("INSERT INTO t VALUES (1)", &[])?;
        let endless = "INSERT INTO t WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x FROM c";
        assert_eq!(tx.exec(endless, &[]).unwrap_err().code(), "timeout");
        // SQLite has undone everything by now; going on would write outside a transaction.
        assert_eq!(tx.exec("INSERT INTO t VALUES (2)", &[]).unwrap_err().code(), "conflict");
        Ok(())
    });
    assert_eq!(ended.unwrap_err().code(), "conflict");
    assert_eq!(count(&db, "t"), 0);
}

#[test]
fn another_call_waits_for_a_transaction_or_until_it_is_stopped() {
    let db = World::new().open("wait");
    run(&db, "CREATE TABLE t(a)").unwrap();
    let (inside, entered) = mpsc::channel();
    let (release, released) = mpsc::channel::<()>();
    let writer = {
        let db = db.clone();
        thread::spawn(move || {
            db.transaction(&never(), |tx| {
                tx.exec("INSERT INTO t VALUES (1)", &[])?;
                inside.send(()).unwrap();
                released.recv().unwrap();
                Ok(())
            })
        })
    };
    entered.recv().unwrap();
    assert_eq!(db.query("SELECT 1", &[], &after(3)).unwrap_err().code(), "timeout");
    let reader = {
        let db = db.clone();
        thread::spawn(move || count(&db, "t"))
    };
    release.send(()).unwrap();
    writer.join().unwrap().unwrap();
    assert_eq!(reader.join().unwrap(), 1);
}

#[test]
fn many_threads_lose_no_update() {
    let db = World::new().open("threads");
    run(&db, "CREATE TABLE t AS SELECT 0 AS n").unwrap();
    let threads: Vec<_> = (0..8)
        .map(|_| {
            let db = db.clone();
            thread::spawn(move || {
                for _ in 0..25 {
                    db.transaction(&never(), |tx| {
                        let Cell::Int(n) = tx.query("SELECT n FROM t", &[])?.rows[0][0] else { panic!("no number") };
                        tx.exec("UPDATE t SET n = ?", &[Cell::Int(n + 1)])
                    })
                    .unwrap();
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|t| t.join().unwrap());
    assert_eq!(db.query("SELECT n FROM t", &[], &never()).unwrap().rows, [[Cell::Int(200)]]);
}

#[test]
fn a_file_locked_by_another_process_is_a_conflict_once_the_caller_waits_no_more() {
    let world = World::new();
    let db = world.open("locked");
    run(&db, "CREATE TABLE t(a)").unwrap();
    let other = Connection::open(world.path("locked")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let error = db.exec("INSERT INTO t VALUES (1)", &[], &after(5)).unwrap_err();
    assert_eq!((error.code(), error.retryable()), ("conflict", true));
    let error = db.transaction(&after(5), |_| Ok(())).unwrap_err();
    assert_eq!(error.code(), "conflict");
    other.execute_batch("ROLLBACK").unwrap();
    run(&db, "INSERT INTO t VALUES (1)").unwrap();
}

#[test]
fn results_values_files_and_memory_have_their_limits() {
    let db = World::new().open("limits");
    let numbers = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < ?)";
    let rows = |n: i64| db.query(&format!("{numbers} SELECT x FROM c"), &[Cell::Int(n)], &never());
    assert_eq!(rows(MAX_ROWS as i64).unwrap().rows.len(), MAX_ROWS);
    assert_eq!(rows(MAX_ROWS as i64 + 1).unwrap_err().code(), "too_large");
    for sql in [
        // 70 blobs of 1 MiB
        "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 70) SELECT zeroblob(1048576) FROM c",
        "SELECT zeroblob(100000000)",
        "SELECT length(group_concat(printf('%.*c', 1000000, 'x'))) FROM (WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 100) SELECT x FROM c)",
        // A sort that would need 400 MiB.
        "SELECT length(b) FROM (WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 400) SELECT randomblob(1048576) AS b FROM c) ORDER BY b LIMIT 1000",
    ] {
        assert_eq!(db.query(sql, &[], &never()).unwrap_err().code(), "too_large", "{sql}");
    }
    assert_eq!(db.query("SELECT ?", &[Cell::Blob(vec![0; 70 << 20])], &never()).unwrap_err().code(), "too_large");
    run(&db, "CREATE TABLE t(a)").unwrap();
    let full = db.exec("INSERT INTO t WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 300) SELECT zeroblob(1048576) FROM c", &[], &never());
    assert_eq!(full.unwrap_err().code(), "quota");
    assert_eq!(count(&db, "t"), 0);
}
