//! A database of every earlier version comes up to this one with everything that was in it.

use super::*;
use crate::base::error::Kind;
use crate::store::images::{Keep, NewImage};
use crate::store::journal::{CallLine, CallRow, Room, Wanted};
use crate::store::main::MainDb;
use crate::store::messages::{NewMessage, Role};
use std::path::PathBuf;

/// What a database of some version may hold: the version that brought it, and rows.
const ROWS: &[(u32, &str)] = &[
    (
        1,
        "INSERT INTO chats (name, created_at, updated_at, private, settings) VALUES
            ('first', 1, 10, 0, '{\"toolset\":\"all\"}'), ('ž''s', 2, 20, 1, '{}'), ('gone', 3, 30, 0, '{}'), ('last', 4, 40, 0, '{}');
         DELETE FROM chats WHERE name = 'gone';
         INSERT INTO tool_images (id, chat_name, created_at, caption, size, data) VALUES
            ('a.png', 'first', 5, 'a cat', 3, x'010203'), ('b.png', 'ž''s', 6, NULL, 1, x'04'), ('c.png', 'first', 7, NULL, 0, x'');",
    ),
    (
        2,
        "INSERT INTO journal (id, at, tool, plugin, generation, door, caller, chat, ok, duration_us, operations, memory, bytes,
            summary, arguments, text) VALUES
            ('1', 1, 't', 'p', 1, 'cli', 'owner', 'first', 1, 1, 1, 1, 100, '', '{}', 'one'),
            ('2', 2, 't', 'p', 1, 'cli', 'owner', 'last', 1, 1, 1, 1, 100, '', '{}', 'two'),
            ('3', 3, 't', 'p', 1, 'cli', 'owner', NULL, 1, 1, 1, 1, 100, '', '{}', 'three');
         UPDATE journal_totals SET bytes = 300;",
    ),
    (
        4,
        "INSERT INTO messages (id, chat, role, at, turn, body) SELECT 7, id, 'user', 5, 't', '\"hello\"' FROM chats WHERE name = 'first'",
    ),
    (
        5,
        "INSERT INTO inbox (ticket, chat, seq, lane, source, put_at, header, payload)
            SELECT 'x', id, 1, 'now', 's', 5, '', '{}' FROM chats WHERE name = 'first'",
    ),
    (
        6,
        "INSERT INTO plugin_chat_data (chat, plugin, key, seq, updated_at, size, value)
            SELECT id, 'dice', 'k', 0, 5, 2, '1' FROM chats WHERE name = 'first'",
    ),
    (
        7,
        "INSERT INTO files (id, chat, media_type, created_at, size, name, data)
            SELECT 'f', id, 'text/plain', 5, 1, 'f.txt', x'01' FROM chats WHERE name = 'first';
         INSERT INTO library (scope, chat, media_type, created_at, size, title, data)
            SELECT 's', id, 'image/png', 5, 1, 'a cat', x'01' FROM chats WHERE name = 'first'",
    ),
];

/// A database of a version, with everything in it that this version can hold.
fn of_version(version: u32) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("user/lapidary.db");
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let mut raw = Connection::open(&path).unwrap();
    raw.pragma_update(None, "journal_mode", "WAL").unwrap();
    for step in 1..=version {
        migrate_to(&mut raw, step).unwrap().unwrap();
        for (_, sql) in ROWS.iter().filter(|(since, _)| *since == step) {
            raw.execute_batch(sql).unwrap();
        }
    }
    assert_eq!(version_of(&raw), version);
    (dir, path)
}

fn version_of(raw: &Connection) -> u32 {
    raw.query_row("PRAGMA user_version", [], |row| row.get(0)).unwrap()
}

/// What the database says of itself.
fn is_whole(path: &std::path::Path) {
    let raw = Connection::open(path).unwrap();
    let said: String = raw.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(said, "ok");
    assert!(!raw.prepare("PRAGMA foreign_key_check").unwrap().exists([]).unwrap());
}

/// Tables, indexes and triggers, as they were written.
fn shape(path: &std::path::Path) -> Vec<(String, String)> {
    let raw = Connection::open(path).unwrap();
    let mut all = raw.prepare("SELECT name, ifnull(sql, '') FROM sqlite_schema ORDER BY name").unwrap();
    all.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap().map(Result::unwrap).collect()
}

fn calls(db: &MainDb) -> Vec<String> {
    let mut ids: Vec<String> =
        db.calls(&Wanted { limit: 9, ..Wanted::default() }).unwrap().into_iter().map(|call| call.id).collect();
    ids.sort();
    ids
}

#[test]
fn every_earlier_version_comes_up_with_everything_that_was_in_it() {
    let (_new, fresh) = of_version(0);
    MainDb::new(fresh.clone()).ensure_chat("x", false, 1).unwrap();
    for version in 0..=VERSION {
        let (_dir, path) = of_version(version);
        let db = MainDb::new(path.clone());
        // Reading is enough.
        let names: Vec<String> = db.chats().unwrap().into_iter().map(|summary| summary.chat.name).collect();
        if version == 0 {
            assert_eq!(names, [""; 0]);
            continue;
        }
        assert_eq!(names, ["last", "ž's", "first"], "{version}");
        let first = db.chat("first").unwrap().unwrap();
        assert_eq!((first.created_at, first.updated_at, first.private, first.vaulted), (1, 10, false, false));
        assert_eq!(first.settings, "{\"toolset\":\"all\"}");
        assert!(db.chat("ž's").unwrap().unwrap().private);
        assert_eq!(db.image_data("first", "a.png").unwrap().unwrap(), [1, 2, 3]);
        assert_eq!(db.image("first", "a.png").unwrap().unwrap().caption.as_deref(), Some("a cat"));
        assert_eq!(db.image_data("ž's", "b.png").unwrap().unwrap(), [4]);
        assert_eq!(calls(&db), if version < 2 { vec![] } else { vec!["1", "2", "3"] });
        assert_eq!(db.count_messages(first.id).unwrap(), u64::from(version >= 4));
        assert_eq!(db.items(first.id).unwrap().len(), usize::from(version >= 5));
        let owner = crate::store::chat_data::Owner { plugin: "dice", chat: "first" };
        assert_eq!(db.value(owner, "k", &|_| Ok(())).unwrap().is_some(), version >= 6);
        assert_eq!(db.file(first.id, "f").unwrap().is_some(), version >= 7);
        assert_eq!(db.entry("s", 1).unwrap().is_some(), version >= 7);
        // And everything works that a new one can.
        let said = NewMessage { role: Role::User, at: 50, turn: "t", body: "1" };
        assert!(db.append_messages(first.id, &[said]).unwrap()[0] > if version >= 4 { 7 } else { 0 });
        is_whole(&path);
        assert_eq!(shape(&path), shape(&fresh), "{version}");
    }
}

#[test]
fn what_follows_a_chat_follows_it_after_every_migration() {
    for version in 1..=VERSION {
        let (_dir, path) = of_version(version);
        let db = MainDb::new(path.clone());
        let room = Room { bytes: 1 << 20, since: 0 };
        let call = |id: &str, chat: &str| CallRow {
            line: CallLine { id: id.into(), chat: Some(chat.into()), at: 9, ..CallLine::default() },
            ..CallRow::default()
        };
        db.add_calls(&[call("8", "first"), call("9", "last")], 0, &room).unwrap();
        db.rename_chat("first", "second", 50).unwrap();
        assert_eq!(db.image_data("second", "a.png").unwrap().unwrap(), [1, 2, 3], "{version}");
        assert_eq!(db.call("8").unwrap().unwrap().line.chat.as_deref(), Some("second"));
        let id = db.chat("second").unwrap().unwrap().id;
        assert!(db.delete_chat("second").unwrap());
        assert_eq!(db.image("second", "a.png").unwrap(), None);
        assert_eq!((db.count_messages(id).unwrap(), db.items(id).unwrap().len()), (0, 0));
        assert_eq!(calls(&db), if version < 2 { vec!["9"] } else { vec!["2", "3", "9"] });
        let last = db.chat("last").unwrap().unwrap().id;
        db.set_chat_private(last, true, 60).unwrap();
        assert_eq!(calls(&db), if version < 2 { vec![] } else { vec!["3"] });
        // A new one gets no number that an old one had.
        assert!(db.create_chat("first", false, 70).unwrap().id > last.max(id));
        db.put_image(
            &NewImage {
                chat: "first",
                private: false,
                id: "a.png",
                data: b"1",
                media_type: "image/png",
                visible: true,
                caption: None,
                now: 1,
            },
            Keep::All,
        )
        .unwrap();
        is_whole(&path);
    }
}

#[test]
fn a_migration_that_would_lose_its_way_leaves_everything_as_it_was() {
    let (_dir, path) = of_version(2);
    {
        let raw = Connection::open(&path).unwrap();
        raw.pragma_update(None, "foreign_keys", false).unwrap();
        raw.execute(
            "INSERT INTO tool_images (id, chat_name, created_at, size, data) VALUES ('z', 'nobody', 1, 0, x'')",
            [],
        )
        .unwrap();
    }
    let db = MainDb::new(path.clone());
    assert!(db.chats().is_err() && db.ensure_chat("x", false, 1).is_err());
    let raw = Connection::open(&path).unwrap();
    assert_eq!(version_of(&raw), 2);
    assert_eq!(raw.query_row("SELECT count(*) FROM chats", [], |row| row.get::<_, i64>(0)).unwrap(), 3);
    // What stood in the way is taken away, and it goes on.
    raw.execute("DELETE FROM tool_images WHERE id = 'z'", []).unwrap();
    drop(raw);
    assert_eq!(db.chats().unwrap().len(), 3);
}

#[test]
fn a_database_of_a_newer_program_is_left_alone() {
    let (_dir, path) = of_version(VERSION);
    Connection::open(&path).unwrap().pragma_update(None, "user_version", VERSION + 1).unwrap();
    let db = MainDb::new(path.clone());
    let failed = db.ensure_chat("x", false, 1).unwrap_err();
    assert_eq!(failed.kind(), Kind::Conflict);
    assert!(failed.to_string().contains("newer"), "{failed}");
    assert_eq!(db.chats().unwrap_err().kind(), Kind::Conflict);
    assert_eq!(version_of(&Connection::open(&path).unwrap()), VERSION + 1);
}

#[test]
fn two_programs_that_open_an_old_database_at_once_migrate_it_once() {
    let (_dir, path) = of_version(1);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let db = MainDb::new(path.clone());
                assert!(db.chats().unwrap().len() >= 3);
                db.ensure_chat("new", false, 99).unwrap();
            });
        }
    });
    assert_eq!(MainDb::new(path.clone()).chats().unwrap().len(), 4);
    is_whole(&path);
}
