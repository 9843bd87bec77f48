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

#[test]
fn every_field_comes_back_as_it_was() {
    let (_dir, db, chat) = db();
    let rows = [
        (Lane::Now, None, None, None, Some("hear"), false),
        (Lane::Later, Some("dice"), Some(9), Some(true), None, true),
        (Lane::Now, Some("mail"), Some(-1), Some(false), None, true),
    ];
    for (n, (lane, plugin, expires_at, private_at_put, on_drop, durable)) in rows.into_iter().enumerate() {
        let ticket = n.to_string();
        let new = NewItem { lane, plugin, expires_at, private_at_put, on_drop, durable, ..item(chat, &ticket) };
        let seq = db.put_item(&new).unwrap();
        let expected = Item {
            ticket: ticket.clone(),
            chat,
            seq,
            lane,
            state: ItemState::Waiting,
            source: "test".into(),
            plugin: plugin.map(Into::into),
            header: "[dice]".into(),
            payload: "{}".into(),
            put_at: 5,
            expires_at,
            private_at_put,
            on_drop: on_drop.map(Into::into),
            durable,
            attempts: 0,
        };
        assert_eq!(db.item(&ticket).unwrap(), Some(expected));
    }
}

#[test]
fn items_keep_their_places() {
    let (_dir, db, one) = db();
    let two = db.ensure_chat("b", false, 1).unwrap().id;
    let order = |db: &MainDb, chat| -> String { tickets(db, chat).into_iter().map(|(ticket, ..)| ticket).collect() };
    for (chat, ticket) in [(one, "a"), (two, "x"), (one, "b"), (one, "c")] {
        db.put_item(&item(chat, ticket)).unwrap();
    }
    assert_eq!((order(&db, one).as_str(), order(&db, two).as_str()), ("abc", "x"));
    db.start_items(&["b", "c"], &[]).unwrap();
    db.put_item(&item(one, "d")).unwrap();
    db.return_items(&["b", "c"]).unwrap();
    assert_eq!(order(&db, one), "abcd");
    db.remove_item("d").unwrap();
    db.finish_items(&["a"]).unwrap();
    db.put_item(&item(one, "e")).unwrap();
    assert_eq!(order(&db, one), "bce");
    assert_eq!(db.all_items().unwrap().iter().map(|item| &*item.ticket).collect::<String>(), "bcex");
}

#[test]
fn what_does_not_fit_together_changes_nothing() {
    let (_dir, db, one) = db();
    let two = db.ensure_chat("b", false, 1).unwrap().id;
    db.put_item(&item(one, "a")).unwrap();
    db.put_item(&item(two, "b")).unwrap();
    let said = NewMessage { role: Role::User, at: 6, turn: "t", body: "{}" };
    let rows: &[(&[&str], Kind)] = &[
        (&[], Kind::InvalidArguments),
        (&["none"], Kind::NotFound),
        (&["a", "none"], Kind::NotFound),
        (&["a", "b"], Kind::Conflict),
        (&["b", "a"], Kind::Conflict),
    ];
    for (wanted, kind) in rows {
        assert_eq!(db.start_items(wanted, &[said]).unwrap_err().kind(), *kind, "{wanted:?}");
    }
    assert_eq!((db.count_messages(one).unwrap(), db.count_messages(two).unwrap()), (0, 0));
    assert!(db.all_items().unwrap().iter().all(|item| item.state == ItemState::Waiting && item.attempts == 0));
    assert_eq!(db.put_item(&item(one, "b")).unwrap_err().kind(), Kind::Conflict);
    assert_eq!(db.put_item(&item(99, "c")).unwrap_err().kind(), Kind::NotFound);
    assert_eq!(db.count_attempt("none").unwrap_err().kind(), Kind::NotFound);
    let big = "x".repeat(MAX_PAYLOAD + 1);
    assert_eq!(db.put_item(&NewItem { payload: &big, ..item(one, "c") }).unwrap_err().kind(), Kind::TooLarge);
    assert_eq!(db.finish_items_with(&["a"], 99, &[said]).unwrap_err().kind(), Kind::NotFound);
    assert_eq!(db.all_items().unwrap().len(), 2);
}

#[test]
fn a_turn_ends_with_its_last_messages_at_once() {
    let (_dir, db, chat) = db();
    db.put_item(&item(chat, "a")).unwrap();
    db.put_item(&item(chat, "b")).unwrap();
    let said = NewMessage { role: Role::User, at: 6, turn: "t", body: "{}" };
    db.start_items(&["a", "b"], &[said]).unwrap();
    let ids = db.finish_items_with(&["a", "b"], chat, &[NewMessage { role: Role::Assistant, ..said }]).unwrap();
    assert_eq!((ids.len(), db.count_messages(chat).unwrap(), db.all_items().unwrap().len()), (1, 2, 0));
}

#[test]
fn only_what_waits_counts_for_a_plugin() {
    let (_dir, db, chat) = db();
    for (ticket, plugin) in [("a", Some("dice")), ("b", Some("dice")), ("c", Some("mail")), ("d", None)] {
        db.put_item(&NewItem { plugin, ..item(chat, ticket) }).unwrap();
    }
    db.start_items(&["a"], &[]).unwrap();
    let counts = ["dice", "mail", "none"].map(|plugin| db.waiting_of(chat, plugin).unwrap());
    assert_eq!(counts, [1, 1, 0]);
}

#[test]
fn the_inbox_of_a_deleted_chat_is_gone() {
    let (_dir, db, chat) = db();
    db.put_item(&item(chat, "a")).unwrap();
    db.delete_chat("a").unwrap();
    assert_eq!(db.all_items().unwrap(), []);
    assert_eq!(db.start_items(&["a"], &[]).unwrap_err().kind(), Kind::NotFound);
    assert_eq!(db.remove_item("a").unwrap(), None);
}
