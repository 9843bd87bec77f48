//! A disk that is full, a database that another holds or that cannot be written: what is said, and that nothing is lost.

use super::*;
use crate::store::chat_data::Owner;
use crate::store::chat_files::NewFile;
use crate::store::images::{Keep, NewImage};
use crate::store::inbox::{ItemState, Lane, NewItem};
use crate::store::messages::{NewMessage, Role};

const DICE: Owner = Owner { plugin: "dice", chat: "a" };

struct Place {
    dir: tempfile::TempDir,
    db: MainDb,
    chat: i64,
}

fn place() -> Place {
    let dir = tempfile::tempdir().unwrap();
    let db = MainDb::new(dir.path().join("user/lapidary.db"));
    let chat = db.ensure_chat("a", false, 1).unwrap().id;
    db.append_messages(chat, &[said("\"first\"")]).unwrap();
    db.put_item(&item(chat, "kept")).unwrap();
    db.append_value(DICE, "log", "1", 1).unwrap();
    Place { dir, db, chat }
}

impl Place {
    fn path(&self) -> PathBuf {
        self.dir.path().join("user/lapidary.db")
    }

    fn set(&self, sql: &str) {
        // Some pragmas answer with a row.
        self.db
            .write_one(|c| {
                let mut statement = c.prepare(sql).map_err(|e| explain(&e))?;
                let mut rows = statement.query([]).map_err(|e| explain(&e))?;
                while rows.next().map_err(|e| explain(&e))?.is_some() {}
                Ok(())
            })
            .unwrap();
    }

    fn there(&self) -> There {
        let db = &self.db;
        There {
            messages: db.messages(self.chat, None, usize::MAX).unwrap().into_iter().map(|m| m.body).collect(),
            items: db.items(self.chat).unwrap().into_iter().map(|item| (item.ticket, item.state)).collect(),
            log: db.values(DICE, "log", &|_| Ok(())).unwrap(),
            one: db.value(DICE, "k", &|_| Ok(())).unwrap(),
            files: usize::from(db.image("a", "a.png").unwrap().is_some()) + db.files(self.chat).unwrap().len(),
        }
    }

    fn is_whole(&self) {
        let raw = Connection::open(self.path()).unwrap();
        let said: String = raw.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
        assert_eq!(said, "ok");
        assert!(!raw.prepare("PRAGMA foreign_key_check").unwrap().exists([]).unwrap());
    }
}

fn said(body: &str) -> NewMessage<'_> {
    NewMessage { role: Role::User, at: 2, turn: "t", body }
}

fn item(chat: i64, ticket: &str) -> NewItem<'_> {
    NewItem {
        ticket,
        chat,
        lane: Lane::Now,
        source: "s",
        plugin: None,
        header: "",
        payload: "{}",
        put_at: 2,
        expires_at: None,
        private_at_put: None,
        on_drop: None,
        durable: true,
    }
}

/// What a place has.
#[derive(Debug, PartialEq)]
struct There {
    messages: Vec<String>,
    items: Vec<(String, ItemState)>,
    log: Vec<String>,
    one: Option<String>,
    files: usize,
}

type Write<'a> = Box<dyn Fn() -> Result<()> + 'a>;

/// Every kind of write, with `text` in it where it holds one.
fn writes<'a>(db: &'a MainDb, chat: i64, text: &'a str) -> Vec<(&'static str, Write<'a>)> {
    let image = NewImage {
        chat: "a",
        private: false,
        id: "a.png",
        data: text.as_bytes(),
        media_type: "image/png",
        visible: true,
        caption: None,
        now: 1,
    };
    let file = NewFile { id: "f", chat, name: "f", media_type: "a/b", data: text.as_bytes(), now: 1 };
    vec![
        ("append_messages", Box::new(move || db.append_messages(chat, &[said("1"), said(text)]).map(drop))),
        ("replace_message", Box::new(move || db.replace_message(chat, 1, text))),
        ("put_item", Box::new(move || db.put_item(&NewItem { payload: text, ..item(chat, "new") }).map(drop))),
        ("start_items", Box::new(move || db.start_items(&["kept"], &[said("1"), said(text)]).map(drop))),
        ("finish_items_with", Box::new(move || db.finish_items_with(&["kept"], chat, &[said(text)]).map(drop))),
        ("put_value", Box::new(move || db.put_value(DICE, "k", text, 1))),
        ("append_value", Box::new(move || db.append_value(DICE, "log", text, 1).map(drop))),
        ("append_values", Box::new(move || db.append_values(DICE, "log", &["2".into(), text.into()], 1).map(drop))),
        ("replace_values", Box::new(move || db.replace_values(DICE, "log", &[text.into()], 1).map(drop))),
        ("put_image", Box::new(move || db.put_image(&image, Keep::All))),
        ("put_file", Box::new(move || db.put_file(&file))),
        ("set_chat_settings", Box::new(move || db.set_chat_settings(chat, text, 9))),
    ]
}

#[test]
fn on_a_full_disk_a_write_says_so_and_is_not_there_at_all() {
    let p = place();
    let before = p.there();
    let big = "x".repeat(100_000);
    p.set("PRAGMA max_page_count = 1");
    for (name, write) in writes(&p.db, p.chat, &big) {
        let failed = write().unwrap_err();
        assert_eq!(failed.kind(), Kind::Quota, "{name}: {failed}");
        assert!(failed.to_string().contains("disk is full"), "{name}: {failed}");
        assert_eq!(p.there(), before, "{name}");
    }
    assert_eq!(p.db.chat("a").unwrap().unwrap().settings, "{}");
    p.is_whole();
    p.set("PRAGMA max_page_count = 1000000");
    for (name, write) in writes(&p.db, p.chat, &big) {
        // The item that was started is gone once it was finished.
        assert!(write().is_ok(), "{name}");
    }
    p.is_whole();
}

#[test]
fn what_was_stored_before_the_disk_was_full_is_all_there() {
    let p = place();
    p.set("PRAGMA max_page_count = 120");
    let text = "x".repeat(1000);
    let mut numbers = 1;
    let failed = loop {
        match p.db.append_value(DICE, "log", &text, 1) {
            Ok(number) => numbers = number,
            Err(failed) => break failed,
        }
    };
    assert_eq!(failed.kind(), Kind::Quota);
    assert!(numbers > 20, "{numbers}");
    assert_eq!(p.db.values(DICE, "log", &|_| Ok(())).unwrap().len() as i64, numbers);
    // Another program sees the same.
    let other = MainDb::new(p.path());
    assert_eq!(other.values(DICE, "log", &|_| Ok(())).unwrap().len() as i64, numbers);
    p.is_whole();
    // What is deleted makes room.
    assert_eq!(p.db.delete_values(DICE, Some("log")).unwrap() as i64, numbers);
    assert_eq!(p.db.append_value(DICE, "log", &text, 1).unwrap(), 1);
}

#[test]
fn while_another_program_writes_a_write_can_be_tried_again_and_reading_goes_on() {
    let p = place();
    let before = p.there();
    let other = Connection::open(p.path()).unwrap();
    p.db.write_one(|c| c.busy_timeout(Duration::ZERO).map_err(|e| explain(&e))).unwrap();
    other.execute_batch("BEGIN IMMEDIATE; UPDATE chats SET settings = 'half'").unwrap();
    for (name, write) in writes(&p.db, p.chat, "1") {
        let failed = write().unwrap_err();
        assert!(failed.kind() == Kind::Conflict && failed.retryable(), "{name}: {failed}");
        assert_eq!(p.there(), before, "{name}");
    }
    assert!(p.db.delete_chat("a").unwrap_err().retryable());
    assert!(p.db.clear_chat(p.chat, 9).unwrap_err().retryable());
    assert!(p.db.rename_chat("a", "b", 9).unwrap_err().retryable());
    assert!(p.db.remove_item("kept").unwrap_err().retryable());
    assert!(p.db.count_attempt("kept").unwrap_err().retryable());
    other.execute_batch("ROLLBACK").unwrap();
    assert_eq!(p.there(), before);
    for (name, write) in writes(&p.db, p.chat, "1") {
        assert!(write().is_ok(), "{name}");
    }
    p.is_whole();
}

#[test]
fn a_database_that_cannot_be_written_can_still_be_read() {
    let p = place();
    let before = p.there();
    p.set("PRAGMA query_only = 1");
    for (name, write) in writes(&p.db, p.chat, "1") {
        let failed = write().unwrap_err();
        assert_eq!(failed.kind(), Kind::PermissionDenied, "{name}: {failed}");
        assert!(failed.to_string().contains("user/lapidary.db"), "{name}: {failed}");
        assert_eq!(p.there(), before, "{name}");
    }
    assert_eq!(p.db.delete_chat("a").unwrap_err().kind(), Kind::PermissionDenied);
    assert_eq!(p.there(), before);
    p.set("PRAGMA query_only = 0");
    for (name, write) in writes(&p.db, p.chat, "1") {
        assert!(write().is_ok(), "{name}");
    }
}

#[test]
fn a_file_that_is_no_database_is_left_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("user/lapidary.db");
    let junk = "this is somebody's text ".repeat(500);
    file::write_atomic(
        &{
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            path.clone()
        },
        junk.as_bytes(),
    )
    .unwrap();
    let db = MainDb::new(path.clone());
    for failed in [db.ensure_chat("a", false, 1).map(drop), db.chats().map(drop), db.put_value(DICE, "k", "1", 1)] {
        let failed = failed.unwrap_err();
        assert!(failed.kind() == Kind::Internal && failed.to_string().contains("damaged"), "{failed}");
    }
    assert_eq!(std::fs::read_to_string(&path).unwrap(), junk);
}
