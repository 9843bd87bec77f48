//! Chats and what goes with them.

use super::*;
use crate::store::chat_data::Owner;
use crate::store::chat_files::NewFile;
use crate::store::images::{Keep, NewImage};
use crate::store::inbox::{Lane, NewItem};
use crate::store::journal::{CallLine, CallRow, Room};
use crate::store::messages::{NewMessage, Role};

#[test]
fn a_number_stays_with_its_chat_and_is_never_given_again() {
    let dir = tempfile::tempdir().unwrap();
    let db = MainDb::new(dir.path().join("user/lapidary.db"));
    let a = db.create_chat("a", false, 1).unwrap();
    assert_eq!(db.create_chat("a", false, 1).unwrap_err().kind(), Kind::Conflict);
    assert_eq!(db.ensure_chat("a", true, 2).unwrap(), a);
    db.rename_chat("a", "b", 3).unwrap();
    assert_eq!(db.chat("b").unwrap().unwrap().id, a.id);
    assert_eq!(db.chat_by_id(a.id).unwrap().unwrap().name, "b");
    db.delete_chat("b").unwrap();
    assert_eq!(db.chat_by_id(a.id).unwrap(), None);
    assert!(db.create_chat("a", false, 4).unwrap().id > a.id);
}

#[test]
fn what_is_written_to_a_chat_that_was_deleted_hits_no_other() {
    let dir = tempfile::tempdir().unwrap();
    let db = MainDb::new(dir.path().join("user/lapidary.db"));
    let old = db.create_chat("a", false, 1).unwrap().id;
    db.delete_chat("a").unwrap();
    let new = db.create_chat("a", false, 2).unwrap().id;
    let message = NewMessage { role: Role::User, at: 3, turn: "t", body: "{}" };
    for failed in [
        db.append_messages(old, &[message]).map(drop),
        db.append_messages(old, &[]).map(drop),
        db.set_chat_settings(old, "{}", 3),
        db.set_chat_private(old, true, 3),
        db.clear_chat(old, 3).map(drop),
    ] {
        assert_eq!(failed.unwrap_err().kind(), Kind::NotFound);
    }
    assert_eq!(db.count_messages(new).unwrap(), 0);
}

/// Everything that can belong to a chat, in `name`; gives the chat's number.
fn full(db: &MainDb, name: &str, mark: &str) -> i64 {
    let chat = db.ensure_chat(name, false, 1).unwrap().id;
    let body = format!("\"{mark}\"");
    db.append_messages(chat, &[NewMessage { role: Role::User, at: 2, turn: "t", body: &body }]).unwrap();
    for id in ["named", "unnamed"] {
        let (image, file) = (format!("{mark}-{id}.png"), format!("{mark}-{id}"));
        let image = NewImage {
            chat: name,
            private: false,
            id: &image,
            data: mark.as_bytes(),
            media_type: "image/png",
            visible: true,
            caption: None,
            now: 2,
        };
        db.put_image(&image, Keep::All).unwrap();
        let (name, media_type) = ("f", "a/b");
        db.put_file(&NewFile { id: &file, chat, name, media_type, data: mark.as_bytes(), now: 2 }).unwrap();
    }
    let payload = format!(r#"{{"images":["img:{mark}-named.png"],"files":["{mark}-named"]}}"#);
    db.put_item(&NewItem {
        ticket: mark,
        chat,
        lane: Lane::Now,
        source: "s",
        plugin: None,
        header: "",
        payload: &payload,
        put_at: 2,
        expires_at: None,
        private_at_put: None,
        on_drop: None,
        durable: true,
    })
    .unwrap();
    for plugin in ["dice", "mail"] {
        db.append_value(Owner { plugin, chat: name }, "log", &body, 2).unwrap();
    }
    let call = CallRow {
        line: CallLine { id: mark.into(), chat: Some(name.into()), at: 2, ..CallLine::default() },
        ..CallRow::default()
    };
    db.add_calls(&[call], 0, &Room { bytes: 1 << 20, since: 0 }).unwrap();
    chat
}

/// How many messages, pictures, files, items, values and calls a chat has.
fn held(db: &MainDb, id: i64, name: &str, mark: &str) -> [usize; 6] {
    let images = ["named", "unnamed"].iter().filter(|n| db.image(name, &format!("{mark}-{n}.png")).unwrap().is_some());
    let values = ["dice", "mail"]
        .iter()
        .map(|plugin| db.values(Owner { plugin, chat: name }, "log", &|_| Ok(())).unwrap().len());
    let calls = db.call(mark).unwrap().filter(|call| call.line.chat.as_deref() == Some(name));
    [
        db.messages(id, None, 9).unwrap().len(),
        images.count(),
        db.files(id).unwrap().len(),
        db.items(id).unwrap().len(),
        values.sum(),
        usize::from(calls.is_some()),
    ]
}

fn rows(dir: &tempfile::TempDir) -> Vec<(String, i64)> {
    let raw = Connection::open(dir.path().join("user/lapidary.db")).unwrap();
    let said: String = raw.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(said, "ok");
    assert!(!raw.prepare("PRAGMA foreign_key_check").unwrap().exists([]).unwrap());
    ["chats", "messages", "tool_images", "files", "inbox", "plugin_chat_data", "journal"]
        .map(|table| {
            let count = raw.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).unwrap();
            (table.to_owned(), count)
        })
        .to_vec()
}

#[test]
fn row_44_everything_follows_a_chat_that_is_renamed() {
    let dir = tempfile::tempdir().unwrap();
    let db = MainDb::new(dir.path().join("user/lapidary.db"));
    let (one, two) = (full(&db, "one", "a"), full(&db, "two", "b"));
    let before = rows(&dir);
    assert_eq!(held(&db, one, "one", "a"), [1, 2, 2, 1, 2, 1]);
    db.rename_chat("one", "three", 3).unwrap();
    assert_eq!(held(&db, one, "three", "a"), [1, 2, 2, 1, 2, 1]);
    assert_eq!(held(&db, two, "two", "b"), [1, 2, 2, 1, 2, 1]);
    // Names that change places.
    db.rename_chat("two", "one", 4).unwrap();
    db.rename_chat("three", "two", 5).unwrap();
    assert_eq!(held(&db, one, "two", "a"), [1, 2, 2, 1, 2, 1]);
    assert_eq!(held(&db, two, "one", "b"), [1, 2, 2, 1, 2, 1]);
    assert_eq!(rows(&dir), before);
}

#[test]
fn row_44_everything_goes_with_a_chat_that_is_deleted() {
    let dir = tempfile::tempdir().unwrap();
    let db = MainDb::new(dir.path().join("user/lapidary.db"));
    let (one, two) = (full(&db, "one", "a"), full(&db, "two", "b"));
    assert!(db.delete_chat("one").unwrap());
    assert_eq!(held(&db, one, "one", "a"), [0; 6]);
    assert_eq!(held(&db, two, "two", "b"), [1, 2, 2, 1, 2, 1]);
    assert!(db.delete_chat("two").unwrap());
    assert!(rows(&dir).iter().all(|(_, count)| *count == 0), "{:?}", rows(&dir));
}

#[test]
fn row_44_a_chat_that_is_cleared_keeps_what_plugins_keep_and_what_waits() {
    let dir = tempfile::tempdir().unwrap();
    let db = MainDb::new(dir.path().join("user/lapidary.db"));
    let (one, two) = (full(&db, "one", "a"), full(&db, "two", "b"));
    db.set_chat_settings(one, r#"{"model":"x"}"#, 3).unwrap();
    assert_eq!(db.clear_chat(one, 9).unwrap(), 1);
    assert_eq!(held(&db, one, "one", "a"), [0, 1, 1, 1, 2, 1]);
    assert!(db.image("one", "a-named.png").unwrap().is_some(), "what waits names it");
    assert!(db.file(one, "a-named").unwrap().is_some());
    assert_eq!(db.chat("one").unwrap().unwrap().settings, r#"{"model":"x"}"#);
    assert_eq!(held(&db, two, "two", "b"), [1, 2, 2, 1, 2, 1]);
    db.remove_item("a").unwrap();
    assert_eq!(db.clear_chat(one, 9).unwrap(), 0);
    assert_eq!(held(&db, one, "one", "a"), [0, 0, 0, 0, 2, 1]);
}

#[test]
fn chats_are_listed_by_their_last_change_with_what_they_hold() {
    let dir = tempfile::tempdir().unwrap();
    let db = MainDb::new(dir.path().join("user/lapidary.db"));
    assert_eq!(db.chats().unwrap(), []);
    assert!(!dir.path().join("user").exists(), "nothing is made to look");
    let one = full(&db, "one", "a");
    db.ensure_chat("two", true, 5).unwrap();
    db.ensure_chat("three", false, 5).unwrap();
    let list = |db: &MainDb| -> Vec<(String, u64, u64)> {
        db.chats().unwrap().into_iter().map(|s| (s.chat.name, s.messages, s.queued)).collect()
    };
    assert_eq!(list(&db), [("three".into(), 0, 0), ("two".into(), 0, 0), ("one".into(), 1, 1)]);
    db.append_messages(one, &[NewMessage { role: Role::Tool, at: 7, turn: "t", body: "1" }]).unwrap();
    db.start_items(&["a"], &[]).unwrap();
    assert_eq!(list(&db), [("one".into(), 2, 0), ("three".into(), 0, 0), ("two".into(), 0, 0)]);
    // A clock that was set back moves nothing back.
    db.set_chat_settings(one, "{}", 1).unwrap();
    assert_eq!(db.chat("one").unwrap().unwrap().updated_at, 7);
}
