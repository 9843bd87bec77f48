//! What waits in inboxes.

use super::*;
use crate::store::messages::Role;

fn db() -> (tempfile::TempDir, MainDb, i64) {
    let dir = tempfile::tempdir().unwrap();
    let db = MainDb::new(dir.path().join("user/lapidary.db"));
    let chat = db.ensure_chat("a", false, 1).unwrap().id;
    (dir, db, chat)
}

fn item(chat: i64, ticket: &str) -> NewItem<'_> {
    NewItem {
        ticket,
        chat,
        lane: Lane::Later,
        source: "test",
        plugin: Some("dice"),
        header: "[dice]",
        payload: "{}",
        put_at: 5,
        expires_at: Some(9),
        private_at_put: Some(false),
        on_drop: None,
        durable: true,
    }
}

fn tickets(db: &MainDb, chat: i64) -> Vec<(String, ItemState, u32)> {
    db.items(chat).unwrap().into_iter().map(|item| (item.ticket, item.state, item.attempts)).collect()
}

#[test]
fn an_item_is_put_started_and_finished() {
    let (_dir, db, chat) = db();
    db.put_item(&item(chat, "a")).unwrap();
    db.put_item(&item(chat, "b")).unwrap();
    assert_eq!(db.waiting_of(chat, "dice").unwrap(), 2);
    let said = NewMessage { role: Role::User, at: 6, turn: "t", body: "{}" };
    let ids = db.start_items(&["a"], &[said]).unwrap();
    assert_eq!((ids.len(), db.count_messages(chat).unwrap()), (1, 1));
    assert_eq!(db.start_items(&["a"], &[said]).unwrap_err().kind(), Kind::Conflict);
    assert_eq!(db.start_items(&["b", "none"], &[said]).unwrap_err().kind(), Kind::NotFound);
    assert_eq!(db.count_messages(chat).unwrap(), 1, "an item is started with its messages or not at all");
    assert_eq!(tickets(&db, chat), [("a".into(), ItemState::Running, 1), ("b".into(), ItemState::Waiting, 0)]);
    assert_eq!(db.return_items(&["a", "b"]).unwrap(), 1);
    assert_eq!(db.count_attempt("a").unwrap(), 2);
    assert_eq!(tickets(&db, chat), [("a".into(), ItemState::Waiting, 2), ("b".into(), ItemState::Waiting, 0)]);
    assert_eq!(db.remove_item("a").unwrap().unwrap().ticket, "a");
    assert_eq!(db.remove_item("a").unwrap(), None);
    assert_eq!(db.finish_items(&["b", "a"]).unwrap(), 1);
    assert_eq!(db.all_items().unwrap(), []);
}
