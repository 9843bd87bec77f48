//! Chats and what goes with them.

use super::*;
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
