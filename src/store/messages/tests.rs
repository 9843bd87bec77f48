//! Messages of chats.

use super::*;

fn db() -> (tempfile::TempDir, MainDb, i64) {
    let dir = tempfile::tempdir().unwrap();
    let db = MainDb::new(dir.path().join("user/lapidary.db"));
    let chat = db.ensure_chat("a", false, 1).unwrap().id;
    (dir, db, chat)
}

fn said<'a>(at: i64, body: &'a str) -> NewMessage<'a> {
    NewMessage { role: Role::User, at, turn: "t1", body }
}

fn bodies(messages: &[Message]) -> Vec<&str> {
    messages.iter().map(|message| &*message.body).collect()
}

#[test]
fn messages_are_paged_from_the_newest_back() {
    let (_dir, db, chat) = db();
    let ids = db.append_messages(chat, &[said(10, "1"), said(11, "2"), said(12, "3"), said(9, "4")]).unwrap();
    assert!(ids.is_sorted());
    assert_eq!(bodies(&db.messages(chat, None, 2).unwrap()), ["3", "4"]);
    assert_eq!(bodies(&db.messages(chat, Some(ids[2]), 2).unwrap()), ["1", "2"]);
    assert_eq!(bodies(&db.messages(chat, Some(ids[0]), 2).unwrap()), Vec::<&str>::new());
    assert_eq!(bodies(&db.messages(chat, None, 0).unwrap()), Vec::<&str>::new());
    assert_eq!(bodies(&db.messages_from(chat, ids[1]).unwrap()), ["2", "3", "4"]);
    assert_eq!(db.chat("a").unwrap().unwrap().updated_at, 12);
    assert_eq!(db.count_messages(chat).unwrap(), 4);
    db.replace_message(chat, ids[0], "one").unwrap();
    assert_eq!(db.message(chat, ids[0]).unwrap().unwrap().body, "one");
    assert_eq!(db.delete_messages(chat, &[ids[0], ids[0], 999]).unwrap(), 1);
    assert_eq!(db.delete_messages_from(chat, ids[2]).unwrap(), 2);
    assert_eq!(bodies(&db.messages(chat, None, 9).unwrap()), ["2"]);
}
